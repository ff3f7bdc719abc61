//! Errors in the words of the command line: the option as it was typed, the value as it was typed. And the numbers that options take.

use std::ffi::OsString;

use crate::Error;

/// Parameters whose options have another name.
const OTHER: [(&str, &str); 3] = [("--sample-rate", "--rate"), ("--threads", "--workers"), ("--frequency", "--freq")];

/// An error about a parameter that was given as an option, with that option and its value.
pub(super) fn explain(error: Error, arguments: &[OsString]) -> Error {
    let Error::Parameter { name, expected, value } = error else { return error };
    let mut option = format!("--{}", name.replace('_', "-"));
    if let Some((_, other)) = OTHER.iter().find(|(inside, other)| *inside == option && given(other, arguments).is_some()) {
        option = (*other).to_owned();
    }
    match given(&option, arguments) {
        None => Error::Parameter { name, expected, value },
        // Some errors say "both" or "nothing" where a value stands.
        Some(typed) if value.parse::<f64>().is_ok() && typed.parse::<f64>().is_ok() => {
            Error::Parameter { name: option, expected, value: typed }
        }
        Some(_) => Error::Parameter { name: option, expected, value },
    }
}

/// What stands behind an option, if it was given.
fn given(option: &str, arguments: &[OsString]) -> Option<String> {
    let text = |at: usize| arguments.get(at).map(|a| a.to_string_lossy().into_owned());
    (0..arguments.len()).rev().find_map(|at| {
        let argument = text(at)?;
        match argument.strip_prefix(option)? {
            "" => Some(text(at + 1).unwrap_or_default()),
            rest => rest.strip_prefix('=').map(str::to_owned),
        }
    })
}

/// A whole number as people write it: 5000, 5e3, 1_000_000.
pub(crate) fn whole<T: TryFrom<u64>>(text: &str) -> Result<T, String> {
    let digits = text.replace('_', "");
    let number = match digits.parse::<u64>() {
        Ok(number) => number,
        Err(_) => match digits.parse::<f64>() {
            Ok(number) if (0.0..18_446_744_073_709_551_616.0).contains(&number) && number.fract() == 0.0 => number as u64,
            Ok(number) if number < 0.0 => return Err("must be 0 or more".into()),
            Ok(number) if number.fract() != 0.0 => return Err("must be a whole number".into()),
            Ok(_) => return Err("is too large".into()),
            Err(_) => return Err("is not a number".into()),
        },
    };
    T::try_from(number).map_err(|_| "is too large".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_may_have_an_exponent() {
        let number = |text: &str| whole::<u32>(text);
        assert_eq!(
            [number("5e3"), number("5000"), number("5_000"), number("5000.0"), number("0")],
            [Ok(5000), Ok(5000), Ok(5000), Ok(5000), Ok(0)]
        );
        for text in ["-1", "1.5", "5e9", "1e300", "nan", "inf", "", "x", "0x10"] {
            assert!(number(text).is_err(), "{text}");
        }
        assert_eq!(whole::<u64>("18446744073709551615"), Ok(u64::MAX));
        assert_eq!(whole::<u64>("1e18"), Ok(1_000_000_000_000_000_000));
        assert!(whole::<u64>("1.9e19").is_err());
    }

    #[test]
    fn an_error_has_the_option_and_the_value_as_typed() {
        let arguments = ["kaflow", "track", "--still-taps", "1e3", "--eta=2"].map(OsString::from);
        let said = |name: &str, value: &str| explain(Error::parameter(name, "less", value), &arguments).to_string();
        assert_eq!(said("still_taps", "1000"), "--still-taps must be less, got 1e3");
        assert_eq!(said("eta", "both"), "--eta must be less, got both");
        assert_eq!(said("eta", "2"), "--eta must be less, got 2");
        assert_eq!(said("sigma", "2"), "sigma must be less, got 2");
    }
}
