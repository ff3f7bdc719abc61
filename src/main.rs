//! The `kaflow` command.

fn main() -> std::process::ExitCode {
    kaflow::cli::main()
}
