//! A kernel of your own: the rational quadratic, which falls off more slowly than the Gaussian.
//!
//! `cargo run --release --example own_kernel`

use kaflow::{
    Complex, Real, Result,
    filter::{Evict, Filter, klms},
    kernel::{Gaussian, Kernel, distance_sqr},
    observation::Gain,
};

/// `1 / (1 + ‖a − b‖² / 2σ²)`.
struct RationalQuadratic {
    sigma: f64,
}

impl<T: Real> Kernel<T> for RationalQuadratic {
    fn value(&self, centre: &[Complex<T>], x: &[Complex<T>]) -> Complex<T> {
        (T::one() / (T::one() + distance_sqr(centre, x) / T::of(2.0 * self.sigma * self.sigma))).into()
    }

    fn describe(&self) -> String {
        format!("rational quadratic(sigma={})", self.sigma)
    }
}

/// Learns `f` from 2000 points and gives the error over the last 500 in dB.
fn learn(mut filter: impl Filter<f64>, f: impl Fn(Complex<f64>) -> Complex<f64>) -> f64 {
    let (mut error, mut power) = (0.0, 0.0);
    for i in 0..2000 {
        let x = Complex::from_polar((f64::from(i) * 0.618).fract(), f64::from(i) * 2.4);
        let (y, p) = (f(x), filter.adapt(&[x], f(x)));
        if i >= 1500 {
            error += (y - p).norm_sqr();
            power += y.norm_sqr();
        }
    }
    kaflow::metrics::db(error, power)
}

fn main() -> Result<()> {
    let saturation = |x: Complex<f64>| x / (1.0 + x.norm_sqr());
    let ours = klms(RationalQuadratic { sigma: 0.2 }, Gain::Eta(0.5), Evict::default(), 1)?;
    let gaussian = klms(Gaussian::new(0.2)?, Gain::Eta(0.5), Evict::default(), 1)?;
    println!("rational quadratic {:.1} dB, Gaussian {:.1} dB", learn(ours, saturation), learn(gaussian, saturation));
    Ok(())
}
