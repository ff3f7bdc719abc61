//! `kaflow live --rx-only --receive NAME`: the packets of another box alone. No frame is known, so that nothing can be tracked.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::{Args, PACKETS, RECEIVED, SECOND, START, not_found, read_back, show};
use crate::blocks::Radio;
use crate::cli::interrupt;
use crate::cli::outputs::Outputs;
use crate::cli::receive::Listener;
use crate::flowgraphs::track::{self as graph, Plan, Source, Watch};
use crate::{Error, Result};

pub(super) fn run(args: &Args) -> Result<()> {
    args.tracks_nothing()?;
    let Some(rate) = args.rate.or(args.radio.rx_rate) else {
        return Err(Error::parameter("rate", "given where nothing is tracked: that of the packets", "nothing"));
    };
    let config = args.config(rate)?;
    let folder = args.output.out.as_ref().map(|out| out.join(PACKETS));
    let files = folder.iter().flat_map(|folder| Listener::files(folder)).chain(args.output.json.clone()).collect();
    Outputs { files, folder: folder.as_deref(), force: args.output.force, ..Outputs::default() }.check()?;
    let Some(listener) = args.listener(None)? else { return Ok(()) };

    let radio = Radio::open(&config)?;
    let (rate, health, devices) = (radio.rate(), radio.health(), radio.devices());
    read_back::warn(&config, &devices);
    let samples = args.seconds.map(|seconds| (seconds * rate) as u64);
    let plan = Plan { samples, receive: Some(listener.block(rate)?), ..Plan::default() };
    let time = args.seconds.filter(|_| !config.patient).and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    let watch = Watch { every: SECOND, time: time.map(|time| time.saturating_add(START)), ..Watch::new(interrupt::watch()) };
    let mut last = (Instant::now(), 0);
    let source = Source::Radio(Box::new(radio), Vec::new().into(), args.amplitude());
    let outcome = graph::run(source, plan, &watch, |view| {
        last = show(view, &health, last, config.queue, rate, std::iter::once(listener.words()));
    })?;
    note!("{health}");
    let received = health.received.load(Ordering::Relaxed);
    if received == 0 {
        return Err(outcome.fault.unwrap_or_else(|| not_found(&health)));
    }
    listener.report(RECEIVED, received, args.output.json.as_deref(), folder.as_deref())?;
    outcome.fault.map_or(Ok(()), Err)
}
