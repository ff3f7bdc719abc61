//! `kaflow fit`: any filter over a table.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::json;

use super::outputs::Outputs;
use super::parameters::Parameters;
use super::run::memory;
use super::table::{Header, Source};
use super::typed::whole;
use super::{interrupt, progress};
use crate::files::Output;
use crate::filter::registry::{self, Inputs, Make, Settings, Task, Value, Values};
use crate::filter::{Adaptive, Filter};
use crate::real::finite;
use crate::{Complex64, Error, Result};

/// Run a filter over a table: one-step-ahead predictions of y from x0, x1, ...
///
/// Input columns are x0,x1,... (real) or x0_re,x0_im,... (complex), the target is y or y_re,y_im: a number, a count for poisson, 0 or 1 for bernoulli, a class
/// 0, 1, ... for multinomial. Other columns are ignored. A row that is not finite is predicted and not learned from.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The table, CSV with a header; - is standard input
    file: PathBuf,
    #[arg(long, default_value = "fklms", help = filters())]
    filter: String,
    /// Where the predictions go; - is standard output
    #[arg(long, short, value_name = "FILE", default_value = "-")]
    output: PathBuf,
    /// Write the summary as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    /// Classes of the multinomial filter (default: one more than the largest in the table)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    classes: Option<usize>,
    #[command(flatten)]
    parameters: Parameters,
}

/// All filters that take vectors.
fn filters() -> String {
    let names: Vec<_> = registry::RECIPES.iter().filter(|r| r.task() != Task::Stream).map(|r| r.name).collect();
    names.join(", ")
}

pub(crate) fn run(args: Args) -> Result<()> {
    let recipe = registry::recipe(&args.filter)?;
    if recipe.task() == Task::Stream {
        return Err(Error::Data(format!("{} works on a pair of streams, not on single vectors: use kaflow track", recipe.name)));
    }
    if args.classes.is_some() && recipe.task() != Task::Classes {
        let known = recipe.parameters.iter().map(|p| p.name.into()).collect();
        return Err(Error::NotApplicable { filter: recipe.name.into(), name: "classes".into(), known });
    }
    // What can be refused is refused before the table is read.
    if let Some(classes) = args.classes.filter(|n| !(2..=1000).contains(n)) {
        return Err(Error::parameter("classes", "between 2 and 1000", classes));
    }
    recipe.settle(&args.parameters.0, 1.0)?;
    let files = std::iter::once(&args.output).chain(&args.json).cloned().collect();
    Outputs { inputs: vec![&args.file], files, force: args.force, ..Outputs::default() }.check()?;
    let source = Source::open(&args.file)?;
    let survey = source.survey(recipe.task())?;
    let inputs = Inputs { spread: survey.spread, taps: source.header().taps, stream: false };
    let settings = recipe.settle_for(&args.parameters.0, inputs)?;
    let built = within(&settings, &args.parameters.0, survey.rows, inputs)?;
    memory::check([&built], inputs.taps)?;
    let mut out = Output::create(&args.output, args.force)?;
    let (sums, size, seconds) = predict(&source, &built, &args, &survey, &mut out)?;
    out.finish()?;
    tell!("{}", sums.summary(&settings, size, seconds));
    let Some(path) = &args.json else { return Ok(()) };
    super::json::write(path, "fit", sums.figures(&args.file, &settings, size, seconds))
}

/// The settings to build from: memory for more centres than there are rows is not taken.
fn within(settings: &Settings, given: &Values, rows: u64, inputs: Inputs) -> Result<Settings> {
    match settings.optional("budget")?.filter(|&budget| budget > rows as f64 && budget.fract() == 0.0) {
        None => Ok(settings.clone()),
        Some(_) => {
            let mut given = given.clone();
            given.insert("budget".into(), Value::Number(rows.max(1) as f64));
            settings.recipe().settle_for(&given, inputs)
        }
    }
}

/// What a pass over the table found out.
pub(crate) struct Survey {
    pub(crate) rows: u64,
    /// `sqrt(E‖x‖²)`.
    pub(crate) spread: f64,
    /// The largest target.
    pub(crate) largest: f64,
}

/// The sums that the summary is made of.
#[derive(Default)]
struct Sums {
    samples: u64,
    learned: u64,
    error: f64,
    power: f64,
    loss: f64,
    right: u64,
}

/// One row on its way through a filter.
#[derive(Default)]
struct Row {
    /// Whether all its numbers are finite.
    usable: bool,
    /// The numbers of its output line.
    fields: Vec<f64>,
    sums: Sums,
}

/// Predicts one row into [`Row::fields`] and adds to its sums.
type Step<'a> = dyn FnMut(&[Complex64], Complex64, &mut Row) + 'a;

/// What was found, the size of the filter, and the seconds that it took.
fn predict(source: &Source, settings: &Settings, args: &Args, survey: &Survey, out: &mut dyn Write) -> Result<(Sums, usize, f64)> {
    let name = args.output.as_path();
    interrupt::watch();
    let header = source.header();
    let taps = header.taps;
    let started = Instant::now();
    let mut row = Row::default();
    let bar = progress::bar(survey.rows, settings.recipe().name);
    let mut go = |head: &str, step: &mut Step<'_>| -> Result<()> {
        let mut line = head.to_owned();
        source.rows(|x, y| {
            line.push('\n');
            out.write_all(line.as_bytes()).map_err(|e| Error::io(name, e))?;
            row.fields.clear();
            row.usable = finite(y) && x.iter().all(|&z| finite(z));
            row.sums.samples += 1;
            row.sums.learned += u64::from(row.usable);
            step(x, y, &mut row);
            line.clear();
            for (i, field) in row.fields.iter().enumerate() {
                // The shortest decimals that read back as the same number.
                line.push_str(&format!("{}{field:?}", if i > 0 { "," } else { "" }));
            }
            bar.inc(1);
            Ok(!interrupt::requested())
        })?;
        line.push('\n');
        out.write_all(line.as_bytes()).map_err(|e| Error::io(name, e))
    };
    let size = match settings.recipe().make {
        Make::Filter(..) | Make::Tracker(..) => {
            let mut f = registry::filter::<f64>(settings, taps)?;
            let has_variance = f.variance().is_some();
            go(&regression_head(header, has_variance), &mut |x, y, row| {
                let p = f.adapt(x, y);
                let e = y - p;
                if header.complex_target {
                    row.fields.extend([p.re, p.im, e.re, e.im])
                } else {
                    row.fields.extend([p.re, e.re])
                }
                row.fields.extend(f.variance());
                row.sums.deviation(row.usable, e.norm_sqr(), y.norm_sqr());
            })?;
            f.size()
        }
        Make::Counts(build) => {
            let mut f = build(settings, taps)?;
            go("prediction,error", &mut |x, y, row| {
                let rate = f.adapt(x, y.re);
                row.fields.extend([rate, y.re - rate]);
                row.sums.deviation(row.usable, (y.re - rate).powi(2), y.re * y.re);
                if row.usable {
                    // Up to log y!, which no prediction changes.
                    row.sums.loss += rate - y.re * rate.max(f64::MIN_POSITIVE).ln();
                }
            })?;
            f.size()
        }
        Make::Bits(build) => {
            let mut f = build(settings, taps)?;
            go("prediction,error", &mut |x, y, row| {
                let bit = y.re != 0.0;
                let p = if row.usable { f.adapt(x, bit) } else { f.predict(x) };
                row.fields.extend([p, y.re - p]);
                row.sums.score(row.usable, if bit { p } else { 1.0 - p }, (p > 0.5) == bit);
            })?;
            f.size()
        }
        Make::Classes(build) => {
            let count = args.classes.unwrap_or(survey.largest as usize + 1).max(2);
            let mut f = build(settings, count, taps)?;
            let names: Vec<_> = (0..count).map(|k| format!("p{k}")).collect();
            go(&format!("{},error", names.join(",")), &mut |x, y, row| {
                let class = if y.re.is_finite() { y.re as usize } else { usize::MAX };
                let p = if row.usable { f.adapt(x, class) } else { f.predict(x) };
                row.fields.extend_from_slice(p);
                let hit = p.get(class).copied().unwrap_or(f64::NAN);
                row.fields.push(1.0 - hit);
                row.sums.score(row.usable && hit.is_finite(), hit, p.iter().all(|&other| other <= hit));
            })?;
            f.size()
        }
    };
    bar.finish_and_clear();
    Ok((row.sums, size, started.elapsed().as_secs_f64()))
}

fn regression_head(header: &Header, variance: bool) -> String {
    let columns = if header.complex_target { "prediction_re,prediction_im,error_re,error_im" } else { "prediction,error" };
    format!("{columns}{}", if variance { ",variance" } else { "" })
}

impl Sums {
    fn deviation(&mut self, usable: bool, error: f64, power: f64) {
        if usable {
            self.error += error;
            self.power += power;
        }
    }

    fn score(&mut self, usable: bool, probability: f64, right: bool) {
        if usable {
            self.loss -= probability.max(f64::MIN_POSITIVE).ln();
            self.right += u64::from(right);
        }
    }

    fn summary(&self, settings: &Settings, size: usize, seconds: f64) -> String {
        let n = self.learned.max(1) as f64;
        let nmse = crate::dsp::db(self.error, self.power);
        let result = match settings.recipe().task() {
            Task::Regression | Task::Stream => format!("NMSE {nmse:.2} dB"),
            Task::Counts => format!("NMSE {nmse:.2} dB, log-loss {:.4} (up to a constant)", self.loss / n),
            Task::Bits | Task::Classes => format!("log-loss {:.4}, accuracy {:.4}", self.loss / n, self.right as f64 / n),
        };
        let skipped = match self.samples - self.learned {
            0 => String::new(),
            n => format!(", {n} skipped because they are not finite"),
        };
        let interrupted = if interrupt::requested() { ", interrupted" } else { "" };
        let unit = if settings.values().contains_key("kernel") { "centres" } else { "weights" };
        let values: Vec<_> = settings.values().iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!(
            "{}: {result} over {} samples{skipped}{interrupted}, {size} {unit}, {:.0} samples/s\n{}",
            settings.recipe().name,
            self.samples,
            self.samples as f64 / seconds.max(1e-9),
            values.join(" ")
        )
    }

    fn figures(&self, file: &Path, settings: &Settings, size: usize, seconds: f64) -> serde_json::Value {
        let n = self.learned.max(1) as f64;
        let task = settings.recipe().task();
        let squares = matches!(task, Task::Regression | Task::Stream | Task::Counts);
        let scored = matches!(task, Task::Bits | Task::Classes);
        let parameters: serde_json::Map<_, _> =
            settings.values().iter().map(|(name, value)| (name.clone(), super::json::parameter(value))).collect();
        json!({
            "file": file.display().to_string(),
            "filter": settings.recipe().name,
            "parameters": parameters,
            "samples": self.samples,
            "learned": self.learned,
            "size": size,
            "nmse_db": squares.then(|| crate::dsp::db(self.error, self.power)),
            "log_loss": (task != Task::Regression).then_some(self.loss / n),
            "accuracy": scored.then_some(self.right as f64 / n),
            "samples_per_second": self.samples as f64 / seconds.max(1e-9),
            "interrupted": interrupt::requested(),
        })
    }
}
