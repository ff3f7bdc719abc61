//! From one predistorter to the next without a step in what is sent.

use num_complex::Complex32;

use super::Predistorter;

/// Samples over which one takes over from the other.
pub(crate) const FADE: usize = 256;

/// A predistorter that can be replaced while it runs: the new one knows the samples before, and takes over along a straight line, so that neither the
/// level of the one nor that of the other is exceeded.
#[derive(Clone, Debug)]
pub(crate) struct Swapping {
    now: Predistorter,
    /// The next one, and how far it has taken over.
    next: Option<(Predistorter, usize)>,
    /// The one after it, where it came too soon.
    waiting: Option<Predistorter>,
    scratch: Vec<Complex32>,
}

impl Swapping {
    /// Begins with this one.
    pub(crate) fn new(predistorter: Predistorter) -> Self {
        Self { now: predistorter, next: None, waiting: None, scratch: vec![Complex32::default(); FADE] }
    }

    /// Fades to another one from the next sample on, or from the end of the present fade.
    pub(crate) fn swap(&mut self, mut next: Predistorter) {
        if self.next.is_some() {
            self.waiting = Some(next);
        } else {
            next.follow(&self.now);
            self.next = Some((next, 0));
        }
    }

    /// Distorts the next samples of the stream.
    pub(crate) fn process(&mut self, samples: &mut [Complex32]) {
        let mut at = 0;
        while let Some((next, done)) = &mut self.next {
            let n = (FADE - *done).min(samples.len() - at);
            if n == 0 {
                return;
            }
            let (part, other) = (&mut samples[at..at + n], &mut self.scratch[..n]);
            other.copy_from_slice(part);
            self.now.process(part);
            next.process(other);
            for (k, (z, new)) in part.iter_mut().zip(other).enumerate() {
                let share = (*done + k + 1) as f32 / FADE as f32;
                *z += (*new - *z) * share;
            }
            *done += n;
            at += n;
            if *done == FADE
                && let Some((next, _)) = self.next.take()
            {
                self.now = next;
                if let Some(waiting) = self.waiting.take() {
                    self.swap(waiting);
                }
            }
        }
        self.now.process(&mut samples[at..]);
    }
}

#[cfg(test)]
#[path = "../../tests/unit/dpd/swap.rs"]
mod tests;
