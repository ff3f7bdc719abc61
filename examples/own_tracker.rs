//! A tracker of your own in a `Track` block: one gain and phase that follow the channel, no taps, no kernel.
//!
//! `cargo run --release --example own_tracker`

use futuresdr::prelude::Result;
use kaflow::{
    Complex32,
    filter::{Adaptive, Filter, Nlms, Tracker},
    flowgraphs::loopback,
};

/// Predicts `rx = h · tx` with `h` from running sums of `rx · conj(tx)` and `|tx|²`.
struct OneTap {
    cross: Complex32,
    power: f32,
    memory: f32,
}

impl Adaptive for OneTap {
    fn size(&self) -> usize {
        1
    }

    fn reset(&mut self) {
        (self.cross, self.power) = (Complex32::new(0.0, 0.0), 0.0);
    }

    fn set(&mut self, name: &str, value: f64) -> kaflow::Result<()> {
        if name != "memory" || !(0.0..1.0).contains(&value) {
            return Err(kaflow::Error::parameter(name, "memory, at least 0 and below 1", value));
        }
        self.memory = value as f32;
        Ok(())
    }
}

impl Tracker<f32> for OneTap {
    fn taps(&self) -> usize {
        1
    }

    fn track(&mut self, tx: &[Complex32], rx: &[Complex32], learn: bool, prediction: &mut [Complex32], _variance: Option<&mut [f32]>) {
        for ((&x, &y), p) in tx.iter().zip(rx).zip(prediction) {
            *p = if self.power > 0.0 { self.cross / self.power * x } else { Complex32::new(0.0, 0.0) };
            if learn {
                self.cross = self.cross * self.memory + y * x.conj();
                self.power = self.power * self.memory + x.norm_sqr();
            }
        }
    }
}

fn main() -> Result<()> {
    let one_tap = OneTap { cross: Complex32::new(0.0, 0.0), power: 0.0, memory: 0.97 };
    let nlms = Nlms::new(4, 0.5, 1e-6)?.on_stream();
    for (name, tracker) in [("one tap", Box::new(one_tap) as Box<dyn Tracker<f32>>), ("NLMS, 4 taps", nlms)] {
        let series = loopback::run(tracker, 100_000, 0.0, 1e-4, 1)?;
        println!("{name}: {:.1} dB", series.total().nmse_db());
    }
    Ok(())
}
