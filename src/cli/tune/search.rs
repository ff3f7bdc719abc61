//! The search: at random over the whole space, then around the best.
//!
//! Candidates come in rounds. What a round tries and when it gives up depends only on earlier rounds and on the seed, never on which core was faster, so
//! the result is the same on every number of cores.

use super::score::{Data, Score, score};
use super::space::Space;
use crate::Result;
use crate::channel::random::{Draws, Random};
use crate::cli::{parallel, progress};
use crate::filter::registry::Settings;
use crate::plot::{self, Axis, Candidate, Figure};

/// How hard to search.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Candidates for each filter.
    pub(crate) candidates: usize,
    pub(crate) seed: u64,
}

/// One candidate that was tried.
pub(crate) struct Tried {
    pub(crate) settings: Settings,
    pub(crate) score: Score,
}

/// What was found for one filter.
pub(crate) struct Found {
    /// In the order of trial; the first has the parameters that nobody tuned.
    pub(crate) tried: Vec<Tried>,
    best: usize,
}

impl Found {
    pub(crate) fn best(&self) -> &Tried {
        &self.tried[self.best]
    }

    pub(crate) fn untuned(&self) -> &Tried {
        &self.tried[0]
    }

    /// The best ones, and the one that nobody tuned, by their numbers.
    pub(crate) fn finalists(&self, count: usize) -> Vec<usize> {
        let mut ran: Vec<usize> = (1..self.tried.len()).filter(|&i| self.tried[i].score.complete).collect();
        ran.sort_by(|&a, &b| self.tried[a].score.db.total_cmp(&self.tried[b].score.db));
        ran.truncate(count);
        ran.push(0);
        ran
    }

    /// Takes another one for the best, for reasons that the search does not know.
    pub(crate) fn prefer(&mut self, number: usize) {
        self.best = number;
    }

    /// What the search saw.
    pub(crate) fn picture(&self, space: &Space) -> Figure {
        let candidates: Vec<Candidate> = self.tried.iter().map(|t| Candidate { values: self.drawn(space, t), score: t.score.db }).collect();
        let best = candidates.iter().map(|c| c.score).fold(self.best().score.db, f64::min);
        let axes: Vec<Axis> = space.dimensions.iter().map(|d| d.axis()).collect();
        let worst = candidates.iter().map(|c| c.score).filter(|s| s.is_finite()).fold(best, f64::max);
        // What is far off would press the rest flat.
        let reach = (worst - best).clamp(0.05, 8.0);
        let level = Axis::new("NMSE", "dB").range(best - 0.05 * reach, best + 1.05 * reach);
        plot::landscape(format!("Search for {}, {} candidates", space.recipe.name, candidates.len()), &axes, level, &candidates)
    }

    /// The searched parameters of a candidate as the picture shows them.
    pub(crate) fn drawn(&self, space: &Space, tried: &Tried) -> Vec<f64> {
        space.dimensions.iter().map(|d| tried.settings.number(d.name).map_or(f64::NAN, |v| d.drawn(v))).collect()
    }
}

/// Share of the candidates that are drawn at random.
const RANDOM: f64 = 0.6;
/// Standard deviation of the first and of the last steps around the best, as parts of a range.
const STEPS: [f64; 2] = [0.15, 0.015];

struct Hunt<'a> {
    space: &'a Space,
    random: Random,
    found: Found,
    candidates: usize,
}

impl<'a> Hunt<'a> {
    fn new(space: &'a Space, data: &Data, plan: Plan) -> Result<Self> {
        // Each filter draws its own numbers, whichever others are tuned beside it.
        let name = space.recipe.name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
        let settings = space.untuned()?;
        let score = score(&settings, data, None)?;
        let found = Found { tried: vec![Tried { settings, score }], best: 0 };
        let candidates = if space.dimensions.is_empty() { 1 } else { plan.candidates.max(1) };
        Ok(Self { space, random: Random::new(plan.seed ^ name, Draws::Study), found, candidates })
    }

    /// What to try next, at most `most` candidates.
    fn propose(&mut self, most: usize) -> Vec<Settings> {
        let done = self.found.tried.len();
        let random = (RANDOM * self.candidates as f64).round() as usize;
        let count = most.min(if done < random { random - done } else { self.candidates - done });
        let mut leaders: Vec<&Tried> = self.found.tried.iter().filter(|t| t.score.complete).collect();
        leaders.sort_by(|a, b| a.score.db.total_cmp(&b.score.db));
        let leaders: Vec<Vec<f64>> = leaders.iter().take(3).map(|t| self.space.point(&t.settings)).collect();
        let progress = (done.saturating_sub(random)) as f64 / (self.candidates - random).max(1) as f64;
        let step = STEPS[0] * (STEPS[1] / STEPS[0]).powf(progress);
        let dimensions = self.space.dimensions.len();
        let points = (0..count).map(|i| -> Vec<f64> {
            if done < random {
                return (0..dimensions).map(|_| self.random.uniform()).collect();
            }
            // Two of three around the best.
            let leader = &leaders[[0, 0, 1, 0, 0, 2][i % 6].min(leaders.len() - 1)];
            leader.iter().map(|u| reflect(u + step * self.random.real())).collect()
        });
        // A combination that the filter refuses is no candidate.
        points.collect::<Vec<_>>().iter().map(|point| self.space.at(point).unwrap_or_else(|_| self.found.best().settings.clone())).collect()
    }

    fn take(&mut self, settings: Settings, score: Score) {
        if score.complete && score.db < self.found.best().score.db {
            self.found.best = self.found.tried.len();
        }
        self.found.tried.push(Tried { settings, score });
    }
}

/// Back into [0, 1] as from a mirror.
fn reflect(u: f64) -> f64 {
    let u = u.rem_euclid(2.0);
    if u > 1.0 { 2.0 - u } else { u }
}

/// Tunes all filters side by side. After Ctrl-C it returns what was found so far.
pub(crate) fn search(spaces: &[Space], data: &Data, plan: Plan) -> Result<Vec<Found>> {
    let mut hunts = spaces.iter().map(|space| Hunt::new(space, data, plan)).collect::<Result<Vec<_>>>()?;
    let total: usize = hunts.iter().map(|h| h.candidates - 1).sum();
    let bar = progress::pieces(total as u64, "tune");
    let round = (plan.candidates / 10).clamp(4, 32);
    loop {
        let mut pieces: Vec<(usize, Settings)> = Vec::new();
        for (i, hunt) in hunts.iter_mut().enumerate().filter(|(_, h)| h.found.tried.len() < h.candidates) {
            pieces.extend(hunt.propose(round).into_iter().map(|settings| (i, settings)));
        }
        if pieces.is_empty() {
            break;
        }
        let rivals: Vec<Score> = hunts.iter().map(|h| h.found.best().score.clone()).collect();
        let mut results = Vec::with_capacity(pieces.len());
        let done =
            parallel::each(pieces.len(), &bar, |k| score(&pieces[k].1, data, Some(&rivals[pieces[k].0])), |_, result| results.push(result));
        let interrupted = done < pieces.len();
        for ((i, settings), result) in pieces.into_iter().zip(results) {
            hunts[i].take(settings, result?);
        }
        if interrupted {
            break;
        }
    }
    bar.finish_and_clear();
    Ok(hunts.into_iter().map(|h| h.found).collect())
}

#[cfg(test)]
#[path = "../../../tests/unit/cli/tune/search.rs"]
mod tests;
