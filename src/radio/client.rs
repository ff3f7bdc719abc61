//! A receive stream of any SoapySDR device, with the flags of each read: the `soapysdr` crate keeps them to itself, and without them nobody knows which reads have a time stamp.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};

use num_complex::Complex32;
use soapysdr::{Error, ErrorCode};
use soapysdr_sys as sys;

/// A receive stream of `CF32` samples.
pub(crate) struct RxStream {
    device: *mut sys::SoapySDRDevice,
    stream: *mut sys::SoapySDRStream,
    pointers: Vec<*mut Complex32>,
    active: bool,
}

// SAFETY: SoapySDR demands of drivers that a stream can be used from any thread, one at a time, and that a device can from many.
unsafe impl Send for RxStream {}

/// What a read brought.
pub(crate) struct Read {
    pub(crate) samples: usize,
    /// The time of the first one, where the driver tells it.
    pub(crate) time_ns: Option<i64>,
}

pub(super) fn failure(code: c_int) -> Error {
    let known = match code {
        sys::SOAPY_SDR_TIMEOUT => ErrorCode::Timeout,
        sys::SOAPY_SDR_STREAM_ERROR => ErrorCode::StreamError,
        sys::SOAPY_SDR_CORRUPTION => ErrorCode::Corruption,
        sys::SOAPY_SDR_OVERFLOW => ErrorCode::Overflow,
        sys::SOAPY_SDR_NOT_SUPPORTED => ErrorCode::NotSupported,
        sys::SOAPY_SDR_TIME_ERROR => ErrorCode::TimeError,
        sys::SOAPY_SDR_UNDERFLOW => ErrorCode::Underflow,
        _ => ErrorCode::Other,
    };
    // SAFETY: a static text for any code.
    let message = unsafe { CStr::from_ptr(sys::SoapySDR_errToStr(code)) };
    Error { code: known, message: message.to_string_lossy().into_owned() }
}

pub(super) fn last_error() -> Error {
    // SAFETY: a text of this thread, which ends with a zero and is copied at once.
    let message = unsafe { CStr::from_ptr(sys::SoapySDRDevice_lastError()) };
    Error { code: ErrorCode::Other, message: message.to_string_lossy().into_owned() }
}

pub(super) fn text(text: &str) -> Result<CString, Error> {
    CString::new(text).map_err(|_| Error { code: ErrorCode::Other, message: format!("'{}' has a zero in it", text.escape_debug()) })
}

impl RxStream {
    /// Sets a stream up. SoapySDR has one device for each set of arguments: one that is open with these is the one that is used.
    pub(crate) fn open(arguments: &str, channels: &[usize], stream_arguments: &str) -> Result<Self, Error> {
        let (arguments, stream_arguments) = (text(arguments)?, text(stream_arguments)?);
        // SAFETY: texts end with a zero, `channels` are as many as said, and what is made is released: the arguments here, device and stream when this value is dropped.
        unsafe {
            let device = sys::SoapySDRDevice_makeStrArgs(arguments.as_ptr());
            if device.is_null() {
                return Err(last_error());
            }
            let mut options = sys::SoapySDRKwargs_fromString(stream_arguments.as_ptr());
            let format = sys::SOAPY_SDR_CF32.as_ptr().cast();
            let stream =
                sys::SoapySDRDevice_setupStream(device, sys::SOAPY_SDR_RX as c_int, format, channels.as_ptr(), channels.len(), &options);
            let error = stream.is_null().then(last_error);
            sys::SoapySDRKwargs_clear(&mut options);
            if let Some(error) = error {
                sys::SoapySDRDevice_unmake(device);
                return Err(error);
            }
            Ok(Self { device, stream, pointers: vec![std::ptr::null_mut(); channels.len()], active: false })
        }
    }

    /// Begins at a hardware time, or at once.
    pub(crate) fn activate(&mut self, at_ns: Option<i64>) -> Result<(), Error> {
        let flags = if at_ns.is_some() { sys::SOAPY_SDR_HAS_TIME as c_int } else { 0 };
        // SAFETY: device and stream are open.
        let code = unsafe { sys::SoapySDRDevice_activateStream(self.device, self.stream, flags, at_ns.unwrap_or(0), 0) };
        self.active = code == 0;
        if code == 0 { Ok(()) } else { Err(failure(code)) }
    }

    pub(crate) fn deactivate(&mut self) {
        if std::mem::take(&mut self.active) {
            // SAFETY: device and stream are open.
            unsafe { sys::SoapySDRDevice_deactivateStream(self.device, self.stream, 0, 0) };
        }
    }

    /// Reads into one buffer for each channel, all of one length.
    pub(crate) fn read(&mut self, buffers: &mut [Vec<Complex32>], timeout_us: i64) -> Result<Read, Error> {
        let room = buffers.iter().map(Vec::len).min().unwrap_or(0);
        if buffers.len() != self.pointers.len() {
            return Err(Error { code: ErrorCode::Other, message: "one buffer is needed for each channel".into() });
        }
        self.pointers.iter_mut().zip(buffers.iter_mut()).for_each(|(pointer, buffer)| *pointer = buffer.as_mut_ptr());
        let (mut flags, mut time_ns) = (0, 0);
        // SAFETY: as many buffers as the stream has channels, each of its own with room for `room` samples; `Complex32` is laid out as CF32.
        let code = unsafe {
            let pointers = self.pointers.as_ptr().cast();
            sys::SoapySDRDevice_readStream(self.device, self.stream, pointers, room, &mut flags, &mut time_ns, timeout_us as _)
        };
        match usize::try_from(code) {
            Ok(samples) => {
                Ok(Read { samples: samples.min(room), time_ns: (flags & sys::SOAPY_SDR_HAS_TIME as c_int != 0).then_some(time_ns) })
            }
            Err(_) => Err(failure(code)),
        }
    }
}

impl Drop for RxStream {
    fn drop(&mut self) {
        self.deactivate();
        // SAFETY: both are open and nobody uses them afterwards.
        unsafe {
            sys::SoapySDRDevice_closeStream(self.device, self.stream);
            sys::SoapySDRDevice_unmake(self.device);
        }
    }
}
