//! The options that choose an amplifier.

use std::path::{Path, PathBuf};

use clap::ValueEnum;

use crate::channel::{AmplifierConfig, Model, Point, Scenario, Term};
use crate::{Error, Result, files};

#[derive(clap::Args, Default)]
pub(super) struct Amplifier {
    /// Which model; memory-polynomial needs --terms, table needs --points
    #[arg(long)]
    amplifier: Option<Kind>,
    /// Input back-off in dB: saturation power over mean input power; negative is overdriven
    #[arg(long)]
    ibo_db: Option<f64>,
    /// Knee p of a Rapp amplifier
    #[arg(long)]
    smoothness: Option<f64>,
    /// Constants of a Saleh amplifier: alpha_a,beta_a,alpha_phi,beta_phi
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true)]
    saleh: Option<Vec<f64>>,
    /// Terms of a memory polynomial as order:delay:re:im, such as 1:0:1:0,3:0:-0.1:0.02
    #[arg(long, value_delimiter = ',')]
    terms: Option<Vec<String>>,
    /// Measured points of an amplifier: CSV with the columns input, output and phase_deg
    #[arg(long, value_name = "FILE")]
    pub(super) points: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Kind {
    None,
    Limiter,
    Rapp,
    Saleh,
    MemoryPolynomial,
    Table,
}

impl Amplifier {
    pub(super) fn apply(&self, scenario: &mut Scenario) -> Result<()> {
        let ibo_db = self.ibo_db.or(scenario.amplifier.as_ref().map(|a| a.ibo_db)).unwrap_or(0.0);
        let given = [
            (self.smoothness.is_some(), Kind::Rapp, "smoothness"),
            (self.saleh.is_some(), Kind::Saleh, "saleh"),
            (self.terms.is_some(), Kind::MemoryPolynomial, "terms"),
            (self.points.is_some(), Kind::Table, "points"),
        ];
        let mut kind = self.amplifier;
        for (_, implied, option) in given.into_iter().filter(|g| g.0) {
            if *kind.get_or_insert(implied) != implied {
                let name = |k: Kind| k.to_possible_value().map_or(String::new(), |v| v.get_name().to_owned());
                return Err(Error::parameter(
                    "amplifier",
                    format!("{} when --{option} is given", name(implied)),
                    kind.map_or(String::new(), name),
                ));
            }
        }
        let model = match kind {
            None => match (&scenario.amplifier, self.ibo_db) {
                (Some(amplifier), _) => amplifier.model.clone(),
                (None, None) => return Ok(()),
                (None, Some(ibo_db)) => return Err(Error::parameter("ibo_db", "left out, or --amplifier given", ibo_db)),
            },
            Some(Kind::None) => {
                scenario.amplifier = None;
                return Ok(());
            }
            Some(Kind::Limiter) => Model::Limiter,
            Some(Kind::Rapp) => Model::Rapp { smoothness: self.smoothness.unwrap_or(2.0) },
            Some(Kind::Saleh) => match self.saleh.as_deref() {
                Some(&[alpha_a, beta_a, alpha_phi, beta_phi]) => Model::Saleh { alpha_a, beta_a, alpha_phi, beta_phi },
                Some(other) => return Err(Error::parameter("saleh", "four numbers", other.len())),
                None => Model::saleh(),
            },
            Some(Kind::MemoryPolynomial) => {
                let terms = self.terms.as_ref().ok_or_else(|| Error::parameter("terms", "given for a memory polynomial", "nothing"))?;
                Model::MemoryPolynomial { terms: terms.iter().map(|t| term(t)).collect::<Result<_>>()? }
            }
            Some(Kind::Table) => {
                let path = self.points.as_ref().ok_or_else(|| Error::parameter("points", "given for a table", "nothing"))?;
                Model::Table { points: points(path)? }
            }
        };
        scenario.amplifier = Some(AmplifierConfig { ibo_db, model });
        Ok(())
    }
}

/// Reads `order:delay:re:im`; the imaginary part may be left out.
fn term(text: &str) -> Result<Term> {
    let parse = || {
        let mut fields = text.split(':').map(str::trim);
        let term = Term {
            order: fields.next()?.parse().ok()?,
            delay: fields.next()?.parse().ok()?,
            re: fields.next()?.parse().ok()?,
            im: fields.next().map_or(Some(0.0), |im| im.parse().ok())?,
        };
        fields.next().is_none().then_some(term)
    };
    parse().ok_or_else(|| Error::parameter("terms", "a list of order:delay:re:im", format!("'{text}'")))
}

fn points(path: &Path) -> Result<Vec<Point>> {
    let bad = |e: csv::Error| match e.kind() {
        csv::ErrorKind::Io(_) => Error::file(path, "file", e.to_string()),
        _ => Error::file(path, e.position().map_or("header".into(), |p| format!("line {}", p.line())), e.to_string()),
    };
    let text = files::read(path, files::CONFIGURATION)?;
    csv::Reader::from_reader(text.as_slice()).deserialize().collect::<std::result::Result<_, _>>().map_err(bad)
}
