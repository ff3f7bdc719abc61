//! Gray-labelled square constellations.

use std::str::FromStr;

use num_complex::Complex32;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A constellation of unit mean power, Gray-labelled as in IEEE 802.11: the first half of a label's bits is the real axis,
/// the second half the imaginary one, most significant bit first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Modulation {
    /// One bit, on the real axis.
    Bpsk,
    /// Two bits.
    Qpsk,
    /// Four bits.
    Qam16,
    /// Six bits.
    Qam64,
    /// Eight bits.
    Qam256,
}

impl Modulation {
    /// All of them, fewest bits first.
    pub(crate) const ALL: [Self; 5] = [Self::Bpsk, Self::Qpsk, Self::Qam16, Self::Qam64, Self::Qam256];

    /// Its points, that of label 0 first.
    ///
    /// ```
    /// use kaflow::ofdm::Modulation;
    /// let point = Modulation::Qam16.points()[0b1001]; // real axis "10": +3, imaginary axis "01": -1
    /// assert!((point - kaflow::Complex32::new(3.0, -1.0) / 10f32.sqrt()).norm() < 1e-6);
    /// ```
    pub fn points(self) -> Vec<Complex32> {
        Constellation::new(self).points
    }

    /// The name as options and files spell it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Bpsk => "bpsk",
            Self::Qpsk => "qpsk",
            Self::Qam16 => "qam16",
            Self::Qam64 => "qam64",
            Self::Qam256 => "qam256",
        }
    }

    /// Bits in one point.
    pub(crate) fn bits(self) -> usize {
        match self {
            Self::Bpsk => 1,
            Self::Qpsk => 2,
            Self::Qam16 => 4,
            Self::Qam64 => 6,
            Self::Qam256 => 8,
        }
    }

    /// Levels on the real axis.
    fn levels(self) -> usize {
        1 << self.bits().div_ceil(2)
    }

    /// Half the distance of two neighbouring points.
    pub(crate) fn half_distance(self) -> f64 {
        let levels = self.levels() as f64;
        let axes = if self == Self::Bpsk { 1.0 } else { 2.0 };
        (3.0 / (axes * (levels * levels - 1.0))).sqrt()
    }
}

impl FromStr for Modulation {
    type Err = Error;
    fn from_str(name: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|m| m.name() == name).ok_or_else(|| Error::unknown("modulation", name, Self::ALL.map(Self::name)))
    }
}

impl std::fmt::Display for Modulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

fn gray(level: usize) -> usize {
    level ^ (level >> 1)
}

fn ungray(label: usize) -> usize {
    (0..usize::BITS).fold(0, |level, shift| level ^ (label >> shift))
}

/// A [`Modulation`] with its table of points: maps bits to points and back.
///
/// Bits are one to a byte; only the lowest bit of each counts.
#[derive(Clone, Debug)]
pub(crate) struct Constellation {
    modulation: Modulation,
    points: Vec<Complex32>,
    /// Label bits of each level of an axis.
    labels: Vec<usize>,
    /// The bits of each label, one to a byte.
    bits: Vec<[u8; 8]>,
    distance: f32,
    inverse_distance: f32,
}

impl Constellation {
    /// The table of `modulation`.
    pub(crate) fn new(modulation: Modulation) -> Self {
        let (levels, bits) = (modulation.levels(), modulation.bits());
        let d = modulation.half_distance();
        let axis = |label: usize| ((2 * ungray(label)) as f64 - (levels as f64 - 1.0)) * d;
        let points = (0..1usize << bits)
            .map(|label| {
                if modulation == Modulation::Bpsk {
                    Complex32::new(axis(label) as f32, 0.0)
                } else {
                    Complex32::new(axis(label >> (bits / 2)) as f32, axis(label & (levels - 1)) as f32)
                }
            })
            .collect();
        let spelled = |label: usize| std::array::from_fn(|place| (label << place >> (bits - 1) & 1) as u8);
        Self {
            modulation,
            points,
            labels: (0..levels).map(gray).collect(),
            bits: (0..1usize << bits).map(spelled).collect(),
            distance: d as f32,
            inverse_distance: (1.0 / d) as f32,
        }
    }

    /// All points, that of label 0 first.
    pub(crate) fn points(&self) -> &[Complex32] {
        &self.points
    }

    /// The label of the point nearest to `z`. A value that is not a number gets some label.
    pub(crate) fn decide(&self, z: Complex32) -> usize {
        let top = self.labels.len() - 1;
        // Casting saturates, so huge values and NaN stay on the grid.
        let level = |x: f32| (((x * self.inverse_distance + top as f32) * 0.5 + 0.5) as usize).min(top);
        if self.modulation == Modulation::Bpsk {
            self.labels[level(z.re)]
        } else {
            self.labels[level(z.re)] << (self.modulation.bits() / 2) | self.labels[level(z.im)]
        }
    }

    /// The point nearest to `z`, to rounding: [`decide`](Self::decide) without a table, so that compilers do many at once.
    #[inline]
    pub(crate) fn nearest(&self, z: Complex32) -> Complex32 {
        let top = (self.labels.len() - 1) as f32;
        let level = |x: f32| {
            let x = (x * self.inverse_distance + top) * 0.5 + 0.5;
            // In this order a value that is not a number ends at the lowest level, as it does in `decide`.
            let x = if x > 0.0 { x } else { 0.0 };
            let x = if x < top { x } else { top };
            (2.0 * (x as i32 as f32) - top) * self.distance
        };
        Complex32::new(level(z.re), if self.modulation == Modulation::Bpsk { 0.0 } else { level(z.im) })
    }

    /// Maps bits to points, `bits.len() / modulation.bits()` of them.
    pub(crate) fn map(&self, bits: &[u8], points: &mut [Complex32]) {
        for (bits, point) in bits.chunks_exact(self.modulation.bits()).zip(points) {
            *point = self.points[bits.iter().fold(0, |label, bit| label << 1 | usize::from(bit & 1))];
        }
    }

    /// Appends the bits of the nearest point to `bits` and returns that point.
    pub(crate) fn demap(&self, z: Complex32, bits: &mut Vec<u8>) -> Complex32 {
        let label = self.decide(z);
        bits.extend_from_slice(&self.bits[label][..self.modulation.bits()]);
        self.points[label]
    }
}
