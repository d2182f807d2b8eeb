//! The array's side of the protocol with its supervisor, which is systemd (`Type=notify`) or `serve
//! --supervised`: see `sd_notify(3)` and `sd_pid_notify_with_fds(3)`. An environment variable
//! contains the socket for messages.
//!
//! The supervisor keeps the listening sockets if it can, and passes them to the process that it
//! starts after this one has ended. So no connection is refused meanwhile: it waits in the backlog,
//! and no command is executed before the host has logged in to the new process.
//!
//! It may also expect regular reports that the array is alive ([`watchdog_limit`]), and kills a
//! process that stops reporting.

use std::ffi::{OsStr, OsString};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpListener};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::UnixDatagram;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use listenfd::ListenFd;
use rustix::io::FdFlags;
use rustix::net::{
    SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketAddrUnix, sendmsg_addr,
};

/// The environment variable with the socket.
const VARIABLE: &str = "NOTIFY_SOCKET";
/// The environment variable with the name of the controller that is kept down, or empty. A
/// supervisor that does not set it can't keep one down.
pub const HELD: &str = "HOLDFAST_HELD";

/// Reports that the array is ready.
///
/// # Errors
/// The error of the socket. The supervisor would kill the array as one that never started.
pub fn tell_ready() -> io::Result<()> {
    match place() {
        Some(place) => tell(&place, "READY=1", &[]).map_err(|error| {
            let place = place.to_string_lossy();
            io::Error::other(format!("can't report readiness to {place} ({VARIABLE}): {error}"))
        }),
        None => Ok(()),
    }
}

/// Returns after how long without [`tell_alive`] the supervisor kills this process; `None` if it
/// does not watch it (`sd_watchdog_enabled(3)`).
pub fn watchdog_limit() -> Option<Duration> {
    let variable = |name| std::env::var(name).ok();
    limit_of(variable("WATCHDOG_USEC"), variable("WATCHDOG_PID"), std::process::id())
}

/// The same, from the two variables. The watchdog may be meant for another process.
fn limit_of(usec: Option<String>, pid: Option<String>, own: u32) -> Option<Duration> {
    if pid.is_some_and(|pid| pid != own.to_string()) {
        return None;
    }
    usec?.parse().ok().filter(|usec| *usec > 0).map(Duration::from_micros)
}

/// Reports that the array is alive.
///
/// # Errors
/// The error of the socket.
pub fn tell_alive() -> io::Result<()> {
    place().map_or(Ok(()), |place| tell(&place, "WATCHDOG=1", &[]))
}

/// Reports that the array is stopping. From then on [`tell_alive`] is not expected.
pub(super) fn tell_stopping() {
    let reported = place().map_or(Ok(()), |place| tell(&place, "STOPPING=1", &[]));
    if let Err(error) = reported {
        tracing::warn!("can't report to the supervisor that the array stops: {error}");
    }
}

fn place() -> Option<OsString> {
    std::env::var_os(VARIABLE).filter(|place| !place.is_empty())
}

fn tell(place: &OsStr, what: &str, descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let socket = UnixDatagram::unbound()?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    let (to, lines) = (address(place)?, [IoSlice::new(what.as_bytes())]);
    sendmsg_addr(&socket, &to, &lines, &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Returns the address of a path, or of an abstract name after `@`.
fn address(place: &OsStr) -> io::Result<SocketAddrUnix> {
    Ok(match place.as_bytes().strip_prefix(b"@") {
        Some(name) => SocketAddrUnix::new_abstract_name(name)?,
        None => SocketAddrUnix::new(place)?,
    })
}

/// Has the supervisor keep the other controller down, on request of an administrator. Cheap to
/// clone.
#[derive(Clone, Debug, Default)]
pub struct Holding(Option<Arc<AtomicBool>>);

impl Holding {
    /// Returns the state that the supervisor passed when it started this process.
    pub fn of_environment() -> Self {
        Self::from_variable(std::env::var(HELD).ok())
    }

    fn from_variable(held: Option<String>) -> Self {
        Self(held.map(|name| Arc::new(AtomicBool::new(!name.is_empty()))))
    }

    /// Returns whether the other controller is kept down.
    pub fn is_held(&self) -> bool {
        self.0.as_ref().is_some_and(|held| held.load(Ordering::Relaxed))
    }

    /// Has the controller named `other` stopped and kept down, or started again.
    ///
    /// # Errors
    /// If no supervisor runs both.
    pub fn hold(&self, other: &str, down: bool) -> io::Result<()> {
        let (Some(held), Some(place)) = (&self.0, place()) else {
            let text = "the controllers are started separately: stop and start each where it runs";
            return Err(io::Error::other(text));
        };
        let verb = if down { "HOLD" } else { "RELEASE" };
        tell(&place, &format!("{verb}={other}"), &[])?;
        held.store(down, Ordering::Relaxed);
        Ok(())
    }
}

/// Listening sockets that a supervisor has kept.
#[derive(Debug, Default)]
pub struct Kept {
    listeners: Vec<TcpListener>,
}

impl Kept {
    /// Returns the sockets passed to this process (`sd_listen_fds(3)`).
    pub fn of_environment() -> Self {
        let mut given = ListenFd::from_env();
        let listeners = (0..given.len()).filter_map(|at| {
            let taken = given.take_tcp_listener(at);
            let taken = taken.inspect_err(|error| {
                tracing::warn!("the supervisor passed a socket that does not listen: {error}");
            });
            let listener = taken.ok().flatten()?;
            // Child processes do not inherit it.
            rustix::io::fcntl_setfd(&listener, FdFlags::CLOEXEC).ok()?;
            Some(listener)
        });
        Self { listeners: listeners.collect() }
    }

    /// Wraps these sockets.
    pub(super) fn new(listeners: Vec<TcpListener>) -> Self {
        Self { listeners }
    }

    /// Takes the one that listens at an address; for port 0 any at its IP address.
    pub(super) fn take(&mut self, asked: SocketAddr) -> Option<TcpListener> {
        let is_it = |listener: &TcpListener| {
            let is_same = |at: SocketAddr| {
                at == asked || asked.port() == 0 && at.ip() == asked.ip() && at.port() != 0
            };
            listener.local_addr().is_ok_and(is_same)
        };
        let at = self.listeners.iter().position(is_it)?;
        Some(self.listeners.swap_remove(at))
    }

    /// Closes those that were not taken, here and at the supervisor.
    pub(super) fn end(self) {
        let Some(place) = place() else { return };
        for address in self.listeners.iter().filter_map(|listener| listener.local_addr().ok()) {
            let lines = format!("FDSTOREREMOVE=1\nFDNAME={}", name_of(address));
            if let Err(error) = tell(&place, &lines, &[]) {
                tracing::warn!("the supervisor still listens at {address}: {error}");
            }
        }
    }
}

/// Has the supervisor, if there is one, keep a socket. The array can serve without.
pub(super) fn keep(listener: impl AsFd, address: SocketAddr) {
    let Some(place) = place() else { return };
    let lines = format!("FDSTORE=1\nFDNAME={}", name_of(address));
    if let Err(error) = tell(&place, &lines, &[listener.as_fd()]) {
        tracing::warn!("the supervisor does not keep the socket at {address}: {error}");
    }
}

/// Returns the supervisor's name for a socket. Colons separate names.
fn name_of(address: SocketAddr) -> String {
    format!("iscsi-{address}").replace(':', "-")
}

#[cfg(test)]
mod tests {
    use std::os::linux::net::SocketAddrExt;

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
        tell(path.as_os_str(), "READY=1", &[]).unwrap();
        assert_eq!(received(&socket), b"READY=1");
        let name = format!("holdfast-test-{}", std::process::id());
        let place = std::os::unix::net::SocketAddr::from_abstract_name(&name).unwrap();
        let socket = UnixDatagram::bind_addr(&place).unwrap();
        tell(OsStr::new(&format!("@{name}")), "READY=1", &[]).unwrap();
        assert_eq!(received(&socket), b"READY=1");
        assert!(tell(directory.path().join("none").as_os_str(), "READY=1", &[]).is_err());
    }

    #[test]
    fn a_kept_socket_is_taken_by_its_address_once() {
        let listener = || TcpListener::bind("127.0.0.1:0").unwrap();
        let (one, other) = (listener(), listener());
        let (at, beside) = (one.local_addr().unwrap(), other.local_addr().unwrap());
        let mut kept = Kept { listeners: vec![one, other] };
        assert!(kept.take("127.0.0.2:0".parse().unwrap()).is_none());
        assert_eq!(kept.take(at).unwrap().local_addr().unwrap(), at);
        assert!(kept.take(at).is_none());
        let any = kept.take("127.0.0.1:0".parse().unwrap()).unwrap();
        assert_eq!(any.local_addr().unwrap(), beside);
        assert!(kept.take("127.0.0.1:0".parse().unwrap()).is_none());
    }

    #[test]
    fn a_watchdog_applies_to_one_process() {
        let limit =
            |usec: &str, pid: Option<&str>| limit_of(Some(usec.into()), pid.map(str::to_owned), 77);
        assert_eq!(limit("5000000", None), Some(Duration::from_secs(5)));
        assert_eq!(limit("20000", Some("77")), Some(Duration::from_millis(20)));
        assert_eq!(limit("20000", Some("78")), None);
        assert_eq!((limit("0", None), limit("-1", None), limit("soon", None)), (None, None, None));
        assert_eq!(limit_of(None, None, 77), None);
    }

    #[test]
    fn only_a_supervisor_of_both_keeps_one_down() {
        let none = Holding::from_variable(None);
        assert!(!none.is_held() && none.hold("ct1", true).is_err());
        assert!(!Holding::from_variable(Some(String::new())).is_held());
        assert!(Holding::from_variable(Some("ct1".into())).is_held());
    }

    #[test]
    fn names_have_no_colon() {
        assert_eq!(name_of("[::1]:3260".parse().unwrap()), "iscsi-[--1]-3260");
    }
}
