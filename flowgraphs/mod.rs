//! Flowgraphs to run and to copy from: each file builds one.
//!
//! - [`track`]: recordings, the test bed or a radio, in step, and any number of filters: what the commands run.
//! - [`cancel`]: takes what is known of one recording out of another.
//! - [`loopback`]: clipped OFDM through an amplifier and a fading channel, tracked.
//! - [`equalize`]: an OFDM receiver that reads through a saturated amplifier, against one tap a carrier.
//! - [`linearize`]: a transmitter that learns its own amplifier and predistorts.
//! - [`mimo`]: four transmit and four receive antennas.
//!
//! # The way of a sample
//!
//! `kaflow track` and `kaflow live` are one run with different ends.
//!
//! 1. **Ends.** A pair of recordings ([`IqSource`](crate::blocks::IqSource) on a [`Recording`](crate::iq::Recording): SigMF, WAV or raw numbers become complex floats, captures that
//!    leave something out become `gap` tags), the test bed ([`BedSource`](crate::blocks::BedSource): transmitter, amplifier, channel and receiver of a
//!    [`Scenario`](crate::channel::Scenario)), or a radio (`Repeat` sends a frame again and again through `SoapySink`, `SoapySource` receives; a thread of its own reads the
//!    driver into a queue, and what the driver or the queue loses becomes a `gap` tag of that length).
//! 2. **Record.** What was received goes to a file as it came ([`IqSink`](crate::blocks::IqSink)), before anything is done to it, so that it can be tracked again.
//! 3. **In step.** [`Sync`](crate::blocks::Sync) lets a [`Synchroniser`](crate::iq::Synchroniser) find how the two streams lie to each other (delay, carrier, clocks, level), undoes it by
//!    one interpolation and one oscillator, and follows it where it can move. Out come partners, sample by sample; what has no partner, or a doubtful one, is a gap at both.
//! 4. **Filters.** Each is a [`Track`](crate::blocks::Track) beside the others. Its [`Guard`](crate::filter::Guard) replaces what is not finite, learns nothing while the window reaches over a
//!    gap or the filter is frozen, and hands runs of clean samples to the [`Tracker`](crate::filter::Tracker), which predicts each received sample before it sees it.
//! 5. **Figures.** The block sums errors in a [`Series`](crate::metrics::Series), keeps stretches of the run for pictures and shows all of it in its [`Probe`](crate::blocks::Probe);
//!    predictions and errors go on to files or nowhere.
//! 6. **Watch.** [`track::run`] looks at the probes, tells the command (progress, dashboard), ends the run when its source ends, somebody asks, the time is up or something
//!    fails, and gives one [`Outcome`](track::Outcome), from which table, JSON, pictures and report are made.
//!
//! Blocks are added against the direction of the streams: the runtime initialises them in the order in which they were added, and one that is initialised late misses the
//! word that its input has ended. (`connect!` adds them in the order of their names.)

pub mod cancel;
pub mod equalize;
pub mod linearize;
pub mod loopback;
pub mod mimo;
pub mod track;
mod watch;
