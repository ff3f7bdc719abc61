//! Numbers to pictures, SVG and PNG.
//!
//! A [`Figure`] holds plain numbers: panels with axes and marks. Functions such as [`nmse_over_time`] or [`constellations`] fill one in; [`Figure::save`]
//! writes it as SVG and PNG, [`Figure::svg`] gives it as a string for a report. The same filter has the same colour in all of them ([`style_of`]), taken
//! from palettes that the colour-blind can tell apart; a filter that shares a colour has another dash.
//!
//! In the SVG each `<g class="panel">` carries its frame (`data-frame`, left, top, width and height in px) and ranges (`data-x`, `data-y`), and each line its
//! name (`data-name`), so that the numbers can be read back from a picture.

pub(crate) mod axis;
mod colour;
mod draw;
mod figure;
mod layout;
mod legend;
mod png;
mod reduce;
mod run;
mod scene;
mod signal;
mod study;
mod svg;
mod text;

use std::path::{Path, PathBuf};

pub(crate) use axis::Axis;
#[cfg(feature = "cli")]
pub(crate) use colour::viridis;
pub(crate) use colour::{Style, style_at, style_of, styles_of};
pub(crate) use figure::{Figure, Grid, Mark, Panel};
pub(crate) use run::{NmseCurve, Part, Series, Taps, Weights, lines, nmse_over_time, taps_over_time, weights};
pub(crate) use signal::{AmplifierCurve, Constellation, Histogram, am_am_pm, constellations, envelope_histogram, psd, spectrogram};
pub(crate) use study::{Bar, Candidate, Field, bars, fields, landscape, repeats};

use crate::{Result, files as whole};

impl Figure {
    /// The picture as SVG, ready to stand in an HTML page beside others.
    pub(crate) fn svg(&self) -> String {
        svg::write(&layout::scene(self))
    }

    /// The picture as PNG, two pixels for each px of the SVG.
    #[cfg(test)]
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        png::write(&layout::scene(self))
    }

    /// Writes `path` when it ends in `.svg` or `.png`, else both `path.svg` and `path.png` (`-` is standard output and SVG), and says what it wrote. Each file appears whole or not at
    /// all, and replaces one that was there; folders are not made.
    pub(crate) fn save(&self, path: impl AsRef<Path>) -> Result<Vec<PathBuf>> {
        let path = path.as_ref();
        let files = files(path);
        let scene = layout::scene(self);
        for file in &files {
            let bytes = if file.extension().is_some_and(|e| e.eq_ignore_ascii_case("png")) {
                png::write(&scene)?
            } else {
                svg::write(&scene).into_bytes()
            };
            whole::write(file, &bytes)?;
        }
        Ok(files)
    }
}

/// The files that [`Figure::save`] writes for `path`: for callers that refuse to overwrite.
pub(crate) fn files(path: &Path) -> Vec<PathBuf> {
    let ending = path.extension().map(|e| e.to_ascii_lowercase());
    if ending.is_some_and(|e| e == "svg" || e == "png") || path.as_os_str() == "-" {
        return vec![path.to_owned()];
    }
    // Added, not exchanged: "run.v2" is a name without an ending of ours.
    let with = |ending: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(ending);
        PathBuf::from(name)
    };
    vec![with(".svg"), with(".png")]
}

#[cfg(test)]
#[path = "../../tests/unit/plot.rs"]
mod tests;
