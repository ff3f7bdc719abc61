//! The `kaflow` command: one file for each subcommand, each with its clap arguments and a `run`.

mod bench;
#[cfg(feature = "soapy")]
mod devices;
mod fit;
mod inspect;
mod interrupt;
#[cfg(not(feature = "soapy"))]
mod no_soapy;
mod output;
mod parallel;
mod parameters;
mod progress;
mod reproduce;
mod simulate;
mod table;
mod track;
mod tune;

#[cfg(not(feature = "soapy"))]
use no_soapy as devices;
#[cfg(not(feature = "soapy"))]
use no_soapy as live;
#[cfg(feature = "soapy")]
use track::live;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Track nonlinear radio channels with kernel adaptive filters.
#[derive(Parser)]
#[command(name = "kaflow", version)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Subcommand)]
enum Command {
    Track(Box<track::Args>),
    Bench(bench::Args),
    Fit(fit::Args),
    Inspect(inspect::Args),
    Reproduce(reproduce::Args),
    Simulate(Box<simulate::Args>),
    Tune(Box<tune::Args>),
    Live(Box<live::Args>),
    Devices(devices::Args),
}

/// Parses the command line and runs it: 0 when it worked, 2 when the input is at fault.
pub fn main() -> ExitCode {
    // Without a command: what `kaflow track` does without arguments.
    let result = match Cli::parse().command.unwrap_or_else(|| Command::Track(Box::new(track::Args::bare()))) {
        Command::Track(args) => track::run(*args),
        Command::Bench(args) => bench::run(args),
        Command::Fit(args) => fit::run(args),
        Command::Inspect(args) => inspect::run(args),
        Command::Reproduce(args) => reproduce::run(args),
        Command::Simulate(args) => simulate::run(*args),
        Command::Tune(args) => tune::run(*args),
        Command::Live(args) => live::run(*args),
        Command::Devices(args) => devices::run(args),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kaflow: {error}");
            ExitCode::from(2)
        }
    }
}
