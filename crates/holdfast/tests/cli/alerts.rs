//! Alerts of the real binary: opened by conditions, notified, closed, and kept when it is killed.

use std::io::{Read, Write};
use std::net::{TcpStream, UdpSocket};

use super::*;

/// Logs in; returns the connection, and the status class and detail (RFC 7143, 11.12 and 11.13).
fn login(portal: &str, target: &str, initiator: &str) -> (TcpStream, (u8, u8)) {
    let text = format!("InitiatorName={initiator}\0TargetName={target}\0SessionType=Normal\0");
    let mut bytes = vec![0; 48];
    bytes[0] = 0x43;
    bytes[1] = 0x87;
    bytes[5..8].copy_from_slice(&(text.len() as u32).to_be_bytes()[1..]);
    bytes.extend_from_slice(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    let mut stream = TcpStream::connect(portal).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(&bytes).unwrap();
    let mut answer = [0; 48];
    stream.read_exact(&mut answer).unwrap();
    (stream, (answer[36], answer[37]))
}

#[test]
fn an_alert_is_opened_sent_closed_and_kept() {
    let world = World::new();
    world.make_pool();
    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let file = world.directory.path().join("holdfast.toml");
    let text = format!(
        "[[notify]]\nkind = \"syslog\"\nname = \"log\"\naddress = \"{}\"\naudit = true\n\
         [[notify]]\nkind = \"webhook\"\nname = \"nobody\"\nurl = \"http://127.0.0.1:1/\"\n\
         severity = \"critical\"\n",
        receiver.local_addr().unwrap()
    );
    std::fs::write(&file, text).unwrap();
    let array = world.serve(&["--config", file.to_str().unwrap()]);
    let until = |wanted: &str| {
        let mut bytes = [0; 4096];
        loop {
            let length = receiver.recv(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
            if text.contains(wanted) {
                return text;
            }
        }
    };
    assert!(world.text(&["alert", "list"]).contains("No alert is open."));
    world.text(&["host", "create", "h", "--iqn", "iqn.2026-11.com.example:h"]);
    let reported = until("admin (array_admin) from 127.0.0.1: POST /api/2.26/hosts");
    assert!(reported.starts_with("<109>1 "), "an entry of the audit log: {reported}");
    let portal = array.reported["portals"][0].as_str().unwrap();
    let target = array.reported["target_name"].as_str().unwrap();
    for _ in 0..5 {
        assert_eq!(login(portal, target, "iqn.1999-01.stranger:x").1, (2, 2));
    }
    let seen = world.json(&["initiator", "list"]);
    assert_eq!(seen[0]["name"], "iqn.1999-01.stranger:x");
    assert_eq!((&seen[0]["host"], &seen[0]["refused"]["count"]), (&json!(null), &json!(5)));
    assert_eq!(seen[0]["refused"]["address"], "127.0.0.1");
    let initiators = world.text(&["initiator", "list"]);
    assert!(initiators.contains("it is not a known host, or has no CHAP"), "{initiators}");
    let line = until("login-refused (warning) is open");
    assert!(line.starts_with("<28>1 ") && line.contains("iqn.1999-01.stranger:x"), "{line}");
    let open = world.json(&["alert", "list"]);
    assert_eq!((&open[0]["code"], &open[0]["state"]), (&json!(403), &json!("open")));
    let number = open[0]["name"].as_str().unwrap();
    assert!(world.text(&["alert", "show", number]).contains("holdfast host create"));
    assert_eq!(
        world.refusal(1, &["alert", "show", "99"]),
        "holdfast: Alert does not exist: 99. The list of alerts shows their numbers.\n"
    );
    // Each recipient gets a test message, and failures are reported.
    let output = world.output(&["alert", "test"]);
    assert_eq!(output.status.code(), Some(1));
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.contains("log          sent") && table.contains("127.0.0.1:1"), "{table}");
    until("this is a test of notifications");
    assert_eq!(world.json(&["alert", "list", "--severity", "critical"]), json!([]));
    world.refusal(2, &["alert", "list", "--severity", "awful"]);
    world.text(&["alert", "close", number]);
    array.kill();
    let array = world.serve(&[]);
    assert_eq!(world.json(&["alert", "list"]), json!([]));
    let all = world.json(&["alert", "list", "--all"]);
    assert_eq!((&all[0]["state"], &all[0]["created"]), (&json!("closed"), &open[0]["created"]));
    assert!(all[0]["created"].is_u64() && all[0]["notified"].is_u64());
    checks(&world);
    sessions(&world, &array.reported);
    array.stop();
}

fn checks(world: &World) {
    let text = world.text(&["host", "check", "h"]);
    assert!(text.starts_with("Host h: 0 good, 0 to improve, 15 not seen yet\n"), "{text}");
    assert!(text.contains("\nno_path_timeout") && text.contains("no_path_retry 24"), "{text}");
    let all = world.json(&["host", "check"]);
    assert_eq!((&all[0]["host"], &all[0]["rows"][0]["check"]), (&json!("h"), &json!("multipath")));
    world.refusal(1, &["host", "check", "other"]);
}

fn sessions(world: &World, reported: &Value) {
    assert_eq!(world.text(&["host", "sessions"]), "No host is logged in.\n");
    let (portal, target) = (&reported["portals"][0], reported["target_name"].as_str().unwrap());
    let name = "iqn.2026-11.com.example:h";
    let (stream, status) = login(portal.as_str().unwrap(), target, name);
    assert_eq!(status, (0, 0));
    let found = world.json(&["host", "sessions", "h"]);
    let seen = |field: &str| &found[0][field];
    assert_eq!((seen("host"), seen("initiator")), (&json!("h"), &json!(name)));
    assert_eq!(seen("portal_address"), portal);
    let peer = stream.local_addr().unwrap().to_string();
    assert!(seen("peer").as_str().is_some_and(|seen| peer.starts_with(seen)), "{found}");
    assert!(world.text(&["host", "sessions"]).contains(name));
    world.refusal(1, &["host", "sessions", "other"]);
}
