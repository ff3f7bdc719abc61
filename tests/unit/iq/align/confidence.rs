//! What a confidence is worth: pairs of every kind, and how far those are off that it was sure of.

use std::sync::atomic::{AtomicU64, Ordering};

use super::*;
use crate::channel::{Fading, FadingConfig, Profile, Stage};

/// What is sent. The last four have products or correlations that are alike at many delays, or couple delay and carrier.
const SIGNALS: [&str; 14] = [
    "OFDM",
    "OFDM x2",
    "OFDM x4",
    "noise",
    "symbols",
    "shaped symbols",
    "narrow noise",
    "real",
    "minimum shift",
    "preambles",
    "chirp",
    "chirp symbols",
    "radar pulses",
    "Zadoff-Chu",
];

/// A pair, its truth, and what it is in words.
struct Pair {
    tx: Vec<Complex32>,
    rx: Vec<Complex32>,
    delay: f64,
    options: Options,
    /// Nothing that could make it hard: a wide band, one path that holds still, little noise.
    clean: bool,
    told: String,
}

fn pick<T: Copy>(rng: &mut ChaCha8Rng, from: &[T]) -> T {
    from[rng.random_range(0..from.len())]
}

fn quadrature(rng: &mut ChaCha8Rng) -> Complex64 {
    Complex64::cis(TAU * (0.125 + 0.25 * f64::from(rng.random_range(0..4))))
}

/// `x` without what lies beyond half of `band` to either side of the centre.
fn limited(mut x: Vec<Complex64>, band: f64) -> Vec<Complex64> {
    let size = x.len();
    let mut fourier = Fourier::double(size);
    fourier.forward(&mut x);
    let outside = |i: usize| i.min(size - i) as f64 > 0.5 * band * size as f64;
    (0..size).filter(|&i| outside(i)).for_each(|i| x[i] = Complex64::default());
    fourier.inverse(&mut x);
    x
}

/// Zadoff-Chu's sequence of odd length.
fn zadoff_chu(length: usize, root: usize) -> Vec<Complex64> {
    let phase = |n: usize| ((root * n * (n + 1)) % (2 * length)) as f64 / (2 * length) as f64;
    (0..length).map(|n| Complex64::cis(-TAU * phase(n))).collect()
}

/// About `length` samples of a signal, and the largest delay that it tells apart from others.
fn signal(name: &str, length: usize, rng: &mut ChaCha8Rng) -> (Vec<Complex64>, usize) {
    let mut most = Options::default().max_delay;
    let mut repeated = |frame: Vec<Complex64>| {
        most = frame.len() / 2;
        frame.iter().copied().cycle().take(length.max(frame.len())).collect()
    };
    let samples: Vec<Complex64> = match name {
        "OFDM" => ofdm(length, 1, rng),
        "OFDM x2" => ofdm(length, 2, rng),
        "OFDM x4" => ofdm(length, 4, rng),
        "noise" => (0..length).map(|_| gaussian(rng)).collect(),
        "symbols" => (0..length).map(|_| quadrature(rng)).collect(),
        "shaped symbols" => {
            let apart = pick(rng, &[2, 4]);
            let impulses = (0..length).map(|n| if n % apart == 0 { quadrature(rng) } else { Complex64::default() }).collect();
            limited(impulses, 1.25 / apart as f64)
        }
        "narrow noise" => {
            let band = pick(rng, &[0.02, 0.1, 0.4]);
            limited((0..length).map(|_| gaussian(rng)).collect(), band)
        }
        "real" => (0..length).map(|_| Complex64::from(gaussian(rng).re)).collect(),
        "minimum shift" => {
            let (apart, mut turn, mut phase) = (pick(rng, &[2, 4]), 0.0, 0.0);
            (0..length)
                .map(|n| {
                    if n % apart == 0 {
                        turn = pick(rng, &[-0.25, 0.25]) / apart as f64;
                    }
                    phase += turn;
                    Complex64::cis(TAU * phase)
                })
                .collect()
        }
        "preambles" => {
            let preamble = zadoff_chu(139, 25);
            std::iter::repeat_with(|| [preamble.clone(), ofdm(400, 1, rng)].concat()).flatten().take(length).collect()
        }
        "chirp" => {
            let (frame, band) = (chirp(length, pick(rng, &[0.1, 0.5, 0.9])), rng.random_bool(0.5));
            if band { frame } else { repeated(chirp(1024, 0.8)) }
        }
        // Each symbol is the same chirp, begun at another of its samples.
        "chirp symbols" => {
            let frame = chirp(128, 1.0);
            let symbol = |start: usize| (0..128).map(|n| frame[(n + start) % 128]).collect::<Vec<_>>();
            (0..length.div_ceil(128)).flat_map(|_| symbol(rng.random_range(0..128))).collect()
        }
        "radar pulses" => {
            let pulse = chirp(pick(rng, &[40, 100, 300]), 0.5);
            let silence = |count: usize| vec![Complex64::default(); count];
            (0..length.div_ceil(600)).flat_map(|_| [pulse.clone(), silence(rng.random_range(200..800))].concat()).collect()
        }
        "Zadoff-Chu" => repeated(zadoff_chu(pick(rng, &[139, 839]), pick(rng, &[1, 5, 25, 129]))),
        other => unreachable!("{other}"),
    };
    (samples, most)
}

/// A pair of any kind: bursts, padding, fading, noise, oversampling, saturation, samples that are not numbers.
fn any_pair(seed: u64) -> Pair {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let rng = &mut rng;
    let name = SIGNALS[seed as usize % SIGNALS.len()];
    let length = pick(rng, &[500, 1000, 4000, 4000, 16_000]);
    let easy = rng.random_bool(0.3);
    let (cfo, doppler) = (pick(rng, &[0.0, 1e-4, -2e-3, 0.03]), pick(rng, &[0.0, 1e-6, 1e-5, 1e-4, 1e-3]) * f64::from(!easy));
    let (paths, snr_db) =
        if easy { (1, pick(rng, &[20.0, 40.0])) } else { (pick(rng, &[1, 1, 2, 4]), pick(rng, &[0.0, 3.0, 10.0, 20.0, 40.0])) };
    let (mut tx, most) = signal(name, length, rng);
    let range = 400.0_f64.min(0.4 * most as f64);
    let delay = rng.random_range(-range..range);
    // Bursts with silence between them, and silence before and behind.
    let bursts = !easy && rng.random_bool(0.4);
    if bursts {
        let (on, off) = (rng.random_range(400..2000), rng.random_range(100..5000));
        tx = tx.chunks(on).flat_map(|burst| burst.iter().copied().chain(std::iter::repeat_n(Complex64::default(), off))).collect();
    }
    let (before, behind) = (rng.random_range(0..2000), pick(rng, &[0, 500, 3000, 20_000]));
    tx = [vec![Complex64::default(); before], tx, vec![Complex64::default(); behind]].concat();
    let mut faded = narrow(&tx);
    let saturated = !easy && rng.random_bool(0.3);
    if saturated {
        faded.iter_mut().for_each(|z| *z /= (1.0 + z.norm_sqr()).sqrt());
    }
    let mut fading = Fading::new(&FadingConfig::new(Profile::exponential(paths, 3.0), doppler), seed).unwrap();
    // The first path is the earliest within 12 dB of the strongest.
    let mut strength = vec![0.0; paths as usize];
    for piece in faded.chunks_mut(100) {
        let sent: f32 = piece.iter().map(|z| z.norm_sqr()).sum();
        fading.process(piece);
        strength.iter_mut().zip(fading.taps()).for_each(|(sum, h)| *sum += h.norm_sqr() * f64::from(sent));
    }
    let strongest = strength.iter().copied().fold(0.0, f64::max);
    let first = strength.iter().position(|&s| s >= strongest / 16.0).unwrap_or(0) as f64;
    let faded: Vec<Complex64> = faded.iter().map(|z| crate::dsp::wide(*z)).collect();
    let mut rx = delayed(&faded, delay, tx.len());
    let active = tx.iter().filter(|z| z.norm_sqr() > 0.0).count();
    let noise = (rx.iter().map(|z| z.norm_sqr()).sum::<f64>() / active as f64 * 10_f64.powf(-snr_db / 10.0)).sqrt();
    let (quiet, inverted) = (rng.random_bool(0.3), rng.random_bool(0.1));
    for (n, z) in rx.iter_mut().enumerate() {
        let clean = if inverted { z.conj() } else { *z };
        let noisy = clean * Complex64::cis(TAU * cfo * n as f64) + gaussian(rng) * noise;
        // A recording that was padded afterwards is silent to the bit.
        *z = if quiet && z.norm_sqr() < 1e-9 { Complex64::default() } else { noisy };
    }
    let mut rx = narrow(&rx);
    let broken = !easy && rng.random_bool(0.2);
    if broken {
        rx.iter_mut().step_by(8).for_each(|z| z.re = f32::NAN);
    }
    let told = format!(
        "{seed}: {name} of {length}, delay {delay:.2}, {paths} paths, {doppler:e}, cfo {cfo:e}, {snr_db} dB, +{before} +{behind}, bursts {bursts}, quiet {quiet}, \
         inverted {inverted}, saturated {saturated}, NaN {broken}"
    );
    let wide = ["OFDM", "noise", "symbols"].contains(&name);
    let options = Options { max_delay: most, ..Options::default() };
    Pair { tx: narrow(&tx), rx, delay: delay + first, options, clean: easy && wide && length >= 1000, told }
}

/// How one pair came out.
struct Found {
    sure: bool,
    off: f64,
    clean: bool,
    told: String,
}

#[test]
fn an_alignment_with_a_confidence_above_nine_tenths_is_right_to_a_tenth_of_a_sample() {
    let pairs = std::env::var("KAFLOW_PAIRS").ok().and_then(|n| n.parse().ok()).unwrap_or(500);
    let next = AtomicU64::new(0);
    let work = || {
        let mut found = Vec::new();
        while let seed = next.fetch_add(1, Ordering::Relaxed)
            && seed < pairs
        {
            let Pair { tx, rx, delay, options, clean, told } = any_pair(seed);
            let result = align(&tx, &rx, options);
            let (sure, off) = result.as_ref().map_or((false, f64::INFINITY), |a| (a.confidence > 0.9, (a.delay - delay).abs()));
            found.push(Found { sure, off, clean, told: format!("{told}: off by {off:.3}, {result:?}") });
        }
        found
    };
    let found: Vec<Found> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    let count = |which: &dyn Fn(&&Found) -> bool| found.iter().filter(which).count();
    let (aligned, right, sure) = (count(&|f| f.off.is_finite()), count(&|f| f.off < 0.1), count(&|f| f.sure));
    let (clean, told) = (count(&|f| f.clean), count(&|f| f.clean && f.sure));
    println!("{pairs} pairs: {aligned} aligned, {right} right to a tenth, {sure} sure; of {clean} clean ones {told} sure");
    for name in SIGNALS {
        let of = |which: fn(&Found) -> bool| count(&|f| f.told.contains(&format!(": {name} of ")) && which(f));
        println!("{name}: {}, {} aligned, {} right, {} sure", of(|_| true), of(|f| f.off.is_finite()), of(|f| f.off < 0.1), of(|f| f.sure));
    }
    let wrong: Vec<&str> = found.iter().filter(|f| f.sure && f.off >= 0.1).map(|f| f.told.as_str()).collect();
    assert!(wrong.is_empty(), "{} are wrong: {wrong:#?}", wrong.len());
    assert!(5 * sure > pairs as usize, "only {sure} of {pairs} are sure");
    assert!(10 * told >= 9 * clean, "of {clean} clean ones only {told} are sure");
}
