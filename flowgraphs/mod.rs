//! Flowgraphs to run and to copy from.

#[cfg(feature = "soapy")]
pub mod live;
