//! The `kaflow` command: one file for each subcommand, each with its clap arguments and a `run`.

mod fit;
mod output;
mod parameters;
mod progress;
mod table;
mod track;

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
    Fit(fit::Args),
}

/// Parses the command line and runs it: 0 when it worked, 2 when the input is at fault.
pub fn main() -> ExitCode {
    // Without a command: what `kaflow track` does without arguments.
    let command = Cli::parse().command.or_else(|| Cli::parse_from(["kaflow", "track"]).command);
    let result = match command {
        Some(Command::Fit(args)) => fit::run(args),
        Some(Command::Track(args)) => track::run(*args),
        None => Ok(()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("kaflow: {error}");
            ExitCode::from(2)
        }
    }
}
