//! The `kaflow` command: one file for each subcommand, each with its clap arguments and a `run`.

/// Prints a line of results.
macro_rules! say {
    () => { $crate::cli::voice::say(format_args!("\n")) };
    ($($text:tt)*) => { $crate::cli::voice::say(format_args!("{}\n", format_args!($($text)*))) };
}

/// Says something on the way, on standard error, unless it is to be quiet.
macro_rules! note {
    ($($text:tt)*) => { $crate::cli::voice::note(format_args!($($text)*)) };
}

/// Shows how it goes, on standard error, unless it is to be quiet.
macro_rules! tell {
    ($($text:tt)*) => { $crate::cli::voice::tell(format_args!($($text)*)) };
}

/// Says something on standard error that few want to know.
macro_rules! detail {
    ($($text:tt)*) => { $crate::cli::voice::detail(format_args!($($text)*)) };
}

mod bench;
mod cancel;
mod complete;
#[cfg(feature = "radio")]
mod devices;
mod exit;
mod fit;
mod inspect;
mod interrupt;
mod json;
mod linearize;
#[cfg(feature = "radio")]
mod live;
#[cfg(not(feature = "radio"))]
mod no_soapy;
mod outputs;
mod pair;
mod parallel;
mod parameters;
mod progress;
mod provenance;
mod receive;
mod recordings;
mod reproduce;
mod run;
mod simulate;
mod study;
mod table;
mod track;
mod tune;
mod typed;
mod voice;

#[cfg(not(feature = "radio"))]
use no_soapy as devices;
#[cfg(not(feature = "radio"))]
use no_soapy as live;

use std::ffi::OsString;
use std::io::Write;
use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::Error;

/// Track nonlinear radio channels with kernel adaptive filters.
#[derive(Parser)]
#[command(name = "kaflow", version, propagate_version = true)]
struct Cli {
    #[command(flatten)]
    voice: voice::Voice,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Track(Box<track::Args>),
    Bench(bench::Args),
    Cancel(Box<cancel::Args>),
    Fit(fit::Args),
    Inspect(inspect::Args),
    Linearize(Box<linearize::Args>),
    Receive(receive::Args),
    Reproduce(reproduce::Args),
    Simulate(Box<simulate::Args>),
    Study(study::Args),
    Tune(Box<tune::Args>),
    Live(Box<live::Args>),
    Devices(devices::Args),
    Completions(complete::Completions),
    Man(complete::Man),
}

/// The whole command line, with what all commands say at the end of their help.
fn command() -> clap::Command {
    Cli::command().after_help(exit::HELP).mut_subcommands(|command| command.after_help(exit::HELP))
}

/// Parses the command line and runs it; the exit code is 0 when it worked, 1 when it failed while it ran, 2 when the input is at fault, 130 or 143 when it was interrupted.
pub fn main() -> ExitCode {
    // Without anything: what `kaflow track` does without arguments.
    let mut arguments: Vec<OsString> = std::env::args_os().collect();
    if arguments.len() == 1 {
        arguments.push("track".into());
    }
    let mut command = command();
    let parsed = command.try_get_matches_from_mut(&arguments).and_then(|matches| Ok((Cli::from_arg_matches(&matches)?, matches)));
    let cli = match parsed {
        Ok((cli, matches)) => {
            provenance::remember(&arguments, &command, &matches);
            cli
        }
        Err(error) if error.use_stderr() => {
            voice::complain(format_args!("{}", one_line(&error.to_string())));
            return ExitCode::from(2);
        }
        // What was asked for is help, or the version.
        Err(help) => {
            let printed = help.print().and_then(|()| std::io::stdout().flush()).map_err(|e| Error::io("standard output", e));
            let code = exit::code(&printed);
            printed.err().filter(|_| code != 0).iter().for_each(|error| voice::complain(format_args!("{error}")));
            return ExitCode::from(code);
        }
    };
    cli.voice.set();
    interrupt::install();
    let result = match cli.command {
        Command::Track(args) => track::run(*args),
        Command::Bench(args) => bench::run(args),
        Command::Cancel(args) => cancel::run(*args),
        Command::Fit(args) => fit::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Linearize(args) => linearize::run(*args),
        Command::Receive(args) => receive::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Simulate(args) => simulate::run(*args),
        Command::Study(args) => study::run(args),
        Command::Tune(args) => tune::run(*args),
        Command::Live(args) => live::run(*args),
        Command::Devices(args) => devices::run(args),
        Command::Completions(args) => complete::completions(args),
        Command::Man(args) => complete::man(args),
    };
    let printed = voice::failure().map_or(Ok(()), |error| Err(Error::io("standard output", error)));
    let result = result.and(printed).map_err(|error| typed::explain(error, &arguments));
    let code = exit::code(&result);
    if let Err(error) = result
        && code != 0
    {
        voice::complain(format_args!("{error}"));
    }
    ExitCode::from(code)
}

/// What is wrong, without the usage that follows it.
fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more"));
    // That an argument could be meant as a file name is no help.
    let lines: Vec<_> = lines.filter(|line| !line.is_empty() && !line.starts_with("tip: to pass")).collect();
    let text = lines.join(" ");
    crate::error::cut(text.strip_prefix("error: ").unwrap_or(&text), 1000) + "; see --help"
}

#[cfg(test)]
mod tests {
    #[test]
    fn no_command_has_two_arguments_of_one_name() {
        super::command().debug_assert();
    }
}
