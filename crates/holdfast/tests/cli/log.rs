//! An array whose log can't be written: it continues to serve hosts.

use std::fs::File;
use std::io::{Read, Write};
use std::net::TcpStream;

use super::access::file;
use super::*;

const INITIATOR: &str = "iqn.2026-11.com.example:log";

/// Creates the host with which [`log_in`] logs in.
pub fn make_host(world: &World) {
    world.text(&["host", "create", "log", "--iqn", INITIATOR]);
}

/// Logs in on a connection to a portal, for discovery: it must succeed.
pub fn log_in(stream: &mut TcpStream) {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let text = format!("InitiatorName={INITIATOR}\0SessionType=Discovery\0");
    let mut pdu = vec![0; 48];
    // A login request, from the operational stage to the full feature phase (RFC 7143, 11.12).
    (pdu[0], pdu[1]) = (0x43, 0x87);
    pdu[7] = text.len() as u8;
    pdu[8] = 0x80;
    pdu.extend(text.as_bytes());
    pdu.resize(pdu.len().next_multiple_of(4), 0);
    stream.write_all(&pdu).unwrap();
    let mut answer = [0; 48];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!((answer[0], answer[36]), (0x23, 0), "{answer:02x?}");
}

/// Serves with this standard error, causes log lines, and checks that the array continues.
fn serves_with(stderr: Stdio, stdout: Option<Stdio>) {
    let world = World::new();
    world.make_pool();
    let pool = world.pool();
    let words = ["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0", "--json"];
    let mut command = world.command(&words);
    command.stdout(stdout.unwrap_or_else(Stdio::null)).stderr(stderr);
    let array = Array { child: command.spawn().unwrap(), reported: Value::Null };
    let start = Instant::now();
    while world.output(&["status"]).status.code() != Some(0) {
        assert!(start.elapsed() < PATIENCE, "the array did not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let wrong = file(&world, "wrong", "abcdef");
    let run: Value =
        serde_json::from_slice(&std::fs::read(pool.join("array.run")).unwrap()).unwrap();
    let (api, fingerprint) = (run["api"].as_str().unwrap(), run["fingerprint"].as_str().unwrap());
    for _ in 0..3 {
        // Each causes a line of the log.
        let list = ["volume", "list", "--api", api, "--token-file", &wrong];
        let list: Vec<&str> = list.into_iter().chain(["--fingerprint", fingerprint]).collect();
        assert!(world.refusal(3, &list).contains("token"));
    }
    world.text(&["volume", "create", "v", "--size", "1G"]);
    let portal = world.json(&["status"])["portals"][0].as_str().unwrap().to_owned();
    make_host(&world);
    log_in(&mut TcpStream::connect(portal).unwrap());
    array.stop();
}

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").unwrap().into()
}

#[test]
fn a_log_on_a_full_file_system_does_not_stop_the_array() {
    serves_with(full(), None);
    // As with `> log 2>&1`.
    serves_with(full(), Some(full()));
}

#[test]
fn a_log_without_a_reader_does_not_stop_the_array() {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    serves_with(writer.into(), None);
}

/// The exit code shows the kind of failure even if the message can't be printed.
#[test]
fn a_failure_has_its_code_even_if_it_cant_be_reported() {
    let world = World::new();
    for (code, words) in [(3, &["status"][..]), (1, &["serve", "nowhere/pool"])] {
        let status = world.command(words).stderr(full()).status().unwrap();
        assert_eq!(status.code(), Some(code), "{words:?}");
    }
}
