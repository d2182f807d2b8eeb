//! TCP ports that stay reserved for an array until the tests end, even while it is down.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::random::Random;

/// The first port to try. Common services listen at lower ones.
const FIRST: u16 = 10_000;
/// How many candidates are tried for each port.
const TRIES: usize = 1_000;

/// Abstract sockets by which other test processes see the ports reserved here, until this one ends.
static TAKEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Returns loopback ports at which no process listens and that stay free while an array is down:
/// they are below the kernel's ephemeral range, and reserved against other test processes.
pub fn reserve(count: usize) -> Result<Vec<u16>> {
    let mut taken = TAKEN.lock().unwrap_or_else(PoisonError::into_inner);
    let end = first_of_kernel().max(FIRST + 1);
    let now = SystemTime::now().duration_since(UNIX_EPOCH)?;
    let mut random = Random::new(now.as_nanos() as u64 ^ u64::from(std::process::id()));
    let mut ports = Vec::with_capacity(count);
    for _ in 0..count * TRIES {
        if ports.len() == count {
            break;
        }
        let port = FIRST + random.below(u64::from(end - FIRST)) as u16;
        // Unlike a file, an abstract name disappears with its process.
        let name = SocketAddr::from_abstract_name(format!("holdfast-peers-port-{port}"))?;
        let Ok(reservation) = UnixListener::bind_addr(&name) else { continue };
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            taken.push(reservation);
            ports.push(port);
        }
    }
    ensure!(ports.len() == count, "no {count} free ports from {FIRST} to {end}");
    Ok(ports)
}

/// Returns the first port of the kernel's ephemeral range.
fn first_of_kernel() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range");
    let first = range.ok().and_then(|range| range.split_whitespace().next()?.parse().ok());
    first.unwrap_or(32_768)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reserved_port_is_unique_and_outside_the_ephemeral_range() {
        let ports = reserve(50).unwrap();
        for port in &ports {
            assert!((FIRST..first_of_kernel()).contains(port), "{port}");
            let name = SocketAddr::from_abstract_name(format!("holdfast-peers-port-{port}"));
            assert!(UnixListener::bind_addr(&name.unwrap()).is_err(), "{port} is free");
        }
        let others = reserve(50).unwrap();
        assert!(ports.iter().all(|port| !others.contains(port)));
    }
}
