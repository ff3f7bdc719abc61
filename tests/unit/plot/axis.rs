use super::*;

fn labels(axis: &Axis, lo: f64, hi: f64, most: usize) -> (String, String) {
    let scale = Scale { lo, hi, log: axis.log };
    let (ticks, title) = scale.ticks(axis, most);
    (ticks.into_iter().map(|t| t.text).filter(|t| !t.is_empty()).collect::<Vec<_>>().join(" "), title)
}

#[test]
fn ticks_are_round_numbers_in_engineering_units() {
    for (unit, lo, hi, most, ticks, title) in [
        ("", 0.0, 1.0, 5, "0.0 0.2 0.4 0.6 0.8 1.0", "x"),
        ("dB", -18.3, 1.2, 5, "−15 −10 −5 0", "x (dB)"),
        ("Hz", -2.0e6, 2.0e6, 4, "−2 −1 0 1 2", "x (MHz)"),
        ("Hz", 2.4e9, 2.402e9, 4, "2.4000 2.4005 2.4010 2.4015 2.4020", "x (GHz)"),
        ("V", 1.0, 1.000006, 3, "0 2 4 6", "x − 1 V (µV)"),
        ("samples", 1e9 + 3.0, 1e9 + 52.0, 4, "20 40", "x − 1000000000 (samples)"),
        ("samples", 0.0, 1e6, 5, "0 0.2M 0.4M 0.6M 0.8M 1.0M", "x (samples)"),
        ("samples", 0.0, 8000.0, 4, "0 2000 4000 6000 8000", "x (samples)"),
        ("s", 0.0, 3.1e-5, 3, "0 20", "x (µs)"),
        ("", 0.0, 4e-4, 4, "0 100 200 300 400", "x (×10⁻⁶)"),
        ("°", -180.0, 180.0, 5, "−180 −90 0 90 180", "x (°)"),
        ("°", -7.0, 12.0, 5, "−5 0 5 10", "x (°)"),
    ] {
        let (text, heading) = labels(&Axis::new("x", unit), lo, hi, most);
        assert_eq!((text.as_str(), heading.as_str()), (ticks, title));
    }
}

#[test]
fn log_ticks_are_decades_and_fall_back_where_there_are_none() {
    let axis = Axis::new("x", "").log();
    assert_eq!(labels(&axis, 1e-6, 1.0, 10).0, "10⁻⁶ 10⁻⁵ 10⁻⁴ 10⁻³ 10⁻² 10⁻¹ 10⁰");
    assert_eq!(labels(&axis, 0.9, 110.0, 9).0, "1 2 5 10 20 50 100");
    assert_eq!(labels(&axis, 0.41, 0.49, 4).0, "0.42 0.44 0.46 0.48");
    assert!(labels(&axis, 1e-300, 1e300, 6).0.split(' ').count() <= 7);
}

#[test]
fn every_range_is_finite_and_not_empty() {
    let log = Axis::new("", "").log();
    for values in
        [vec![], vec![f64::NAN], vec![0.0], vec![7.0], vec![-1e300, 1e300], vec![f64::MIN, f64::MAX], vec![1e-320], vec![5e9, 5e9]]
    {
        for axis in [&Axis::default(), &log, &Axis::default().range(f64::NAN, 1.0), &Axis::default().range(2.0, 2.0)] {
            let scale = Scale::around(axis, values.iter().copied(), 0.05);
            assert!(scale.lo < scale.hi && (scale.hi - scale.lo).is_finite(), "{values:?} {scale:?}");
            let (ticks, _) = scale.ticks(axis, 5);
            assert!(ticks.iter().all(|t| t.value.is_finite() && (-0.01..1.01).contains(&scale.at(t.value))), "{values:?} {ticks:?}");
        }
    }
}

#[test]
fn numbers_have_true_minus_signs_and_zero_has_none() {
    assert_eq!(number(-2.345, 1), "−2.3");
    assert_eq!(number(-0.001, 1), "0.0");
}

#[test]
fn three_significant_digits() {
    assert_eq!([short(0.25149), short(-12.0), short(8000.0), short(3.2e-5)], ["0.251", "−12", "8000", "3.2·10⁻⁵"]);
}
