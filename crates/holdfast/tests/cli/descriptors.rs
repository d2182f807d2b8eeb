//! An array with a low limit of descriptors: silent connections do not take the descriptors of
//! others.

use std::net::{SocketAddr, TcpStream};

use super::log::{log_in, make_host};
use super::*;

/// Connects to a portal from one of this machine's addresses.
fn connect(from: &str, to: &str) -> Option<TcpStream> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stream = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind(format!("{from}:0").parse::<SocketAddr>().unwrap()).unwrap();
        socket.connect(to.parse().unwrap()).await.ok()?.into_std().ok()
    })?;
    stream.set_nonblocking(false).unwrap();
    Some(stream)
}

#[test]
fn silent_connections_of_one_address_leave_descriptors_for_others() {
    let world = World::new();
    world.make_pool();
    let pool = world.pool();
    let log = world.directory.path().join("log");
    // Both limits, so that the array can't raise the soft one.
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 256 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_holdfast")]);
    command.args(["serve", "--pool", pool.to_str().unwrap(), "--iscsi", "127.0.0.1:0", "--json"]);
    command.env("XDG_RUNTIME_DIR", world.directory.path()).stdin(Stdio::null());
    command.stdout(Stdio::piped()).stderr(std::fs::File::create(&log).unwrap());
    let array = World::started(command);
    make_host(&world);
    let portal = array.reported["portals"][0].as_str().unwrap();
    // More than the limit of the array; it closes the excess ones.
    let silent: Vec<_> = (0..400).filter_map(|_| connect("127.0.0.66", portal)).collect();
    assert!(silent.len() > 256, "{}", silent.len());
    for number in 0..5 {
        let mut host = connect("127.0.0.9", portal).unwrap();
        log_in(&mut host);
        world.text(&["volume", "create", &format!("v{number}"), "--size", "1G"]);
    }
    let counters = world.json(&["api", "GET", "/v1/counters"]);
    let open = counters["wire"]["connections"].as_u64().unwrap();
    assert!((1..64).contains(&open), "{open} connections are open");
    drop(silent);
    array.stop();
    let reported = std::fs::read_to_string(log).unwrap();
    assert!(reported.contains("this process may have 256 open files"), "{reported}");
    assert_eq!(reported.matches("was refused").count(), 1, "{reported}");
    assert!(!reported.contains("can't accept"), "{reported}");
}
