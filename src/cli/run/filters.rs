//! Which filters run, with which parameters.

use std::{collections::BTreeMap, path::Path};

use crate::{
    Error, Result,
    filter::{
        Tracker,
        registry::{self, Preset, Recipe, Settings, Value, Values},
    },
};

/// Centres that a filter keeps when nobody says: on a stream, a dictionary without a limit would only grow.
const BUDGET: f64 = 500.0;

/// What a user asks for.
pub(in crate::cli) struct Wanted<'a> {
    /// Filters by name, or `all`.
    pub(in crate::cli) names: Vec<&'a str>,
    /// Parameters for those that have them.
    pub(in crate::cli) given: &'a Values,
    /// A file with parameters for each filter, which those above go before.
    pub(in crate::cli) file: Option<&'a Path>,
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
    taps: usize,
}

impl Choice {
    /// Fills in what depends on the mean power of the input, and builds.
    pub(in crate::cli) fn settle(&self, power: f64) -> Result<(Settings, Box<dyn Tracker<f32>>)> {
        let settings = self.recipe.settle(&self.given, (power * self.taps as f64).sqrt())?;
        let tracker = registry::tracker(&settings, self.taps)?;
        Ok((settings, tracker))
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
        Choice { recipe, given, taps: wanted.taps }
    });
    let choices: Vec<_> = choices.collect();
    choices.iter().try_for_each(|choice| choice.settle(1.0).map(drop))?;
    Ok(choices)
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
