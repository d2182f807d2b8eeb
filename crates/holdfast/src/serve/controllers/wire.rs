//! The first line of each connection of the link, which says what it is for: `holdfast-link`, the
//! version of what follows, and words.
//!
//! ```text
//! holdfast-link 1 control ct1 4711 0.1.0      a controller, its process, its version; answered by
//! holdfast-link 1 generation 3 incarnation 9  the number of the link, and the pool's incarnation;
//!                                             then each end sends a dot every quarter of a second
//! holdfast-link 1 speaks 1 2                  or by this, if the owner does not speak the version
//!                                             of that line: the oldest and the newest it does
//! holdfast-link 1 successor 3                 a controller that takes connections over from an
//!                                             owner that gives way, of this generation
//! holdfast-link 1 host 3 PORTAL LOCAL PEER    a connection of a host that came in at a portal, and
//!                                             its two addresses; then the host's bytes
//! ```
//!
//! A program speaks the version of its link and the one before, so that two controllers can be
//! upgraded one after the other. The controller that does not have the pool begins with its newest
//! version, and uses the newest that both speak from then on. The answer `speaks` has the same form
//! in all versions.

use std::fmt;
use std::io::{self, Read};
use std::net::SocketAddr;

use super::Controller;

/// No line is longer: three addresses of IPv6 with scopes are far shorter.
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
    /// Those of this program. There is none before the first.
    pub const OWN: Self = Self { oldest: 1, newest: 1 };

    fn has(self, version: Version) -> bool {
        (self.oldest..=self.newest).contains(&version)
    }

    /// The newest that is in both.
    pub(super) fn newest_of_both(self, other: Self) -> Option<Version> {
        let newest = self.newest.min(other.newest);
        (self.has(newest) && other.has(newest)).then_some(newest)
    }

    /// The answer to a first line of another version.
    pub(super) fn to_line(self) -> String {
        format!("{NAME} {} speaks {} {}\n", self.newest, self.oldest, self.newest)
    }
}

impl fmt::Display for Versions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} to {}", self.oldest, self.newest)
    }
}

/// Why a first line is of no use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is of a version that is not spoken.
    Version(Version),
    /// It does not have the words of its version, or is none.
    Words,
}

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
pub(super) enum Answer {
    /// The other controller is welcome.
    Welcome(Welcome),
    /// The owner does not speak the version of that line, but these.
    Speaks(Versions),
}

/// What the other controller has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Welcome {
    pub generation: u64,
    pub incarnation: u64,
}

impl Purpose {
    /// The line that says so in a version that both ends speak.
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

    /// What a line says, and in which of the versions that are spoken.
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
    /// What the owner says to a line of this version.
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
