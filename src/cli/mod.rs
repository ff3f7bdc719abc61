//! The `kaflow` command: one file for each subcommand, each with its clap arguments and a `run`.

/// Prints a line. A reader who has gone away, as in `kaflow inspect FILE | head`, is no reason to stop before the files are written.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

mod bench;
#[cfg(feature = "soapy")]
mod devices;
mod fit;
mod inspect;
mod interrupt;
mod linearize;
#[cfg(feature = "soapy")]
mod live;
#[cfg(not(feature = "soapy"))]
mod no_soapy;
mod parallel;
mod parameters;
mod progress;
mod receive;
mod reproduce;
mod run;
mod simulate;
mod table;
mod track;
mod tune;

#[cfg(not(feature = "soapy"))]
use no_soapy as devices;
#[cfg(not(feature = "soapy"))]
use no_soapy as live;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::Error;

/// Track nonlinear radio channels with kernel adaptive filters.
#[derive(Parser)]
#[command(name = "kaflow", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Track(Box<track::Args>),
    Bench(bench::Args),
    Fit(fit::Args),
    Inspect(inspect::Args),
    Linearize(Box<linearize::Args>),
    Receive(receive::Args),
    Reproduce(reproduce::Args),
    Simulate(Box<simulate::Args>),
    Tune(Box<tune::Args>),
    Live(Box<live::Args>),
    Devices(devices::Args),
}

/// Parses the command line and runs it: 0 when it worked, 2 when the input is at fault.
pub fn main() -> ExitCode {
    // Without anything: what `kaflow track` does without arguments.
    let mut arguments: Vec<_> = std::env::args_os().collect();
    if arguments.len() == 1 {
        arguments.push("track".into());
    }
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) if error.use_stderr() => {
            eprintln!("kaflow: {}", one_line(&error.to_string()));
            return ExitCode::from(2);
        }
        Err(help) => help.exit(),
    };
    let result = match cli.command {
        Command::Track(args) => track::run(*args),
        Command::Bench(args) => bench::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Linearize(args) => linearize::run(*args),
        Command::Receive(args) => receive::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Simulate(args) => simulate::run(*args),
        Command::Tune(args) => tune::run(*args),
        Command::Live(args) => live::run(*args),
        Command::Devices(args) => devices::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Nobody reads on: what was asked for is done.
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kaflow: {error}");
            ExitCode::from(2)
        }
    }
}

/// What is wrong, without the usage that follows it.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // That an argument could be meant as a file name is no help.
    let lines: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("tip: to pass")).collect();
    let text = lines.join(" ");
    text.strip_prefix("error: ").map_or(text.clone(), str::to_owned) + "; see --help"
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn no_command_has_two_arguments_of_one_name() {
        super::Cli::command().debug_assert();
    }
}
