//! What it costs to be looked at.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::channel::Scenario;
use crate::cli::run::dashboard::{self, Dashboard, Ends, ServeArgs};
use crate::cli::run::input::{self, Origin, Sight};
use crate::cli::run::{Subject, filters};
use crate::flowgraphs::track::{self as graph, Filter, Plan, Watch};
use crate::{Error, Result};

/// A viewer comes for so long and stays away for so long.
const PHASE: Duration = Duration::from_millis(500);

/// Runs some filters on the test bed for so long while a viewer comes and goes; gives samples a second without and with one: medians over its visits.
pub(super) fn rates(time: Duration) -> Result<(f64, f64)> {
    let sight = Sight { taps: 4, advance: None, equalize: false };
    let (source, survey) = input::open(&Origin::Bed(Box::new(Scenario { samples: 1 << 40, ..Scenario::preset("paper")? })), sight)?;
    let wanted = filters::Wanted { names: vec!["nlms", "ensemble"], given: &Default::default(), file: None, taps: sight.taps };
    let (mut settings, mut run) = (Vec::new(), Vec::new());
    for choice in filters::choose(&wanted, "filter", &filters::streams())? {
        let (settled, tracker) = choice.settle(survey.power, survey.advance)?;
        settings.push(settled);
        run.push(Filter::new(choice.recipe.name, tracker));
    }
    let subject = Subject {
        source: survey.source,
        facts: Vec::new(),
        level: None,
        sample_rate: survey.sample_rate,
        real: survey.real,
        waveform: survey.waveform,
        alignment: survey.alignment,
        taps: sight.taps,
        advance: survey.advance,
        skip: 0,
        equalize: false,
        settings,
    };
    let args = ServeArgs { serve: Some(([127, 0, 0, 1], 0).into()), keep: None };
    let mut dashboard = Dashboard::open(&args, &subject, Ends::default())?.ok_or_else(|| Error::Data("nothing is served".into()))?;
    let (stop, url) = (Arc::new(AtomicBool::new(false)), dashboard.url().to_owned());
    let viewer = std::thread::spawn({
        let stop = stop.clone();
        move || view(&url, &stop)
    });
    let plan = Plan { filters: vec![run], advance: survey.advance, ..Plan::default() };
    let watch = Watch { time: Some(time), every: dashboard::EVERY, ..Watch::new(&stop) };
    // Rates by whether somebody looked; the present phase: since when, from which sample, with whom.
    let (mut rates, mut phase) = ([Vec::new(), Vec::new()], (Instant::now(), 0, false));
    graph::run(source, plan, &watch, |view| {
        let samples = view.filters.iter().map(|filter| filter.probe.read().samples).min().unwrap_or(0);
        let (since, from, watched) = phase;
        if dashboard.watched() != watched {
            // Short ones are the edges of longer ones.
            if since.elapsed() > PHASE / 2 && from > 0 {
                rates[usize::from(watched)].push((samples - from) as f64 / since.elapsed().as_secs_f64());
            }
            phase = (Instant::now(), samples, !watched);
        }
        dashboard.look(&subject, view);
    })?;
    stop.store(true, Ordering::Relaxed);
    // Nothing is served any more: a viewer who waits for the next frame would wait for ever.
    drop(dashboard);
    let _ = viewer.join();
    let [alone, seen] = rates.map(|mut rates| {
        rates.sort_by(f64::total_cmp);
        rates.get(rates.len() / 2).copied().unwrap_or(f64::NAN)
    });
    Ok((alone, seen))
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
