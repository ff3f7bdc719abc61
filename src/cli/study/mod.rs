//! `kaflow study`: many runs, on many cores and machines, whose results can be trusted together.

mod file;
mod merge;
mod pictures;
mod plan;
mod results;
mod run;
mod submit;
mod task;

use std::path::PathBuf;

use clap::Subcommand;

use crate::{Error, Result};
use plan::Plan;
use results::Folder;

/// Sweeps and replays: inputs x filters x parameters, here or on a cluster
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Number the tasks of a study and write them down
    Plan(PlanArgs),
    Run(run::Args),
    Submit(submit::Args),
    Merge(merge::Args),
}

/// Which study, and where its results are.
#[derive(clap::Args)]
struct StudyArgs {
    /// The study: a TOML file
    #[arg(value_name = "FILE.toml")]
    study: PathBuf,
    /// Folder of the results (default: beside the study, FILE.results)
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Refuse a study of more tasks
    #[arg(long, value_name = "N", default_value_t = 1_000_000)]
    max_tasks: u64,
}

impl StudyArgs {
    fn plan(&self) -> Result<Plan> {
        Plan::read(&self.study, self.max_tasks)
    }

    fn folder(&self) -> Folder {
        Folder::new(self.out.as_deref(), &self.study)
    }
}

#[derive(clap::Args)]
struct PlanArgs {
    #[command(flatten)]
    study: StudyArgs,
    /// Replace a plan that is there already
    #[arg(long)]
    force: bool,
}

/// Tasks that are printed; of more, the first and the last ones.
const PRINTED: u64 = 20;

pub(crate) fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Plan(args) => print_plan(&args),
        Command::Run(args) => run::run(args),
        Command::Submit(args) => submit::run(args),
        Command::Merge(args) => merge::run(args),
    }
}

fn print_plan(args: &PlanArgs) -> Result<()> {
    let plan = args.study.plan()?;
    let folder = args.study.folder();
    let path = folder.path.join("plan.ndjson");
    crate::files::check_free(&path, args.force)?;
    std::fs::create_dir_all(&folder.path).map_err(|e| Error::io(&folder.path, e))?;
    plan.write(&path, args.force)?;
    let shown = |task: &u64| plan.tasks() <= PRINTED || *task < PRINTED / 2 || *task >= plan.tasks() - PRINTED / 2;
    say!("{:>8}  {:<24} {:<10} parameters", "task", "input", "filter");
    for number in (0..plan.tasks().min(PRINTED / 2)).chain(plan.tasks().min(PRINTED / 2)..plan.tasks()).filter(shown) {
        if number > 0 && !shown(&(number - 1)) {
            say!("     ...");
        }
        let task = plan.task(number);
        let words = |named: &plan::Named<'_>| named.0.iter().map(|(name, value)| format!(" {name} {value}")).collect::<String>();
        let mut input = task.recording.clone().unwrap_or_else(|| task.input.to_owned()) + &words(&task.scenario);
        input += &task.seed.map_or(String::new(), |seed| format!(" seed {seed}"));
        say!("{number:>8}  {input:<24} {:<10}{}", task.filter, words(&task.parameters));
    }
    say!("{} tasks, study {}\n{}", plan.tasks(), &plan.id[..16], path.display());
    Ok(())
}
