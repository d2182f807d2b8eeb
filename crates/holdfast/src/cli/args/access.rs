//! The verbs of users and tokens, and where an array is managed.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::interval;
use crate::cli::listing::Listing;

/// `user …`.
#[derive(Debug, Subcommand)]
pub enum UserVerb {
    /// Make a user, who can do nothing before it has a token or a password.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// array_admin: everything; storage_admin: volumes, snapshots, hosts, connections;
        /// readonly: to look.
        #[arg(long)]
        role: String,
    },
    /// List all users.
    List(Listing),
    /// Give a user another role.
    Set {
        /// The user's name.
        name: String,
        /// As in `create`.
        #[arg(long)]
        role: String,
    },
    /// Give a user a password for the web page, or take it away. It is asked for on a terminal, and
    /// otherwise read from the standard input: 8 to 128 characters. The user's sessions end.
    Password {
        /// The user's name.
        name: String,
        /// Take it away.
        #[arg(long)]
        remove: bool,
    },
    /// Remove a user with its tokens.
    Delete {
        /// The user's name.
        name: String,
    },
}

/// `token …`.
#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    /// Make an API token, and print it this once.
    Create {
        /// What it is for: 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// The user that it is for.
        #[arg(long, default_value = array::users::BUILT_IN_USER)]
        user: String,
        /// For how long it is good, such as 90d. Default: until it is withdrawn.
        #[arg(long, value_name = "TIME", value_parser = parse_lifetime)]
        expires: Option<Duration>,
    },
    /// List API tokens, without the tokens themselves.
    List {
        /// Only those of this user.
        #[arg(long)]
        user: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Withdraw an API token.
    Delete {
        /// The token's name.
        name: String,
        /// The user that it belongs to.
        #[arg(long, default_value = array::users::BUILT_IN_USER)]
        user: String,
    },
}

fn parse_lifetime(text: &str) -> Result<Duration, String> {
    interval::parse(text)?.ok_or_else(|| "a lifetime looks like 90d or 12h".to_owned())
}

/// `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// How many entries.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: u64,
    /// Only those of this user.
    #[arg(long)]
    pub user: Option<String>,
    /// Only those that did this: POST, PATCH, PUT or DELETE.
    #[arg(long, value_parser = ["POST", "PATCH", "PUT", "DELETE"], ignore_case = true)]
    pub action: Option<String>,
    /// Only those with this text in what was asked.
    #[arg(long)]
    pub text: Option<String>,
}

/// Where an array is managed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiPlace {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether it is spoken to without encryption.
    pub plain: bool,
}

impl ApiPlace {
    /// An address, with encryption or without.
    pub fn of(address: SocketAddr, plain: bool) -> Self {
        Self { host: address.ip().to_string(), port: address.port(), plain }
    }

    /// The address, where it is one and not a name.
    pub fn address(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Whether it is this machine for certain.
    pub fn is_loopback(&self) -> bool {
        self.address().map_or(self.host == "localhost", |address| address.ip().is_loopback())
    }
}

impl FromStr for ApiPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (plain, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (true, rest),
            (_, Some(rest)) => (false, rest),
            _ => (false, text),
        };
        let refuse = || format!("{text:?} is not HOST:PORT, such as 127.0.0.1:3280");
        let (host, port) = rest.trim_end_matches('/').rsplit_once(':').ok_or_else(refuse)?;
        let port = port.parse().map_err(|_| refuse())?;
        let bracketed = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_');
        match bracketed {
            Some(host) if host.parse::<IpAddr>().is_ok_and(|ip| ip.is_ipv6()) => {
                Ok(Self { host: host.to_owned(), port, plain })
            }
            None if !host.is_empty() && host.chars().all(is_name) => {
                Ok(Self { host: host.to_owned(), port, plain })
            }
            _ => Err(refuse()),
        }
    }
}

impl fmt::Display for ApiPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(f, "[{}]:{}", self.host, self.port),
            false => write!(f, "{}:{}", self.host, self.port),
        }
    }
}

/// The SHA-256 of a certificate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [u8; 32]);

impl FromStr for Fingerprint {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let refuse = || "a fingerprint is 64 hex digits, with or without colons".to_owned();
        let digits: Vec<u32> = text
            .chars()
            .filter(|c| *c != ':')
            .map(|c| c.to_digit(16).ok_or_else(refuse))
            .collect::<Result<_, _>>()?;
        let mut bytes = [0; 32];
        if digits.len() != 64 {
            return Err(refuse());
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8);
        }
        Ok(Self(bytes))
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_have_a_host_and_a_port() {
        for (text, host, plain, shown) in [
            ("127.0.0.1:80", "127.0.0.1", false, "127.0.0.1:80"),
            ("[::1]:80", "::1", false, "[::1]:80"),
            ("array.example:80", "array.example", false, "array.example:80"),
            ("https://example.com:80/", "example.com", false, "example.com:80"),
            ("http://localhost:80", "localhost", true, "localhost:80"),
        ] {
            let place: ApiPlace = text.parse().unwrap();
            assert_eq!((place.host.as_str(), place.port, place.plain), (host, 80, plain));
            assert_eq!(place.to_string(), shown);
            assert_eq!(place.is_loopback(), !host.contains("example"), "{text}");
        }
        for bad in ["", "a", "a:", ":80", "a:65536", "::1:80", "[a]:80", "a/b:80", "ftp://a:80"] {
            assert!(bad.parse::<ApiPlace>().is_err(), "{bad}");
        }
    }

    #[test]
    fn fingerprints_are_64_digits() {
        let text = "0123456789abcdef".repeat(4);
        let one: Fingerprint = text.parse().unwrap();
        assert_eq!((one.to_string(), one.0[0], one.0[31]), (text.clone(), 0x01, 0xef));
        let upper: Vec<String> = one.0.iter().map(|byte| format!("{byte:02X}")).collect();
        assert_eq!(upper.join(":").parse(), Ok(one));
        for bad in ["", "01", &text[1..], &format!("{}g0", &text[2..])] {
            assert!(bad.parse::<Fingerprint>().is_err(), "{bad}");
        }
    }
}
