//! The listening address of management.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::thread;
use std::time::{Duration, Instant};

use management::http::Bound;
use management::place::ApiPlace;

use super::failure::Failure;

/// The default address of management, if its port is free.
const API_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3280);

/// Returns the management address. Plain HTTP never leaves the machine, and even HTTPS is offered
/// to a network only on request.
pub(super) fn api_address(
    asked: Option<&ApiPlace>,
    allow_remote: bool,
    plain: bool,
) -> Result<SocketAddr, Failure> {
    let address = match asked {
        Some(asked) => asked.address().ok_or_else(|| {
            Failure::Usage(format!(
                "--api (or HOLDFAST_API) {asked}: serve listens on an address, not on a name"
            ))
        })?,
        None => API_DEFAULT,
    };
    if address.ip().is_loopback() {
        return Ok(address);
    }
    let why = match (plain, allow_remote) {
        (true, _) => "and management is not encrypted: leave out http",
        (false, false) => {
            "so others could reach it: set allow_remote_api = true in the configuration"
        }
        (false, true) => return Ok(address),
    };
    Err(Failure::Usage(format!(
        "--api (or HOLDFAST_API) {address} is not a loopback address, {why}, or use 127.0.0.1"
    )))
}

/// How long the process that has taken the pool over waits for the address: the previous process
/// may be ending, with sockets that are not closed yet.
const IN_USE_MAX: Duration = Duration::from_secs(2);
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// Like [`bind`], after another process that may not have ended completely.
pub(super) fn bind_after_another(api: SocketAddr, may_move: bool) -> Result<Bound, Failure> {
    let began = Instant::now();
    while began.elapsed() < IN_USE_MAX {
        match Bound::new(api) {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => thread::sleep(LOOK_INTERVAL),
            Err(_) => break,
            Ok(bound) => return Ok(bound),
        }
    }
    bind(api, may_move)
}

/// Binds the management address. If it is only the default, a taken port is not a failure: another
/// array may have it, and verbs find the port that is used instead.
pub(super) fn bind(api: SocketAddr, may_move: bool) -> Result<Bound, Failure> {
    let refuse = |error| {
        Failure::Machine(format!("can't listen on {api} (--api, or HOLDFAST_API): {error}"))
    };
    match Bound::new(api) {
        Err(error) if may_move && error.kind() == io::ErrorKind::AddrInUse => {
            Bound::new(SocketAddr::new(api.ip(), 0)).map_err(refuse)
        }
        bound => bound.map_err(refuse),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The claim of a killed process may be free before its sockets are closed.
    #[test]
    fn a_takeover_gets_the_address_as_soon_as_it_is_released() {
        let before = Bound::new("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = before.address;
        assert!(bind(address, false).is_err());
        let (sender, ends) = std::sync::mpsc::channel::<()>();
        let taking = thread::spawn(move || {
            drop(sender);
            bind_after_another(address, true).map(|bound| bound.address)
        });
        assert!(ends.recv().is_err());
        thread::sleep(20 * LOOK_INTERVAL);
        drop(before);
        assert!(taking.join().unwrap().is_ok_and(|taken| taken == address));
    }

    #[test]
    fn management_stays_on_loopback_unless_remote_access_is_allowed() {
        let address = |text: &str, allow_remote, plain| {
            api_address(Some(&text.parse().unwrap()), allow_remote, plain)
        };
        assert!(matches!(address("192.0.2.1:80", false, false), Err(Failure::Usage(_))));
        assert!(address("0.0.0.0:80", false, false).is_err());
        assert!(address("192.0.2.1:80", true, false).is_ok());
        assert!(address("192.0.2.1:80", true, true).is_err(), "in the clear over a network");
        assert!(address("[::1]:80", false, true).is_ok());
        assert!(address("localhost:80", true, false).is_err());
        assert!(api_address(None, false, false).unwrap().ip().is_loopback());
    }
}
