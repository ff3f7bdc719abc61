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

pub use config::{End, RadioConfig};
pub(crate) use devices::{Devices, check_device, open_device};
pub use drive::Drive;
pub use frame::Frame;
pub use health::{Health, Level};
pub use radio::Radio;
pub use repeat::Repeat;
pub use sink::SoapySink;
pub use source::SoapySource;
pub use tune::ReadBack;
