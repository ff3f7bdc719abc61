//! Metadata that contradicts itself, the data, or the specification.

use crate::Bench;

fn write(bench: &Bench, global: &str, captures: &str) {
    let meta = format!(r#"{{"global": {{"core:datatype": "cf32_le", {global}}}, "captures": [{captures}], "annotations": []}}"#);
    std::fs::write(bench.at("a.sigmf-meta"), meta).unwrap();
    std::fs::copy(bench.at("rx.cf32"), bench.at("a.sigmf-data")).unwrap();
}

#[test]
fn a_version_is_one() {
    let bench = Bench::new();
    for garbage in ["garbage", "", "1", "1.x", "1.2.3.4", "999999999999.0.0", "2.0.0", "١.٢.٣"] {
        write(&bench, &format!(r#""core:version": "{garbage}""#), r#"{"core:sample_start": 0}"#);
        bench.refuses("inspect a", &["a.sigmf-meta", "core:version"]);
    }
    for good in ["1.2.0", "1.0.0", "0.0.2", "1.2", "v1.1.0"] {
        write(&bench, &format!(r#""core:version": "{good}""#), r#"{"core:sample_start": 0}"#);
        bench.works("inspect a");
    }
}

#[test]
fn an_extension_that_is_needed_and_not_known_is_refused_by_what_uses_the_samples() {
    let bench = Bench::new();
    let declared = |optional: bool| {
        format!(r#""core:version": "1.2.0", "core:extensions": [{{"name": "sealed", "version": "1.0.0", "optional": {optional}}}]"#)
    };
    write(&bench, &declared(false), r#"{"core:sample_start": 0}"#);
    for arguments in ["track tx a --filter nlms", "receive a", "tune tx a --filter nlms"] {
        bench.refuses(arguments, &["sealed", "core:extensions"]);
    }
    assert!(bench.works("inspect a").out().contains("sealed"));
    write(&bench, &declared(true), r#"{"core:sample_start": 0}"#);
    bench.works("track tx a --align none --filter nlms");
}

#[test]
fn captures_lie_within_the_data() {
    let bench = Bench::new();
    let version = r#""core:version": "1.2.0""#;
    for captures in [
        r#"{"core:sample_start": 3000}"#,
        r#"{"core:sample_start": 0}, {"core:sample_start": 3000}"#,
        r#"{"core:sample_start": 3001, "core:global_index": 5000}"#,
        r#"{"core:sample_start": 10}, {"core:sample_start": 5}"#,
        r#"{"core:sample_start": 9223372036854775807}"#,
        r#"{"core:sample_start": 18446744073709551615}"#,
    ] {
        write(&bench, version, captures);
        bench.refuses("inspect a", &["sample_start"]);
    }
    // A gap behind the last sample.
    write(&bench, version, r#"{"core:sample_start": 0}, {"core:sample_start": 3000, "core:global_index": 5000}"#);
    bench.works("inspect a");
}
