//! Studies on a cluster: a real Slurm on this machine where it is installed, and what Kubernetes would do.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::{Study, assert_merged_alike, files, stdout};

/// 5 scenarios x 5 seeds x (1 + 3): 100 tasks.
const HUNDRED: &str = r#"
filters = ["nlms"]
[[input]]
preset = "d"
seeds = 5
set.samples = 1000
grid.snr_db = { from = 0, to = 20, steps = 5 }
[[filter]]
name = "fklms"
set.budget = 40
grid.lambda = [0.9, 0.99, 0.999]
"#;

/// A controller and one node on the loop-back interface.
struct Slurm {
    folder: tempfile::TempDir,
    controller: Child,
    node: Child,
}

impl Slurm {
    /// None, loudly, where it cannot be had.
    fn start() -> Option<Self> {
        // Whether it can be started: without a configuration, sbatch does not even tell its version.
        let says = |program: &str, word: &str| Command::new(program).arg(word).output().ok();
        let missing = ["slurmctld", "slurmd", "sbatch"].into_iter().find(|program| says(program, "-V").is_none());
        let root = says("id", "-u").is_some_and(|said| said.stdout.starts_with(b"0\n"));
        if missing.is_some() || !root {
            let why = missing
                .map_or("not the superuser".into(), |program| format!("no {program}: apt-get install slurmctld slurmd slurm-client"));
            eprintln!("SKIPPED: the array under a real Slurm ({why}); the shards run as plain processes");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let name = String::from_utf8(Command::new("hostname").arg("-s").output().unwrap().stdout).unwrap().trim().to_owned();
        let free = || TcpListener::bind("127.0.0.1:0").unwrap();
        let ports = [free(), free()].map(|listener| listener.local_addr().unwrap().port());
        let at = |name: &str| folder.path().join(name).display().to_string();
        ["state", "spool"].iter().for_each(|name| fs::create_dir(at(name)).unwrap());
        let configuration = format!(
            "ClusterName=kaflow\nSlurmctldHost={name}(127.0.0.1)\nAuthType=auth/none\nCredType=cred/none\nProctrackType=proctrack/linuxproc\n\
             TaskPlugin=task/none\nCommunicationParameters=NoCtldInAddrAny,NoInAddrAny\nSlurmUser=root\nSlurmdUser=root\nMpiDefault=none\n\
             StateSaveLocation={}\nSlurmdSpoolDir={}\nSlurmctldPidFile={}\nSlurmdPidFile={}\nSlurmctldLogFile={}\nSlurmdLogFile={}\n\
             SlurmctldPort={}\nSlurmdPort={}\nReturnToService=2\nSelectType=select/cons_tres\nSelectTypeParameters=CR_Core\n\
             SchedulerParameters=batch_sched_delay=0,sched_min_interval=100000,bf_interval=1\n\
             NodeName={name} NodeAddr=127.0.0.1 CPUs=2 RealMemory=2000 State=UNKNOWN\nPartitionName=main Nodes=ALL Default=YES MaxTime=INFINITE State=UP\n",
            at("state"),
            at("spool"),
            at("controller.pid"),
            at("node.pid"),
            at("controller.log"),
            at("node.log"),
            ports[0],
            ports[1],
        );
        fs::write(folder.path().join("slurm.conf"), configuration).unwrap();
        let (controller, node) = (Self::daemon(folder.path(), "slurmctld"), Self::daemon(folder.path(), "slurmd"));
        let slurm = Self { folder, controller, node };
        slurm.until("the node is idle", || slurm.ask("sinfo", &["-h", "-o", "%T"]).trim() == "idle");
        Some(slurm)
    }

    fn daemon(folder: &Path, program: &str) -> Child {
        let quiet = Stdio::null;
        Command::new(program).arg("-D").env("SLURM_CONF", folder.join("slurm.conf")).stdout(quiet()).stderr(quiet()).spawn().unwrap()
    }

    fn configuration(&self) -> PathBuf {
        self.folder.path().join("slurm.conf")
    }

    fn ask(&self, program: &str, words: &[&str]) -> String {
        let said = Command::new(program).args(words).env("SLURM_CONF", self.configuration()).output().unwrap();
        String::from_utf8_lossy(&said.stdout).into_owned()
    }

    fn until(&self, what: &str, mut done: impl FnMut() -> bool) {
        let began = Instant::now();
        while !done() {
            let log = || fs::read_to_string(self.folder.path().join("controller.log")).unwrap_or_default();
            assert!(began.elapsed() < Duration::from_secs(180), "waited in vain until {what}\n{}", log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Kills the node's daemon as a crash does; its jobs may live on or be started again.
    fn crash_the_node(&mut self) {
        self.node.kill().unwrap();
        self.node.wait().unwrap();
    }

    fn start_the_node(&mut self) {
        self.node = Self::daemon(self.folder.path(), "slurmd");
    }
}

impl Drop for Slurm {
    fn drop(&mut self) {
        self.ask("scancel", &["--user=root"]);
        for daemon in [&mut self.node, &mut self.controller] {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

#[test]
fn an_array_whose_node_crashes_merges_to_the_bytes_of_a_serial_run() {
    let study = Study::new(HUNDRED);
    study.study("run", &["--out", "serial", "--cores", "1"]).success();
    study.study("merge", &["--out", "serial"]).success();
    let done = || files(&study.path("array/tasks")).len();
    if let Some(mut slurm) = Slurm::start() {
        let submit = ["study", "submit", "s.toml", "--slurm", "--out", "array", "--shard-size", "4"];
        let said = stdout(&study.kaflow(&submit).env("SLURM_CONF", slurm.configuration()).assert().success());
        assert!(said.contains("100 tasks") && said.contains("Submitted batch job"), "{said}");
        slurm.until("some shards are done", || done() > 4);
        slurm.crash_the_node();
        // The trial's file and those of 25 shards: some are still to come.
        assert!(done() < 26, "the array was faster than the crash");
        std::thread::sleep(Duration::from_secs(1));
        slurm.start_the_node();
        slurm.until("the array has ended", || slurm.ask("squeue", &["-h"]).trim().is_empty());
        let log = || fs::read_to_string(slurm.folder.path().join("controller.log")).unwrap();
        assert_eq!(study.results("array").len(), 100, "{}", log());
    } else {
        // The last ones first, two at a time, one of them killed.
        let shard = |number: u32| {
            let program = study.kaflow(&[]).get_program().to_owned();
            let mut command = Command::new(program);
            command.current_dir(study.path("")).args(["study", "run", "s.toml", "--out", "array", "--shard-size", "4"]);
            command.env("SLURM_ARRAY_TASK_ID", number.to_string()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
        };
        let mut killed = shard(3);
        std::thread::sleep(Duration::from_millis(30));
        killed.kill().unwrap();
        killed.wait().unwrap();
        for pair in (0..25).rev().collect::<Vec<_>>().chunks(2) {
            let running: Vec<Child> = pair.iter().map(|&number| shard(number)).collect();
            running.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
        }
    }
    assert!(done() >= 25);
    study.study("merge", &["--out", "array"]).success();
    assert_merged_alike(&study, "serial", "array");
}

#[test]
fn a_script_asks_for_what_is_left_and_for_what_a_trial_took() {
    let study = Study::new(HUNDRED);
    let dry = ["--slurm", "--dry-run", "--shard-size", "10", "--cores", "2", "--parallel", "7"];
    study.study("submit", &dry).success();
    let script = study.read("s.results/submit.sh");
    // The trial's two tasks are of the first shard, which has others.
    for line in ["#SBATCH --array=0-9%7", "#SBATCH --cpus-per-task=2", "#SBATCH --requeue", "#SBATCH --time=3"] {
        assert!(script.lines().any(|own| own == line), "{line}\n{script}");
    }
    assert_eq!(study.results("s.results").len(), 2);
    // What the script runs is what it says, with a shard's number from Slurm.
    for shard in [0, 3] {
        Command::new("bash").arg(study.path("s.results/submit.sh")).env("SLURM_ARRAY_TASK_ID", shard.to_string()).output().unwrap();
    }
    assert_eq!(study.results("s.results").len(), 20);
    assert!(!study.study("submit", &dry).code(2).get_output().stderr.is_empty());
    study.study("submit", &[&dry[..], &["--force"]].concat()).success();
    assert!(study.read("s.results/submit.sh").contains("--array=1-2,4-9%7\n"));
    study.study("run", &[]).success();
    assert!(stdout(&study.study("submit", &[&dry[..], &["--force"]].concat()).success()).contains("everything is done"));
}

#[test]
fn an_indexed_job_runs_every_shard_of_the_study() {
    let study = Study::new(&HUNDRED.replace("seeds = 5", "seeds = 1"));
    study.study("submit", &["--kubernetes", "--shard-size", "8", "--image", "registry/kaflow:1", "--claim", "data"]).success();
    let job: Value = serde_json::from_str(&study.read("s.results/job.json")).unwrap();
    assert_eq!((&job["apiVersion"], &job["kind"]), (&"batch/v1".into(), &"Job".into()));
    assert_eq!((&job["spec"]["completionMode"], &job["spec"]["completions"]), (&"Indexed".into(), &3.into()));
    let pod = &job["spec"]["template"]["spec"];
    assert_eq!((&pod["restartPolicy"], &pod["volumes"][0]["persistentVolumeClaim"]["claimName"]), (&"Never".into(), &"data".into()));
    let container = &pod["containers"][0];
    assert_eq!((&container["image"], &container["volumeMounts"][0]["mountPath"]), (&"registry/kaflow:1".into(), &"/study".into()));
    // What a pod runs, with the volume where the study is.
    let words: Vec<String> =
        container["command"].as_array().unwrap().iter().map(|word| word.as_str().unwrap().replace("/study/", "")).collect();
    assert_eq!(words[0], "kaflow");
    for index in 0..3 {
        let words: Vec<&str> = words[1..].iter().map(String::as_str).collect();
        study.kaflow(&words).env("JOB_COMPLETION_INDEX", index.to_string()).assert().success();
    }
    study.study("merge", &[]).success();
}
