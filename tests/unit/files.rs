//! Files that are whole or not there: links, modes, leftovers.

use std::os::unix::fs::{PermissionsExt, symlink};

use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn links_are_followed_modes_are_kept_and_new_files_are_as_any_other() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("plain"), "").unwrap();
    write(&at("new"), b"1").unwrap();
    assert_eq!(mode(&at("new")), mode(&at("plain")));
    std::fs::set_permissions(at("new"), Permissions::from_mode(0o606)).unwrap();
    symlink("new", at("link")).unwrap();
    symlink("not there yet", at("dangling")).unwrap();
    write(&at("link"), b"2").unwrap();
    write(&at("dangling"), b"3").unwrap();
    assert_eq!((std::fs::read(at("new")).unwrap(), mode(&at("new"))), (b"2".to_vec(), 0o606));
    assert_eq!(std::fs::read(at("not there yet")).unwrap(), b"3");
    assert!(std::fs::symlink_metadata(at("link")).unwrap().is_symlink());
    assert_eq!(names(folder.path()), ["dangling", "link", "new", "not there yet", "plain"]);
    symlink("round", at("round")).unwrap();
    assert!(write(&at("round"), b"4").is_err());
}

#[test]
fn what_is_no_regular_file_is_written_to_and_stays_what_it_is() {
    write(Path::new("/dev/null"), b"gone").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    assert!(check_outputs([], &[Path::new("/dev/null"), Path::new("/dev/null"), Path::new("-"), Path::new("-")], false).is_ok());
}

#[test]
fn an_output_is_neither_an_input_nor_another_output_by_whatever_name() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("in"), "x").unwrap();
    std::fs::hard_link(at("in"), at("same")).unwrap();
    symlink("in", at("link")).unwrap();
    for name in ["in", "same", "link", "./in"] {
        let error = check_outputs([at("in").as_path()], &[&at(name)], true).unwrap_err().to_string();
        assert!(error.contains("is the input"), "{error}");
    }
    let twice = [at("new"), folder.path().join(".").join("new")];
    assert!(check_outputs([], &[&twice[0], &twice[1]], true).unwrap_err().to_string().contains("is the output"));
    assert!(check_outputs([at("in").as_path()], &[&at("new"), &at("other")], false).is_ok());
    assert!(check_outputs([], &[&at("in")], false).unwrap_err().to_string().contains("--force"));
    assert!(check_outputs([], &[&at("no folder/new")], false).is_err());
    assert_eq!(names(folder.path()), ["in", "link", "same"]);
}

#[test]
fn leftovers_of_the_dead_go_and_those_of_the_living_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    for name in [".out.dead.partial", ".out.alive.partial", ".out.young.partial", ".other.dead.partial"] {
        let file = File::create(at(name)).unwrap();
        if !name.contains("young") {
            file.set_modified(std::time::SystemTime::now() - 2 * YOUNG).unwrap();
        }
    }
    let alive = File::open(at(".out.alive.partial")).unwrap();
    alive.lock().unwrap();
    write(&at("out"), b"1").unwrap();
    assert_eq!(names(folder.path()), [".other.dead.partial", ".out.alive.partial", ".out.young.partial", "out"]);
}

#[test]
fn a_file_without_an_end_is_read_up_to_a_limit() {
    assert!(read(Path::new("/dev/zero"), 1_000_000).unwrap_err().to_string().contains("more than 1 MB"));
    assert_eq!(read(Path::new("/dev/null"), 0).unwrap(), b"");
}
