use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;

fn all() -> Vec<Box<dyn Kernel<f64>>> {
    let sum = Sum::new(vec![(0.7, Box::new(Gaussian::new(0.8).unwrap()) as _), (0.3, Box::new(Linear) as _)]).unwrap();
    vec![
        Box::new(Gaussian::new(1.3).unwrap()),
        Box::new(Linear),
        Box::new(Polynomial::new(3, 0.5).unwrap()),
        Box::new(Equivariant::new(0.9).unwrap()),
        Box::new(Hammerstein::new(0.4).unwrap()),
        Box::new(sum),
    ]
}

fn windows(n: usize, taps: usize) -> Vec<Vec<Complex<f64>>> {
    let mut rng = ChaCha8Rng::seed_from_u64(5);
    let mut draw = || Complex::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0));
    (0..n).map(|_| (0..taps).map(|_| draw()).collect()).collect()
}

#[test]
fn kernels_are_hermitian_and_positive_definite() {
    let x = windows(6, 3);
    let mut rng = ChaCha8Rng::seed_from_u64(6);
    for kernel in all() {
        for a in &x {
            assert!(kernel.value(a, a).im.abs() < 1e-12 && kernel.norm(a) >= 0.0);
            for b in &x {
                assert!((kernel.value(a, b) - kernel.value(b, a).conj()).norm() < 1e-12, "{}", kernel.describe());
            }
        }
        for _ in 0..50 {
            let w: Vec<_> = x.iter().map(|_| Complex::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect();
            // Σ conj(w_i) k(x_i, x_j) w_j is the squared norm of Σ w_j φ(x_j).
            let norm: Complex<f64> =
                (0..6).flat_map(|i| (0..6).map(move |j| (i, j))).map(|(i, j)| w[i].conj() * kernel.value(&x[i], &x[j]) * w[j]).sum();
            assert!(norm.re > -1e-12 && norm.im.abs() < 1e-12, "{}: {norm}", kernel.describe());
        }
    }
}

#[test]
fn rows_agree_with_values() {
    for taps in [1, 2, 5] {
        let x = windows(20, taps);
        let mut centres = Centres::new(taps);
        for c in &x[1..] {
            centres.push(c);
        }
        for kernel in all() {
            let (mut row, mut plain) = (Row::default(), Row::default());
            kernel.row(&centres, &x[0], &mut row);
            plain_row(&kernel, &centres, &x[0], &mut plain);
            for (i, c) in x[1..].iter().enumerate() {
                let k = kernel.value(c, &x[0]);
                assert!((Complex::new(row.re[i], row.im[i]) - k).norm() < 1e-12 * (1.0 + k.norm()), "{}", kernel.describe());
                assert_eq!(Complex::new(plain.re[i], plain.im[i]), k);
                assert!(!row.has_distance || (row.distance[i] - plain.distance[i]).abs() < 1e-12 * (1.0 + plain.distance[i]));
            }
        }
    }
}

#[test]
fn kernels_of_envelopes_turn_with_their_input() {
    let x = windows(2, 4);
    let turn = Complex::from_polar(1.0, 0.7);
    let turned: Vec<_> = x[1].iter().map(|z| z * turn).collect();
    let kernels: [Box<dyn Kernel<f64>>; 2] = [Box::new(Equivariant::new(0.5).unwrap()), Box::new(Hammerstein::new(0.5).unwrap())];
    for kernel in kernels {
        assert!((kernel.value(&x[0], &turned) - kernel.value(&x[0], &x[1]) * turn).norm() < 1e-13);
    }
}

#[test]
fn the_hammerstein_kernel_is_a_sum_over_taps_and_odd_in_each_real_one() {
    let real: Vec<Vec<_>> = windows(2, 4).iter().map(|x| x.iter().map(|z| Complex::new(z.re, 0.0)).collect()).collect();
    let (one, whole) = (Equivariant::new(0.5).unwrap(), Hammerstein::new(0.5).unwrap());
    let taps = real[0].iter().zip(&real[1]).map(|(c, x)| one.value(&[*c], &[*x]));
    assert!((taps.clone().sum::<Complex<f64>>() - whole.value(&real[0], &real[1])).norm() < 1e-15);
    for (l, term) in taps.enumerate() {
        let mut turned = real[1].clone();
        turned[l] = -turned[l];
        assert!((whole.value(&real[0], &real[1]) - whole.value(&real[0], &turned) - term * 2.0).norm() < 1e-15);
    }
}

#[test]
fn distances_of_the_hammerstein_kernel_are_those_of_its_features() {
    let (x, kernel) = (windows(12, 3), Hammerstein::new(0.6).unwrap());
    for (a, b) in x.iter().zip(x[1..].iter().chain(&x[..1])) {
        let by_features = kernel.norm(a) + kernel.norm(b) - 2.0 * kernel.value(a, b).re;
        assert!((kernel.distance(a, b) - by_features).abs() < 1e-13 && kernel.distance(a, a).abs() < 1e-15);
    }
}
