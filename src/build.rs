//! Compiles the C++ side of the simulated radio when the feature `soapy` is on.

fn main() {
    println!("cargo::rerun-if-changed=src/build.rs");
    #[cfg(feature = "soapy")]
    shim();
}

#[cfg(feature = "soapy")]
fn shim() {
    println!("cargo::rerun-if-changed=src/radio/shim.cpp");
    let soapy = match pkg_config::Config::new().cargo_metadata(false).probe("SoapySDR") {
        Ok(soapy) => soapy,
        Err(error) => {
            println!("cargo::error=the feature soapy needs SoapySDR: apt-get install libsoapysdr-dev pkg-config ({error})");
            return;
        }
    };
    // Nothing calls into the object, its static constructor registers the driver: so all of the archive has to be linked.
    cc::Build::new()
        .cpp(true)
        .std("c++11")
        .file("src/radio/shim.cpp")
        .includes(&soapy.include_paths)
        .link_lib_modifier("+whole-archive")
        .compile("kaflow_radio_shim");
    // After the archive that needs it.
    for path in &soapy.link_paths {
        println!("cargo::rustc-link-search=native={}", path.display());
    }
    for library in &soapy.libs {
        println!("cargo::rustc-link-lib={library}");
    }
}
