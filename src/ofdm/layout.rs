//! Where everything lies in a symbol: the part that modulator and demodulator share.

use num_complex::Complex32;

use super::{Config, clip::Clipper};
use crate::dsp::Fourier;

/// The numerology in output samples and FFT bins, and the training symbols as they are transmitted.
#[derive(Clone, Debug)]
pub(crate) struct Layout {
    /// Output samples of a symbol without prefix.
    pub(crate) size: usize,
    /// Output samples of the prefix.
    pub(crate) prefix: usize,
    /// Output samples of the prefix of the long training.
    pub(crate) guard: usize,
    /// Output samples of the edge that neighbours share.
    pub(crate) window: usize,
    /// FFT bins of the data carriers, lowest frequency first.
    pub(crate) data: Vec<usize>,
    /// Carrier number, FFT bin and sign of the pilots, as configured.
    pub(crate) pilots: Vec<(i32, usize, f32)>,
    /// Carrier number and FFT bin of all active carriers, lowest frequency first.
    pub(crate) active: Vec<(i32, usize)>,
    /// One period-`size` stretch of the short training, after clipping.
    pub(crate) short: Vec<Complex32>,
    /// One long training symbol, after clipping.
    pub(crate) long: Vec<Complex32>,
}

impl Layout {
    pub(crate) fn new(config: &Config) -> Self {
        let size = config.fft * config.oversampling;
        let half = (config.active / 2) as i32;
        let bin = |k: i32| k.rem_euclid(size as i32) as usize;
        let active: Vec<_> = (-half..=half).filter(|&k| k != 0).map(|k| (k, bin(k))).collect();
        let data = active.iter().filter(|(k, _)| !config.pilots.contains(k)).map(|&(_, bin)| bin).collect();
        // Every fourth pilot is turned over, like 802.11's, so that they do not peak together.
        let pilots = config.pilots.iter().enumerate().map(|(i, &k)| (k, bin(k), if i % 4 == 3 { -1.0 } else { 1.0 })).collect();
        let mut layout = Self {
            size,
            prefix: config.cyclic_prefix * config.oversampling,
            guard: config.guard() * config.oversampling,
            window: config.window * config.oversampling,
            data,
            pilots,
            active,
            short: Vec::new(),
            long: Vec::new(),
        };
        let (mut fourier, clipper) = (Fourier::new(size), Clipper::new(config, &layout));
        let mut train = |values: Vec<(usize, Complex32)>| {
            let mut symbol = vec![Complex32::default(); size];
            let scale = 1.0 / (values.len() as f32).sqrt();
            values.into_iter().for_each(|(bin, value)| symbol[bin] = value * scale);
            fourier.inverse(&mut symbol);
            clipper.apply(&mut symbol, &mut fourier);
            symbol
        };
        layout.short = train(training(config, 4).map(|(k, v)| (bin(k), v)).collect());
        layout.long = train(training(config, 1).map(|(k, v)| (bin(k), v)).collect());
        layout
    }
}

/// Training values of unit magnitude on the active carriers that `spacing` divides.
///
/// With 64 carriers of which 52 are active these are the sequences of IEEE 802.11 (17.3.3), so that its stations are recognised; otherwise
/// quadratic phases `π m² / M` over the M carriers, whose envelope is nearly flat (Newman 1965).
fn training(config: &Config, spacing: i32) -> impl Iterator<Item = (i32, Complex32)> {
    let half = (config.active / 2) as i32;
    let carriers: Vec<i32> = (-half..=half).filter(|&k| k != 0 && k % spacing == 0).collect();
    let count = carriers.len() as f64;
    let standard = config.fft == 64 && config.active == 52;
    carriers.into_iter().enumerate().map(move |(m, k)| {
        let value = if !standard {
            // Reduced modulo one turn before it is an angle: m² / 2M turns.
            let turns = ((m * m) as f64 / (2.0 * count)).fract();
            let (sin, cos) = libm::sincos(std::f64::consts::TAU * turns);
            Complex32::new(cos as f32, sin as f32)
        } else if spacing == 4 {
            Complex32::new(1.0, 1.0) * (sign(SHORT[m]) * std::f32::consts::FRAC_1_SQRT_2)
        } else {
            Complex32::new(sign(LONG[m]), 0.0)
        };
        (k, value)
    })
}

fn sign(c: u8) -> f32 {
    if c == b'+' { 1.0 } else { -1.0 }
}

/// IEEE 802.11 (17-7), carriers −24, −20 ... 24 without 0: the factor of `1 + j`.
const SHORT: &[u8; 12] = b"+-+--+--++++";

/// IEEE 802.11 (17-8), carriers −26 ... 26 without 0.
const LONG: &[u8; 52] = b"++--++-+-++++++--++-+-+++++--++-+-+-----++--+-+-++++";

/// Polarity of the pilots in symbol `index`: the 127-bit scrambler sequence of IEEE 802.11 (17-25), polynomial `x⁷ + x⁴ + 1`, seed all ones.
pub(crate) fn pilot_polarity() -> [f32; 127] {
    let mut state = 0x7f_u32;
    std::array::from_fn(|_| {
        let bit = (state >> 6 ^ state >> 3) & 1;
        state = (state << 1 | bit) & 0x7f;
        1.0 - 2.0 * bit as f32
    })
}
