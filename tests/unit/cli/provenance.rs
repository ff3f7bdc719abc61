use super::*;

#[test]
fn hashes_are_those_of_the_standard() {
    // FIPS 180-4: "abc" and the empty message.
    let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(sha256_of(b"abc"), abc);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x");
    std::fs::write(&path, "abc").unwrap();
    assert_eq!(sha256(&path).unwrap(), abc);
    std::fs::write(&path, "").unwrap();
    assert_eq!(sha256(&path).unwrap(), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    assert!(sha256(&folder.path().join("not there")).is_err());
}

#[test]
fn of_a_recording_both_files_count() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.sigmf-meta", "a.sigmf-data", "b.cf32"] {
        std::fs::write(folder.path().join(name), name).unwrap();
    }
    let names = |name: &str| -> Vec<String> {
        files_of(&folder.path().join(name)).iter().map(|p| p.file_name().unwrap().to_string_lossy().into_owned()).collect()
    };
    for name in ["a", "a.sigmf-meta", "a.sigmf-data"] {
        assert_eq!(names(name), ["a.sigmf-data", "a.sigmf-meta"], "{name}");
    }
    assert_eq!(names("b.cf32"), ["b.cf32"]);
    // Nor has a folder that is no pair any.
    assert!(names("nothing").is_empty() && names("").is_empty());
}

#[test]
fn options_keep_their_types() {
    assert_eq!(
        [typed("true"), typed("5e3"), typed("0.5"), typed("18446744073709551615")],
        [json!(true), json!(5000), json!(0.5), json!(18446744073709551615.0)]
    );
    assert_eq!([typed("klms"), typed("nan"), typed("")], [json!("klms"), json!("nan"), json!("")]);
}
