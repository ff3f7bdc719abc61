//! The functions that `shim.cpp` calls.
//!
//! # Safety
//!
//! All pointers come from `shim.cpp`, which keeps these promises: `radio` is what [`kaflow_radio_make`] gave and was not freed; texts end with a zero; `problem`
//! has room for `length` bytes; the buffers of a stream are as many as its channels and as long as `count` says, in the stream's format, which is what
//! SoapySDR demands of the calling program.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_double, c_int, c_long, c_longlong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use num_complex::{Complex, Complex32};

use super::device::{Failure, Radio};
use super::format::{Format, Sample};
use super::{CHANNELS, Direction};

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

/// # Safety
/// `text` ends with a zero and outlives the result.
unsafe fn text<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    // SAFETY: see above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// Writes as much of `message` as fits, and a zero.
///
/// # Safety
/// `out` has room for `length` bytes.
unsafe fn tell(message: &str, out: *mut c_char, length: usize) {
    if length == 0 {
        return;
    }
    let n = message.len().min(length - 1);
    // SAFETY: `n + 1 <= length` bytes are written, and `message` has `n` of them.
    unsafe {
        std::ptr::copy_nonoverlapping(message.as_ptr().cast(), out, n);
        *out.add(n) = 0;
    }
}

/// # Safety
/// `radio` came from [`kaflow_radio_make`] and was not freed; SoapySDR frees a device after the last call only.
unsafe fn radio<'a>(radio: *mut c_void) -> &'a Radio {
    // SAFETY: see above. `Radio` is `Sync`, and only shared references are made.
    unsafe { &*radio.cast::<Radio>() }
}

fn told(result: crate::Result<()>, problem: *mut c_char, length: usize) -> c_int {
    match result {
        Ok(()) => 0,
        Err(error) => {
            // SAFETY: `problem` has room for `length` bytes (module promise).
            unsafe { tell(&error.to_string(), problem, length) };
            -1
        }
    }
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_make(arguments: *const c_char, problem: *mut c_char, length: usize) -> *mut c_void {
    guard(std::ptr::null_mut(), || {
        // SAFETY: `arguments` ends with a zero (module promise).
        match Radio::open(&unsafe { text(arguments) }) {
            Ok(radio) => Box::into_raw(Box::new(radio)).cast(),
            Err(error) => {
                told(Err(error), problem, length);
                std::ptr::null_mut()
            }
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_free(radio: *mut c_void) {
    if !radio.is_null() {
        // SAFETY: it came from `Box::into_raw` in `kaflow_radio_make`, and the shim's destructor runs once.
        guard((), || drop(unsafe { Box::from_raw(radio.cast::<Radio>()) }));
    }
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_channels() -> usize {
    CHANNELS
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_set(
    this: *mut c_void,
    dir: c_int,
    channel: usize,
    name: *const c_char,
    value: c_double,
    problem: *mut c_char,
    length: usize,
) -> c_int {
    // SAFETY: module promises on `this` and `name`.
    guard(-1, || told(unsafe { radio(this).set(direction(dir), channel, &text(name), value) }, problem, length))
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_get(this: *mut c_void, dir: c_int, channel: usize, name: *const c_char) -> c_double {
    // SAFETY: module promises on `this` and `name`.
    guard(f64::NAN, || unsafe { radio(this).get(direction(dir), channel, &text(name)) })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_range(dir: c_int, name: *const c_char, low: *mut c_double, high: *mut c_double, step: *mut c_double) {
    guard((), || {
        // SAFETY: `name` ends with a zero, the others point to variables of the caller.
        unsafe {
            if let Some(range) = Radio::range(direction(dir), &text(name)) {
                (*low, *high, *step) = range;
            }
        }
    });
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_write_setting(
    this: *mut c_void,
    key: *const c_char,
    value: *const c_char,
    problem: *mut c_char,
    length: usize,
) -> c_int {
    // SAFETY: module promises on `this`, `key` and `value`.
    guard(-1, || told(unsafe { radio(this).write_setting(&text(key), &text(value)) }, problem, length))
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_read_setting(this: *mut c_void, key: *const c_char, value: *mut c_char, length: usize) -> c_int {
    // SAFETY: module promises on `this` and `key`; `value` has room for `length` bytes.
    guard(-1, || unsafe {
        match radio(this).read_setting(&text(key)) {
            Some(found) => {
                tell(&found, value, length);
                0
            }
            None => -1,
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_time(this: *mut c_void) -> c_longlong {
    // SAFETY: module promise on `this`.
    guard(0, || unsafe { radio(this) }.time_ns())
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_set_time(this: *mut c_void, time_ns: c_longlong) {
    // SAFETY: module promise on `this`.
    guard((), || unsafe { radio(this) }.set_time(time_ns));
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_setup(
    this: *mut c_void,
    dir: c_int,
    format: *const c_char,
    channels: *const usize,
    count: usize,
    problem: *mut c_char,
    length: usize,
) -> c_int {
    guard(-1, || {
        // SAFETY: `channels` points to `count` numbers; an empty vector's pointer is not looked at. Module promises on the others.
        unsafe {
            let channels = if count == 0 { &[][..] } else { std::slice::from_raw_parts(channels, count) };
            told(radio(this).setup(direction(dir), &text(format), channels), problem, length)
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_close(this: *mut c_void, dir: c_int) {
    // SAFETY: module promise on `this`.
    guard((), || unsafe { radio(this) }.close(direction(dir)));
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_activate(this: *mut c_void, dir: c_int, timed: c_int, time_ns: c_longlong) -> c_int {
    // SAFETY: module promise on `this`.
    guard(-2, || unsafe { radio(this) }.activate(direction(dir), (timed != 0).then_some(time_ns)).map_or_else(code, |()| 0))
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_deactivate(this: *mut c_void, dir: c_int) -> c_int {
    guard(-2, || {
        // SAFETY: module promise on `this`.
        unsafe { radio(this) }.deactivate(direction(dir));
        0
    })
}

/// An hour at most: some programs say "for ever" with the largest number there is.
fn timeout(timeout_us: c_long) -> Duration {
    Duration::from_micros(timeout_us.clamp(0, 3_600_000_000) as u64)
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_read(
    this: *mut c_void,
    buffers: *const *mut c_void,
    count: usize,
    flags: *mut c_int,
    time_ns: *mut c_longlong,
    timeout_us: c_long,
) -> c_int {
    /// # Safety
    /// `buffers` points to `channels` pointers, each to `count` samples of the type `S` that nobody else uses.
    unsafe fn read<S: Sample>(
        radio: &Radio,
        buffers: *const *mut c_void,
        channels: usize,
        count: usize,
        wait: Duration,
    ) -> Result<(usize, i64), Failure> {
        // SAFETY: see above.
        let buffers = unsafe { std::slice::from_raw_parts(buffers, channels) };
        // SAFETY: see above; the program gives each channel a buffer of its own.
        let mut buffers: Vec<&mut [S]> = buffers.iter().map(|b| unsafe { std::slice::from_raw_parts_mut(b.cast::<S>(), count) }).collect();
        radio.read(&mut buffers, wait)
    }
    guard(-2, || {
        // SAFETY: module promises on `this` and the buffers; `flags` and `time_ns` point to variables of the caller.
        unsafe {
            let radio = radio(this);
            let wait = timeout(timeout_us);
            let result = match radio.format(Direction::Rx) {
                Some((Format::Cf32, channels)) => read::<Complex32>(radio, buffers, channels, count, wait),
                Some((Format::Cs16, channels)) => read::<Complex<i16>>(radio, buffers, channels, count, wait),
                Some((Format::Cs8, channels)) => read::<Complex<i8>>(radio, buffers, channels, count, wait),
                None => Err(Failure::NotSupported),
            };
            *flags = 0;
            match result {
                Ok((count, time)) => {
                    *flags = HAS_TIME;
                    *time_ns = time;
                    count as c_int
                }
                Err(failure) => code(failure),
            }
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_write(
    this: *mut c_void,
    buffers: *const *const c_void,
    count: usize,
    flags: c_int,
    time_ns: c_longlong,
    timeout_us: c_long,
) -> c_int {
    /// # Safety
    /// `buffers` points to `channels` pointers, each to `count` samples of the type `S`.
    unsafe fn write<S: Sample>(
        radio: &Radio,
        buffers: *const *const c_void,
        channels: usize,
        count: usize,
        at: (Option<i64>, bool),
        wait: Duration,
    ) -> Result<usize, Failure> {
        // SAFETY: see above.
        let buffers = unsafe { std::slice::from_raw_parts(buffers, channels) };
        // SAFETY: see above; samples are plain numbers.
        let buffers: Vec<&[S]> = buffers.iter().map(|b| unsafe { std::slice::from_raw_parts(b.cast::<S>(), count) }).collect();
        radio.write(&buffers, at.0, at.1, wait)
    }
    guard(-2, || {
        let at = ((flags & HAS_TIME != 0).then_some(time_ns), flags & END_BURST != 0);
        let wait = timeout(timeout_us);
        // SAFETY: module promises on `this` and the buffers.
        let result = unsafe {
            let radio = radio(this);
            match radio.format(Direction::Tx) {
                Some((Format::Cf32, channels)) => write::<Complex32>(radio, buffers, channels, count, at, wait),
                Some((Format::Cs16, channels)) => write::<Complex<i16>>(radio, buffers, channels, count, at, wait),
                Some((Format::Cs8, channels)) => write::<Complex<i8>>(radio, buffers, channels, count, at, wait),
                None => Err(Failure::NotSupported),
            }
        };
        result.map_or_else(code, |count| count as c_int)
    })
}

#[unsafe(no_mangle)]
extern "C" fn kaflow_radio_status(this: *mut c_void, dir: c_int, time_ns: *mut c_longlong, timeout_us: c_long) -> c_int {
    guard(-2, || {
        // SAFETY: module promise on `this`; `time_ns` points to a variable of the caller.
        unsafe {
            *time_ns = radio(this).time_ns();
            radio(this).status(direction(dir), timeout(timeout_us)).map_or_else(code, |_| 0)
        }
    })
}
