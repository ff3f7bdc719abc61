use num_complex::Complex64;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// A measured point of an amplifier.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Point {
    /// Amplitude of the input.
    pub input: f64,
    /// Amplitude of the output.
    pub output: f64,
    /// By how much the phase turns, in degrees; unwrapped from point to point.
    #[serde(default)]
    pub phase_deg: f64,
}

/// The input of the largest output, the first one if there are several.
pub(super) fn saturation(points: &[Point]) -> f64 {
    points.iter().fold((0.0, 1.0), |(largest, at), p| if p.output > largest { (p.output, p.input) } else { (largest, at) }).1
}

/// Monotone piecewise cubics through amplitude and phase (in radians) over the input amplitude.
#[derive(Clone, Debug)]
pub(super) struct Table {
    input: Vec<f64>,
    output: Cubic,
    phase: Cubic,
}

impl Table {
    pub(super) fn new(points: &[Point]) -> Result<Self> {
        let bad = |at: usize, expected: &str, value: f64| Err(Error::parameter(format!("points[{at}]"), expected, value));
        if points.len() < 2 {
            return Err(Error::parameter("points", "two or more", points.len()));
        }
        for (at, p) in points.iter().enumerate() {
            if !(p.input.is_finite() && p.input > if at == 0 { 0.0 } else { points[at - 1].input }) {
                return bad(at, "a positive input, larger than the one before", p.input);
            }
            if !(p.output.is_finite() && p.output >= 0.0) {
                return bad(at, "a finite output of 0 or more", p.output);
            }
            if !p.phase_deg.is_finite() {
                return bad(at, "a finite phase_deg", p.phase_deg);
            }
        }
        let input: Vec<f64> = points.iter().map(|p| p.input).collect();
        let output = Cubic::new(&input, points.iter().map(|p| p.output).collect());
        let phase = Cubic::new(&input, points.iter().map(|p| p.phase_deg.to_radians()).collect());
        Ok(Self { input, output, phase })
    }

    pub(super) fn apply(&self, x: Complex64) -> Complex64 {
        let envelope = x.norm_sqr().sqrt();
        if envelope == 0.0 {
            return x;
        }
        let (first, last) = (self.input[0], self.input[self.input.len() - 1]);
        // Below the table the gain of its first point holds, so the output shrinks with the input.
        let shrink = if envelope < first { envelope / first } else { 1.0 };
        let at = envelope.clamp(first, last);
        let segment = self.input.partition_point(|&i| i <= at).clamp(1, self.input.len() - 1) - 1;
        let amplitude = shrink * self.output.at(&self.input, segment, at);
        let (sin, cos) = libm::sincos(self.phase.at(&self.input, segment, at));
        x / envelope * Complex64::new(cos, sin) * amplitude
    }
}

#[derive(Clone, Debug)]
struct Cubic {
    value: Vec<f64>,
    slope: Vec<f64>,
}

impl Cubic {
    /// Slopes after Fritsch and Carlson: no overshoot between points.
    fn new(x: &[f64], value: Vec<f64>) -> Self {
        let secant: Vec<f64> = (1..x.len()).map(|i| (value[i] - value[i - 1]) / (x[i] - x[i - 1])).collect();
        let last = secant.len() - 1;
        let slope = (0..x.len())
            .map(|i| match i {
                0 => secant[0],
                i if i > last => secant[last],
                i if secant[i - 1] * secant[i] <= 0.0 => 0.0,
                i => {
                    let (before, after) = (x[i] - x[i - 1], x[i + 1] - x[i]);
                    let (a, b) = (2.0 * after + before, after + 2.0 * before);
                    (a + b) / (a / secant[i - 1] + b / secant[i])
                }
            })
            .collect();
        Self { value, slope }
    }

    fn at(&self, x: &[f64], i: usize, at: f64) -> f64 {
        let width = x[i + 1] - x[i];
        let t = (at - x[i]) / width;
        let s = 1.0 - t;
        self.value[i] * (1.0 + 2.0 * t) * s * s + self.slope[i] * width * t * s * s + self.value[i + 1] * t * t * (3.0 - 2.0 * t)
            - self.slope[i + 1] * width * t * t * s
    }
}
