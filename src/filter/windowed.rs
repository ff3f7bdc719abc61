//! From vectors to streams: the delay line, and any [`Filter`] on top of it.

use num_complex::Complex;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

use super::{Adaptive, Filter, MOST_TAPS, Portrait, Tracker, check_lengths, check_taps, state};
use crate::{Error, Real, Result};

/// The last `L` samples of a stream, newest first, zeros before the first sample.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub(crate) struct Window<T: Real> {
    // Written backwards, so that the window is always one contiguous slice; the slack makes the copy at the wrap rare.
    samples: Vec<Complex<T>>,
    start: usize,
    taps: usize,
}

impl<T: Real> Window<T> {
    /// A window of `taps` zeros.
    pub(crate) fn new(taps: usize) -> Result<Self> {
        check_taps(taps, MOST_TAPS)?;
        Ok(Self::with(taps))
    }

    /// The same for a number that is known to be at least 1.
    fn with(taps: usize) -> Self {
        let samples = vec![Complex::zero(); 4 * taps + 64];
        Self { start: samples.len() - taps, samples, taps }
    }

    /// How many samples it shows.
    pub(crate) fn taps(&self) -> usize {
        self.taps
    }

    /// Takes in the newest sample and shows the window: `[u_n, u_{n-1}, ..., u_{n-L+1}]`.
    #[inline]
    pub(crate) fn push(&mut self, sample: Complex<T>) -> &[Complex<T>] {
        if self.start == 0 {
            let keep = self.taps - 1;
            let end = self.samples.len();
            self.samples.copy_within(..keep, end - keep);
            self.start = end - keep;
        }
        self.start -= 1;
        self.samples[self.start] = sample;
        &self.samples[self.start..self.start + self.taps]
    }

    /// Whether the restored window `other` can take this one's place.
    pub(crate) fn check(&self, other: &Self) -> Result<()> {
        state::same_shape("taps", other.taps, self.taps)?;
        state::same_shape("samples in its window", other.samples.len(), self.samples.len())?;
        if other.start + other.taps > other.samples.len() {
            return Err(Error::State("its window points past its end".into()));
        }
        Ok(())
    }

    /// All zeros again.
    pub(crate) fn clear(&mut self) {
        self.samples.fill(Complex::zero());
        self.start = self.samples.len() - self.taps;
    }
}

/// Every [`Filter`] can be put behind a window, one in a box too.
pub trait ToWindowed<T: Real> {
    /// The filter behind a window.
    fn windowed(self: Box<Self>) -> Box<dyn Tracker<T>>;
}

impl<T: Real, F: Filter<T>> ToWindowed<T> for F {
    fn windowed(self: Box<Self>) -> Box<dyn Tracker<T>> {
        Box::new(Windowed { window: Window::with(self.taps().max(1)), filter: *self })
    }
}

/// Any [`Filter`] as a [`Tracker`]: a window over `tx` in front of it.
pub(super) struct Windowed<T: Real, F> {
    filter: F,
    window: Window<T>,
}

impl<T: Real, F: Filter<T>> Adaptive for Windowed<T, F> {
    fn size(&self) -> usize {
        self.filter.size()
    }

    fn reset(&mut self) {
        self.filter.reset();
        self.window.clear();
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        self.filter.set(name, value)
    }

    fn save(&self) -> Result<Vec<u8>> {
        let inner = self.filter.save()?;
        state::encode("windowed", &(inner, &self.window))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (inner, window): (Vec<u8>, Window<T>) = state::decode("windowed", bytes)?;
        self.window.check(&window)?;
        self.filter.restore(&inner)?;
        self.window = window;
        Ok(())
    }
}

impl<T: Real, F: Filter<T>> Tracker<T> for Windowed<T, F> {
    fn taps(&self) -> usize {
        self.window.taps
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], mut variance: Option<&mut [T]>) {
        check_lengths(tx, rx, prediction, variance.as_deref());
        for (i, ((&u, &y), p)) in tx.iter().zip(rx).zip(prediction).enumerate() {
            let x = self.window.push(u);
            *p = if learn { self.filter.adapt(x, y) } else { self.filter.predict(x) };
            if let Some(v) = variance.as_deref_mut() {
                v[i] = self.filter.variance().unwrap_or(T::nan());
            }
        }
    }

    fn form(&self) -> &'static str {
        "windowed"
    }

    fn portrait(&self) -> Portrait {
        self.filter.portrait()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_shows_the_newest_sample_first_and_zeros_before_the_first() {
        let mut window = Window::<f32>::new(3).unwrap();
        for n in 1..500u16 {
            let expected = [n, n.saturating_sub(1), n.saturating_sub(2)].map(|v| Complex::new(f32::from(v), 0.0));
            assert_eq!(window.push(Complex::new(f32::from(n), 0.0)), expected);
        }
        assert!(Window::<f32>::new(0).is_err());
    }
}
