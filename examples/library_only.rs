//! The filters without FutureSDR, files or a command line: `cargo run --release --no-default-features --example library_only`

use kaflow::{
    Complex32, Result,
    channel::{Scenario, TestBed},
    filter::{Evict, Filter, Guard, KrlsT, Nlms, qklms},
    kernel::Gaussian,
    metrics::nmse_db,
    observation::Gain,
};

fn main() -> Result<()> {
    let run = TestBed::run(&Scenario::preset("d")?)?; // a saturated amplifier and four fading taps
    let (tx, rx) = (&run.tx[0], &run.rx[0]);
    let evict = Evict { budget: Some(500), floor: None };
    let trackers = [
        ("NLMS", Nlms::new(4, 0.5, 1e-6)?.on_stream()),
        ("QKLMS", qklms(Gaussian::new(2.0)?, Gain::Eta(0.5), 0.5, evict, 4)?.on_stream()),
        ("KRLS-T", KrlsT::new(Gaussian::new(2.0)?, 0.99, 0.05, 100, 4)?.on_stream()),
    ];
    for (name, tracker) in trackers {
        let mut prediction = vec![Complex32::default(); rx.len()];
        Guard::new(tracker).track(tx, rx, &mut prediction, None);
        println!("{name}: {:.1} dB", nmse_db(&rx[500..], &prediction[500..]));
    }
    Ok(())
}
