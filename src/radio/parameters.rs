//! The device arguments, which are settings as well: names, units and ranges.

use super::quirks::TimeStamps;

/// One device argument, which is a setting as well.
pub(super) struct Parameter {
    pub(super) name: &'static str,
    pub(super) about: &'static str,
    pub(super) unit: &'static str,
    /// Least and largest value of a number.
    pub(super) range: (f64, f64),
    /// The words that it may be, of one that is no number.
    pub(super) options: &'static [&'static str],
    pub(super) whole: bool,
}

const fn number(name: &'static str, about: &'static str, unit: &'static str, low: f64, high: f64) -> Parameter {
    Parameter { name, about, unit, range: (low, high), options: &[], whole: false }
}

const fn count(name: &'static str, about: &'static str, unit: &'static str) -> Parameter {
    Parameter { name, about, unit, range: (0.0, 9e15), options: &[], whole: true }
}

const fn choice(name: &'static str, about: &'static str, options: &'static [&'static str]) -> Parameter {
    Parameter { name, about, unit: "", range: (0.0, 0.0), options, whole: false }
}

/// The amplifiers that there are.
pub(super) const AMPLIFIERS: [&str; 4] = ["rapp", "saleh", "limiter", "none"];
const CYCLES: &str = "cycles per sample";

/// All of them.
pub(super) const PARAMETERS: [Parameter; 44] = [
    choice("air", "radios of one process with the same name hear each other", &[]),
    choice("pace", "as long as samples last, or as fast as possible", &["real", "fast"]),
    choice("half_duplex", "receives or transmits, one at a time", &["false", "true"]),
    choice("reference", "an external clock and its pulses are connected", &["true", "false"]),
    count("seed", "of everything random", ""),
    number("snr_db", "a received power of 1 over the noise, inf for no noise", "dB", -300.0, f64::INFINITY),
    Parameter { range: (0.0, 64.0), ..count("taps", "fading taps, one sample apart, 0 for a wire", "") },
    number("decay_db", "from one tap to the next", "dB", -100.0, 100.0),
    number("doppler", "Doppler frequency", CYCLES, 0.0, 0.5),
    number("doppler_hz", "Doppler frequency", "Hz", 0.0, 1e7),
    number("rician_k_db", "line of sight over scattered power, -inf for Rayleigh", "dB", f64::NEG_INFINITY, 100.0),
    choice("amplifier", "the transmit amplifier", &AMPLIFIERS),
    number("smoothness", "knee of a Rapp amplifier", "", 0.1, 100.0),
    number("delay", "from transmitter to receiver", "samples", 0.0, 1e5),
    number("sample_offset_ppm", "how much longer the receiver's sampling period is", "ppm", -1000.0, 1000.0),
    number("carrier_offset", "between transmitter and receiver", CYCLES, -0.5, 0.5),
    number("carrier_offset_hz", "between transmitter and receiver", "Hz", -3e7, 3e7),
    number("carrier_phase", "of the carrier at the first sample", "rad", -1e3, 1e3),
    number("linewidth", "phase noise: width of the carrier's line", CYCLES, 0.0, 0.5),
    number("linewidth_hz", "phase noise: width of the carrier's line", "Hz", 0.0, 3e7),
    number("loop_bandwidth", "phase noise: bandwidth of the loop, 0 for a free oscillator", CYCLES, 0.0, 0.15),
    number("loop_bandwidth_hz", "phase noise: bandwidth of the loop, 0 for a free oscillator", "Hz", 0.0, 1e7),
    number("iq_gain_db", "gain of the quadrature branch", "dB", -20.0, 20.0),
    number("iq_phase_deg", "phase error of the quadrature branch", "degrees", -45.0, 45.0),
    number("dc_re", "DC offset, real part", "", -1.0, 1.0),
    number("dc_im", "DC offset, imaginary part", "", -1.0, 1.0),
    Parameter { range: (0.0, 24.0), ..count("adc_bits", "bits of the converter, 0 for an ideal one", "") },
    count("overflow_every", "after so many received samples some are lost, and the stream says so", "samples"),
    count("overflow_length", "how many an overflow loses", "samples"),
    count("jump_every", "after so many received samples the clock jumps, and only time stamps say so", "samples"),
    Parameter { whole: true, ..number("jump", "by how many: those are lost; negative sets the clock back", "samples", -1e9, 1e9) },
    count("slip_every", "after so many received samples some are lost, and nothing says so", "samples"),
    count("slip", "how many a slip loses", "samples"),
    count("stall_every", "after so many received samples reads time out", "samples"),
    count("stall", "how many reads time out", ""),
    count("late_every", "after so many transmitted samples a packet is too late and not heard", "samples"),
    count("late_length", "how long that packet is", "samples"),
    count("vanish_after", "the device is gone after so many received samples", "samples"),
    count("hang_after", "a read never returns after so many received samples", "samples"),
    count("short_reads", "reads bring between one and so many samples, 0 for all that there are", "samples"),
    choice("time_stamps", "which reads have one", &TimeStamps::NAMES),
    number("time_jitter", "standard deviation of time stamps", "samples", 0.0, 1e6),
    // Other drivers know it, and programs send it along.
    choice("serial", "tells devices of one process apart", &[]),
    choice("label", "a name for people", &[]),
];
