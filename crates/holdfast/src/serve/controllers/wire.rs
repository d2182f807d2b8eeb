//! The first line of each connection of the link, which says what it is for: `holdfast-link`, the
//! version of what follows, and words.
//!
//! ```text
//! holdfast-link 1 control ct1 4711 0.1.0      a controller, its process, its version; answered by
//! holdfast-link 1 generation 3 incarnation 9  the number of the link, and the pool's incarnation;
//!                                             then each end sends a dot every quarter of a second
//! holdfast-link 1 successor 3                 a controller that takes connections over from an
//!                                             owner that gives way, of this generation
//! holdfast-link 1 host 3 PORTAL LOCAL PEER    a connection of a host that came in at a portal, and
//!                                             its two addresses; then the host's bytes
//! ```

use std::io::{self, Read};
use std::net::SocketAddr;

use super::Controller;

/// No line is longer: three addresses of IPv6 with scopes are far shorter.
pub(super) const LINE_BYTES_MAX: usize = 256;
const WORDS: &str = "holdfast-link 1";

/// What a connection of the link is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A controller is there, with this process and of this version.
    Control { controller: Controller, pid: u32, version: String },
    /// What is handed over goes here.
    Successor { generation: u64 },
    /// A host's connection.
    Host { generation: u64, portal: SocketAddr, local: SocketAddr, peer: SocketAddr },
}

/// The answer to [`Purpose::Control`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    pub generation: u64,
    pub incarnation: u64,
}

impl Purpose {
    pub(super) fn to_line(&self) -> String {
        match self {
            Self::Control { controller, pid, version } => {
                format!("{WORDS} control {} {pid} {version}\n", controller.name())
            }
            Self::Successor { generation } => format!("{WORDS} successor {generation}\n"),
            Self::Host { generation, portal, local, peer } => {
                format!("{WORDS} host {generation} {portal} {local} {peer}\n")
            }
        }
    }

    pub(super) fn of_line(line: &str) -> Option<Self> {
        let words: Vec<&str> = words_of(line)?;
        match words[..] {
            ["control", controller, pid, version] => Some(Self::Control {
                controller: Controller::from_name(controller)?,
                pid: pid.parse().ok()?,
                version: version.to_owned(),
            }),
            ["successor", generation] => {
                Some(Self::Successor { generation: generation.parse().ok()? })
            }
            ["host", generation, portal, local, peer] => Some(Self::Host {
                generation: generation.parse().ok()?,
                portal: portal.parse().ok()?,
                local: local.parse().ok()?,
                peer: peer.parse().ok()?,
            }),
            _ => None,
        }
    }
}

impl Welcome {
    pub(super) fn to_line(self) -> String {
        let Self { generation, incarnation } = self;
        format!("{WORDS} generation {generation} incarnation {incarnation}\n")
    }

    pub(super) fn of_line(line: &str) -> Option<Self> {
        match words_of(line)?[..] {
            ["generation", generation, "incarnation", incarnation] => Some(Self {
                generation: generation.parse().ok()?,
                incarnation: incarnation.parse().ok()?,
            }),
            _ => None,
        }
    }
}

fn words_of(line: &str) -> Option<Vec<&str>> {
    Some(line.strip_prefix(WORDS)?.strip_prefix(' ')?.split(' ').collect())
}

/// The first line, without its end. What follows it is left in the socket.
///
/// # Errors
/// `InvalidData` if it has no end, or is no text; what the socket says, and `UnexpectedEof`.
pub(super) fn read_line(from: &mut impl Read) -> io::Result<String> {
    let mut line = Vec::new();
    while line.len() < LINE_BYTES_MAX {
        let mut byte = [0];
        from.read_exact(&mut byte)?;
        if byte == *b"\n" {
            return String::from_utf8(line).map_err(io::Error::other);
        }
        line.extend(byte);
    }
    Err(io::ErrorKind::InvalidData.into())
}
