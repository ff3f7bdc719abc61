//! The interleaver of IEEE 802.11 (17.3.5.7), for any number of carriers.

/// Spreads neighbouring bits over carriers that are far apart and over places of different weight in a label, within one OFDM symbol.
///
/// With 48 data carriers these are 802.11's two permutations (17-17, 17-18), which write into 16 columns; otherwise there are as many columns, up to 16, as divide the
/// number of carriers.
#[derive(Clone, Debug)]
pub(super) struct Interleaver {
    /// Where the k-th bit goes.
    places: Vec<usize>,
}

impl Interleaver {
    pub(super) fn new(carriers: usize, bits: usize) -> Self {
        let size = carriers * bits;
        let columns = (1..=16).rev().find(|columns| carriers.is_multiple_of(*columns)).unwrap_or(1);
        let s = (bits / 2).max(1);
        let place = |k: usize| {
            let i = size / columns * (k % columns) + k / columns;
            s * (i / s) + (i + size - columns * i / size) % s
        };
        Self { places: (0..size).map(place).collect() }
    }

    pub(super) fn spread<T: Copy>(&self, from: &[T], to: &mut [T]) {
        let size = self.places.len();
        for (from, to) in from.chunks_exact(size).zip(to.chunks_exact_mut(size)) {
            self.places.iter().zip(from).for_each(|(&place, &value)| to[place] = value);
        }
    }

    pub(super) fn gather<T: Copy>(&self, from: &[T], to: &mut Vec<T>) {
        to.clear();
        to.extend(from.chunks_exact(self.places.len()).flat_map(|from| self.places.iter().map(|&place| from[place])));
    }
}
