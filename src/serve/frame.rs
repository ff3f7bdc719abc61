//! Frames: what the dashboard draws, as bytes.
//!
//! A frame is any number of sections, one behind the other, all little endian:
//!
//! | bytes | type | what |
//! |---|---|---|
//! | 0 | u8 | version of this layout, [`VERSION`] |
//! | 1 | u8 | [`Kind`] |
//! | 2..4 | u16 | the filter's place in `hello` |
//! | 4..8 | u32 | how many numbers follow |
//! | 8..16 | u64 | index of the sample that the section ends with |
//! | 16.. | f32 | the numbers |
//!
//! What a number means is said at its [`Kind`]. A *table* begins with the width of its rows; each row is its age in samples before the section's index, and then so many
//! numbers. What is not known is NaN. `decode` in `page/frames.js` is the other end.

/// Of the layout; a page of another version says so instead of drawing nonsense.
pub(crate) const VERSION: u8 = 1;

/// What a section holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Power density of what the filter was to predict in dB relative to full scale in each Hz (in each cycle a sample where the rate is not known), lowest frequency first.
    Target = 1,
    /// That of its prediction.
    Prediction = 2,
    /// That of its error.
    Error = 3,
    /// Symbols by one tap for each carrier: real part, imaginary part.
    OneTap = 4,
    /// Symbols by a filter that equalises.
    Equalised = 5,
    /// A table over the run: NMSE in dB, and the ends of its 95 % interval.
    Nmse = 6,
    /// Measured samples of the amplifier: amplitude in, amplitude out, phase shift in degrees.
    Dots = 7,
    /// The amplifier's curve as the filter has learned it, likewise.
    Curve = 8,
    /// A table over a short stretch: real and imaginary part of each tap.
    Taps = 9,
    /// The same over the run.
    TapsOfRun = 10,
    /// A table over a short stretch: the weight of each member of a mixture.
    Members = 11,
    /// The same over the run.
    MembersOfRun = 12,
}

/// A frame that grows.
#[derive(Default)]
pub(crate) struct Frame(Vec<u8>);

impl Frame {
    /// Adds a section.
    pub(crate) fn section(&mut self, kind: Kind, filter: usize, sample: u64, numbers: impl IntoIterator<Item = f32>) {
        let head = self.0.len();
        self.0.extend([VERSION, kind as u8]);
        self.0.extend((filter as u16).to_le_bytes());
        self.0.extend([0; 4]);
        self.0.extend(sample.to_le_bytes());
        let first = self.0.len();
        numbers.into_iter().for_each(|number| self.0.extend(number.to_le_bytes()));
        let count = ((self.0.len() - first) / 4) as u32;
        self.0[head + 4..head + 8].copy_from_slice(&count.to_le_bytes());
    }

    /// Adds a table; nothing where it has no rows. Rows of another width than the first are left out.
    pub(crate) fn table(&mut self, kind: Kind, filter: usize, sample: u64, rows: &[(u64, Vec<f32>)]) {
        let Some(width) = rows.first().map(|(_, row)| row.len()) else { return };
        let rows = rows.iter().filter(|(_, row)| row.len() == width);
        let numbers = rows.flat_map(|(at, row)| std::iter::once(sample.saturating_sub(*at) as f32).chain(row.iter().copied()));
        self.section(kind, filter, sample, std::iter::once(width as f32).chain(numbers));
    }

    /// Adds the sections of another frame.
    pub(crate) fn append(&mut self, sections: &[u8]) {
        self.0.extend_from_slice(sections);
    }

    pub(crate) fn bytes(self) -> Vec<u8> {
        self.0
    }
}

/// Reads a frame back: kind, filter, sample index and numbers of each section.
#[cfg(test)]
pub(crate) fn decode(mut bytes: &[u8]) -> Vec<(u8, u16, u64, Vec<f32>)> {
    let mut sections = Vec::new();
    while let Some((head, rest)) = bytes.split_at_checked(16) {
        assert_eq!(head[0], VERSION);
        let count = u32::from_le_bytes(head[4..8].try_into().unwrap()) as usize;
        let (numbers, rest) = rest.split_at(4 * count);
        let numbers = numbers.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
        let (filter, sample) = (u16::from_le_bytes([head[2], head[3]]), u64::from_le_bytes(head[8..].try_into().unwrap()));
        sections.push((head[1], filter, sample, numbers));
        bytes = rest;
    }
    assert!(bytes.is_empty(), "{} bytes too many", bytes.len());
    sections
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_encoded_comes_back_to_the_bit() {
        let odd = [0.0, -0.0, f32::MIN_POSITIVE / 2.0, f32::INFINITY, f32::NAN, 1.1];
        let mut frame = Frame::default();
        frame.section(Kind::Target, 0, u64::MAX, odd);
        frame.section(Kind::Error, 65_535, 0, []);
        frame.table(Kind::Taps, 3, 1000, &[(900, vec![1.0, 2.0]), (950, vec![9.0]), (1000, vec![3.0, 4.0])]);
        frame.table(Kind::Nmse, 3, 1000, &[]);
        let sections = decode(&frame.bytes());
        assert_eq!(sections.len(), 3);
        let (kind, filter, sample, numbers) = &sections[0];
        assert_eq!((*kind, *filter, *sample), (1, 0, u64::MAX));
        assert!(numbers.iter().zip(odd).all(|(a, b)| a.to_bits() == b.to_bits()) && numbers.len() == odd.len());
        assert_eq!(sections[1], (3, 65_535, 0, vec![]));
        assert_eq!(sections[2], (9, 3, 1000, vec![2.0, 100.0, 1.0, 2.0, 0.0, 3.0, 4.0]));
    }

    #[test]
    fn sections_stay_aligned_for_a_viewer_that_reads_numbers_in_place() {
        let mut frame = Frame::default();
        for n in 0..5 {
            frame.section(Kind::Dots, n, 7, vec![1.0; n]);
        }
        assert!(frame.bytes().len().is_multiple_of(4));
    }
}
