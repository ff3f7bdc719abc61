//! NLMS on streams, in planes.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::{Adaptive, Nlms, Portrait, Tracker, check_lengths, state};
use crate::simd::{GROUP, Level, NlmsRun};
use crate::{Error, Real, Result};

/// Samples that are taken in at once; the history has as much slack, so that it is moved once in so many samples.
const RUN: usize = 256;

/// [`Nlms`] on a pair of streams: the same filter as behind a window, to rounding, at vector speed.
///
/// Weights and window lie in planes of real and imaginary parts; the update of one sample and the prediction of the next share a pass.
pub(super) struct NlmsStream<T: Real> {
    /// The parameters; its weights lie here in planes.
    nlms: Nlms<T>,
    level: Level,
    planes: Planes<T>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(bound = "")]
struct Planes<T: Real> {
    w_re: Vec<T>,
    w_im: Vec<T>,
    // The input, written backwards; the newest sample at `start`.
    re: Vec<T>,
    im: Vec<T>,
    start: usize,
}

impl<T: Real> Planes<T> {
    fn new(taps: usize) -> Self {
        let zeros = vec![T::zero(); taps.next_multiple_of(GROUP)];
        // A window in whole vectors and the sample before it, behind a run.
        let plane = vec![T::zero(); zeros.len() + 2 + RUN];
        Self { w_re: zeros.clone(), w_im: zeros, re: plane.clone(), im: plane, start: RUN }
    }

    fn fits(&self, other: &Self) -> bool {
        [&self.w_re, &self.w_im].map(Vec::len) == [&other.w_re, &other.w_im].map(Vec::len)
            && [&self.re, &self.im].map(Vec::len) == [&other.re, &other.im].map(Vec::len)
            && other.start <= RUN
    }

    /// Makes room for `count` more samples.
    fn room(&mut self, count: usize) {
        if self.start < count {
            let kept = self.start..self.start + self.re.len() - RUN;
            for plane in [&mut self.re, &mut self.im] {
                plane.copy_within(kept.clone(), RUN);
            }
            self.start = RUN;
        }
    }

    fn push(&mut self, u: Complex<T>) {
        self.start -= 1;
        (self.re[self.start], self.im[self.start]) = (u.re, u.im);
    }
}

impl<T: Real> NlmsStream<T> {
    pub(super) fn new(nlms: Nlms<T>) -> Self {
        let mut planes = Planes::new(nlms.size());
        for (i, w) in nlms.weights().iter().enumerate() {
            (planes.w_re[i], planes.w_im[i]) = (w.re, w.im);
        }
        Self { nlms, level: Level::current(), planes }
    }

    /// Samples that are all learned from (`y` given) or all not (`y` empty), already in the planes.
    fn run(&mut self, y: &[Complex<T>], p: &mut [Complex<T>]) {
        let (mu, regularization) = self.nlms.steps();
        let planes = &mut self.planes;
        let (re, im) = (&planes.re[planes.start..], &planes.im[planes.start..]);
        let (w_re, w_im, taps) = (&mut planes.w_re[..], &mut planes.w_im[..], self.nlms.size());
        T::dispatch(self.level, NlmsRun { re, im, w_re, w_im, taps, mu, regularization, y, p });
    }
}

impl<T: Real> Adaptive for NlmsStream<T> {
    fn size(&self) -> usize {
        self.nlms.size()
    }

    fn reset(&mut self) {
        self.nlms.reset();
        self.planes = Planes::new(self.nlms.size());
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        self.nlms.set(name, value)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&state::kind::<T>("nlms stream"), &(self.nlms.save()?, &self.planes))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (nlms, planes): (Vec<u8>, Planes<T>) = state::decode(&state::kind::<T>("nlms stream"), bytes)?;
        if !self.planes.fits(&planes) {
            return Err(Error::State(format!("its planes do not fit the {} taps of this filter", self.nlms.size())));
        }
        self.nlms.restore(&nlms)?;
        self.planes = planes;
        Ok(())
    }
}

impl<T: Real> Tracker<T> for NlmsStream<T> {
    fn taps(&self) -> usize {
        self.nlms.size()
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], variance: Option<&mut [T]>) {
        check_lengths(tx, rx, prediction, variance.as_deref());
        if let Some(variance) = variance {
            variance.fill(T::nan());
        }
        for ((tx, rx), prediction) in tx.chunks(RUN).zip(rx.chunks(RUN)).zip(prediction.chunks_mut(RUN)) {
            self.planes.room(tx.len());
            tx.iter().for_each(|&u| self.planes.push(u));
            self.run(if learn { rx } else { &[] }, prediction);
        }
    }

    fn form(&self) -> &'static str {
        "planes"
    }

    fn portrait(&self) -> Portrait {
        let weights: Vec<_> = self.planes.w_re.iter().zip(&self.planes.w_im).map(|(&re, &im)| Complex::new(re, im)).collect();
        Portrait::of_taps(&weights[..self.nlms.size()])
    }
}
