//! `kaflow study submit`: a batch script for Slurm, or a Job for Kubernetes, with what a short trial has measured.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::StudyArgs;
use super::plan::Plan;
use super::results::ranges;
use super::run::{absolute, execute};
use crate::cli::{interrupt, typed::whole};
use crate::{Error, Result, files};

/// Hand a study to a cluster
///
/// Runs one task of each filter first (they count) and asks for time and memory accordingly.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    study: StudyArgs,
    /// Write submit.sh, an array job, and hand it to sbatch
    #[arg(long, required_unless_present = "kubernetes")]
    slurm: bool,
    /// Write job.json, an indexed Job for kubectl apply
    #[arg(long, conflicts_with = "slurm")]
    kubernetes: bool,
    /// Only write the script
    #[arg(long)]
    dry_run: bool,
    /// Tasks of a shard (default: a few minutes' work)
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    shard_size: Option<u64>,
    /// Cores of a shard
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole::<usize>)]
    cores: usize,
    /// Shards that run at a time, at most
    #[arg(long, value_name = "N", value_parser = whole::<u64>)]
    parallel: Option<u64>,
    /// Image that holds kaflow, for Kubernetes
    #[arg(long, default_value = concat!("kaflow:", env!("CARGO_PKG_VERSION")))]
    image: String,
    /// Volume claim that holds the study's folder, for Kubernetes
    #[arg(long, default_value = "kaflow-study")]
    claim: String,
    /// Replace a script that is there already
    #[arg(long)]
    force: bool,
}

/// A shard should take so long, to be worth the scheduler's while.
const SHARD_SECONDS: f64 = 300.0;
/// Shards of an array where nobody says how many there may be: Slurm's default.
const MOST: u64 = 1000;
/// Pods of an indexed Job, at most.
const INDEXED: u64 = 100_000;
/// Length of an array's list of indices up to which only what is missing is listed.
const LIST: usize = 2000;

/// What the slowest task so far took.
struct Cost {
    seconds: f64,
    megabytes: u64,
}

/// How the tasks are cut into shards.
struct Shards {
    size: u64,
    count: u64,
    /// Those with something left to do.
    open: Vec<u64>,
    minutes: u64,
    megabytes: u64,
}

pub(super) fn run(args: Args) -> Result<()> {
    super::run::cores(Some(args.cores))?;
    for (name, value) in [("shard-size", args.shard_size), ("parallel", args.parallel)] {
        if value == Some(0) {
            return Err(Error::parameter(name, "at least 1", 0));
        }
    }
    let plan = args.study.plan()?;
    let folder = args.study.folder();
    let script = folder.path.join(if args.slurm { "submit.sh" } else { "job.json" });
    plan.check(&(0..plan.tasks()), &folder.path, vec![script.clone()], args.force)?;
    if args.kubernetes && parent(&folder.path) != parent(&args.study.study) {
        return Err(Error::parameter("out", "beside the study: one volume holds both", folder.path.display()));
    }
    let cost = trial(&plan, &args.study)?;
    if interrupt::requested() {
        return Ok(());
    }
    let most = if args.slurm { largest_array() } else { INDEXED };
    let shards = Shards::new(&plan, &args, &cost, most)?;
    say!(
        "{} tasks, {:.2} s and {} MB each: {} shards of {}, {} to do",
        plan.tasks(),
        cost.seconds,
        cost.megabytes,
        shards.count,
        shards.size,
        shards.open.len()
    );
    if shards.open.is_empty() {
        say!("everything is done: kaflow study merge {}", args.study.study.display());
        return Ok(());
    }
    let text = if args.slurm { shards.slurm(&plan, &args)? } else { shards.kubernetes(&plan, &args)? };
    files::write(&script, text.as_bytes())?;
    say!("{}", script.display());
    if args.slurm && !args.dry_run {
        say!("{}", sbatch(&script)?);
    }
    Ok(())
}

/// One task of each filter, on the first input; what they found stays.
fn trial(plan: &Plan, study: &StudyArgs) -> Result<Cost> {
    let (all, mut first, mut next) = (0..plan.tasks(), Vec::new(), 0);
    for family in &plan.families {
        first.push(next);
        next += family.points();
    }
    execute(plan, &study.folder(), &all, Some(&first), 1)?;
    let mut seconds = 0f64;
    study.folder().read(plan, &all, |record, _, _| {
        seconds = seconds.max(record.seconds);
        Ok(())
    })?;
    Ok(Cost { seconds, megabytes: peak_megabytes() })
}

/// The most memory that this process has had so far.
fn peak_megabytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|kb| kb.trim().trim_end_matches(" kB").parse::<u64>().ok()).map_or(256, |kb| kb / 1000 + 1)
}

/// How many shards an array may have here.
fn largest_array() -> u64 {
    let said = Command::new("scontrol").args(["show", "config"]).output().ok();
    let text = said.map(|said| String::from_utf8_lossy(&said.stdout).into_owned()).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MaxArraySize"));
    // The largest index is one less.
    line.and_then(|line| line.trim_start_matches([' ', '=']).trim().parse().ok()).unwrap_or(MOST)
}

impl Shards {
    fn new(plan: &Plan, args: &Args, cost: &Cost, most: u64) -> Result<Self> {
        let comfortable = (SHARD_SECONDS * args.cores as f64 / cost.seconds.max(1e-3)).ceil() as u64;
        let size = args.shard_size.unwrap_or_else(|| comfortable.min(plan.tasks()).max(plan.tasks().div_ceil(most)));
        let count = plan.tasks().div_ceil(size);
        if count > most {
            let expected = format!("at least {}: arrays have at most {most} elements here", plan.tasks().div_ceil(most));
            return Err(Error::parameter("shard-size", expected, size));
        }
        let mut left = vec![size; count as usize];
        left[count as usize - 1] = plan.tasks() - (count - 1) * size;
        let mut seen = vec![false; plan.tasks() as usize];
        args.study.folder().read(plan, &(0..plan.tasks()), |record, _, _| {
            if !std::mem::replace(&mut seen[record.task as usize], true) {
                left[(record.task / size) as usize] -= 1;
            }
            Ok(())
        })?;
        let open = (0..count).filter(|&shard| left[shard as usize] > 0).collect();
        // Three times what the trial took: other inputs are longer, other machines slower.
        let seconds = 3.0 * cost.seconds * size as f64 / args.cores as f64;
        let megabytes = 128 + 3 * cost.megabytes / 2 * args.cores as u64;
        Ok(Self { size, count, open, minutes: (seconds / 60.0).ceil() as u64 + 2, megabytes })
    }

    fn slurm(&self, plan: &Plan, args: &Args) -> Result<String> {
        let (study, folder) = (absolute(&args.study.study)?, absolute(&args.study.folder().path)?);
        let program = std::env::current_exe().map_err(|e| Error::io("kaflow", e))?;
        let log = folder.join("log");
        std::fs::create_dir_all(&log).map_err(|e| Error::io(&log, e))?;
        let list = ranges(self.open.iter().copied(), usize::MAX);
        let list = if list.len() > LIST { format!("0-{}", self.count - 1) } else { list };
        let limit = args.parallel.map_or(String::new(), |n| format!("%{n}"));
        let name: String = plan.name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        Ok(format!(
            "#!/bin/bash\n\
             # {} tasks in {} shards of {}; a shard that is run again goes on where it was.\n\
             #SBATCH --job-name={name}\n#SBATCH --array={list}{limit}\n#SBATCH --ntasks=1\n#SBATCH --cpus-per-task={}\n\
             #SBATCH --mem={}M\n#SBATCH --time={}\n#SBATCH --requeue\n#SBATCH --open-mode=append\n#SBATCH --output={}\n\
             exec {} study run {} --out {} --shard-size {} --cores {} --max-tasks {}\n",
            plan.tasks(),
            self.count,
            self.size,
            args.cores,
            self.megabytes,
            self.minutes,
            // In a comment of the shell, read by Slurm: %A_%a are the job and the element.
            quoted(&log.join("%A_%a.txt")),
            quoted(&program),
            quoted(&study),
            quoted(&folder),
            self.size,
            args.cores,
            args.study.max_tasks,
        ))
    }

    fn kubernetes(&self, plan: &Plan, args: &Args) -> Result<String> {
        let name: String = plan.name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' }).collect();
        let name = format!("kaflow-{}", name.trim_matches('-'));
        let (size, cores, most) = (self.size.to_string(), args.cores.to_string(), args.study.max_tasks.to_string());
        let inside = |path: &Path| format!("/study/{}", path.file_name().unwrap_or_default().to_string_lossy());
        let (study, folder) = (inside(&args.study.study), inside(&args.study.folder().path));
        let command = ["kaflow", "study", "run", &study, "--out", &folder, "--shard-size", &size, "--cores", &cores, "--max-tasks", &most];
        let amounts = json!({ "cpu": cores, "memory": format!("{}M", self.megabytes) });
        let job = json!({
            "apiVersion": "batch/v1",
            "kind": "Job",
            "metadata": { "name": name.chars().take(63).collect::<String>().trim_end_matches('-') },
            "spec": {
                "completionMode": "Indexed",
                "completions": self.count,
                "parallelism": args.parallel.unwrap_or(self.count.min(100)),
                // Nodes go away; what was done stays.
                "backoffLimit": self.count.saturating_mul(3).min(i32::MAX as u64),
                "template": { "spec": {
                    "restartPolicy": "Never",
                    "activeDeadlineSeconds": 60 * self.minutes,
                    "containers": [{
                        "name": "kaflow",
                        "image": args.image,
                        "command": command,
                        "resources": { "requests": amounts, "limits": { "memory": format!("{}M", self.megabytes) } },
                        "volumeMounts": [{ "name": "study", "mountPath": "/study" }],
                    }],
                    "volumes": [{ "name": "study", "persistentVolumeClaim": { "claimName": args.claim } }],
                }},
            },
        });
        Ok(format!("{job:#}\n"))
    }
}

/// The folder that holds a path.
fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// A word for the shell.
fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-%".contains(c);
    if text.chars().all(plain) { text } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Hands the script over; gives what Slurm says.
fn sbatch(script: &PathBuf) -> Result<String> {
    let said = Command::new("sbatch").arg(script).output().map_err(|e| match e.kind() {
        std::io::ErrorKind::NotFound => {
            Error::Data("there is no sbatch here: copy the study to a machine of the cluster, or use --dry-run".into())
        }
        _ => Error::io("sbatch", e),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().replace('\n', " ");
    if !said.status.success() {
        return Err(Error::Data(format!("sbatch refused {}: {}", script.display(), text(&said.stderr))));
    }
    Ok(text(&said.stdout))
}
