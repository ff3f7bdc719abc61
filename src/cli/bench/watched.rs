//! What it costs to be looked at.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::channel::Scenario;
use crate::cli::run::dashboard::{self, Dashboard, Ends, ServeArgs};
use crate::cli::run::input::{self, Origin, Sight, TAPS};
use crate::cli::run::{Subject, filters};
use crate::flowgraphs::track::{self as graph, Filter, Plan, Watch};
use crate::{Error, Result};

/// A viewer comes for so long and stays away for so long: a machine whose speed wanders is compared with what it was just before and just after.
const PHASE: Duration = Duration::from_millis(300);

/// What a viewer costs.
pub(super) struct Cost {
    /// Samples a second without one: the median over the times between visits.
    pub(super) alone: f64,
    /// The share of them that is lost to one: the median over visits, each against the times before and behind it.
    pub(super) lost: f64,
    /// The half of the 95 % interval of that.
    pub(super) uncertain: f64,
}

/// Runs some filters on the test bed for so long while a viewer comes and goes.
pub(super) fn cost(time: Duration) -> Result<Cost> {
    let sight = Sight { taps: None, advance: None, equalize: false };
    let (source, survey) = input::open(&Origin::Bed(Box::new(Scenario { samples: 1 << 40, ..Scenario::preset("paper")? })), sight)?;
    let wanted = filters::Wanted { names: vec!["nlms", "ensemble"], given: &Default::default(), file: None, taps: TAPS };
    let (mut settings, mut run) = (Vec::new(), Vec::new());
    for choice in filters::choose(&wanted, "filter", &filters::streams())? {
        let (settled, tracker) = choice.settle((&survey).into())?;
        settings.push(settled);
        run.push(Filter::new(choice.recipe.name, tracker));
    }
    let subject = Subject::new(survey, false, 0, settings);
    let args = ServeArgs { serve: Some(([127, 0, 0, 1], 0).into()), keep: None };
    let mut dashboard = Dashboard::open(&args, &subject, Ends::default())?.ok_or_else(|| Error::Data("nothing is served".into()))?;
    let (stop, url) = (Arc::new(AtomicBool::new(false)), dashboard.url().to_owned());
    let viewer = std::thread::spawn({
        let stop = stop.clone();
        move || view(&url, &stop)
    });
    let plan = Plan { filters: vec![run], advance: subject.advance, ..Plan::default() };
    let watch = Watch { time: Some(time), every: dashboard::EVERY, ..Watch::new(&stop) };
    // Rates, and whether somebody looked; the present phase: since when, from which sample, with whom.
    let (mut rates, mut phase) = (Vec::new(), (Instant::now(), 0, false));
    graph::run(source, plan, &watch, |view| {
        let samples = view.filters.iter().map(|filter| filter.probe.read().samples).min().unwrap_or(0);
        let (since, from, watched) = phase;
        if dashboard.watched() != watched {
            // The first one has the start in it.
            if from > 0 {
                rates.push(((samples - from) as f64 / since.elapsed().as_secs_f64(), watched));
            }
            phase = (Instant::now(), samples, !watched);
        }
        dashboard.look(&subject, view);
    })?;
    stop.store(true, Ordering::Relaxed);
    // Nothing is served any more: a viewer who waits for the next frame would wait for ever.
    drop(dashboard);
    let _ = viewer.join();
    Ok(compare(&rates))
}

/// Visits against the times around them.
fn compare(rates: &[(f64, bool)]) -> Cost {
    let visits = rates.windows(3).filter(|w| !w[0].1 && w[1].1 && !w[2].1);
    let mut lost: Vec<f64> = visits.map(|w| 1.0 - 2.0 * w[1].0 / (w[0].0 + w[2].0)).collect();
    let mut alone: Vec<f64> = rates.iter().filter(|r| !r.1).map(|r| r.0).collect();
    let (visits, middle) = (lost.len() as f64, median(&mut lost));
    let mut off: Vec<f64> = lost.iter().map(|l| (l - middle).abs()).collect();
    // Of a normal distribution: its spread from the median deviation, and that of a median.
    let uncertain = 1.96 * 1.2533 * 1.4826 * median(&mut off) / visits.sqrt();
    Cost { alone: median(&mut alone), lost: middle, uncertain }
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Reads frames for a while, stays away for a while.
fn view(url: &str, stop: &AtomicBool) {
    let Some((host, token)) = url.trim_start_matches("http://").split_once("/?token=") else { return };
    let mut buffer = vec![0; 1 << 16];
    while !stop.load(Ordering::Relaxed) {
        std::thread::sleep(PHASE);
        let Ok(mut stream) = TcpStream::connect(host) else { return };
        let _ = stream.set_read_timeout(Some(PHASE));
        let _ = write!(stream, "GET /frames?token={token} HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let began = Instant::now();
        while began.elapsed() < PHASE && stream.read(&mut buffer).is_ok_and(|n| n > 0) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_that_slows_down_does_not_look_like_a_viewer() {
        // Slower by 1 % from phase to phase, and 2 % are lost to a viewer.
        let rates: Vec<_> = (0..61).map(|k| (1e6 * 0.99f64.powi(k) * if k % 2 == 1 { 0.98 } else { 1.0 }, k % 2 == 1)).collect();
        let cost = compare(&rates);
        assert!((cost.lost - 0.02).abs() < 1e-3, "{}", cost.lost);
        assert!(cost.uncertain < 1e-3, "{}", cost.uncertain);
    }
}
