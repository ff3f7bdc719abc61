//! What a study leaves behind: pictures, numbers, and a table.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::files::{Output, check_free};
use crate::plot::{self, Figure};
use crate::{Error, Result};

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
    force: bool,
}

impl Report {
    /// Refuses, before any work, to replace results of the same name.
    pub(super) fn new(folder: &Path, name: &str, force: bool) -> Result<Self> {
        let report = Self { folder: folder.into(), name: name.into(), force };
        let mut files = plot::files(&report.path(""));
        files.extend([report.path(".csv"), report.path(".json")]);
        files.iter().try_for_each(|file| check_free(file, force))?;
        Ok(report)
    }

    fn path(&self, ending: &str) -> PathBuf {
        self.folder.join(format!("{}{ending}", self.name))
    }

    pub(super) fn figure(&self, figure: &Figure) -> Result<()> {
        figure.save(self.path("")).map(drop)
    }

    /// Any text, a CSV or JSON file of a form of its own.
    pub(super) fn text(&self, ending: &str, text: &str) -> Result<()> {
        let path = self.path(ending);
        let mut out = Output::create(&path, self.force)?;
        out.write_all(text.as_bytes()).map_err(|e| Error::io(&path, e))?;
        out.finish()
    }

    /// Columns of numbers.
    pub(super) fn csv(&self, header: &[String], rows: impl Iterator<Item = Vec<f64>>) -> Result<()> {
        let path = self.path(".csv");
        let mut out = Output::create(&path, self.force)?;
        let mut text = header.join(",") + "\n";
        for row in rows {
            text += &row.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>().join(",");
            text.push('\n');
        }
        out.write_all(text.as_bytes()).map_err(|e| Error::io(&path, e))?;
        out.finish()
    }

    /// The table on standard output, and as JSON together with `more`.
    pub(super) fn table(&self, title: &str, unit: &str, lines: &[Line], more: Value) -> Result<()> {
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
        self.json(json!({"study": self.name, "title": title, "unit": unit, "results": rows, "settings": more}))
    }

    /// Numbers of a form of their own.
    pub(super) fn json(&self, found: Value) -> Result<()> {
        crate::cli::json::write(&self.path(".json"), "reproduce", found)
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
