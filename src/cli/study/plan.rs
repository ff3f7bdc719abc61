//! The plan: every task has a number, and the number says what it is. Nothing is listed in memory.

use std::borrow::Cow;
use std::io::Write;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::file::Seeds;
use crate::cli::outputs::Outputs;
use crate::cli::recordings::RecordingArgs;
use crate::cli::run::filters::{self, Choice, Wanted, choose};
use crate::cli::run::input::{Align, Origin, Sight, TAPS};
use crate::filter::registry::{self, Values};
use crate::{Error, Result, files};

/// A study, ready to run.
pub(super) struct Plan {
    pub(super) name: String,
    /// The SHA-256 of all that the tasks follow from.
    pub(super) id: String,
    pub(super) sight: Sight,
    pub(super) skip: u64,
    pub(super) inputs: Vec<Input>,
    pub(super) families: Vec<Family>,
    /// Relative paths start here.
    pub(super) folder: PathBuf,
    /// The files that it was read from.
    pub(super) read: Vec<PathBuf>,
}

/// A name and the values that it takes.
#[derive(Serialize)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) values: Vec<Value>,
}

pub(super) struct Input {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) axes: Vec<Axis>,
}

pub(super) enum Kind {
    /// The scenario as its file would hold it.
    Bed(Map<String, Value>, Seeds),
    Recordings {
        pairs: Vec<(PathBuf, Option<PathBuf>)>,
        open: RecordingArgs,
        tx_channel: usize,
        align: Align,
        trim: bool,
    },
}

/// A filter with the parameters that it is tried with.
pub(super) struct Family {
    pub(super) recipe: &'static registry::Recipe,
    pub(super) set: Map<String, Value>,
    pub(super) axes: Vec<Axis>,
    pub(super) drawn: Vec<String>,
    /// One number for each of `drawn`, draw after draw.
    pub(super) draws: Vec<f64>,
}

/// What a task is: which case of which input, which point of which filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) input: usize,
    pub(super) case: u64,
    pub(super) family: usize,
    pub(super) point: u64,
}

/// Names with values, written as an object.
pub(super) struct Named<'a>(pub(super) Vec<(&'a str, Cow<'a, Value>)>);

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value.as_ref())))
    }
}

/// A task in words.
#[derive(Serialize)]
pub(super) struct Task<'a> {
    pub(super) task: u64,
    pub(super) input: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) recording: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) seed: Option<u64>,
    pub(super) scenario: Named<'a>,
    pub(super) filter: &'static str,
    pub(super) parameters: Named<'a>,
}

/// Which index on each of `axes` the `n`-th point has, the last axis fastest.
pub(super) fn indices(axes: &[Axis], n: u64) -> Vec<usize> {
    let mut rest = n;
    let mut at: Vec<usize> = axes
        .iter()
        .rev()
        .map(|axis| {
            let count = axis.values.len() as u64;
            let index = rest % count;
            rest /= count;
            index as usize
        })
        .collect();
    at.reverse();
    at
}

/// The number of points of `axes` times `more`; what does not fit is more than any limit.
pub(super) fn count(axes: &[Axis], more: u64) -> u64 {
    axes.iter().fold(more, |product, axis| product.saturating_mul(axis.values.len() as u64))
}

impl Input {
    pub(super) fn cases(&self) -> u64 {
        match &self.kind {
            Kind::Bed(_, seeds) => count(&self.axes, seeds.len()),
            Kind::Recordings { pairs, .. } => pairs.len() as u64,
        }
    }

    /// Which point of the grid a case is.
    pub(super) fn point(&self, case: u64) -> u64 {
        match &self.kind {
            Kind::Bed(_, seeds) => case / seeds.len(),
            Kind::Recordings { .. } => 0,
        }
    }

    pub(super) fn seed(&self, case: u64) -> Option<u64> {
        match &self.kind {
            Kind::Bed(_, seeds) => Some(seeds.at(case % seeds.len())),
            Kind::Recordings { .. } => None,
        }
    }

    pub(super) fn recording(&self, case: u64) -> Option<String> {
        match &self.kind {
            Kind::Bed(..) => None,
            Kind::Recordings { pairs, .. } => {
                let (tx, rx) = &pairs[case as usize];
                Some(rx.as_ref().map_or(tx.display().to_string(), |rx| format!("{} {}", tx.display(), rx.display())))
            }
        }
    }

    pub(super) fn named(&self, case: u64) -> Named<'_> {
        named(&self.axes, self.point(case))
    }

    /// What a case is made of, paths from `folder` on.
    pub(super) fn origin(&self, case: u64, folder: &Path) -> Result<Origin> {
        match &self.kind {
            Kind::Recordings { pairs, open, tx_channel, align, trim } => {
                let (tx, rx) = &pairs[case as usize];
                let rx = rx.as_ref().map(|rx| folder.join(rx));
                Ok(Origin::Recordings { tx: folder.join(tx), rx, open: open.clone(), tx_channel: *tx_channel, align: *align, trim: *trim })
            }
            Kind::Bed(base, _) => {
                let mut scenario = base.clone();
                for (name, value) in self.named(case).0 {
                    assign(&mut scenario, name, value.into_owned())?;
                }
                scenario.insert("seed".into(), json!(self.seed(case)));
                let wrong = |e: serde_json::Error| Error::Data(format!("the scenario of {}: {e}", self.name));
                Ok(Origin::Bed(Box::new(serde_json::from_value(Value::Object(scenario)).map_err(wrong)?)))
            }
        }
    }

    pub(super) fn describe(&self) -> Value {
        match &self.kind {
            Kind::Bed(base, seeds) => json!({ "name": self.name, "scenario": base, "grid": self.axes, "seeds": seeds }),
            Kind::Recordings { pairs, open, tx_channel, align, trim } => {
                let RecordingArgs { format, rate, channels, channel } = open;
                json!({ "name": self.name, "recordings": pairs, "format": format!("{format:?}"), "rate": rate, "channels": channels,
                        "channel": channel, "tx_channel": tx_channel, "align": format!("{align:?}"), "trim": trim })
            }
        }
    }
}

fn named(axes: &[Axis], point: u64) -> Named<'_> {
    Named(axes.iter().zip(indices(axes, point)).map(|(axis, i)| (axis.name.as_str(), Cow::Borrowed(&axis.values[i]))).collect())
}

/// Sets a value by its name, tables with a dot.
pub(super) fn assign(table: &mut Map<String, Value>, name: &str, value: Value) -> Result<()> {
    match name.split_once('.') {
        None => drop(table.insert(name.to_owned(), value)),
        Some((first, rest)) => match table.entry(first).or_insert_with(|| json!({})) {
            Value::Object(inner) => assign(inner, rest, value)?,
            _ => return Err(Error::Data(format!("'{first}' is a value of a scenario, no table: there is no '{name}'"))),
        },
    }
    Ok(())
}

impl Family {
    pub(super) fn draws(&self) -> u64 {
        self.draws.len().checked_div(self.drawn.len()).unwrap_or(1) as u64
    }

    pub(super) fn points(&self) -> u64 {
        count(&self.axes, self.draws())
    }

    /// What of the parameters is told apart by the point.
    pub(super) fn named(&self, point: u64) -> Named<'_> {
        let (grid, draw) = (point / self.draws(), (point % self.draws()) as usize);
        let mut all = named(&self.axes, grid);
        let values = self.draws[draw * self.drawn.len()..].iter().map(|value| Cow::Owned(crate::cli::json::number(*value)));
        all.0.extend(self.drawn.iter().map(String::as_str).zip(values));
        all
    }

    /// The filter at a point.
    pub(super) fn choice(&self, point: u64, sight: Sight) -> Result<Choice> {
        let mut given = Values::new();
        let fixed = self.set.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value)));
        for (name, value) in fixed.chain(self.named(point).0) {
            let value = serde_json::from_value(value.into_owned());
            given
                .insert(name.into(), value.map_err(|_| Error::parameter(name, "a number, a name or a list of numbers", "something else"))?);
        }
        let wanted = Wanted { names: vec![self.recipe.name], given: &given, file: None, taps: sight.taps.unwrap_or(TAPS) };
        choose(&wanted, "filter", &filters::streams())?.pop().ok_or_else(|| Error::Data("no filter".into()))
    }
}

impl Plan {
    pub(super) fn exact_tasks(&self) -> u128 {
        let sum = |counts: &mut dyn Iterator<Item = u64>| counts.map(u128::from).sum::<u128>();
        sum(&mut self.inputs.iter().map(Input::cases)).saturating_mul(sum(&mut self.families.iter().map(Family::points)))
    }

    /// How many tasks there are.
    pub(super) fn tasks(&self) -> u64 {
        self.exact_tasks() as u64
    }

    /// Tasks on one case of an input.
    pub(super) fn tasks_of_a_case(&self) -> u64 {
        self.families.iter().map(Family::points).sum()
    }

    pub(super) fn place(&self, task: u64) -> Place {
        let (mut case, mut point) = (task / self.tasks_of_a_case(), task % self.tasks_of_a_case());
        let (mut input, mut family) = (0, 0);
        while case >= self.inputs[input].cases() {
            case -= self.inputs[input].cases();
            input += 1;
        }
        while point >= self.families[family].points() {
            point -= self.families[family].points();
            family += 1;
        }
        Place { input, case, family, point }
    }

    pub(super) fn origin(&self, place: Place) -> Result<Origin> {
        self.inputs[place.input].origin(place.case, &self.folder)
    }

    pub(super) fn task(&self, task: u64) -> Task<'_> {
        let Place { input, case, family, point } = self.place(task);
        let (input, family) = (&self.inputs[input], &self.families[family]);
        Task {
            task,
            input: &input.name,
            recording: input.recording(case),
            seed: input.seed(case),
            scenario: input.named(case),
            filter: family.recipe.name,
            parameters: family.named(point),
        }
    }

    /// Refuses files to be written to `folder` that are there already, each other, or what some tasks are made of.
    pub(super) fn check(&self, tasks: &Range<u64>, folder: &Path, files: Vec<PathBuf>, force: bool) -> Result<()> {
        let of_a_case = self.tasks_of_a_case();
        let cases = tasks.start / of_a_case..tasks.end.div_ceil(of_a_case);
        let recordings = cases.flat_map(|case| {
            let Place { input, case, .. } = self.place(case * of_a_case);
            let pair = match &self.inputs[input].kind {
                Kind::Bed(..) => None,
                Kind::Recordings { pairs, .. } => pairs.get(case as usize),
            };
            pair.into_iter().flat_map(|(tx, rx)| std::iter::once(tx).chain(rx)).map(|path| self.folder.join(path))
        });
        let recordings: Vec<PathBuf> = recordings.collect();
        let (recordings, inputs) = (recordings.iter().map(PathBuf::as_path).collect(), self.read.iter().map(PathBuf::as_path).collect());
        Outputs { recordings, inputs, files, folder: Some(folder), force }.check()
    }

    /// Writes a line for each task.
    pub(super) fn write(&self, path: &Path, force: bool) -> Result<()> {
        let mut out = files::Output::create(path, force)?;
        for task in 0..self.tasks() {
            serde_json::to_writer(&mut out, &self.task(task)).map_err(|e| Error::io(path, e.into()))?;
            out.write_all(b"\n").map_err(|e| Error::io(path, e))?;
        }
        out.finish()
    }
}
