//! `kaflow study run`: all tasks on the cores of this machine, or one shard of them.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use super::StudyArgs;
use super::plan::Plan;
use super::results::{Folder, Shard};
use super::task::Runner;
use crate::cli::{interrupt, parallel, progress, typed::whole};
use crate::{Error, Result};

/// Run the tasks of a study that have not been done yet
///
/// Each writes one line of JSON into the folder tasks of the results: what was run (input, recording, seed, scenario, filter, parameters
/// after defaults), what came out (samples, nmse_db, centres, gap_samples, or error), and where that comes from (study: the SHA-256 of the
/// plan; input_sha256: that of the scenario, or of the list of the recordings' own; version, command, host, cpu, seconds, time). A task
/// that is done is not done again: what was killed is run again and goes on.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    study: StudyArgs,
    /// Run this shard only, counted from 0 (default: SLURM_ARRAY_TASK_ID or JOB_COMPLETION_INDEX where one is set, else all of them)
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    task: Option<u64>,
    /// Tasks of a shard
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<u64>)]
    shard_size: u64,
    /// Tasks at a time (default: one for each core)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    cores: Option<usize>,
}

/// What the schedulers call the number of a shard.
const INDICES: [&str; 2] = ["SLURM_ARRAY_TASK_ID", "JOB_COMPLETION_INDEX"];

pub(super) fn run(args: Args) -> Result<()> {
    if args.shard_size == 0 {
        return Err(Error::parameter("shard-size", "at least 1", 0));
    }
    let cores = cores(args.cores)?;
    let plan = args.study.plan()?;
    let range = match shard(args.task)? {
        None => 0..plan.tasks(),
        Some((shard, name)) => {
            let first = shard.checked_mul(args.shard_size).filter(|&first| first < plan.tasks());
            let shards = plan.tasks().div_ceil(args.shard_size);
            let first = first.ok_or_else(|| Error::parameter(name, format!("less than the {shards} shards there are"), shard))?;
            first..first.saturating_add(args.shard_size).min(plan.tasks())
        }
    };
    let folder = args.study.folder();
    let began = Instant::now();
    let done = execute(&plan, &folder, &range, None, cores)?;
    let tasks = range.end - range.start;
    let mut line = format!("{} of {tasks} tasks done in {:.1} s", done.now, began.elapsed().as_secs_f64());
    if done.before > 0 {
        line += &format!(", {} were done before", done.before);
    }
    if let Some((failed, first)) = &done.failed {
        line += &format!(", {failed} FAILED, the first {first}");
    }
    if interrupt::requested() {
        line += ", interrupted: run it again to go on";
    }
    say!("{line}\n{}", folder.path.display());
    Ok(())
}

/// The shard that is asked for, and by what name.
fn shard(task: Option<u64>) -> Result<Option<(u64, &'static str)>> {
    if let Some(task) = task {
        return Ok(Some((task, "task")));
    }
    let Some((name, text)) = INDICES.iter().find_map(|name| Some((*name, std::env::var(name).ok()?))) else { return Ok(None) };
    let shard = text.parse().map_err(|_| Error::parameter(name, "the number of a shard, from 0 on", format!("'{text}'")))?;
    Ok(Some((shard, name)))
}

pub(super) fn cores(given: Option<usize>) -> Result<usize> {
    match given {
        Some(cores) if !(1..=1024).contains(&cores) => Err(Error::parameter("cores", "between 1 and 1024", cores)),
        Some(cores) => Ok(cores),
        None => Ok(std::thread::available_parallelism().map_or(1, usize::from)),
    }
}

/// What has become of some tasks.
#[derive(Default)]
pub(super) struct Done {
    pub(super) before: u64,
    pub(super) now: u64,
    /// How many have no result but a reason, and the first of them.
    pub(super) failed: Option<(u64, String)>,
}

impl Done {
    fn fail(&mut self, task: u64, reason: &str) {
        self.failed.get_or_insert_with(|| (0, format!("task {task}: {reason}"))).0 += 1;
    }
}

/// Does what is left of `range`, or of `only` in it. Where something could not be read the others are done all the same, and it is left for
/// the next time.
pub(super) fn execute(plan: &Plan, folder: &Folder, range: &Range<u64>, only: Option<&[u64]>, cores: usize) -> Result<Done> {
    // What was done before is added to.
    plan.check(range, &folder.tasks(), vec![folder.shard(range)], true)?;
    folder.create()?;
    let shard = Shard::open(folder, range)?;
    let mut done = Done::default();
    let mut there = vec![false; (range.end - range.start) as usize];
    folder.read(plan, range, |record, _, _| {
        there[(record.task - range.start) as usize] = true;
        record.error.iter().for_each(|reason| done.fail(record.task, reason));
        Ok(())
    })?;
    done.before = there.iter().filter(|&&there| there).count() as u64;
    let left = |task: &u64| !there[(*task - range.start) as usize];
    let todo: Vec<u64> = match only {
        Some(only) => only.iter().copied().filter(left).collect(),
        None => range.clone().filter(left).collect(),
    };
    let (runner, full, first) = (Runner::new(plan, cores.min(todo.len())), AtomicBool::new(false), Mutex::new(None));
    let bar = progress::pieces(todo.len() as u64, "study");
    let work = |k: usize| {
        // A full disk is not going to be less full for the next task.
        if full.load(Ordering::Relaxed) {
            return None;
        }
        let keep = |error| {
            first.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        };
        let record = runner.run(todo[k]).unwrap_or_else(|error| {
            keep(error);
            None
        })?;
        if let Err(error) = shard.append(&record) {
            full.store(true, Ordering::Relaxed);
            keep(error);
            return None;
        }
        Some(record.error.map(|reason| reason.into_owned()))
    };
    parallel::each_on(cores, todo.len(), &bar, work, |k, outcome| {
        done.now += u64::from(outcome.is_some());
        outcome.flatten().iter().for_each(|reason| done.fail(todo[k], reason));
    });
    bar.finish_and_clear();
    shard.finish()?;
    match first.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(done),
    }
}

/// The study's file and folder without a dot or a link in them: a job starts somewhere else.
pub(super) fn absolute(path: &std::path::Path) -> Result<PathBuf> {
    std::fs::canonicalize(path).map_err(|e| Error::io(path, e))
}
