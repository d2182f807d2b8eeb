//! Where the owner accepts link connections: at a local socket, or from the network. The first line
//! of each says what it is for.

use std::io::{self, Write};
use std::os::fd::AsFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use sys::wall::now_ms;
use target::AccessState;

use super::super::listen::Door;
use super::super::shared::Shared;
use super::super::stream::Stream;
use super::link::{Link, Other, control};
use super::tunnel::{Doors, Tunnel};
use super::wire::{Purpose, Unread, Versions, read_line};
use super::{BACKLOG, Meeting, Place};

/// The time limit for the first line, which the other end sends at once.
const LINE_WITHIN: Duration = Duration::from_secs(1);
/// The interval at which the threads of the link check whether it has ended.
const LOOK_INTERVAL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Accepts link connections until this is dropped.
pub(in crate::serve) struct Listening {
    link: Arc<Link>,
    end: Option<End>,
}

/// Where they arrive.
enum End {
    Local { socket: PathBuf, listener: UnixListener, thread: JoinHandle<()> },
    Remote { _doors: Doors },
}

/// Starts listening.
pub(in crate::serve) fn start(
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    meeting: &Meeting,
) -> io::Result<Listening> {
    // Handed over connections are served.
    let has_guests = link.guests.lock().is_some();
    link.tell_hosts(shared, if has_guests { link.linked } else { AccessState::Unavailable });
    link.keep_addresses(shared);
    let end = match &meeting.place {
        Place::Socket(path) => listen_here(shared, link, path)?,
        Place::Network(tunnel) => listen_there(shared, link, tunnel)?,
    };
    Ok(Listening { link: link.clone(), end: Some(end) })
}

/// The process with the claim replaces an existing socket.
fn listen_here(shared: &Arc<Shared>, link: &Arc<Link>, path: &Path) -> io::Result<End> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let listener = UnixListener::bind(path)?;
    rustix::net::listen(&listener, BACKLOG)?;
    listener.set_nonblocking(true)?;
    let (shared, listened, own) = (shared.clone(), link.clone(), listener.try_clone()?);
    let builder = thread::Builder::new().name("link".into());
    let thread = builder.spawn(move || listen(&own, &shared, &listened))?;
    Ok(End::Local { socket: path.to_owned(), listener, thread })
}

fn listen_there(shared: &Arc<Shared>, link: &Arc<Link>, tunnel: &Arc<Tunnel>) -> io::Result<End> {
    let (shared, link, mut door) = (shared.clone(), link.clone(), Door::default());
    let doors = tunnel.listen(Box::new(move |stream| take(stream, &shared, &link, &mut door)))?;
    Ok(End::Remote { _doors: doors })
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.link.has_ended.store(true, Ordering::Release);
        self.link.leave_addresses();
        let Some(End::Local { socket, listener, thread }) = self.end.take() else { return };
        if let Err(error) = std::fs::remove_file(&socket) {
            tracing::warn!("can't remove {}: {error}", socket.display());
        }
        // Wakes the thread, for which the next owner waits.
        let _ = rustix::net::shutdown(&listener, rustix::net::Shutdown::Both);
        // It can't have panicked: that ends the process.
        let _ = thread.join();
    }
}

fn listen(listener: &UnixListener, shared: &Arc<Shared>, link: &Arc<Link>) {
    let mut door = Door::default();
    while !link.has_ended.load(Ordering::Acquire) {
        let mut waits = [PollFd::from_borrowed_fd(listener.as_fd(), PollFlags::IN)];
        // Whatever the result, the listener is checked.
        let _ = poll(&mut waits, Some(&LOOK_INTERVAL));
        while let Ok((stream, _)) = listener.accept() {
            take(stream, shared, link, &mut door);
        }
    }
}

fn take(stream: UnixStream, shared: &Arc<Shared>, link: &Arc<Link>, door: &mut Door) {
    if let Err(error) = meet(stream, shared, link, door) {
        tracing::warn!("a connection of the other controller can't be used: {error}");
    }
}

/// Serves a new connection according to its purpose.
fn meet(
    mut stream: UnixStream,
    shared: &Arc<Shared>,
    link: &Arc<Link>,
    door: &mut Door,
) -> io::Result<()> {
    stream.set_read_timeout(Some(LINE_WITHIN))?;
    let line = read_line(&mut stream)?;
    let (spoken, purpose) = match Purpose::of_line(&line, Versions::OWN) {
        Ok(read) => read,
        Err(Unread::Words) => {
            return Err(io::Error::other(format!("{line:?} is not a valid first line")));
        }
        Err(Unread::Version(version)) => {
            // The other end handles the answer, and may continue with one of these versions.
            tracing::debug!("the other controller begins with version {version} of the link");
            stream.set_write_timeout(Some(LINE_WITHIN))?;
            return stream.write_all(Versions::OWN.to_line().as_bytes());
        }
    };
    match purpose {
        Purpose::Control { controller, .. } if controller == link.own => {
            Err(io::Error::other(format!("two processes are {}", controller.name())))
        }
        Purpose::Control { pid, version, .. } => {
            let other = Other { pid, version, since_ms: now_ms() };
            let (shared, link) = (shared.clone(), link.clone());
            let builder = thread::Builder::new().name("link-control".into());
            builder.spawn(move || control(stream, spoken, other, &shared, &link)).map(drop)
        }
        Purpose::Successor { generation } => {
            stream.set_read_timeout(None)?;
            *link.successor.lock() = Some((generation, stream));
            Ok(())
        }
        Purpose::Host { generation, portal, local, peer } => {
            let unknown = || io::Error::other(format!("{portal} is not one of its portals"));
            let port = link.port_at(portal).ok_or_else(unknown)?;
            // A connection that arrives too late is closed, with what it refers to.
            let Some(generation) = link.alive(generation) else { return Ok(()) };
            stream.set_nonblocking(true)?;
            let stream = Stream::of_link(stream, generation);
            door.hand_out(shared, stream, port, (local, peer), shared.clock.now());
            Ok(())
        }
    }
}
