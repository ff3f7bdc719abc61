//! How good a set of parameters is: its one-step-ahead error on the data.

use crate::dsp::db;
use crate::filter::Guard;
use crate::filter::registry::{self, Settings};
use crate::metrics::power;
use crate::real::finite;
use crate::{Complex32, Error, Result};

/// The streams that candidates are tried on.
pub(crate) struct Data {
    tx: Vec<Complex32>,
    rx: Vec<Complex32>,
    pub(crate) taps: usize,
    /// Samples at the start that are learned from and not counted.
    pub(crate) burn_in: usize,
    input_power: f64,
    /// Energy of the targets that are counted.
    energy: f64,
}

/// On fewer samples nothing can be told.
const LEAST: usize = 20;

impl Data {
    /// Refuses what no filter can be told apart on.
    pub(crate) fn new(tx: Vec<Complex32>, rx: Vec<Complex32>, taps: usize, burn_in: usize) -> Result<Self> {
        if rx.len() < LEAST {
            return Err(Error::parameter("samples", format!("at least {LEAST} to tune on"), rx.len()));
        }
        if burn_in + 10 > rx.len() {
            let expected = format!("at least 10 less than the {} samples", rx.len());
            return Err(Error::parameter("burn-in", expected, burn_in));
        }
        let input_power = power(&tx);
        let energy = rx[burn_in..].iter().filter(|&&y| finite(y)).map(|y| f64::from(y.re).powi(2) + f64::from(y.im).powi(2)).sum();
        if !(input_power > 0.0 && energy > 0.0) {
            return Err(Error::Data(format!(
                "the first {} samples hold no signal: take more --samples, or align the recordings",
                rx.len()
            )));
        }
        Ok(Self { tx, rx, taps, burn_in, input_power, energy })
    }

    /// `sqrt(E‖x‖²)` of the filters' input vectors.
    pub(crate) fn spread(&self) -> f64 {
        (self.input_power * self.taps as f64).sqrt()
    }

    /// Mean power of what is predicted.
    pub(crate) fn target_power(&self) -> f64 {
        self.energy / (self.rx.len() - self.burn_in) as f64
    }

    pub(crate) fn samples(&self) -> usize {
        self.rx.len()
    }

    /// What was sent and received.
    pub(crate) fn streams(&self) -> (&[Complex32], &[Complex32]) {
        (&self.tx, &self.rx)
    }
}

/// So many times on the way a candidate is compared with the best one.
const CHECKS: usize = 20;
/// A candidate whose error is so many times that of the best one, after a quarter of the counted samples, is given up.
const HOPELESS: f64 = 2.0;

/// What a candidate has reached.
#[derive(Clone, Debug)]
pub(crate) struct Score {
    /// NMSE after the burn-in; of one that was given up, what the best one has got plus the distance at that point.
    pub(crate) db: f64,
    /// Whether it ran to the end.
    pub(crate) complete: bool,
    /// Squared error so far, at every check.
    errors: Vec<f64>,
}

/// Runs the filter; gives up where it can no longer catch up with `rival`.
pub(crate) fn score(settings: &Settings, data: &Data, rival: Option<&Score>) -> Result<Score> {
    let mut tracker = Guard::new(registry::tracker::<f32>(settings, data.taps)?);
    let n = data.rx.len();
    let mut prediction = vec![Complex32::default(); n / CHECKS + 1];
    let mut errors = Vec::with_capacity(CHECKS);
    let mut error = 0.0;
    for check in 0..CHECKS {
        let (start, end) = (n * check / CHECKS, n * (check + 1) / CHECKS);
        let prediction = &mut prediction[..end - start];
        tracker.track(&data.tx[start..end], &data.rx[start..end], prediction, None);
        let counted = data.burn_in.clamp(start, end) - start;
        for (y, p) in data.rx[start..end].iter().zip(&*prediction).skip(counted).filter(|(y, _)| finite(**y)) {
            error += f64::from(y.re - p.re).powi(2) + f64::from(y.im - p.im).powi(2);
        }
        // An error that is not a number is as large as can be.
        error = if error.is_nan() { f64::INFINITY } else { error };
        errors.push(error);
        let Some(rival) = rival else { continue };
        let (now, last) = (rival.errors[check], rival.errors[CHECKS - 1]);
        let hopeless = end > data.burn_in + (n - data.burn_in) / 4 && error > HOPELESS * now;
        if check + 1 < CHECKS && (hopeless || error > last) {
            return Ok(Score { db: rival.db + db(error, now.max(f64::MIN_POSITIVE)), complete: false, errors });
        }
    }
    Ok(Score { db: db(error, data.energy), complete: true, errors })
}
