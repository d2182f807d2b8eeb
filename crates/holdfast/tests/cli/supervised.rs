//! `serve --supervised`: the array is killed, and hosts are not refused.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::*;

impl World {
    /// Returns the process that serves, by its run file.
    fn pid(&self) -> Option<u64> {
        let entries = fs::read_dir(self.directory.path().join("holdfast")).ok()?;
        let paths = entries.flatten().map(|entry| entry.path());
        let mut runs = paths.filter(|path| path.extension().is_some_and(|end| end == "run"));
        let run: Value = serde_json::from_slice(&fs::read(runs.next()?).ok()?).ok()?;
        run["pid"].as_u64()
    }

    /// Waits until another process than `before` serves verbs; returns it.
    fn wait_for_another(&self, before: u64) -> u64 {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            if let Some(pid) = self.pid().filter(|pid| *pid != before)
                && self.output(&["status"]).status.success()
            {
                return pid;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("the array was not started again");
    }
}

fn kill(signal: &str, pid: u64) {
    let status = Command::new("kill").args([signal, &pid.to_string()]).status().unwrap();
    assert!(status.success());
}

/// Sends a SCSI command before the login; returns whether the process that serves closes the
/// connection (RFC 7143, 6.3).
fn is_served(mut stream: TcpStream) -> bool {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut command = [0; 48];
    command[0] = 0x01;
    let closed = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    let reported = stream.write_all(&command).and_then(|()| stream.read_to_end(&mut Vec::new()));
    reported.map_or_else(|error| closed.contains(&error.kind()), |_| true)
}

#[test]
fn a_killed_array_is_started_again_and_no_connection_is_refused() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&["--supervised"]);
    let portal: SocketAddr = array.reported["portals"][0].as_str().unwrap().parse().unwrap();
    world.text(&["volume", "create", "v", "--size", "1G"]);
    let mut pid = world.pid().unwrap();
    assert_ne!(pid, u64::from(array.child.id()));
    for _ in 0..3 {
        kill("-KILL", pid);
        // At any time from here on: the first of them before any process accepts.
        let waiting: Vec<TcpStream> = (0..50)
            .map(|_| {
                std::thread::sleep(Duration::from_millis(2));
                TcpStream::connect(portal).expect("connections are accepted")
            })
            .collect();
        pid = world.wait_for_another(pid);
        assert!(waiting.into_iter().all(is_served));
        assert_eq!(world.json(&["volume", "list"]).as_array().unwrap().len(), 1);
    }
    array.stop();
    assert!(TcpStream::connect(portal).is_err(), "the portal still listens");
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
}

#[test]
fn an_array_that_ends_by_itself_is_not_started_again() {
    let world = World::new();
    world.make_pool();
    let mut array = world.serve(&["--supervised"]);
    kill("-TERM", world.pid().unwrap());
    assert!(array.child.wait().unwrap().success());
    // An error in the command line is reported once.
    let pool = world.pool();
    let words = ["serve", pool.to_str().unwrap(), "--supervised", "--iscsi", "203.0.113.1:9"];
    let output = world.output(&words);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("can't listen on 203.0.113.1:9"));
}
