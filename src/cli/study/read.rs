//! From a study's file to its plan: patterns are matched, grids and draws made, every filter and scenario tried once for its complaints.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::file::{self, Ends, Seeds};
use super::plan::{Axis, Family, Input, Kind, Plan, assign, count};
use crate::channel::random::{Draws, Random};
use crate::channel::{Scenario, TestBed};
use crate::cli::run::filters;
use crate::cli::run::input::{Align, Origin, Sight};
use crate::cli::{provenance, recordings::RecordingArgs, simulate};
use crate::filter::registry;
use crate::{Error, Result};

/// Values of a grid that are tried before anything runs; of longer ones the ends.
const TRIED: usize = 100;

impl Plan {
    pub(super) fn read(path: &Path, max_tasks: u64) -> Result<Self> {
        let found: file::File = simulate::read(path)?;
        let at = |place: &str, error: Error| Error::file(path, place, error.to_string());
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
        let name = found.name.unwrap_or_else(|| path.file_stem().unwrap_or_default().to_string_lossy().into_owned());
        let sight = Sight::new(found.taps, found.advance, found.equalize).map_err(|error| at("taps and advance", error))?;
        let mut plan = Self {
            name,
            id: String::new(),
            sight,
            skip: found.skip,
            inputs: Vec::new(),
            families: Vec::new(),
            folder,
            read: vec![path.to_owned()],
        };
        let mut described = vec![json!({"taps": found.taps, "advance": found.advance, "equalize": found.equalize, "skip": found.skip})];
        for (i, input) in found.input.into_iter().enumerate() {
            plan.read.extend(input.scenario.iter().map(|scenario| plan.folder.join(scenario)));
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
            corners(&family.axes, family.draws()).into_iter().try_for_each(|point| family.choice(point, self.sight).map(drop))?;
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
            file::check_finite(&name, [&value])?;
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
    found.set.iter().try_for_each(|(name, value)| file::check_finite(name, [value]))?;
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
