//! How the radio is set, beyond the few options that everybody needs.

use std::time::Duration;

use clap::ValueEnum;

use crate::blocks::{End, RadioConfig};
use crate::cli::typed::whole;
use crate::{Error, Result};

/// Options with the device's own names and ranges, as `kaflow devices --probe` shows them.
#[derive(clap::Args)]
pub(in crate::cli) struct RadioArgs {
    /// Receive antenna
    #[arg(long, value_name = "NAME")]
    antenna: Option<String>,
    /// Transmit antenna
    #[arg(long, value_name = "NAME")]
    tx_antenna: Option<String>,
    /// Receive channel, or several: 0,1,2,3. Each has filters of its own
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "0", value_parser = whole::<usize>)]
    pub(super) channel: Vec<usize>,
    /// Transmit channel
    #[arg(long, value_name = "N", default_value = "0", value_parser = whole::<usize>)]
    tx_channel: usize,
    /// Transmit at another frequency than --freq, in Hz
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub(super) tx_freq: Option<f64>,
    /// Receive at another frequency than --freq, in Hz: behind a converter
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    rx_freq: Option<f64>,
    /// Transmit at another rate than --rate, in samples a second, or with --rx-only the rate of the frame in --tx: the frame is brought to the rate that is received with
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub(super) tx_rate: Option<f64>,
    /// Receive at another rate than --rate, in samples a second
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    pub(super) rx_rate: Option<f64>,
    /// Bandwidth of the analogue filters in Hz; 0 lets the device choose
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    bandwidth: Option<f64>,
    /// That of the transmitter, where it is another
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    tx_bandwidth: Option<f64>,
    /// That of the receiver, where it is another
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    rx_bandwidth: Option<f64>,
    /// How far the oscillators are from the centre in Hz, so that what leaks of them lies beside the signal
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    lo_offset: Option<f64>,
    /// That of the transmitter, where it is another
    #[arg(long, value_name = "HZ", allow_negative_numbers = true)]
    tx_lo_offset: Option<f64>,
    /// Correction of the oscillator in ppm
    #[arg(long, value_name = "PPM", allow_negative_numbers = true)]
    ppm: Option<f64>,
    /// That of the transmitter, where it is another
    #[arg(long, value_name = "PPM", allow_negative_numbers = true)]
    tx_ppm: Option<f64>,
    /// Let the receiver choose its gain: the filters then follow that too
    #[arg(long, conflicts_with = "rx_gain")]
    agc: bool,
    /// Whether the device takes its DC offset out by itself
    #[arg(long, value_name = "MODE")]
    dc: Option<Mode>,
    /// Whether the device balances I and Q by itself
    #[arg(long, value_name = "MODE")]
    iq: Option<Mode>,
    /// Clock source of the device; one from outside must be locked to
    #[arg(long, value_name = "NAME")]
    clock_source: Option<String>,
    /// Time source of the device; one from outside sets the time to 0 at its next pulse
    #[arg(long, value_name = "NAME")]
    time_source: Option<String>,
    /// A setting of the device, any number of times
    #[arg(long, value_name = "NAME=VALUE")]
    setting: Vec<String>,
    /// Arguments of the streams, as the driver has them
    #[arg(long, value_name = "NAME=VALUE,...", allow_hyphen_values = true)]
    stream_args: Option<String>,
    /// Those of the transmit stream, where they are others
    #[arg(long, value_name = "NAME=VALUE,...", allow_hyphen_values = true)]
    tx_stream_args: Option<String>,
    /// Samples that may wait between the driver and the filters
    #[arg(long, value_name = "SAMPLES", default_value_t = RadioConfig::QUEUE, value_parser = whole::<usize>)]
    queue: usize,
    /// Seconds without a sample after which a radio counts as dead
    #[arg(long, value_name = "SECONDS", default_value_t = RadioConfig::TIMEOUT.as_secs_f64(), allow_negative_numbers = true)]
    timeout: f64,
    /// Wait so many seconds for a radio that is lost, or the network to it, open it again and go on behind a gap
    #[arg(long, value_name = "SECONDS", allow_negative_numbers = true)]
    reconnect: Option<f64>,
}

/// What a device does by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Mode {
    Auto,
    Off,
}

/// What is asked of one end.
pub(super) struct Wish<'a> {
    pub(super) device: &'a str,
    pub(super) gains: &'a [String],
}

impl RadioArgs {
    /// Both ends, the transmitter where there is one, and what they share; at a centre frequency and rate.
    pub(super) fn config(&self, rx: Wish<'_>, tx: Option<Wish<'_>>, frequency: f64, rate: f64) -> Result<RadioConfig> {
        for (name, value) in [
            ("tx-freq", self.tx_freq),
            ("rx-freq", self.rx_freq),
            ("tx-rate", self.tx_rate),
            ("rx-rate", self.rx_rate),
            ("timeout", Some(self.timeout)),
            ("reconnect", self.reconnect),
        ] {
            if let Some(value) = value.filter(|v| !(v.is_finite() && *v > 0.0)) {
                return Err(Error::parameter(name, "more than 0", value));
            }
        }
        for (name, value) in [("bandwidth", self.bandwidth), ("tx-bandwidth", self.tx_bandwidth), ("rx-bandwidth", self.rx_bandwidth)] {
            if let Some(value) = value.filter(|v| !(v.is_finite() && *v >= 0.0)) {
                return Err(Error::parameter(name, "0 or more", value));
            }
        }
        let numbers = [("lo-offset", self.lo_offset), ("tx-lo-offset", self.tx_lo_offset), ("ppm", self.ppm), ("tx-ppm", self.tx_ppm)];
        if let Some((name, value)) = numbers.into_iter().find_map(|(name, value)| Some((name, value.filter(|v| !v.is_finite())?))) {
            return Err(Error::parameter(name, "a number", value));
        }
        if let Some((_, twice)) = self.channel.iter().enumerate().find(|(n, channel)| self.channel[..*n].contains(channel)) {
            return Err(Error::parameter("channel", "each given once", twice));
        }
        let automatic = |mode: Option<Mode>| mode.map(|mode| mode == Mode::Auto);
        let both = |wish: &Wish, name: &str| -> Result<End> {
            let (gain, gains) = split_gains(name, wish.gains)?;
            let (automatic_dc, automatic_iq) = (automatic(self.dc), automatic(self.iq));
            Ok(End { gain, gains, automatic_dc, automatic_iq, ..End::new(wish.device) })
        };
        let tx = tx.map(|wish| {
            Ok(End {
                channels: vec![self.tx_channel],
                antenna: self.tx_antenna.clone(),
                frequency: self.tx_freq,
                rate: self.tx_rate,
                lo_offset: self.tx_lo_offset.or(self.lo_offset),
                correction_ppm: self.tx_ppm.or(self.ppm),
                bandwidth: self.tx_bandwidth.or(self.bandwidth),
                stream_args: pairs("tx-stream-args", self.tx_stream_args.as_ref().or(self.stream_args.as_ref()))?,
                ..both(&wish, "tx-gain")?
            })
        });
        let rx = End {
            channels: self.channel.clone(),
            antenna: self.antenna.clone(),
            frequency: self.rx_freq,
            rate: self.rx_rate,
            lo_offset: self.lo_offset,
            correction_ppm: self.ppm,
            automatic_gain: self.agc,
            bandwidth: self.rx_bandwidth.or(self.bandwidth),
            stream_args: pairs("stream-args", self.stream_args.as_ref())?,
            ..both(&rx, "rx-gain")?
        };
        let seconds = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
        let setting = |text: &String| match text.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
            None => Err(Error::parameter("setting", "NAME=VALUE, as `kaflow devices --probe` lists them", text)),
        };
        Ok(RadioConfig {
            rx: Some(rx),
            tx: tx.transpose()?,
            frequency,
            rate,
            clock_source: self.clock_source.clone(),
            time_source: self.time_source.clone(),
            settings: self.setting.iter().map(setting).collect::<Result<_>>()?,
            queue: self.queue,
            timeout: seconds(self.timeout),
            reconnect: self.reconnect.map_or(Duration::ZERO, seconds),
            patient: false,
        })
    }
}

/// Arguments as SoapySDR reads them, each with a name.
fn pairs(name: &str, text: Option<&String>) -> Result<String> {
    let Some(text) = text else { return Ok(String::new()) };
    match text.split(',').find(|pair| pair.split_once('=').is_none_or(|(key, _)| key.trim().is_empty())) {
        Some(bad) if !text.trim().is_empty() => Err(Error::parameter(name, "NAME=VALUE, with commas between", bad)),
        _ => Ok(text.clone()),
    }
}

/// Gain elements by name, in dB.
type Elements = Vec<(String, f64)>;

/// The overall gain and those of elements.
fn split_gains(name: &str, gains: &[String]) -> Result<(Option<f64>, Elements)> {
    let number = |text: &str| text.trim().parse::<f64>().map_err(|_| Error::parameter(name, "a number of dB, or NAME=DB", text));
    let (mut overall, mut elements) = (None, Vec::new());
    for gain in gains {
        match gain.split_once('=') {
            Some((element, db)) => elements.push((element.trim().to_owned(), number(db)?)),
            None => overall = Some(number(gain)?),
        }
    }
    Ok((overall, elements))
}
