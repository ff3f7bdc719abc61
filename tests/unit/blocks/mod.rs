//! Each block alone, fed by hand.
#![cfg(feature = "blocks")]

/// Collects what a block with one input and one output makes of `input`.
macro_rules! through {
    ($block:expr, $input:expr, $tags:expr, $room:expr) => {{
        $block.input().set_with_tags($input, $tags);
        $block.output().reserve($room);
        $block.run();
        $block.output().take()
    }};
}

mod count;
mod detect;
mod meter;
mod recordings;
mod sync;
mod test_bed;
mod track;
mod track_mimo;

use futuresdr::runtime::mocker::{Reader, Writer};
use kaflow::Complex32;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

type In = Reader<Complex32>;
type Out = Writer<Complex32>;

fn noise(rng: &mut impl Rng, n: usize) -> Vec<Complex32> {
    (0..n).map(|_| Complex32::new(rng.random_range(-1.0..1.0), rng.random_range(-1.0..1.0))).collect()
}

/// A pair of streams through a short channel.
fn pair(seed: u64, n: usize) -> (Vec<Complex32>, Vec<Complex32>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let tx = noise(&mut rng, n);
    let h = [Complex32::new(0.7, 0.1), Complex32::new(-0.2, 0.5)];
    let rx = (0..n).map(|i| h[0] * tx[i] + if i > 0 { h[1] * tx[i - 1] } else { Complex32::new(0.0, 0.0) }).collect();
    (tx, rx)
}

fn bits(z: &[Complex32]) -> Vec<(u32, u32)> {
    z.iter().map(|z| (z.re.to_bits(), z.im.to_bits())).collect()
}
