//! Readiness notification for the supervisor: systemd, for units of `Type=notify` (`sd_notify(3)`).
//! It names a socket in the environment, and reads lines there.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use super::failure::Failure;

/// The variable with the socket, if there is one.
const VARIABLE: &str = "NOTIFY_SOCKET";
const READY: &[u8] = b"READY=1";

/// Reports that the array is ready. If this fails, the supervisor would end the array as one that
/// never came up, so the error is shown here.
pub fn tell_ready() -> Result<(), Failure> {
    let Some(place) = std::env::var_os(VARIABLE).filter(|place| !place.is_empty()) else {
        return Ok(());
    };
    tell(&place, READY).map_err(|error| {
        let place = place.to_string_lossy();
        Failure::Machine(format!("can't say at {place} ({VARIABLE}) that it serves: {error}"))
    })
}

fn tell(place: &OsStr, what: &[u8]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    socket.send_to_addr(what, &address(place)?).map(drop)
}

/// A path; after an `@`, an abstract name.
fn address(place: &OsStr) -> io::Result<SocketAddr> {
    match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(OsString::from(place)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn received(socket: &UnixDatagram) -> Vec<u8> {
        let mut buffer = [0; 64];
        let length = socket.recv(&mut buffer).unwrap();
        buffer[..length].to_vec()
    }

    #[test]
    fn sockets_are_paths_or_abstract() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        tell(path.as_os_str(), READY).unwrap();
        assert_eq!(received(&socket), READY);
        let name = format!("holdfast-test-{}", std::process::id());
        let place = SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&place).unwrap();
        tell(OsStr::new(&format!("@{name}")), READY).unwrap();
        assert_eq!(received(&socket), READY);
        assert!(tell(directory.path().join("none").as_os_str(), READY).is_err());
    }
}
