//! Kernel equalisers in front of an OFDM receiver: 16-QAM through a saturated amplifier and a slowly fading channel of one path, and of two.
//!
//! `cargo run --release --example equalizer`, and with `-- points.png` it draws the constellations behind two paths.

use futuresdr::prelude::Result;
use kaflow::{
    channel::Profile,
    filter::{Filter, KrlsT, Rls},
    flowgraphs::equalize::{Cascade, Link, run},
    kernel::Equivariant,
    ofdm::{self, Config},
    plot::{Constellation, constellations},
};
use num_complex::{Complex32, Complex64};

fn rls(taps: usize) -> Result<Box<dyn Filter<f32>>> {
    Ok(Box::new(Rls::new(taps, 0.9999, 0.01)?))
}

fn krlst(taps: usize) -> Result<Box<dyn Filter<f32>>> {
    Ok(Box::new(KrlsT::new(Equivariant::new((taps as f64).sqrt())?, 0.9999, 0.01, 60, taps)?))
}

fn main() -> Result<()> {
    let ofdm = Config::preset("paper")?;
    let mut clouds = Vec::new();
    // The equaliser of two paths sees 16 received samples, 6 of them after the one that it estimates.
    for (paths, title, taps, ahead) in [(1, "one path", 1, 0), (2, "two paths", 16, 6)] {
        let profile = Profile::exponential(paths, 3.0);
        let link = Link { ofdm: ofdm.clone(), frames: 40, ibo_db: 2.0, profile, doppler: 1e-6, snr_db: 30.0, seed: 3 };
        let equalisers: [(_, Box<dyn Filter<f32>>); 3] = [
            ("rls", rls(taps)?),
            ("krlst on the window", krlst(taps)?),
            ("rls, then krlst", Box::new(Cascade { linear: rls(taps)?, kernel: krlst(1)? })),
        ];
        println!("{:<20} {:>7} {:>7} {:>8}", title, "frames", "EVM %", "BER");
        clouds.clear();
        for (i, (name, filter)) in equalisers.into_iter().enumerate() {
            let (one_tap, equalised) = run(&link, filter, taps, ahead)?;
            for (name, q) in [("one tap a carrier", one_tap), (name, equalised)].into_iter().skip(usize::from(i > 0)) {
                println!("{name:<20} {:>7} {:>7.2} {:>8.1e}", q.packets, q.evm.percent(), q.ber.rate());
                clouds.push(Constellation { title: format!("{name}, EVM {:.1} %", q.evm.percent()), symbols: wide(&q.points) });
            }
        }
    }
    if let Some(path) = std::env::args().nth(1) {
        let ideal = wide(ofdm::Constellation::new(ofdm.modulation).points());
        constellations("16-QAM behind a saturated amplifier and two paths", &clouds, &ideal).save(path)?;
    }
    Ok(())
}

fn wide(points: &[Complex32]) -> Vec<Complex64> {
    points.iter().map(|z| Complex64::new(z.re.into(), z.im.into())).collect()
}
