//! Metadata: what survives, what is refused and in which words.

use super::*;

fn parse(text: &str) -> Result<Meta> {
    Meta::parse(Path::new("a.sigmf-meta"), text.as_bytes())
}

#[test]
fn unknown_keys_survive_a_rewrite() {
    let text = r#"{"global": {"core:datatype": "ci16_le", "core:version": "1.2.0", "core:author": "me", "core:sample_rate": 20000000.0,
        "core:extensions": [{"name": "antenna", "version": "1.0.0", "optional": true}], "antenna:gain": {"dB": [1, 2.5, null]}},
        "captures": [{"core:sample_start": 0, "core:frequency": 5400000000.0, "antenna:azimuth": 3}],
        "annotations": [{"core:sample_start": 3, "core:sample_count": 4, "core:comment": "x", "antenna:y": "z"}]}"#;
    let meta = parse(text).unwrap();
    let before: Value = serde_json::from_str(text).unwrap();
    let after: Value = serde_json::from_str(&meta.to_json()).unwrap();
    assert_eq!(before, after);
    assert_eq!(meta.violations(), Vec::<String>::new());
}

#[test]
fn errors_name_file_and_field() {
    let global = r#""core:datatype": "cf32_le", "core:version": "1.2.0""#;
    for (text, expected) in [
        ("".to_owned(), "line 1 column 0"),
        ("[]".to_owned(), "top level: must be an object, not an array"),
        ("{}".to_owned(), "top level global: is missing"),
        (r#"{"global": {"core:version": "1.2.0"}}"#.to_owned(), "global core:datatype: is missing"),
        (
            r#"{"global": {"core:datatype": "cf32", "core:version": "1.0.0"}}"#.to_owned(),
            "global core:datatype: datatype must be one with a byte order",
        ),
        (r#"{"global": {"core:datatype": "cf32_le", "core:version": "latest"}}"#.to_owned(), "core:version: 'latest' is not a version"),
        (r#"{"global": {"core:datatype": "cf32_le", "core:version": "2.0.0"}}"#.to_owned(), "core:version: is SigMF 2"),
        (format!(r#"{{"global": {{{global}, "core:sample_rate": -1}}}}"#), "global core:sample_rate: -1 is not between"),
        (
            format!(r#"{{"global": {{{global}, "core:num_channels": 9223372036854775807}}}}"#),
            "core:num_channels: 9223372036854775807 is not",
        ),
        (format!(r#"{{"global": {{{global}, "core:sha512": "abc"}}}}"#), "core:sha512: must be 128"),
        (format!(r#"{{"global": {{{global}, "core:dataset": "../../etc/passwd"}}}}"#), "core:dataset: '../../etc/passwd' is not a plain"),
        (format!(r#"{{"global": {{{global}}}, "captures": 3}}"#), "top level captures: must be an array, not a number"),
        (format!(r#"{{"global": {{{global}}}, "captures": [{{}}]}}"#), "captures[0] core:sample_start: is missing"),
        (
            format!(r#"{{"global": {{{global}}}, "captures": [{{"core:sample_start": "0"}}]}}"#),
            "captures[0] core:sample_start: invalid type",
        ),
        (
            format!(r#"{{"global": {{{global}}}, "annotations": [{{"core:sample_start": -1}}]}}"#),
            "annotations[0] core:sample_start: invalid value",
        ),
        ("[".repeat(100_000), "recursion limit"),
    ] {
        let message = parse(&text).unwrap_err().to_string();
        assert!(message.starts_with("a.sigmf-meta: ") && message.contains(expected), "{message} lacks {expected}");
    }
}

#[test]
fn what_the_python_validator_misses_is_found() {
    let mut meta = Meta::new(Datatype::CF32_LE, None);
    meta.captures[0].extra.insert("antenna:x".into(), 1.into());
    meta.global.extra.insert("bare".into(), 1.into());
    assert_eq!(meta.violations(), ["bare: has no namespace", "global core:extensions: 'antenna' is used and not declared"]);
    meta.declare("antenna", "1.0.0");
    meta.global.extra.clear();
    assert_eq!(meta.violations(), Vec::<String>::new());
}

#[test]
fn a_leap_day_to_the_nanosecond() {
    use std::time::{Duration, UNIX_EPOCH};
    assert_eq!(datetime(UNIX_EPOCH + Duration::from_nanos(951_782_400_000_000_005)), "2000-02-29T00:00:00.000000005Z");
}
