//! Pictures of signals: amplifier curves, spectra, constellations, envelopes.

use num_complex::Complex64;

use super::axis::{Axis, Scale};
use super::colour::{BLUE, Dash, INK, Style, VERMILLION, style_of, styles_of};
use super::figure::{Figure, Grid, Mark, Panel};
use super::run::{Series, lines};

/// What an amplifier does to amplitudes: one entry for each sample or for each point of a curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct AmplifierCurve {
    /// Its name in the legend: "measured", or the filter that learned it.
    pub name: String,
    /// Input amplitude.
    pub input: Vec<f64>,
    /// Output amplitude.
    pub output: Vec<f64>,
    /// Phase of the output against the input, in degrees.
    pub phase_deg: Vec<f64>,
}

/// AM/AM and AM/PM side by side: measured samples as dots, learned curves as lines above them.
pub(crate) fn am_am_pm(title: impl Into<String>, measured: &AmplifierCurve, learned: &[AmplifierCurve]) -> Figure {
    let panel = |title: &str, y: Axis, pick: fn(&AmplifierCurve) -> &[f64]| {
        let points = |curve: &AmplifierCurve| curve.input.iter().zip(pick(curve)).map(|(&x, &y)| [x, y]).collect::<Vec<_>>();
        let mut panel = Panel::new(Axis::new("input amplitude", ""), y).titled(title).height(380.0);
        let style = style_of(&measured.name).width(2.4).opacity(0.45);
        panel.marks.push(Mark::Dots { name: measured.name.clone(), points: points(measured), style, ring: false });
        let names: Vec<&str> = learned.iter().map(|c| c.name.as_str()).collect();
        for (curve, style) in learned.iter().zip(styles_of(&names)) {
            let mut points = points(curve);
            points.sort_by(|a, b| a[0].total_cmp(&b[0]));
            panel.marks.push(Mark::Line { name: curve.name.clone(), note: String::new(), points, style: style.width(2.4) });
        }
        panel
    };
    // The phase of the smallest samples is noise: one in a hundred may fall outside.
    let mut phases: Vec<f64> = measured.phase_deg.iter().copied().filter(|p| p.is_finite()).collect();
    phases.sort_by(f64::total_cmp);
    let at = |share: f64| phases.get((share * phases.len() as f64) as usize).copied();
    let bulk = [at(0.005), at(0.995)].into_iter().flatten();
    let Scale { lo, hi, .. } = Scale::around(&Axis::default(), bulk.chain(learned.iter().flat_map(|c| &c.phase_deg).copied()), 0.15);
    let am = panel("AM/AM", Axis::new("output amplitude", ""), |c| &c.output);
    let pm = panel("AM/PM", Axis::new("phase shift", "°").range(lo, hi), |c| &c.phase_deg);
    Figure::new(title).columns(2).with(am).with(pm)
}

/// Power spectral densities, each in the colour of its name: "rx", "prediction", "error". `level` names the unit, "dBFS/Hz" say.
pub(crate) fn psd(title: impl Into<String>, frequency: Axis, level: &str, signals: &[Series]) -> Figure {
    let mut figure = lines(title, frequency, Axis::new("power density", level), signals);
    for mark in figure.panels.iter_mut().flat_map(|panel| &mut panel.marks) {
        if let Mark::Line { style, .. } = mark {
            // Spectra are noisy: thin and unbroken.
            *style = style.width(1.3).dash(Dash::Solid);
        }
    }
    figure
}

/// A spectrogram: time along x, frequency along y, `level` as colour. Give `level` a range to hide what is below the noise.
pub(crate) fn spectrogram(title: impl Into<String>, time: Axis, frequency: Axis, level: Axis, grid: Grid) -> Figure {
    Figure::new(title).with(Panel::new(time, frequency).with(Mark::Heat { grid, level }))
}

/// The symbols at one place of a receiver.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Constellation {
    /// Above its panel: "before, EVM 23 %".
    pub title: String,
    /// Symbols.
    pub symbols: Vec<Complex64>,
}

/// Constellations side by side on the same scale, with a cross on each of the `ideal` symbols.
pub(crate) fn constellations(title: impl Into<String>, clouds: &[Constellation], ideal: &[Complex64]) -> Figure {
    let reach = |h: &Complex64| h.re.abs().max(h.im.abs());
    let mut all: Vec<f64> = clouds.iter().flat_map(|c| &c.symbols).map(reach).filter(|r| r.is_finite()).collect();
    all.sort_by(f64::total_cmp);
    // Two symbols in a thousand may fall outside, and where the ideal ones are known, those at twice their distance: strays must not shrink all others to a speck.
    let most = all.get((all.len() as f64 * 0.998) as usize).copied().unwrap_or(0.0);
    let outer = ideal.iter().map(reach).filter(|r| r.is_finite()).fold(0.0, f64::max);
    let limit = 1.1 * if outer > 0.0 { most.clamp(outer, 2.0 * outer) } else { most };
    let axis = |label: &str| {
        let axis = Axis::new(label, "");
        if limit > 0.0 { axis.range(-limit, limit) } else { axis.range(-1.0, 1.0) }
    };
    let mut figure = Figure::new(title).columns(clouds.len().clamp(1, 2));
    for cloud in clouds {
        let points = |symbols: &[Complex64]| symbols.iter().map(|h| [h.re, h.im]).collect::<Vec<_>>();
        let dots = Style::solid(BLUE, 2.4).opacity(0.4);
        let mut panel = Panel::new(axis("in phase"), axis("quadrature")).titled(&cloud.title).height(400.0);
        panel.equal = true;
        panel.marks.push(Mark::Dots { name: String::new(), points: points(&cloud.symbols), style: dots, ring: false });
        // Crosses, not rings: the cloud must show through.
        let arm = 0.025 * limit;
        for h in ideal {
            for [dx, dy] in [[arm, 0.0], [0.0, arm]] {
                let points = vec![[h.re - dx, h.im - dy], [h.re + dx, h.im + dy]];
                panel.marks.push(Mark::Line { name: String::new(), note: String::new(), points, style: Style::solid(VERMILLION, 1.8) });
            }
        }
        figure.panels.push(panel);
    }
    figure
}

/// Counts in bins, scaled to a density: its area is 1.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Histogram {
    /// In the legend.
    pub name: String,
    /// One more than there are bins.
    pub edges: Vec<f64>,
    /// For each bin.
    pub density: Vec<f64>,
}

impl Histogram {
    /// The finite ones of `values` in `bins` equal bins from the smallest to the largest of them.
    #[cfg(test)]
    pub(crate) fn of(name: impl Into<String>, values: &[f64], bins: usize) -> Self {
        let name = name.into();
        let finite = || values.iter().copied().filter(|v| v.is_finite());
        let (lo, hi) = (finite().fold(f64::INFINITY, f64::min), finite().fold(f64::NEG_INFINITY, f64::max));
        if lo > hi || bins == 0 {
            return Self { name, ..Self::default() };
        }
        let (lo, hi) = if lo == hi { (lo - 0.5, hi + 0.5) } else { (lo, hi) };
        let width = (hi - lo) / bins as f64;
        let mut density = vec![0.0; bins];
        for value in finite() {
            density[(((value - lo) / width) as usize).min(bins - 1)] += 1.0;
        }
        let total = density.iter().sum::<f64>() * width;
        density.iter_mut().for_each(|d| *d /= total);
        Self { name, edges: (0..=bins).map(|i| lo + width * i as f64).collect(), density }
    }
}

/// How often each amplitude occurs. `models` are lines above the bars: the Rayleigh law of OFDM, say.
pub(crate) fn envelope_histogram(title: impl Into<String>, amplitude: Axis, histograms: &[Histogram], models: &[Series]) -> Figure {
    let mut panel = Panel::new(amplitude, Axis::new("density", ""));
    let names: Vec<&str> = histograms.iter().map(|h| h.name.as_str()).collect();
    let mut tallest = 0.0_f64;
    for (histogram, style) in histograms.iter().zip(styles_of(&names)) {
        let bins = || histogram.edges.windows(2).zip(&histogram.density);
        let boxes = bins().map(|(edge, &d)| [edge[0], edge[1], 0.0, d]).collect();
        let mut steps: Vec<[f64; 2]> = bins().flat_map(|(edge, &d)| [[edge[0], d], [edge[1], d]]).collect();
        if let (Some(first), Some(last)) = (steps.first().copied(), steps.last().copied()) {
            steps.insert(0, [first[0], 0.0]);
            steps.push([last[0], 0.0]);
        }
        tallest = histogram.density.iter().copied().filter(|d| d.is_finite()).fold(tallest, f64::max);
        panel.marks.push(Mark::Boxes { name: String::new(), boxes, style: style.opacity(0.25) });
        panel.marks.push(Mark::Line {
            name: histogram.name.clone(),
            note: String::new(),
            points: steps,
            style: style.width(1.5).dash(Dash::Solid),
        });
    }
    for model in models {
        tallest = model.points.iter().map(|p| p[1]).filter(|d| d.is_finite()).fold(tallest, f64::max);
        let style = Style::solid(INK, 1.8).dash(Dash::Dashed);
        panel.marks.push(Mark::Line { name: model.name.clone(), note: model.note.clone(), points: model.points.clone(), style });
    }
    if tallest > 0.0 {
        panel.y = panel.y.range(0.0, 1.08 * tallest);
    }
    Figure::new(title).with(panel)
}
