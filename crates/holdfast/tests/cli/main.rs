//! The real binary, used as by an administrator: every verb, its refusals and its exit codes.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

mod access;
mod alerts;
mod certificates;
mod clock;
mod descriptors;
mod devices;
mod directory;
mod first;
mod log;
mod network;
mod notify;
mod objects;
mod operations;
mod salvage;
mod snapshots;
mod stored;
mod stripes;
mod supervised;

/// The timeout for an array to start or to end.
const PATIENCE: Duration = Duration::from_secs(60);

/// A directory with a pool in it, and the environment of a user.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    fn pool(&self) -> PathBuf {
        self.directory.path().join("pool")
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_holdfast"));
        command.args(words).env("XDG_RUNTIME_DIR", self.directory.path()).stdin(Stdio::null());
        for name in ["POOL", "API", "TOKEN", "TOKEN_FILE", "CA", "FINGERPRINT"] {
            command.env_remove(format!("HOLDFAST_{name}"));
        }
        command
    }

    fn output(&self, words: &[&str]) -> Output {
        self.command(words).output().unwrap()
    }

    /// Runs a verb that must succeed; returns its output.
    fn text(&self, words: &[&str]) -> String {
        let output = self.output(words);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(0), "{words:?}: {error}");
        String::from_utf8(output.stdout).unwrap()
    }

    fn json(&self, words: &[&str]) -> Value {
        let words: Vec<&str> = words.iter().copied().chain(["--json"]).collect();
        serde_json::from_str(&self.text(&words)).unwrap()
    }

    /// Runs a verb that must fail with `code`; returns its message of one line.
    fn refusal(&self, code: i32, words: &[&str]) -> String {
        let output = self.output(words);
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(output.stdout.is_empty(), "{words:?}");
        assert_eq!(error.lines().count(), 1, "{words:?}: {error}");
        error
    }

    fn make_pool(&self) -> Value {
        self.json(&["pool", "create", self.pool().to_str().unwrap(), "--capacity", "1G"])
    }

    fn serve(&self, more: &[&str]) -> Array {
        let pool = self.pool();
        let words = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0", "--json"];
        let mut command = self.command(&words);
        command.args(more).stdout(Stdio::piped());
        Self::started(command)
    }

    /// Starts an array with `--json`; returns it once it reports that it serves.
    fn started(mut command: Command) -> Array {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut text = String::new();
        let reported = loop {
            // The end of the output also ends the wait: the array has printed the reason on its
            // standard error.
            assert!(lines.read_line(&mut text).unwrap() > 0, "the array did not start");
            if let Ok(reported) = serde_json::from_str(&text) {
                break reported;
            }
        };
        Array { child, reported }
    }
}

/// A running array; killed if the test ends without stopping it.
struct Array {
    child: Child,
    reported: Value,
}

impl Array {
    /// Stops it as an administrator would, and waits.
    fn stop(mut self) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(status) = self.child.try_wait().unwrap() {
                assert!(status.success(), "{status}");
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the array did not end");
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Array {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn usage_faults_are_2_and_no_array_is_3() {
    let world = World::new();
    for words in [
        &["volume", "create", "v"][..],
        &["volume", "create", "v", "--size", "10X"],
        &["frobnicate"],
        &["host", "create", "h"],
        &[],
    ] {
        assert_eq!(world.output(words).status.code(), Some(2), "{words:?}");
    }
    for words in [&["status"][..], &["volume", "list"], &["disconnect", "v", "h"]] {
        assert!(world.refusal(3, words).contains("holdfast serve"), "{words:?}");
    }
    let missing = world.pool();
    world.refusal(3, &["status", "--pool", missing.to_str().unwrap()]);
    world.refusal(2, &["status", "--api", "127.0.0.1:9"]);
    let token = world.directory.path().join("token");
    std::fs::write(&token, "abc\n").unwrap();
    let far = ["status", "--api", "127.0.0.1:9", "--token-file", token.to_str().unwrap()];
    assert!(world.refusal(2, &far).contains("--fingerprint"));
    let digits = "ab".repeat(32);
    let far: Vec<&str> = far.into_iter().chain(["--fingerprint", &digits]).collect();
    assert!(world.refusal(3, &far).contains("127.0.0.1:9"));
    let serve = ["serve", "--iscsi", "127.0.0.1:0"];
    assert!(world.refusal(2, &serve).contains("--pool"));
    let open = ["serve", "--pool", "x", "--iscsi", "127.0.0.1:0", "--api", "0.0.0.0:0"];
    assert!(world.refusal(2, &open).contains("allow_remote_api"));
    let many = ["127.0.0.1:0"; 257].join(",");
    let many = ["serve", "--pool", "nowhere", "--iscsi", &many];
    assert!(world.refusal(2, &many).contains("1 to 256 iSCSI addresses"));
    world.refusal(1, &["serve", "--pool", "nowhere", "--iscsi", "127.0.0.1:0"]);
    world.refusal(1, &["inspect", "nowhere"]);
}

#[test]
fn a_pool_is_created_only_once() {
    let world = World::new();
    let pool = world.pool();
    let pool = pool.to_str().unwrap();
    let small = ["pool", "create", pool, "--capacity", "512M"];
    assert!(world.refusal(1, &small).contains("at least 1 GiB"));
    assert!(!world.pool().exists(), "a directory was left behind");
    let made = world.make_pool();
    assert_eq!(made["capacity_bytes"], 1 << 30);
    assert_eq!(std::fs::metadata(world.pool().join("pool.data")).unwrap().len(), 1 << 30);
    assert_eq!(mode(&world.pool().join("pool.data")), 0o600);
    let again = ["pool", "create", pool, "--capacity", "1G"];
    assert!(world.refusal(1, &again).contains("there is a pool"));
    let file = world.directory.path().join("file");
    std::fs::write(&file, "something").unwrap();
    world.refusal(2, &["pool", "create", file.to_str().unwrap(), "--capacity", "1G"]);
    assert_eq!(std::fs::read(&file).unwrap(), b"something");
}

#[test]
fn an_administrator_does_a_days_work() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&["--api", "127.0.0.1:0"]);
    let run_file = world.pool().join("array.run");
    assert_eq!(mode(&run_file), 0o600);
    let status = world.json(&["status"]);
    assert_eq!(status["target_name"], array.reported["target_name"]);
    assert_eq!(status["portals"], array.reported["portals"]);
    assert!(world.text(&["status"]).contains("Capacity:"));

    let db1 = world.json(&["volume", "create", "db1", "--size", "10G"]);
    assert_eq!((&db1["size_bytes"], &db1["block_bytes"]), (&json!(10_u64 << 30), &json!(512)));
    let serial = db1["serial"].as_str().unwrap();
    assert!(serial.len() == 24 && db1["naa"].as_str().unwrap().ends_with(&serial.to_lowercase()));
    world.text(&["volume", "create", "db2", "--size", "64T", "--block-size", "4096"]);
    assert_eq!(
        world.refusal(1, &["volume", "create", "DB1", "--size", "1G"]),
        "holdfast: Volume already exists: DB1. Choose another name.\n"
    );
    world.refusal(1, &["volume", "create", "a/b", "--size", "1G"]);
    world.refusal(1, &["volume", "create", "big", "--size", "65T"]);
    assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 2);
    assert!(world.text(&["volume", "list"]).contains("64 TiB"));

    let secret = world.directory.path().join("secret");
    std::fs::write(&secret, "correct horse battery\n").unwrap();
    let iqns = ["iqn.2026-11.com.example:esx1", "iqn.2026-11.com.example:esx1b"];
    let host = ["host", "create", "esx1", "--iqn", iqns[0], iqns[1], "--chap-user", "u"];
    let host: Vec<&str> =
        host.into_iter().chain(["--chap-secret-file", secret.to_str().unwrap()]).collect();
    assert_eq!(world.json(&host)["iqns"], json!(iqns));
    assert!(!world.text(&["host", "show", "esx1", "--json"]).contains("horse"));
    let taken = ["host", "create", "esx2", "--iqn", iqns[1]];
    assert!(world.refusal(1, &taken).contains("already in use by host esx1"));
    let wrong = ["host", "create", "esx_2", "--iqn", "iqn.2026-11.com.example:esx2"];
    assert!(world.refusal(1, &wrong).contains("esx_2"));

    assert_eq!(world.json(&["connect", "db1", "esx1"])["lun"], 1);
    assert_eq!(world.json(&["connect", "db2", "esx1", "--lun", "7"])["lun"], 7);
    assert!(world.refusal(1, &["connect", "db1", "esx1"]).contains("Connection already exists."));
    assert!(world.refusal(1, &["connect", "db1", "none"]).contains("Host does not exist"));
    assert!(world.text(&["volume", "show", "db1"]).contains("esx1 (LUN 1)"));
    assert!(world.text(&["host", "show", "esx1"]).contains("db2"));
    assert!(world.refusal(1, &["volume", "destroy", "db1"]).contains("existing connections"));
    assert!(world.refusal(1, &["host", "delete", "esx1"]).contains("existing connections"));

    assert!(world.refusal(1, &["volume", "resize", "db1", "--size", "1G"]).contains("truncate"));
    world.text(&["volume", "resize", "db1", "--size", "1G", "--truncate"]);
    world.text(&["volume", "rename", "db1", "db3"]);
    assert!(world.refusal(1, &["volume", "show", "db1"]).contains("does not exist"));
    let again =
        ["serve", "--pool", array.reported["serving"].as_str().unwrap(), "--iscsi", "127.0.0.1:0"];
    assert!(world.refusal(1, &again).contains("in use"));
    let in_use = ["inspect", array.reported["serving"].as_str().unwrap()];
    assert!(world.refusal(1, &in_use).contains("in use"));

    and_starts_again(&world, array, &db1);
}

/// Changes by an administrator survive the process, however it ends; then everything is removed.
fn and_starts_again(world: &World, array: Array, db1: &Value) {
    array.kill();
    world.refusal(3, &["status"]);
    let array = world.serve(&[]);
    let db3 = world.json(&["volume", "show", "db3"]);
    assert_eq!((&db3["serial"], &db3["naa"]), (&db1["serial"], &db1["naa"]));
    assert_eq!(db3["size_bytes"], 1 << 30);
    assert_eq!(db3["connected_to"][0]["lun"], 1);
    world.text(&["disconnect", "db3", "esx1"]);
    world.refusal(1, &["disconnect", "db3", "esx1"]);
    world.text(&["disconnect", "db2", "esx1"]);
    world.text(&["volume", "destroy", "db3", "--eradicate"]);
    world.text(&["volume", "destroy", "db2", "--eradicate"]);
    world.text(&["host", "delete", "esx1"]);
    assert_eq!(world.json(&["host", "list"]), json!([]));
    array.stop();
    assert!(!world.pool().join("array.run").exists());
    world.refusal(3, &["status"]);
}

#[test]
fn offloads_are_switched_for_a_volume_and_for_the_array() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    assert!(world.text(&["volume", "show", "v"]).contains("all on"));
    let set = world.json(&["volume", "set", "v", "--offload", "full-copy=off"]);
    assert_eq!(set["offloads"]["extended_copy"], false);
    assert_eq!(set["offloads"]["compare_and_write"], true);
    let set = world.json(&["array", "set", "--offload", "all=off,reclaim=on"]);
    assert_eq!(
        (&set["offloads"]["unmap"], &set["offloads"]["token_copy"]),
        (&json!(true), &json!(false))
    );
    array.kill();
    let array = world.serve(&[]);
    let shown = world.json(&["volume", "show", "v"]);
    assert_eq!(shown["offloads"]["compare_and_write"], true);
    assert_eq!(shown["offloads_in_effect"]["compare_and_write"], false);
    assert_eq!(shown["offloads_in_effect"]["unmap"], true);
    let text = world.text(&["volume", "show", "v"]);
    assert!(text.contains("no ats, full-copy, block-zero, odx (its own setting: no full-copy)"));
    assert!(world.text(&["volume", "list"]).contains("no ats, full-copy, block-zero, odx"));
    assert!(world.text(&["array", "show"]).contains("no ats, full-copy, block-zero, odx"));
    world.text(&["array", "set", "--offload", "all=on"]);
    assert!(world.text(&["volume", "list"]).contains("no full-copy"));
    assert!(world.refusal(1, &["volume", "set", "w", "--offload", "ats=off"]).contains("exist"));
    array.stop();
}

#[test]
fn two_arrays_are_distinguished() {
    let (one, mut two) = (World::new(), World::new());
    one.make_pool();
    two.make_pool();
    let first = one.serve(&[]);
    // Both users share a run directory.
    let pool = two.pool();
    let _keep = std::mem::replace(&mut two.directory, tempfile::tempdir().unwrap());
    let words = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0", "--json"];
    let mut child = one.command(&words).stdout(Stdio::piped()).spawn().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    assert!(output.read_line(&mut line).unwrap() > 0);
    let second = Array { child, reported: Value::Null };
    let several = one.refusal(3, &["status"]);
    assert!(several.contains(pool.to_str().unwrap()) && several.contains("--pool"), "{several}");
    let by_pool = one.json(&["status", "--pool", one.pool().to_str().unwrap()]);
    assert_eq!(by_pool["target_name"], first.reported["target_name"]);
    let api = first.reported["api"].as_str().unwrap();
    let by_api = one.json(&["status", "--api", api]);
    assert_eq!(by_api["target_name"], first.reported["target_name"]);
    let run_file = one.pool().join("array.run");
    let reported = ["status", "--api", api, "--token-file", run_file.to_str().unwrap()];
    assert_eq!(two.json(&reported)["target_name"], first.reported["target_name"]);
    let wrong = two.directory.path().join("token");
    std::fs::write(&wrong, "abcdef").unwrap();
    let fingerprint = first.reported["fingerprint"].as_str().unwrap();
    let reported = ["status", "--api", api, "--token-file", wrong.to_str().unwrap()];
    let reported: Vec<&str> = reported.into_iter().chain(["--fingerprint", fingerprint]).collect();
    assert!(two.refusal(3, &reported).contains("token"));
    second.kill();
    // The run file of the killed array is recognised as stale.
    assert_eq!(one.json(&["status"])["target_name"], first.reported["target_name"]);
    first.stop();
}

#[test]
fn the_configuration_takes_effect() {
    let world = World::new();
    world.make_pool();
    let file = world.directory.path().join("holdfast.toml");
    std::fs::write(&file, "durabilty = \"flush\"\n").unwrap();
    let pool = world.pool();
    let words = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0", "--config"];
    let words: Vec<&str> = words.into_iter().chain([file.to_str().unwrap()]).collect();
    assert!(world.refusal(2, &words).contains("line 1"));
    let text = "durability = \"flush\"\ntarget_name = \"iqn.2026-11.com.example:lab\"\n\
                array_name = \"lab\"\ncompany_id = \"24-A9-37\"\n";
    std::fs::write(&file, text).unwrap();
    let array = world.serve(&["--config", file.to_str().unwrap()]);
    let status = world.json(&["status"]);
    assert_eq!((&status["name"], &status["durability"]), (&json!("lab"), &json!("flush")));
    assert_eq!(status["target_name"], "iqn.2026-11.com.example:lab");
    let volume = world.json(&["volume", "create", "v", "--size", "1G"]);
    assert!(volume["naa"].as_str().unwrap().starts_with("naa.624a9370"));
    array.stop();
    // The settings of the file are kept in the pool.
    let array = world.serve(&[]);
    assert_eq!(world.json(&["status"])["name"], "lab");
    array.stop();
}

#[test]
fn inspect_finds_an_unused_pool_sound() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    array.stop();
    let pool = world.pool();
    let report = world.json(&["inspect", pool.to_str().unwrap()]);
    assert_eq!(report["findings"], json!([]));
    world.text(&["inspect", pool.to_str().unwrap(), "--volume", "v"]);
    world.refusal(1, &["inspect", pool.to_str().unwrap(), "--volume", "none"]);
}
