//! Recipients of alerts: what verbs set is kept, gets messages, and is removed.

use std::net::{TcpListener, UdpSocket};
use std::time::Duration;

use super::*;

#[test]
fn receivers_are_set_tested_kept_and_removed() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    assert!(world.text(&["notify", "test"]).contains("The pool has no recipients"));
    let secret = world.directory.path().join("password");
    std::fs::write(&secret, "horse\n").unwrap();
    let secret = secret.to_str().unwrap();
    // It accepts connections and never responds, so sending mail must fail within a timeout.
    let mail = TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = mail.local_addr().unwrap().to_string();
    drop(mail);
    let set = ["notify", "mail", "--relay", &relay, "--sender-domain", "example.com"];
    let reported = world.text(&[&set[..], &["--subject-prefix", "LAB"]].concat());
    assert!(reported.contains(&relay) && reported.contains("LAB"), "{reported}");
    let login = ["notify", "mail", "--user", "array", "--password-file", secret];
    let error = world.refusal(1, &login);
    assert!(error.contains("not sent without encryption"), "{error}");
    let reported = world.text(&[&login[..], &["--encryption", "starttls"]].concat());
    assert!(reported.contains("starttls") && !reported.contains("horse"), "{reported}");
    let error = world.refusal(1, &["notify", "mail", "--relay", "other.example.com"]);
    assert!(error.contains("give the password again"), "{error}");
    world.text(&["notify", "watcher", "add", "anna@example.com", "otto@example.com"]);
    world.text(&["notify", "watcher", "disable", "otto@example.com"]);
    let error = world.refusal(1, &["notify", "watcher", "add", "nobody"]);
    assert!(error.contains("is not a mail address"), "{error}");
    let syslog = UdpSocket::bind("127.0.0.1:0").unwrap();
    syslog.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let uri = format!("udp://{}", syslog.local_addr().unwrap());
    world.text(&["notify", "syslog", "add", "log", "udp://127.0.0.1:9"]);
    world.text(&["notify", "syslog", "set", "log", &uri]);
    assert!(world.text(&["notify", "test", "log"]).contains("sent"));
    let mut line = [0; 4096];
    let sent = loop {
        let read = syslog.recv(&mut line).unwrap();
        let text = String::from_utf8_lossy(&line[..read]).into_owned();
        if text.contains("this is a test of notifications") {
            break text;
        }
    };
    assert!(sent.starts_with('<'), "{sent}");
    let tested = world.output(&["notify", "test"]);
    let reported = String::from_utf8(tested.stdout).unwrap();
    assert_eq!(tested.status.code(), Some(1), "{reported}");
    assert!(
        reported.contains("anna@example.com") && reported.contains("It is not enabled"),
        "{reported}"
    );
    let error = world.refusal(1, &["notify", "test", "nobody"]);
    assert!(error.contains("is not a watcher"), "{error}");
    array.kill();
    let array = world.serve(&[]);
    let kept = world.json(&["notify", "show"]);
    assert_eq!(kept["relay"]["relay_host"], json!(relay));
    assert_eq!(kept["watchers"][1], json!({"name": "otto@example.com", "enabled": false}));
    assert_eq!(kept["syslog_servers"], json!([{"name": "log", "uri": uri}]));
    assert!(!kept.to_string().contains("horse"));
    world.text(&["notify", "watcher", "remove", "anna@example.com", "otto@example.com"]);
    world.text(&["notify", "syslog", "remove", "log"]);
    let none = ["--relay", "none", "--user", "none", "--encryption", "none"];
    let others = ["--sender-domain", "none", "--subject-prefix", "none"];
    world.text(&[&["notify", "mail"][..], &none[..], &others[..]].concat());
    let reported = world.text(&["notify", "show"]);
    assert!(!reported.contains("example.com") && !reported.contains("LAB"), "{reported}");
    array.stop();
}

fn set<'a>(rest: &[&'a str]) -> Vec<&'a str> {
    [&["notify", "snmp", "set"], rest].concat()
}

#[test]
fn snmp_managers_are_added_sent_to_kept_and_removed() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    let secret = world.directory.path().join("community");
    std::fs::write(&secret, "horse\n").unwrap();
    let secret = secret.to_str().unwrap();
    let snmp = UdpSocket::bind("127.0.0.1:0").unwrap();
    snmp.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let manager = snmp.local_addr().unwrap().to_string();
    let add = ["notify", "snmp", "add", "nms", &manager, "--community-file", secret];
    assert!(world.text(&add).contains("receives alerts by SNMP v2c"));
    let v3 = ["notify", "snmp", "add", "nms3", &manager, "--user", "array"];
    let error = world.refusal(1, &[&v3[..], &["--auth-passphrase-file", secret]].concat());
    assert!(error.contains("passphrase"), "{error}");
    world.text(&v3);
    assert!(world.text(&["notify", "test", "nms", "nms3"]).contains("sent"));
    let mut line = [0; 4096];
    let traps: Vec<String> = (0..2)
        .map(|_| {
            let read = snmp.recv(&mut line).unwrap();
            String::from_utf8_lossy(&line[..read]).into_owned()
        })
        .collect();
    for part in ["this is a test of notifications", "horse"] {
        assert!(traps.iter().any(|trap| trap.contains(part)), "{part}: {traps:?}");
    }
    // Changes: what is not named stays, and a community goes to no other host by itself.
    assert!(world.refusal(1, &set(&["nms", "--host", "192.0.2.9"])).contains("community"));
    let moved = set(&["nms", "--host", "192.0.2.9", "--community-file", secret, "--inform", "on"]);
    assert!(world.text(&moved).contains("nms at 192.0.2.9 receives alerts by SNMP v2c"));
    let wrong = world.refusal(1, &set(&["nms", "--user", "array"]));
    assert!(wrong.contains("version 3"), "{wrong}");
    let wrong = world.refusal(1, &set(&["nms3", "--community-file", secret]));
    assert!(wrong.contains("version 2c"), "{wrong}");
    let passphrase = world.directory.path().join("passphrase");
    std::fs::write(&passphrase, "correct horse\n").unwrap();
    let passphrase = passphrase.to_str().unwrap();
    let auth = ["nms3", "--auth", "SHA", "--auth-passphrase-file", passphrase];
    let privacy = ["--privacy", "AES", "--privacy-passphrase-file", passphrase];
    world.text(&set(&[&auth[..], &privacy[..]].concat()));
    assert!(world.refusal(1, &set(&["nms3", "--auth", "none"])).contains("authenticated"));
    world.text(&set(&["nms3", "--auth", "none", "--privacy", "none"]));
    assert!(world.refusal(2, &set(&["nms3"])).contains("required"));
    array.kill();
    let array = world.serve(&[]);
    let kept = world.json(&["notify", "show"]);
    let nms = json!({"name": "nms", "host": "192.0.2.9", "version": "v2c",
        "notification": "inform"});
    assert_eq!(kept["snmp_managers"][0], nms);
    assert!(!kept.to_string().contains("horse"));
    world.text(&["notify", "snmp", "remove", "nms", "nms3"]);
    assert_eq!(world.json(&["notify", "show"])["snmp_managers"], json!([]));
    array.stop();
}
