//! Adaptive filters: the one kernel-filter loop with its recipes, and the filters to compare with.
//!
//! Everything here predicts **one step ahead**: a prediction uses what was learned before its sample, never the sample itself.
//!
//! - [`Filter`] works on vectors: any input vector and its target.
//! - [`Tracker`] works on a pair of streams: it keeps the window of the last taps itself. [`Filter::on_stream`] makes one of any [`Filter`].
//! - [`Guard`] stands in front of a tracker: it is what takes samples as a radio delivers them.
//!
//! # On streams
//!
//! ```
//! use kaflow::{Complex, filter::{Evict, Filter, Guard, fklms}, kernel::Gaussian, observation::Gain};
//! # fn main() -> kaflow::Result<()> {
//! let budget = Evict { budget: Some(100), floor: None };
//! let tracker = fklms(Gaussian::new(1.0)?, Gain::Eta(0.5), 0.99, budget, 4)?.on_stream();
//! assert_eq!((tracker.taps(), tracker.form()), (4, "sliding"));
//! let tx: Vec<_> = (0..500).map(|n| Complex::cis((n * n) as f32)).collect();
//! let mut prediction = tx.clone();
//! Guard::new(tracker).track(&tx, &tx, &mut prediction, None); // here rx is tx
//! # Ok(()) }
//! ```
//!
//! [`Filter::on_stream`] picks the fastest form that a filter has; nothing is approximated. [`Tracker::form`] says which it is:
//!
//! - `sliding`: KLMS with a budget, fKLMS and NORMA with the Gaussian or the Hammerstein kernel. With "drop the oldest" the centres are the last `M` windows of
//!   the stream, and kernel values follow from those of the sample before: the cost does not depend on the taps. Distances of the Gaussian kernel are
//!   computed anew from the samples at least every `N = (M/2 + 8) · ⌈L/16⌉` samples, and each sample in between rounds. In units of the kernel's exponent, with
//!   `e` the largest exponent that the window at this lag had since, the error is at most `(N + L) · ε · (e + 160)` and usually a hundredth of that; a sample
//!   far outside the kernel's reach counts as `e = 40 L` (`f32`) or `80 L` (`f64`), whatever its size. For the Hammerstein kernel nothing is carried further
//!   than the window reaches: its sums are made of sums over parts of the window, never by subtracting what leaves, so there is no drift, and a kernel value
//!   is as exact as the direct sum, `(L + 8) · ε · Σ_l |c_l x_l|`.
//! - `planes`: NLMS, with real and imaginary parts in planes.
//! - `windowed`: the filter behind a window, for all others.
//!
//! # Samples that are not numbers
//!
//! A radio delivers NaN or infinity sooner or later, and loses samples. [`Guard`] is the one place that decides what happens then: it stands in front of a
//! tracker and hands it finite samples and the word whether to learn from them. A [`Filter`] that is given such a vector itself predicts zero or from
//! what it knows, and does not learn. An update that would overflow is not made, so predictions are finite as long as the filter's numbers are in range.

mod canceller;
mod covariance;
pub(crate) mod em;
pub mod ensemble;
mod guard;
mod kernel_filter;
mod krlst;
mod linear;
mod lms;
mod memory_polynomial;
mod nlms;
mod nlms_stream;
mod portrait;
mod recipes;
pub mod registry;
mod residual;
mod sliding;
mod watch;
mod windowed;

pub use self::{
    canceller::Canceller,
    guard::Guard,
    kernel_filter::{Evict, KernelFilter},
    krlst::KrlsT,
    linear::{Kalman, Rls},
    lms::Lms,
    memory_polynomial::MemoryPolynomial,
    nlms::Nlms,
    portrait::{Portrait, Weight},
    recipes::{bayesian_klms, fklms, klms, norma, qklms},
    residual::Residual,
};

#[cfg(feature = "blocks")]
pub(crate) use self::guard::CleanWindow;
#[cfg(any(feature = "cli", test))]
pub(crate) use self::recipes::steady_state_error;
pub(crate) use self::{
    kernel_filter::{Admit, Dynamics},
    recipes::GaussianKernelFilter,
    windowed::Window,
};

use num_complex::{Complex, Complex64};

use self::windowed::ToWindowed;
use crate::{Error, Real, Result, error::require, real::finite, state};

/// What every filter can be asked, whatever it works on.
pub trait Adaptive: Send + 'static {
    /// How many centres (or, for a filter without a dictionary, weights) it holds now.
    fn size(&self) -> usize;

    /// Forgets all that was learned and keeps the parameters.
    fn reset(&mut self);

    /// Changes a parameter while running. An unknown name or an invalid value is an error and changes nothing.
    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        let _ = value;
        Err(Error::NotApplicable {
            filter: "this filter".into(),
            name: name.into(),
            known: vec!["none that can be changed while running".into()],
        })
    }

    /// Parameters and everything learned, sealed by [`state::encode`].
    fn save(&self) -> Result<Vec<u8>> {
        Err(Error::State("this filter cannot be saved".into()))
    }

    /// Takes over what [`save`](Self::save) wrote, bit for bit. On an error nothing has changed.
    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let _ = bytes;
        Err(Error::State("this filter cannot be restored".into()))
    }
}

/// A filter on vectors: learns `y = f(x)` from one pair after the other.
pub trait Filter<T: Real>: Adaptive + ToWindowed<T> {
    /// The length of the vectors that it takes.
    fn taps(&self) -> usize;

    /// What the filter expects for `x`; learns nothing.
    ///
    /// # Panics
    ///
    /// Where `x` has another length than [`taps`](Self::taps).
    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T>;

    /// Predicts from `x`, then learns that `y` was right. Returns the prediction.
    ///
    /// # Panics
    ///
    /// As [`predict`](Self::predict).
    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T>;

    /// The variance of the last prediction, noise included, where the filter knows it.
    fn variance(&self) -> Option<T> {
        None
    }

    /// The filter on a pair of streams, on windows of [`taps`](Self::taps) samples, in its fastest form.
    fn on_stream(self) -> Box<dyn Tracker<T>>
    where
        Self: Sized,
    {
        Box::new(self).into_tracker()
    }

    /// What [`on_stream`](Self::on_stream) makes of it; for filters that have a faster form than a window in front of them.
    fn into_tracker(self: Box<Self>) -> Box<dyn Tracker<T>> {
        self.windowed()
    }

    /// What was learned so far, to look at; empty where there is nothing to see. Allocates.
    fn portrait(&self) -> Portrait {
        Portrait::default()
    }
}

/// A filter on a pair of streams: predicts each `rx` sample from the `tx` samples up to it. It is called through a [`Guard`].
///
/// Results do not depend on how the streams are cut into calls.
pub trait Tracker<T: Real>: Adaptive {
    /// How many samples of `tx` a prediction looks at: behind a gap nothing is learned until so many have come.
    fn taps(&self) -> usize;

    /// Predicts `rx.len()` samples and, where `learn`, learns them. All samples are finite, and the window holds no gap while `learn`: [`Guard`] sees to that.
    ///
    /// `variance`, where given, receives the variance of each prediction, NaN where the tracker does not know it.
    ///
    /// # Panics
    ///
    /// Where the slices are not all of one length, before anything is learned.
    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], variance: Option<&mut [T]>);

    /// How it is computed, to see that it is the fast form: see the [module's documentation](self).
    fn form(&self) -> &'static str {
        "own"
    }

    /// A gap of so many samples before the next (0: of unknown length); a hint for filters whose state ages with time.
    fn gap(&mut self, length: u64) {
        let _ = length;
    }

    /// What was learned so far, to look at; empty where there is nothing to see. Allocates.
    fn portrait(&self) -> Portrait {
        Portrait::default()
    }

    /// The taps of the [`portrait`](Self::portrait) alone, for those who look often.
    fn response(&self) -> Vec<Complex64> {
        self.portrait().taps
    }
}

impl<A: Adaptive + ?Sized> Adaptive for Box<A> {
    fn size(&self) -> usize {
        (**self).size()
    }
    fn reset(&mut self) {
        (**self).reset();
    }
    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        (**self).set(name, value)
    }
    fn save(&self) -> Result<Vec<u8>> {
        (**self).save()
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        (**self).restore(bytes)
    }
}

impl<T: Real, F: Filter<T> + ?Sized> Filter<T> for Box<F> {
    fn taps(&self) -> usize {
        (**self).taps()
    }
    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        (**self).predict(x)
    }
    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        (**self).adapt(x, y)
    }
    fn variance(&self) -> Option<T> {
        (**self).variance()
    }
    fn into_tracker(self: Box<Self>) -> Box<dyn Tracker<T>> {
        (*self).into_tracker()
    }
    fn portrait(&self) -> Portrait {
        (**self).portrait()
    }
}

impl<T: Real, F: Tracker<T> + ?Sized> Tracker<T> for Box<F> {
    fn taps(&self) -> usize {
        (**self).taps()
    }
    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], variance: Option<&mut [T]>) {
        (**self).track(tx, rx, learn, prediction, variance);
    }
    fn form(&self) -> &'static str {
        (**self).form()
    }
    fn gap(&mut self, length: u64) {
        (**self).gap(length);
    }
    fn portrait(&self) -> Portrait {
        (**self).portrait()
    }
    fn response(&self) -> Vec<Complex64> {
        (**self).response()
    }
}

/// The most taps of a filter, and of one whose cost grows with their square: what memory holds.
pub(crate) const MOST_TAPS: usize = 1 << 20;
pub(crate) const MOST_SQUARED: usize = 1 << 12;

/// Refuses no taps, and more than `most`.
pub(crate) fn check_taps(taps: usize, most: usize) -> Result<()> {
    require(taps > 0, "taps", "at least 1", taps as f64)?;
    if taps <= most { Ok(()) } else { Err(Error::parameter("taps", format!("at most {most}"), taps)) }
}

/// Refuses no centres, and more of `taps` complex numbers each than memory holds.
pub(crate) fn check_budget(budget: usize, taps: usize) -> Result<()> {
    require(budget > 0, "budget", "at least 1", budget as f64)?;
    let most = (1 << 26) / taps.max(1);
    if budget <= most { Ok(()) } else { Err(Error::parameter("budget", format!("at most {most} with {taps} taps"), budget)) }
}

/// What every tracker does with slices of unequal length: it panics.
pub(crate) fn check_lengths<T>(tx: &[Complex<T>], rx: &[Complex<T>], prediction: &[Complex<T>], variance: Option<&[T]>) {
    let lengths = [tx.len(), prediction.len(), variance.map_or(rx.len(), <[T]>::len)];
    assert!(lengths == [rx.len(); 3], "tx, prediction and variance must have the {} samples of rx, not {lengths:?}", rx.len());
}

/// Sets `slot` to `value` when it lies in the range that `ok` describes.
pub(crate) fn set_in_range<T: Real>(slot: &mut T, ok: bool, name: &str, expected: &str, value: f64) -> Result<()> {
    require(ok, name, expected, value)?;
    *slot = T::of(value);
    Ok(())
}

#[cfg(test)]
#[path = "../../tests/unit/filter/mod.rs"]
mod tests;
