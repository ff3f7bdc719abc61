use super::*;

fn signal(n: usize) -> (Vec<Complex32>, Vec<Complex32>) {
    let y: Vec<_> = (0..n).map(|i| Complex32::from_polar(1.0 + (i % 7) as f32, i as f32)).collect();
    let p = y.iter().enumerate().map(|(i, y)| y * (1.0 - 1.0 / (2.0 + i as f32))).collect();
    (y, p)
}

#[test]
fn the_history_covers_every_sample_once_in_bounded_memory() {
    let (y, p) = signal(100_000);
    let mut series = Series::new(3, 0);
    let mut at = 0;
    while at < y.len() {
        let n = (series.to_boundary() as usize).min(y.len() - at);
        series.push(&y[at..at + n], &p[at..at + n], &mut vec![Complex32::default(); n]);
        at += n;
    }
    let rows = series.rows();
    assert!(rows.len() <= CAPACITY, "{} rows", rows.len());
    assert_eq!(rows.iter().map(|r| r.samples).sum::<u64>(), 100_000);
    assert!(rows.windows(2).all(|w| w[1].end - w[1].samples == w[0].end));
    let sum: f64 = rows.iter().map(|r| r.error).sum();
    assert!((sum / series.total().error - 1.0).abs() < 1e-12);
}

#[test]
fn sums_do_not_depend_on_the_cuts_nor_on_the_machine() {
    let (mut y, p) = signal(1000);
    for bad in [17, 18, 501] {
        y[bad].re = f32::NAN;
    }
    let whole = |level: Level| {
        let mut sums = Sums::default();
        let mut error = vec![Complex32::default(); 1000];
        level.force(|| sums.push(&y, &p, &mut error)).unwrap();
        sums
    };
    let plain = whole(Level::Plain);
    assert_eq!(plain.samples, 997);
    let exact: f64 = y.iter().zip(&p).map(|(y, p)| f64::from((y - p).norm_sqr())).filter(|e| e.is_finite()).sum();
    assert!((plain.row().error / exact - 1.0).abs() < 1e-6);
    for &level in Level::available() {
        assert_eq!(whole(level), plain, "{level}");
    }
    for piece in [1, 2, 3, 5, 7, 64, 999] {
        let mut sums = Sums::default();
        for (y, p) in y.chunks(piece).zip(p.chunks(piece)) {
            sums.push(y, p, &mut vec![Complex32::default(); y.len()]);
        }
        assert_eq!(sums, plain, "pieces of {piece}");
    }
}

#[test]
fn skipped_samples_and_samples_that_are_not_numbers_are_left_out() {
    let (mut y, p) = signal(10);
    y[7].re = f32::NAN;
    y[8].im = f32::INFINITY;
    let mut series = Series::new(100, 4);
    let mut error = vec![Complex32::default(); 10];
    series.push(&y, &p, &mut error);
    assert_eq!(error[3], y[3] - p[3]);
    assert_eq!(series.total().samples, 4);
    assert_eq!(series.last().samples, 8);
    assert!(series.total().nmse_db().is_finite());
    assert!(Row::default().nmse_db().is_nan());
}
