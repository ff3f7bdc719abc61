//! Your own flowgraph with a kernel filter in it: noise through a channel that you make up, tracked by fKLMS.
//!
//! `cargo run --release --example plug_in`

use futuresdr::{
    blocks::{Apply, Head, NullSink, Source},
    prelude::*,
};
use kaflow::{
    blocks::Track,
    filter::{Evict, Filter, fklms},
    kernel::Gaussian,
    observation::Gain,
};

fn main() -> Result<()> {
    let mut n = 0f32;
    let noise = Source::<_, Complex32>::new(move || {
        n += 1.0;
        Complex32::from_polar((n * 0.618).fract() * 1.5, n * 2.4)
    });
    let tx = Head::<Complex32>::new(50_000);
    let channel = Apply::<_, Complex32, Complex32>::new(|x: &Complex32| x / (1.0 + x.norm_sqr()) * Complex32::new(0.6, -0.8));

    // KLMS that forgets, on one sample at a time, at most 500 centres.
    let evict = Evict { budget: Some(500), floor: None };
    let fklms = fklms(Gaussian::new(0.5)?, Gain::Eta(0.5), 0.999, evict, 1)?;
    let track = Track::new(fklms.on_stream());
    let (prediction, error) = (NullSink::<Complex32>::new(), NullSink::<Complex32>::new());
    let mut fg = Flowgraph::new();
    connect!(fg,
        noise > tx > channel > rx.track;
        tx > tx.track;
        track.prediction > prediction;
        track.error > error;
    );
    let fg = Runtime::new().run(fg)?;
    println!("NMSE {:.1} dB", track.get(&fg)?.series().last().nmse_db());
    Ok(())
}
