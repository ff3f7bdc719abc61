//! Kernel equalisers in front of an OFDM receiver: 16-QAM through a saturated amplifier and a slowly fading channel.
//!
//! `cargo run --release --example equalizer`, and with `-- points.png` it draws the constellations.

use futuresdr::prelude::Result;
use kaflow::{
    channel::Profile,
    filter::registry::{self, Value, Values},
    flowgraphs::equalize::{Link, run},
    ofdm::{self, Config},
    plot::{Constellation, constellations},
};
use num_complex::{Complex32, Complex64};

fn main() -> Result<()> {
    let ofdm = Config::preset("paper")?;
    let link = Link { ofdm, frames: 40, ibo_db: 2.0, profile: Profile::exponential(1, 3.0), doppler: 1e-6, snr_db: 30.0, seed: 3 };
    let krlst = |kernel: &str| {
        ("krlst", vec![("kernel", kernel.to_owned()), ("sigma", "1".into()), ("lambda", "0.9999".into()), ("noise", "0.01".into())])
    };
    let mut clouds = Vec::new();
    println!("{:<20} {:>7} {:>7} {:>8}", "equaliser", "frames", "EVM %", "BER");
    for (i, (name, given)) in [("rls", vec![("lambda", "0.9999".into())]), krlst("gaussian"), krlst("equivariant")].into_iter().enumerate()
    {
        let label = given.iter().find(|(p, _)| *p == "kernel").map_or(name.to_owned(), |(_, kernel)| format!("{name}, {kernel}"));
        let given: Values = given.into_iter().map(|(parameter, value): (&str, String)| (parameter.into(), Value::parse(&value))).collect();
        let settings = registry::recipe(name)?.settle(&given, 1.0)?;
        let (one_tap, equalised) = run(&link, registry::filter(&settings, 1)?, 1, 0)?;
        for (label, q) in [("one-tap".to_owned(), one_tap), (label, equalised)].into_iter().skip(usize::from(i > 0)) {
            println!("{label:<20} {:>7} {:>7.2} {:>8.1e}", q.packets, q.evm.percent(), q.ber.rate());
            clouds.push(Constellation { title: format!("{label}, EVM {:.1} %", q.evm.percent()), symbols: wide(&q.points) });
        }
    }
    if let Some(path) = std::env::args().nth(1) {
        let ideal = wide(ofdm::Constellation::new(link.ofdm.modulation).points());
        constellations("16-QAM behind a saturated amplifier", &clouds, &ideal).save(path)?;
    }
    Ok(())
}

fn wide(points: &[Complex32]) -> Vec<Complex64> {
    points.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect()
}
