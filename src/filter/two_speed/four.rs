//! Four moving taps, the usual number, in registers: two rows of a covariance beside each other.

use num_complex::Complex;

use super::channel::Channel;
use super::linear::{Matrix, Vector, part, part_mut};
use crate::Real;
use crate::simd::Halves;

/// A complex vector, the same four numbers in both halves.
#[derive(Clone, Copy)]
struct Twice<H>(H, H);

impl<H> Twice<H> {
    #[inline(always)]
    fn load<T: Real>(x: &Vector<T>) -> Self
    where
        H: Halves<T>,
    {
        Self(H::twice(part(&x.re, 0)), H::twice(part(&x.im, 0)))
    }

    #[inline(always)]
    fn store<T: Real>(self, x: &mut Vector<T>)
    where
        H: Halves<T>,
    {
        self.0.store_first(part_mut(&mut x.re, 0));
        self.1.store_first(part_mut(&mut x.im, 0));
    }

    /// `self + by * x`.
    #[inline(always)]
    fn plus<T: Real>(self, by: Complex<T>, x: Self) -> Self
    where
        H: Halves<T>,
    {
        let (re, im) = (H::splat(by.re), H::splat(by.im));
        Self(im.fnma(x.1, re.fma(x.0, self.0)), im.fma(x.0, re.fma(x.1, self.1)))
    }

    /// Along the rows of a matrix: the first two, the last two.
    #[inline(always)]
    fn rows<T: Real>(self) -> [(H, H); 2]
    where
        H: Halves<T>,
    {
        [(self.0.first_two(), self.1.first_two()), (self.0.last_two(), self.1.last_two())]
    }
}

/// A complex matrix: real and imaginary parts of the first two rows, and of the last two.
#[derive(Clone, Copy)]
struct Covariance<H>([(H, H); 2]);

impl<H> Covariance<H> {
    #[inline(always)]
    fn load<T: Real>(m: &Matrix<T>) -> Self
    where
        H: Halves<T>,
    {
        Self([(H::load(part(&m.re, 0)), H::load(part(&m.im, 0))), (H::load(part(&m.re, 8)), H::load(part(&m.im, 8)))])
    }

    #[inline(always)]
    fn store<T: Real>(self, m: &mut Matrix<T>)
    where
        H: Halves<T>,
    {
        let [(a, b), (c, d)] = self.0;
        a.store(part_mut(&mut m.re, 0));
        b.store(part_mut(&mut m.im, 0));
        c.store(part_mut(&mut m.re, 8));
        d.store(part_mut(&mut m.im, 8));
    }

    /// `M^H conj(u)`, of `u` its rows.
    #[inline(always)]
    fn adjoint_times_conj<T: Real>(self, u: [(H, H); 2]) -> Twice<H>
    where
        H: Halves<T>,
    {
        let ([(a, b), (c, d)], [(ur, ui), (vr, vi)]) = (self.0, u);
        let re = b.fnma(ui, a.mul(ur)).add(d.fnma(vi, c.mul(vr)));
        let im = b.fma(ur, a.mul(ui)).add(d.fma(vr, c.mul(vi)));
        Twice(re.fold(), H::splat(T::zero()).sub(im.fold()))
    }

    /// `M - weight a b^H`, of `a` its rows. A Hermitian matrix stays Hermitian to the last bit, see [`downdate`](super::linear::downdate); so that
    /// the imaginary parts of both halves are the same products, these are not fused.
    #[inline(always)]
    fn minus<T: Real>(self, weight: H, a: [(H, H); 2], b: Twice<H>) -> Self
    where
        H: Halves<T>,
    {
        let ([m, n], [(ar, ai), (cr, ci)], Twice(br, bi)) = (self.0, a, b);
        Self([
            (weight.fnma(ar.fma(br, ai.mul(bi)), m.0), weight.fnma(ai.mul(br).sub(ar.mul(bi)), m.1)),
            (weight.fnma(cr.fma(br, ci.mul(bi)), n.0), weight.fnma(ci.mul(br).sub(cr.mul(bi)), n.1)),
        ])
    }

    #[inline(always)]
    fn plus<T: Real>(self, other: Self) -> Self
    where
        H: Halves<T>,
    {
        let ([a, b], [c, d]) = (self.0, other.0);
        Self([(a.0.add(c.0), a.1.add(c.1)), (b.0.add(d.0), b.1.add(d.1))])
    }

    #[inline(always)]
    fn plus_diagonal<T: Real>(self, diagonal: H) -> Self
    where
        H: Halves<T>,
    {
        let (z, o) = (T::zero(), T::one());
        let [a, b] = self.0;
        let (first, last) = (H::load(&[o, z, z, z, z, o, z, z]), H::load(&[z, z, o, z, z, z, z, o]));
        Self([(diagonal.fma(first, a.0), a.1), (diagonal.fma(last, b.0), b.1)])
    }
}

/// The gains `kp = P_pp conj(u)` and `kv = P_vp conj(u)`. Returns `h . u` and `u . kp`, which is real.
#[inline(always)]
pub(super) fn predict<T: Real, H: Halves<T>>(c: &mut Channel<T>, u: (&[T], &[T])) -> (Complex<T>, T) {
    let u = Twice(H::twice(part(u.0, 0)), H::twice(part(u.1, 0)));
    let rows = u.rows();
    let kp = Covariance::load(&c.pp).adjoint_times_conj(rows);
    let kv = Covariance::load(&c.pv).adjoint_times_conj(rows);
    kp.store(&mut c.kp);
    kv.store(&mut c.kv);
    let h = Twice::<H>::load(&c.h);
    let re = h.1.fnma(u.1, h.0.mul(u.0)).sums().0;
    let im = h.1.fma(u.0, h.0.mul(u.1)).sums().0;
    (Complex::new(re, im), u.1.fnma(kp.1, u.0.mul(kp.0)).sums().0)
}

/// Taps and covariance after learning from `lesson`, a sample later.
#[inline(always)]
pub(super) fn go_on<T: Real, H: Halves<T>>(c: &mut Channel<T>, lesson: Option<(Complex<T>, T)>, turn: Option<Complex<T>>) {
    let (mut h, mut v) = (Twice::<H>::load(&c.h), Twice::<H>::load(&c.v));
    let (mut pp, mut pv, mut vp, mut vv) =
        (Covariance::<H>::load(&c.pp), Covariance::<H>::load(&c.pv), Covariance::<H>::load(&c.vp), Covariance::<H>::load(&c.vv));
    if let Some((error, weight)) = lesson {
        let (kp, kv) = (Twice::<H>::load(&c.kp), Twice::<H>::load(&c.kv));
        h = h.plus(error * weight, kp);
        v = v.plus(error * weight, kv);
        let (weight, along_p, along_v) = (H::splat(weight), kp.rows(), kv.rows());
        pp = pp.minus(weight, along_p, kp);
        pv = pv.minus(weight, along_p, kv);
        vp = vp.minus(weight, along_v, kp);
        vv = vv.minus(weight, along_v, kv);
    }
    if let Some(turn) = turn {
        let zero = Twice(H::splat(T::zero()), H::splat(T::zero()));
        (h, v) = (zero.plus(turn, h), zero.plus(turn, v));
    }
    Twice(h.0.add(v.0), h.1.add(v.1)).store(&mut c.h);
    v.store(&mut c.v);
    pp.plus(pv.plus(vp).plus(vv)).store(&mut c.pp);
    vv = vv.plus_diagonal(H::twice(part(&c.each, 0)));
    pv.plus(vv).store(&mut c.pv);
    vp.plus(vv).store(&mut c.vp);
    vv.store(&mut c.vv);
}
