//! Clocks and times that come from outside.

use std::time::{Duration, Instant};

use soapysdr::Device;

use super::config::RadioConfig;
use super::devices::refused;
use super::tune::check_name;
use crate::{Error, Result};

/// The source that needs nothing from outside.
const INTERNAL: &str = "internal";

/// The sensor that tells whether a clock is locked to its source, and how long that may take.
const LOCKED: &str = "ref_locked";
const LOCK: Duration = Duration::from_secs(1);

/// The time at a pulse; a pulse comes each second.
const PULSE: &str = "PPS";
const PULSES: Duration = Duration::from_millis(2500);

const POLL: Duration = Duration::from_millis(10);

/// Whether a source of clock or time is another than a device's own, so that two devices with it have one.
pub(super) fn from_outside(source: &Option<String>) -> bool {
    source.as_ref().is_some_and(|source| source != INTERNAL)
}

/// Sets the sources of clock and time of `devices`, each with its arguments; waits until clocks from outside are locked to, and sets all times to 0 at one pulse.
pub(super) fn set(devices: &[(&Device, &str)], config: &RadioConfig) -> Result<()> {
    if let Some(source) = &config.clock_source {
        for (device, name) in devices {
            check_name("clock source", source, &device.list_clock_sources().unwrap_or_default())?;
            device.set_clock_source(source.as_str()).map_err(|e| refused(name, &format!("clock source '{source}'"), &e))?;
        }
        if source != INTERNAL {
            devices.iter().try_for_each(|(device, name)| locked(device, name, source))?;
        }
    }
    let Some(source) = &config.time_source else { return Ok(()) };
    for (device, name) in devices {
        check_name("time source", source, &device.list_time_sources().unwrap_or_default())?;
        device.set_time_source(source.as_str()).map_err(|e| refused(name, &format!("time source '{source}'"), &e))?;
    }
    let pulsed: Vec<_> = devices.iter().copied().filter(|(device, _)| device.has_hardware_time(Some(PULSE)).unwrap_or(false)).collect();
    if source == INTERNAL || pulsed.is_empty() {
        return Ok(());
    }
    // Right behind a pulse there is time to tell all of them before the next one.
    pulsed.iter().try_for_each(|(device, name)| next_pulse(device, name, source))?;
    for (device, name) in &pulsed {
        device.set_hardware_time(Some(PULSE), 0).map_err(|e| refused(name, "time at the next pulse", &e))?;
    }
    pulsed.iter().try_for_each(|(device, name)| next_pulse(device, name, source))
}

/// Whether a device's clock follows its source, where it tells.
fn locked(device: &Device, name: &str, source: &str) -> Result<()> {
    if !device.list_sensors().unwrap_or_default().iter().any(|sensor| sensor == LOCKED) {
        return Ok(());
    }
    let until = Instant::now() + LOCK;
    loop {
        match device.read_sensor(LOCKED) {
            Ok(said) if said.eq_ignore_ascii_case("true") || said == "1" => return Ok(()),
            Err(error) => return Err(refused(name, "sensor ref_locked", &error)),
            Ok(_) if Instant::now() < until => std::thread::sleep(POLL),
            Ok(_) => {
                let problem = "is not locked to its clock source";
                let remedy = "is the reference connected, at its frequency and level? --clock-source internal does without";
                return Err(Error::Device(format!("{name}: {problem} '{source}': {remedy}")));
            }
        }
    }
}

/// Waits until the time of the last pulse changes.
fn next_pulse(device: &Device, name: &str, source: &str) -> Result<()> {
    let last = || device.get_hardware_time(Some(PULSE)).map_err(|e| refused(name, "time of the last pulse", &e));
    let (before, until) = (last()?, Instant::now() + PULSES);
    while last()? == before {
        if Instant::now() >= until {
            let remedy = "is it connected? --time-source internal does without";
            return Err(Error::Device(format!("{name}: no pulse a second comes from its time source '{source}': {remedy}")));
        }
        std::thread::sleep(POLL);
    }
    Ok(())
}
