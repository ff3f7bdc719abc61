//! `kaflow study merge`: one table, pictures and a report, of results that belong together.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::StudyArgs;
use super::pictures::{self, Numbers};
use super::plan::{Named, Plan};
use super::results::{Folder, Record, ranges};
use crate::cli::json;
use crate::cli::run::report::{escape, html};
use crate::files::Output;
use crate::{Error, Result, files, plot};

/// Check that all tasks are there, once, and make one table of them
///
/// Written are table.csv and table.ndjson (a row for each task), report.html with pictures (mean error of each filter, curves with bands of
/// two standard errors, heat maps), and merge.json. Results of another version, plan or input are refused.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    study: StudyArgs,
    /// Merge what is there although tasks are missing
    #[arg(long)]
    partial: bool,
    /// Replace what an earlier merge wrote
    #[arg(long)]
    force: bool,
}

/// What is kept of a result.
struct Row {
    nmse_db: f64,
    samples: u64,
    centres: u64,
    gap_samples: u64,
    error: Option<Box<str>>,
}

/// All results by task, and what else they tell.
struct Merged {
    rows: Vec<Option<Row>>,
    /// The hash of each case of each input.
    hashes: Vec<Option<Box<str>>>,
    twice: u64,
    seconds: f64,
    hosts: BTreeMap<String, u64>,
    cpus: BTreeSet<String>,
}

pub(super) fn run(args: Args) -> Result<()> {
    let plan = args.study.plan()?;
    let folder = args.study.folder();
    let path = |name: &str| folder.path.join(name);
    let pictures = pictures::NAMES.iter().flat_map(|name| plot::files(&path(name)));
    let outputs: Vec<PathBuf> =
        ["table.csv", "table.ndjson", "report.html", "merge.json"].iter().map(|name| path(name)).chain(pictures).collect();
    plan.check(&(0..plan.tasks()), &folder.path, outputs, args.force)?;

    let merged = Merged::read(&plan, &folder)?;
    let missing = || (0..plan.tasks()).filter(|&task| merged.rows[task as usize].is_none());
    let gone = missing().count() as u64;
    if gone > 0 && (!args.partial || gone == plan.tasks()) {
        let problem =
            format!("{gone} of {} tasks are missing: {}; run the study again, or add --partial", plan.tasks(), ranges(missing(), 10));
        return Err(Error::file(&folder.path, "results", problem));
    }
    write_tables(&plan, &merged, &path("table.csv"), &path("table.ndjson"))?;
    let nmse_db = merged.rows.iter().map(|row| row.as_ref().map_or(f64::NAN, |row| row.nmse_db)).collect();
    let numbers = Numbers::new(&plan, nmse_db);
    let mut drawn = String::new();
    for (name, figure) in pictures::all(&numbers) {
        figure.save(path(name))?;
        drawn += &format!("<figure>{}</figure>\n", figure.svg());
    }
    let rows = summary(&numbers);
    let failed: Vec<(u64, &str)> =
        (0..).zip(&merged.rows).filter_map(|(task, row)| Some((task, row.as_ref()?.error.as_deref()?))).collect();
    files::write(&path("report.html"), page(&plan, &rows, &failed, gone, &drawn).as_bytes())?;
    let found = json!({
        "study": plan.name, "plan": plan.id, "tasks": plan.tasks(), "missing": gone, "failed": failed.len(), "done_twice": merged.twice,
        "core_seconds": merged.seconds, "hosts": merged.hosts, "cpus": merged.cpus,
        "filters": rows.iter().map(|row| json!({
            "name": row.name, "parameters": Value::Object(row.parameters.clone()), "nmse_db": row.mean, "two_standard_errors": row.error,
            "runs": row.runs, "without_result": row.without,
        })).collect::<Vec<_>>(),
    });
    json::write(&path("merge.json"), "study", found)?;

    say!("{:<12} {:>8} {:>10} {:>8}  parameters", "filter", "NMSE dB", "+- 2 s.e.", "runs");
    for row in &rows {
        say!("{:<12} {:>8.2} {:>10.2} {:>8}  {}", row.name, row.mean, row.error, row.runs, words(&row.parameters));
    }
    say!("{} tasks, {:.2} core hours on {} machines", plan.tasks() - gone, merged.seconds / 3600.0, merged.hosts.len());
    let mut notes = Vec::new();
    if gone > 0 {
        notes.push(format!("{gone} tasks are missing: {}", ranges(missing(), 10)));
    }
    if let Some((task, reason)) = failed.first() {
        notes.push(format!("{} tasks FAILED, the first is {task}: {reason}", failed.len()));
    }
    if merged.twice > 0 {
        notes.push(format!("{} tasks were done twice, with the same result", merged.twice));
    }
    if merged.cpus.len() > 1 {
        let cpus: Vec<_> = merged.cpus.iter().map(String::as_str).collect();
        notes.push(format!("machines with different vector instructions ({}): last digits may differ", cpus.join(", ")));
    }
    notes.iter().for_each(|note| say!("{note}"));
    say!("{}", path("report.html").display());
    Ok(())
}

impl Merged {
    fn read(plan: &Plan, folder: &Folder) -> Result<Self> {
        let tasks = plan.tasks() as usize;
        let cases = plan.tasks() / plan.tasks_of_a_case();
        let mut merged = Self {
            rows: std::iter::repeat_with(|| None).take(tasks).collect(),
            hashes: vec![None; cases as usize],
            twice: 0,
            seconds: 0.0,
            hosts: BTreeMap::new(),
            cpus: BTreeSet::new(),
        };
        folder.read(plan, &(0..plan.tasks()), |record, path, line| merged.take(plan, record, path, line))?;
        Ok(merged)
    }

    fn take(&mut self, plan: &Plan, record: Record<'_>, path: &Path, line: u64) -> Result<()> {
        let bad = |problem: String| Error::file(path, format!("line {line}"), problem);
        let hash = &mut self.hashes[(record.task / plan.tasks_of_a_case()) as usize];
        match hash {
            None => *hash = Some(record.input_sha256.as_ref().into()),
            Some(known) if **known != *record.input_sha256 => {
                let input = plan.task(record.task);
                let name = input.recording.unwrap_or_else(|| input.input.to_owned());
                return Err(bad(format!(
                    "task {} was run on another {name} than the tasks before: it was changed in between",
                    record.task
                )));
            }
            Some(_) => {}
        }
        let row = Row {
            nmse_db: record.nmse_db.unwrap_or(f64::NAN),
            samples: record.samples,
            centres: record.centres,
            gap_samples: record.gap_samples,
            error: record.error.as_deref().map(Into::into),
        };
        match &self.rows[record.task as usize] {
            Some(other) => {
                let key = |row: &Row| (row.nmse_db.to_bits(), row.samples, row.centres, row.gap_samples, row.error.clone());
                if key(other) != key(&row) {
                    return Err(bad(format!("task {} is there twice, with different results", record.task)));
                }
                self.twice += 1;
            }
            None => self.rows[record.task as usize] = Some(row),
        }
        self.seconds += record.seconds;
        match self.hosts.get_mut(record.host.as_ref()) {
            Some(count) => *count += 1,
            None => drop(self.hosts.insert(record.host.into_owned(), 1)),
        }
        if !self.cpus.contains(record.cpu.as_ref()) {
            self.cpus.insert(record.cpu.into_owned());
        }
        Ok(())
    }
}

/// The names of all that `axes` vary, each once.
fn columns<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    names.collect::<BTreeSet<_>>().into_iter().collect()
}

/// The same rows as CSV and as lines of JSON: all columns in all rows, in the order of the tasks. When and where a task ran is in its own
/// line, not here.
fn write_tables(plan: &Plan, merged: &Merged, csv_path: &Path, json_path: &Path) -> Result<()> {
    let scenario = columns(plan.inputs.iter().flat_map(|input| input.axes.iter().map(|axis| axis.name.as_str())));
    let parameters =
        columns(plan.families.iter().flat_map(|f| f.axes.iter().map(|axis| axis.name.as_str()).chain(f.drawn.iter().map(String::as_str))));
    let mut names: Vec<String> = ["task", "input", "recording", "seed"].map(String::from).into();
    names.extend(scenario.iter().map(|name| format!("scenario.{name}")));
    names.push("filter".into());
    names.extend(parameters.iter().map(|name| format!("parameter.{name}")));
    names.extend(["samples", "nmse_db", "centres", "gap_samples", "input_sha256", "error"].map(String::from));

    let bad = |e: csv::Error| Error::file(csv_path, "table", e.to_string());
    let mut table = csv::Writer::from_writer(Output::create(csv_path, true)?);
    let mut lines = Output::create(json_path, true)?;
    table.write_record(&names).map_err(bad)?;
    for (number, row) in (0..).zip(&merged.rows) {
        let Some(row) = row else { continue };
        let task = plan.task(number);
        let value =
            |named: &Named<'_>, name: &str| named.0.iter().find(|(own, _)| *own == name).map_or(Value::Null, |(_, v)| v.as_ref().clone());
        let mut values = vec![json!(number), json!(task.input), json!(task.recording), json!(task.seed)];
        values.extend(scenario.iter().map(|name| value(&task.scenario, name)));
        values.push(json!(task.filter));
        values.extend(parameters.iter().map(|name| value(&task.parameters, name)));
        let hash = &merged.hashes[(number / plan.tasks_of_a_case()) as usize];
        values.extend([json!(row.samples), json!(row.nmse_db), json!(row.centres), json!(row.gap_samples), json!(hash), json!(row.error)]);
        table.write_record(values.iter().map(cell)).map_err(bad)?;
        serde_json::to_writer(&mut lines, &Line(&names, &values)).map_err(|e| Error::io(json_path, e.into()))?;
        lines.write_all(b"\n").map_err(|e| Error::io(json_path, e))?;
    }
    table.into_inner().map_err(|e| Error::io(csv_path, e.into_error()))?.finish()?;
    lines.finish()
}

/// Names and values as an object, in this order.
struct Line<'a>(&'a [String], &'a [Value]);

impl serde::Serialize for Line<'_> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().zip(self.1))
    }
}

fn cell(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// A filter with the best of its parameters.
struct Best {
    name: &'static str,
    parameters: Map<String, Value>,
    mean: f64,
    error: f64,
    runs: usize,
    /// Runs that diverged or failed.
    without: usize,
}

fn summary(numbers: &Numbers<'_>) -> Vec<Best> {
    let best = |&(family, point): &(usize, u64)| {
        let (values, without) = numbers.runs(family, point);
        let (mean, error) = crate::cli::reproduce::mean_and_error(&values);
        let family = &numbers.plan.families[family];
        let parameters = family.named(point).0.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect();
        let mean = if values.is_empty() { f64::NAN } else { mean };
        Best { name: family.recipe.name, parameters, mean, error, runs: values.len(), without }
    };
    let mut rows: Vec<Best> = numbers.best.iter().map(best).collect();
    let key = |row: &Best| if row.mean.is_nan() { f64::INFINITY } else { row.mean };
    rows.sort_by(|a, b| key(a).total_cmp(&key(b)));
    rows
}

fn words(parameters: &Map<String, Value>) -> String {
    parameters.iter().map(|(name, value)| format!("{name} {}", cell(value))).collect::<Vec<_>>().join(", ")
}

fn page(plan: &Plan, rows: &[Best], failed: &[(u64, &str)], gone: u64, drawn: &str) -> String {
    let mut body = format!(
        "<p>{} tasks: the filters one step ahead; the error (NMSE) is relative to the power of what is predicted, the lower the better. Means \
         over inputs and seeds, with two standard errors, for the best of each filter's parameters.</p>\n<table class=\"figures\">\
         <tr><th>filter</th><th>NMSE dB</th><th>± 2 s.e.</th><th>runs</th><th>without result</th><th>parameters</th></tr>\n",
        plan.tasks()
    );
    for row in rows {
        body += &format!(
            "<tr><td>{}</td><td>{:.2}</td><td>{:.2}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
            row.name,
            row.mean,
            row.error,
            row.runs,
            row.without,
            escape(&words(&row.parameters))
        );
    }
    body += &format!("</table>\n{drawn}");
    if gone > 0 {
        body += &format!("<p>{gone} tasks are missing.</p>\n");
    }
    if !failed.is_empty() {
        let lines: String = failed.iter().take(20).map(|(task, why)| format!("<li>task {task}: {}</li>", escape(why))).collect();
        body += &format!("<h2>{} tasks failed</h2>\n<ul>{lines}</ul>\n", failed.len());
    }
    body += &format!("<p>Plan {}. Numbers: table.csv, table.ndjson.</p>\n", plan.id);
    html(&format!("kaflow study: {}", escape(&plan.name)), &body)
}
