use std::path::PathBuf;

/// What can go wrong, each variant naming the culprit and, where there is one, the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter outside its range.
    #[error("{} must be {}, got {}", short(.name), long(.expected), short(.value))]
    Parameter {
        /// The parameter's name, as an option spells it.
        name: String,
        /// The valid range in words.
        expected: String,
        /// What was given.
        value: String,
    },

    /// A name that does not exist, with the nearest one that does.
    #[error("unknown {kind} '{}'{}; there {} {}", short(.name), suggestion(.name, .known), if .known.len() == 1 { "is" } else { "are" }, .known.join(", "))]
    Unknown {
        /// What kind of thing was named: "filter", "kernel", "preset".
        kind: &'static str,
        /// The name as given.
        name: String,
        /// All valid names.
        known: Vec<String>,
    },

    /// A filter was given a parameter that it does not have.
    #[error("{filter} has no parameter '{}'; it has {}", short(.name), if .known.is_empty() { "none".into() } else { .known.join(", ") })]
    NotApplicable {
        /// The filter's name.
        filter: String,
        /// The parameter that does not belong.
        name: String,
        /// The parameters that it has.
        known: Vec<String>,
    },

    /// Saved state that cannot be restored.
    #[error("saved state: {}", long(.0))]
    State(String),

    /// A file whose content is not what it should be: `place` is a field, line, column or byte offset.
    #[error("{}: {}: {}", long(&path.to_string_lossy()), short(.place), long(.problem))]
    File {
        /// The file.
        path: PathBuf,
        /// Where in the file.
        place: String,
        /// What is wrong there, and what to do about it.
        problem: String,
    },

    /// The operating system refused.
    #[error("{}: {}", long(&path.to_string_lossy()), long(&source.to_string()))]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: std::io::Error,
    },

    /// Data that the job cannot be done on: recordings that do not belong together, a silent stream.
    #[error("{}", long(.0))]
    Data(String),

    /// Something that the job needs has failed while it ran: a radio that has gone away, a flowgraph that ended by itself.
    #[error("{}", long(.0))]
    Device(String),
}

/// The crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// `name must be expected, got value`.
    pub fn parameter(name: impl Into<String>, expected: impl Into<String>, value: impl ToString) -> Self {
        Self::Parameter { name: name.into(), expected: expected.into(), value: value.to_string() }
    }

    /// `unknown kind 'name'; did you mean ...`.
    pub(crate) fn unknown<S: AsRef<str>>(kind: &'static str, name: impl Into<String>, known: impl IntoIterator<Item = S>) -> Self {
        Self::Unknown { kind, name: name.into(), known: known.into_iter().map(|s| s.as_ref().to_owned()).collect() }
    }

    /// Something wrong at `place` in the file `path`.
    pub(crate) fn file(path: impl Into<PathBuf>, place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::File { path: path.into(), place: place.into(), problem: problem.into() }
    }

    /// An operating-system error on `path`.
    pub(crate) fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Self {
        Self::Io { path: path.into(), source }
    }
}

/// Checks a parameter against a condition stated in words.
pub(crate) fn require(ok: bool, name: &str, expected: &str, value: f64) -> Result<()> {
    if ok { Ok(()) } else { Err(Error::parameter(name, expected, value)) }
}

/// The known name nearest to `name`, when it is near enough to be a slip of the finger.
pub(crate) fn nearest<'a, S: AsRef<str>>(name: &str, known: &'a [S]) -> Option<&'a str> {
    known
        .iter()
        .map(|k| (strsim::jaro_winkler(name, k.as_ref()), k.as_ref()))
        .filter(|(score, _)| *score > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, k)| k)
}

/// Text as a terminal may show it: what would move the cursor, change colours or turn the direction of writing is written out.
pub(crate) fn plain(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\'' | '"' | '\\' => shown.push(c),
            c => shown.extend(c.escape_debug()),
        }
    }
    shown
}

/// [`plain`], and only the beginning of what is longer than `most` characters.
pub(crate) fn cut(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => plain(text),
        Some((end, _)) => format!("{}... ({} characters)", plain(&text[..end]), text.chars().count()),
    }
}

/// A name or a value, which may come from a file.
pub(crate) fn short(text: &str) -> String {
    cut(text, 100)
}

/// A sentence, which may quote a file.
fn long(text: &str) -> String {
    cut(text, 1000)
}

fn suggestion(name: &str, known: &[String]) -> String {
    nearest(name, known).map_or(String::new(), |n| format!(", did you mean '{n}'?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_of_the_finger_gets_the_nearest_name() {
        let error = Error::unknown("filter", "fklm", ["klms", "fklms", "nlms"]);
        assert_eq!(error.to_string(), "unknown filter 'fklm', did you mean 'fklms'?; there are klms, fklms, nlms");
        assert_eq!(nearest("zebra", &["klms", "rls"]), None);
    }

    #[test]
    fn what_a_file_says_is_shown_short_and_without_effect() {
        assert_eq!(plain("a\u{1b}[31m\r\u{202e}b µ 'é\\"), "a\\u{1b}[31m\\r\\u{202e}b µ 'é\\");
        let error = Error::file("a\u{7}.csv", "x".repeat(1000), "y\n".repeat(100_000)).to_string();
        assert!(error.starts_with("a\\u{7}.csv: xxx") && error.contains("(200000 characters)") && error.len() < 2000, "{error}");
        assert!(!error.chars().any(char::is_control));
    }
}
