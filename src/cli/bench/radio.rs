//! The simulated radio, as fast as it goes.

use std::time::Instant;

use futuresdr::blocks::NullSink;
use futuresdr::prelude::*;

use super::measure::Signal;
use crate::blocks::{Radio, RadioConfig, Repeat, SoapySink, SoapySource, check_buffer};

/// Seconds a sample from a sink through amplifier, four fading taps and noise to a source.
pub(super) fn unpaced(samples: u64) -> Result<f64> {
    let device = format!("driver={},pace=fast,doppler_hz=5000,snr_db=20", crate::radio::DRIVER);
    let mut radio = Radio::open(&RadioConfig { patient: true, ..RadioConfig::duplex(&device, 5.4e9, 5e6) })?;
    let repeat = Repeat::new(Signal::new(1 << 14).tx, radio.stop());
    let (sink, source) = (SoapySink::new(&mut radio)?, SoapySource::new(&mut radio)?.limit(samples));
    let end = NullSink::<Complex32>::new();
    check_buffer()?;
    let mut fg = Flowgraph::new();
    connect!(fg, repeat > input[0].sink; source.output[0] > end);
    let start = Instant::now();
    Runtime::new().run(fg)?;
    Ok(start.elapsed().as_secs_f64() / samples as f64)
}
