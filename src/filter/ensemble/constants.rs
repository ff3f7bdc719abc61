//! Every constant of the tracker, with its unit.
//!
//! What a factor of two does, where it was measured (NMSE in dB, before the likelihood of real samples counted half, which gave KAFBOX 0.04 dB more, and with a `TAP_FLOOR` of 0.01 and a `LAZY` of 16; test bed D at `f_d T` = 1e-3, four seeds; three recordings, as in `tests/ensemble/`):
//!
//! | constant | test bed D | KAFBOX, 4 taps | OpenDPD, 16 taps | 802.11a, 6 taps | coverage, test bed, KAFBOX |
//! |---|---|---|---|---|---|
//! | as they are | -19.15 | -17.74 | -35.40 | -19.50 | 95.2, 94.4 % |
//! | `NOISE_WINDOW` 150 | -19.16 | -17.80 | -35.39 | -19.50 | 95.0, 93.9 % |
//! | `NOISE_WINDOW` 600 | -19.15 | -17.71 | -35.40 | -19.42 | 95.4, 95.1 % |
//! | `OUTLIER` 6 | -19.15 | -17.61 | -35.43 | -12.72 | 95.1, 93.5 % |
//! | `ROUGHNESS` 0.02 | -19.16 | -17.74 | -35.41 | -19.19 | 95.1, 94.4 % |
//! | `TAP_FLOOR` 1e-3 | -19.15, B 0.03 and E 0.02 better | -17.74 | -35.40 | -19.50 | no change |
//! | `LAZY` 4 | 0.01 better, B and E too | 0.01 worse | -35.40 | 0.02 worse | no change |
//! | `CURVE_MEMORY` without end | 0.01 better, E too | 0.01 worse | -35.40 | -16.84 | no change |
//! | `BANK_EAGER` 4096 | no change | no change | 0.17 worse | no change | no change |
//!
//! Of the motion of the taps, five seeds: `SWING` 1 or 2 costs 0.02 or 0.04 dB on test bed D, 2 also 2 dB and more at `f_d T` = 1e-2 where `SWING_MOST` does not bound it; `SWING_MOST` 0.1 costs
//! 0.2 dB on KAFBOX; with `SWING_BLOCKS` 32 a channel that becomes slow is 0.04 dB behind for 30,000 samples, 8 costs nothing that can be seen.
//!
//! Of what the curve is learned through, 400 transmissions at random, of a generator like that of `tests/ensemble/cases.rs`, with `B` computed whenever the curve learned: mean, and how many were behind a simple filter by more
//! than 0.3 dB. All of the taps: -22.92 dB and 4. As they are: -23.36 dB and 1; `RIDGE_FIRST` 0.1, `RIDGE_SAMPLES` 4096 or a ridge that does not fall: -23.36 dB and 2.

/// Members for moving channels: one lane each.
pub(super) const MEMBERS: usize = 16;
/// Parts of the whole: lanes, bank, simple filters.
pub(super) const PARTS: usize = 3;
/// Span of the fastest member in samples.
pub(super) const FASTEST_SPAN: f64 = 8.0;
/// Ratio of the spans of two neighbours.
pub(super) const SPAN_RATIO: f64 = 1.45;

/// Samples of the grid on which the bank learns and parts are switched.
pub(super) const BLOCK: usize = 128;
/// The most samples that are predicted with one curve.
pub(super) const CELL: usize = 64;
/// Samples that the members take together, and after which their weights are computed anew.
pub(super) const QUAD: usize = 4;
/// Samples after which they are where the lanes carry the weight and all is calm.
pub(super) const CALM_QUADS: usize = 8;

/// Control points of the gain curve.
pub(super) const POINTS: usize = 11;
/// Distance of two control points, in units of the input's RMS.
pub(super) const STEP: f64 = 0.4;
/// Prior variance of the curve's second difference.
pub(super) const ROUGHNESS: f64 = 0.01;
/// Prior weight of a gain of 1 at each control point.
pub(super) const FLATNESS: f64 = 0.25;
/// Weight of the condition that the power-weighted mean gain is 1.
pub(super) const GAUGE: f64 = 1e8;
/// Envelope up to which that mean is taken, in units of the input's RMS.
pub(super) const GAUGE_REACH: f64 = 2.2;
/// Samples during which the curve learns from every sample, and of how many it takes one later.
pub(super) const EAGER: u64 = 4096;
pub(super) const LAZY: u64 = 4;
/// The same after eight and after 64 times as many samples.
pub(super) const LAZIER: u64 = 64;
pub(super) const LAZIEST: u64 = 256;
/// What the curve forgets in a sample.
pub(super) const CURVE_DRIFT: f64 = 1e-6;
/// And of how many times the samples it has learned from it forgets the first part.
pub(super) const CURVE_MEMORY: f64 = 2.0;
/// It learns nothing while squared errors, averaged over `JUMP_WINDOW` samples, are this many times their variance: the taps are to blame.
pub(super) const DOUBT: f64 = 3.0;
/// Ridge of the input's covariance over its mean eigenvalue that says which part of the taps is excited: at first, after more than so many samples less and less, and at least.
pub(super) const RIDGE_FIRST: f64 = 0.03;
pub(super) const RIDGE_SAMPLES: f64 = 1024.0;
pub(super) const RIDGE_LEAST: f64 = 1e-3;
/// The share of the directions of a window that must be empty for that to matter.
pub(super) const EMPTY: f64 = 0.1;
/// Learned samples before the curve begins to learn.
pub(super) const WARM_UP: u64 = 64;

/// Squared errors count up to this many times their variance when something is learned from them.
pub(super) const OUTLIER: f64 = 12.0;
/// And up to so many times for the evidence.
pub(super) const SURPRISE: f64 = 25.0;
/// A squared error of so many times its variance makes the weights change with every sample.
pub(super) const ALERT: f64 = 9.0;
/// Samples over which the noise variance is averaged; at first this part of those that were seen, since errors fall by tens of decibels while members learn, but at least so many.
pub(super) const NOISE_WINDOW: f64 = 300.0;
pub(super) const NOISE_PART: f64 = 0.25;
pub(super) const NOISE_FIRST: f64 = 16.0;
/// A member whose noise is this many times that of the best takes the best one's taps.
pub(super) const LOST: f64 = 30.0;

/// Logarithm (base 2) of what a member that begins again has less of weight than the best one.
pub(super) const BEHIND: f64 = 7.0;
/// Samples after a jump before half of the members may rest, and before taps may swing.
pub(super) const NARROW: u64 = 1024;
/// Blocks from one look at all members to the next.
pub(super) const NARROW_LOOK: u64 = 32;
/// The most weight that members may have together which are to rest.
pub(super) const NARROW_WEIGHT: f64 = 0.1;

/// Prior variance of a tap in units of the noise, and what a jump adds to it.
pub(super) const PRIOR: f64 = 1e4;
pub(super) const JUMP_PRIOR: f64 = 100.0;
/// Prior variance of a velocity over that of its tap, times the square of the span.
pub(super) const VELOCITY_PRIOR: f64 = 0.04;
/// The channel has jumped when squared errors, averaged over `JUMP_WINDOW` samples, are this many times their variance.
pub(super) const JUMP: f64 = 4.0;
pub(super) const JUMP_WINDOW: f64 = 20.0;
/// Learned samples after the start or a jump before a jump is believed.
pub(super) const SETTLED: u64 = 100;

/// Blocks after which lanes that have no weight at all beside simple filters begin from nothing; each time twice as many.
pub(super) const LANES_BEHIND: u64 = 32;

/// Learned samples after the start or a jump before the covariances are in their steady state: four of the longest spans.
pub(super) const STEADY: u64 = 8192;

/// Power of a tap below the strongest that it is at least assumed to have.
pub(super) const TAP_FLOOR: f64 = 1e-3;
/// Spans over which the power of the taps is averaged.
pub(super) const TAP_WINDOW: f64 = 50.0;
/// What velocities are taken to have been, in power, over what a filter that smooths them finds.
pub(super) const SWING: f64 = 1.25;
/// Blocks before taps swing; the mean of their motion is over a fourth of the first ones.
pub(super) const SWING_FIRST: f64 = 4.0;
/// The most blocks that the mean of their motion is over.
pub(super) const SWING_BLOCKS: f64 = 16.0;
/// The most that the spring of a tap may be, times the square of the span: beyond 0.3 or so the taps of fast channels at low SNR swing by themselves.
pub(super) const SWING_MOST: f64 = 0.2;
/// Ridge of the input's covariance over its mean eigenvalue.
pub(super) const SHAPE_RIDGE: f64 = 1e-3;
/// Least eigenvalue that the shape is computed with, over the largest.
pub(super) const SHAPE_FLOOR: f64 = 1e-4;
/// Samples between the first two refreshes of the shape; it doubles up to `REFRESH_MOST`.
pub(super) const REFRESH_FIRST: u64 = 512;
pub(super) const REFRESH_MOST: u64 = 65_536;

/// Prior variance and diffusion of the receiver's offset, in units of the noise.
pub(super) const OFFSET_PRIOR: f64 = 100.0;
pub(super) const OFFSET_DRIFT: f64 = 1e-8;

/// Power below which a window is silence, in units of its usual power: nothing is learned from it.
pub(super) const SILENCE: f64 = 1e-6;

/// Samples of which every one goes into the bank's Gram matrix, and of how many it takes one later.
pub(super) const BANK_EAGER: u64 = 8192;
pub(super) const BANK_LAZY: u64 = 512;
/// The same for a bank that is far behind, at least.
pub(super) const BANK_HOPELESS: u64 = 64;
/// Samples after which the bank makes a step after every second block instead of every one.
pub(super) const BANK_SWIFT: u64 = 16_384;
/// Logarithm (base 2) of the lanes' weight below which all weight is the bank's.
pub(super) const CLEAR: f64 = -20.0;
/// Blocks without weight after which a bank that had all weight for as many begins again, and the most samples that it must have learned before it does.
pub(super) const BANK_BEHIND: u32 = 32;
pub(super) const BANK_PATIENCE: u64 = 1 << 17;
/// Blocks without weight after which it is looked at an eighth as often.
pub(super) const BANK_LONG_BEHIND: u32 = 1024;
/// Samples after which its best member may run alone, and a bank that is far behind rests for longer.
pub(super) const BANK_SETTLED: u64 = 1 << 15;
/// The most samples between two inversions of it.
pub(super) const BANK_REFRESH: u64 = 1 << 20;
/// Logarithm (base 2) of the weight that a member of the bank begins with.
pub(super) const FIRST_EVIDENCE: f64 = -30.0;
/// Weight of the bank's prior for smooth gains, in units of the noise over the output's power, and the most it may be.
pub(super) const SMOOTH: f64 = 1e4;
pub(super) const SMOOTH_MOST: f64 = 10.0;
/// Logarithm (base 2) of the weight below which a part rests, and blocks between two looks at it. At -20 the rate on a slowly fading channel is half of what it is, the NMSE the same.
pub(super) const LIGHT: f64 = -6.0;
pub(super) const REST: u64 = 8;
/// Lanes and bank both run while squared errors, averaged over a block, are this many times their variance.
pub(super) const CALM: f64 = 1.5;
/// A bank whose noise is this many times that of the lanes is not worth much effort.
pub(super) const HOPELESS: f64 = 8.0;
/// Change of the carrier, in radians a sample, after which the bank begins again.
pub(super) const CARRIER_STEP: f64 = 1e-4;

/// Parameters of the simple filters, those that they have when they run alone: step and ridge of NLMS, what remains in RLS and in the memory polynomial of a sample after the next, its order, and their ridge in units of
/// the input's power.
pub(super) const SIMPLE_STEP: f64 = 0.5;
pub(super) const SIMPLE_NLMS_RIDGE: f64 = 1e-6;
pub(super) const SIMPLE_RLS_MEMORY: f64 = 0.98;
pub(super) const SIMPLE_POLYNOMIAL_MEMORY: f64 = 0.97;
pub(super) const SIMPLE_ORDER: usize = 5;
pub(super) const SIMPLE_RIDGE: f64 = 0.01;
/// The most features of those with a covariance.
pub(super) const SIMPLE_FEATURES: usize = 48;
/// Samples over which their squared errors are averaged, and how many times that average one may be.
pub(super) const SIMPLE_WINDOW: f64 = 64.0;
pub(super) const SIMPLE_OUTLIER: f64 = 100.0;
/// They sleep when they carry no weight and their noise is so many times that of the others, or when they are so many blocks old.
pub(super) const SIMPLE_FAR: f64 = 4.0;
pub(super) const SIMPLE_OLD: u64 = 256;
/// Blocks that they sleep: as many as they are old, a quarter of that while they are young, but at least and at most so many.
pub(super) const SIMPLE_REST: u64 = 4;
pub(super) const SIMPLE_PATIENCE: u64 = 1 << 14;
