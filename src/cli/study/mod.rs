//! `kaflow study`: many runs, on many cores and machines, whose results can be trusted together.
//!
//! A study is inputs x filters x parameters ([`file`]). Its [`plan`] gives every task a number; nothing else decides what a task is, so any
//! machine can run any of them. A task is the run of `kaflow track` with one filter on one thread, to the bit. Files in the folder of a
//! study:
//!
//! | file | what |
//! |---|---|
//! | `plan.ndjson` | a line for each task, for people: nobody reads it back |
//! | `tasks/FIRST-LAST.ndjson` | a line for each task that is done ([`results::Record`]), appended by one shard at a time |
//! | `submit.sh`, `job.json`, `log/` | for Slurm and for Kubernetes |
//! | `table.csv`, `table.ndjson`, pictures, `report.html` | what a merge writes: the same bytes for the same results |
//! | `merge.json` | the best parameters, where and how long it ran, provenance |
//!
//! # What it costs
//!
//! Measured on two cores of a virtual machine with AVX-512 and a local disk, while others used it: tasks with a development build, rates
//! with a release. A task has an overhead of 3 ms. 10^6 tasks are planned in 2.6 s and 17 MB, and merged in 12 s and 114 MB from 569 MB of
//! results (570 bytes a task). Two shards on two cores took 0.50 to 0.60 of the time of one, the median of ten 0.55.
//!
//! 10^4 tasks of 10^9 samples each, recorded as pairs of cf32:
//!
//! | filter | rate with reading, 4 taps | core hours |
//! |---|---|---|
//! | `nlms` | 17 MS/s | 160 |
//! | `ensemble` | 5.6 MS/s | 500 |
//! | `fklms`, M = 500 | 2.9 MS/s | 960 |
//!
//! Read are 16 GB a task, 160 TB in all: `nlms` takes in 270 MB/s a core, more than many shared file systems give to a hundred cores at a
//! time; the others 45 to 90. Tasks on the same input follow each other, so that the cache of a machine serves a shard of several. The
//! SHA-256 of an input is computed once a process, which reads it once more: a shard of one task reads twice as much. Written are 6 MB.
//!
//! On a shared file system a shard makes one file, opens three (its own twice, the folder once), takes one lock, appends once a task and
//! syncs once; Slurm adds a log. What stops scaling first is the listing of the folder, from which a shard learns who else has done its
//! tasks: the names that are read grow as the square of the shards, 10^6 for 1000 shards, 10^8 for 10^4 of them. So `submit` makes shards
//! of some minutes, and not more than Slurm's arrays hold (1000 by default). Nothing else grows faster than the tasks.

mod file;
mod merge;
mod pictures;
mod plan;
mod read;
mod results;
mod run;
mod submit;
mod task;

use std::path::PathBuf;

use clap::Subcommand;

use crate::Result;
use crate::cli::typed::whole;
use plan::Plan;
use results::Folder;

/// Sweeps and replays: inputs x filters x parameters, here or on a cluster
#[derive(clap::Args)]
#[command(long_about = concat!(
    "Sweeps and replays: inputs x filters x parameters, here or on a cluster.\n\nA study is a TOML file:\n\n",
    include_str!("../../../examples/study.toml")
))]
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
    #[arg(long, value_name = "N", default_value = "1_000_000", value_parser = whole::<u64>)]
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
    plan.check(&(0..plan.tasks()), &folder.path, vec![path.clone()], args.force)?;
    crate::files::make_folder(&folder.path)?;
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
