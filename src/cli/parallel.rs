//! Independent pieces of work over all cores.

use std::sync::atomic::{AtomicUsize, Ordering};

use crossbeam::channel::bounded;
use indicatif::ProgressBar;

use super::interrupt;

/// Does `work(0)`, `work(1)`, ... `work(count − 1)` on all cores and hands each result to `take`, in the order of their numbers, so that sums come out the
/// same on every machine. After Ctrl-C it returns early; returns how many pieces were taken.
pub(crate) fn each<R: Send>(count: usize, bar: &ProgressBar, work: impl Fn(usize) -> R + Sync, take: impl FnMut(usize, R)) -> usize {
    each_on(std::thread::available_parallelism().map_or(1, usize::from), count, bar, work, take)
}

/// The same on so many cores.
pub(crate) fn each_on<R: Send>(
    cores: usize,
    count: usize,
    bar: &ProgressBar,
    work: impl Fn(usize) -> R + Sync,
    mut take: impl FnMut(usize, R),
) -> usize {
    interrupt::watch();
    let workers = cores.clamp(1, count.max(1));
    let next = AtomicUsize::new(0);
    let (send, receive) = bounded(4 * workers);
    let mut taken = 0;
    std::thread::scope(|scope| {
        for _ in 0..workers {
            let (send, next, work) = (send.clone(), &next, &work);
            scope.spawn(move || {
                while !interrupt::requested() {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count || send.send((i, work(i))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(send);
        // Results that came before their turn.
        let mut waiting = std::collections::BTreeMap::new();
        for (i, result) in receive {
            waiting.insert(i, result);
            while let Some(result) = waiting.remove(&taken) {
                take(taken, result);
                taken += 1;
                bar.inc(1);
            }
        }
    });
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_arrive_in_order_whichever_thread_was_faster() {
        let mut seen = Vec::new();
        let work = |i: usize| {
            std::thread::sleep(std::time::Duration::from_micros(((i * 7919) % 13) as u64 * 50));
            i * i
        };
        let taken = each(200, &ProgressBar::hidden(), work, |i, r| seen.push((i, r)));
        assert_eq!(taken, 200);
        assert_eq!(seen, (0..200).map(|i| (i, i * i)).collect::<Vec<_>>());
    }
}
