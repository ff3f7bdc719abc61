//! `kaflow bench`: how fast the filters are on this machine.

mod block;
mod ensemble;
mod measure;
mod predistort;
#[cfg(feature = "soapy")]
mod radio;
mod receiver;
mod textbook;
mod watched;

use std::path::PathBuf;

use serde_json::{Value, json};

use self::measure::{Contestant, Guarded, LONG, Loop, POWER, SHORT, Signal, complex_fklms, latency, race, tracker};
use super::outputs::Outputs;
use crate::Result;
use crate::filter::{Adaptive, Window};
use crate::ofdm::Method;
use crate::simd::Level;

/// Measure how fast the filters are on this machine, against a textbook loop in the same run.
///
/// Single precision, complex samples. The fastest of many short runs counts, taken in turn, so that other programs disturb little; the ratio is the
/// figure to compare between machines.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also write all figures as JSON
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Replace an existing file
    #[arg(long)]
    force: bool,
    /// Fewer sizes and shorter runs: some seconds instead of half a minute
    #[arg(long)]
    quick: bool,
}

const ETA: f64 = 0.3;
const SIGMA: f64 = 1.0;
const RATES: [f64; 4] = [1.0, 5.0, 10.0, 20.0];

pub(crate) fn run(args: Args) -> Result<()> {
    // Refused before a minute of measuring.
    Outputs { files: args.json.iter().cloned().collect(), force: args.force, ..Outputs::default() }.check()?;
    let mut bench = Bench { rounds: if args.quick { 15 } else { 60 }, quick: args.quick, signal: Signal::new(1 << 14) };
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    say!("vector instructions: {}, cores: {cores}, single precision\n", Level::current());

    let filters = bench.filters()?;
    let blocks = bench.blocks()?;
    let threads = if cores > 1 { bench.threads(cores)? } else { Vec::new() };
    let (budgets, keeps_up) = bench.budgets()?;
    let taps = bench.taps()?;
    let calls = bench.calls()?;
    let receivers = bench.receivers()?;
    let predistorters = bench.predistorters()?;
    let radio = bench.radio()?;
    let dashboard = bench.dashboard()?;

    if let Some(path) = &args.json {
        let all = json!({
            "level": Level::current().to_string(), "cores": cores, "precision": "f32",
            "filters": filters, "blocks": blocks, "threads": threads, "budgets": budgets, "largest_budget": keeps_up, "taps": taps, "latency": calls, "receivers": receivers, "predistorters": predistorters, "radio": radio, "dashboard": dashboard,
        });
        super::json::write(path, "bench", all)?;
    }
    Ok(())
}

struct Bench {
    rounds: usize,
    quick: bool,
    signal: Signal,
}

fn loop_over<F>(filter: F, taps: usize) -> Result<Loop<F>> {
    Ok(Loop { filter, window: Window::new(taps)? })
}

fn textbook_fklms(lambda: f64, budget: usize) -> textbook::Fklms {
    textbook::Fklms {
        eta: ETA as f32,
        lambda: lambda as f32,
        sigma: SIGMA as f32,
        budget,
        centres: Vec::new(),
        coefficients: Vec::new(),
        oldest: 0,
    }
}

/// What [`complex_fklms`] is with the Hammerstein kernel.
fn textbook_hammerstein(budget: usize) -> textbook::Hammerstein {
    let base = textbook::Fklms { sigma: (0.7 * POWER.sqrt()) as f32, ..textbook_fklms(0.997, budget) };
    textbook::Hammerstein { base, ratio: (0.8 / POWER) as f32 }
}

fn fklms(budget: usize, taps: usize) -> Result<Guarded> {
    tracker("fklms", taps, &[("budget", budget as f64), ("lambda", 0.999), ("eta", ETA), ("sigma", SIGMA)])
}

impl Bench {
    fn race(&mut self, contestants: &mut [&mut dyn Contestant], warm_up: usize) -> Vec<f64> {
        race(contestants, warm_up, self.rounds, SHORT, &mut self.signal)
    }

    /// Some trackers against each other, in turn.
    fn race_all(&mut self, trackers: impl Iterator<Item = Result<Guarded>>, warm_up: usize) -> Result<Vec<f64>> {
        let mut trackers = trackers.collect::<Result<Vec<_>>>()?;
        let mut contestants: Vec<&mut dyn Contestant> = trackers.iter_mut().map(|t| t as _).collect();
        Ok(self.race(&mut contestants, warm_up))
    }

    /// The filters of the family against the textbook, and the linear ones.
    fn filters(&mut self) -> Result<Vec<Value>> {
        say!("{:<9} {:<32} {:>9} {:>9} {:>8}", "filter", "size", "textbook", "kaflow", "ratio");
        say!("{:<9} {:<32} {:>9} {:>9} {:>8}", "", "", "MS/s", "MS/s", "");
        let mut rows = Vec::new();
        let mut report = |name: &str, size: String, times: &[f64]| {
            let (fast, slow) = (1e-6 / times[0], times.get(1).map(|t| 1e-6 / t));
            let slow_text = slow.map_or("-".into(), |s| format!("{s:.3}"));
            let ratio = slow.map_or("-".into(), |s| format!("{:.1}x", fast / s));
            say!("{name:<9} {size:<32} {slow_text:>9} {fast:>9.2} {ratio:>8}");
            let ratio = slow.map(|s| fast / s);
            rows.push(json!({ "filter": name, "size": size, "kaflow_msps": fast, "textbook_msps": slow, "ratio": ratio }));
        };

        for (name, taps, key, value, lambda) in [
            ("fklms", 4, "lambda", 0.999, 0.999),
            ("fklms", 16, "lambda", 0.999, 0.999),
            ("norma", 4, "ridge", 0.001 / ETA, 0.999),
            ("norma", 16, "ridge", 0.001 / ETA, 0.999),
            ("klms", 4, "sigma", SIGMA, 1.0),
            ("klms", 16, "sigma", SIGMA, 1.0),
        ] {
            let mut fast = tracker(name, taps, &[("budget", 500.0), ("eta", ETA), ("sigma", SIGMA), (key, value)])?;
            let mut slow = loop_over(textbook_fklms(lambda, 500), taps)?;
            let times = self.race(&mut [&mut fast, &mut slow], 1000);
            report(name, format!("M=500, {taps} taps"), &times);
        }
        for (kernel, taps) in [("hammerstein", 4), ("hammerstein", 16), ("hammerstein", 64), ("equivariant", 4)] {
            let mut fast = complex_fklms(kernel, taps)?;
            let mut slow = loop_over(textbook_hammerstein(500), taps)?;
            let times =
                if kernel == "hammerstein" { self.race(&mut [&mut fast, &mut slow], 1000) } else { self.race(&mut [&mut fast], 1000) };
            report("fklms", format!("{kernel}, M=500, {taps} taps"), &times);
        }
        {
            // So small a radius that the dictionary is full, and yet some samples are absorbed.
            let epsilon = 0.15;
            let values = [("budget", 500.0), ("eta", ETA), ("sigma", SIGMA), ("epsilon", epsilon)];
            let mut fast = tracker("qklms", 4, &values)?;
            let filter = textbook::Qklms { base: textbook_fklms(1.0, 500), epsilon: epsilon as f32 };
            let mut slow = loop_over(filter, 4)?;
            let times = self.race(&mut [&mut fast, &mut slow], 1000);
            report("qklms", "500 centres, 4 taps".into(), &times);
        }
        for taps in [4, 16, 64] {
            let mut fast = tracker("nlms", taps, &[("mu", 0.1)])?;
            let weights = vec![crate::Complex::new(0.0, 0.0); taps];
            let mut slow = loop_over(textbook::Nlms { mu: 0.1, regularization: 1e-6, weights }, taps)?;
            let times = self.race(&mut [&mut fast, &mut slow], 1000);
            report("nlms", format!("{taps} taps"), &times);
        }
        for taps in [4, 16] {
            let mut fast = tracker("rls", taps, &[])?;
            let times = self.race(&mut [&mut fast], 1000);
            report("rls", format!("{taps} taps"), &times);
        }
        for row in ensemble::rows(self.rounds)? {
            report("ensemble", row.size, &[row.time]);
        }
        say!();
        Ok(rows)
    }

    /// What the flowgraph costs: the filter as a block against the bare filter.
    fn blocks(&mut self) -> Result<Vec<Value>> {
        say!("{:<9} {:<32} {:>9} {:>9} {:>8}  {:>9}", "block", "size", "bare", "block", "share", "graph");
        let mut rows = Vec::new();
        // Some 40 ms: long against the start of a flowgraph and the first touch of its buffers, short enough to be undisturbed now and then.
        let samples = 1 << 21;
        for (name, taps) in [("nlms", 4), ("nlms", 16), ("nlms", 64), ("fklms", 4)] {
            let (samples, size) = if name == "nlms" { (samples, format!("{taps} taps")) } else { (samples / 16, "M=500, 4 taps".into()) };
            let build = || if name == "nlms" { tracker("nlms", taps, &[("mu", 0.1)]) } else { fklms(500, taps) };
            let times =
                block::against_bare(build, samples, self.rounds.min(30)).map_err(|e| crate::Error::Data(format!("flowgraph: {e}")))?;
            let [bare, block, graph] = [times.bare, times.block, times.graph].map(|time| 1e-6 / time);
            let share = block / bare;
            say!("{name:<9} {size:<32} {bare:>9.2} {block:>9.2} {:>8}  {graph:>9.2}", format!("{:.0} %", 100.0 * share));
            rows.push(json!({ "filter": name, "size": size, "bare_msps": bare, "block_msps": block, "share": share, "graph_msps": graph }));
        }
        say!("MS/s; bare: the filter alone; block: in the work calls of a Track block, with buffers, tags, errors and metrics;");
        say!("graph: on one thread with two sources that copy from memory and two sinks\n");
        Ok(rows)
    }

    /// How it grows with threads.
    fn threads(&mut self, cores: usize) -> Result<Vec<Value>> {
        say!("{:<8} {:<32} {:>9} {:>9}", "threads", "size", "MS/s", "ratio");
        let mut rows = Vec::new();
        for budget in if self.quick { &[2000][..] } else { &[1000, 2000, 5000] } {
            let counts: Vec<usize> = [1, 2, 4, 8].into_iter().filter(|&n| n <= cores && n * 160 <= *budget).collect();
            let mut trackers = Vec::new();
            for &n in &counts {
                let mut tracker = fklms(*budget, 4)?;
                tracker.set("workers", n as f64)?;
                trackers.push(tracker);
            }
            let mut contestants: Vec<&mut dyn Contestant> = trackers.iter_mut().map(|t| t as _).collect();
            let times = race(&mut contestants, 2 * budget, self.rounds, LONG, &mut self.signal);
            for (&n, time) in counts.iter().zip(&times) {
                let (rate, ratio) = (1e-6 / time, times[0] / time);
                say!("{n:<8} {:<32} {rate:>9.2} {:>9}", format!("fklms, M={budget}, 4 taps"), format!("{ratio:.2}x"));
                rows.push(json!({ "budget": budget, "threads": n, "msps": rate, "ratio": ratio }));
            }
        }
        say!();
        Ok(rows)
    }

    /// How it grows with the budget, and which budget keeps up with which rate.
    fn budgets(&mut self) -> Result<(Vec<Value>, Vec<Value>)> {
        let sizes: &[usize] = if self.quick { &[10, 50, 200, 500, 2000, 5000] } else { &[10, 20, 50, 100, 200, 500, 1000, 2000, 5000] };
        say!("{:<35} {:>9} {:>12}", "fklms, 4 taps, budget", "MS/s", "ns/centre");
        let times = self.race_all(sizes.iter().map(|&budget| fklms(budget, 4)), 2 * sizes[sizes.len() - 1])?;
        let mut rows = Vec::new();
        for (&budget, time) in sizes.iter().zip(&times) {
            say!("{:<35} {:>9.2} {:>12.3}", format!("M={budget}"), 1e-6 / time, 1e9 * time / budget as f64);
            rows.push(json!({ "budget": budget, "msps": 1e-6 / time, "ns_per_centre": 1e9 * time / budget as f64 }));
        }
        say!("\n{:<35} {:>9}", "sample rate", "largest M");
        let mut keeps_up = Vec::new();
        for rate in RATES {
            let largest = largest_budget(sizes, &times, 1e-6 / rate);
            let text = match largest {
                None => format!("below {}", sizes[0]),
                Some(m) if m >= sizes[sizes.len() - 1] => format!("over {m}"),
                Some(m) => m.to_string(),
            };
            say!("{:<35} {text:>9}", format!("{rate} MS/s"));
            keeps_up.push(json!({ "msps": rate, "budget": largest }));
        }
        say!();
        Ok((rows, keeps_up))
    }

    /// How it grows with the taps.
    fn taps(&mut self) -> Result<Vec<Value>> {
        let sizes: &[usize] = if self.quick { &[1, 4, 16, 64] } else { &[1, 2, 4, 8, 16, 32, 64] };
        say!("{:<35} {:>9} {:>12}", "fklms, M=500, taps", "MS/s", "vs 4 taps");
        let times = self.race_all(sizes.iter().map(|&taps| fklms(500, taps)), 1000)?;
        let four = sizes.iter().position(|&taps| taps == 4).map_or(f64::NAN, |i| times[i]);
        let mut rows = Vec::new();
        for (&taps, time) in sizes.iter().zip(&times) {
            say!("{taps:<35} {:>9.2} {:>12.3}", 1e-6 / time, time / four);
            rows.push(json!({ "taps": taps, "msps": 1e-6 / time, "against_4_taps": time / four }));
        }
        say!();
        Ok(rows)
    }

    /// Worst against mean time of a call.
    fn calls(&mut self) -> Result<Vec<Value>> {
        say!("{:<35} {:>9} {:>9} {:>9} {:>8}", "one call", "mean us", "p99.9 us", "longest", "p99.9/mean");
        let mut rows = Vec::new();
        for (name, samples) in [("fklms", 256), ("nlms", 2048)] {
            let mut filter = if name == "nlms" { tracker("nlms", 4, &[])? } else { fklms(500, 4)? };
            self.race(&mut [&mut filter], 1000);
            let calls = if self.quick { 4000 } else { 20_000 };
            let l = latency(&mut filter, samples, calls, &mut self.signal);
            let size = if name == "nlms" { "4 taps" } else { "M=500, 4 taps" };
            let what = format!("{name}, {size}, {samples} samples");
            say!("{what:<35} {:>9.1} {:>9.1} {:>9.1} {:>8.2}", 1e6 * l.mean, 1e6 * l.p999, 1e6 * l.longest, l.p999 / l.mean);
            rows.push(json!({ "call": what, "mean_us": 1e6 * l.mean, "p999_us": 1e6 * l.p999, "longest_us": 1e6 * l.longest }));
        }
        Ok(rows)
    }

    /// OFDM receivers.
    fn receivers(&mut self) -> Result<Vec<Value>> {
        say!("\n{:<35} {:>9}", "receiver, 64 carriers, 16-QAM", "MS/s");
        let mut rows = Vec::new();
        for (method, learned) in [(Method::OneTap, false), (Method::Bdar, false), (Method::Bdar, true), (Method::Ep, false)] {
            let rounds = if method == Method::Ep { 3 } else { 5 * self.rounds };
            let rate = receiver::rate(method, learned, rounds)? / 1e6;
            let what = format!("{method}{}", if learned { ", learned curve" } else { "" });
            say!("{what:<35} {rate:>9.2}");
            rows.push(json!({ "receiver": method.name(), "learned": learned, "msps": rate }));
        }
        Ok(rows)
    }

    /// Digital predistortion.
    fn predistorters(&mut self) -> Result<Vec<Value>> {
        say!("\n{:<35} {:>9}", "predistorter, one core", "MS/s");
        let mut rows = Vec::new();
        for memory in [0, 3] {
            let rate = predistort::rate(memory, &self.signal, self.rounds)? / 1e6;
            say!("{:<35} {rate:>9.2}", format!("memory {memory}"));
            rows.push(json!({ "memory": memory, "msps": rate }));
        }
        Ok(rows)
    }

    /// What a viewer of the dashboard costs.
    fn dashboard(&mut self) -> Result<Value> {
        let cost = watched::cost(std::time::Duration::from_secs(if self.quick { 6 } else { 60 }))?;
        say!(
            "\nnlms and ensemble on the test bed: {:.3} MS/s; a viewer of --serve costs {:.1} % ± {:.1} % of it",
            cost.alone / 1e6,
            100.0 * cost.lost,
            100.0 * cost.uncertain
        );
        Ok(json!({ "alone_msps": cost.alone / 1e6, "lost": cost.lost, "uncertain": cost.uncertain }))
    }

    /// The simulated radio, without a pace; none without the feature.
    #[cfg(feature = "soapy")]
    fn radio(&mut self) -> Result<Value> {
        let (samples, rounds) = if self.quick { (2_000_000, 3) } else { (10_000_000, 5) };
        let mut best = f64::INFINITY;
        for _ in 0..rounds {
            best = best.min(radio::unpaced(samples).map_err(|e| crate::Error::Data(format!("flowgraph: {e}")))?);
        }
        say!("\nsimulated radio, unpaced: {:.1} MS/s from sink through channel to source", 1e-6 / best);
        Ok(json!({ "unpaced_msps": 1e-6 / best }))
    }

    #[cfg(not(feature = "soapy"))]
    fn radio(&mut self) -> Result<Value> {
        Ok(Value::Null)
    }
}

/// The largest budget that takes at most `limit` seconds a sample, on a straight line between the measured ones.
fn largest_budget(sizes: &[usize], times: &[f64], limit: f64) -> Option<usize> {
    let last = times.iter().rposition(|&t| t <= limit)?;
    if last + 1 == sizes.len() {
        return Some(sizes[last]);
    }
    let (m, t) = (sizes[last] as f64, times[last]);
    let (more, longer) = (sizes[last + 1] as f64, times[last + 1]);
    Some((m + (more - m) * (limit - t) / (longer - t)) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_textbook_is_the_same_filter() {
        let mut signal = Signal::new(1500);
        let mut fast = fklms(100, 3).unwrap();
        let mut slow = loop_over(textbook_fklms(0.999, 100), 3).unwrap();
        fast.take(&mut signal, 1500);
        let p = signal.predictions().to_vec();
        slow.take(&mut signal, 1500);
        let worst = p.iter().zip(signal.predictions()).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "{worst}");
        let mut fast = complex_fklms("hammerstein", 3).unwrap();
        let mut slow = loop_over(textbook_hammerstein(500), 3).unwrap();
        fast.take(&mut signal, 1500);
        let p = signal.predictions().to_vec();
        slow.take(&mut signal, 1500);
        let worst = p.iter().zip(signal.predictions()).map(|(a, b)| (a - b).norm()).fold(0.0, f32::max);
        assert!(worst < 1e-5, "hammerstein: {worst}");
    }

    #[test]
    fn the_largest_budget_lies_between_the_measured_ones() {
        let (sizes, times) = ([10, 100, 1000], [1.0, 10.0, 100.0]);
        assert_eq!(largest_budget(&sizes, &times, 0.5), None);
        assert_eq!(largest_budget(&sizes, &times, 55.0), Some(550));
        assert_eq!(largest_budget(&sizes, &times, 1e3), Some(1000));
    }
}
