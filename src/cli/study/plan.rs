//! The plan: every task has a number, and the number says what it is. Nothing is listed in memory.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

use super::file::{self, Ends, Seeds};
use crate::channel::random::{Draws, Random};
use crate::channel::{Scenario, TestBed};
use crate::cli::run::filters::{self, Choice, Wanted, choose};
use crate::cli::run::input::{Align, Origin, Sight};
use crate::cli::{provenance, recordings::RecordingArgs, simulate};
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
    folder: PathBuf,
}

/// A name and the values that it takes.
#[derive(Serialize)]
pub(super) struct Axis {
    pub(super) name: String,
    pub(super) values: Vec<Value>,
}

pub(super) struct Input {
    pub(super) name: String,
    kind: Kind,
    pub(super) axes: Vec<Axis>,
}

enum Kind {
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
    set: Map<String, Value>,
    pub(super) axes: Vec<Axis>,
    pub(super) drawn: Vec<String>,
    /// One number for each of `drawn`, draw after draw.
    draws: Vec<f64>,
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
fn count(axes: &[Axis], more: u64) -> u64 {
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
    fn origin(&self, case: u64, folder: &Path) -> Result<Origin> {
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

    fn describe(&self) -> Value {
        match &self.kind {
            Kind::Bed(base, seeds) => json!({ "name": self.name, "scenario": base, "grid": self.axes, "seeds": seeds }),
            Kind::Recordings { pairs, open, tx_channel, align, trim } => {
                let RecordingArgs { format, rate, channels, channel } = open;
                json!({ "name": self.name, "recordings": pairs, "format": format!("{format:?}"), "rate": rate, "channels": channels, "channel": channel,
                        "tx_channel": tx_channel, "align": format!("{align:?}"), "trim": trim })
            }
        }
    }
}

fn named(axes: &[Axis], point: u64) -> Named<'_> {
    Named(axes.iter().zip(indices(axes, point)).map(|(axis, i)| (axis.name.as_str(), Cow::Borrowed(&axis.values[i]))).collect())
}

/// Sets a value by its name, tables with a dot.
fn assign(table: &mut Map<String, Value>, name: &str, value: Value) -> Result<()> {
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
    pub(super) fn choice(&self, point: u64, taps: usize) -> Result<Choice> {
        let mut given = Values::new();
        let fixed = self.set.iter().map(|(name, value)| (name.as_str(), Cow::Borrowed(value)));
        for (name, value) in fixed.chain(self.named(point).0) {
            let value = serde_json::from_value(value.into_owned());
            given
                .insert(name.into(), value.map_err(|_| Error::parameter(name, "a number, a name or a list of numbers", "something else"))?);
        }
        let wanted = Wanted { names: vec![self.recipe.name], given: &given, file: None, taps };
        choose(&wanted, "filter", &filters::streams())?.pop().ok_or_else(|| Error::Data("no filter".into()))
    }
}

/// Values of a grid that are tried before anything runs; of longer ones the ends.
const TRIED: usize = 100;

impl Plan {
    pub(super) fn read(path: &Path, max_tasks: u64) -> Result<Self> {
        let found: file::File = simulate::read(path)?;
        let at = |place: &str, error: Error| Error::file(path, place, error.to_string());
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        let name = found.name.unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        if found.taps == 0 || found.taps > 4096 {
            return Err(at("taps", Error::parameter("taps", "between 1 and 4096", found.taps)));
        }
        if let Some(advance) = found.advance.filter(|&advance| advance >= found.taps) {
            return Err(at("advance", Error::parameter("advance", format!("less than the {} taps", found.taps), advance)));
        }
        let sight = Sight { taps: found.taps, advance: found.advance, equalize: found.equalize };
        let mut plan = Self { name, id: String::new(), sight, skip: found.skip, inputs: Vec::new(), families: Vec::new(), folder };
        let mut described = vec![json!({"taps": found.taps, "advance": found.advance, "equalize": found.equalize, "skip": found.skip})];
        for (i, input) in found.input.into_iter().enumerate() {
            let input = read_input(input, &plan.folder).map_err(|e| at(&format!("input {}", i + 1), e))?;
            if plan.inputs.iter().any(|other| other.name == input.name) {
                return Err(at(
                    &format!("input {}", i + 1),
                    Error::parameter("name", "given where two inputs are called alike", &input.name),
                ));
            }
            described.push(input.describe());
            plan.inputs.push(input);
        }
        let alone = found.filters.into_iter().map(|name| file::Family { name, set: Map::new(), grid: BTreeMap::new(), random: None });
        for family in alone.chain(found.filter) {
            let place = format!("filter {}", family.name);
            let (family, description) = read_family(family, max_tasks).map_err(|e| at(&place, e))?;
            if plan.families.iter().any(|other| other.recipe.name == family.recipe.name) {
                return Err(at(&place, Error::parameter("filter", "there once, with all its parameters", "there twice")));
            }
            described.push(description);
            plan.families.push(family);
        }
        for (missing, what) in [(plan.inputs.is_empty(), "[[input]]"), (plan.families.is_empty(), "filters = [..] or [[filter]]")] {
            if missing {
                return Err(Error::file(path, "study", format!("has no {what}: there is nothing to run")));
            }
        }
        let tasks = plan.exact_tasks();
        if tasks > u128::from(max_tasks) {
            let problem = format!("has {tasks} tasks, the limit is {max_tasks}: make its grids smaller or raise --max-tasks");
            return Err(Error::file(path, "study", problem));
        }
        plan.id = provenance::sha256_of(json!(described).to_string().as_bytes());
        plan.try_out().map_err(|e| at("study", e))?;
        Ok(plan)
    }

    /// Builds every input and filter for its complaints, one value of a grid after the other.
    fn try_out(&self) -> Result<()> {
        // The points that differ from the first in one value.
        let corners = |axes: &[Axis], more: u64| -> Vec<u64> {
            let mut points = vec![0];
            let mut stride = more;
            for axis in axes.iter().rev() {
                let n = axis.values.len();
                points.extend((1..n).filter(|&i| n <= TRIED || i == n - 1).map(|i| i as u64 * stride));
                stride *= n as u64;
            }
            points
        };
        for family in &self.families {
            corners(&family.axes, family.draws()).into_iter().try_for_each(|point| family.choice(point, self.sight.taps).map(drop))?;
        }
        for input in self.inputs.iter().filter(|input| matches!(input.kind, Kind::Bed(..))) {
            let seeds = input.cases() / count(&input.axes, 1).max(1);
            for case in corners(&input.axes, seeds) {
                if let Origin::Bed(scenario) = input.origin(case, &self.folder)? {
                    TestBed::new(&scenario)?;
                }
            }
        }
        Ok(())
    }

    fn exact_tasks(&self) -> u128 {
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

fn read_input(found: file::Input, folder: &Path) -> Result<Input> {
    let given = [found.preset.is_some(), found.scenario.is_some(), found.recordings.is_some(), found.tx.is_some()];
    if given.iter().filter(|&&given| given).count() != 1 || found.tx.is_some() != found.rx.is_some() {
        return Err(Error::parameter("input", "one of preset, scenario, recordings, or tx with rx", "another number of them"));
    }
    let simulated = found.preset.is_some() || found.scenario.is_some();
    let only_beds = found.seeds.is_some() || !found.set.is_empty() || !found.grid.is_empty();
    let raw = found.format.is_some() || found.rate.is_some() || found.channels.is_some();
    let only_recordings = raw || found.align.is_some() || found.trim || found.channel + found.tx_channel > 0;
    if simulated && only_recordings || !simulated && only_beds {
        return Err(Error::parameter(
            "input",
            "seeds, set and grid with a scenario, or format, rate, channels, align and trim with recordings",
            "a mixture",
        ));
    }
    let name = |default: &dyn Fn() -> String| found.name.clone().unwrap_or_else(default);
    if simulated {
        let (scenario, default) = match (&found.preset, &found.scenario) {
            (Some(preset), _) => (Scenario::preset(preset)?, preset.clone()),
            (_, path) => {
                let path = path.clone().unwrap_or_default();
                (simulate::read(&folder.join(&path))?, path.file_stem().unwrap_or_default().to_string_lossy().into_owned())
            }
        };
        let seeds = found.seeds.clone().unwrap_or(Seeds::List(vec![scenario.seed]));
        if seeds.len() == 0 {
            return Err(Error::parameter("seeds", "at least one", 0));
        }
        let Ok(Value::Object(mut base)) = serde_json::to_value(&scenario) else {
            return Err(Error::Data("the scenario cannot be written down".into()));
        };
        for (name, value) in found.set.clone() {
            assign(&mut base, &name, value)?;
        }
        if found.grid.contains_key("seed") || found.set.contains_key("seed") {
            return Err(Error::parameter("seed", "given as seeds", "a value of the scenario"));
        }
        let axes = read_axes(&found.grid)?;
        return Ok(Input { name: name(&|| default.clone()), kind: Kind::Bed(base, seeds), axes });
    }
    let pairs: Vec<(PathBuf, Option<PathBuf>)> = match (&found.recordings, &found.tx, &found.rx) {
        (Some(pattern), ..) => file::matches(folder, pattern)?.into_iter().map(|path| (path, None)).collect(),
        (_, Some(tx), Some(rx)) => {
            let (tx, rx) = (file::matches(folder, tx)?, file::matches(folder, rx)?);
            if tx.len() != rx.len() {
                return Err(Error::parameter("rx", format!("a pattern for as many recordings as tx, {}", tx.len()), rx.len()));
            }
            tx.into_iter().zip(rx.into_iter().map(Some)).collect()
        }
        _ => Vec::new(),
    };
    let format = found.format.as_ref().map(|format| format.parse()).transpose()?;
    let open = RecordingArgs { format, rate: found.rate, channels: found.channels, channel: found.channel };
    let align = found.align.as_ref().map_or(Ok(Align::Auto), |align| align.parse())?;
    let default = || found.recordings.clone().or(found.tx.clone()).unwrap_or_default();
    Ok(Input {
        name: name(&default),
        kind: Kind::Recordings { pairs, open, tx_channel: found.tx_channel, align, trim: found.trim },
        axes: Vec::new(),
    })
}

fn read_axes(grid: &BTreeMap<String, file::Several>) -> Result<Vec<Axis>> {
    grid.iter().map(|(name, several)| Ok(Axis { name: name.clone(), values: several.values(name)? })).collect()
}

/// The filter, and what of it the identity of the study depends on.
fn read_family(found: file::Family, max_tasks: u64) -> Result<(Family, Value)> {
    let known = filters::streams();
    let recipe = registry::recipe(&found.name).ok().filter(|r| r.tracks());
    let recipe = recipe.ok_or_else(|| Error::unknown("filter", &found.name, &known))?;
    let axes = read_axes(&found.grid)?;
    let mut draws = Vec::new();
    let ranges: Vec<(String, Ends)> = found.random.iter().flat_map(|r| r.range.iter().map(|(name, ends)| (name.clone(), *ends))).collect();
    if let Some(random) = &found.random {
        if ranges.is_empty() || !(1..=max_tasks).contains(&random.draws) {
            return Err(Error::parameter("random", format!("between 1 and {max_tasks} draws from at least one range"), random.draws));
        }
        ranges.iter().try_for_each(|(name, ends)| ends.check(name))?;
        let mut source = Random::new(random.seed, Draws::Study);
        for _ in 0..random.draws {
            draws.extend(ranges.iter().map(|(_, ends)| ends.at(source.uniform(), 3)));
        }
    }
    let names = || found.set.keys().chain(axes.iter().map(|a| &a.name)).chain(ranges.iter().map(|(name, _)| name));
    if let Some(twice) = names().find(|name| names().filter(|other| other == name).count() > 1) {
        return Err(Error::parameter(twice.as_str(), "in one of set, grid and random", "in two"));
    }
    let random = found.random.as_ref().map(|r| json!({"draws": r.draws, "seed": r.seed, "range": ranges}));
    let described = json!({"filter": recipe.name, "set": found.set, "grid": axes, "random": random});
    let drawn = ranges.into_iter().map(|(name, _)| name).collect();
    Ok((Family { recipe, set: found.set, axes, drawn, draws }, described))
}
