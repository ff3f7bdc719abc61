//! Which filters run, with which parameters.

use std::{collections::BTreeMap, path::Path};

use super::{Args, input::Survey};
use crate::{
    Error, Result,
    filter::{
        Tracker,
        registry::{self, Recipe, Settings, Value, Values},
    },
};

/// What runs when nobody says.
const DEFAULT: [&str; 7] = ["nlms", "fklms", "qklms", "norma", "krlst", "mp-rls", "ensemble"];

/// Centres that a filter keeps when nobody says: on a stream, a dictionary without a limit would only grow.
const BUDGET: f64 = 500.0;

/// The names of all filters that run on streams.
fn streams() -> impl Iterator<Item = &'static str> {
    registry::RECIPES.iter().filter(|r| r.tracks()).map(|r| r.name)
}

/// A filter and what the user wants of it.
pub(super) struct Choice {
    recipe: &'static Recipe,
    given: Values,
    taps: usize,
}

impl Choice {
    /// Builds the filter once, for its complaints.
    pub(super) fn check(&self) -> Result<()> {
        registry::tracker::<f32>(&self.recipe.settle(&self.given, 1.0)?, self.taps).map(drop)
    }
}

/// A filter that is ready to run.
pub(super) struct Ready {
    pub(super) name: &'static str,
    pub(super) settings: Settings,
    pub(super) tracker: Box<dyn Tracker<f32>>,
}

/// The filters that the command line asks for.
pub(super) fn choose(args: &Args) -> Result<Vec<Choice>> {
    let names: Vec<&str> = if args.filter.iter().any(|name| name == "all") {
        streams().collect()
    } else if args.filter.is_empty() {
        DEFAULT.to_vec()
    } else {
        args.filter.iter().map(String::as_str).collect()
    };
    let mut recipes: Vec<&'static Recipe> = Vec::new();
    for name in names {
        let found = registry::recipe(name).ok().filter(|r| r.tracks());
        let recipe = found.ok_or_else(|| Error::unknown("filter", name, streams().chain(["all"])))?;
        if !recipes.iter().any(|r| r.name == recipe.name) {
            recipes.push(recipe);
        }
    }
    let file = args.params.as_deref().map(read).transpose()?.unwrap_or_default();
    // Among several filters a parameter is for those that have it; one that none of them has is a mistake.
    if let Some(name) = args.parameters.0.keys().find(|name| !recipes.iter().any(|r| r.has(name))) {
        let known = |r: &&Recipe| r.parameters.iter().map(|p| p.name.to_owned()).collect::<Vec<_>>();
        let filter = recipes.iter().map(|r| r.name).collect::<Vec<_>>().join(", ");
        let mut known: Vec<String> = recipes.iter().flat_map(known).collect();
        known.sort();
        known.dedup();
        return Err(Error::NotApplicable { filter, name: name.clone(), known });
    }
    let choices = recipes.into_iter().map(|recipe| {
        let mut given = file.get(recipe.name).cloned().unwrap_or_default();
        given.extend(args.parameters.0.iter().filter(|(name, _)| recipe.has(name)).map(|(name, value)| (name.clone(), value.clone())));
        if recipe.grows() {
            given.entry("budget".into()).or_insert(Value::Number(BUDGET));
        }
        Choice { recipe, given, taps: args.taps }
    });
    Ok(choices.collect())
}

/// Parameters by filter: a table for each.
fn read(path: &Path) -> Result<BTreeMap<&'static str, Values>> {
    let text = std::fs::read_to_string(path).map_err(|e| Error::io(path, e))?;
    let file: BTreeMap<String, Values> = toml::from_str(&text).map_err(|e| Error::file(path, "parameters", e.message()))?;
    let check = |(name, values): (String, Values)| {
        let recipe = registry::recipe(&name).and_then(|recipe| recipe.settle(&values, 1.0).map(|_| recipe));
        Ok((recipe.map_err(|e| Error::file(path, format!("[{name}]"), e.to_string()))?.name, values))
    };
    file.into_iter().map(check).collect()
}

/// Fills in what depends on the data, and builds.
pub(super) fn settle(choices: &[Choice], args: &Args, survey: &Survey) -> Result<Vec<Ready>> {
    let spread = (survey.power * args.taps as f64).sqrt();
    choices
        .iter()
        .map(|choice| {
            let settings = choice.recipe.settle(&choice.given, spread)?.advanced(survey.advance);
            Ok(Ready { name: choice.recipe.name, tracker: registry::tracker(&settings, args.taps)?, settings })
        })
        .collect()
}
