//! What tuning leaves behind: the parameter file, pictures, a table.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use crate::cli::json;
use crate::filter::registry::Values;
use crate::plot::{self, Figure};
use crate::{Error, Result, files};

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
    pub(super) params: PathBuf,
    /// Pictures are called this and the filter's name.
    pictures: PathBuf,
    folder: Option<PathBuf>,
}

impl Files {
    /// A folder, or the parameter file with the pictures beside it; a folder that ends in `.toml` is meant as the file.
    pub(super) fn new(out: Option<&Path>, output: Option<&Path>) -> Self {
        let file = out.filter(|out| out.extension().is_some_and(|e| e.eq_ignore_ascii_case("toml"))).or(output);
        match (file, out) {
            (None, Some(out)) => Self { params: out.join("params.toml"), pictures: out.join(""), folder: Some(out.into()) },
            (file, _) => {
                let params = file.unwrap_or(Path::new("params.toml"));
                let mut stem = params.with_extension("").into_os_string();
                stem.push("-");
                Self { params: params.into(), pictures: stem.into(), folder: None }
            }
        }
    }

    pub(super) fn folder(&self) -> Option<&Path> {
        self.folder.as_deref()
    }

    fn picture(&self, filter: &str) -> PathBuf {
        let mut path = self.pictures.clone().into_os_string();
        path.push(filter);
        path.into()
    }

    /// All files for these filters.
    pub(super) fn all(&self, filters: impl Iterator<Item = &'static str>) -> Vec<PathBuf> {
        std::iter::once(self.params.clone()).chain(filters.flat_map(|filter| plot::files(&self.picture(filter)))).collect()
    }

    pub(super) fn write(&self, tuned: &[Tuned], pictures: &[(&'static str, Figure)], heading: &str) -> Result<()> {
        let mut text = heading.to_owned();
        for filter in tuned {
            let values = toml::to_string(&filter.values).map_err(|e| Error::file(&self.params, filter.name, e.to_string()))?;
            let note = if filter.note.is_empty() { String::new() } else { format!(", {}", filter.note) };
            text += &format!("\n# NMSE {:.2} dB{note}\n[{}]\n{values}", filter.db, filter.name);
        }
        self.folder.as_deref().map_or(Ok(()), files::make_folder)?;
        files::write(&self.params, text.as_bytes())?;
        pictures.iter().try_for_each(|(filter, figure)| figure.save(self.picture(filter)).map(drop))
    }
}

/// The table on standard output.
pub(super) fn print(tuned: &[Tuned], notes: &[String]) {
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
}

/// The same as JSON.
pub(super) fn figures(tuned: &[Tuned], notes: &[String], samples: usize) -> Value {
    let filters: Vec<_> = tuned
        .iter()
        .map(|filter| {
            let parameters: Map<_, _> = filter.values.iter().map(|(name, value)| (name.clone(), json::parameter(value))).collect();
            json!({ "name": filter.name, "parameters": parameters, "nmse_db": filter.db, "untuned_nmse_db": filter.untuned_db, "tried": filter.tried, "note": filter.note })
        })
        .collect();
    json!({ "samples": samples, "notes": notes, "filters": filters })
}
