//! Kernel recursive least squares with a tracker's forgetting.

use num_complex::Complex;
use serde::{Deserialize, Serialize};

use super::registry::{Dash, Hue, Make, Preset, Recipe, Settings, log, shared::*};
use super::{Adaptive, Filter, Portrait, Weight, finite, require, state};
use crate::kernel::{Centres, Kernel, Row};
use crate::{Error, Real, Result};

pub(super) const RECIPE: Recipe = Recipe {
    name: "krlst",
    aliases: &[],
    about: "kernel recursive least squares tracker, with variance",
    reference: "Van Vaerenbergh, Lazaro-Gredilla, Santamaria 2012",
    // Its noise is in units of the prior variance, whatever the power of the targets.
    parameters: &[KERNEL, SIGMA, DEGREE, LAMBDA, NOISE.within(log(1e-4, 1.0)), BUDGET.preset(Preset::Is(100.0))],
    likelihood: None,
    look: (Hue::Green, Dash::Solid),
    make: Make::Filter(build, build),
};

fn build<T: Real>(s: &Settings, taps: usize) -> Result<Box<dyn Filter<T>>> {
    let budget = s.whole(BUDGET.name)?.unwrap_or(100);
    Ok(Box::new(KrlsT::new(s.kernel()?, s.number(LAMBDA.name)?, s.number(NOISE.name)?, budget, taps)?))
}

/// KRLS-T: a Gaussian process over at most `budget` basis points with back-to-the-prior forgetting, and its predictive variance.
///
/// Van Vaerenbergh, Lázaro-Gredilla, Santamaría, *Kernel recursive least-squares tracker for time-varying regression*, 2012. As in KAFBOX, the reported prediction
/// uses the state before forgetting; the jitter is 1e-6; when full, the point whose loss costs least, `|(Qμ)_i| / Q_ii`, is dropped. The real part of the
/// kernel is used, so that with a complex target a linear kernel gives widely linear functions. The variance is scaled by the power that the data show.
/// Matrices are in double precision. Cost is quadratic in the budget.
pub struct KrlsT<T: Real, K> {
    kernel: K,
    lambda: f64,
    noise: f64,
    budget: usize,
    taps: usize,
    memory: Memory<T>,
    row: Row<T>,
    /// Scratch: `Q k` and `Σ Q k`, and the kernel values.
    q: Vec<f64>,
    h: Vec<f64>,
    k: Vec<f64>,
    variance: f64,
}

const JITTER: f64 = 1e-6;

/// All that was learned. Matrices have room for one more point than the budget and rows of that length.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(bound = "")]
struct Memory<T: Real> {
    centres: Centres<T>,
    /// When each centre was admitted, counted in centres.
    born: Vec<u64>,
    admitted: u64,
    mean: Vec<Complex<f64>>,
    covariance: Vec<f64>,
    gram: Vec<f64>,
    inverse: Vec<f64>,
    /// Power of the data against the prior's: squared errors over their expected size, and how many.
    power: (f64, f64),
}

impl<T: Real, K: Kernel<T>> KrlsT<T, K> {
    /// Forgetting `lambda` in (0, 1], noise variance against a prior of `k(x,x)`, at most `budget` points (cost grows with its square), vectors of `taps`.
    pub fn new(kernel: K, lambda: f64, noise: f64, budget: usize, taps: usize) -> Result<Self> {
        require(taps > 0, "taps", "at least 1", taps as f64)?;
        require((1..=20_000).contains(&budget), "budget", "from 1 to 20000", budget as f64)?;
        let n = budget + 1;
        let mut centres = Centres::new(taps);
        centres.reserve(n);
        let matrix = vec![0.0; n * n];
        let mut filter = Self {
            kernel,
            lambda,
            noise,
            budget,
            taps,
            memory: Memory {
                centres,
                born: Vec::with_capacity(n),
                admitted: 0,
                mean: Vec::with_capacity(n),
                covariance: matrix.clone(),
                gram: matrix.clone(),
                inverse: matrix,
                power: (0.0, 0.0),
            },
            row: Row::default(),
            q: vec![0.0; n],
            h: vec![0.0; n],
            k: vec![0.0; n],
            variance: f64::NAN,
        };
        filter.row.resize(n);
        filter.set("lambda", lambda)?;
        filter.set("noise", noise)?;
        Ok(filter)
    }

    fn stride(&self) -> usize {
        self.budget + 1
    }

    /// Kernel values, `q = Q k`; returns `(kᵀQμ, γ² = k(x,x) + jitter − kᵀq)`.
    fn project(&mut self, x: &[Complex<T>]) -> (Complex<f64>, f64) {
        assert_eq!(x.len(), self.taps, "input length");
        let m = self.memory.centres.len();
        self.kernel.row(&self.memory.centres, x, &mut self.row);
        self.k.iter_mut().zip(&self.row.re).for_each(|(k, r)| *k = r.wide());
        times(&self.memory.inverse, self.stride(), &self.k[..m], &mut self.q[..m]);
        let mean = self.q[..m].iter().zip(&self.memory.mean).map(|(&q, mu)| mu * q).sum();
        let explained: f64 = self.k[..m].iter().zip(&self.q).map(|(k, q)| k * q).sum();
        (mean, (self.kernel.norm(x).wide() + JITTER - explained).max(0.0))
    }

    /// `h = Σ q`; returns the latent variance `γ² + qᵀh`.
    fn spread(&mut self, gamma: f64) -> f64 {
        let m = self.memory.centres.len();
        times(&self.memory.covariance, self.stride(), &self.q[..m], &mut self.h[..m]);
        let s: f64 = self.q[..m].iter().zip(&self.h).map(|(q, h)| q * h).sum();
        (gamma + s).max(0.0)
    }

    fn forget(&mut self) {
        let (m, n) = (self.memory.centres.len(), self.stride());
        let memory = &mut self.memory;
        for i in 0..m {
            let gram = &memory.gram[i * n..][..m];
            for (s, &k) in memory.covariance[i * n..][..m].iter_mut().zip(gram) {
                *s = self.lambda * *s + (1.0 - self.lambda) * k;
            }
        }
        let root = self.lambda.sqrt();
        memory.mean.iter_mut().for_each(|mu| *mu *= root);
    }

    fn learn(&mut self, x: &[Complex<T>], y: Complex<f64>) {
        if self.lambda < 1.0 {
            self.forget();
        }
        let (mean, gamma) = self.project(x);
        let latent = self.spread(gamma);
        let total = latent + self.noise;
        let (m, n) = (self.memory.centres.len(), self.stride());
        let memory = &mut self.memory;
        let step = (y - mean) / total;
        if !(finite(step) && total.is_finite()) {
            return;
        }
        // Rounding can leave a new point without novelty; it is absorbed and not kept.
        let novel = gamma >= JITTER;
        if novel {
            memory.centres.push(x);
            memory.born.push(memory.admitted);
            memory.admitted += 1;
            for i in 0..m {
                memory.gram[i * n + m] = self.k[i];
                memory.gram[m * n + i] = self.k[i];
                memory.covariance[i * n + m] = self.h[i];
                memory.covariance[m * n + i] = self.h[i];
                memory.inverse[i * n + m] = 0.0;
                memory.inverse[m * n + i] = 0.0;
            }
            memory.gram[m * n + m] = self.kernel.norm(x).wide() + JITTER;
            memory.covariance[m * n + m] = latent;
            memory.inverse[m * n + m] = 0.0;
            memory.mean.push(mean);
            (self.q[m], self.h[m]) = (-1.0, latent);
            rank_one(&mut memory.inverse, n, &self.q[..=m], 1.0 / gamma);
        }
        let size = memory.centres.len();
        memory.mean.iter_mut().zip(&self.h).for_each(|(mu, &h)| *mu += step * h);
        rank_one(&mut memory.covariance, n, &self.h[..size], -1.0 / total);
        memory.power.0 = self.lambda * memory.power.0 + 0.5 * (y - mean).norm_sqr() / total;
        memory.power.1 = self.lambda * memory.power.1 + 0.5;
        if size > self.budget {
            self.drop_cheapest();
        }
    }

    fn drop_cheapest(&mut self) {
        let (size, n) = (self.memory.centres.len(), self.stride());
        let memory = &mut self.memory;
        let cost = |i: usize| {
            let row = &memory.inverse[i * n..][..size];
            row.iter().zip(&memory.mean).map(|(&q, mu)| mu * q).sum::<Complex<f64>>().norm() / row[i]
        };
        let mut drop = (f64::INFINITY, 0);
        for i in 0..size {
            let c = cost(i);
            if c < drop.0 {
                drop = (c, i);
            }
        }
        let r = drop.1;
        let pivot = memory.inverse[r * n + r];
        self.q[..size].copy_from_slice(&memory.inverse[r * n..][..size]);
        rank_one(&mut memory.inverse, n, &self.q[..size], -1.0 / pivot);
        let last = size - 1;
        for matrix in [&mut memory.inverse, &mut memory.covariance, &mut memory.gram] {
            // The last point takes the place of the dropped one: first its row, then its column.
            matrix.copy_within(last * n..last * n + size, r * n);
            for i in 0..size {
                matrix[i * n + r] = matrix[i * n + last];
            }
        }
        memory.mean.swap_remove(r);
        memory.centres.swap_remove(r);
        memory.born.swap_remove(r);
    }

    fn kind(&self) -> String {
        state::kind::<T>(&format!("krls-t, {}", self.kernel.describe()))
    }
}

/// `out = A v` for a symmetric matrix with rows of length `stride`.
fn times(a: &[f64], stride: usize, v: &[f64], out: &mut [f64]) {
    out.fill(0.0);
    // By columns, which are rows: sums of whole rows vectorise, dot products do not.
    for (row, &v) in a.chunks_exact(stride).zip(v) {
        out.iter_mut().zip(row).for_each(|(o, &a)| *o += a * v);
    }
}

/// `A += factor · v vᵀ`.
fn rank_one(a: &mut [f64], stride: usize, v: &[f64], factor: f64) {
    for (row, &p) in a.chunks_exact_mut(stride).zip(v) {
        row.iter_mut().zip(v).for_each(|(a, &q)| *a += factor * (p * q));
    }
}

impl<T: Real, K: Kernel<T>> Adaptive for KrlsT<T, K> {
    fn size(&self) -> usize {
        self.memory.centres.len()
    }

    fn reset(&mut self) {
        self.memory.centres.clear();
        self.memory.born.clear();
        self.memory.admitted = 0;
        self.memory.mean.clear();
        self.memory.power = (0.0, 0.0);
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "lambda" => {
                require(value > 0.0 && value <= 1.0, name, "above 0 and at most 1", value)?;
                self.lambda = value;
            }
            "noise" => {
                require(value > 0.0 && value.is_finite(), name, "positive", value)?;
                self.noise = value;
            }
            _ => {
                let known = vec!["lambda".into(), "noise".into()];
                return Err(Error::NotApplicable { filter: "krlst".into(), name: name.into(), known });
            }
        }
        Ok(())
    }

    fn save(&self) -> Result<Vec<u8>> {
        state::encode(&self.kind(), &(self.lambda, self.noise, &self.memory))
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<()> {
        let (lambda, noise, mut memory): (f64, f64, Memory<T>) = state::decode(&self.kind(), bytes)?;
        memory.centres.check(self.taps)?;
        let n = self.stride();
        for matrix in [&memory.covariance, &memory.gram, &memory.inverse] {
            state::same_shape("entries in a matrix", matrix.len(), n * n)?;
        }
        state::same_shape("means", memory.mean.len(), memory.centres.len())?;
        state::same_shape("ages", memory.born.len(), memory.centres.len())?;
        if memory.centres.len() > self.budget {
            return Err(Error::State(format!("it has {} points, above this filter's budget of {}", memory.centres.len(), self.budget)));
        }
        memory.centres.reserve(n);
        let before = (self.lambda, self.noise);
        if let Err(error) = self.set("lambda", lambda).and_then(|()| self.set("noise", noise)) {
            (self.lambda, self.noise) = before;
            return Err(error);
        }
        memory.mean.reserve(n);
        memory.born.reserve(n);
        self.memory = memory;
        Ok(())
    }
}

impl<T: Real, K: Kernel<T>> Filter<T> for KrlsT<T, K> {
    fn taps(&self) -> usize {
        self.taps
    }

    fn predict(&mut self, x: &[Complex<T>]) -> Complex<T> {
        if !x.iter().all(|&z| finite(z)) {
            self.variance = f64::NAN;
            return Complex::new(T::zero(), T::zero());
        }
        let (mean, gamma) = self.project(x);
        let (errors, count) = self.memory.power;
        let power = if count > 0.0 { errors / count } else { 1.0 };
        self.variance = power * (self.spread(gamma) + self.noise);
        Complex::new(T::of(mean.re), T::of(mean.im))
    }

    fn adapt(&mut self, x: &[Complex<T>], y: Complex<T>) -> Complex<T> {
        let p = self.predict(x);
        if finite(y) && x.iter().all(|&z| finite(z)) {
            self.learn(x, Complex::new(y.re.wide(), y.im.wide()));
        }
        p
    }

    fn variance(&self) -> Option<T> {
        Some(T::of(self.variance))
    }

    fn portrait(&self) -> Portrait {
        let memory = &self.memory;
        // The function is `k(x)ᵀQμ`: its coefficients are Qμ.
        let rows = memory.inverse.chunks_exact(self.stride()).zip(&memory.born);
        let weight = |(row, born): (&[f64], &u64)| {
            let coefficient: Complex<f64> = row.iter().zip(&memory.mean).map(|(&q, mu)| mu * q).sum();
            Weight { age: memory.admitted.saturating_sub(born + 1), size: coefficient.norm() }
        };
        Portrait { weights: rows.map(weight).collect(), ..Portrait::default() }
    }
}
