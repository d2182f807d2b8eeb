//! Ports that are an array's until the tests end, whether it runs or not.

use std::net::TcpListener;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Result, ensure};

use crate::random::Random;

/// The first port that is taken. What listens by default has lower ones.
const FIRST: u16 = 10_000;
/// How many ports are tried for one.
const TRIES: usize = 1_000;

/// What other tests see of the ports that are taken here, until this process ends.
static TAKEN: Mutex<Vec<UnixListener>> = Mutex::new(Vec::new());

/// Returns ports of loopback at which nothing listens, and that nothing takes while an array is
/// down: the kernel takes none of them for a socket that asks for any port, and other tests none
/// that is reserved.
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
        // A name ends with the process that has it, as a file would not.
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

/// Returns the first of the ports that the kernel takes for sockets that ask for any.
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
