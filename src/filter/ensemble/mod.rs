//! The default tracker: a slow amplifier in front of channels at sixteen speeds, a bank for what stands still, simple filters for all else, averaged by likelihood.
//!
//! # Model
//!
//! ```text
//!   x_t ──► u_t = x_t G(|x_t|) ──┬──► sixteen members: y_t = sum_l h_{l,t} u_{t-l} + off + n_t,   taps with velocities, spans 8 .. 2100 samples
//!          (shared curve)        ├──► still bank:      y_t = sum_k w_k F_k,t + n_t,               w constant or nearly so
//!                                └──► simple filters:  NLMS, RLS, a memory polynomial,            of the last 30 to 50 samples
//!
//!   prediction  p = sum w_i p_i,      variance  v = sum w_i (V_i + |p_i|^2) - |p|^2
//!   log w_i <- 0.99 log w_i - ln V_i - min(|y - p_i|^2 / V_i, 25)
//! ```
//!
//! - **Curve.** An amplifier's gain over the envelope, a cubic spline, hardly changes: it is learned once for all members, from a thinned set of
//!   samples, and its power-weighted mean is 1, so that taps and curve cannot trade a factor.
//!   It is learned through the taps as far as the input excites them: in directions that an oversampled signal leaves empty they are anything, and through these no curve is seen.
//! - **Members.** A tap moves like a straight line over `span` samples: `h' = h + v`, `v' = v - k h' + q`, `var q = sigma^2 span^-4`. Nobody knows the span,
//!   so there are sixteen, each 1.45 times the one before.
//! - **Motion.** `k` is the mean square of the Doppler frequencies, found from the taps and their velocities: what fades comes back. Without it (`k` = 0) the error is
//!   0.15 dB greater at `f_d T` = 1e-3 and 20 dB SNR, 0.4 dB at 3e-3, 2 dB at 1e-2, and the same below 1e-4.
//! - **Bank.** Measured amplifiers have memory, neighbours' envelopes in their gain, images and offsets; in front of a still channel one linear model
//!   of many features has all of these.
//! - **Simple filters.** Where what the others assume does not hold (an input that excites some directions only in bursts, memory in front of a moving channel, another band in the
//!   output), filters that assume next to nothing are ahead. They are members as well, so that the whole is not behind them.
//! - **Carrier.** A rotation that all taps share is taken out of the output, where it is clear: the velocities of the lanes tell a fast one, the lag of
//!   the bank behind the channel a slow one.
//!
//! # What is shared, and what that costs
//!
//! A Kalman filter for positions and velocities has a covariance of `(2L)^2` numbers for each member. Here, measured with a known curve at `f_d T` = 1e-3
//! (the first two) and on the test bed and a measured amplifier (the others):
//!
//! | step | what remains | cost |
//! |---|---|---|
//! | position and velocity share one covariance, scaled by three numbers that follow a scalar Riccati recursion | `L^2` a member, while acquiring | none (-19.36 dB, the exact filter -19.33) |
//! | in its steady state that covariance has one shape for all spans: members are NLMS with a velocity in whitened coordinates | `L` a member, one vector lane each | 0.01 to 0.17 dB at 4 to 64 taps |
//! | 8192 samples after a jump the three numbers follow every fourth sample | 15 of 130 operations | none at 4 taps, 0.05 dB at 64 |
//! | weights and noise of the members change after four samples, after each where an error is large | one logarithm in four samples | 0.01 dB |
//! | after eight where the lanes carry the weight, the best of them spans 32 samples or more, and all is calm | one logarithm in eight samples | 0.001 to 0.006 dB |
//! | the curve learns from one sample in 4, later in 64 and 256, and is solved for once in 1024, later in 8192 | nearly nothing | 0.01 dB |
//! | the bank's Gram matrix is complete for 8192 samples, then as many are taken of each doubling; its products are summed over 16 samples in single precision; it is inverted at each doubling | 1/8 to 1/512 of the products | 0.05 dB |
//! | the bank's step (Newton's, with that inverse) is made after each block, later after every second | `K^2` in 256 samples | 0.01 dB |
//! | eight neighbours of the sixteen members run, those that carry the weight | half of the lanes | none (0.003 dB either way on A, B, D, E) |
//! | lanes or bank, where they carry next to no weight, run in one block of eight, a bank that had none for 1024 blocks in one of 64, however large the errors, one far behind in one of 32, later of 256 | half of all | none measured |
//! | simple filters that carry no weight, and are 6 dB behind or 32,768 samples old, sleep; a look at them takes two blocks and comes after a quarter as many samples as they are old, later after as many | nearly nothing | 0.3 dB and more behind them in two more simulated cases of 160 |
//! | the bank's best member runs alone in seven blocks of eight, and learns nothing in them where its window has no end | two thirds of the bank | 0.04 dB |
//!
//! # Why the lanes are fast
//!
//! A sample's prediction needs the taps that the sample before has changed, and that one's error needs its prediction: a chain. It is cut short: a sample is
//! predicted with the taps before the last change, and that prediction is corrected by the change times what the two windows have in common,
//! `sum_l conj(u~_{l,t-1}) u~_{l,t}`, which is known for the whole cell beforehand. The taps themselves are changed while the next sample is predicted.
//! For the same reason the weights of four samples are computed only after the members have gone on to the next four.
//!
//! # Order of work
//!
//! Samples are taken in cells (1 at the start, then 4 to 64) on a grid counted from the start of the stream. What looks at inputs alone (the curve's
//! outputs, whitened windows, features, the bank's predictions) is done for as many samples of a cell as a call brings, lane by lane, so that results do
//! not depend on where calls end. Members learn sample by sample. What is slow waits for the end of a cell or of a block of 128. Nothing is
//! allocated after the start, but where a signal begins behind noise and all is forgotten.
//!
//! 1. `input`: the unit of the input, its steps, glitches. `spline`, `curve`: `u = x G(|x|)`, and how `G` is learned.
//!    `excited`: the taps that it is learned through.
//! 2. `acquisition`: full covariances at the start and after a jump. `shape`: the shape of the covariances and the whitening filter.
//! 3. `lanes`: the members afterwards. `motion`: how fast they swing. `window`: which of them run. `run`: samples through them and the bank. `evidence`: weights and noise. `average`: what comes out.
//! 4. `features`, `bank`: the bank. `simple`: the simple filters. `carrier`: the common rotation. `step`, `slow`: what happens when.
//!
//! # What goes wrong, and what is done
//!
//! - A jump of the channel: squared errors of the lanes far above their variance. All members are opened and acquire, unless the bank describes the channel
//!   better than the lanes ever did.
//! - Garbage that leaves the lanes with taps or variances far out of range: simple filters are ahead soon, and lanes without any weight beside them begin from nothing, and the curve with them.
//! - A step of the level, of either stream: after 128 samples (louder) or 256 (quieter) the unit of the input follows, the curve is stretched along, and the noise is
//!   estimated anew. Over within 2,000 samples for steps of up to 60 dB either way.
//! - A block that excites what the bank's Gram matrix has hardly seen: its step is bounded by `|e|^2 / (2 g^H H g)`, so that it cannot overshoot. A member of
//!   the bank that is worse than none begins again.
//!
//! # Scale and precision
//!
//! `tx` is divided by its running RMS, variances are compared in units of a recent one, so that streams of any scale are tracked alike. Lanes, the bank's
//! predictions, steps and batches of its Gram matrix are in the precision of the samples; covariances, sums of the Gram matrix, its inversion, curve and shape in double
//! precision.
//!
//! Raftery, Karny, Ettler, *Online prediction under model uncertainty via dynamic model averaging*, 2010; Morgan et al., *A generalized memory polynomial
//! model*, 2006; Higham, *Functions of matrices*, 2008.

mod acquisition;
mod adaptive;
mod average;
mod bank;
mod carrier;
mod config;
mod constants;
mod curve;
mod evidence;
mod excited;
mod features;
mod input;
mod lanes;
mod matrix;
mod motion;
mod planes;
mod recipe;
mod run;
mod shape;
mod simple;
mod slow;
mod spline;
mod step;
mod window;

use num_complex::{Complex, Complex64};
use serde::{Deserialize, Serialize};

pub use config::{EnsembleConfig, pair};
pub(super) use recipe::RECIPE;

use self::acquisition::Acquisition;
use self::average::Average;
use self::bank::Bank;
use self::carrier::Carrier;
use self::constants::*;
use self::curve::Curve;
use self::excited::Excited;
use self::features::Streams;
use self::input::Input;
use self::lanes::{Lanes, White};
use self::motion::Motion;
use self::planes::Planes;
use self::shape::Shape;
use self::simple::Simple;
use super::{Portrait, Tracker, check_lengths};
use crate::simd::Level;
use crate::{Real, Result};

/// The tracker; the model is in the [module's documentation](self).
///
/// ```
/// use kaflow::{Complex, filter::{Tracker, ensemble::{Ensemble, EnsembleConfig}}};
/// // tanh, then a tap that turns; no noise.
/// let tx: Vec<Complex<f64>> = (0..4000).map(|n| Complex::new(2.0 * (0.7 * n as f64).sin(), 2.0 * (1.9 * (n as f64).sqrt() * 7.0).cos())).collect();
/// let rx: Vec<_> = tx.iter().enumerate().map(|(n, x)| x / x.norm() * x.norm().tanh() * Complex::from_polar(1.0, 1e-3 * n as f64)).collect();
/// let mut tracker = Ensemble::new(EnsembleConfig { taps: 1, ..EnsembleConfig::default() }).unwrap();
/// let mut prediction = vec![Complex::new(0.0, 0.0); 4000];
/// tracker.track(&tx, &rx, true, &mut prediction, None);
/// let error: f64 = rx.iter().zip(&prediction).skip(2000).map(|(y, p)| (y - p).norm_sqr()).sum();
/// assert!(error / 2000.0 < 1e-3, "{error}");
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Ensemble<T: Real> {
    config: EnsembleConfig,
    // The vector instructions of the machine that tracks, not of the one that saved.
    #[serde(skip)]
    level: Level,
    // Samples before the block that the planes keep.
    history: usize,
    input: Input<T>,
    streams: Streams<T>,
    curve: Curve<T>,
    shape: Shape<T>,
    excited: Excited<T>,
    acquisition: Acquisition,
    lanes: Lanes<T>,
    bank: Bank<T>,
    simple: Simple<T>,
    #[serde(skip)]
    white: Option<White<T>>,
    // Outputs of the block.
    y: Planes<T>,
    average: Average<T>,
    clock: Clock,
    carrier: Carrier<T>,
    motion: Motion,
    offset: Complex64,
    offset_variance: f64,
    // Mean power of the output.
    power: f64,
    taps: Vec<Complex<T>>,
    // Room for two windows.
    windows: [Vec<Complex64>; 2],
    running: [bool; 2],
    // Whether nothing is known of the noise.
    fresh: bool,
}

/// What has been counted.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Clock {
    /// Samples so far, and of them learned.
    time: u64,
    learned: u64,
    /// Samples in the block, where the present cell ends in it, and how long it is.
    at: usize,
    cell: usize,
    length: usize,
    /// Samples learned since the last jump, and since the curve was last stretched.
    since_jump: u64,
    since_change: u64,
    /// Blocks for which the lanes had no weight at all beside simple filters, and how many it takes until they begin anew.
    behind: u64,
    patience: u64,
    /// Samples until the curve learns next, once it is not eager any more.
    wait: u64,
    /// Samples since the shape was refreshed, and when it will be.
    since_shape: u64,
    next_shape: u64,
}

impl<T: Real> Ensemble<T> {
    /// A tracker that knows nothing yet.
    pub fn new(config: EnsembleConfig) -> Result<Self> {
        config.validate()?;
        let linear = config.still_taps.max(config.taps) + config.advance;
        let history = (features::reach(linear, config.advance).max(config.taps) + 2).next_multiple_of(16);
        let (features, short) = features::features(linear, config.advance, config.taps);
        Ok(Self {
            level: Level::current(),
            history,
            input: Input::new(history),
            streams: Streams::new(history),
            curve: Curve::new(),
            shape: Shape::new(config.taps),
            excited: Excited::new(config.taps),
            acquisition: Acquisition::new(config.taps),
            lanes: Lanes::new(config.taps),
            bank: Bank::new(features, short),
            simple: Simple::new(config.taps)?,
            white: Some(White::new(config.taps)),
            y: Planes::new(0),
            average: Average::new(),
            clock: Clock { cell: 1, length: 1, next_shape: REFRESH_FIRST, patience: LANES_BEHIND, ..Clock::default() },
            carrier: Carrier::new(),
            motion: Motion::default(),
            offset: Complex64::default(),
            offset_variance: OFFSET_PRIOR,
            power: 0.0,
            taps: vec![Complex::default(); config.taps],
            windows: [vec![Complex64::default(); config.taps], vec![Complex64::default(); config.taps]],
            running: [true, true],
            fresh: false,
            config,
        })
    }

    /// The taps of the channel as it is now, newest sample first, for input in the units of `tx`.
    pub(crate) fn taps(&self) -> Vec<Complex64> {
        let mut taps = vec![Complex::default(); self.config.taps];
        self.heaviest(&mut taps);
        taps.into_iter().map(|h| Complex64::new(h.re.wide(), h.im.wide()) * self.input.inverse()).collect()
    }

    /// The gain `G(|x|)` at an envelope in the units of `tx`; its power-weighted mean is 1.
    pub(crate) fn gain(&self, envelope: f64) -> Complex64 {
        self.curve.gain(envelope * self.input.inverse())
    }

    /// The carrier offset that was found, in radians a sample.
    pub fn carrier(&self) -> f64 {
        self.carrier.step
    }

    /// The constant that the receiver adds.
    pub fn offset(&self) -> Complex64 {
        self.offset
    }

    /// The taps of the heaviest member, for the curve's outputs.
    fn heaviest(&self, to: &mut [Complex<T>]) {
        let best = self.lanes.evidence.best();
        if self.acquisition.left > 0 {
            to.iter_mut().zip(self.acquisition.position(best)).for_each(|(to, h)| *to = Complex::new(T::of(h.re), T::of(h.im)));
        } else {
            self.shape.colour_into(self.lanes.present(best, self.white.as_ref(), self.clock.at.wrapping_sub(1)), to);
        }
    }
}

impl<T: Real> Tracker<T> for Ensemble<T> {
    fn taps(&self) -> usize {
        self.config.taps.max(self.config.still_taps) + self.config.advance
    }

    fn track(&mut self, tx: &[Complex<T>], rx: &[Complex<T>], learn: bool, prediction: &mut [Complex<T>], mut variance: Option<&mut [T]>) {
        check_lengths(tx, rx, prediction, variance.as_deref());
        let mut done = 0;
        while done < rx.len() {
            let n = (rx.len() - done).min(self.clock.cell - self.clock.at);
            let from = self.clock.at;
            self.chunk(&tx[done..done + n], &rx[done..done + n], learn);
            self.carrier.redo(&self.average.p, from, &mut prediction[done..done + n]);
            if let Some(v) = variance.as_deref_mut() {
                v[done..done + n].copy_from_slice(&self.average.v[from..from + n]);
            }
            done += n;
            if self.clock.at == self.clock.cell {
                self.end_cell(learn);
            }
        }
    }

    fn gap(&mut self, _missing: u64) {
        // What the channel did meanwhile is not known.
        if self.clock.learned > SETTLED {
            self.jump();
        }
    }

    fn response(&self) -> Vec<Complex64> {
        self.taps()
    }

    fn portrait(&self) -> Portrait {
        let mut portrait = Portrait::of_taps(&self.taps());
        let lanes = self
            .lanes
            .evidence
            .weight
            .0
            .iter()
            .enumerate()
            .map(|(m, w)| (format!("span {:.0}", lanes::span(m)), *w * self.average.shares[0]));
        let bank = bank::NAMES.iter().zip(self.bank.evidence.weight.0).map(|(name, w)| ((*name).to_owned(), w * self.average.shares[1]));
        let simple =
            simple::NAMES.iter().zip(self.simple.evidence.weight.0).map(|(name, w)| ((*name).to_owned(), w * self.average.shares[2]));
        portrait.members = lanes.chain(bank).chain(simple).map(|(name, w)| (name, w.wide())).collect();
        let inverse = self.input.inverse();
        if inverse > 0.0 {
            // As far as the control points reach.
            let envelopes = (0..64).map(|i| (POINTS - 3) as f64 * STEP / 63.0 * f64::from(i) / inverse);
            portrait.gain = envelopes.map(|r| (r, self.gain(r))).collect();
        }
        portrait
    }
}
