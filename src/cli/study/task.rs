//! One task: the run of `kaflow track` with one filter, on one thread.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use serde_json::{Map, Value};

use super::plan::Plan;
use super::results::Record;
use crate::blocks::Track;
use crate::cli::run::{filters, input, report};
use crate::cli::{interrupt, provenance};
use crate::flowgraphs::track::{self as graph, Filter, Watch};
use crate::{Error, Result};

/// Runs tasks of a plan.
pub(super) struct Runner<'a> {
    plan: &'a Plan,
    host: String,
    cpu: String,
    command: String,
    /// Tasks that run at a time.
    cores: usize,
    /// The last inputs with their hashes: tasks on the same one follow each other.
    hashes: Mutex<Vec<((usize, u64), String)>>,
}

/// Inputs whose hashes are kept: as many as cores may work on.
const HASHES: usize = 256;

/// What a run has found.
#[derive(Default)]
struct Found {
    parameters: Map<String, Value>,
    samples: u64,
    nmse_db: Option<f64>,
    centres: u64,
    gap_samples: u64,
}

impl<'a> Runner<'a> {
    pub(super) fn new(plan: &'a Plan, cores: usize) -> Self {
        let cpu = format!("{} {}", std::env::consts::ARCH, crate::simd::Level::current());
        Self { plan, host: provenance::host(), cpu, command: provenance::command(), cores, hashes: Mutex::default() }
    }

    /// Does a task; none where it was interrupted. What the data are to blame for is a result, what the machine is to blame for an error:
    /// trying again may help.
    pub(super) fn run(&self, number: u64) -> Result<Option<Record<'a>>> {
        let (plan, began) = (self.plan, Instant::now());
        let task = plan.task(number);
        let place = plan.place(number);
        let origin = plan.origin(place)?;
        let (found, error) = match self.track(number, &origin) {
            Ok(None) => return Ok(None),
            Ok(Some(found)) => (found, None),
            Err(error @ (Error::Io { .. } | Error::Device(_))) => return Err(error),
            Err(error) => (Found::default(), Some(error.to_string())),
        };
        let input_sha256 = self.hash((place.input, place.case), &origin)?;
        Ok(Some(Record {
            schema: super::results::SCHEMA.into(),
            schema_version: super::results::SCHEMA_VERSION,
            task: number,
            study: plan.id.as_str().into(),
            version: provenance::VERSION.into(),
            input: task.input.into(),
            recording: task.recording,
            seed: task.seed,
            scenario: serde_json::to_value(&task.scenario).unwrap_or_default(),
            filter: task.filter.into(),
            parameters: found.parameters.into(),
            input_sha256: input_sha256.into(),
            samples: found.samples,
            nmse_db: found.nmse_db,
            centres: found.centres,
            gap_samples: found.gap_samples,
            error: error.map(Into::into),
            seconds: began.elapsed().as_secs_f64(),
            time: provenance::now().into(),
            host: self.host.clone().into(),
            cpu: self.cpu.clone().into(),
            command: self.command.clone().into(),
        }))
    }

    fn track(&self, number: u64, origin: &input::Origin) -> Result<Option<Found>> {
        let (plan, place) = (self.plan, self.plan.place(number));
        let choice = plan.families[place.family].choice(place.point, plan.sight)?;
        let (source, survey) = input::open(origin, plan.sight)?;
        let row = survey.row(plan.skip)?;
        // Another machine, or fewer tasks at a time, may do it.
        filters::fit(std::slice::from_ref(&choice), self.cores, (&survey).into()).map_err(|error| Error::Device(error.to_string()))?;
        let (settings, tracker) = choice.settle((&survey).into())?;
        let track = Track::new(tracker).metrics_every(row, plan.skip);
        let filters = vec![vec![Filter { name: choice.recipe.name.into(), track, prediction: None, error: None }]];
        let run = graph::Plan { filters, advance: survey.advance, equalize: plan.sight.equalize, ..graph::Plan::default() };
        let watch = Watch { threads: Some(1), ..Watch::new(interrupt::watch()) };
        let outcome = graph::run(source, run, &watch, |_| ())?;
        if let Some(fault) = outcome.fault {
            return Err(fault);
        }
        let Some((_, summary)) = outcome.filters.first().filter(|_| !outcome.interrupted) else { return Ok(None) };
        let nmse_db = summary.series.total().nmse_db();
        Ok(Some(Found {
            parameters: report::parameters(survey.taps, &settings),
            samples: summary.series.samples(),
            nmse_db: Some(nmse_db).filter(|db| db.is_finite()),
            centres: summary.centres as u64,
            gap_samples: outcome.sync.iter().map(|sync| sync.gap_samples).max().unwrap_or(0),
        }))
    }

    /// The SHA-256 of what a case is made of: of the scenario with its defaults, or of the list of the files' hashes.
    fn hash(&self, case: (usize, u64), origin: &input::Origin) -> Result<String> {
        let (tx, rx) = match origin {
            input::Origin::Bed(scenario) => return Ok(provenance::sha256_of(serde_json::json!(scenario).to_string().as_bytes())),
            input::Origin::Recordings { tx, rx, .. } => (tx, rx),
        };
        // Others wait rather than read the same file at the same time.
        let mut hashes = self.hashes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, hash)) = hashes.iter().find(|(known, _)| *known == case) {
            return Ok(hash.clone());
        }
        let mut list = String::new();
        for file in provenance::files_of(tx).into_iter().chain(rx.iter().flat_map(|rx| provenance::files_of(rx))) {
            list += &(provenance::sha256(&file)? + "\n");
        }
        let hash = provenance::sha256_of(list.as_bytes());
        if hashes.len() == HASHES {
            hashes.remove(0);
        }
        hashes.push((case, hash.clone()));
        Ok(hash)
    }
}
