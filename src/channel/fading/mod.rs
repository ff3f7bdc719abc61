mod config;

pub use config::FadingConfig;

use num_complex::{Complex32, Complex64};
use std::f64::consts::SQRT_2;

use super::jakes::{NODES, Sight, Waves};
use super::random::{Draws, Random};
use super::{Doppler, Stage, from_db, narrow, no_such, wide};
use crate::Result;
use crate::error::require;
use crate::simd::{Dispatch, Level, Op, Vector};

const MAX_ANTENNAS: usize = 16;
/// Samples that go through the channel in one pass, where no path is longer.
const RUN: usize = 256;
/// Each costs 2 KiB.
const MAX_COEFFICIENTS: usize = 4096;

/// A tapped delay line with Rayleigh or Rician taps that move as Jakes' Doppler spectrum says:
///
/// `y_r(n) = Σ_t Σ_l h_rtl(n) x_t(n − d_l)`, where `E|h_rtl|²` follows the [`Profile`](super::Profile) and adds up to 1 over `l`, and scattered taps have the
/// autocorrelation `J0(2π f_d T k)` at lag `k`.
///
/// Correlated antennas follow the Kronecker model, `H = A_rx G A_txᵀ` with independent `G` and `A Aᵀ` the correlation of the antennas; the
/// line of sight is not mixed. Taps are computed at 32 points of a Doppler period and joined by cubics, so a sample costs no sine.
///
/// As a [`Stage`] it is a channel between one antenna and another; `process_mimo` takes all of them.
#[derive(Clone, Debug)]
pub struct Fading {
    config: FadingConfig,
    seed: u64,
    real: bool,
    delays: Vec<usize>,
    /// Scattered amplitude of each path, and the line of sight's amplitude on the first one.
    scattered: Vec<f64>,
    sight_amplitude: f64,
    mix_rx: Vec<f64>,
    mix_tx: Vec<f64>,
    state: State,
}

/// What moves. Coefficients are indexed `(rx · tx_antennas + tx) · paths + path`.
#[derive(Clone, Debug)]
struct State {
    sample: u64,
    hint: usize,
    /// How far the sample lies between the two middle nodes, in [0, 1).
    position: f64,
    waves: Vec<Waves>,
    sights: Vec<Sight>,
    nodes: [Vec<Complex64>; 4],
    /// The cubic of each coefficient between the two middle nodes, in powers of the position; planar for speed.
    cubic_re: [Vec<f64>; 4],
    cubic_im: [Vec<f64>; 4],
    re: Vec<f64>,
    im: Vec<f64>,
    /// Past inputs of each transmit antenna in a ring whose size is a power of two.
    history: Vec<Vec<Complex64>>,
    newest: usize,
}

impl Fading {
    /// A channel as configured; the taps of a seed are always the same.
    pub fn new(config: &FadingConfig, seed: u64) -> Result<Self> {
        Self::build(config, seed, false)
    }

    /// The same with real taps, `√2 Re h`: real signals stay real, powers and autocorrelation stay as they are.
    pub(crate) fn real_valued(config: &FadingConfig, seed: u64) -> Result<Self> {
        Self::build(config, seed, true)
    }

    fn build(config: &FadingConfig, seed: u64, real: bool) -> Result<Self> {
        let paths = config.profile.paths()?;
        config.doppler.validate()?;
        for (name, antennas) in [("tx_antennas", config.tx_antennas), ("rx_antennas", config.rx_antennas)] {
            require((1..=MAX_ANTENNAS).contains(&antennas), name, "between 1 and 16", antennas as f64)?;
        }
        let coefficients = config.rx_antennas * config.tx_antennas * paths.len();
        require(coefficients <= MAX_COEFFICIENTS, "profile", "4096 paths or fewer over all pairs of antennas", coefficients as f64)?;
        for (name, rho) in [("tx_correlation", config.tx_correlation), ("rx_correlation", config.rx_correlation)] {
            require(rho.abs() < 1.0, name, "between -1 and 1, both excluded", rho)?;
        }
        require(config.sight_angle_deg.is_finite(), "sight_angle_deg", "finite", config.sight_angle_deg)?;
        let mut fading = Self {
            delays: paths.iter().map(|p| p.0).collect(),
            scattered: paths.iter().map(|p| p.1.sqrt()).collect(),
            sight_amplitude: 0.0,
            mix_rx: mixing(config.rx_antennas, config.rx_correlation),
            mix_tx: mixing(config.tx_antennas, config.tx_correlation),
            state: State::empty(),
            config: config.clone(),
            seed,
            real,
        };
        fading.set_rician_k_db(config.rician_k_db.unwrap_or(f64::NEG_INFINITY))?;
        fading.reset();
        Ok(fading)
    }

    /// Sets a constant Doppler frequency `f_d T` from the next sample on.
    pub(crate) fn set_doppler(&mut self, doppler: f64) -> Result<()> {
        let doppler = Doppler::Constant(doppler);
        doppler.validate()?;
        self.config.doppler = doppler;
        Ok(())
    }

    /// Sets the Rician factor of the first path in dB; minus infinity for Rayleigh. The taps follow within one node, `1/32` of a Doppler period.
    pub(crate) fn set_rician_k_db(&mut self, k_db: f64) -> Result<()> {
        let ok = k_db == f64::NEG_INFINITY || k_db.abs() <= 100.0;
        require(ok, "rician_k_db", "between -100 and 100, or -inf for Rayleigh fading", k_db)?;
        let power = self.config.profile.paths()?[0].1;
        let k = from_db(k_db);
        self.scattered[0] = (power / (k + 1.0)).sqrt();
        self.sight_amplitude = (power * k / (k + 1.0)).sqrt();
        Ok(())
    }

    /// The delay of each path in samples.
    pub(crate) fn delays(&self) -> &[usize] {
        &self.delays
    }

    /// Transmit antennas.
    pub(crate) fn tx_antennas(&self) -> usize {
        self.config.tx_antennas
    }

    /// Receive antennas.
    pub(crate) fn rx_antennas(&self) -> usize {
        self.config.rx_antennas
    }

    /// How many coefficients [`taps`](Self::taps) holds: receive antennas × transmit antennas × paths.
    pub(crate) fn coefficients(&self) -> usize {
        self.config.rx_antennas * self.config.tx_antennas * self.delays.len()
    }

    /// The taps at the last sample processed (at the first one before any), in the order of `(rx · tx_antennas + tx) · paths + path`.
    pub(crate) fn taps(&self) -> impl Iterator<Item = Complex64> + '_ {
        self.state.re.iter().zip(&self.state.im).map(|(&re, &im)| Complex64::new(re, im))
    }

    /// Passes the next samples of all antennas through the channel: `tx[t]` and `rx[r]` have one length.
    ///
    /// `watch` sees the index of each sample within this call and the channel with that sample's taps.
    ///
    /// # Panics
    ///
    /// When the number of slices is not the number of antennas, or their lengths differ.
    pub(crate) fn process_mimo(&mut self, tx: &[&[Complex32]], rx: &mut [&mut [Complex32]], mut watch: impl FnMut(usize, &Self)) {
        assert_eq!((tx.len(), rx.len()), (self.config.tx_antennas, self.config.rx_antennas), "one slice for each antenna");
        let samples = tx[0].len();
        assert!(tx.iter().all(|t| t.len() == samples) && rx.iter().all(|r| r.len() == samples), "slices of one length");
        for i in 0..samples {
            self.push(|t| wide(tx[t][i]));
            for (r, out) in rx.iter_mut().enumerate() {
                out[i] = narrow(self.received(r));
            }
            watch(i, self);
            self.advance();
        }
    }

    /// Takes one input of each antenna and brings the taps to its time.
    fn push(&mut self, input: impl Fn(usize) -> Complex64) {
        let state = &mut self.state;
        state.newest = state.newest.wrapping_sub(1) & (state.history[0].len() - 1);
        for (t, history) in state.history.iter_mut().enumerate() {
            history[state.newest] = input(t);
        }
        evaluate(&state.cubic_re, state.position, &mut state.re);
        evaluate(&state.cubic_im, state.position, &mut state.im);
    }

    fn received(&self, rx: usize) -> Complex64 {
        let state = &self.state;
        let paths = self.delays.len();
        let mask = state.history[0].len() - 1;
        let (mut re, mut im) = (0.0, 0.0);
        for (t, history) in state.history.iter().enumerate() {
            let first = (rx * self.config.tx_antennas + t) * paths;
            let taps = state.re[first..first + paths].iter().zip(&state.im[first..first + paths]);
            for ((&a, &b), &delay) in taps.zip(&self.delays) {
                let x = history[(state.newest + delay) & mask];
                re += a * x.re - b * x.im;
                im += a * x.im + b * x.re;
            }
        }
        Complex64::new(re, im)
    }

    fn advance(&mut self) {
        self.steps(&mut [0.0]);
        if self.state.position >= 1.0 {
            self.cross();
        }
    }

    /// The positions of the next samples, as far as they lie before the next node; gives how many.
    fn steps(&mut self, positions: &mut [f64]) -> usize {
        let State { sample, hint, position, .. } = &mut self.state;
        let (mut at, mut n) = (*position, 0);
        while n < positions.len() && at < 1.0 {
            positions[n] = at;
            at += self.config.doppler.at(*sample + n as u64, hint) * NODES;
            n += 1;
        }
        (*position, *sample) = (at, *sample + n as u64);
        n
    }

    /// Brings the cubics to the position.
    fn cross(&mut self) {
        while self.state.position >= 1.0 {
            self.state.position -= 1.0;
            self.next_node();
        }
        self.fit();
    }

    /// Up to [`RUN`] samples between one antenna and another: sample by sample as `push`, `received` and `advance` to the last bit, but with one pass for each path between
    /// two nodes instead of one for each sample.
    fn pass(&mut self, samples: &mut [Complex32]) {
        let reach = self.delays.iter().copied().max().unwrap_or(0);
        let mask = self.state.history[0].len() - 1;
        // What came before this run lies below RUN.
        let (mut past_re, mut past_im) = ([0.0; 2 * RUN], [0.0; 2 * RUN]);
        for back in 1..=reach {
            let x = self.state.history[0][(self.state.newest + back - 1) & mask];
            (past_re[RUN - back], past_im[RUN - back]) = (x.re, x.im);
        }
        for (i, sample) in samples.iter().enumerate() {
            let x = wide(*sample);
            (past_re[RUN + i], past_im[RUN + i]) = (x.re, x.im);
        }
        // The ring holds no more than the last of them.
        self.state.newest = self.state.newest.wrapping_sub(samples.len()) & mask;
        for (back, sample) in samples.iter().rev().take(mask + 1).enumerate() {
            self.state.history[0][(self.state.newest + back) & mask] = wide(*sample);
        }
        let (mut positions, mut re, mut im) = ([0.0; RUN], [0.0; RUN], [0.0; RUN]);
        let (mut start, level) = (0, Level::current());
        while start < samples.len() {
            let n = self.steps(&mut positions[start..samples.len()]);
            let end = start + n;
            let (re, im, at) = (&mut re[start..end], &mut im[start..end], &positions[start..end]);
            for (k, &delay) in self.delays.iter().enumerate() {
                let cubic = [&self.state.cubic_re, &self.state.cubic_im].map(|cubic| [0, 1, 2, 3].map(|power| cubic[power][k]));
                let x = [&past_re, &past_im].map(|past| &past[RUN + start - delay..][..n]);
                f64::dispatch(level, Path { cubic, at, x, sums: [re, im] });
            }
            for ((sample, &re), &im) in samples[start..end].iter_mut().zip(&*re).zip(&*im) {
                *sample = narrow(Complex64::new(re, im));
            }
            let state = &mut self.state;
            evaluate(&state.cubic_re, at[n - 1], &mut state.re);
            evaluate(&state.cubic_im, at[n - 1], &mut state.im);
            if self.state.position >= 1.0 {
                self.cross();
            }
            start = end;
        }
    }

    /// Shifts the nodes by one and computes the newest.
    fn next_node(&mut self) {
        self.state.nodes.rotate_left(1);
        let (n_rx, n_tx, paths) = (self.config.rx_antennas, self.config.tx_antennas, self.delays.len());
        let state = &mut self.state;
        let node = &mut state.nodes[3];
        for (value, waves) in node.iter_mut().zip(&mut state.waves) {
            *value = waves.next();
        }
        // The mixing matrices are lower triangular: going from the last antenna to the first, it can be done in place.
        for r in (0..n_rx).rev() {
            for t in (0..n_tx).rev() {
                for l in 0..paths {
                    let mut mixed = Complex64::ZERO;
                    for i in 0..=r {
                        for j in 0..=t {
                            mixed += node[(i * n_tx + j) * paths + l] * (self.mix_rx[r * n_rx + i] * self.mix_tx[t * n_tx + j]);
                        }
                    }
                    node[(r * n_tx + t) * paths + l] = mixed * self.scattered[l];
                }
            }
        }
        for (link, sight) in state.sights.iter_mut().enumerate() {
            node[link * paths] += sight.next() * self.sight_amplitude;
        }
        if self.real {
            for value in node.iter_mut() {
                *value = Complex64::new(SQRT_2 * value.re, 0.0);
            }
        }
    }

    /// Cubics through the four nodes (Lagrange), between the two in the middle.
    fn fit(&mut self) {
        let state = &mut self.state;
        for k in 0..state.re.len() {
            let [a, b, c, d] = [0, 1, 2, 3].map(|n| state.nodes[n][k]);
            let powers = [b, c - a / 3.0 - b / 2.0 - d / 6.0, (a + c) / 2.0 - b, (d - a) / 6.0 + (b - c) / 2.0];
            for (n, power) in powers.into_iter().enumerate() {
                state.cubic_re[n][k] = power.re;
                state.cubic_im[n][k] = power.im;
            }
        }
    }
}

/// Samples through one path between two nodes, with the vectors of the machine: the compiler makes them, and the numbers are the same to the last bit.
struct Path<'a> {
    /// Of the real and of the imaginary part.
    cubic: [[f64; 4]; 2],
    at: &'a [f64],
    x: [&'a [f64]; 2],
    sums: [&'a mut [f64]; 2],
}

impl Op<f64> for Path<'_> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<f64>>(self) {
        let ([[a0, a1, a2, a3], [b0, b1, b2, b3]], n) = (self.cubic, self.at.len());
        let ([x_re, x_im], [re, im]) = (self.x.map(|x| &x[..n]), self.sums.map(|sum| &mut sum[..n]));
        for i in 0..n {
            let t = self.at[i];
            let a = ((a3 * t + a2) * t + a1) * t + a0;
            let b = ((b3 * t + b2) * t + b1) * t + b0;
            re[i] += a * x_re[i] - b * x_im[i];
            im[i] += a * x_im[i] + b * x_re[i];
        }
    }
}

fn evaluate(cubic: &[Vec<f64>; 4], t: f64, out: &mut [f64]) {
    let n = out.len();
    let (c0, c1, c2, c3) = (&cubic[0][..n], &cubic[1][..n], &cubic[2][..n], &cubic[3][..n]);
    for k in 0..n {
        out[k] = ((c3[k] * t + c2[k]) * t + c1[k]) * t + c0[k];
    }
}

/// Lower Cholesky factor of `ρ^|i−j|`, by rows: that of a first-order Markov chain.
fn mixing(antennas: usize, rho: f64) -> Vec<f64> {
    let fresh = (1.0 - rho * rho).sqrt();
    let mut factor = vec![0.0; antennas * antennas];
    for i in 0..antennas {
        for j in 0..=i {
            let decay = (0..i - j).fold(1.0, |product, _| product * rho);
            factor[i * antennas + j] = if j == 0 { decay } else { decay * fresh };
        }
    }
    factor
}

impl State {
    fn empty() -> Self {
        Self {
            sample: 0,
            hint: 0,
            position: 0.0,
            waves: Vec::new(),
            sights: Vec::new(),
            nodes: [(); 4].map(|()| Vec::new()),
            cubic_re: [(); 4].map(|()| Vec::new()),
            cubic_im: [(); 4].map(|()| Vec::new()),
            re: Vec::new(),
            im: Vec::new(),
            history: Vec::new(),
            newest: 0,
        }
    }
}

impl Stage for Fading {
    /// # Panics
    ///
    /// When the channel has more than one antenna at an end.
    fn process(&mut self, samples: &mut [Complex32]) {
        assert_eq!((self.config.tx_antennas, self.config.rx_antennas), (1, 1), "one antenna at each end");
        if self.delays.iter().all(|&delay| delay <= RUN) {
            return samples.chunks_mut(RUN).for_each(|run| self.pass(run));
        }
        for sample in samples {
            self.push(|_| wide(*sample));
            *sample = narrow(self.received(0));
            self.advance();
        }
    }

    fn reset(&mut self) {
        let coefficients = self.coefficients();
        let links = self.config.rx_antennas * self.config.tx_antennas;
        let angle = self.config.sight_angle_deg.to_radians();
        let ring = (self.delays.iter().max().unwrap_or(&0) + 1).next_power_of_two();
        let mut random = Random::new(self.seed, Draws::Fading);
        let zeros = || vec![0.0; coefficients];
        self.state = State {
            waves: (0..coefficients).map(|_| Waves::new(&mut random)).collect(),
            sights: (0..links).map(|_| Sight::new(angle, &mut random)).collect(),
            nodes: [(); 4].map(|()| vec![Complex64::ZERO; coefficients]),
            cubic_re: [(); 4].map(|()| zeros()),
            cubic_im: [(); 4].map(|()| zeros()),
            re: zeros(),
            im: zeros(),
            history: vec![vec![Complex64::ZERO; ring]; self.config.tx_antennas],
            ..State::empty()
        };
        for _ in 0..4 {
            self.next_node();
        }
        self.fit();
        let state = &mut self.state;
        evaluate(&state.cubic_re, 0.0, &mut state.re);
        evaluate(&state.cubic_im, 0.0, &mut state.im);
    }

    fn set(&mut self, name: &str, value: f64) -> Result<()> {
        match name {
            "doppler" => self.set_doppler(value),
            "rician_k_db" => self.set_rician_k_db(value),
            _ => Err(no_such("fading", name, &["doppler", "rician_k_db"])),
        }
    }
}
