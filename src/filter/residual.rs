//! A tracker followed by another on what the first leaves over.

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::registry::{self, Dash, Hue, Make, Parameter, Preset, Recipe, Settings, Values, shared::*};
use super::{Adaptive, Guard, Portrait, Tracker, check_lengths, finite, state};
use crate::{Error, Real, Result};

pub(super) const RECIPE: Recipe = Recipe {
    name: "residual",
    aliases: &[],
    about: "a kernel filter on the error of another filter",
    reference: "kaflow",
    parameters: &[
        Parameter::choice(
            "first",
            "the filter whose error residual goes on with",
            &["ensemble", "mixture", "two-speed", "mp-rls", "rls", "nlms", "kalman", "krlst"],
        ),
        Parameter::choice("second", "the filter that residual puts on that error", &["qklms", "fklms"]),
        SIGMA.preset(Preset::Spread(0.5)),
        ETA.preset(Preset::Is(0.1)),
        EPSILON,
        LAMBDA.preset(Preset::Is(0.999)),
        BUDGET.preset(Preset::Is(500.0)),
    ],
    likelihood: None,
    covariance: |_, _| 0.0,
    look: (Hue::Indigo, Dash::Dashed),
    make: Make::Tracker(build),
};

/// The first stage is as it comes; the parameters are those of the second.
fn build(s: &Settings, taps: usize) -> Result<Box<dyn Tracker<f32>>> {
    let first = registry::recipe(s.name("first"))?.settle_stream(&Values::new(), s.spread(), taps)?.advanced(s.advance());
    let second = registry::recipe(s.name("second"))?;
    let given = s.values().iter().filter(|(name, _)| second.has(name)).map(|(name, value)| (name.clone(), value.clone()));
    // Errors of the first come in no stream that a kernel over taps was made for.
    let second = second.settle(&given.collect(), s.spread())?.advanced(s.advance());
    Ok(Box::new(Residual::new(registry::tracker(&first, taps)?, registry::tracker(&second, taps)?)))
}

/// Samples that the stages are run over at a time; results do not depend on it.
const BLOCK: usize = 64;
/// Samples over which the second stage earns its trust.
const TRUST_WINDOW: f64 = 1000.0;
/// Samples over which the variance is calibrated.
const CALIBRATION_WINDOW: f64 = 300.0;

/// `first` predicts the output, `second` (a QKLMS or fKLMS, say) predicts the error of `first` from the same input.
///
/// A second stage that has found nothing adds its own noise, so its contribution is multiplied by the regression of the error on it,
/// `trust = sum e conj(p2) / sum |p2|^2` over the last thousand samples, real and between 0 and 1. The sum is no worse than `first` alone
/// for long. The variance is that of `first`, scaled to the errors that remain.
pub struct Residual<T: Real> {
    first: Box<dyn Tracker<T>>,
    // What the first stage leaves over may be anything.
    second: Guard<T, Box<dyn Tracker<T>>>,
    moments: Moments,
    prediction: Vec<Complex<T>>,
    error: Vec<Complex<T>>,
    correction: Vec<Complex<T>>,
    variance: Vec<T>,
}

#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Moments {
    cross: f64,
    power: f64,
    // Remaining squared error, and the variance that `first` stated.
    remaining: f64,
    stated: f64,
}

impl Moments {
    fn is_finite(&self) -> bool {
        [self.cross, self.power, self.remaining, self.stated].iter().all(|x| x.is_finite())
    }

    fn trust(&self) -> f64 {
        if self.power > 0.0 { (self.cross / self.power).clamp(0.0, 1.0) } else { 0.0 }
    }
}

impl<T: Real> Residual<T> {
    /// `second` on the error of `first`.
    pub fn new(first: Box<dyn Tracker<T>>, second: Box<dyn Tracker<T>>) -> Self {
        Self {
            first,
            second: Guard::patient(second),
            moments: Moments::default(),
            prediction: vec![Complex::zero(); BLOCK],
            error: vec![Complex::zero(); BLOCK],
            correction: vec![Complex::zero(); BLOCK],
            variance: vec![T::zero(); BLOCK],
        }
    }

    fn combine(&mut self, i: usize, y: Complex<T>, learn: bool) -> (Complex<T>, T) {
        let moments = &mut self.moments;
        let (p1, p2) = (self.prediction[i], self.correction[i]);
        let p2 = if finite(p2) { p2 } else { Complex::zero() };
        let p = p1 + p2 * T::of(moments.trust());
        // Where `first` states no variance the remaining error is all that is known.
        let stated = self.variance[i].wide();
        let variance = if stated.is_nan() {
            moments.remaining
        } else if moments.stated > 0.0 {
            stated * moments.remaining / moments.stated
        } else {
            stated
        };
        if learn && finite(p) {
            let e = y - p1;
            moments.cross += ((e * p2.conj()).re.wide() - moments.cross) / TRUST_WINDOW;
            moments.power += (p2.norm_sqr().wide() - moments.power) / TRUST_WINDOW;
            let pace = 1.0 / CALIBRATION_WINDOW;
            let remaining = (y - p).norm_sqr().wide();
            if remaining.is_finite() {
                // One corrupt sample counts no more than a bad one.
                let most = if moments.remaining > 0.0 { 25.0 * moments.remaining } else { f64::INFINITY };
                let (r, s) = (remaining.min(most), if stated.is_finite() { stated } else { 0.0 });
                if moments.remaining > 0.0 {
                    moments.remaining += pace * (r - moments.remaining);
                    moments.stated += pace * (s - moments.stated);
                } else {
                    (moments.remaining, moments.stated) = (r, if s > 0.0 { r.max(s) } else { 0.0 });
                }
            }
        }
        (p, T::of(variance))
    }
}

impl<T: Real> Adaptive for Residual<T> {
    fn size(&self) -> usize {
        self.first.size() + self.second.size()
    }

    fn reset(&mut self) {
        self.first.reset();
        self.second.reset();
        self.moments = Moments::default();
    }

    /// Parameters are those of the second stage, and where it has no such parameter those of the first.
    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let mut all = match self.second.set(name, value) {
            Err(Error::NotApplicable { known, .. }) => known,
            other => return other,
        };
        match self.first.set(name, value) {
            Err(Error::NotApplicable { known, .. }) => {
                all.extend(known);
                Err(Error::NotApplicable { filter: "residual".into(), name: name.into(), known: all })
            }
            other => other,
        }
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&state::kind::<T>("residual"), &(self.first.save()?, self.second.save()?, self.moments))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (first, second, moments): (Vec<u8>, Vec<u8>, Moments) = state::decode(&state::kind::<T>("residual"), bytes)?;
        if !moments.is_finite() {
            return Err(Error::State("damaged: a moment of the error is not finite".into()));
        }
        let before = self.first.save()?;
        self.first.restore(&first)?;
        if let Err(error) = self.second.restore(&second) {
            self.first.restore(&before)?;
            return Err(error);
        }
        self.moments = moments;
        Ok(())
    }
}

impl<T: Real> Tracker<T> for Residual<T> {
    fn taps(&self) -> usize {
        self.first.taps().max(self.second.tracker().taps())
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], mut variance: Option<&mut [T]>) {
        check_lengths(tx, rx, prediction, variance.as_deref());
        self.second.freeze(!learn);
        let mut at = 0;
        for (tx, rx) in tx.chunks(BLOCK).zip(rx.chunks(BLOCK)) {
            let n = rx.len();
            self.first.track(tx, rx, learn, &mut self.prediction[..n], Some(&mut self.variance[..n]));
            for (e, (y, p)) in self.error.iter_mut().zip(rx.iter().zip(&self.prediction)) {
                *e = y - p;
            }
            self.second.track(tx, &self.error[..n], &mut self.correction[..n], None);
            for (i, y) in rx.iter().enumerate() {
                let (p, v) = self.combine(i, *y, learn);
                prediction[at + i] = p;
                if let Some(variance) = variance.as_deref_mut() {
                    variance[at + i] = v;
                }
            }
            at += n;
        }
    }

    fn gap(&mut self, length: u64) {
        self.first.gap(length);
        self.second.gap(length);
    }

    /// Taps and gain of the first stage, the weights of the second.
    fn portrait(&self) -> Portrait {
        Portrait { weights: self.second.portrait().weights, ..self.first.portrait() }
    }
}
