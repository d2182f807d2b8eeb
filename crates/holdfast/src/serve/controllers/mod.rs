//! Two controllers on one pool: two processes, each with portals of its own, of which one has the
//! pool, and the other forwards what its hosts send to it (RFC 0014).
//!
//! * [`claim`]: who has the pool: a lock that the system takes away from a process that ends,
//! * [`link`](mod@link): the owner's end of the link, where connections of hosts come in that the
//!   other controller has taken,
//! * [`listening`]: where it takes them; [`tunnel`]: the link over the network, in TLS,
//! * [`relay`]: the other's end, and when it ends, [`forward`]: a thread of it, [`pipe`]: bytes in
//!   one direction,
//! * [`standby`]: it follows the pool meanwhile, so that taking over is quick,
//! * [`fence`]: which one has the pool, of two machines: persistent reservations of the devices,
//! * [`addresses`]: addresses of hosts' portals that two machines have in turn,
//! * [`guests`]: how many hosts it forwards at the same time,
//! * [`handing`]: connections that go on at the other controller when it takes over as planned,
//! * [`wire`]: what is said on the link before the bytes of hosts.
//!
//! Invariants:
//! 1. A controller opens the pool only while it has the claim, and has it until its process ends.
//!    The locks of the devices hold whatever the claim says.
//! 2. The owner takes nothing from a link of which it has heard no sign of life for
//!    [`SILENCE_MAX`]: hosts may have repeated elsewhere what comes late.
//! 3. A controller that finds that it did not run for so long itself drops all connections of hosts
//!    before it looks at what they have sent.
//! 4. Nothing of a host is kept here: target state is the owner's alone, and a connection that it
//!    has is the host's own, byte by byte.

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

/// Listens on the link, if there is another controller, until what is returned is dropped.
pub(super) fn listen(shared: &Arc<Shared>, pair: Option<&Pair>) -> io::Result<Option<Listening>> {
    let link = shared.link.as_ref().zip(pair);
    link.map(|(link, pair)| listening::start(shared, link, &pair.meeting)).transpose()
}

/// Listens at the portals of the other controller whose addresses may come here: with the place of
/// each among all ports.
pub(super) fn listen_elsewhere(shared: &Shared) -> Result<Vec<(usize, TcpListener)>, ServeError> {
    shared.link.as_ref().map_or(Ok(Vec::new()), |link| link.listen_elsewhere())
}

/// Goes on with connections of the other controller, before anything is served.
pub(super) fn take_on(shared: &Shared, handed: Option<HandedOver>) {
    let Some((link, handed)) = shared.link.as_ref().zip(handed) else { return };
    if handed.is_late() {
        tracing::warn!("it took long to take the pool over: hosts are to log in again");
        return;
    }
    link.take_on(shared, handed);
}

/// Leaves connections to the other controller, once nothing is served any more.
pub(super) fn hand_over(shared: &Shared) {
    if let Some(link) = &shared.link {
        link.hand_over(shared);
    }
}

/// How long the other end of the link may say nothing.
const SILENCE_MAX: Duration = Duration::from_secs(2);
/// Connections that wait to be accepted: one for each session of hosts, which all come at once.
const BACKLOG: i32 = 1024;
/// How often each end says something.
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
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ct0 => "ct0",
            Self::Ct1 => "ct1",
        }
    }

    /// The controller of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Ct0, Self::Ct1].into_iter().find(|controller| controller.name() == name)
    }

    /// The other one.
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

/// Where the owner takes connections of the link.
#[derive(Clone)]
enum Place {
    /// At a socket of this machine.
    Socket(PathBuf),
    /// At an address of either machine.
    Network(Arc<Tunnel>),
}

impl Meeting {
    /// That of the pool at these places, in `directory`. Both controllers are to name the places
    /// alike, in any order.
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

    /// The same with a link over the network, if there is one, for a claim and for a fence alike.
    #[must_use]
    pub fn over(self, tunnel: Option<Arc<Tunnel>>) -> Self {
        let place = tunnel.map_or(self.place, Place::Network);
        Self { place, ..self }
    }

    /// Begins a connection of the link.
    fn connect(&self) -> io::Result<UnixStream> {
        match &self.place {
            Place::Socket(path) => UnixStream::connect(path),
            Place::Network(tunnel) => tunnel.connect(),
        }
    }

    /// The same, of one that does not block, and is not waited for.
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

    /// Whether sockets can be passed over the link, and the kernel says at once that its other end
    /// is gone.
    fn is_of_one_machine(&self) -> bool {
        matches!(self.place, Place::Socket(_))
    }
}
