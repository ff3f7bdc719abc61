//! What a run leaves behind: a table, JSON, curves, pictures, a page.

use std::{
    fmt::Write as _,
    path::{Path, PathBuf},
    time::Duration,
};

use serde_json::{Map, Value, json};

use super::{
    Subject, Tracked,
    arguments::OutputArgs,
    input::Align,
    pictures::{self, Picture},
    ranked, signal,
};
use crate::cli::outputs;
use crate::filter::registry::Settings;
use crate::flowgraphs::track::Outcome;
use crate::iq::Status;
use crate::{Result, files, plot};

/// The files that a run leaves behind.
pub(in crate::cli) fn files_of(output: &OutputArgs) -> Vec<PathBuf> {
    let of = |folder: &PathBuf| {
        let pictures = pictures::NAMES.iter().map(|name| folder.join(name));
        let files: Vec<_> = pictures.flat_map(|path| plot::files(&path).into_iter().chain([path.with_extension("csv")])).collect();
        std::iter::once(folder.join("report.html")).chain(files)
    };
    output.json.iter().cloned().chain(output.out.iter().flat_map(of)).collect()
}

pub(in crate::cli) fn write(output: &OutputArgs, subject: &Subject, outcome: &Outcome) -> Result<()> {
    let filters = ranked(subject, outcome);
    let figures = signal::figures(subject, filters.first());
    let summary = summary(subject, outcome, &figures);
    // The table first: a disk that is full must not take it along.
    say!("{summary}\n\n{}", table(&filters).trim_end());
    let json = output.json.as_ref().map(|path| crate::cli::json::write(path, "track", json(subject, outcome, &filters, &figures)));
    let page = output.out.as_ref().map(|folder| {
        page(subject, &filters, &figures, folder, &summary)?;
        say!("{}", folder.join("report.html").display());
        Ok(())
    });
    outputs::all(json.into_iter().chain(page))
}

/// Cycles a sample, in Hz where the rate is known.
fn carrier(subject: &Subject, cfo: f64) -> String {
    subject.sample_rate.map_or(format!("{cfo:.3e} cycles a sample"), |rate| format!("{:.1} Hz", cfo * rate))
}

/// One line on what was tracked.
fn summary(subject: &Subject, outcome: &Outcome, figures: &Map<String, Value>) -> String {
    let samples = outcome.filters.iter().map(|(_, summary)| summary.series.samples()).max().unwrap_or(0);
    let mut line = format!("{samples} samples in {:.1} s", outcome.elapsed.as_secs_f64());
    if subject.real {
        line += ", real-valued";
    }
    if let Some((_, said)) = subject.facts.iter().find(|(name, _)| *name == CHANNELS) {
        let of = |end: &str| format!("{} of {}", said[end]["channel"], said[end]["channels"]);
        let _ = write!(line, ", channel {} sent, {} received", of("tx"), of("rx"));
    }
    if subject.skip > 0 {
        let _ = write!(line, ", the first {} not averaged", subject.skip);
    }
    if let Some(sync) = outcome.sync.first().filter(|sync| subject.alignment.is_some() || sync.searches > 0 || sync.delay_samples != 0.0) {
        let (delay, cfo) = found(subject, sync);
        let _ = write!(line, ", delay {delay:.2} samples, carrier offset {}", carrier(subject, cfo));
        if sync.clock_ppm != 0.0 {
            let _ = write!(line, ", clock {:.2} ppm", sync.clock_ppm);
        }
    }
    let gaps = gap_samples(outcome);
    if gaps > 0 {
        let _ = write!(line, ", {gaps} more in gaps");
    }
    if let Some(clipped) = figures.get("clipped_samples").and_then(Value::as_u64).filter(|&n| n > 0) {
        let _ = write!(line, ", {clipped} CLIPPED: lower the receive gain");
    }
    if outcome.interrupted {
        line += ", interrupted";
    }
    line
}

/// What a search before the run found, or else the run itself: delay in samples and carrier offset in cycles a sample.
fn found(subject: &Subject, sync: &Status) -> (f64, f64) {
    subject.alignment.map_or((sync.delay_samples, sync.cfo), |a| (a.delay, a.cfo))
}

fn gap_samples(outcome: &Outcome) -> u64 {
    outcome.sync.iter().map(|sync| sync.gap_samples).max().unwrap_or(0)
}

/// The fact that says which channels of several are tracked.
pub(in crate::cli) const CHANNELS: &str = "channels";

const COLUMNS: [&str; 5] = ["filter", "NMSE dB", "centres", "MS/s", "p99 latency"];

/// A row of the table for each filter, the best first.
fn rows(filters: &[Tracked<'_>]) -> Vec<[String; 5]> {
    let row = |f: &Tracked| {
        let latency = &f.summary.latency;
        let (error, rate) = (format!("{:.2}", f.total.nmse_db()), format!("{:.3}", latency.rate() / 1e6));
        [f.name.to_owned(), error, f.summary.centres.to_string(), rate, duration(latency.quantile(0.99))]
    };
    filters.iter().map(row).collect()
}

fn table(filters: &[Tracked<'_>]) -> String {
    let line = |[name, error, centres, rate, p99]: [&str; 5]| format!("{name:<12} {error:>8} {centres:>8} {rate:>9} {p99:>12}\n");
    line(COLUMNS)
        + &rows(filters).iter().map(|row| line(row.each_ref().map(String::as_str))).collect::<String>()
        + &bounded(filters)
        + &restarted(filters)
}

/// Filters that had to start again.
fn restarted(filters: &[Tracked<'_>]) -> String {
    let line = |f: &Tracked| {
        let (name, restarts) = (&f.name, f.summary.restarts);
        format!("{name}: restarts: {restarts}, where its predictions were worse than none or garbage had left it no use\n")
    };
    filters.iter().filter(|f| f.summary.restarts > 0).map(line).collect()
}

/// Filters that had to make steps smaller than they were told to.
fn bounded(filters: &[Tracked<'_>]) -> String {
    let line = |f: &Tracked| {
        let (name, steps) = (&f.name, f.summary.portrait.bounded_steps);
        format!("{name}: eta is too large for this input, {steps} steps were made smaller; leave it out, or give a diffusion ratio\n")
    };
    filters.iter().filter(|f| f.summary.portrait.bounded_steps > 0).map(line).collect()
}

fn duration(d: Duration) -> String {
    match d.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} us", 1e6 * s),
        s if s < 1.0 => format!("{:.1} ms", 1e3 * s),
        s => format!("{s:.2} s"),
    }
}

fn json(subject: &Subject, outcome: &Outcome, filters: &[Tracked<'_>], figures: &Map<String, Value>) -> Value {
    let mut alignment = subject.alignment.as_ref().and_then(|a| serde_json::to_value(a).ok()).unwrap_or_else(|| json!({}));
    if let (Value::Object(map), Some(sync)) = (&mut alignment, outcome.sync.first()) {
        let (delay, cfo) = found(subject, sync);
        map.insert(
            "method".into(),
            match subject.align {
                Align::Delay(_) => json!("given"),
                align => json!(align.to_string()),
            },
        );
        map.insert("delay".into(), json!(delay));
        map.insert("cfo".into(), json!(cfo));
        map.insert("carrier_hz".into(), json!(subject.sample_rate.map(|rate| cfo * rate)));
        map.insert("clock_ppm".into(), json!(sync.clock_ppm));
        map.insert("searches".into(), json!(sync.searches));
        map.insert("advance".into(), json!(subject.advance));
    }
    let filters: Vec<_> = filters
        .iter()
        .map(|f| {
            json!({
                "name": f.name,
                "parameters": parameters(subject.taps, f.settings),
                "nmse_db": f.total.nmse_db(),
                "samples": f.summary.series.samples(),
                "centres": f.summary.centres,
                "restarts": f.summary.restarts,
                "samples_per_second": f.summary.latency.rate(),
                "p99_latency_seconds": f.summary.latency.quantile(0.99).as_secs_f64(),
            })
        })
        .collect();
    let mut all = json!({
        "alignment": alignment,
        "signal": figures,
        "real": subject.real,
        "sample_rate": subject.sample_rate,
        "skip": subject.skip,
        "gap_samples": gap_samples(outcome),
        "rim_samples": outcome.sync.iter().map(|sync| sync.rim_samples).max().unwrap_or(0),
        "doubtful_samples": outcome.sync.iter().map(|sync| sync.doubtful_samples).max().unwrap_or(0),
        "interrupted": outcome.interrupted,
        "filters": filters,
    });
    // Of a test bed, the source is its scenario.
    if let Some(scenario) = toml::from_str::<Value>(&subject.source).ok().filter(|_| subject.source.trim().contains('\n')) {
        all["scenario"] = scenario;
    }
    for (name, fact) in &subject.facts {
        all[*name] = fact.clone();
    }
    all
}

/// All parameters of a filter, those that nobody gave too.
pub(in crate::cli) fn parameters(taps: usize, settings: &Settings) -> Map<String, Value> {
    let own = settings.values().iter().map(|(name, value)| (name.clone(), crate::cli::json::parameter(value)));
    std::iter::once(("taps".to_owned(), json!(taps))).chain(own).collect()
}

/// Curves, pictures and the page.
fn page(subject: &Subject, filters: &[Tracked<'_>], figures: &Map<String, Value>, folder: &Path, summary: &str) -> Result<()> {
    let mut drawn = String::new();
    for Picture { name, figure, csv } in pictures::all(subject, filters)? {
        figure.save(folder.join(name))?;
        let _ = writeln!(drawn, "<figure>{}</figure>", figure.svg());
        if !csv.is_empty() {
            files::write(&folder.join(format!("{name}.csv")), csv.as_bytes())?;
        }
    }
    let line = |name: &str, text: &str| format!("<tr><td>{}</td><td>{}</td></tr>\n", escape(name), escape(text));
    let mut parameters = line("all", &format!("taps {}, advance {}, skip {}", subject.taps, subject.advance, subject.skip));
    for settings in &subject.settings {
        let values: Vec<_> = settings.values().iter().map(|(name, value)| format!("{name} {value}")).collect();
        parameters += &line(settings.recipe().name, &values.join(", "));
    }
    let facts = subject.facts.iter().map(|(name, fact)| (*name, fact)).chain(figures.iter().map(|(name, fact)| (name.as_str(), fact)));
    let facts: String = facts.map(|(name, fact)| line(&name.replace('_', " "), &plain(fact))).collect();
    let cells = |cells: &[&str], tag: &str| cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect::<String>();
    let mut table = format!("<tr>{}</tr>\n", cells(&COLUMNS, "th"));
    for row in rows(filters) {
        let _ = writeln!(table, "<tr>{}</tr>", cells(&row.each_ref().map(String::as_str), "td"));
    }
    let task = if subject.equalize {
        "what was sent is predicted from what was received"
    } else {
        "what is received is predicted from what was sent"
    };
    let body = format!(
        "<p>One step ahead, {task}; the error (NMSE) is relative to the power of what is predicted: the lower the better.<br>{}.</p>\n{}\n\
         <table class=\"figures\">{table}</table>\n<table>{facts}</table>\n{drawn}<h2>Parameters</h2>\n<table>{parameters}</table>\n",
        escape(summary),
        source(subject),
    );
    let text = html("kaflow: channel tracking", &body);
    files::write(&folder.join("report.html"), text.as_bytes())
}

/// A page of `body` under a title.
pub(in crate::cli) fn html(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <style>:root{{color-scheme:light dark}}body{{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em}}\
         pre{{overflow-x:auto}}th,td{{padding:.1em 1.5em .1em 0;text-align:left;vertical-align:top}}\
         .figures :is(th,td):not(:first-child){{text-align:right;font-variant-numeric:tabular-nums}}summary{{cursor:pointer}}\
         figure{{margin:1.5em 0}}svg{{max-width:100%;height:auto;border-radius:4px}}</style>\n\
         </head><body>\n<h1>{title}</h1>\n{body}</body></html>\n"
    )
}

/// A fact as a reader wants it: three digits behind the point, lists in a row.
fn plain(fact: &Value) -> String {
    match fact {
        Value::String(text) => text.clone(),
        Value::Number(number) if number.is_f64() => format!("{:.3}", number.as_f64().unwrap_or(f64::NAN)),
        Value::Array(list) => list.iter().map(plain).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            map.iter().map(|(name, fact)| format!("{} {}", name.replace('_', " "), plain(fact))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

/// Recordings in a line; a test bed has a page of parameters, to be opened.
fn source(subject: &Subject) -> String {
    match subject.source.trim().contains('\n') {
        true => format!("<details><summary>The test bed's parameters</summary><pre>{}</pre></details>", escape(&subject.source)),
        false => format!("<p>{}</p>", escape(&subject.source)),
    }
}

pub(in crate::cli) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The error vectors of what was received, where the waveform is known.
#[cfg_attr(not(feature = "radio"), allow(dead_code))]
pub(in crate::cli) fn evm_percent(subject: &Subject, filters: &[Tracked<'_>]) -> Option<f64> {
    let points = super::constellation::points(subject, filters.first()?.stretch()?, super::constellation::MOST)?;
    Some(points.received_evm().percent())
}
