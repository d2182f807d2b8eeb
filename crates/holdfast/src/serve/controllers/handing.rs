//! Hands connections of hosts over to the other controller in a planned switch: the owner sends the
//! state of each, with its socket, over a separate link connection, and so a host notices only a
//! pause.
//!
//! A parcel consists of its length in four bytes (big-endian), JSON, and a socket that is passed
//! with the first byte (`SCM_RIGHTS`, unix(7)). A length of 0 ends the parcels; only then are they
//! accepted. Of a forwarded connection the owner has one end of the link; the other controller has
//! the host's own socket, and combines the data in transit between them.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Instant;

use front::transport;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use serde::{Deserialize, Serialize};
use target::Untold;

use super::super::listen::ConnectionLimits;
use super::super::shared::Shared;
use super::super::stream::Stream;
use super::SILENCE_MAX;
use super::forward::Rest;

/// The version of the parcels.
const VERSION: u32 = 1;
/// The limit for a receive buffer as JSON numbers, and the events of thousands of units.
const PARCEL_BYTES_MAX: usize = 4 << 20;
/// Sockets passed with one byte: one.
const SOCKETS_MAX: usize = 4;

/// A connection that this controller has released.
pub(in crate::serve) struct Leaving {
    pub handed: front::Handed,
    pub stream: Stream,
    pub local: SocketAddr,
    pub peer: SocketAddr,
}

/// The parcel of a connection.
#[derive(Serialize, Deserialize)]
struct Parcel {
    v: u32,
    connection: transport::Handed,
    untold: Untold,
    /// The two addresses of the host's own socket.
    local: SocketAddr,
    peer: SocketAddr,
    /// Whether the socket is an end of the link.
    is_of_link: bool,
}

/// A received parcel.
struct Arrived {
    parcel: Parcel,
    socket: OwnedFd,
}

/// All received parcels, and when they arrived.
pub(super) struct Arrivals {
    all: Vec<Arrived>,
    at: Instant,
}

/// A connection of a host that continues here.
pub struct Handed {
    pub(in crate::serve) connection: transport::Handed,
    pub(in crate::serve) untold: Untold,
    pub(in crate::serve) stream: TcpStream,
    /// Input of the host that precedes what its socket has.
    pub(in crate::serve) before: VecDeque<u8>,
    pub(in crate::serve) local: SocketAddr,
    pub(in crate::serve) peer: SocketAddr,
}

/// Connections of hosts that continue here, and since when nobody has served them.
pub struct HandedOver {
    pub(in crate::serve) all: Vec<Handed>,
    since: Instant,
}

impl HandedOver {
    /// Returns whether hosts may by now have repeated elsewhere what they have sent here.
    pub(in crate::serve) fn is_late(&self) -> bool {
        self.since.elapsed() > SILENCE_MAX
    }
}

/// Sends all of them. Returns how many.
pub(super) fn send(to: &UnixStream, all: Vec<Leaving>, shared: &Shared) -> io::Result<usize> {
    to.set_write_timeout(Some(SILENCE_MAX))?;
    let mut count = 0;
    for Leaving { handed, stream, local, peer } in all {
        let untold = shared.front.untold(&handed);
        let is_of_link = matches!(stream, Stream::Link(..));
        let connection = handed.connection;
        let parcel = Parcel { v: VERSION, connection, untold, local, peer, is_of_link };
        send_one(to, &serde_json::to_vec(&parcel)?, stream.as_fd())?;
        count += 1;
    }
    end(to)?;
    Ok(count)
}

/// Sends the end marker.
fn end(mut to: &UnixStream) -> io::Result<()> {
    to.write_all(&0_u32.to_be_bytes())
}

fn send_one(to: &UnixStream, parcel: &[u8], socket: BorrowedFd<'_>) -> io::Result<()> {
    let bytes = u32::try_from(parcel.len()).map_err(io::Error::other)?;
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let sockets = [socket];
    if !control.push(SendAncillaryMessage::ScmRights(&sockets)) {
        return Err(io::Error::other("no room for a socket"));
    }
    let length = bytes.to_be_bytes();
    let sent = sendmsg(to, &[IoSlice::new(&length)], &mut control, SendFlags::NOSIGNAL)?;
    let mut to = to;
    to.write_all(&length[sent..])?;
    to.write_all(parcel)
}

/// Waits for parcels until the end marker. An error if that does not arrive.
pub(super) fn receive(from: &UnixStream) -> io::Result<Arrivals> {
    let mut all = Vec::new();
    loop {
        let mut length = [0; 4];
        let socket = receive_with_socket(from, &mut length)?;
        let bytes = u32::from_be_bytes(length) as usize;
        if bytes == 0 {
            return Ok(Arrivals { all, at: Instant::now() });
        }
        let is_too_much =
            bytes > PARCEL_BYTES_MAX || all.len() >= ConnectionLimits::MOST.all as usize;
        let Some(socket) = socket.filter(|_| !is_too_much) else {
            return Err(io::Error::other("the owner hands over a malformed parcel"));
        };
        let mut parcel = vec![0; bytes];
        (&mut &*from).read_exact(&mut parcel)?;
        let parcel: Parcel = serde_json::from_slice(&parcel)?;
        if parcel.v == VERSION {
            all.push(Arrived { parcel, socket });
        }
    }
}

/// Fills the bytes, and receives the socket that is passed with them.
fn receive_with_socket(from: &UnixStream, bytes: &mut [u8]) -> io::Result<Option<OwnedFd>> {
    let (mut done, mut socket) = (0, None);
    while done < bytes.len() {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MAX))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let mut into = [IoSliceMut::new(&mut bytes[done..])];
        let received = match recvmsg(from, &mut into, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => continue,
            received => received?.bytes,
        };
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(mut sockets) = message {
                socket = sockets.next().or(socket);
            }
        }
        done += received;
    }
    Ok(socket)
}

impl Arrivals {
    /// Combines the parcels with the rest of what was forwarded here.
    pub(super) fn join(self, mut rests: Vec<Rest>) -> HandedOver {
        let joined = self.all.into_iter().filter_map(|Arrived { parcel, socket }| {
            let joined = join_one(&parcel, socket, &mut rests);
            let Parcel { connection, untold, local, peer, .. } = parcel;
            match joined {
                Ok((stream, before)) => {
                    Some(Handed { connection, untold, stream, before, local, peer })
                }
                Err(error) => {
                    tracing::warn!("the connection of {peer} can't continue here: {error}");
                    None
                }
            }
        });
        HandedOver { all: joined.collect(), since: self.at }
    }
}

/// Returns the host's nonblocking socket, and the input that precedes it.
fn join_one(
    parcel: &Parcel,
    socket: OwnedFd,
    rests: &mut Vec<Rest>,
) -> io::Result<(TcpStream, VecDeque<u8>)> {
    if !parcel.is_of_link {
        let stream = TcpStream::from(socket);
        stream.set_nonblocking(true)?;
        return Ok((stream, VecDeque::new()));
    }
    let is_of_it = |rest: &Rest| (rest.local, rest.peer) == (parcel.local, parcel.peer);
    let at = rests.iter().position(is_of_it).ok_or(io::ErrorKind::NotConnected)?;
    rests.swap_remove(at).join(socket)
}

impl Rest {
    /// Returns the host's socket, and the input that precedes it. `socket`: the owner's end of the
    /// link.
    fn join(self, socket: OwnedFd) -> io::Result<(TcpStream, VecDeque<u8>)> {
        let Self { host, link, to_link, to_host, .. } = self;
        // The owner has read nothing more from its end, and has written all its output.
        let mut before = Vec::new();
        drain(&UnixStream::from(socket), &mut before)?;
        before.extend(to_link);
        let mut left = to_host;
        drain(&link, &mut left)?;
        host.set_nonblocking(true)?;
        // A host that does not accept that little at once may log in again.
        let sent = if left.is_empty() { 0 } else { (&mut &host).write(&left)? };
        if sent < left.len() {
            return Err(io::Error::other("the host accepts no data"));
        }
        Ok((host, before.into()))
    }
}

/// Appends all available data.
fn drain(from: &UnixStream, into: &mut Vec<u8>) -> io::Result<()> {
    from.set_nonblocking(true)?;
    match (&mut &*from).read_to_end(into) {
        Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    fn known(received: &[u8]) -> transport::Handed {
        transport::Handed {
            initiator_name: "iqn.2026-01.example:a".into(),
            isid: [1, 2, 3, 4, 5, 6],
            tsih: 7,
            cid: 8,
            portal_tag: 9,
            exp_cmd_sn: u32::MAX,
            stat_sn: 11,
            terms: iscsi::Terms { commands: 128, ..iscsi::Terms::default() },
            received: received.into(),
        }
    }

    /// Returns both ends of a host's connection.
    fn host() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        (host, listener.accept().unwrap().0)
    }

    fn parcel(ends: (SocketAddr, SocketAddr), is_of_link: bool) -> Vec<u8> {
        let (local, peer) = ends;
        let (connection, untold) = (known(b"received"), vec![(3, 0x51)]);
        let parcel = Parcel { v: VERSION, connection, untold, local, peer, is_of_link };
        serde_json::to_vec(&parcel).unwrap()
    }

    fn ends(socket: &TcpStream) -> (SocketAddr, SocketAddr) {
        (socket.local_addr().unwrap(), socket.peer_addr().unwrap())
    }

    #[test]
    fn a_connection_is_handed_over_with_its_socket() {
        let (from, to) = UnixStream::pair().unwrap();
        let ((mut host, array), (other, silent)) = (host(), host());
        send_one(&from, &parcel(ends(&array), false), array.as_fd()).unwrap();
        send_one(&from, &parcel(ends(&silent), false), silent.as_fd()).unwrap();
        end(&from).unwrap();
        drop((array, silent, other));
        let handed = receive(&to).unwrap().join(Vec::new());
        assert!(handed.all.len() == 2 && !handed.is_late());
        let first = &handed.all[0];
        assert_eq!((&first.connection, &first.untold), (&known(b"received"), &vec![(3, 0x51)]));
        assert_eq!(
            (first.local, first.peer),
            (host.peer_addr().unwrap(), host.local_addr().unwrap())
        );
        assert!(first.before.is_empty());
        (&first.stream).write_all(b"answer").unwrap();
        let mut answer = [0; 6];
        host.read_exact(&mut answer).unwrap();
        assert_eq!(&answer, b"answer");
    }

    /// Bytes from a host are in up to four places, and those to it in three.
    #[test]
    fn forwarded_data_is_combined_in_order() {
        let (from, to) = UnixStream::pair().unwrap();
        let (mut host, array) = host();
        let (mut own, mut owners) = UnixStream::pair().unwrap();
        own.write_all(b"two ").unwrap();
        owners.write_all(b"second").unwrap();
        send_one(&from, &parcel(ends(&array), true), owners.as_fd()).unwrap();
        // A connection that is unknown here.
        let stranger = "192.0.2.1:1".parse().unwrap();
        send_one(&from, &parcel((stranger, stranger), true), owners.as_fd()).unwrap();
        end(&from).unwrap();
        drop(owners);
        let (local, peer) = ends(&array);
        let (to_link, to_host) = (b"three".to_vec(), b"first ".to_vec());
        let rest = Rest { host: array, link: own, local, peer, to_link, to_host };
        let handed = receive(&to).unwrap().join(vec![rest]);
        assert_eq!(handed.all.len(), 1);
        assert_eq!(Vec::from(handed.all[0].before.clone()), b"two three");
        let mut got = [0; 12];
        host.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"first second");
    }

    #[test]
    fn malformed_parcels_are_refused() {
        let of = |bytes: &[u8], socket: bool| {
            let (mut from, to) = UnixStream::pair().unwrap();
            match socket {
                true => drop(send_one(&from, bytes, to.as_fd())),
                false => drop(from.write_all(bytes)),
            }
            drop(from);
            receive(&to).is_err()
        };
        let (_, array) = host();
        let sound = parcel(ends(&array), false);
        assert!(of(&sound, true), "its end has not come");
        assert!(of(b"{}", true) && of(b"\xff", true));
        assert!(of(&[0, 0, 0], false) && of(&[0, 0, 0, 2, b'{', b'}'], false), "without a socket");
        assert!(of(&u32::MAX.to_be_bytes(), false));
    }
}
