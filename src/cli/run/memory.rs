//! Whether the filters that are asked for fit into memory: found out before a run instead of by the system's killing it.

use crate::filter::registry::Settings;
use crate::{Error, Result};

/// Refuses filters of one run that together need more memory than there is.
pub(in crate::cli) fn check<'a>(settings: impl IntoIterator<Item = &'a Settings>, taps: usize) -> Result<()> {
    available().map_or(Ok(()), |available| fit(settings, taps, available))
}

fn fit<'a>(settings: impl IntoIterator<Item = &'a Settings>, taps: usize, available: f64) -> Result<()> {
    let all: Vec<(&Settings, f64)> = settings.into_iter().map(|settings| (settings, bytes(settings, taps))).collect();
    let needed: f64 = all.iter().map(|(_, bytes)| bytes).sum();
    let Some((largest, _)) = all.iter().max_by(|a, b| a.1.total_cmp(&b.1)).filter(|_| needed > available) else { return Ok(()) };
    let gb = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
    let (name, value) = match largest.number("budget") {
        Ok(budget) => ("budget", budget),
        Err(_) => ("taps", taps as f64),
    };
    let (filters, fit, need) = match all.len() {
        1 => (largest.recipe().name.to_owned(), "fits", "it needs"),
        count => (format!("{count} filters, the largest of them {},", largest.recipe().name), "together fit", "they need"),
    };
    let expected = format!("so small that {filters} {fit} into the {} of memory that are free ({need} {})", gb(available), gb(needed));
    Err(Error::parameter(name, expected, value))
}

/// About as many bytes as a filter takes, rather more: centres, and what grows with the square of the weights.
fn bytes(settings: &Settings, taps: usize) -> f64 {
    let budget = settings.number("budget").unwrap_or(0.0);
    let weights = (settings.recipe().covariance)(settings, taps);
    32.0 * weights * weights + budget * (16.0 * taps as f64 + 80.0)
}

/// Bytes that can be had, where the system tells: of the machine, of the group of processes that this one is in, or of this process.
fn available() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let free = 1024.0 * line.trim().trim_end_matches("kB").trim().parse::<f64>().ok()?;
    let group = |name: &str| std::fs::read_to_string(format!("/sys/fs/cgroup/{name}")).ok()?.trim().parse::<f64>().ok();
    let left = group("memory.max").map(|most| most - group("memory.current").unwrap_or(0.0));
    let limits = std::fs::read_to_string("/proc/self/limits").unwrap_or_default();
    let own = limits.lines().find_map(|line| line.strip_prefix("Max address space")?.split_whitespace().next()?.parse::<f64>().ok());
    Some(left.into_iter().chain(own).fold(free, f64::min))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::registry::{Value, Values, recipe};

    #[test]
    fn what_does_not_fit_is_refused_with_its_name() {
        let settings = |name: &str, budget: f64| {
            let given = Values::from([("budget".into(), Value::Number(budget))]);
            recipe(name).unwrap().settle_stream(&given, 1.0, 4).unwrap()
        };
        let with = |name: &str, budget: f64| check([&settings(name, budget)], 4);
        assert!(with("fklms", 5000.0).is_ok() && with("krlst", 100.0).is_ok());
        if available().is_some() {
            let error = with("fklms", 1e15).unwrap_err().to_string();
            assert!(error.starts_with("budget must be so small that fklms fits"), "{error}");
        }
        // Each alone fits, both together do not.
        let (fklms, norma) = (settings("fklms", 1e7), settings("norma", 0.5e7));
        assert!(fit([&fklms], 4, 2e9).is_ok() && fit([&norma], 4, 2e9).is_ok());
        let error = fit([&norma, &fklms], 4, 2e9).unwrap_err().to_string();
        assert!(error.starts_with("budget must be so small that 2 filters, the largest of them fklms, together fit"), "{error}");
        assert!(error.contains("(they need 2.2 GB)") && error.ends_with("got 10000000"), "{error}");
    }
}
