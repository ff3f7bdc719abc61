//! What happens at samples that are no numbers, at gaps, and while learning is switched off: decided here for every tracker.

use num_complex::Complex;
#[cfg(feature = "blocks")]
use num_complex::Complex64;
use num_traits::Zero;
use serde::{Deserialize, Serialize};

#[cfg(feature = "blocks")]
use super::Window;
use super::{Adaptive, Portrait, Tracker, check_lengths, finite, state, watch::Watch};
use crate::{Error, Real, Result};

/// Samples that are looked at together; also the most that are copied at a time where one of them has to be replaced.
const BLOCK: usize = 128;

/// A [`Tracker`] behind the one policy for a stream as a radio delivers it.
///
/// - A sample of `tx` that is not finite counts as zero, and nothing is learned while it is in the window.
/// - A sample of `rx` that is not finite is predicted and not learned from.
/// - Behind a [`gap`](Self::gap) nothing is learned until the window lies behind it.
/// - While [frozen](Self::freeze) nothing is learned.
/// - A tracker whose predictions are worse than none, because it diverges or because of what garbage has left in it, starts again from nothing; its predictions are zero
///   until it does. [`restarts`](Self::restarts) counts that.
///
/// Clean slices go to the tracker as they are, up to 512 samples at a time. Results do not depend on how the streams are cut into calls.
///
/// ```
/// use kaflow::{Complex, filter::{Filter, Guard, Nlms}};
/// # fn main() -> kaflow::Result<()> {
/// let mut nlms = Guard::new(Nlms::<f32>::new(2, 0.5, 1e-6)?.on_stream());
/// let tx: Vec<_> = (0..500).map(|n| Complex::cis((n * n) as f32)).collect();
/// let mut rx: Vec<_> = tx.iter().map(|x| x * 0.5).collect();
/// rx[400].re = f32::NAN;
/// let mut prediction = tx.clone();
/// nlms.track(&tx, &rx, &mut prediction, None);
/// assert!((prediction[400] - tx[400] * 0.5).norm() < 1e-4);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct Guard<T: Real, F> {
    tracker: F,
    clean: Clean,
    /// None where the tracker is not expected to be better than nothing.
    watch: Option<Watch>,
    frozen: bool,
    scalar: std::marker::PhantomData<T>,
}

impl<T: Real, F: Tracker<T>> Guard<T, F> {
    /// Puts `tracker` behind the guard.
    pub fn new(tracker: F) -> Self {
        Self { watch: Some(Watch::default()), ..Self::patient(tracker) }
    }

    /// As [`new`](Self::new), for a tracker that is never started again.
    pub(super) fn patient(tracker: F) -> Self {
        Self { tracker, clean: Clean::default(), watch: None, frozen: false, scalar: std::marker::PhantomData }
    }

    /// The tracker inside.
    pub fn tracker(&self) -> &F {
        &self.tracker
    }

    /// The tracker without the guard.
    pub(crate) fn into_inner(self) -> F {
        self.tracker
    }

    /// How often the tracker had to start again from nothing.
    pub fn restarts(&self) -> u64 {
        self.watch.as_ref().map_or(0, Watch::restarts)
    }

    /// Predicts `rx.len()` samples and learns those that may be learned from.
    ///
    /// `variance`, where given, receives the variance of each prediction, NaN where the tracker does not know it.
    ///
    /// # Panics
    ///
    /// Where the slices are not all of one length.
    pub fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], prediction: &mut [Complex<T>], mut variance: Option<&mut [T]>) {
        check_lengths(tx, rx, prediction, variance.as_deref());
        let mut at = 0;
        while at < tx.len() {
            let learn = !self.frozen && self.clean.is_clean();
            let left = tx.len() - at;
            let most = if learn { self.watch.as_ref().map_or(left, Watch::room) } else { self.clean.left as usize };
            let run = at + if self.frozen { left } else { left.min(most) };
            let sound = leading_finite(&tx[at..run], &rx[at..run]);
            let variance = variance.as_deref_mut();
            if sound > 0 {
                let span = at..at + sound;
                at = span.end;
                self.clean.pass(sound);
                self.tracker.track(
                    &tx[span.clone()],
                    &rx[span.clone()],
                    learn,
                    &mut prediction[span.clone()],
                    variance.map(|v| &mut v[span.clone()]),
                );
                if !learn {
                    self.mute(&mut prediction[span]);
                } else if self.watch.as_mut().is_some_and(|watch| watch.look(&rx[span.clone()], &mut prediction[span])) {
                    self.tracker.reset();
                    self.clean.gap(self.tracker.taps());
                }
            } else {
                at += self.replace(&tx[at..], &rx[at..], &mut prediction[at..], variance.map(|v| &mut v[at..]));
            }
        }
    }

    /// Samples of which none is learned from, the first one not finite; returns how many.
    fn replace(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], prediction: &mut [Complex<T>], variance: Option<&mut [T]>) -> usize {
        let (mut clean_tx, mut clean_rx) = ([Complex::zero(); BLOCK], [Complex::zero(); BLOCK]);
        let mut n = 0;
        for (&u, &y) in tx.iter().zip(rx).take(BLOCK) {
            if n > 0 && !self.frozen && self.clean.is_clean() && finite(u) && finite(y) {
                break;
            }
            (clean_tx[n], _) = self.clean.push(u, self.tracker.taps());
            clean_rx[n] = if finite(y) { y } else { Complex::zero() };
            n += 1;
        }
        self.tracker.track(&clean_tx[..n], &clean_rx[..n], false, &mut prediction[..n], variance.map(|v| &mut v[..n]));
        self.mute(&mut prediction[..n]);
        n
    }

    /// Predictions of samples that were not learned, from a tracker that is not believed, are none.
    fn mute(&self, prediction: &mut [Complex<T>]) {
        if self.watch.as_ref().is_some_and(Watch::mutes) {
            prediction.fill(Complex::zero());
        }
    }

    /// A gap of so many samples before the next (0: of unknown length).
    pub fn gap(&mut self, length: u64) {
        self.clean.gap(self.tracker.taps());
        self.tracker.gap(length);
    }

    /// Stops (`true`) or resumes (`false`) learning; predictions go on.
    pub fn freeze(&mut self, frozen: bool) {
        self.frozen = frozen;
    }

    /// Whether learning is switched off.
    pub(crate) fn frozen(&self) -> bool {
        self.frozen
    }

    /// What the tracker has learned so far, to look at. Allocates.
    pub fn portrait(&self) -> Portrait {
        self.tracker.portrait()
    }

    /// The taps of its portrait alone.
    #[cfg(feature = "blocks")]
    pub(crate) fn response(&self) -> Vec<Complex64> {
        self.tracker.response()
    }
}

/// Whether learning is switched off is not part of the state.
impl<T: Real, F: Tracker<T>> Adaptive for Guard<T, F> {
    fn size(&self) -> usize {
        self.tracker.size()
    }

    fn reset(&mut self) {
        self.tracker.reset();
        self.clean = Clean::default();
        if let Some(watch) = &mut self.watch {
            watch.clear();
        }
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        self.tracker.set(name, value)
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode("guard", &(self.tracker.save()?, &self.clean, &self.watch))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (tracker, clean, watch): (Vec<u8>, Clean, Option<Watch>) = state::decode("guard", bytes)?;
        state::same_shape("watches over it", watch.iter().len(), self.watch.iter().len())?;
        if !watch.iter().all(Watch::is_sound) {
            return Err(Error::State("the powers that it has seen are no numbers".into()));
        }
        self.tracker.restore(&tracker)?;
        self.clean = Clean { left: clean.left.min(self.tracker.taps() as u64) };
        self.watch = watch;
        Ok(())
    }
}

/// How many pairs from the first on are finite in all four parts.
fn leading_finite<T: Real>(tx: &[Complex<T>], rx: &[Complex<T>]) -> usize {
    let sound = |(&u, &y): (&Complex<T>, &Complex<T>)| finite(u) & finite(y);
    let mut at = 0;
    for (tx, rx) in tx.chunks(BLOCK).zip(rx.chunks(BLOCK)) {
        // All of them without a branch, which the compiler turns into vectors.
        if !tx.iter().zip(rx).map(sound).fold(true, |all, one| all & one) {
            return at + tx.iter().zip(rx).take_while(|&pair| sound(pair)).count();
        }
        at += tx.len();
    }
    at
}

/// Whether a window over a stream may be learned from: not while a gap or a sample that is no number is inside.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Clean {
    /// Samples to go until it may.
    left: u64,
}

impl Clean {
    fn is_clean(&self) -> bool {
        self.left == 0
    }

    /// Takes in a sample; returns it or what it counts as, and whether a window of `taps` with it may be learned from.
    fn push<T: Real>(&mut self, sample: Complex<T>, taps: usize) -> (Complex<T>, bool) {
        let corrupt = !finite(sample);
        if corrupt {
            self.left = taps as u64;
        }
        let clean = self.is_clean();
        self.pass(1);
        (if corrupt { Complex::zero() } else { sample }, clean)
    }

    /// Takes in `samples` that are all finite.
    fn pass(&mut self, samples: usize) {
        self.left = self.left.saturating_sub(samples as u64);
    }

    fn gap(&mut self, taps: usize) {
        self.left = self.left.max(taps.saturating_sub(1) as u64);
    }
}

/// A [`Window`] under the policy of [`Guard`], for what feeds filters on vectors.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
#[cfg(feature = "blocks")]
pub(crate) struct CleanWindow<T: Real> {
    window: Window<T>,
    clean: Clean,
}

#[cfg(feature = "blocks")]
impl<T: Real> CleanWindow<T> {
    pub(crate) fn new(taps: usize) -> Result<Self> {
        Ok(Self { window: Window::new(taps)?, clean: Clean::default() })
    }

    /// Takes in a sample; shows the window, newest first, and whether to learn from it.
    pub(crate) fn push(&mut self, sample: Complex<T>) -> (&[Complex<T>], bool) {
        let (sample, clean) = self.clean.push(sample, self.window.taps());
        (self.window.push(sample), clean)
    }

    /// There is a gap before the next sample.
    pub(crate) fn gap(&mut self) {
        self.clean.gap(self.window.taps());
    }

    pub(crate) fn clear(&mut self) {
        self.window.clear();
        self.clean = Clean::default();
    }

    /// Whether a window that was read from a file can be pushed to in place of this one.
    pub(crate) fn check(&self, saved: &Self) -> Result<()> {
        self.window.check(&saved.window)
    }
}

#[cfg(test)]
#[path = "../../tests/unit/filter/guard.rs"]
mod tests;
