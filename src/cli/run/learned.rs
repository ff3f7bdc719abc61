//! What the filters have learned: the amplifier's curve, taps over time, the weights of dictionaries.

use std::fmt::Write as _;

use num_complex::{Complex32, Complex64};

use super::{
    Subject, Tracked,
    pictures::{Picture, time},
};
use crate::{
    Result,
    blocks::Stretch,
    metrics::am_curve,
    plot::{self, AmplifierCurve, Figure, Mark, Part, Taps, Weights, am_am_pm, taps_over_time},
};

/// Samples of the amplifier's scatter: more only hide one another.
const DOTS: usize = 4000;
/// Filters whose taps are drawn: the best; all are in the table.
const SHOWN: usize = 4;

/// AM/AM and AM/PM: what was measured over a stretch of the run, and the curves that filters had learned at its end.
///
/// Where the received samples follow the sent ones closely, the dots are those samples. Through echoes and fading they would be a cloud: there, the channel that
/// the best filter with a curve saw at that moment is taken out of them, and without such a filter there is nothing to see.
pub(super) fn amplifier(subject: &Subject, filters: &[Tracked<'_>]) -> Result<Option<Picture>> {
    let Some(best) = filters.first().and_then(|f| f.stretch()).filter(|_| !subject.equalize) else { return Ok(None) };
    type Learned<'a> = (&'a str, &'a Stretch, &'a [(f64, Complex64)]);
    let learned: Vec<Learned<'_>> = filters.iter().filter_map(|f| Some((f.name, &**f.stretch()?, curve_of(f.stretch()?)?))).collect();
    let direct = coherent(&best.input, &best.target);
    let level = |stretch: &Stretch, gain: &[(f64, Complex64)]| match direct {
        true => level(gain, &stretch.input, &stretch.target),
        false => Complex64::new(1.0, 0.0),
    };
    let mut curves: Vec<AmplifierCurve> = learned.iter().map(|(name, stretch, gain)| curve(name, gain, level(stretch, gain))).collect();
    let (measured, title, caption) = if direct {
        let pairs = best.input.iter().zip(&best.target).map(|(&x, &y)| (wide(x), wide(y)));
        (scatter(pairs, DOTS), "Received against sent amplitude", String::new())
    } else if let Some((name, stretch, _)) = learned.first() {
        let dots = scatter(without_channel(stretch).into_iter(), DOTS);
        let caption = format!(
            "Dots: received samples without the channel, as {name} saw it just then: its curve, plus the errors divided by the taps."
        );
        (dots, "The amplifier, seen through the channel", caption)
    } else {
        return Ok(None);
    };
    if measured.input.is_empty() {
        return Ok(None);
    }
    let reach = measured.input.iter().copied().fold(0.0, f64::max);
    curves.iter_mut().for_each(|curve| cut(curve, reach));
    if direct {
        let mean = am_curve(&best.input, &best.target, 40)?;
        curves.push(AmplifierCurve {
            name: "mean".into(),
            input: mean.iter().map(|p| p.input).collect(),
            output: mean.iter().map(|p| p.output).collect(),
            phase_deg: mean.iter().map(|p| p.phase_deg).collect(),
        });
    }
    let mut csv = String::from("curve,input,output,phase_deg\n");
    for c in std::iter::once(&measured).chain(&curves) {
        for ((input, output), phase) in c.input.iter().zip(&c.output).zip(&c.phase_deg) {
            let _ = writeln!(csv, "{},{input},{output},{phase}", c.name);
        }
    }
    let mut figure = am_am_pm(title, &measured, &curves).captioned(caption);
    if subject.real {
        // Real samples have a sign and no phase.
        figure.panels.truncate(1);
        figure.columns = 1;
    }
    Ok(Some(Picture { name: "amplifier", figure, csv }))
}

/// The same for one filter alone: at most so many dots, and its curve where it has one.
pub(super) fn curve_and_dots(
    subject: &Subject,
    name: &str,
    stretch: &Stretch,
    most: usize,
) -> Option<(AmplifierCurve, Option<AmplifierCurve>)> {
    if subject.equalize {
        return None;
    }
    let (gain, direct) = (curve_of(stretch), coherent(&stretch.input, &stretch.target));
    let measured = match (direct, gain) {
        (true, _) => scatter(stretch.input.iter().zip(&stretch.target).map(|(&x, &y)| (wide(x), wide(y))), most),
        (false, Some(_)) => scatter(without_channel(stretch).into_iter(), most),
        (false, None) => return None,
    };
    let reach = measured.input.iter().copied().fold(0.0, f64::max);
    let curve = gain.map(|gain| {
        let factor = if direct { level(gain, &stretch.input, &stretch.target) } else { Complex64::new(1.0, 0.0) };
        let mut curve = curve(name, gain, factor);
        cut(&mut curve, reach);
        curve
    });
    Some((measured, curve))
}

/// The curve that a filter had learned at the end of a stretch; none of a filter without.
fn curve_of(stretch: &Stretch) -> Option<&[(f64, Complex64)]> {
    Some(stretch.gain()).filter(|gain| !gain.is_empty())
}

fn wide(z: Complex32) -> Complex64 {
    Complex64::new(z.re.into(), z.im.into())
}

/// Whether the received samples follow the sent ones closely enough to show what the amplifier does: not through echoes and fading.
fn coherent(tx: &[Complex32], rx: &[Complex32]) -> bool {
    let pairs = || tx.iter().zip(rx).map(|(&x, &y)| (wide(x), wide(y))).filter(|(x, y)| (x * y).norm_sqr().is_finite());
    let cross: Complex64 = pairs().map(|(x, y)| y * x.conj()).sum();
    let (sent, received): (f64, f64) = (pairs().map(|(x, _)| x.norm_sqr()).sum(), pairs().map(|(_, y)| y.norm_sqr()).sum());
    cross.norm_sqr() > 0.8 * sent * received && sent > 0.0
}

fn scatter(pairs: impl ExactSizeIterator<Item = (Complex64, Complex64)>, most: usize) -> AmplifierCurve {
    let step = pairs.len().div_ceil(most).max(1);
    let mut measured = AmplifierCurve { name: "measured".into(), ..AmplifierCurve::default() };
    for (x, y) in pairs.step_by(step).filter(|(x, y)| x.norm() > 0.0 && (x * y).norm().is_finite()) {
        measured.input.push(x.norm());
        measured.output.push(y.norm());
        measured.phase_deg.push((y * x.conj()).arg().to_degrees());
    }
    measured
}

/// `G` at an envelope, between the points where it is known; beyond them as at the last one.
fn gain_at(gain: &[(f64, Complex64)], envelope: f64) -> Complex64 {
    let next = gain.partition_point(|(r, _)| *r < envelope);
    match (next.checked_sub(1).and_then(|i| gain.get(i)), gain.get(next)) {
        (Some(a), Some(b)) if b.0 > a.0 => a.1 + (b.1 - a.1) * ((envelope - a.0) / (b.0 - a.0)),
        (Some(only), _) | (None, Some(only)) => only.1,
        (None, None) => Complex64::new(1.0, 0.0),
    }
}

/// The factor that brings the curve of `gain` nearest to what was received: for a channel that is hardly more than that.
fn level(gain: &[(f64, Complex64)], tx: &[Complex32], rx: &[Complex32]) -> Complex64 {
    let (mut cross, mut power) = (Complex64::default(), 0.0);
    for (&x, &y) in tx.iter().zip(rx) {
        let (x, y) = (wide(x), wide(y));
        let u = x * gain_at(gain, x.norm());
        if (u * y).norm_sqr().is_finite() {
            cross += y * u.conj();
            power += u.norm_sqr();
        }
    }
    if power > 0.0 { cross / power } else { Complex64::new(1.0, 0.0) }
}

fn curve(name: &str, gain: &[(f64, Complex64)], level: Complex64) -> AmplifierCurve {
    AmplifierCurve {
        name: name.into(),
        input: gain.iter().map(|(r, _)| *r).collect(),
        output: gain.iter().map(|(r, g)| r * (g * level).norm()).collect(),
        phase_deg: gain.iter().map(|(_, g)| (g * level).arg().to_degrees()).collect(),
    }
}

/// Leaves out what lies beyond the largest input: nothing was learned there.
fn cut(curve: &mut AmplifierCurve, reach: f64) {
    let kept = curve.input.partition_point(|r| *r <= reach);
    [&mut curve.input, &mut curve.output, &mut curve.phase_deg].into_iter().for_each(|v| v.truncate(kept));
}

/// Sent samples, and what the amplifier has made of them: `û_t = g(x_t) + Σ_l conj(h_l) e_{t+l} / Σ|h_l|²`, the filter's own curve corrected by what its errors
/// say (a partial residual); a filter without a curve has the straight line. Of the second half of a stretch, and where the channel is stronger than in half of it: in a fade the
/// errors are all noise.
pub(in crate::cli) fn without_channel(stretch: &Stretch) -> Vec<(Complex64, Complex64)> {
    let error = stretch.error();
    let strength = |taps: &[Complex64]| taps.iter().map(|h| h.norm_sqr()).sum::<f64>();
    let (half, gain) = (stretch.taps.len() / 2, stretch.gain());
    let mut strengths: Vec<f64> = stretch.taps[half..].iter().map(|taps| strength(taps)).collect();
    strengths.sort_by(f64::total_cmp);
    let median = strengths.get(strengths.len() / 2).copied().unwrap_or(0.0);
    let mut pairs = Vec::new();
    for t in half * Stretch::PIECE..stretch.input.len() {
        let (x, Some(h)) = (wide(stretch.input[t]), stretch.taps.get(t / Stretch::PIECE)) else { break };
        let power = strength(h);
        if power < median || t + h.len() > error.len() || power == 0.0 {
            continue;
        }
        let correction: Complex64 = h.iter().zip(&error[t..]).map(|(h, &e)| h.conj() * wide(e)).sum();
        pairs.push((x, x * gain_at(gain, x.norm_sqr().sqrt()) + correction / power));
    }
    pairs
}

/// The taps of the best filters that have some: size and phase, or their sign too where the samples are real.
pub(super) fn taps(subject: &Subject, filters: &[Tracked<'_>]) -> Option<Picture> {
    let (axis, scale) = time(subject, filters);
    let with_taps: Vec<&Tracked> = filters.iter().filter(|f| f.summary.taps.moments().len() > 1).collect();
    let mut csv = String::from("filter,samples,tap,re,im\n");
    for f in &with_taps {
        for (at, taps) in f.summary.taps.moments() {
            for (l, h) in taps.iter().enumerate() {
                let _ = writeln!(csv, "{},{at},{l},{},{}", f.name, h.re, h.im);
            }
        }
    }
    let channel = |f: &&Tracked| {
        let moments = f.summary.taps.moments();
        let count = moments.iter().map(|(_, taps)| taps.len()).max().unwrap_or(0);
        let at = |l: usize| moments.iter().map(|(_, taps)| taps.get(l).copied().unwrap_or(Complex64::new(f64::NAN, f64::NAN))).collect();
        Taps {
            name: f.name.to_owned(),
            times: moments.iter().map(|(at, _)| *at as f64 * scale).collect(),
            taps: (0..count).map(at).collect(),
        }
    };
    let channels: Vec<Taps> = with_taps.iter().take(SHOWN).map(channel).collect();
    let title = "Estimated taps over time";
    let figure = if subject.real {
        taps_over_time(title, axis, &channels, Part::Real)
    } else {
        // A map has no lines whose phase could be followed.
        let size = taps_over_time(title, axis.clone(), &channels, Part::Magnitude);
        let phase = taps_over_time(title, axis, &channels, Part::Phase);
        let mut panels = Vec::new();
        for ((mut size, mut phase), channel) in size.panels.into_iter().zip(phase.panels).zip(&channels) {
            (size.height, phase.height) = (250.0, 250.0);
            (size.title, phase.title) = (format!("{}, size", channel.name), format!("{}, phase of the two strongest", channel.name));
            let power = |taps: &[Complex64]| taps.iter().map(|h| h.norm_sqr()).filter(|p| p.is_finite()).sum::<f64>();
            let mut powers: Vec<f64> = channel.taps.iter().map(|taps| power(taps)).collect();
            powers.sort_by(|a, b| b.total_cmp(a));
            let strong = powers.get(1).copied().unwrap_or(0.0);
            for (mark, taps) in phase.marks.iter_mut().zip(&channel.taps) {
                if let Mark::Line { points, .. } = mark
                    && power(taps) < strong
                {
                    points.clear();
                }
            }
            if size.marks.iter().any(|mark| matches!(mark, Mark::Heat { .. })) {
                size.span = 2;
                panels.push(size);
            } else {
                panels.extend([size, phase]);
            }
        }
        Figure { panels, ..Figure::new(title).columns(2) }
    };
    (!channels.is_empty()).then_some(Picture { name: "taps", figure, csv })
}

/// Age and size of the weights of all filters with a dictionary, at the end of the run.
pub(super) fn weights(filters: &[Tracked<'_>]) -> Option<Picture> {
    let mut csv = String::from("filter,age,size\n");
    let mut all = Vec::new();
    for f in filters.iter().filter(|f| !f.summary.portrait.weights.is_empty()) {
        let mut weights = f.summary.portrait.weights.clone();
        weights.sort_by_key(|w| w.age);
        for w in &weights {
            let _ = writeln!(csv, "{},{},{}", f.name, w.age, w.size);
        }
        let (ages, sizes) = weights.iter().map(|w| (w.age as f64, w.size)).unzip();
        all.push(Weights { name: f.name.to_owned(), ages, sizes });
    }
    let figure = plot::weights("Age and size of the weights at the end", &all);
    (!all.is_empty()).then_some(Picture { name: "weights", figure, csv })
}
