//! Where management listens.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::args::ApiPlace;
use super::failure::Failure;
use super::http::Bound;

/// The default address of management, if its port is free.
const API_DEFAULT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 3280);

/// The management address. Plain HTTP never leaves the machine, and even HTTPS is offered to a
/// network only on request.
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

    #[test]
    fn management_stays_on_loopback_unless_it_is_allowed_out() {
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
