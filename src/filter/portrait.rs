//! What a filter has learned, for somebody who looks at it.

use num_complex::{Complex, Complex64};

use crate::Real;

/// What a filter has learned, in the units of its streams. Each part is empty where the filter has nothing of the kind.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Portrait {
    /// The impulse response of the linear part, that of the newest sample first. Conjugate taps are not among them.
    pub taps: Vec<Complex64>,
    /// The weights of a dictionary, in no order.
    pub weights: Vec<Weight>,
    /// The nonlinearity in front of the taps: envelopes in increasing order, and the gain `G(|x|)` at each.
    pub gain: Vec<(f64, Complex64)>,
    /// How many steps since it was built a filter made smaller than asked for, as they would have made the error larger: its `eta` is too large for the
    /// power of its input.
    pub bounded_steps: u64,
    /// The members of a mixture and their weights, which sum to 1.
    pub members: Vec<(String, f64)>,
}

/// One weight of a kernel filter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weight {
    /// How many centres were admitted after this one. Where every sample becomes a centre, these are samples.
    pub age: u64,
    /// The absolute value of its coefficient, decay included.
    pub size: f64,
}

impl Portrait {
    /// A filter that is its taps.
    pub(super) fn of_taps<'a, T: Real>(taps: impl IntoIterator<Item = &'a Complex<T>>) -> Self {
        Self { taps: taps.into_iter().map(|h| Complex64::new(h.re.wide(), h.im.wide())).collect(), ..Self::default() }
    }
}
