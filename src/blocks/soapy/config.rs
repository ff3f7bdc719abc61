//! What of a radio is opened, and how it is set.

use std::time::Duration;

/// One direction of a radio.
#[derive(Clone, Debug, PartialEq)]
pub struct End {
    /// Device arguments with an explicit `driver=`.
    pub device: String,
    /// Channels of the device, one stream for each.
    pub channels: Vec<usize>,
    /// Antenna; the device's own choice where not given.
    pub antenna: Option<String>,
    /// Overall gain in dB.
    pub gain: Option<f64>,
    /// Gain of single elements in dB, after the overall gain.
    pub gains: Vec<(String, f64)>,
    /// Whether the device is to choose its gain by itself, which changes the level while a filter follows it.
    pub automatic_gain: bool,
    /// Centre frequency in Hz; that of the radio where not given.
    pub frequency: Option<f64>,
    /// Samples a second; those of the radio where not given.
    pub rate: Option<f64>,
    /// How far the oscillator is from the centre frequency in Hz, as the frequency argument `OFFSET`.
    pub lo_offset: Option<f64>,
    /// Correction of the oscillator in ppm.
    pub correction_ppm: Option<f64>,
    /// Whether the device takes its DC offset out by itself; its own choice where not given.
    pub automatic_dc: Option<bool>,
    /// Whether the device balances I and Q by itself; its own choice where not given.
    pub automatic_iq: Option<bool>,
    /// Bandwidth of the analogue filter in Hz; 0 lets the device choose.
    pub bandwidth: Option<f64>,
    /// Arguments of the stream, `key=value, key=value`, as the driver has them.
    pub stream_args: String,
}

impl End {
    /// Channel 0 of a device, with the device's own gain and antenna.
    pub fn new(device: impl Into<String>) -> Self {
        Self {
            device: device.into(),
            channels: vec![0],
            antenna: None,
            gain: None,
            gains: Vec::new(),
            automatic_gain: false,
            frequency: None,
            rate: None,
            lo_offset: None,
            correction_ppm: None,
            automatic_dc: None,
            automatic_iq: None,
            bandwidth: None,
            stream_args: String::new(),
        }
    }
}

/// What to open, and how.
#[derive(Clone, Debug, PartialEq)]
pub struct RadioConfig {
    /// The receiver, if any.
    pub rx: Option<End>,
    /// The transmitter, if any; the same device as the receiver makes it full duplex.
    pub tx: Option<End>,
    /// Centre frequency in Hz, of each end that has none of its own.
    pub frequency: f64,
    /// Samples a second, of each end that has none of its own.
    pub rate: f64,
    /// Clock source; the device's own choice where not given. One from outside must be locked to.
    pub clock_source: Option<String>,
    /// Time source; the device's own choice where not given. One from outside sets the time to 0 at its next pulse, of both devices at the same one.
    pub time_source: Option<String>,
    /// Settings of the devices by name, each for those that have it.
    pub settings: Vec<(String, String)>,
    /// Samples of each channel that may wait between a driver's thread and the flowgraph; towards the transmitter no more than four million.
    pub queue: usize,
    /// How long nothing may come or go before a stream counts as dead.
    pub timeout: Duration,
    /// How long a device that is lost may stay away before that is an error; 0 does not wait.
    pub reconnect: Duration,
    /// Let the driver wait when the queue is full, instead of dropping what it brings: for a device that can wait.
    pub patient: bool,
}

impl RadioConfig {
    /// The usual queue: 0.8 s at 20 MS/s, 128 MiB where all of it is full. A machine that others use as well stands still for tenths of a second.
    pub(crate) const QUEUE: usize = 1 << 24;
    /// The usual patience.
    pub(crate) const TIMEOUT: Duration = Duration::from_secs(2);

    /// One device at both ends.
    pub fn duplex(device: &str, frequency: f64, rate: f64) -> Self {
        Self {
            rx: Some(End::new(device)),
            tx: Some(End::new(device)),
            frequency,
            rate,
            clock_source: None,
            time_source: None,
            settings: Vec::new(),
            queue: Self::QUEUE,
            timeout: Self::TIMEOUT,
            reconnect: Duration::ZERO,
            patient: false,
        }
    }

    /// Whether both ends have one rate.
    pub(crate) fn one_rate(&self) -> bool {
        let rate = |end: &Option<End>| end.as_ref().and_then(|end| end.rate).unwrap_or(self.rate);
        rate(&self.tx) == rate(&self.rx)
    }

    /// Whether both ends are one device.
    pub(crate) fn one_device(&self) -> bool {
        matches!((&self.rx, &self.tx), (Some(rx), Some(tx)) if rx.device == tx.device)
    }
}
