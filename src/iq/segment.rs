//! Stretches of samples without a gap, and the gaps between them.

use super::sigmf::Meta;

/// A stretch of samples that one capture of the recording describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// The first sample's place in the recording, counted from 0.
    pub start: u64,
    /// How many samples it has.
    pub len: u64,
    /// The first sample's index in the stream that the radio saw, gaps counted.
    pub global_index: u64,
    /// Length of the gap just before it.
    pub gap: u64,
    /// Where its first byte lies in the file.
    pub(crate) byte: u64,
}

/// What is wrong and at which field.
pub(crate) type Problem = (String, String);

/// Cuts `bytes` of data, found at `offset` of the file, into the segments that the captures describe. `frame` is the size of a sample of all channels.
pub(crate) fn segments(meta: &Meta, frame: u64, offset: u64, bytes: u64) -> Result<Vec<Segment>, Problem> {
    let first = meta.global.offset.unwrap_or(0);
    let trailing = meta.global.trailing_bytes.unwrap_or(0);
    let headers = meta.captures.iter().try_fold(0_u64, |sum, c| sum.checked_add(c.header_bytes.unwrap_or(0)));
    let used = headers.and_then(|h| h.checked_add(trailing)).and_then(|skipped| bytes.checked_sub(skipped)).ok_or_else(|| {
        ("core:header_bytes and core:trailing_bytes".to_owned(), format!("together they exceed the {bytes} bytes of the data file"))
    })?;
    let total = used / frame;
    if used % frame != 0 {
        return Err((
            format!("offset {}", offset + bytes - trailing - used % frame),
            format!(
                "{} stray bytes after {total} whole samples of {frame} bytes: the file is truncated or its format is another one; \
                 to keep the whole samples cut it there with `truncate`",
                used % frame
            ),
        ));
    }

    let mut segments: Vec<Segment> = Vec::with_capacity(meta.captures.len().max(1));
    let mut header_sum = 0;
    for (i, capture) in meta.captures.iter().enumerate() {
        let field = |name: &str| format!("captures[{i}] core:{name}");
        let start = capture
            .sample_start
            .checked_sub(first)
            .ok_or_else(|| (field("sample_start"), format!("{} lies before core:offset {first}", capture.sample_start)))?;
        // A gap behind the last sample is a capture without samples.
        let after_a_gap = capture.global_index.is_some() && i > 0;
        if start > total || (start == total && start > 0 && !after_a_gap) {
            return Err((field("sample_start"), format!("{start} lies past the end of the data, which has {total} samples")));
        }
        header_sum += capture.header_bytes.unwrap_or(0);
        let (expected, previous_start) =
            segments.last().map_or((start, 0), |s| (s.global_index + (start.saturating_sub(s.start)), s.start));
        if start < previous_start {
            return Err((field("sample_start"), format!("{start} comes after {previous_start}: captures must be sorted")));
        }
        let (global_index, gap) = match capture.global_index {
            // Without an index of its own a capture follows on.
            None => (expected, 0),
            Some(index) if i == 0 => (index, 0),
            Some(index) => {
                let gap = index
                    .checked_sub(expected)
                    .ok_or_else(|| (field("global_index"), format!("{index} goes back: the samples before it reach up to {expected}")))?;
                (index, gap)
            }
        };
        if let Some(last) = segments.last_mut() {
            last.len = start - last.start;
        }
        segments.push(Segment { start, len: total - start, global_index, gap, byte: offset + header_sum + start * frame });
    }
    match segments.first() {
        // Samples before the first capture belong to nobody; they are still there.
        Some(s) if s.start == 0 => {}
        _ => {
            let len = segments.first().map_or(total, |s| s.start);
            segments.insert(0, Segment { start: 0, len, global_index: 0, gap: 0, byte: offset });
        }
    }
    Ok(segments)
}
