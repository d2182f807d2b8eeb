//! Two controllers on one pool: two processes, each with its own portals, of which one has the
//! pool, and the other one forwards its hosts' commands to it (RFC 0014).
//!
//! * [`claim`]: which one has the pool: a lock that the kernel takes away from a process that ends,
//! * [`link`](mod@link): the owner's end of the link, where it gets the connections of hosts that
//!   the other controller has accepted,
//! * [`listening`]: where it accepts them; [`tunnel`]: the link over the network, with TLS,
//! * [`relay`]: the other end, and when it ends, [`forward`]: one of its threads, [`pipe`]: bytes
//!   in one direction,
//! * [`standby`]: follows the pool meanwhile, so that taking over is quick,
//! * [`fence`]: which one has the pool, of two machines: persistent reservations of the devices,
//! * [`addresses`]: addresses of hosts' portals that move between two machines,
//! * [`guests`]: limits how many hosts are forwarded at the same time,
//! * [`handing`]: connections that continue at the other controller after a planned switch,
//! * [`wire`]: what is sent on a link connection before the bytes of hosts.
//!
//! Invariants:
//! 1. A controller opens the pool only while it has the claim, and keeps it until its process ends.
//!    The locks of the devices apply whatever the claim says.
//! 2. The owner accepts nothing from a link from which it has heard no beat for [`SILENCE_MAX`]:
//!    hosts may have repeated elsewhere what arrives late.
//! 3. A controller that finds that it did not run for that long itself drops all connections of
//!    hosts before it reads what they have sent.
//! 4. A controller that forwards keeps no state of hosts: target state exists only at the owner,
//!    and the owner's connection is the host's own, byte by byte.

pub(super) mod addresses;
mod claim;
pub mod fence;
mod forward;
mod guests;
mod handing;
mod link;
mod listening;
mod pipe;
mod relay;
mod standby;
mod tunnel;
mod wire;

#[cfg(test)]
mod tests;

use std::io;
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use super::ServeError;
use super::shared::Shared;
use listening::Listening;

pub use addresses::{Addresses, Moving};
pub use claim::Claim;
pub use handing::HandedOver;
pub(super) use handing::Leaving;
pub(super) use link::{Generation, Link};
pub use link::{Other, Pair};
pub use relay::{AwaitTurn, FollowOptions, Followed, follow};
pub use standby::{OpenBeside, Standby};
pub use tunnel::{Secret, Tunnel, TunnelOptions};

/// Listens on the link, if there is another controller, until the result is dropped.
pub(super) fn listen(shared: &Arc<Shared>, pair: Option<&Pair>) -> io::Result<Option<Listening>> {
    let link = shared.link.as_ref().zip(pair);
    link.map(|(link, pair)| listening::start(shared, link, &pair.meeting)).transpose()
}

/// Listens at the portals of the other controller whose addresses may move here. Returns the index
/// of each among all ports.
pub(super) fn listen_elsewhere(shared: &Shared) -> Result<Vec<(usize, TcpListener)>, ServeError> {
    shared.link.as_ref().map_or(Ok(Vec::new()), |link| link.listen_elsewhere())
}

/// Continues connections of the other controller, before anything is served.
pub(super) fn take_on(shared: &Shared, handed: Option<HandedOver>) {
    let Some((link, handed)) = shared.link.as_ref().zip(handed) else { return };
    if handed.is_late() {
        tracing::warn!("it took long to take the pool over: hosts are to log in again");
        return;
    }
    link.take_on(shared, handed);
}

/// Hands connections over to the other controller, once nothing is served any more.
pub(super) fn hand_over(shared: &Shared) {
    if let Some(link) = &shared.link {
        link.hand_over(shared);
    }
}

/// How long the other end of the link may be silent.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// The listen backlog: one connection for each session of hosts, which all connect at once.
const BACKLOG: i32 = 1024;
/// The interval at which each end sends a beat.
const BEAT: Duration = Duration::from_millis(250);

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Controller {
    /// `ct0`, which starts first.
    Ct0,
    /// `ct1`.
    Ct1,
}

impl Controller {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ct0 => "ct0",
            Self::Ct1 => "ct1",
        }
    }

    /// Returns the controller with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ct0, Self::Ct1].into_iter().find(|controller| controller.name() == name)
    }

    /// Returns the other one.
    pub fn other(self) -> Self {
        match self {
            Self::Ct0 => Self::Ct1,
            Self::Ct1 => Self::Ct0,
        }
    }
}

/// Where the two controllers of a pool meet: files in a directory that only their user can write.
#[derive(Clone)]
pub struct Meeting {
    claim: PathBuf,
    turn: PathBuf,
    place: Place,
}

/// Where the owner accepts link connections.
#[derive(Clone)]
enum Place {
    /// A socket of this machine.
    Socket(PathBuf),
    /// An address of either machine.
    Network(Arc<Tunnel>),
}

impl Meeting {
    /// Creates the meeting of the pool at these places, in `directory`. Both controllers must name
    /// the same places, in any order.
    pub fn new(directory: &Path, places: &[PathBuf]) -> Self {
        let absolute = |path: &PathBuf| std::path::absolute(path).unwrap_or_else(|_| path.clone());
        let mut places: Vec<PathBuf> = places.iter().map(absolute).collect();
        places.sort();
        let mut hash = Sha256::new();
        for place in &places {
            hash.update(place.as_os_str().as_encoded_bytes());
            hash.update([0]);
        }
        let hash = hash.finalize();
        let name: String = hash[..8].iter().map(|byte| format!("{byte:02x}")).collect();
        let file = |end: &str| directory.join(format!("pool-{name}.{end}"));
        let place = Place::Socket(file("link"));
        Self { claim: file("claim"), turn: file("turn"), place }
    }

    /// The same with a link over the network, if there is one, for both a claim and a
    /// fence.
    #[must_use]
    pub fn over(self, tunnel: Option<Arc<Tunnel>>) -> Self {
        let place = tunnel.map_or(self.place, Place::Network);
        Self { place, ..self }
    }

    /// Opens a link connection.
    fn connect(&self) -> io::Result<UnixStream> {
        match &self.place {
            Place::Socket(path) => UnixStream::connect(path),
            Place::Network(tunnel) => tunnel.connect(),
        }
    }

    /// Opens a nonblocking link connection, without waiting for it.
    fn connect_at_once(&self) -> io::Result<mio::net::UnixStream> {
        match &self.place {
            Place::Socket(path) => mio::net::UnixStream::connect(path),
            Place::Network(tunnel) => {
                let stream = tunnel.connect()?;
                stream.set_nonblocking(true)?;
                Ok(mio::net::UnixStream::from_std(stream))
            }
        }
    }

    /// Returns whether sockets can be passed over the link, and the kernel reports at once that its
    /// other end is gone.
    fn is_of_one_machine(&self) -> bool {
        matches!(self.place, Place::Socket(_))
    }
}
