use super::*;

/// Against the integral `1/π ∫ e^{a (cos t − 1)} cos(nt) dt`, by the trapezoid rule, which is exact to rounding for periodic functions.
#[test]
fn bessel_functions_are_their_integrals() {
    for a in [0.0, 1e-3, 0.1, 1.0, 3.7, 3.75, 3.8, 10.0, 100.0, 1e4] {
        let steps = 20_000;
        let integral = |n: f64| {
            let at = |i: usize| std::f64::consts::PI * (i as f64 + 0.5) / f64::from(steps);
            (0..steps as usize).map(|i| (a * (at(i).cos() - 1.0)).exp() * (n * at(i)).cos()).sum::<f64>() / f64::from(steps)
        };
        let (i0, i1) = bessel(a as f32);
        assert!((f64::from(i0) - integral(0.0)).abs() < 3e-6 * integral(0.0), "{a}: {i0}, {}", integral(0.0));
        assert!((f64::from(i1) - integral(1.0)).abs() < 3e-6 * integral(0.0), "{a}: {i1}, {}", integral(1.0));
    }
}

/// The node against sums over a grid of the plane.
#[test]
fn the_amplifiers_node_is_bayes_rule() {
    let curve = Curve::new(|r| num_complex::Complex64::from_polar(1.0 / (1.0 + r.powi(4)).powf(0.25), 0.3 * r * r / (1.0 + r * r)));
    let config = crate::ofdm::Config::default();
    let ep = Ep::new(&Frame::new(&config, 1), &curve);
    for (x, v, u, tau) in [((0.5, 0.3), 0.3, (0.6, -0.2), 0.1), ((1.4, -0.6), 0.05, (1.0, -0.9), 0.3), ((0.0, 0.0), 1.0, (0.1, 1.3), 0.02)]
    {
        let (x, u) = (Complex32::new(x.0, x.1), Complex32::new(u.0, u.1));
        let (mut mx, mut mu) = ([Complex32::ZERO], [Complex32::ZERO]);
        let (heard_x, heard_u) = (Message { mean: &[x], variance: v }, Message { mean: &[u], variance: tau });
        let (vx, vu) = ep.node.posterior(Level::current(), heard_x, heard_u, &mut mx, &mut mu);
        let (mut total, mut first, mut second, mut g1, mut g2) = (0.0, Complex32::ZERO, 0.0, Complex32::ZERO, 0.0);
        for i in -160..=160 {
            for j in -160..=160 {
                let z = Complex32::new(i as f32 * 0.02, j as f32 * 0.02);
                let g = curve.apply(z);
                let w = (-(z - x).norm_sqr() / v - (g - u).norm_sqr() / tau).exp();
                (total, first, second) = (total + w, first + z * w, second + z.norm_sqr() * w);
                (g1, g2) = (g1 + g * w, g2 + g.norm_sqr() * w);
            }
        }
        let (first, g1) = (first / total, g1 / total);
        assert!((mx[0] - first).norm() < 3e-3 && (mu[0] - g1).norm() < 3e-3, "{mx:?} {first}, {mu:?} {g1}");
        assert!((vx - (second / total - first.norm_sqr())).abs() < 3e-3 && (vu - (g2 / total - g1.norm_sqr())).abs() < 3e-3);
    }
}
