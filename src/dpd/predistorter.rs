//! The predistorter: a table with memory.

use num_complex::{Complex32, Complex64};
use serde::{Deserialize, Serialize};

use super::Model;
use super::basis::{Basis, Term};
use super::fit::Equations;
use crate::dsp::{narrow, wide};
use crate::error::require;
use crate::{Error, Result};

/// Rounds of the inversion, and how far each goes: with a gain that varies by less than a factor of two they converge.
const ROUNDS: usize = 16;
const STEP: f64 = 0.8;
/// Control points of the inverse's functions: it has a corner where the level is reached.
const POINTS: usize = 24;
/// Rows of the table.
const ROWS: usize = 512;

/// What a predistorter is: for each term a complex gain over the envelope, in equal steps from 0 to `reach`, straight in between; and the envelope that its
/// output is held to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// The envelope of the last row.
    pub reach: f64,
    /// The largest envelope that is put out.
    pub level: f64,
    /// The products.
    pub terms: Vec<Term>,
    /// Rows from envelope 0 to `reach`: real and imaginary part for each term.
    pub rows: Vec<Vec<[f64; 2]>>,
}

impl Table {
    /// Passes everything up to `level` on as it is.
    pub fn bypass(level: f64) -> Self {
        Self { reach: level, level, terms: vec![Term { sample: 0, envelope: 0 }], rows: vec![vec![[1.0, 0.0]]; 2] }
    }

    /// The inverse of an amplifier for signals like `signal`, held to `level`, which comes out `back_off_db` weaker than without: a tenth of a dB is room for peaks.
    ///
    /// The input for which the amplifier puts out `x` is the fixed point of `z ← clip(z + 0.8 (x − u(z)))`; a table with the same terms is then fitted from `x`
    /// to `z`, so that what runs needs no rounds.
    pub fn invert(model: &Model, signal: &[Complex64], level: f64, back_off_db: f64) -> Result<Self> {
        require((0.0..=20.0).contains(&back_off_db), "back-off", "between 0 and 20 dB", back_off_db)?;
        let gain = libm::pow(10.0, -back_off_db / 20.0);
        let wanted: Vec<Complex64> = signal.iter().map(|x| x * gain).collect();
        Self::fitted(model.basis.longest(), signal, &inverse(model, &wanted, level), level)
    }

    /// The table that makes `to` of `from`: indirect learning, where `from` is what the amplifier put out, with a gain of 1, and `to` what it was given.
    pub fn fitted(memory: usize, from: &[Complex64], to: &[Complex64], level: f64) -> Result<Self> {
        let reach = from.iter().map(|z| z.norm_sqr()).filter(|p| p.is_finite()).fold(0.0, f64::max).sqrt();
        require(reach > 0.0, "signal", "not silent", reach)?;
        let basis = Basis::new(memory, POINTS, reach);
        let mut equations = Equations::new(basis.len());
        let mut products = Vec::new();
        for n in basis.longest()..from.len().min(to.len()) {
            basis.products(from, n, &mut products);
            equations.add(&products, to[n], from[n].norm_sqr());
        }
        let weights = equations.solve(&basis)?;
        let row = |i: usize| basis.gains(&weights, reach * i as f64 / (ROWS - 1) as f64).iter().map(|g| [g.re, g.im]).collect();
        Self { reach, level, terms: basis.terms.clone(), rows: (0..ROWS).map(row).collect() }.checked()
    }

    /// Refuses numbers that cannot be run.
    pub(crate) fn checked(self) -> Result<Self> {
        require(self.reach > 0.0 && self.reach.is_finite(), "reach", "positive", self.reach)?;
        require(self.level > 0.0 && self.level.is_finite(), "level", "positive", self.level)?;
        require((2..=65_536).contains(&self.rows.len()), "rows", "between 2 and 65536", self.rows.len() as f64)?;
        require((1..=64).contains(&self.terms.len()), "terms", "between 1 and 64", self.terms.len() as f64)?;
        let longest = self.terms.iter().map(|t| t.sample.max(t.envelope)).max().unwrap_or(0);
        require(longest <= 64, "terms", "at most 64 samples back", longest as f64)?;
        match self.rows.iter().position(|row| row.len() != self.terms.len() || row.iter().flatten().any(|x| !x.is_finite())) {
            Some(row) => Err(Error::Data(format!("row {row} of the predistorter must hold {} finite gains", self.terms.len()))),
            None => Ok(self),
        }
    }

    /// Whether it passes everything below its level on as it is.
    #[cfg(feature = "blocks")]
    pub(crate) fn is_bypass(&self) -> bool {
        *self == Self::bypass(self.level)
    }

    /// Samples before the present one that are needed.
    pub(crate) fn memory(&self) -> usize {
        self.terms.iter().map(|t| t.sample.max(t.envelope)).max().unwrap_or(0)
    }
}

/// What to send so that the amplifier puts out `signal`, held to `level`.
fn inverse(model: &Model, signal: &[Complex64], level: f64) -> Vec<Complex64> {
    let mut sent = signal.to_vec();
    for _ in 0..ROUNDS {
        let out = model.apply(&sent);
        for ((z, u), x) in sent.iter_mut().zip(&out).zip(signal) {
            *z += STEP * (x - u);
            let r = z.norm();
            if r > level {
                *z *= level / r;
            }
        }
    }
    sent
}

/// A [`Table`] at work on a stream.
#[derive(Clone, Debug)]
pub struct Predistorter {
    terms: Vec<(usize, usize)>,
    /// Gains, a row after the other, each padded to whole vectors.
    rows: Vec<f32>,
    stride: usize,
    /// Rows for a unit of envelope.
    scale: f32,
    last: f32,
    level: f32,
    /// The last samples and the rows of their envelopes, in a ring of a power of two.
    samples: Vec<Complex32>,
    gains: Vec<f32>,
    at: usize,
}

/// Floats in a vector of the plainest machine; rows are padded to them.
const LANES: usize = 4;

impl Predistorter {
    /// Runs `table` from silence.
    pub fn new(table: Table) -> Result<Self> {
        let table = table.checked()?;
        let stride = (2 * table.terms.len()).next_multiple_of(LANES);
        let mut rows = Vec::with_capacity(stride * (table.rows.len() + 1));
        // The last one twice: at its very end an envelope still lies between two.
        for row in table.rows.iter().chain(table.rows.last()) {
            rows.extend(row.iter().flatten().map(|&x| x as f32));
            rows.resize(rows.len().next_multiple_of(stride), 0.0);
        }
        let ring = (table.memory() + 1).next_power_of_two();
        let last = (table.rows.len() - 1) as f32;
        Ok(Self {
            terms: table.terms.iter().map(|t| (t.sample, t.envelope)).collect(),
            scale: last / table.reach as f32,
            last,
            level: table.level as f32,
            samples: vec![Complex32::default(); ring],
            gains: vec![0.0; ring * stride],
            at: 0,
            rows,
            stride,
        })
    }

    /// Continues the stream of another one, so that the first samples here know those before.
    pub(crate) fn follow(&mut self, other: &Self) {
        let back = self.samples.len().min(other.samples.len());
        for k in (0..back).rev() {
            let z = other.samples[other.at.wrapping_sub(k + 1) & (other.samples.len() - 1)];
            self.step(z);
        }
    }

    /// Distorts the next samples of the stream. One that is not finite becomes silence.
    pub fn process(&mut self, samples: &mut [Complex32]) {
        for z in samples {
            *z = self.step(*z);
        }
    }

    #[inline(always)]
    fn step(&mut self, z: Complex32) -> Complex32 {
        let z = if z.re.is_finite() && z.im.is_finite() { z } else { Complex32::default() };
        let mask = self.samples.len() - 1;
        let now = self.at & mask;
        self.at = self.at.wrapping_add(1);
        self.samples[now] = z;
        let place = ((z.re * z.re + z.im * z.im).sqrt() * self.scale).min(self.last);
        let row = place as usize;
        let part = place - row as f32;
        let (low, high) = self.rows[row * self.stride..(row + 2) * self.stride].split_at(self.stride);
        let gains = &mut self.gains[now * self.stride..(now + 1) * self.stride];
        for ((to, a), b) in gains.chunks_exact_mut(LANES).zip(low.chunks_exact(LANES)).zip(high.chunks_exact(LANES)) {
            for ((to, a), b) in to.iter_mut().zip(a).zip(b) {
                *to = a + part * (b - a);
            }
        }
        let (mut re, mut im) = (0.0, 0.0);
        for (t, &(sample, envelope)) in self.terms.iter().enumerate() {
            let x = self.samples[now.wrapping_sub(sample) & mask];
            let at = (now.wrapping_sub(envelope) & mask) * self.stride + 2 * t;
            let (a, b) = (self.gains[at], self.gains[at + 1]);
            re += x.re * a - x.im * b;
            im += x.re * b + x.im * a;
        }
        let power = re * re + im * im;
        let hold = if power > self.level * self.level { self.level / power.sqrt() } else { 1.0 };
        // Beyond the range of the numbers the level still holds.
        if power.is_finite() { Complex32::new(re * hold, im * hold) } else { Complex32::default() }
    }
}

/// `samples` through `table`, from silence.
pub fn predistort(table: &Table, samples: &[Complex64]) -> Result<Vec<Complex64>> {
    let mut sent: Vec<Complex32> = samples.iter().map(|&z| narrow(z)).collect();
    Predistorter::new(table.clone())?.process(&mut sent);
    Ok(sent.into_iter().map(wide).collect())
}
