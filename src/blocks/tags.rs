//! Tags: how gaps are marked, and copying tags through a block.

use futuresdr::runtime::{
    buffer::Tags,
    dev::{ItemTag, Tag},
};

/// The name of the tag on the first sample behind a gap.
pub const GAP: &str = "gap";

/// The name of the tag with the hardware time, in nanoseconds, of the sample that it is on.
pub const TIME: &str = "time_ns";

/// The tag that says that `length` samples before the one it is on never arrived (0: an unknown number).
pub(crate) fn gap(length: usize) -> Tag {
    Tag::NamedUsize(GAP.into(), length)
}

/// The length of a gap, when `tag` marks one.
pub fn gap_length(tag: &Tag) -> Option<usize> {
    match tag {
        Tag::NamedUsize(name, length) if name == GAP => Some(*length),
        _ => None,
    }
}

/// Where the gaps are among the first `n` samples and how long they are, in order, into `out`.
pub(super) fn gaps<'a>(tags: impl IntoIterator<Item = &'a ItemTag>, n: usize, out: &mut Vec<(usize, u64)>) {
    out.clear();
    let tags = tags.into_iter().filter(|t| t.index < n);
    out.extend(tags.filter_map(|t| Some((t.index, gap_length(&t.tag)? as u64))));
    // Both streams may carry it: the longer gap counts.
    out.sort_unstable_by_key(|&(at, length)| (at, std::cmp::Reverse(length)));
    out.dedup_by_key(|&mut (at, _)| at);
}

/// Copies the tags of the first `n` samples; a tag that two inputs both carry at the same sample is copied once.
pub(super) fn copy(inputs: &[&Vec<ItemTag>], n: usize, output: &mut Tags<'_>) {
    copy_scaled(inputs, n, 1, output);
}

/// As [`copy`], for a block that puts out `factor` items for each sample.
pub(super) fn copy_scaled(inputs: &[&Vec<ItemTag>], n: usize, factor: usize, output: &mut Tags<'_>) {
    for (i, input) in inputs.iter().enumerate() {
        for tag in input.iter().filter(|t| t.index < n) {
            if !inputs[..i].iter().any(|earlier| earlier.contains(tag)) {
                output.add_tag(factor * tag.index, tag.tag.clone());
            }
        }
    }
}
