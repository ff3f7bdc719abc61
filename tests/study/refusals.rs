//! Wrong studies: one line that names the culprit, and nothing is made.

use crate::{SMALL, Study, files, stderr};

#[test]
fn a_wrong_study_gets_one_line_and_leaves_nothing_behind() {
    let input = "[[input]]\npreset = \"d\"\n";
    let nlms = "filters = [\"nlms\"]\n";
    for (text, word) in [
        (format!("fliters = []\n{input}"), "s.toml: line 1: unknown field `fliters`"),
        (format!("{nlms}[[input]]\npreset = \"d\"\nsede = 1\n"), "s.toml: line 4: unknown field `sede`"),
        (format!("{nlms}[[input]]\npreset = \"p\"\n"), "unknown preset 'p'"),
        (
            format!("{nlms}[[input]]\nrecordings = \"none/*.sigmf-meta\"\n"),
            "none/*.sigmf-meta: recordings: there is no such file or folder",
        ),
        (format!("{nlms}{input}grid.snr = [1]\n"), "unknown field `snr`"),
        (format!("{nlms}{input}grid.snr_db = [20, nan]\n"), "snr_db must be a finite number"),
        (format!("{nlms}{input}set.snr_db = -inf\n"), "snr_db must be a finite number"),
        (format!("{input}[[filter]]\nname = \"nlms\"\nset.mu = nan\n"), "mu must be a finite number"),
        (format!("{nlms}{input}grid.snr_db = []\n"), "snr_db must be a list of at least one value"),
        (format!("{nlms}{input}grid.snr_db = {{ from = 1, to = 2 }}\n"), "{ from, to, steps, log }"),
        (format!("{nlms}{input}grid.\"amplifier.ibo_db\" = [1, \"x\"]\n"), "invalid type: string"),
        (format!("{nlms}{input}seeds = 0\n"), "seeds must be at least one"),
        (format!("{nlms}{input}seeds = 2000000\n"), "has 2000000 tasks, the limit is 1000000: make its grids smaller or raise --max-tasks"),
        (format!("{nlms}{input}seeds = 1000000000000000000\ngrid.samples = [100, 200, 300, 400]\n"), "raise --max-tasks"),
        (format!("{nlms}{input}{input}"), "two inputs are called alike"),
        (format!("{nlms}[[input]]\npreset = \"d\"\ntrim = true\n"), "a mixture"),
        (format!("{nlms}[[input]]\n"), "one of preset, scenario, recordings"),
        (nlms.to_owned(), "has no [[input]]"),
        (input.to_owned(), "has no filters"),
        (format!("filters = [\"nlsm\"]\n{input}"), "did you mean 'nlms'"),
        (format!("filters = [\"nlms\", \"nlms\"]\n{input}"), "there twice"),
        (format!("{input}[[filter]]\nname = \"nlms\"\nset.sigma = 1\n"), "nlms has no parameter 'sigma'"),
        (format!("{input}[[filter]]\nname = \"fklms\"\ngrid.eta = [0.1, 7]\n"), "eta must be"),
        (
            format!("{input}[[filter]]\nname = \"fklms\"\ngrid.lambda = [0.9]\nset.lambda = 0.9\n"),
            "lambda must be in one of set, grid and random",
        ),
        (format!("taps = 0\n{nlms}{input}"), "taps must be between 1 and 4096"),
        ("= 3".to_owned(), "s.toml: line 1"),
    ] {
        let study = Study::new(&text);
        for command in ["plan", "run", "merge"] {
            let said = stderr(&study.study(command, &[]).code(2));
            assert!(said.contains(word) && said.lines().count() == 1, "{text}\n{command}: {said}");
        }
        assert_eq!(files(&study.path("")).len(), 1, "{text}");
    }
}

#[test]
fn a_wrong_shard_is_refused_by_the_name_it_was_given() {
    let study = Study::new(SMALL);
    let shard = ["study", "run", "s.toml", "--shard-size", "5"];
    for (name, value, word) in [
        ("SLURM_ARRAY_TASK_ID", "4", "SLURM_ARRAY_TASK_ID must be less than the 4 shards there are, got 4"),
        ("JOB_COMPLETION_INDEX", "x", "JOB_COMPLETION_INDEX must be the number of a shard, from 0 on, got 'x'"),
        ("SLURM_ARRAY_TASK_ID", "18446744073709551615", "less than the 4 shards"),
    ] {
        let said = stderr(&study.kaflow(&shard).env(name, value).assert().code(2));
        assert!(said.contains(word) && said.lines().count() == 1, "{said}");
    }
    assert!(stderr(&study.study("run", &["--shard-size", "0"]).code(2)).contains("shard-size must be at least 1"));
    assert!(stderr(&study.study("run", &["--cores", "0"]).code(2)).contains("cores must be between"));
    study.study("plan", &[]).success();
    assert!(stderr(&study.study("plan", &[]).code(2)).contains("--force"));
    assert!(stderr(&study.study("plan", &["--max-tasks", "17"]).code(2)).contains("18 tasks, the limit is 17"));
    study.study("plan", &["--force"]).success();
}

#[test]
#[cfg(unix)]
fn a_study_writes_over_nothing_that_it_is_made_of() {
    use std::os::unix::fs::symlink;
    let scenario = "[[input]]\nscenario = \"bed.toml\"\n";
    let study = Study::new(&format!("filters = [\"nlms\"]\n{scenario}"));
    study.kaflow(&["simulate", "--preset", "d", "--samples", "500", "--out", "d"]).assert().success();
    std::fs::rename(study.path("d/scenario.toml"), study.path("bed.toml")).unwrap();
    std::fs::create_dir_all(study.path("s.results/tasks")).unwrap();
    let refused = |command: &str, words: &[&str], name: &str, target: &str, word: &str| {
        let before = study.path(target).is_file().then(|| study.read(target));
        symlink(if before.is_some() { study.path(target) } else { target.into() }, study.path(name)).unwrap();
        let said = stderr(&study.study(command, words).code(2));
        assert!(said.contains(word) && said.lines().count() == 1, "{command}: {said}");
        assert_eq!(study.path(target).is_file().then(|| study.read(target)), before, "{command}");
        std::fs::remove_file(study.path(name)).unwrap();
    };
    let tasks = "s.results/tasks/0000000-0000000.ndjson";
    refused("plan", &["--force"], "s.results/plan.ndjson", "s.toml", "is the input s.toml");
    refused("run", &[], tasks, "bed.toml", "is the input");
    // What has no end, and what is no result.
    refused("run", &[], tasks, "/dev/zero", "is no regular file");
    std::fs::write(study.path("s.results/tasks/0000000-0000001.ndjson"), "x".repeat(3 << 20)).unwrap();
    assert!(stderr(&study.study("run", &[]).code(2)).contains("line 1: is no result: it is too long"));
    std::fs::remove_file(study.path("s.results/tasks/0000000-0000001.ndjson")).unwrap();
    study.study("run", &[]).success();
    refused("merge", &["--force"], "s.results/table.csv", "bed.toml", "is the input");
    refused("submit", &["--slurm", "--dry-run", "--force"], "s.results/submit.sh", "s.toml", "is the input s.toml");
    study.study("merge", &[]).success();
}
