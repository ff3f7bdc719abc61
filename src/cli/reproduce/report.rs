//! What a study leaves behind: pictures, numbers, and a table.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::cli::json;
use crate::plot::{self, Figure};
use crate::{Error, Result, files};

/// A value of a study and what it should be.
pub(super) struct Line {
    pub(super) name: String,
    pub(super) value: f64,
    /// Two standard errors, where the value is an average over simulations.
    pub(super) error: Option<f64>,
    pub(super) reference: Option<f64>,
    pub(super) note: String,
}

/// The files of one study, all under one name.
pub(super) struct Report {
    folder: PathBuf,
    name: String,
    /// What its JSON file says.
    pub(super) table: Value,
    /// What could not be written: no reason to keep the table back.
    pub(super) failures: Vec<Error>,
}

impl Report {
    pub(super) fn new(folder: &Path, name: &str) -> Self {
        Self { folder: folder.into(), name: name.into(), table: Value::Null, failures: Vec::new() }
    }

    pub(super) fn files(&self) -> Vec<PathBuf> {
        plot::files(&self.path("")).into_iter().chain([self.path(".csv"), self.path(".json")]).collect()
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    pub(super) fn figure(&mut self, figure: &Figure) {
        self.failures.extend(figure.save(self.path("")).err());
    }

    /// Any text, a CSV file of a form of its own.
    pub(super) fn text(&mut self, ending: &str, text: &str) {
        self.failures.extend(files::write(&self.path(ending), text.as_bytes()).err());
    }

    /// What was found, as JSON.
    pub(super) fn json(&mut self, found: Value) -> Result<()> {
        self.table = found.clone();
        json::write(&self.path(".json"), &format!("reproduce/{}", self.name), found)
    }

    /// Columns of numbers.
    pub(super) fn csv(&mut self, header: &[String], rows: impl Iterator<Item = Vec<f64>>) {
        let mut text = header.join(",") + "\n";
        for row in rows {
            text += &row.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
        self.text(".csv", &text);
    }

    /// The table on standard output, and as JSON together with `more`.
    pub(super) fn table(&mut self, title: &str, unit: &str, lines: &[Line], more: Value) -> Result<()> {
        say!("{title}");
        say!("  {:<34} {:>10} {:>10} {:>10}", "", format!("here, {unit}"), "+- 2 s.e.", "reference");
        let cell = |v: Option<f64>, decimals| v.map_or(String::new(), |v| format!("{v:.decimals$}"));
        for line in lines {
            let values = format!("{:>10.3} {:>10} {:>10}", line.value, cell(line.error, 3), cell(line.reference, 3));
            say!("  {:<34} {values}  {}", line.name, line.note);
        }
        say!("  in {}", self.path(".{svg,png,csv,json}").display());
        let rows: Vec<_> = lines
            .iter()
            .map(|l| json!({"name": l.name, "value": l.value, "two_standard_errors": l.error, "reference": l.reference, "note": l.note}))
            .collect();
        self.json(json!({"title": title, "unit": unit, "results": rows, "settings": more}))
    }
}

/// Mean and two standard errors.
pub(in crate::cli) fn mean_and_error(values: &[f64]) -> (f64, f64) {
    let n = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    (mean, 2.0 * (variance / n).sqrt())
}

/// A power ratio and the half width of its interval, in dB.
pub(super) fn db(mean: f64, error: f64) -> (f64, f64) {
    (crate::dsp::db(mean, 1.0), 10.0 / std::f64::consts::LN_10 * error / mean)
}
