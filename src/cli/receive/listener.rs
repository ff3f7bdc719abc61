//! The packets of a radio, while it runs.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};

use super::{Outcome, receiver, report, waveform, written};
use crate::blocks::OfdmRx;
use crate::ofdm::{Config, Method, Reading};
use crate::{Error, Result};

/// Packets that are listed: a radio never ends.
const MOST: usize = 10_000;

/// Receives packets beside whatever else is done with a stream.
pub(in crate::cli) struct Listener {
    config: Config,
    found: Arc<Mutex<Outcome>>,
}

impl Listener {
    /// Listens for packets of `ours`, or of what `name` says: a preset or a TOML file.
    pub(in crate::cli) fn new(name: Option<&str>, ours: Option<&Config>, method: Method) -> Result<Self> {
        let (config, origin) = match (name, ours) {
            (None, Some(ours)) => (ours.clone(), "what is sent".to_owned()),
            (None, None) => {
                return Err(Error::parameter("receive", "a waveform where a frame comes from a file: a preset or a TOML file", "none"));
            }
            (Some(name), _) => match waveform::by_name(name)? {
                waveform::Waveform::Frames(config) => (config, name.to_owned()),
                waveform::Waveform::Station => {
                    let problem = "frames of one length; those of stations are received from a recording, with `kaflow receive`";
                    return Err(Error::parameter("receive", problem, name));
                }
            },
        };
        let mut found = Outcome::new(waveform::Waveform::Frames(config.clone()), origin, method);
        found.reception.most = Some(MOST);
        Ok(Self { config, found: Arc::new(Mutex::new(found)) })
    }

    /// What [`report`](Self::report) writes to a folder.
    pub(in crate::cli) fn files(folder: &Path) -> Vec<PathBuf> {
        written(folder).collect()
    }

    /// The block that receives at so many samples a second.
    pub(in crate::cli) fn block(&self, rate: f64) -> Result<OfdmRx> {
        let mut outcome = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.rate = Some(rate);
        let reading = Reading { method: outcome.method, curve: None, oversampling: None };
        let (config, found) = (self.config.clone(), self.found.clone());
        Ok(OfdmRx::new(receiver(&config, &reading)?).tell(move |receiver, packet| {
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            found.know(receiver);
            packet.into_iter().for_each(|packet| found.reception.push(&config, packet));
        }))
    }

    /// How it goes, in a few words.
    pub(in crate::cli) fn words(&self) -> String {
        let r = &self.found.lock().unwrap_or_else(PoisonError::into_inner).reception;
        format!("{} packets, {} decoded, EVM {:.1} %", r.found, r.decoded, r.evm.percent())
    }

    /// The figures for a report.
    pub(in crate::cli) fn figures(&self) -> Value {
        let found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        let r = &found.reception;
        let some = |value: f64| (r.found > 0).then_some(value);
        json!({
            "detector": found.method.name(),
            "packets_found": r.found,
            "packets_decoded": r.decoded,
            "evm_percent": some(r.evm.percent()),
            "evm_one_tap_percent": (r.one_tap.points() > 0).then(|| r.one_tap.percent()),
            "snr_db": some(r.snr_db()),
            "carrier_offset_hz": found.rate.and_then(|rate| some(r.offset() * rate)),
        })
    }

    /// Prints what came of it and, where there is a folder, writes packets, pictures and a page.
    pub(in crate::cli) fn report(&self, source: &str, samples: u64, json: Option<&Path>, folder: Option<&Path>) -> Result<()> {
        let mut found = self.found.lock().unwrap_or_else(PoisonError::into_inner);
        found.samples = samples;
        report::write(Path::new(source), &found, json, folder)
    }
}
