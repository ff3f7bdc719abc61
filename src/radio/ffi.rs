//! The functions that `shim.cpp` calls: few, because what is not a stream is asked for in words.
//!
//! References and boxes cross the border as pointers, so that only texts and sample buffers need `unsafe`. `shim.cpp` keeps these promises: a radio is what [`kaflow_radio_make`] gave, is used
//! until [`kaflow_radio_free`] and freed once, as SoapySDR demands of programs; a [`Text`] and the buffers of a stream are what it was called with, and live until the call returns.

#![allow(unsafe_code)]

use std::borrow::Cow;
use std::ffi::{c_int, c_long, c_longlong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use super::device::{Failure, Radio, SOURCES};
use super::format::Format;
use super::{CHANNELS, Direction};
use crate::{Error, Result};

const END_BURST: c_int = 1 << 1;
const HAS_TIME: c_int = 1 << 2;

fn code(failure: Failure) -> c_int {
    match failure {
        Failure::Timeout => -1,
        Failure::Gone => -2,
        Failure::Overflow => -4,
        Failure::NotSupported => -5,
        Failure::Late => -6,
        Failure::Underflow => -7,
    }
}

fn direction(direction: c_int) -> Direction {
    if direction == 0 { Direction::Tx } else { Direction::Rx }
}

/// A panic must not cross into C++: it becomes `otherwise`.
fn guard<R>(otherwise: R, f: impl FnOnce() -> R) -> R {
    catch_unwind(AssertUnwindSafe(f)).unwrap_or(otherwise)
}

/// A text of the caller's; only `shim.cpp` makes one.
#[repr(C)]
struct Text {
    start: *const u8,
    length: usize,
}

impl Text {
    fn get(&self) -> Cow<'_, str> {
        // SAFETY: `start` points to `length` bytes that live until the call returns (module promise); C++ strings never point to null.
        String::from_utf8_lossy(unsafe { std::slice::from_raw_parts(self.start, self.length) })
    }
}

/// Where an answer goes: `put` appends to the caller's string `out`.
#[repr(C)]
struct Answer {
    out: *mut c_void,
    put: extern "C" fn(*mut c_void, *const u8, usize),
}

impl Answer {
    fn give(&self, text: &str) {
        (self.put)(self.out, text.as_ptr(), text.len());
    }
}

/// Opens a radio; none with the reason as the answer, or with a warning a line.
#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_make(arguments: Text, answer: Answer) -> Option<Box<Radio>> {
    guard(None, || match Radio::open(&arguments.get()) {
        Ok((radio, ignored)) => {
            ignored.iter().for_each(|line| answer.give(&format!("{line}\n")));
            Some(Box::new(radio))
        }
        Err(error) => {
            answer.give(&error.to_string());
            None
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_free(radio: Option<Box<Radio>>) {
    guard((), || drop(radio));
}

/// Asks for, or sets, what is not a stream; 0, or -1 with the reason as the answer.
#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_ask(radio: &Radio, verb: Text, dir: c_int, channel: usize, name: Text, value: Text, answer: Answer) -> c_int {
    guard(-1, || match ask(radio, &verb.get(), direction(dir), channel, &name.get(), &value.get()) {
        Ok(text) => {
            answer.give(&text);
            0
        }
        Err(error) => {
            answer.give(&error.to_string());
            -1
        }
    })
}

fn ask(radio: &Radio, verb: &str, direction: Direction, channel: usize, name: &str, value: &str) -> Result<String> {
    let done = |()| String::new();
    let lines = |names: &[String]| names.join("\n");
    match verb {
        "set" => radio.set(direction, channel, name, value.parse().map_err(|_| Error::parameter(name, "a number", value))?).map(done),
        "get" => radio.get(direction, channel, name).map(|number| number.to_string()),
        "range" => Radio::range(direction, name).map(|(low, high, step)| format!("{low}\n{high}\n{step}")),
        "gains" => Ok(Radio::gains(direction).join("\n")),
        "formats" => Ok(Format::NAMES.join("\n")),
        "channels" => Ok(CHANNELS.to_string()),
        "full duplex" => Ok(u8::from(radio.full_duplex()).to_string()),
        "has time" => Ok(u8::from(radio.has_time()).to_string()),
        "settings" => Ok(radio.settings_table()),
        "write setting" => radio.write_setting(name, value).map(done),
        "read setting" => radio.read_setting(name),
        "source" => Ok(radio.source(name).into()),
        "set source" => radio.set_source(name, value).map(done),
        "sources" => Ok(SOURCES.join("\n")),
        "pulse" => Ok(radio.pulse_ns().map(|ns| ns.to_string()).unwrap_or_default()),
        "set at pulse" => {
            value.parse().map(|ns| radio.set_time_at_pulse(ns)).map(done).map_err(|_| Error::parameter("time", "whole nanoseconds", value))
        }
        "sensors" => Ok(lines(&Radio::sensors(false))),
        "channel sensors" if direction == Direction::Rx => Ok(lines(&Radio::sensors(true))),
        "channel sensors" => Ok(String::new()),
        "sensor" => radio.sensor(channel, name),
        // The format, and the channels with the largest read, where one was given, behind them.
        "setup" => {
            let (channels, mtu) = value.split_once('/').unwrap_or((value, ""));
            let number = |text: &str| text.parse::<usize>().map_err(|_| Error::parameter("stream arguments", "whole numbers", text));
            let channels: Vec<usize> = channels.split_whitespace().map(number).collect::<Result<_>>()?;
            let mtu = if mtu.is_empty() { None } else { Some(number(mtu)?) };
            radio.setup(direction, name, &channels, mtu).map(done)
        }
        "mtu" => Ok(radio.layout(direction).map_or(0, |layout| layout.2).to_string()),
        "close" => {
            radio.close(direction);
            Ok(String::new())
        }
        _ => Err(Error::Data(format!("the simulated radio does not understand '{verb}'"))),
    }
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_time(radio: &Radio) -> c_longlong {
    guard(0, || radio.time_ns(None))
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_set_time(radio: &Radio, time_ns: c_longlong) {
    guard((), || radio.set_time(time_ns));
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_activate(radio: &Radio, dir: c_int, flags: c_int, time_ns: c_longlong, length: usize) -> c_int {
    let at = (flags & HAS_TIME != 0).then_some(time_ns);
    guard(-2, || radio.activate(direction(dir), at, length).map_or_else(code, |()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_deactivate(radio: &Radio, dir: c_int) -> c_int {
    guard(-2, || {
        radio.deactivate(direction(dir));
        0
    })
}

/// An hour at most: some programs say "for ever" with the largest number there is.
fn timeout(timeout_us: c_long) -> Duration {
    Duration::from_micros(timeout_us.clamp(0, 3_600_000_000) as u64)
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_read(
    radio: &Radio,
    buffers: *const *mut u8,
    count: usize,
    flags: &mut c_int,
    time_ns: &mut c_longlong,
    timeout_us: c_long,
) -> c_int {
    guard(-2, || {
        *flags = 0;
        let Some((format, channels, _)) = radio.layout(Direction::Rx) else { return code(Failure::NotSupported) };
        // SAFETY: a program gives readStream one buffer for each channel of the stream, each of its own and with room for `count` samples in the stream's format (module promise).
        let mut buffers: Vec<&mut [u8]> = unsafe {
            let buffers = std::slice::from_raw_parts(buffers, channels);
            buffers.iter().map(|&buffer| std::slice::from_raw_parts_mut(buffer, count * format.bytes())).collect()
        };
        match radio.read(&mut buffers, count, timeout(timeout_us)) {
            Ok(read) => {
                if let Some(time) = read.time_ns {
                    (*flags, *time_ns) = (HAS_TIME, time);
                }
                *flags |= if read.end { END_BURST } else { 0 };
                read.samples as c_int
            }
            Err(failure) => code(failure),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_write(
    radio: &Radio,
    buffers: *const *const u8,
    count: usize,
    flags: c_int,
    time_ns: c_longlong,
    timeout_us: c_long,
) -> c_int {
    guard(-2, || {
        let Some((format, channels, _)) = radio.layout(Direction::Tx) else { return code(Failure::NotSupported) };
        // SAFETY: a program gives writeStream one buffer for each channel of the stream, each with `count` samples in the stream's format (module promise).
        let buffers: Vec<&[u8]> = unsafe {
            let buffers = std::slice::from_raw_parts(buffers, channels);
            buffers.iter().map(|&buffer| std::slice::from_raw_parts(buffer, count * format.bytes())).collect()
        };
        let at = (flags & HAS_TIME != 0).then_some(time_ns);
        radio.write(&buffers, count, at, flags & END_BURST != 0, timeout(timeout_us)).map_or_else(code, |count| count as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_status(radio: &Radio, dir: c_int, flags: &mut c_int, time_ns: &mut c_longlong, timeout_us: c_long) -> c_int {
    guard(-2, || {
        let (failure, at) = radio.status(direction(dir), timeout(timeout_us));
        *flags = if at.is_some() { HAS_TIME } else { 0 };
        *time_ns = at.unwrap_or(0);
        code(failure)
    })
}
