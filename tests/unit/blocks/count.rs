//! Rates of events.

use futuresdr::runtime::{
    Pmt,
    mocker::{Mocker, Reader, Writer},
};
use kaflow::{
    Complex32,
    blocks::Count,
    filter::{Adaptive, Evict, bayesian_klms},
    kernel::Gaussian,
    observation::Poisson,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::In;

#[test]
fn count_learns_a_rate_and_leaves_out_what_nobody_counted() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let input: Vec<Complex32> = (0..4000).map(|_| Complex32::new(rng.random_range(0.0..1.0), 0.0)).collect();
    // Counts of a process whose rate rises from 2 to 12: the number of uniform arrivals in 100 slots.
    let mut counts: Vec<f32> =
        input.iter().map(|x| (0..100).filter(|_| rng.random_range(0.0..100.0) < 2.0 + 10.0 * x.re).count() as f32).collect();
    counts[10] = f32::NAN;
    counts[11] = -1.0;
    let filter = bayesian_klms(Gaussian::new(0.2).unwrap(), Poisson::new(0.002, 1.0).unwrap(), 1.0, Evict::default(), 1).unwrap();
    let mut block = Mocker::new(Count::<_, In, Reader<f32>, Writer<f32>>::with_buffers(filter, 1).unwrap());
    let mut rate = Vec::new();
    for (input, counts) in input.chunks(333).zip(counts.chunks(333)) {
        block.input().set(input.to_vec());
        block.counts().set(counts.to_vec());
        block.rate().reserve(333);
        block.run();
        rate.extend(block.rate().take().0);
    }
    assert_eq!(rate.len(), 4000);
    assert_eq!(block.filter().size(), 3998);
    let error: f32 = (3000..4000).map(|i| (rate[i] / (2.0 + 10.0 * input[i].re) - 1.0).abs()).sum::<f32>() / 1000.0;
    assert!(error < 0.15, "mean relative error of the rate {error}");
    assert_eq!(block.post("set", Pmt::String("offset=nan".into())), Ok(Pmt::InvalidValue));
    assert_eq!(block.post("reset", Pmt::Null), Ok(Pmt::Ok));
    assert_eq!(block.filter().size(), 0);
}
