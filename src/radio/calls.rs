//! Calls of SoapySDR that the `soapysdr` crate does not make: frequency correction, automatic IQ balance, and what arguments and settings a device has.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int};

use soapysdr::{Direction, Error};
use soapysdr_sys as sys;

use super::client::{failure, last_error, text};

/// A device that is open.
pub(crate) struct Calls(*mut sys::SoapySDRDevice);

// SAFETY: SoapySDR demands of drivers that a device can be used from many threads.
unsafe impl Send for Calls {}
// SAFETY: as above.
unsafe impl Sync for Calls {}

/// An argument or a setting of a device, in its own words.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Argument {
    pub(crate) key: String,
    /// What it is when nobody says.
    pub(crate) value: String,
    pub(crate) description: String,
    pub(crate) unit: String,
    /// Least and largest, of a number that has them.
    pub(crate) range: Option<(f64, f64)>,
    /// The words that it may be; empty for any.
    pub(crate) options: Vec<String>,
}

/// Whose arguments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    Settings,
    Stream(Direction, usize),
    Frequency(Direction, usize),
}

/// A text of SoapySDR's, empty where there is none.
///
/// # Safety
/// `start` is null or a text that ends with a zero.
unsafe fn copy(start: *const c_char) -> String {
    if start.is_null() {
        return String::new();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(start) }.to_string_lossy().into_owned()
}

impl Calls {
    /// SoapySDR has one device for each set of arguments: one that is open with these is the one that is used.
    pub(crate) fn open(arguments: &str) -> Result<Self, Error> {
        let arguments = text(arguments)?;
        // SAFETY: a text that ends with a zero.
        let device = unsafe { sys::SoapySDRDevice_makeStrArgs(arguments.as_ptr()) };
        if device.is_null() { Err(last_error()) } else { Ok(Self(device)) }
    }

    pub(crate) fn has_correction(&self, direction: Direction, channel: usize) -> bool {
        // SAFETY: the device is open.
        unsafe { sys::SoapySDRDevice_hasFrequencyCorrection(self.0, direction.into(), channel) }
    }

    /// The correction of the oscillator in ppm.
    pub(crate) fn correction(&self, direction: Direction, channel: usize) -> f64 {
        // SAFETY: the device is open.
        unsafe { sys::SoapySDRDevice_getFrequencyCorrection(self.0, direction.into(), channel) }
    }

    pub(crate) fn set_correction(&self, direction: Direction, channel: usize, ppm: f64) -> Result<(), Error> {
        // SAFETY: the device is open.
        check(unsafe { sys::SoapySDRDevice_setFrequencyCorrection(self.0, direction.into(), channel, ppm) })
    }

    pub(crate) fn has_iq_mode(&self, direction: Direction, channel: usize) -> bool {
        // SAFETY: the device is open.
        unsafe { sys::SoapySDRDevice_hasIQBalanceMode(self.0, direction.into(), channel) }
    }

    pub(crate) fn set_iq_mode(&self, direction: Direction, channel: usize, automatic: bool) -> Result<(), Error> {
        // SAFETY: the device is open.
        check(unsafe { sys::SoapySDRDevice_setIQBalanceMode(self.0, direction.into(), channel, automatic) })
    }

    /// What arguments there are, as the driver describes them; none where it does not.
    pub(crate) fn arguments(&self, of: Of) -> Vec<Argument> {
        let mut length = 0;
        // SAFETY: the device is open; what is given has as many entries as said and is released behind the copy.
        unsafe {
            let list = match of {
                Of::Settings => sys::SoapySDRDevice_getSettingInfo(self.0, &mut length),
                Of::Stream(direction, channel) => sys::SoapySDRDevice_getStreamArgsInfo(self.0, direction.into(), channel, &mut length),
                Of::Frequency(direction, channel) => {
                    sys::SoapySDRDevice_getFrequencyArgsInfo(self.0, direction.into(), channel, &mut length)
                }
            };
            if list.is_null() {
                return Vec::new();
            }
            let found = (0..length).map(|at| argument(&*list.add(at))).collect();
            sys::SoapySDRArgInfoList_clear(list, length);
            found
        }
    }
}

/// # Safety
/// `info` comes from SoapySDR: its texts end with zeros, and there are as many options as it says.
unsafe fn argument(info: &sys::SoapySDRArgInfo) -> Argument {
    let (low, high) = (info.range.minimum, info.range.maximum);
    // SAFETY: the caller's promise.
    unsafe {
        Argument {
            key: copy(info.key),
            value: copy(info.value),
            description: copy(info.description),
            unit: copy(info.units),
            range: (low < high).then_some((low, high)),
            options: (0..info.numOptions).map(|at| copy(*info.options.add(at))).collect(),
        }
    }
}

fn check(code: c_int) -> Result<(), Error> {
    match code {
        0 => Ok(()),
        code => Err(Some(last_error()).filter(|error| !error.message.is_empty()).unwrap_or_else(|| failure(code))),
    }
}

impl Drop for Calls {
    fn drop(&mut self) {
        // SAFETY: it is open, and nobody uses it afterwards.
        unsafe { sys::SoapySDRDevice_unmake(self.0) };
    }
}
