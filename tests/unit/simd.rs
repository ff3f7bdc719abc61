//! Each loop against the plain formula, at every level that the machine has.

use super::*;
use crate::Real;

/// `2^x` lane by lane.
struct Powers<'a, T>(&'a mut [T]);

impl<T: Real> Op<T> for Powers<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<V: Vector<T>>(self) {
        for lanes in self.0.chunks_exact_mut(V::LANES) {
            // SAFETY: a chunk has as many values as there are lanes.
            unsafe { V::load(lanes.as_ptr()).exp2(&V::exp2_constants()).store(lanes.as_mut_ptr()) };
        }
    }
}

#[test]
fn exp2_is_within_two_roundings_and_exact_at_whole_numbers() {
    fn check<T: Real>(level: Level, lowest: f64) {
        let x: Vec<T> = (0..160_000).map(|i| T::of(lowest * f64::from(i) / 160_000.0)).collect();
        let mut y = x.clone();
        T::dispatch(level, Powers(&mut y));
        for (x, y) in x.iter().zip(&y) {
            let error = (y.wide() / x.wide().exp2() - 1.0).abs();
            assert!(error <= 2.0 * T::epsilon().wide(), "{level}: 2^{x} has a relative error of {error:e}");
        }
        let mut whole: Vec<T> = (0..96).map(|i| T::of(-f64::from(i))).collect();
        T::dispatch(level, Powers(&mut whole));
        for (i, &y) in whole.iter().enumerate() {
            assert_eq!(y.wide(), (-(i as f64)).exp2(), "{level}");
        }
    }
    for &level in Level::available() {
        check::<f32>(level, -100.0);
        check::<f64>(level, -900.0);
    }
}

#[test]
fn the_first_of_the_nearest_is_found() {
    fn check<T: Real>(level: Level) {
        assert_eq!(T::dispatch(level, Nearest::<T> { distance: &[] }), None);
        for len in 1..70usize {
            for place in 0..len {
                let mut distance: Vec<T> = (0..len).map(|i| T::of(3.0 + (i * 7 % 5) as f64)).collect();
                distance[place] = T::one();
                // A tie further on, and a number that is none.
                distance[(place + 9).min(len - 1).max(place)] = T::one();
                if place > 0 {
                    distance[0] = T::nan();
                }
                assert_eq!(T::dispatch(level, Nearest { distance: &distance }), Some((place, T::one())), "{level}, {place} of {len}");
            }
        }
        let far = vec![T::infinity(); 20];
        assert_eq!(T::dispatch(level, Nearest { distance: &far }), None);
    }
    for &level in Level::available() {
        check::<f32>(level);
        check::<f64>(level);
    }
}

#[test]
fn weighted_sums_are_sums() {
    for &level in Level::available() {
        for len in 0..80usize {
            let plane = |k: usize| -> Vec<f64> { (0..len).map(|i| ((i * k + 3) % 17) as f64 - 8.0).collect() };
            let (re, im, row) = (plane(5), plane(7), plane(11));
            let sum = f64::dispatch(level, WeighComplex { re: &re, im: &im, row: &row });
            let dot = |a: &[f64]| a.iter().zip(&row).map(|(a, b)| a * b).sum::<f64>();
            // Small whole numbers: every order of summation is exact.
            assert_eq!((sum.re, sum.im), (dot(&re), dot(&im)), "{level}, {len}");
            let other = plane(13);
            let sum = f64::dispatch(level, WeighByComplex { re: &re, im: &im, row: [&row, &other] });
            let cross = |a: &[f64]| a.iter().zip(&other).map(|(a, b)| a * b).sum::<f64>();
            assert_eq!((sum.re, sum.im), (dot(&re) - cross(&im), dot(&im) + cross(&re)), "{level}, {len}");
        }
    }
}

#[test]
fn a_minimum_keeps_numbers_away_from_what_is_none() {
    struct Clamp<'a, T>(&'a mut [T; 16]);
    impl<T: Real> Op<T> for Clamp<'_, T> {
        type Output = ();
        #[inline(always)]
        fn run<V: Vector<T>>(self) {
            // SAFETY: the array has 16 values, the most that a vector has lanes.
            unsafe { V::load(self.0.as_ptr()).min(V::splat(T::one())).max(V::splat(-T::one())).store(self.0.as_mut_ptr()) };
        }
    }
    for &level in Level::available() {
        let mut x = [f64::NAN, f64::INFINITY, -5.0, 0.5, f64::NAN, -f64::INFINITY, 2.0, -0.5, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0];
        let expected = [1.0, 1.0, -1.0, 0.5, 1.0, -1.0, 1.0, -0.5];
        f64::dispatch(level, Clamp(&mut x));
        // The narrowest level has two lanes.
        let lanes = if level == Level::Neon { 2 } else { 4 };
        assert_eq!(x[..lanes], expected[..lanes], "{level}");
    }
}

/// Sums of four vectors, and which lanes are below a bound.
struct Lanes<'a>(&'a [f32; 16], f32);

impl Op<f32> for Lanes<'_> {
    type Output = ([f32; 4], u64);

    #[inline(always)]
    fn run<V: Vector<f32>>(self) -> Self::Output {
        let x = V::read(self.0, 0);
        (V::sums([x, x.add(x), V::splat(1.0), V::splat(0.0)]), x.less(V::splat(self.1)))
    }
}

#[test]
fn sums_and_comparisons_look_at_every_lane() {
    for &level in Level::available() {
        for k in 0..4 {
            let mut x = [1.0; 16];
            x[k] = -2.0;
            let ([a, b, lanes, zero], below) = f32::dispatch(level, Lanes(&x, 0.0));
            assert_eq!((a, b, zero, below), (lanes - 3.0, 2.0 * (lanes - 3.0), 0.0, 1 << k), "{level}, lane {k}");
            assert_eq!(f32::dispatch(level, Lanes(&x, -2.0)).1, 0, "{level}: none is below");
        }
    }
}

#[test]
fn even_and_odd_places_come_apart() {
    struct Unzip<'a, T>(&'a mut [T; 32]);
    impl<T: Real> Op<T> for Unzip<'_, T> {
        type Output = usize;
        #[inline(always)]
        fn run<V: Vector<T>>(self) -> usize {
            let (even, odd) = V::read(self.0, 0).unzip(V::read(self.0, V::LANES));
            even.write(self.0, 0);
            odd.write(self.0, V::LANES);
            V::LANES
        }
    }
    fn check<T: Real>(level: Level) {
        let mut x: [T; 32] = std::array::from_fn(|i| T::of(i as f64));
        let lanes = T::dispatch(level, Unzip(&mut x));
        for i in 0..lanes {
            assert_eq!((x[i].wide(), x[lanes + i].wide()), ((2 * i) as f64, (2 * i + 1) as f64), "{level}, lane {i}");
        }
    }
    for &level in Level::available() {
        check::<f32>(level);
        check::<f64>(level);
    }
}

/// Roots, reciprocals and logarithms lane by lane; the first of the lanes that are the greatest.
struct Functions<'a, T>(&'a [T; 16], [&'a mut [T; 16]; 4]);

impl<T: Real> Op<T> for Functions<'_, T> {
    type Output = T;

    #[inline(always)]
    fn run<V: Vector<T>>(self) -> T {
        let x = V::read(self.0, 0);
        x.sqrt().write(self.1[0], 0);
        x.recip().write(self.1[1], 0);
        x.rough_recip().write(self.1[2], 0);
        x.log2().write(self.1[3], 0);
        x.greatest()
    }
}

#[test]
fn roots_reciprocals_and_logarithms_are_as_exact_as_they_say() {
    fn check<T: Real>(level: Level) {
        for k in 0..2000 {
            let x: [T; 16] = std::array::from_fn(|i| T::of((f64::from(k) / 25.0 - 40.0 + 0.37 * i as f64).exp2()));
            let mut y = [[T::nan(); 16]; 4];
            let [a, b, c, d] = &mut y;
            let greatest = T::dispatch(level, Functions(&x, [a, b, c, d]));
            let lanes = y[0].iter().take_while(|y| !y.is_nan()).count();
            assert_eq!(greatest, x[lanes - 1], "{level}");
            for i in 0..lanes {
                let x = x[i].wide();
                let near = |y: T, exact: f64, error: f64| assert!((y.wide() - exact).abs() <= error, "{level}: {y} for {exact} of {x}");
                near(y[0][i], x.sqrt(), x.sqrt() * T::epsilon().wide());
                near(y[1][i], x.recip(), 4.0 / x * T::epsilon().wide());
                near(y[2][i], x.recip(), 1e-3 / x);
                near(y[3][i], x.log2(), 1.5e-5 + 40.0 * T::epsilon().wide());
            }
        }
    }
    for &level in Level::available() {
        check::<f32>(level);
        check::<f64>(level);
    }
}
