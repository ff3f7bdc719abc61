//! `kaflow completions` and `kaflow man`: what shells and manuals want to know, made from the command line itself.

use std::path::PathBuf;

use crate::{Error, Result, files};

/// Print completions for a shell.
///
/// bash: kaflow completions bash > ~/.local/share/bash-completion/completions/kaflow
#[derive(clap::Args)]
pub(crate) struct Completions {
    /// Which shell
    shell: clap_complete::Shell,
}

/// Print the manual page, or write the pages of all commands into a folder.
///
/// kaflow man | man -l -
#[derive(clap::Args)]
pub(crate) struct Man {
    /// Folder for the pages of all commands; made where it is missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

pub(crate) fn completions(args: Completions) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut super::command(), "kaflow", &mut text);
    files::write("-".as_ref(), &text)
}

pub(crate) fn man(args: Man) -> Result<()> {
    let mut command = super::command();
    // Gives the commands their full names.
    command.build();
    let page = |command: &clap::Command| {
        let mut text = Vec::new();
        clap_mangen::Man::new(command.clone()).render(&mut text).map_err(|e| Error::io("manual page", e))?;
        Ok::<_, Error>(text)
    };
    let Some(folder) = &args.out else { return files::write("-".as_ref(), &page(&command)?) };
    files::make_folder(folder)?;
    files::write(&folder.join("kaflow.1"), &page(&command)?)?;
    for sub in command.get_subcommands().filter(|sub| sub.get_name() != "help") {
        files::write(&folder.join(format!("kaflow-{}.1", sub.get_name())), &page(sub)?)?;
    }
    Ok(())
}
