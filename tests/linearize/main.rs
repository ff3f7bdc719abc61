//! Predistortion: what the amplifier puts out is what was to be sent.

mod link;

use kaflow::Complex64;
use kaflow::dpd::{Learner, Options, Path, Table, predistort};
use link::*;

const SAMPLES: usize = 20_000;

/// Learns, inverts, applies, four times; the worse side's ACLR with the last table.
fn loops(memory: bool, options: Options, snr_db: f64, seed: u64, back: impl Fn(&[Complex64], u64) -> Vec<Complex64>) -> f64 {
    let x = ofdm(40, seed);
    let level = 3.3;
    let back_off: f64 = std::env::var("BO").map_or(1.0, |b| 10f64.powf(-b.parse::<f64>().unwrap() / 20.0));
    let mut learner = Learner::new(options, &x[..8192], level).unwrap();
    let mut z = x.clone();
    for round in 0..4 {
        let y = noisy(&back(&amplifier(&z, memory), round), snr_db, seed + 100 + round);
        learner.forget(0.5);
        learner.push(&z[..SAMPLES], &y[..SAMPLES]).unwrap();
        let model = learner.model().unwrap();
        let want: Vec<_> = x.iter().map(|x| x * back_off).collect();
        let table = Table::invert(&model, &want[..SAMPLES], level).unwrap();
        z = predistort(&table, &want).unwrap();
        let out = amplifier(&z, memory);
        let power = out.iter().map(|z| z.norm_sqr()).sum::<f64>() / out.len() as f64;
        println!("round {round}: {:.1}  power {:.2}", aclr(&out), 10.0*power.log10());
    }
    aclr(&amplifier(&z, memory))
}

#[test]
fn coupler() {
    for memory in [false, true] {
        let x = ofdm(40, 7);
        println!("none: {:.1}  peak {:.2}", aclr(&amplifier(&x, memory)), x.iter().map(|z| z.norm()).fold(0.0, f64::max));
        for snr in [45.0, 25.0] {
            let options = Options { memory: if memory { 3 } else { 0 }, ..Options::default() };
            let found = loops(memory, options, snr, 7, |y, _| y.to_vec());
            println!("coupler {snr} memory {memory}: {found:.1}");
        }
    }
}

#[test]
fn air() {
    for memory in [false, true] {
        let options = Options { memory: if memory { 2 } else { 0 }, path: Path::Air { taps: 6, advance: 0, block: 1000 }, ..Options::default() };
        let found = loops(memory, options, 30.0, 7, |y, round| fading(y, 1e-5, 3 + round));
        println!("air memory {memory}: {found:.1}");
    }
}
