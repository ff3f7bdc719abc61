//! What is drawn: the filters' glimpses and histories as a frame.

use num_complex::Complex64;

use super::super::{Subject, constellation, learned, signal::spectrum};
use super::desk::Desk;
use super::history::History;
use crate::blocks::Stretch;
use crate::flowgraphs::track::{Seen, View};
use crate::plot::AmplifierCurve;
use crate::serve::frame::{Frame, Kind};

/// Points of a cloud: more only hide one another.
const CLOUD: usize = 1000;
/// Taps of one filter.
const TAPS: usize = 64;

/// Draws frames.
pub(super) struct Draw(Vec<Drawn>);

/// What was drawn of a filter.
#[derive(Default)]
struct Drawn {
    /// Where its glimpse began, and the sections that show it.
    start: Option<u64>,
    sections: Vec<u8>,
    taps: History<Vec<f32>>,
    members: History<Vec<f32>>,
}

impl Draw {
    pub(super) fn new(filters: usize) -> Self {
        Self((0..filters).map(|_| Drawn::default()).collect())
    }

    /// A frame of this moment. Asks all filters for a glimpse, which the next frame shows.
    pub(super) fn frame(&mut self, subject: &Subject, view: &View<'_>, desk: &Desk) -> Vec<u8> {
        let mut frame = Frame::default();
        for (n, (drawn, seen)) in self.0.iter_mut().zip(view.filters).enumerate() {
            if let Some(stretch) = seen.probe.glimpse().filter(|stretch| drawn.start != Some(stretch.start)) {
                drawn.start = Some(stretch.start);
                drawn.see(subject, n, seen, &stretch);
            }
            frame.append(&drawn.sections);
            let errors = desk.errors(n);
            let samples = errors.last().map_or(0, |point| point.0);
            frame.table(Kind::Nmse, n, samples, &errors);
        }
        frame.bytes()
    }
}

impl Drawn {
    fn see(&mut self, subject: &Subject, n: usize, seen: &Seen, stretch: &Stretch) {
        let end = stretch.start + stretch.target.len() as u64;
        let mut frame = Frame::default();
        let rate = subject.sample_rate.filter(|rate| *rate > 0.0).unwrap_or(1.0);
        for (kind, samples) in [(Kind::Target, &stretch.target), (Kind::Prediction, &stretch.prediction), (Kind::Error, &stretch.error())] {
            if let Ok(Some(psd)) = spectrum(samples, rate) {
                frame.section(kind, n, end, psd.db().into_iter().map(|db| db as f32));
            }
        }
        if let Some(points) = constellation::points(subject, stretch, CLOUD) {
            for (kind, cloud) in [(Kind::OneTap, points.one_tap), (Kind::Equalised, points.equalised)] {
                frame.section(kind, n, end, cloud.iter().flat_map(|z| [z.re, z.im]));
            }
        }
        if let Some((measured, curve)) = learned::curve_and_dots(subject, &seen.name, stretch, CLOUD) {
            frame.section(Kind::Dots, n, end, triples(&measured));
            if let Some(curve) = curve {
                frame.section(Kind::Curve, n, end, triples(&curve));
            }
        }
        let taps: Vec<Vec<f32>> = stretch.taps.iter().map(|taps| flat(taps)).collect();
        let members = stretch.portraits.iter().map(|p| p.members.iter().map(|m| m.1 as f32).collect()).collect();
        let tables = [
            (Kind::Taps, Kind::TapsOfRun, taps, Stretch::PIECE, &mut self.taps),
            (Kind::Members, Kind::MembersOfRun, members, Stretch::SCENE, &mut self.members),
        ];
        for (kind, of_run, rows, step, history) in tables {
            let at = |k: usize| stretch.start + (k * step) as u64;
            if let Some(last) = rows.last().filter(|last| !last.is_empty()) {
                history.offer(end, last.clone());
                frame.table(of_run, n, end, &padded(history.moments().to_vec()));
                frame.table(kind, n, end, &padded(rows.into_iter().enumerate().map(|(k, row)| (at(k), row)).collect()));
            }
        }
        self.sections = frame.bytes();
    }
}

fn flat(taps: &[Complex64]) -> Vec<f32> {
    taps.iter().take(TAPS).flat_map(|h| [h.re as f32, h.im as f32]).collect()
}

/// Rows of one width: a tap that a filter did not have just then is zero.
fn padded(mut rows: Vec<(u64, Vec<f32>)>) -> Vec<(u64, Vec<f32>)> {
    let width = rows.iter().map(|(_, row)| row.len()).max().unwrap_or(0);
    rows.iter_mut().for_each(|(_, row)| row.resize(width, 0.0));
    rows
}

fn triples(curve: &AmplifierCurve) -> Vec<f32> {
    let points = curve.input.iter().zip(&curve.output).zip(&curve.phase_deg);
    points.flat_map(|((x, y), phase)| [*x as f32, *y as f32, *phase as f32]).collect()
}
