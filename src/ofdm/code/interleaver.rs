//! The interleaver of IEEE 802.11 (17.3.5.7), for any number of carriers, and over symbols.

/// Spreads neighbouring bits over symbols, over carriers that are far apart, and over places of different weight in a label.
///
/// Within a symbol these are 802.11's two permutations (17-17, 17-18) for 48 data carriers, which write into 16 columns; otherwise there are as many columns, up to 16, as
/// divide the number of carriers. 802.11 stops there (`depth` 1). With more depth consecutive bits go to so many symbols in turn: a symbol whose peaks were badly
/// distorted then spoils bits that lie far apart, and the code can mend them.
#[derive(Clone, Debug)]
pub(super) struct Interleaver {
    /// Where the k-th bit of a symbol goes.
    places: Vec<usize>,
    depth: usize,
}

impl Interleaver {
    pub(super) fn new(carriers: usize, bits: usize, depth: usize) -> Self {
        let size = carriers * bits;
        let columns = (1..=16).rev().find(|columns| carriers.is_multiple_of(*columns)).unwrap_or(1);
        let s = (bits / 2).max(1);
        let place = |k: usize| {
            let i = size / columns * (k % columns) + k / columns;
            s * (i / s) + (i + size - columns * i / size) % s
        };
        Self { places: (0..size).map(place).collect(), depth }
    }

    /// Calls `visit` with the number of each bit of so many symbols and with the place where it goes.
    fn visit(&self, symbols: usize, mut visit: impl FnMut(usize, usize)) {
        let size = self.places.len();
        for symbol in 0..symbols {
            // Each symbol begins elsewhere, by the golden section: neighbours must not meet on one carrier of all symbols.
            let (last, first) = self.places.split_at(symbol * (size * 618 / 1000) % size);
            first.iter().chain(last).enumerate().for_each(|(k, place)| visit(k * symbols + symbol, symbol * size + place));
        }
    }

    pub(super) fn spread<T: Copy>(&self, from: &[T], to: &mut [T]) {
        let most = self.places.len() * self.depth;
        for (from, to) in from.chunks(most).zip(to.chunks_mut(most)) {
            self.visit(from.len() / self.places.len(), |bit, place| to[place] = from[bit]);
        }
    }

    pub(super) fn gather<T: Copy + Default>(&self, from: &[T], to: &mut Vec<T>) {
        let size = self.places.len();
        to.clear();
        to.resize(from.len() / size * size, T::default());
        for (from, to) in from.chunks(size * self.depth).zip(to.chunks_mut(size * self.depth)) {
            self.visit(from.len() / size, |bit, place| to[bit] = from[place]);
        }
    }
}
