//! Progress of long work, on a terminal only.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressStyle};

/// A bar over `total` samples with rate and time left; hidden where standard error is no terminal or the work is short.
pub(crate) fn bar(total: u64, what: &str) -> ProgressBar {
    if total < 50_000 || !wanted() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {percent}% {per_sec}, {eta} left");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what.to_owned())
}

/// A bar over pieces of work, with the time left; hidden where standard error is no terminal.
pub(crate) fn pieces(total: u64, what: &str) -> ProgressBar {
    if !wanted() {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{msg} [{wide_bar}] {pos}/{len}, {eta} left");
    ProgressBar::new(total).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar())).with_message(what.to_owned())
}

fn wanted() -> bool {
    std::io::stderr().is_terminal() && !super::voice::quiet()
}
