//! The filters without FutureSDR, files or a command line: `cargo run --release --no-default-features --example library_only`

use kaflow::{
    Complex32, Result,
    channel::{Scenario, TestBed},
    filter::{Evict, Guard, KrlsT, Nlms, Tracker, Windowed, qklms},
    kernel::Gaussian,
    metrics::nmse_db,
    observation::Gain,
};

fn main() -> Result<()> {
    let run = TestBed::run(&Scenario::preset("d")?)?; // a saturated amplifier and four fading taps
    let (tx, rx) = (&run.tx[0], &run.rx[0]);
    let evict = Evict { budget: Some(500), floor: None };
    let trackers: [(&str, Box<dyn Tracker<f32>>); 3] = [
        ("NLMS", Box::new(Windowed::new(Nlms::new(4, 0.5, 1e-6)?, 4)?)),
        ("QKLMS", Box::new(Windowed::new(qklms(Gaussian::new(2.0)?, Gain::Eta(0.5), 0.5, evict, 4)?, 4)?)),
        ("KRLS-T", Box::new(Windowed::new(KrlsT::new(Gaussian::new(2.0)?, 0.99, 0.05, 100, 4)?, 4)?)),
    ];
    for (name, tracker) in trackers {
        let mut prediction = vec![Complex32::default(); rx.len()];
        Guard::new(tracker).track(tx, rx, &mut prediction, None);
        println!("{name}: {:.1} dB", nmse_db(&rx[500..], &prediction[500..]));
    }
    Ok(())
}
