//! Is there a short training?

use num_complex::{Complex32, Complex64};

/// The normalised autocorrelation of the last `window` samples with those `lag` before them, `|P|² / (R₀R₁)`, slid along a stream.
///
/// Both windows' powers are in it, so that it is at most 1 (Cauchy and Schwarz) also where a frame rises out of silence.
#[derive(Clone, Debug)]
pub(crate) struct Detector {
    lag: usize,
    window: usize,
    cross: Complex64,
    late: f64,
    early: f64,
    /// Largest power in the sums since they were taken afresh: what rounding left behind is below 1e-11 of it.
    largest: f64,
    /// Steps until the sums are taken afresh.
    fresh: usize,
    /// The highest correlation seen, 0 to 1.
    best: f64,
}

/// A quarter of the power may be noise (2.4 dB SNR), and random samples stay far below.
const THRESHOLD: f64 = 0.4;

impl Detector {
    pub(crate) fn new(size: usize) -> Self {
        Self { lag: size / 4, window: size, cross: Complex64::default(), late: 0.0, early: 0.0, largest: 0.0, fresh: 0, best: 0.0 }
    }

    /// How many samples before the current one it looks at.
    pub(crate) fn reach(&self) -> usize {
        self.window + self.lag
    }

    /// Forgets the sums: the next step takes them afresh.
    pub(crate) fn reset(&mut self) {
        self.fresh = 0;
    }

    /// The highest correlation seen so far, and what it takes.
    pub(crate) fn best(&self) -> (f64, f64) {
        (self.best, THRESHOLD)
    }

    /// The first index from `from` on where the short training shows. Needs [`reach`](Self::reach) samples before `from`.
    pub(crate) fn find(&mut self, samples: &[Complex32], from: usize) -> Option<usize> {
        (from..samples.len()).find(|&n| {
            if self.fresh == 0 {
                (self.cross, self.late, self.early) = self.sums(samples, n);
                self.largest = 0.0;
                self.fresh = 8 * self.window;
            } else {
                let (enter, middle) = (wide(samples[n]), wide(samples[n - self.lag]));
                let (leave, behind) = (wide(samples[n - self.window]), wide(samples[n - self.reach()]));
                self.cross += enter * middle.conj() - leave * behind.conj();
                self.late += enter.norm_sqr() - leave.norm_sqr();
                self.early += middle.norm_sqr() - behind.norm_sqr();
            }
            self.fresh -= 1;
            self.largest = self.largest.max(self.late);
            let floor = 1e-11 * self.largest;
            let (square, both) = (self.cross.norm_sqr(), self.early * self.late);
            if self.early <= floor || self.late <= floor {
                return false;
            }
            if square > self.best * both {
                self.best = (square / both).min(1.0);
            }
            square > THRESHOLD * both
        })
    }

    /// Carrier offset in cycles a sample, from the window that ends at `n`; unambiguous within half a cycle in `lag` samples.
    pub(crate) fn offset(&self, samples: &[Complex32], n: usize) -> f64 {
        self.sums(samples, n).0.arg() / (std::f64::consts::TAU * self.lag as f64)
    }

    fn sums(&self, samples: &[Complex32], n: usize) -> (Complex64, f64, f64) {
        let late = &samples[n + 1 - self.window..=n];
        let early = &samples[n + 1 - self.reach()..];
        late.iter()
            .zip(early)
            .map(|(&l, &e)| (wide(l), wide(e)))
            .fold(Default::default(), |(cross, late, early), (l, e)| (cross + l * e.conj(), late + l.norm_sqr(), early + e.norm_sqr()))
    }
}

pub(crate) fn wide(z: Complex32) -> Complex64 {
    Complex64::new(f64::from(z.re), f64::from(z.im))
}
