//! The simulated radio as a plug-in for any SoapySDR program: one that only enumerates finds it too.
//!
//! ```sh
//! cargo build --release --features soapy --example kaflow_testbed_module
//! mkdir -p modules && cp target/release/examples/libkaflow_testbed_module.so modules/
//! SOAPY_SDR_PLUGIN_PATH=$PWD/modules SoapySDRUtil --probe="driver=kaflow-testbed"
//! ```

// Loading the library registers the driver: nothing has to be called, only linked.
pub use kaflow::radio::DRIVER;
