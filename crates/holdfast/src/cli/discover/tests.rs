//! Tests of finding the running array among run files of ended ones.

use super::*;

#[test]
fn run_files_of_ended_processes_are_removed() {
    let dir = tempfile::tempdir().unwrap();
    let own = format!("{}.run", std::process::id());
    // No process has a number this high (Linux, PID_MAX_LIMIT: 4,194,304).
    for name in ["4999999.run", "4999998.run", &own, "notes.run", "4999997.txt"] {
        fs::write(dir.path().join(name), "{}").unwrap();
    }
    remove_stale(dir.path());
    let entries = fs::read_dir(dir.path()).unwrap().flatten();
    let mut left: Vec<String> =
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect();
    left.sort();
    let mut wanted = vec![own, "4999997.txt".to_owned(), "notes.run".to_owned()];
    wanted.sort();
    assert_eq!(left, wanted);
    remove_stale(&dir.path().join("not-there"));
}

/// An array that was killed, and restarted while its first device was missing.
#[test]
fn a_stale_run_file_does_not_hide_the_running_array() {
    let directory = tempfile::tempdir().unwrap();
    let place = |name: &str| directory.path().join(name);
    let run = |pid: u32, pool: &str, others: &[&str]| RunFile {
        v: 1,
        api: "127.0.0.1:1".parse().unwrap(),
        token: "secret".into(),
        fingerprint: None,
        pid,
        pool: place(pool),
        places: others.iter().map(|name| place(name)).collect(),
    };
    fs::create_dir(place("disk1")).unwrap();
    write_run_file(&place("disk1").join(RUN_FILE), &run(4_999_999, "disk1", &["disk2"])).unwrap();
    let own = run(std::process::id(), "disk2", &["disk1"]);
    for name in ["disk1", "disk2"] {
        let found = serving(&place(name), || vec![own.clone()]);
        assert_eq!(found.map(|run| run.pid), Some(own.pid), "{name}");
    }
    assert!(serving(&place("disk1"), Vec::new).is_none());
    assert!(serving(&place("disk3"), || vec![own.clone()]).is_none());
}

/// As on a full filesystem: the array runs, and the file of an earlier run is removed.
#[test]
fn an_array_starts_even_if_its_run_file_cant_be_written() {
    let directory = tempfile::tempdir().unwrap();
    let run = RunFile {
        v: 1,
        api: "127.0.0.1:1".parse().unwrap(),
        token: "secret".into(),
        fingerprint: None,
        pid: std::process::id(),
        pool: directory.path().to_owned(),
        places: Vec::new(),
    };
    let path = directory.path().join(RUN_FILE);
    fs::create_dir_all(path.join("in the way")).unwrap();
    let registered = Registered::new(&run);
    assert!(!registered.paths.contains(&path));
    drop(registered);
    fs::remove_dir_all(&path).unwrap();
    let registered = Registered::new(&run);
    assert!(registered.paths.contains(&path) && path.is_file());
    drop(registered);
    assert!(!path.exists());
}
