//! Making pairs block by block, and putting them out.

use num_complex::Complex32;

use super::line::Spot;
use super::{BLOCK, LOOKAHEAD, Pairs, Reference, Step, Synchroniser, search};

/// Pairs that wait for the next probe.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) tx: i64,
    pub(super) rx_item: u64,
    pub(super) count: usize,
    /// The received samples; none where they only pass.
    pub(super) made: Vec<Complex32>,
    /// A gap of unknown length lies before them.
    pub(super) unsure: bool,
    /// A probe has contradicted them.
    pub(super) doubtful: bool,
}

/// Why pairs are left out.
enum Why {
    /// One of their samples has never arrived.
    Missing,
    /// A neighbour that it would be interpolated from has not.
    Rim,
}

impl Synchroniser {
    /// Makes the next block of pairs, or leaves out what has no partner.
    pub(super) fn make_block(&mut self, out: &mut Pairs) -> Step {
        let Some(lock) = &mut self.lock else { return Step::Again };
        let ahead = lock.tx + self.advance.0 - self.advance.1;
        let (sent, sent_closed) = match &self.reference {
            Reference::Frame(_) => (usize::MAX, false),
            Reference::Stream(line) => match line.locate(ahead) {
                Spot::Here { run, closed: true, .. } => (run, true),
                Spot::Here { run, .. } => (if self.follower.is_some() { run.saturating_sub(LOOKAHEAD) } else { run }, false),
                Spot::Gap { until } => return self.leave_out(until - ahead, Why::Missing),
                Spot::Later => return if line.ended { Step::End } else { Step::Wait },
            },
        };
        let (before, behind) = lock.margins();
        // Interpolated, the first pair of a stream may lie up to half a sample before it.
        let early = i64::from(lock.fraction >= 0.5 && lock.rx == -1);
        let (item, run, segment, closed, last) = match self.received.locate(lock.rx + early) {
            Spot::Here { item, run, segment, closed, last } => (item, run, segment, closed, last),
            Spot::Gap { until } => {
                let pairs = lock.pairs_until(until);
                return self.leave_out(pairs, Why::Missing);
            }
            Spot::Later => return if self.received.ended { Step::End } else { Step::Wait },
        };
        if segment.claim.is_some() && lock.rx - segment.time < before {
            let pairs = lock.pairs_until(segment.time + before);
            return self.leave_out(pairs, Why::Rim);
        }
        if self.segment != Some(segment.time) {
            self.cross(&segment);
        }
        let Some(lock) = &mut self.lock else { return Step::Again };
        // The last pair of a stream may lie up to half a sample behind it.
        let reach = (run as i64 + early) as f64 - lock.fraction - if last { 0.5 } else { (behind + 1) as f64 };
        let usable = ((reach / (1.0 + lock.rate)).floor() + 1.0).max(0.0) as usize;
        let wanted = BLOCK.min(sent).min(usable);
        let passes = lock.passes() && self.follower.is_none();
        let complete = wanted == BLOCK || (wanted == sent && sent_closed) || (wanted == usable && closed);
        if wanted == 0 && closed {
            let pairs = lock.pairs_until(lock.rx + run as i64);
            return self.leave_out(pairs, Why::Rim);
        }
        if wanted == 0 || !(complete || passes) {
            return Step::Wait;
        }
        let mut made = self.spare.pop().unwrap_or_default();
        made.clear();
        let (tx, start) = (lock.tx, lock.mark());
        if lock.passes() {
            lock.jump(wanted as i64);
        } else {
            lock.make(&self.received, &segment, wanted, &mut made);
        }
        let unsure = std::mem::take(&mut self.unsure);
        self.held.push(Held { tx, rx_item: item, count: wanted, made, unsure, doubtful: false });
        if self.follower.is_some() {
            let at_break = complete && wanted < BLOCK;
            self.judge(start, at_break, out);
        } else {
            self.release(0, out);
        }
        Step::Again
    }

    /// Leaves out pairs.
    fn leave_out(&mut self, pairs: i64, why: Why) -> Step {
        if pairs > search::SEARCH as i64 && !self.held.is_empty() {
            // What is held would keep the streams waiting for each other.
            self.doubt(self.status.state);
        }
        if let Some(lock) = &mut self.lock {
            lock.jump(pairs);
            if self.expected.is_some() || !self.held.is_empty() {
                match why {
                    Why::Missing => self.status.gap_samples += pairs as u64,
                    Why::Rim => self.status.rim_samples += pairs as u64,
                }
            }
        }
        Step::Again
    }

    /// Puts out what is held, except for the newest `keep` blocks.
    pub(super) fn release(&mut self, keep: usize, out: &mut Pairs) {
        let count = self.held.len().saturating_sub(keep);
        let mut unsure = false;
        for held in self.held.drain(..count) {
            unsure |= held.unsure;
            if held.doubtful {
                self.status.doubtful_samples += held.count as u64;
                continue;
            }
            let unsure = std::mem::take(&mut unsure);
            let tx = held.tx + self.advance.0 - self.advance.1;
            let missing = self.expected.map_or(0, |expected| tx - expected);
            let gap = self.expected.is_some() && (missing != 0 || unsure);
            self.expected = Some(tx + held.count as i64);
            let skipped = self.skip.min(held.count as u64) as usize;
            self.skip -= skipped as u64;
            let n = held.count - skipped;
            if n > 0 {
                let at = out.tx.len();
                if gap && skipped == 0 {
                    // A stream that has gone back in time: nobody knows what is missing.
                    out.gaps.push((at, if unsure { 0 } else { u64::try_from(missing).unwrap_or(0) }));
                }
                let sent = match &self.reference {
                    Reference::Stream(line) => match line.locate(tx + skipped as i64) {
                        Spot::Here { item, .. } => item,
                        _ => 0,
                    },
                    Reference::Frame(_) => 0,
                };
                out.origins.push((at, sent, held.rx_item + skipped as u64));
                out.tx.resize(at + n, Complex32::ZERO);
                self.reference.fill(tx + skipped as i64, &mut out.tx[at..]);
                if held.made.is_empty() {
                    out.rx.extend_from_slice(self.received.items_from(held.rx_item + skipped as u64, n));
                } else {
                    out.rx.extend_from_slice(&held.made[skipped..]);
                }
                self.status.pairs += n as u64;
            }
            if self.spare.len() < 4 {
                self.spare.push(held.made);
            }
        }
        self.carry_unsure(unsure);
    }

    /// A gap of unknown length lies before pairs that are not put out: it lies before the next ones.
    fn carry_unsure(&mut self, unsure: bool) {
        match self.held.first_mut() {
            Some(held) => held.unsure |= unsure,
            None => self.unsure |= unsure,
        }
    }

    /// Lets go of samples that nobody will ask for.
    pub(super) fn tidy(&mut self) {
        let Some(lock) = &self.lock else { return };
        let back = BLOCK as i64;
        let (sent, received) = match self.held.first() {
            Some(held) => (held.tx, lock.rx - (lock.tx - held.tx) - 1),
            None => (lock.tx, lock.rx),
        };
        self.received.forget(received - back);
        let keep = self.keep_sent();
        if let Reference::Stream(line) = &mut self.reference {
            line.forget(sent - keep);
        }
    }
}
