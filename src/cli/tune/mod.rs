//! `kaflow tune`: parameters from data.

mod likelihood;
mod report;
pub(crate) mod score;
pub(crate) mod search;
pub(crate) mod space;

use std::path::PathBuf;

use clap::ValueEnum;

use super::parameters::Parameters;
use super::track::{Align, Source};
use super::{interrupt, parallel, progress};
use crate::filter::registry::{self, Likelihood, Preset, Recipe, Value, Values};
use crate::{Error, Result, iq};
use report::{Files, Tuned};
use score::{Data, score};
use search::{Plan, search};
use space::Space;

/// Find the parameters of filters from a pair of recordings.
///
/// Tries parameters on the start of the recordings, scores them by how well they predict one step ahead, and writes the best into a file for track --params,
/// with a picture of what the search saw. The same seed finds the same parameters on every number of cores. Parameters that are given stay as they are.
/// Without recordings it tunes on the built-in test bed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// What was sent: SigMF, WAV, raw IQ; or a .sigmf-collection or folder that holds both
    tx: Option<PathBuf>,
    /// What was received
    rx: Option<PathBuf>,
    /// A filter by name, any number of times, or all
    #[arg(long, value_name = "NAME", default_value = "all")]
    filter: Vec<String>,
    /// search tries candidates; em maximises the likelihood of the state-space model, for kalman, lms, klms and fklms
    #[arg(long, value_enum, default_value_t = Method::Search)]
    method: Method,
    /// Samples to tune on (default: 2000, and at least four times the budget, so that the budget binds)
    #[arg(long, value_name = "N")]
    samples: Option<usize>,
    /// Samples at the start that are learned from but not scored (default: a quarter)
    #[arg(long, value_name = "N")]
    burn_in: Option<usize>,
    /// Candidates for each filter
    #[arg(long, value_name = "N", default_value_t = 200)]
    candidates: usize,
    /// Seed of the search
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Parameter file to write, pictures beside it; or a folder for both
    #[arg(long, value_name = "PATH", default_value = "params.toml")]
    out: PathBuf,
    /// Samples that the filters look at
    #[arg(long, default_value_t = 4)]
    taps: usize,
    /// How many of the taps reach ahead (default: what the alignment finds, half of them with --equalize)
    #[arg(long)]
    advance: Option<usize>,
    /// Predict what was sent from what was received
    #[arg(long)]
    equalize: bool,
    /// Format of raw recordings: cf32_le, ci16_le, cu8, ...
    #[arg(long)]
    format: Option<iq::Format>,
    /// auto finds the delay and the carrier offset; none takes the samples as they are; a number is the delay in samples
    #[arg(long, default_value = "auto", allow_hyphen_values = true)]
    align: Align,
    /// Use the common part of recordings of different length
    #[arg(long)]
    trim: bool,
    /// Preset of the test bed: paper, wifi, a, b, d, e
    #[arg(long, conflicts_with = "tx")]
    preset: Option<String>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    parameters: Parameters,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    Search,
    Em,
}

/// Centres that a filter keeps when nobody says, as in `track`.
const BUDGET: usize = 500;
/// Samples that are tuned on when nobody says.
const SAMPLES: usize = 2000;
/// The best few candidates are compared on samples that were not tuned on, up to so many times as many as were.
const FINALISTS: usize = 5;
const FINAL: usize = 4;

pub(crate) fn run(args: Args) -> Result<()> {
    if args.candidates == 0 {
        return Err(Error::parameter("candidates", "at least 1", 0));
    }
    let choices = choose(&args)?;
    for (recipe, given) in &choices {
        registry::tracker::<f32>(&recipe.settle(given, 1.0)?, args.taps.max(1))?;
    }
    let files = Files::new(&args.out, args.force)?;
    files.check(choices.iter().map(|(recipe, _)| recipe.name))?;

    let source = Source {
        tx: args.tx.clone(),
        rx: args.rx.clone(),
        format: args.format,
        align: args.align,
        trim: args.trim,
        preset: args.preset.clone(),
        taps: args.taps,
        advance: args.advance,
        equalize: args.equalize,
    };
    let streams = source.read()?;
    let largest = choices.iter().filter_map(|(recipe, given)| budget(recipe, given)).max();
    let wanted = args.samples.unwrap_or(SAMPLES.max(4 * largest.unwrap_or(0)));
    let samples = wanted.min(streams.input.len());
    let mut notes = Vec::new();
    if samples < wanted {
        notes.push(format!("{wanted} samples were asked for, {samples} are there to tune on"));
    }
    if let Some(budget) = largest {
        if samples <= budget {
            notes.push(format!(
                "a budget of {budget} never binds in {samples} samples: forgetting looks useless, lambda comes out near 1, and filters with a budget may do \
                 worse later; take more --samples or a smaller --budget"
            ));
        } else if args.samples.is_none() && samples == wanted {
            notes.push(format!(
                "{samples} samples are four times the largest budget ({budget}): where it binds, forgetting shows what it is worth"
            ));
        }
    }
    let burn_in = args.burn_in.unwrap_or(samples / 4);
    let (mut tx, mut rx) = (streams.input, streams.target);
    let seen = rx.len().min(FINAL * samples);
    let later =
        if seen >= samples + samples / 2 { Data::new(tx[..seen].to_vec(), rx[..seen].to_vec(), args.taps, samples).ok() } else { None };
    tx.truncate(samples);
    rx.truncate(samples);
    let data = Data::new(tx, rx, args.taps, burn_in)?;

    let (tuned, pictures) = match args.method {
        Method::Search => by_search(&args, &choices, &data, later.as_ref())?,
        Method::Em => (by_likelihood(&choices, &data)?, Vec::new()),
    };
    if streams.advance > 0 {
        notes.push(format!("{} of the {} taps reach ahead", streams.advance, args.taps));
    }
    if interrupt::requested() {
        notes.push("interrupted: the best so far".into());
    }
    if tuned.is_empty() {
        return Ok(());
    }
    files.write(&tuned, &pictures, &heading(&args, &data))?;
    report::print(&tuned, &notes, &files);
    Ok(())
}

/// The first lines of the file: what it was made from.
fn heading(args: &Args, data: &Data) -> String {
    let name = |path: &Option<PathBuf>| path.as_ref().map(|p| p.display().to_string());
    let source = match (name(&args.tx), name(&args.rx)) {
        (Some(tx), Some(rx)) => format!("{tx} and {rx}"),
        (Some(pair), None) => pair,
        _ => format!("the test bed, preset {}", args.preset.as_deref().unwrap_or("paper")),
    };
    let how = match args.method {
        Method::Search => format!("{} candidates, seed {}", args.candidates, args.seed),
        Method::Em => "by the likelihood of the state-space model".into(),
    };
    let equalize = if args.equalize { " --equalize" } else { "" };
    format!(
        "# kaflow tune: the first {} samples of {source}\n# scored one step ahead after {}, {how}; for track --taps {}{equalize} --params\n",
        data.samples(),
        data.burn_in,
        args.taps
    )
}

/// The filters that are asked for, each with what is given for it.
fn choose(args: &Args) -> Result<Vec<(&'static Recipe, Values)>> {
    let known: Vec<&str> = match args.method {
        Method::Search => registry::RECIPES.iter().filter(|r| r.tracks()).map(|r| r.name).collect(),
        Method::Em => registry::RECIPES.iter().filter(|r| r.likelihood.is_some()).map(|r| r.name).collect(),
    };
    let kind = if args.method == Method::Em { "filter with a likelihood" } else { "filter" };
    let mut recipes: Vec<&'static Recipe> = Vec::new();
    for name in &args.filter {
        let names = if name == "all" { known.clone() } else { vec![name.as_str()] };
        for name in names {
            let found = registry::recipe(name).ok().filter(|r| known.contains(&r.name));
            let recipe = found.ok_or_else(|| Error::unknown(kind, name, known.iter().copied().chain(["all"])))?;
            if !recipes.iter().any(|r| r.name == recipe.name) {
                recipes.push(recipe);
            }
        }
    }
    // Among several filters a parameter is for those that have it; one that none of them has is a mistake.
    if let Some(name) = args.parameters.0.keys().find(|name| !recipes.iter().any(|r| r.has(name))) {
        let mut known: Vec<String> = recipes.iter().flat_map(|r| r.parameters.iter().map(|p| p.name.to_owned())).collect();
        known.sort();
        known.dedup();
        let filter = recipes.iter().map(|r| r.name).collect::<Vec<_>>().join(", ");
        return Err(Error::NotApplicable { filter, name: name.clone(), known });
    }
    let given =
        |recipe: &Recipe| args.parameters.0.iter().filter(|(name, _)| recipe.has(name)).map(|(n, v)| (n.clone(), v.clone())).collect();
    Ok(recipes.into_iter().map(|recipe| (recipe, given(recipe))).collect())
}

/// The budget that a filter will have; none for one without centres.
fn budget(recipe: &Recipe, given: &Values) -> Option<usize> {
    match (given.get("budget"), recipe.parameter("budget")?.preset) {
        (Some(Value::Number(budget)), _) => Some(*budget as usize),
        (_, Preset::Is(budget)) => Some(budget as usize),
        (_, Preset::Unlimited) => Some(BUDGET),
        _ => None,
    }
}

/// The picture of one filter's search.
type Landscape = (&'static str, crate::plot::Figure);

/// Lets the best candidates, and the parameters that nobody tuned, predict the samples that follow; one that is the best by chance, or that diverges once in a
/// while, loses there. Says so where it happened.
fn finals(found: &mut [search::Found], later: &Data) -> Result<Vec<String>> {
    let heats: Vec<(usize, usize)> =
        (0..found.len()).flat_map(|f| found[f].finalists(FINALISTS).into_iter().map(move |i| (f, i))).collect();
    let bar = progress::pieces(heats.len() as u64, "the best on what follows");
    let mut results = Vec::new();
    parallel::each(
        heats.len(),
        &bar,
        |heat| score(&found[heats[heat].0].tried[heats[heat].1].settings, later, None),
        |_, r| results.push(r),
    );
    bar.finish_and_clear();
    let mut notes = vec![String::new(); found.len()];
    if results.len() < heats.len() {
        return Ok(notes);
    }
    let results = results.into_iter().collect::<Result<Vec<_>>>()?;
    let later_db = |f: usize| heats.iter().zip(&results).filter(move |((own, _), _)| *own == f).map(|((_, i), score)| (*i, score.db));
    for (f, note) in notes.iter_mut().enumerate() {
        let first = later_db(f).next();
        let best = later_db(f).min_by(|a, b| a.1.total_cmp(&b.1));
        // A tenth of a decibel is chance, too.
        let (Some(first), Some(best)) = (first, best.zip(first).filter(|(b, a)| b.1 < a.1 - 0.1).map(|(b, _)| b)) else { continue };
        let which = if best.0 == 0 { "the untuned one" } else { "another" };
        *note = format!(
            "the best one here, {:.2} dB, has {:.2} dB on the {} samples that follow, {which} {:.2} dB: taken",
            found[f].tried[first.0].score.db,
            first.1,
            later.samples() - later.burn_in,
            best.1
        );
        found[f].prefer(best.0);
    }
    Ok(notes)
}

fn by_search(
    args: &Args,
    choices: &[(&'static Recipe, Values)],
    data: &Data,
    later: Option<&Data>,
) -> Result<(Vec<Tuned>, Vec<Landscape>)> {
    let space = |(recipe, given): &(&'static Recipe, Values)| Space::new(recipe, given, budget(recipe, given), data);
    let spaces = choices.iter().map(space).collect::<Result<Vec<_>>>()?;
    let mut found = search(&spaces, data, Plan { candidates: args.candidates, seed: args.seed })?;
    let notes = match later.filter(|_| !interrupt::requested()) {
        Some(later) => finals(&mut found, later)?,
        None => vec![String::new(); found.len()],
    };
    let tuned = spaces.iter().zip(&found).zip(notes).map(|((space, found), note)| Tuned {
        name: space.recipe.name,
        values: found.best().settings.values().clone(),
        untuned_db: found.untuned().score.db,
        db: found.best().score.db,
        note,
        tried: found.tried.len(),
    });
    let pictures = spaces.iter().zip(&found).filter(|(space, _)| !space.dimensions.is_empty());
    Ok((tuned.collect(), pictures.map(|(space, found)| (space.recipe.name, found.picture(space))).collect()))
}

fn by_likelihood(choices: &[(&'static Recipe, Values)], data: &Data) -> Result<Vec<Tuned>> {
    let mut tuned = Vec::new();
    for (recipe, given) in choices {
        let mut given = given.clone();
        if let Some(budget) = budget(recipe, &given) {
            given.entry("budget".into()).or_insert(Value::Number(budget as f64));
        }
        let Some(fitted) = likelihood::fit(recipe, &given, data)? else { break };
        let model = fitted.estimate.model;
        let mut note = format!("sigma_d^2 = {:.4e}, sigma_n^2 = {:.4e}", model.process_noise, model.noise);
        if recipe.likelihood == Some(Likelihood::Features) {
            note += &format!(", their ratio {:.4e}, {} features", model.process_noise / model.noise, fitted.features);
        }
        tuned.push(Tuned {
            name: recipe.name,
            values: fitted.settings.values().clone(),
            untuned_db: score(&recipe.settle(&given, data.spread())?, data, None)?.db,
            db: score(&fitted.settings, data, None)?.db,
            note,
            tried: fitted.estimate.iterations,
        });
    }
    Ok(tuned)
}
