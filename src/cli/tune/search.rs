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
mod tests {
    use super::*;
    use crate::channel::{Scenario, TestBed};
    use crate::filter::registry::{Values, recipe};
    use crate::plot::Mark;

    fn data() -> Data {
        let scenario = Scenario { samples: 600, ..Scenario::preset("e").unwrap() };
        let mut chunk = TestBed::run(&scenario).unwrap();
        Data::new(chunk.tx.swap_remove(0), chunk.rx.swap_remove(0), 3, 150).unwrap()
    }

    #[test]
    fn the_best_is_the_best_of_all_and_its_score_is_that_of_a_whole_run() {
        let data = data();
        let spaces = ["klms", "fklms"].map(|name| Space::new(recipe(name).unwrap(), &Values::new(), Some(50), &data).unwrap());
        for found in search(&spaces, &data, Plan { candidates: 60, seed: 3 }).unwrap() {
            assert_eq!(found.tried.len(), 60);
            let best = found.best();
            assert!(best.score.complete && best.score.db < found.untuned().score.db);
            assert_eq!(score(&best.settings, &data, None).unwrap().db, best.score.db);
            let mut given_up = 0;
            for tried in &found.tried {
                let whole = score(&tried.settings, &data, None).unwrap().db;
                assert!(whole >= best.score.db && tried.score.db >= best.score.db, "{whole} {}", tried.score.db);
                given_up += usize::from(!tried.score.complete);
            }
            assert!(given_up > 10, "{given_up} of 60 were hopeless");
        }
    }

    #[test]
    fn the_landscape_shows_every_candidate_at_its_score() {
        let data = data();
        let space = Space::new(
            recipe("klms").unwrap(),
            &Values::from([("kernel".into(), crate::filter::registry::Value::Name("gaussian".into()))]),
            Some(50),
            &data,
        )
        .unwrap();
        let found = search(std::slice::from_ref(&space), &data, Plan { candidates: 20, seed: 1 }).unwrap().remove(0);
        let picture = found.picture(&space);
        let expected: Vec<[f64; 3]> =
            found.tried.iter().map(|t| [t.settings.number("sigma").unwrap(), t.settings.number("eta").unwrap(), t.score.db]).collect();
        assert!(picture.panels[0].marks.iter().any(|m| matches!(m, Mark::Scores { points, .. } if *points == expected)));
        let best = format!("best {} dB", crate::plot::axis::number(found.best().score.db, 2));
        assert!(picture.panels[0].title.starts_with(&best), "{}", picture.panels[0].title);
    }
}
