//! The `kaflow` command: one file for each subcommand, each with its clap arguments and a `run`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Track nonlinear radio channels with kernel adaptive filters.
#[derive(Parser)]
#[command(name = "kaflow", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {}

/// Parses the command line and runs it: 0 when it worked, 2 when the input is at fault.
pub fn main() -> ExitCode {
    match Cli::parse().command {}
}
