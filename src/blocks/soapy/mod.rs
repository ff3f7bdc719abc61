//! Radios: any device that SoapySDR has a driver for, as a source and a sink that belong together.

mod clock;
mod config;
mod devices;
mod drive;
mod frame;
mod health;
mod queue;
mod radio;
mod reader;
mod repeat;
mod reunion;
mod sink;
mod source;
mod stamps;
mod stop;
mod tune;
mod writer;

pub use self::{
    config::{End, RadioConfig},
    frame::Frame,
    health::{Health, Level},
    radio::Radio,
    repeat::Repeat,
    sink::SoapySink,
    source::SoapySource,
    tune::ReadBack,
};

pub(crate) use self::{
    devices::{Devices, check_device, open_device},
    drive::Drive,
};
