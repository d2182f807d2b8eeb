//! The first line of each link connection, which says what it is for: `holdfast-link`, the version
//! of what follows, and words.
//!
//! ```text
//! holdfast-link 1 control ct1 4711 0.1.0      a controller, its process, its version; answered by
//! holdfast-link 1 generation 3 incarnation 9  the number of the link, and the pool's incarnation;
//!                                             then each end sends a dot every quarter of a second
//! holdfast-link 1 speaks 1 2                  or by this, if the owner does not speak the version
//!                                             of that line: the oldest and the newest it does
//! holdfast-link 1 successor 3                 a controller that takes connections over from an
//!                                             owner that hands over, of this generation
//! holdfast-link 1 host 3 PORTAL LOCAL PEER    a connection of a host that arrived at a portal, and
//!                                             its two addresses; then the host's bytes
//! ```
//!
//! A program speaks the version of its link and the previous one, so that two controllers can be
//! upgraded one after the other. The controller without the pool begins with its newest version,
//! and then uses the newest that both speak. The answer `speaks` has the same form in all versions.

use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;

use super::Controller;

/// The longest line: three IPv6 addresses with scopes are far shorter.
pub(super) const LINE_BYTES_MAX: usize = 256;
const NAME: &str = "holdfast-link";

/// A version of the link.
pub(super) type Version = u32;

/// The versions of the link that a program speaks, without a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Versions {
    pub oldest: Version,
    pub newest: Version,
}

impl Versions {
    /// The versions of this program. There is none before the first.
    pub const OWN: Self = Self { oldest: 1, newest: 1 };

    fn has(self, version: Version) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// Returns the newest version in both.
    pub(super) fn newest_of_both(self, other: Self) -> Option<Version> {
        let newest = self.newest.min(other.newest);
        (self.has(newest) && other.has(newest)).then_some(newest)
    }

    /// Returns the answer to a first line of another version.
    pub(super) fn to_line(self) -> String {
        format!("{NAME} {} speaks {} {}\n", self.newest, self.oldest, self.newest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.oldest, self.newest)
    }
}

/// The reason why a first line can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// Its version is not spoken.
    Version(Version),
    /// Its words are not valid in its version.
    Words,
}

/// The purpose of a link connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// A controller is present, with this process and version.
    Control { controller: Controller, pid: u32, version: String },
    /// Connections are handed over on this one.
    Successor { generation: u64 },
    /// A host's connection.
    Host { generation: u64, portal: SocketAddr, local: SocketAddr, peer: SocketAddr },
}

/// The answer to [`Purpose::Control`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    /// The other controller is accepted.
    Welcome(Welcome),
    /// The owner does not speak the version of that line, but these.
    Speaks(Versions),
}

/// What the other controller must know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    pub generation: u64,
    pub incarnation: u64,
}

impl Purpose {
    /// Returns the line in a version that both ends speak.
    pub(super) fn to_line(&self, spoken: Version) -> String {
        match self {
            Self::Control { controller, pid, version } => {
                format!("{NAME} {spoken} control {} {pid} {version}\n", controller.name())
            }
            Self::Successor { generation } => format!("{NAME} {spoken} successor {generation}\n"),
            Self::Host { generation, portal, local, peer } => {
                format!("{NAME} {spoken} host {generation} {portal} {local} {peer}\n")
            }
        }
    }

    /// Parses a line in one of the versions that are spoken.
    ///
    /// # Errors
    /// [`Unread`].
    pub(super) fn of_line(line: &str, spoken: Versions) -> Result<(Version, Self), Unread> {
        let (version, words) = words_of(line).ok_or(Unread::Words)?;
        if !spoken.has(version) {
            return Err(Unread::Version(version));
        }
        Self::of_words(&words).map(|purpose| (version, purpose)).ok_or(Unread::Words)
    }

    fn of_words(words: &[&str]) -> Option<Self> {
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
    pub(super) fn to_line(self, spoken: Version) -> String {
        let Self { generation, incarnation } = self;
        format!("{NAME} {spoken} generation {generation} incarnation {incarnation}\n")
    }
}

impl Answer {
    /// Parses the owner's answer to a line of this version.
    pub(super) fn of_line(line: &str, asked_in: Version) -> Option<Self> {
        let (version, words) = words_of(line)?;
        match words[..] {
            ["generation", generation, "incarnation", incarnation] if version == asked_in => {
                Some(Self::Welcome(Welcome {
                    generation: generation.parse().ok()?,
                    incarnation: incarnation.parse().ok()?,
                }))
            }
            ["speaks", oldest, newest] => Some(Self::Speaks(Versions {
                oldest: oldest.parse().ok()?,
                newest: newest.parse().ok()?,
            })),
            _ => None,
        }
    }
}

fn words_of(line: &str) -> Option<(Version, Vec<&str>)> {
    let mut words = line.strip_prefix(NAME)?.strip_prefix(' ')?.split(' ');
    Some((words.next()?.parse().ok()?, words.collect()))
}

/// Reads the first line, without its end. The rest is left in the socket.
///
/// # Errors
/// `InvalidData` if it has no end, or is not text; errors of the socket, and `UnexpectedEof`.
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
