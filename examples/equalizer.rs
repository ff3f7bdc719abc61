//! Kernel equalisers in front of an OFDM receiver: 16-QAM through a saturated amplifier and a slowly fading channel.
//!
//! `cargo run --release --example equalizer`

use futuresdr::prelude::Result;
use kaflow::{
    filter::registry::{self, Value, Values},
    flowgraphs::equalize::{Link, run},
    ofdm::Config,
};

fn main() -> Result<()> {
    let (taps, ahead) = (6, 2);
    let ofdm = Config::preset("paper")?;
    let link = Link { ofdm, frames: 40, ibo_db: 2.0, paths: 2, doppler: 1e-6, snr_db: 30.0, seed: 3 };
    println!("{:<22} {:>8} {:>8} {:>9}", "equaliser", "frames", "EVM %", "BER");
    let filters = [
        ("nlms", vec![]),
        ("rls", vec![]),
        ("krlst", vec![("kernel", "gaussian+linear"), ("lambda", "0.9999"), ("noise", "0.001")]),
        ("qklms", vec![("kernel", "gaussian+linear")]),
    ];
    for (i, (name, given)) in filters.into_iter().enumerate() {
        let given: Values = given.into_iter().map(|(name, value)| (name.to_owned(), Value::parse(value))).collect();
        let settings = registry::recipe(name)?.settle(&given, (taps as f64).sqrt())?;
        let (one_tap, equalized) = run(&link, registry::filter(&settings, taps)?, taps, ahead)?;
        for (name, q) in [("one-tap", one_tap), (name, equalized)].into_iter().skip(usize::from(i > 0)) {
            println!("{name:<22} {:>8} {:>8.2} {:>9.1e}", q.packets, q.evm.percent(), q.ber.rate());
        }
    }
    Ok(())
}
