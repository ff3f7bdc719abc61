//! A build without radios says how to get one with them.
#![cfg(all(feature = "cli", not(feature = "radio")))]

#[test]
fn live_and_devices_say_how_to_get_them() {
    for arguments in [&["live", "--device", "driver=uhd", "--freq", "5.4e9"][..], &["devices"]] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_kaflow")).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("libsoapysdr-dev") && text.contains("--features soapy"), "{text}");
    }
}
