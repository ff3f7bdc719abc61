//! What `kaflow live` and `kaflow devices` say in a build without radios.

use crate::{Error, Result};

/// Needs a build with SoapySDR: cargo install kaflow --features soapy
#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    #[arg(hide = true, num_args = 0.., trailing_var_arg = true, allow_hyphen_values = true)]
    rest: Vec<String>,
}

pub(crate) fn run(args: Args) -> Result<()> {
    drop(args.rest);
    Err(Error::Data(
        "this kaflow was built without radios: apt-get install libsoapysdr-dev pkg-config g++, then build it with --features soapy".into(),
    ))
}
