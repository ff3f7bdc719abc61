//! `kaflow tune`: parameters from data.

mod likelihood;
mod report;
pub(crate) mod score;
pub(crate) mod search;
pub(crate) mod space;

use std::path::PathBuf;

use clap::ValueEnum;

use super::outputs::{self, Outputs};
use super::run::{
    arguments::{FilterArgs, InputArgs},
    filters::{self, Choice, choose},
    input, memory,
};
use super::typed::whole;
use super::{interrupt, parallel, progress};
use crate::filter::registry::{self, Likelihood};
use crate::{Error, Result};
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
    #[command(flatten)]
    input: InputArgs,
    /// search tries candidates; em maximises the likelihood of the state-space model, for kalman, lms, klms and fklms
    #[arg(long, value_enum, default_value_t = Method::Search)]
    method: Method,
    /// Samples to tune on (default: 2000, and at least four times the budget, so that the budget binds)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    samples: Option<usize>,
    /// Samples at the start that are learned from but not scored (default: a quarter)
    #[arg(long, value_name = "N", value_parser = whole::<usize>)]
    burn_in: Option<usize>,
    /// Candidates for each filter
    #[arg(long, value_name = "N", default_value = "200", value_parser = whole::<usize>)]
    candidates: usize,
    /// Seed of the search
    #[arg(long, default_value = "1", value_parser = whole::<u64>)]
    seed: u64,
    /// Folder for params.toml and pictures; made where it is missing
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Parameter file to write, pictures beside it (default: params.toml)
    #[arg(long, short, value_name = "FILE", conflicts_with = "out")]
    output: Option<PathBuf>,
    /// Write what was found as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace existing outputs
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    filters: FilterArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Method {
    Search,
    Em,
}

/// Samples that are tuned on when nobody says.
const SAMPLES: usize = 2000;
/// The best few candidates are compared on samples that were not tuned on, up to so many times as many as were.
const FINALISTS: usize = 5;
const FINAL: usize = 4;

pub(crate) fn run(args: Args) -> Result<()> {
    if !(1..=1_000_000).contains(&args.candidates) {
        return Err(Error::parameter("candidates", "between 1 and 1000000", args.candidates));
    }
    let (kind, known) = match args.method {
        Method::Search => ("filter", filters::streams()),
        Method::Em => ("filter with a likelihood", registry::RECIPES.iter().filter(|r| r.likelihood.is_some()).map(|r| r.name).collect()),
    };
    let choices = choose(&args.filters.wanted(&["all"], None)?, kind, &known)?;
    let files = Files::new(args.out.as_deref(), args.output.as_deref());
    let written = files.all(choices.iter().map(|choice| choice.recipe.name)).into_iter().chain(args.json.clone()).collect();
    Outputs { recordings: args.input.files(), files: written, folder: files.folder(), force: args.force, ..Outputs::default() }.check()?;

    let origin = args.input.origin(|_| ())?;
    let (_, survey) = input::open(&origin, args.filters.sight(args.input.equalize)?)?;
    let taps = survey.taps;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for choice in &choices {
        // As many candidates as cores are there at a time.
        let settings = choice.recipe.settle_stream(&choice.given, survey.power.sqrt(), taps)?;
        memory::check(std::iter::repeat_n(&settings, cores), taps)?;
    }
    let (mut tx, mut rx) = survey.start;
    let largest = choices.iter().filter_map(Choice::budget).max();
    let wanted = args.samples.unwrap_or(SAMPLES.max(4 * largest.unwrap_or(0)));
    let samples = wanted.min(tx.len());
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
    let seen = rx.len().min(FINAL * samples);
    let later = if seen >= samples + samples / 2 { Data::new(tx[..seen].to_vec(), rx[..seen].to_vec(), taps, samples).ok() } else { None };
    tx.truncate(samples);
    rx.truncate(samples);
    let data = Data::new(tx, rx, taps, burn_in)?;

    let (tuned, pictures) = match args.method {
        Method::Search => by_search(&args, &choices, &data, later.as_ref())?,
        Method::Em => (by_likelihood(&choices, &data)?, Vec::new()),
    };
    if survey.advance > 0 {
        notes.push(format!("the {taps} taps reach {} samples past the predicted one", survey.advance));
    }
    if interrupt::requested() {
        notes.push("interrupted: the best so far".into());
    }
    if tuned.is_empty() {
        return Ok(());
    }
    // The table first: a disk that is full must not take it along.
    report::print(&tuned, &notes);
    let json = args.json.as_ref().map(|path| super::json::write(path, "tune", report::figures(&tuned, &notes, data.samples())));
    let written = files.write(&tuned, &pictures, &heading(&args, &data)).map(|()| say!("{}", files.params.display()));
    outputs::all(json.into_iter().chain([written]))
}

/// The first lines of the file: what it was made from.
fn heading(args: &Args, data: &Data) -> String {
    let name = |path: &Option<PathBuf>| path.as_ref().map(|p| p.display().to_string());
    let source = match (name(&args.input.tx), name(&args.input.rx)) {
        (Some(tx), Some(rx)) => format!("{tx} and {rx}"),
        (Some(pair), None) => pair,
        _ => format!("the test bed, preset {}", args.input.preset.as_deref().unwrap_or("paper")),
    };
    let how = match args.method {
        Method::Search => format!("{} candidates, seed {}", args.candidates, args.seed),
        Method::Em => "by the likelihood of the state-space model".into(),
    };
    let equalize = if args.input.equalize { " --equalize" } else { "" };
    format!(
        "# kaflow tune: the first {} samples of {source}\n# scored one step ahead after {}, {how}; for track --taps {}{equalize} --params\n",
        data.samples(),
        data.burn_in,
        data.taps
    )
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

fn by_search(args: &Args, choices: &[Choice], data: &Data, later: Option<&Data>) -> Result<(Vec<Tuned>, Vec<Landscape>)> {
    let space = |choice: &Choice| Space::new(choice.recipe, &choice.given, choice.budget(), data);
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

fn by_likelihood(choices: &[Choice], data: &Data) -> Result<Vec<Tuned>> {
    let mut tuned = Vec::new();
    for Choice { recipe, given, .. } in choices {
        let Some(fitted) = likelihood::fit(recipe, given, data)? else { break };
        let model = fitted.estimate.model;
        let mut note = format!("sigma_d^2 = {:.4e}, sigma_n^2 = {:.4e}", model.process_noise, model.noise);
        if recipe.likelihood == Some(Likelihood::Features) {
            note += &format!(", their ratio {:.4e}, {} features", model.process_noise / model.noise, fitted.features);
        }
        tuned.push(Tuned {
            name: recipe.name,
            values: fitted.settings.values().clone(),
            untuned_db: score(&recipe.settle_stream(given, data.spread(), data.taps)?, data, None)?.db,
            db: score(&fitted.settings, data, None)?.db,
            note,
            tried: fitted.estimate.iterations,
        });
    }
    Ok(tuned)
}
