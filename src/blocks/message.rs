//! Reading message values, and answering bad ones.

use std::collections::HashMap;

use futuresdr::runtime::Pmt;
use futuresdr::tracing::warn;

use crate::{Error, Result};

/// A number of whatever width.
pub(super) fn number(p: &Pmt) -> Option<f64> {
    match p {
        Pmt::F32(v) => Some(f64::from(*v)),
        Pmt::F64(v) => Some(*v),
        Pmt::U32(v) => Some(f64::from(*v)),
        Pmt::U64(v) => Some(*v as f64),
        Pmt::Usize(v) => Some(*v as f64),
        Pmt::Isize(v) => Some(*v as f64),
        _ => None,
    }
}

/// `Bool`, or the words "on" and "off".
pub(super) fn switch(p: &Pmt) -> Result<bool> {
    match p {
        Pmt::Bool(b) => Ok(*b),
        Pmt::String(s) if s == "on" => Ok(true),
        Pmt::String(s) if s == "off" => Ok(false),
        _ => Err(Error::parameter("the switch", "Bool, or String \"on\" or \"off\"", p)),
    }
}

/// `MapStrPmt { name: number }` with one entry, or the text `name=number`.
pub(super) fn assignment(p: &Pmt) -> Result<(String, f64)> {
    let found = match p {
        Pmt::MapStrPmt(map) if map.len() == 1 => {
            map.iter().next().and_then(|(name, value)| number(value).map(|value| (name.clone(), value)))
        }
        Pmt::String(text) => text.split_once('=').and_then(|(name, value)| Some((name.trim().to_owned(), value.trim().parse().ok()?))),
        _ => None,
    };
    found.ok_or_else(|| Error::parameter("the message", "one name with its number, as a map or as \"name=number\"", p))
}

/// The text of a message that must be one.
pub(super) fn text(p: &Pmt) -> Result<&str> {
    match p {
        Pmt::String(s) => Ok(s),
        _ => Err(Error::parameter("the message", "a String", p)),
    }
}

/// Turns the outcome of a message into its answer. A connected block that has finished asks for nothing.
pub(super) fn answer(port: &str, p: &Pmt, handle: impl FnOnce(&Pmt) -> Result<()>) -> futuresdr::runtime::Result<Pmt> {
    if matches!(p, Pmt::Finished) {
        return Ok(Pmt::Ok);
    }
    Ok(match handle(p) {
        Ok(()) => Pmt::Ok,
        Err(error) => {
            warn!("{port}: {error}");
            Pmt::InvalidValue
        }
    })
}

/// A map from the names to the numbers.
pub(super) fn map<const N: usize>(entries: [(&str, Pmt); N]) -> Pmt {
    Pmt::MapStrPmt(HashMap::from(entries.map(|(name, value)| (name.to_owned(), value))))
}
