//! Errors over time.

use futuresdr::runtime::mocker::Mocker;
use kaflow::blocks::Meter;

use super::{In, pair};

#[test]
fn the_meter_counts_every_sample_once_whatever_the_buffer_sizes() {
    let (reference, estimate) = pair(15, 10_000);
    let mut rows = None;
    for piece in [1, 64, 999, 10_000] {
        let mut meter = Mocker::new(Meter::<In>::with_buffers(250, 0));
        for (y, p) in reference.chunks(piece).zip(estimate.chunks(piece)) {
            meter.reference().set(y.to_vec());
            meter.estimate().set(p.to_vec());
            meter.run();
        }
        assert_eq!(meter.messages()[0].len(), 40);
        let now = meter.series.rows();
        assert_eq!(*rows.get_or_insert(now.clone()), now, "pieces of {piece}");
        let energy: f64 = reference.iter().map(|y| f64::from(y.re).powi(2) + f64::from(y.im).powi(2)).sum();
        assert!((meter.series.total().reference - energy).abs() < 1e-9 * energy);
    }
}
