//! Which filters run, with which parameters.

use std::{collections::BTreeMap, path::Path};

use super::{input::Survey, memory};
use crate::{
    Error, Result, files,
    filter::{
        Tracker,
        registry::{self, Preset, Recipe, Settings, Value, Values},
    },
};

/// Centres that a filter keeps when nobody says: on a stream, a dictionary without a limit would only grow.
const BUDGET: f64 = 500.0;

/// Centres that a filter has at most when it is built for its complaints alone.
const COMPLAINTS: u64 = 1 << 18;

/// What a user asks for.
pub(in crate::cli) struct Wanted<'a> {
    /// Filters by name, or `all`.
    pub(in crate::cli) names: Vec<&'a str>,
    /// Parameters for those that have them.
    pub(in crate::cli) given: &'a Values,
    /// A file with parameters for each filter, which those above go before.
    pub(in crate::cli) file: Option<&'a Path>,
    /// Samples in the windows that they are built for to hear their complaints.
    pub(in crate::cli) taps: usize,
}

/// The names of all filters that run on streams.
pub(in crate::cli) fn streams() -> Vec<&'static str> {
    registry::RECIPES.iter().filter(|r| r.tracks()).map(|r| r.name).collect()
}

/// A filter and what the user wants of it.
pub(in crate::cli) struct Choice {
    pub(in crate::cli) recipe: &'static Recipe,
    /// What was given, and a budget where the filter would grow without.
    pub(in crate::cli) given: Values,
}

/// What a filter is built for.
#[derive(Clone, Copy)]
pub(in crate::cli) struct Purpose {
    /// Mean power of the input.
    pub(in crate::cli) power: f64,
    pub(in crate::cli) taps: usize,
    pub(in crate::cli) advance: usize,
    /// Memory for more centres than there are samples is not taken.
    pub(in crate::cli) samples: u64,
}

impl From<&Survey> for Purpose {
    fn from(survey: &Survey) -> Self {
        Self { power: survey.power, taps: survey.taps, advance: survey.advance, samples: survey.total }
    }
}

impl Choice {
    /// Fills in what depends on the purpose, and builds.
    pub(in crate::cli) fn settle(&self, purpose: Purpose) -> Result<(Settings, Box<dyn Tracker<f32>>)> {
        let settings = self.settings(&self.given, purpose)?;
        let built = self.built(&settings, purpose)?;
        memory::check([&built], purpose.taps)?;
        let tracker = registry::tracker(&built, purpose.taps).map_err(|error| self.blame(error, purpose.power))?;
        Ok((settings, tracker))
    }

    /// What is built of these settings.
    fn built(&self, settings: &Settings, purpose: Purpose) -> Result<Settings> {
        match settings.optional("budget")?.filter(|&budget| budget > purpose.samples as f64 && budget.fract() == 0.0) {
            None => Ok(settings.clone()),
            Some(_) => {
                let mut given = self.given.clone();
                given.insert("budget".into(), Value::Number(purpose.samples.max(1) as f64));
                self.settings(&given, purpose)
            }
        }
    }

    fn settings(&self, given: &Values, purpose: Purpose) -> Result<Settings> {
        let Purpose { power, taps, advance, .. } = purpose;
        Ok(self.recipe.settle_stream(given, (power * taps as f64).sqrt(), taps)?.advanced(advance))
    }

    /// A parameter that nobody gave follows from the input: where it is out of range, the input is.
    fn blame(&self, error: Error, power: f64) -> Error {
        match &error {
            Error::Parameter { name, .. } if self.recipe.has(name) && !self.given.contains_key(name) && !(1e-12..1e12).contains(&power) => {
                let (rms, name) = (power.sqrt(), self.recipe.name);
                let size = if rms < 1.0 { "small" } else { "large" };
                Error::Data(format!("what the filters see has an rms of {rms:.1e}, too {size} for {name}: scale the recordings to about 1"))
            }
            _ => error,
        }
    }

    /// The budget that it will have; none for one without centres.
    pub(in crate::cli) fn budget(&self) -> Option<usize> {
        match (self.given.get("budget"), self.recipe.parameter("budget")?.preset) {
            (Some(Value::Number(budget)), _) => Some(*budget as usize),
            (None, Preset::Is(budget)) => Some(budget as usize),
            _ => None,
        }
    }
}

/// The filters of `known` that are wanted, each once, and each built once for its complaints. `kind` is what they are called.
pub(in crate::cli) fn choose(wanted: &Wanted<'_>, kind: &'static str, known: &[&'static str]) -> Result<Vec<Choice>> {
    let mut recipes: Vec<&'static Recipe> = Vec::new();
    for name in &wanted.names {
        let names: &[&str] = if *name == "all" { known } else { std::slice::from_ref(name) };
        for name in names {
            let found = registry::recipe(name).ok().filter(|r| known.contains(&r.name));
            let recipe = found.ok_or_else(|| Error::unknown(kind, *name, known.iter().copied().chain(["all"])))?;
            if !recipes.iter().any(|r| r.name == recipe.name) {
                recipes.push(recipe);
            }
        }
    }
    // Among several filters a parameter is for those that have it; one that none of them has is a mistake.
    if let Some(name) = wanted.given.keys().find(|name| !recipes.iter().any(|r| r.has(name))) {
        let mut known: Vec<String> = recipes.iter().flat_map(|r| r.parameters.iter().map(|p| p.name.to_owned())).collect();
        known.sort();
        known.dedup();
        let filter = recipes.iter().map(|r| r.name).collect::<Vec<_>>().join(", ");
        return Err(Error::NotApplicable { filter, name: name.clone(), known });
    }
    let file = wanted.file.map(read).transpose()?.unwrap_or_default();
    let choices = recipes.into_iter().map(|recipe| {
        let mut given = file.get(recipe.name).cloned().unwrap_or_default();
        given.extend(wanted.given.iter().filter(|(name, _)| recipe.has(name)).map(|(name, value)| (name.clone(), value.clone())));
        if recipe.grows() {
            given.entry("budget".into()).or_insert(Value::Number(BUDGET));
        }
        Choice { recipe, given }
    });
    let choices: Vec<_> = choices.collect();
    let purpose = Purpose { power: 1.0, taps: wanted.taps, advance: 0, samples: COMPLAINTS };
    for choice in &choices {
        choice.settle(purpose).map_err(|error| match (&error, wanted.file) {
            // What a file says is the file's fault.
            (Error::Parameter { name, .. }, Some(path)) if choice.given.contains_key(name) && !wanted.given.contains_key(name) => {
                Error::file(path, format!("[{}]", choice.recipe.name), error.to_string())
            }
            _ => error,
        })?;
    }
    Ok(choices)
}

/// Refuses filters that fit into memory one by one, but not all at once, each `times` over.
pub(in crate::cli) fn fit(choices: &[Choice], times: usize, purpose: Purpose) -> Result<()> {
    let build = |choice: &Choice| choice.built(&choice.settings(&choice.given, purpose)?, purpose);
    let built = choices.iter().map(build).collect::<Result<Vec<Settings>>>()?;
    memory::check(std::iter::repeat_n(&built, times).flatten(), purpose.taps)
}

/// Parameters by filter: a table for each.
fn read(path: &Path) -> Result<BTreeMap<&'static str, Values>> {
    let text = files::read_text(path, files::CONFIGURATION)?;
    let file: BTreeMap<String, Values> = toml::from_str(&text).map_err(|e| {
        let place = e.span().map_or("parameters".into(), |span| format!("line {}", text[..span.start].matches('\n').count() + 1));
        // What serde says where nothing fits is of no use to anybody.
        let problem =
            if e.message().contains("untagged") { "is no number, name or list of numbers under a filter's name" } else { e.message() };
        Error::file(path, place, problem.replace('\n', " "))
    })?;
    let check = |(name, values): (String, Values)| {
        let recipe = registry::recipe(&name).and_then(|recipe| recipe.settle(&values, 1.0).map(|_| recipe));
        Ok((recipe.map_err(|e| Error::file(path, format!("[{name}]"), e.to_string()))?.name, values))
    };
    file.into_iter().map(check).collect()
}
