//! What a run leaves behind: a table, JSON, curves, pictures, a page.

use std::{fmt::Write as _, io::Write as _, path::Path, time::Duration};

use serde_json::{Map, Value, json};

use super::{
    Args,
    graph::{Outcome, Tracked},
    input::Survey,
    pictures::{self, Picture},
};
use crate::{Error, Result, files::Output, plot};

/// Refuses a folder that holds results already, unless they may be replaced.
pub(super) fn check_folder(folder: &Path, force: bool) -> Result<()> {
    if folder.is_file() {
        return Err(Error::file(folder, "output", "is a file; name a folder"));
    }
    let of = |name: &&str| plot::files(&folder.join(name)).into_iter().chain([folder.join(format!("{name}.csv"))]);
    let taken = std::iter::once(folder.join("report.html")).chain(pictures::NAMES.iter().flat_map(of)).find(|path| path.exists());
    match taken {
        Some(path) if !force => Err(Error::file(path, "output", "exists already; name another folder or add --force")),
        _ => Ok(()),
    }
}

/// The filters, the best first; those that diverged last.
pub(super) fn by_error(outcome: &Outcome) -> Vec<&Tracked> {
    let mut filters: Vec<_> = outcome.filters.iter().collect();
    let key = |f: &Tracked| if f.total.nmse_db().is_nan() { f64::INFINITY } else { f.total.nmse_db() };
    filters.sort_by(|a, b| key(a).total_cmp(&key(b)));
    filters
}

pub(super) fn write(args: &Args, survey: &Survey, outcome: &Outcome, elapsed: Duration) -> Result<()> {
    if let Some(path) = &args.json {
        let mut out = Output::create(path, args.force)?;
        let text = serde_json::to_string_pretty(&json(args, survey, outcome)).map_err(|e| Error::file(path, "json", e.to_string()))?;
        writeln!(out, "{text}").map_err(|e| Error::io(path, e))?;
        out.finish()?;
    }
    let summary = summary(args, survey, outcome, elapsed);
    if let Some(folder) = &args.out {
        files(args, survey, outcome, folder, &summary)?;
    }
    let mut stdout = std::io::stdout().lock();
    let _ = write!(stdout, "{summary}\n\n{}", table(outcome));
    if let Some(folder) = &args.out {
        let _ = writeln!(stdout, "{}", folder.join("report.html").display());
    }
    Ok(())
}

/// One line on what was tracked.
fn summary(args: &Args, survey: &Survey, outcome: &Outcome, elapsed: Duration) -> String {
    let samples = outcome.filters.iter().map(|f| f.samples).max().unwrap_or(0);
    let mut line = format!("{samples} samples in {:.1} s", elapsed.as_secs_f64());
    if survey.real {
        line += ", real-valued";
    }
    if args.skip > 0 {
        let _ = write!(line, ", the first {} not averaged", args.skip);
    }
    if let Some(a) = &survey.alignment {
        let _ = write!(line, ", delay {:.2} samples", a.delay);
        let cfo = survey.sample_rate.map_or(format!("{:.3e} cycles a sample", a.cfo), |rate| format!("{:.1} Hz", a.cfo * rate));
        let _ = write!(line, ", carrier offset {cfo}");
    } else if survey.delay != 0.0 {
        let _ = write!(line, ", delay {} samples", survey.delay);
    }
    if outcome.lost > 0 {
        let _ = write!(line, ", {} missing", outcome.lost);
    }
    if outcome.interrupted {
        line += ", interrupted";
    }
    line
}

const COLUMNS: [&str; 5] = ["filter", "NMSE dB", "centres", "MS/s", "p99 latency"];

/// A row of the table for each filter, the best first.
fn rows(outcome: &Outcome) -> Vec<[String; 5]> {
    let row = |f: &Tracked| {
        let (error, rate) = (format!("{:.2}", f.total.nmse_db()), format!("{:.3}", f.rate / 1e6));
        [f.name.to_owned(), error, f.centres.to_string(), rate, duration(f.p99)]
    };
    by_error(outcome).into_iter().map(row).collect()
}

fn table(outcome: &Outcome) -> String {
    let line = |[name, error, centres, rate, p99]: [&str; 5]| format!("{name:<12} {error:>8} {centres:>8} {rate:>9} {p99:>12}\n");
    line(COLUMNS) + &rows(outcome).iter().map(|row| line(row.each_ref().map(String::as_str))).collect::<String>() + &bounded(outcome)
}

/// Filters that had to make steps smaller than they were told to.
fn bounded(outcome: &Outcome) -> String {
    let line = |f: &&Tracked| {
        let (name, steps) = (&f.name, f.portrait.bounded_steps);
        format!("{name}: eta is too large for this input, {steps} steps were made smaller; leave it out, or give a diffusion ratio\n")
    };
    by_error(outcome).iter().filter(|f| f.portrait.bounded_steps > 0).map(line).collect()
}

fn duration(d: Duration) -> String {
    match d.as_secs_f64() {
        s if s < 1e-3 => format!("{:.0} us", 1e6 * s),
        s if s < 1.0 => format!("{:.1} ms", 1e3 * s),
        s => format!("{s:.2} s"),
    }
}

fn json(args: &Args, survey: &Survey, outcome: &Outcome) -> Value {
    let mut alignment = survey.alignment.as_ref().and_then(|a| serde_json::to_value(a).ok()).unwrap_or_else(|| json!({}));
    if let Value::Object(map) = &mut alignment {
        map.insert("delay".into(), json!(survey.delay));
        map.insert("method".into(), json!(if survey.alignment.is_some() { "auto" } else { "none" }));
        map.insert("taps_ahead".into(), json!(survey.advance));
    }
    let filters: Vec<_> = by_error(outcome)
        .into_iter()
        .map(|f| {
            let mut parameters: Map<String, Value> = Map::from_iter([("taps".to_owned(), json!(args.taps))]);
            parameters.extend(f.settings.values().iter().map(|(name, value)| (name.clone(), json!(value))));
            json!({
                "name": f.name,
                "parameters": parameters,
                "nmse_db": f.total.nmse_db(),
                "samples": f.samples,
                "centres": f.centres,
                "samples_per_second": f.rate,
                "p99_latency_seconds": f.p99.as_secs_f64(),
            })
        })
        .collect();
    json!({
        "alignment": alignment,
        "real": survey.real,
        "sample_rate": survey.sample_rate,
        "skip": args.skip,
        "missing_samples": outcome.lost,
        "interrupted": outcome.interrupted,
        "filters": filters,
    })
}

/// Curves, pictures and the page.
fn files(args: &Args, survey: &Survey, outcome: &Outcome, folder: &Path, summary: &str) -> Result<()> {
    let filters = by_error(outcome);
    let mut figures = String::new();
    for Picture { name, figure, csv } in pictures::all(args, survey, outcome)? {
        figure.save(folder.join(name))?;
        let _ = writeln!(figures, "<figure>{}</figure>", figure.svg());
        if !csv.is_empty() {
            let path = folder.join(format!("{name}.csv"));
            let mut out = Output::create(&path, true)?;
            out.write_all(csv.as_bytes()).map_err(|e| Error::io(&path, e))?;
            out.finish()?;
        }
    }
    let mut parameters = String::new();
    for f in &filters {
        let values: Vec<_> = f.settings.values().iter().map(|(name, value)| format!("{name} {value}")).collect();
        let _ = writeln!(parameters, "<tr><td>{}</td><td>{}</td></tr>", f.name, escape(&values.join(", ")));
    }
    let cells = |cells: &[&str], tag: &str| cells.iter().map(|cell| format!("<{tag}>{cell}</{tag}>")).collect::<String>();
    let mut table = format!("<tr>{}</tr>\n", cells(&COLUMNS, "th"));
    for row in rows(outcome) {
        let _ = writeln!(table, "<tr>{}</tr>", cells(&row.each_ref().map(String::as_str), "td"));
    }
    let task = if args.equalize {
        "what was sent is predicted from what was received"
    } else {
        "what is received is predicted from what was sent"
    };
    let path = folder.join("report.html");
    let mut page = Output::create(&path, true)?;
    let text = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>kaflow: channel tracking</title>\n\
         <meta name=\"viewport\" content=\"width=device-width\">\n\
         <style>:root{{color-scheme:light dark}}body{{font:15px/1.5 sans-serif;max-width:62em;margin:2em auto;padding:0 1em}}\
         pre{{overflow-x:auto}}th,td{{padding:.1em 1.5em .1em 0;text-align:left;vertical-align:top}}\
         .figures :is(th,td):not(:first-child){{text-align:right;font-variant-numeric:tabular-nums}}summary{{cursor:pointer}}\
         figure{{margin:1.5em 0}}svg{{max-width:100%;height:auto;border-radius:4px}}</style>\n\
         </head><body>\n<h1>kaflow: channel tracking</h1>\n\
         <p>One step ahead, {task}; the error (NMSE) is relative to the power of what is predicted: the lower the better.<br>{}.</p>\n{}\n\
         <table class=\"figures\">{table}</table>\n{figures}<h2>Parameters</h2>\n\
         <table><tr><td>all</td><td>taps {}, ahead {}, skip {}</td></tr>\n{parameters}</table>\n</body></html>\n",
        escape(summary),
        source(survey),
        args.taps,
        survey.advance,
        args.skip,
    );
    page.write_all(text.as_bytes()).map_err(|e| Error::io(&path, e))?;
    page.finish()
}

/// Recordings in a line; a test bed has a page of parameters, to be opened.
fn source(survey: &Survey) -> String {
    match survey.source.trim().contains('\n') {
        true => format!("<details><summary>The test bed's parameters</summary><pre>{}</pre></details>", escape(&survey.source)),
        false => format!("<p>{}</p>", escape(&survey.source)),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
