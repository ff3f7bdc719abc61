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

    /// Where each bit of `group` symbols goes, in their order.
    fn group(&self, symbols: usize) -> impl Iterator<Item = usize> + '_ {
        let size = self.places.len();
        // Each symbol begins elsewhere, by the golden section: neighbours must not meet on one carrier of all symbols.
        let start = move |symbol: usize| symbol * (size * 618 / 1000) % size;
        (0..size).flat_map(move |k| (0..symbols).map(move |symbol| symbol * size + self.places[(k + start(symbol)) % size]))
    }

    pub(super) fn spread<T: Copy>(&self, from: &[T], to: &mut [T]) {
        let most = self.places.len() * self.depth;
        for (from, to) in from.chunks(most).zip(to.chunks_mut(most)) {
            self.group(from.len() / self.places.len()).zip(from).for_each(|(place, &value)| to[place] = value);
        }
    }

    pub(super) fn gather<T: Copy>(&self, from: &[T], to: &mut Vec<T>) {
        to.clear();
        for from in from.chunks(self.places.len() * self.depth) {
            to.extend(self.group(from.len() / self.places.len()).map(|place| from[place]));
        }
    }
}
