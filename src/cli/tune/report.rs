//! What tuning leaves behind: the parameter file, pictures, a table.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use crate::files::{Output, check_free};
use crate::filter::registry::Values;
use crate::plot::{self, Figure};
use crate::{Error, Result};

/// A filter with its parameters.
pub(super) struct Tuned {
    pub(super) name: &'static str,
    pub(super) values: Values,
    /// NMSE with the parameters that nobody tuned.
    pub(super) untuned_db: f64,
    pub(super) db: f64,
    pub(super) note: String,
    /// Candidates, or smoothings.
    pub(super) tried: usize,
}

/// Where it goes.
pub(super) struct Files {
    params: PathBuf,
    /// Pictures are called this and the filter's name.
    pictures: PathBuf,
    force: bool,
}

impl Files {
    /// A path that ends in `.toml` is the parameter file, pictures beside it; any other is a folder.
    pub(super) fn new(out: &Path, force: bool) -> Result<Self> {
        if out.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml")) {
            let mut stem = out.with_extension("").into_os_string();
            stem.push("-");
            return Ok(Self { params: out.into(), pictures: stem.into(), force });
        }
        std::fs::create_dir_all(out).map_err(|e| Error::io(out, e))?;
        Ok(Self { params: out.join("params.toml"), pictures: out.join(""), force })
    }

    fn picture(&self, filter: &str) -> PathBuf {
        let mut path = self.pictures.clone().into_os_string();
        path.push(filter);
        path.into()
    }

    /// Refuses, before any work, to replace what is there.
    pub(super) fn check(&self, mut filters: impl Iterator<Item = &'static str>) -> Result<()> {
        check_free(&self.params, self.force)?;
        filters.try_for_each(|filter| plot::files(&self.picture(filter)).iter().try_for_each(|file| check_free(file, self.force)))
    }

    pub(super) fn write(&self, tuned: &[Tuned], pictures: &[(&'static str, Figure)], heading: &str) -> Result<()> {
        let mut text = heading.to_owned();
        for filter in tuned {
            let values = toml::to_string(&filter.values).map_err(|e| Error::file(&self.params, filter.name, e.to_string()))?;
            let note = if filter.note.is_empty() { String::new() } else { format!(", {}", filter.note) };
            text += &format!("\n# NMSE {:.2} dB{note}\n[{}]\n{values}", filter.db, filter.name);
        }
        let mut out = Output::create(&self.params, self.force)?;
        out.write_all(text.as_bytes()).map_err(|e| Error::io(&self.params, e))?;
        out.finish()?;
        pictures.iter().try_for_each(|(filter, figure)| figure.save(self.picture(filter)).map(drop))
    }
}

/// The table on standard output.
pub(super) fn print(tuned: &[Tuned], notes: &[String], files: &Files) {
    for note in notes {
        say!("{note}");
    }
    say!("{:<12} {:>10} {:>10} {:>6}  parameters", "filter", "untuned dB", "tuned dB", "tried");
    let mut order: Vec<&Tuned> = tuned.iter().collect();
    order.sort_by(|a, b| a.db.total_cmp(&b.db));
    for filter in order {
        let values: Vec<String> = filter.values.iter().map(|(name, value)| format!("{name} {value}")).collect();
        say!("{:<12} {:>10.2} {:>10.2} {:>6}  {}", filter.name, filter.untuned_db, filter.db, filter.tried, values.join(", "));
        if !filter.note.is_empty() {
            say!("{:<12} {}", "", filter.note);
        }
    }
    say!("{}", files.params.display());
}
