//! Tests of access to management: who may manage an array, from where, and what is stored of it.

use std::io::Write;

use super::*;

/// Writes a file as a user would for `curl`; returns its path.
pub fn file(world: &World, name: &str, text: &str) -> String {
    let path = world.directory.path().join(name);
    std::fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

/// Returns the command line of a user with an API token, who verifies the array by the option
/// `how`.
fn as_user<'a>(words: &[&'a str], api: &'a str, token: &'a str, how: [&'a str; 2]) -> Vec<&'a str> {
    let place = ["--api", api, "--token-file", token];
    words.iter().copied().chain(place).chain(how).collect()
}

#[test]
fn users_do_what_their_role_allows_from_wherever_they_are() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    let stranger = World::new();
    let api = array.reported["api"].as_str().unwrap();
    let fingerprint = array.reported["fingerprint"].as_str().unwrap();
    assert_eq!(array.reported["url"], format!("https://{api}"));
    assert!(world.text(&["user", "list"]).contains("built in"));
    world.text(&["user", "create", "anna", "--role", "storage_admin"]);
    let made = world.json(&["token", "create", "laptop", "--user", "anna", "--expires", "1d"]);
    let secret = made["token"].as_str().unwrap();
    let token = file(&stranger, "token", secret);
    let pinned = ["--fingerprint", fingerprint];
    let create = as_user(&["volume", "create", "v", "--size", "1G"], api, &token, pinned);
    assert_eq!(stranger.json(&create)["name"], "v");
    let settings = as_user(&["array", "set", "--offload", "odx=off"], api, &token, pinned);
    assert!(stranger.refusal(1, &settings).contains("storage_admin"));
    let audit = as_user(&["audit"], api, &token, pinned);
    assert!(stranger.refusal(1, &audit).contains("storage_admin"));
    // By the certificate, which is beside the pool, and contains the loopback address.
    let certificate = world.pool().join("api-certificate.pem");
    let ca = ["--ca", certificate.to_str().unwrap()];
    let list = as_user(&["volume", "list"], api, &token, ca);
    assert_eq!(stranger.json(&list).as_array().unwrap().len(), 1);
    // Not to a server with another certificate, nor in the clear.
    let other = "ab".repeat(32);
    let list = as_user(&["volume", "list"], api, &token, ["--fingerprint", &other]);
    assert!(stranger.refusal(3, &list).contains(fingerprint));
    let plain = format!("http://{api}");
    let list = ["volume", "list", "--api", &plain, "--token-file", &token];
    stranger.refusal(3, &list);
    let elsewhere = format!("http://{}", "192.0.2.1:80");
    let far = ["volume", "list", "--api", &elsewhere, "--token-file", &token];
    assert!(stranger.refusal(2, &far).contains("encryption"));
    let both = as_user(&["volume", "list"], &plain, &token, pinned);
    assert!(stranger.refusal(2, &both).contains("http://"));

    assert!(world.text(&["token", "list"]).contains("laptop"));
    passwords_come_from_the_standard_input(&world);
    world.text(&["user", "set", "anna", "--role", "readonly"]);
    let list = as_user(&["volume", "list"], api, &token, pinned);
    assert_eq!(stranger.json(&list).as_array().unwrap().len(), 1);
    let create = as_user(&["volume", "create", "w", "--size", "1G"], api, &token, pinned);
    assert!(stranger.refusal(1, &create).contains("readonly"));
    world.text(&["token", "delete", "laptop", "--user", "anna"]);
    assert!(stranger.refusal(3, &list).contains("withdrawn"));
    world.refusal(1, &["user", "delete", "admin"]);
    world.refusal(1, &["user", "create", "otto", "--role", "root"]);
    survives(&world, array, secret);
}

/// Users and the audit log are in the pool; the certificate stays the same.
fn passwords_come_from_the_standard_input(world: &World) {
    let set = |password: &str| {
        let mut command = world.command(&["user", "password", "anna"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        child.stdin.take().unwrap().write_all(password.as_bytes()).unwrap();
        child.wait_with_output().unwrap()
    };
    let has = |world: &World| world.json(&["user", "list"])[1]["password"].as_bool().unwrap();
    assert!(!has(world));
    let refused = set("short\n");
    let text = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(1));
    assert!(text.contains("8 to 128 characters") && !text.contains("short"), "{text}");
    let made = set("correct horse\n");
    assert!(made.status.success() && has(world));
    assert!(!String::from_utf8(made.stdout).unwrap().contains("horse"));
    assert!(world.text(&["user", "list"]).contains("yes"));
    assert!(world.text(&["user", "password", "anna", "--remove"]).contains("no password"));
    assert!(!has(world));
    world.refusal(1, &["user", "password", "nobody", "--remove"]);
}

fn survives(world: &World, array: Array, secret: &str) {
    let fingerprint = array.reported["fingerprint"].clone();
    let log = world.json(&["audit"]);
    let rows: Vec<(&str, &str, &str)> = log
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            let text = |field: &str| row[field].as_str().unwrap();
            (text("user"), text("path"), text("outcome"))
        })
        .collect();
    assert_eq!(
        rows,
        [
            ("admin", "/api/2.26/admins", "invalid_role"),
            ("admin", "/api/2.26/admins", "built_in_user"),
            ("admin", "/v1/tokens/anna/laptop", "done"),
            ("admin", "/api/2.26/admins", "done"),
            ("admin", "/v1/users/nobody/password", "no_such_user"),
            ("admin", "/v1/users/anna/password", "done"),
            ("admin", "/api/2.26/admins", "done"),
            ("anna", "/v1/volumes", "done"),
            ("admin", "/v1/tokens", "done"),
            ("admin", "/api/2.26/admins", "done"),
        ]
    );
    assert!(!log.to_string().contains(secret));
    assert!(world.text(&["audit", "--limit", "1"]).contains("invalid_role"));
    array.kill();
    let array = world.serve(&[]);
    assert_eq!(array.reported["fingerprint"], fingerprint);
    assert_eq!(world.json(&["audit"]), log);
    let users = world.json(&["user", "list"]);
    assert_eq!((&users[1]["name"], &users[1]["role"]), (&json!("anna"), &json!("readonly")));
    for name in ["api-key.pem", "array.run"] {
        assert_eq!(mode(&world.pool().join(name)), 0o600, "{name}");
    }
    array.stop();
}

#[test]
fn plain_http_is_for_loopback_and_only_if_asked_for() {
    let world = World::new();
    world.make_pool();
    let pool = world.pool();
    let config = file(&world, "http.toml", "http = true\nallow_remote_api = true\n");
    let serve = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0"];
    let open = ["--config", &config, "--api", "0.0.0.0:0"];
    let open: Vec<&str> = serve.into_iter().chain(open).collect();
    assert!(world.refusal(2, &open).contains("not encrypted"));
    for more in [&["--config", config.as_str()][..], &["--api-http"]] {
        let array = world.serve(more);
        let api = array.reported["api"].as_str().unwrap();
        assert_eq!(array.reported["url"], format!("http://{api}"));
        assert_eq!(array.reported["fingerprint"], Value::Null);
        assert_eq!(world.json(&["status"])["portals"], array.reported["portals"]);
        let run_file = pool.join("array.run");
        let reported = ["status", "--api", api, "--token-file", run_file.to_str().unwrap()];
        assert_eq!(World::new().json(&reported)["portals"], array.reported["portals"]);
        array.stop();
    }
    assert!(!pool.join("api-key.pem").exists(), "a key was made for nothing");
}

#[test]
fn a_configured_certificate_is_used_and_must_match_its_key() {
    let world = World::new();
    world.make_pool();
    // A certificate of another array serves here.
    let first = world.serve(&[]);
    let fingerprint = first.reported["fingerprint"].clone();
    first.stop();
    let given = |name: &str| world.directory.path().join(name).to_str().unwrap().to_owned();
    for (from, to) in [("api-certificate.pem", "given.pem"), ("api-key.pem", "given.key")] {
        std::fs::rename(world.pool().join(from), given(to)).unwrap();
    }
    let text = |certificate: &str, key: &str| {
        format!("certificate = {:?}\nprivate_key = {:?}\n", given(certificate), given(key))
    };
    let config = file(&world, "given.toml", &text("given.pem", "given.key"));
    let array = world.serve(&["--config", &config]);
    assert_eq!(array.reported["fingerprint"], fingerprint);
    assert_eq!(world.json(&["status"])["portals"], array.reported["portals"]);
    array.stop();
    let config = file(&world, "wrong.toml", &text("given.key", "given.key"));
    let pool = world.pool();
    let words = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0", "--config"];
    let words: Vec<&str> = words.into_iter().chain([config.as_str()]).collect();
    assert_eq!(world.output(&words).status.code(), Some(4));
}

#[test]
fn a_renewed_certificate_is_shown_without_a_restart() {
    let (world, other) = (World::new(), World::new());
    world.make_pool();
    other.make_pool();
    // A certificate of another array serves here.
    let second = other.serve(&[]);
    let renewed = second.reported["fingerprint"].as_str().unwrap().to_owned();
    second.stop();
    let array = world.serve(&[]);
    let api = array.reported["api"].as_str().unwrap();
    let run_file = world.pool().join("array.run");
    for name in ["api-certificate.pem", "api-key.pem"] {
        std::fs::copy(other.pool().join(name), world.pool().join(name)).unwrap();
    }
    let reported = || {
        let run: Value = serde_json::from_slice(&std::fs::read(&run_file).unwrap()).unwrap();
        run["fingerprint"].as_str().unwrap().to_owned()
    };
    let mut turns = 0..1200;
    while reported() != renewed {
        assert!(turns.next().is_some(), "it was never shown");
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    // Verbs find the array by its run file, or are given the new fingerprint.
    assert_eq!(world.json(&["status"])["portals"], array.reported["portals"]);
    let token = run_file.to_str().unwrap();
    let status = as_user(&["status"], api, token, ["--fingerprint", &renewed]);
    assert_eq!(world.json(&status)["portals"], array.reported["portals"]);
    let old = array.reported["fingerprint"].as_str().unwrap();
    world.refusal(3, &as_user(&["status"], api, token, ["--fingerprint", old]));
    array.stop();
    assert!(!run_file.exists());
}
