//! Where management listens: a name or an address, and a port.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

/// The location of an array's management interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiPlace {
    /// A name or an address.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Whether the connection is not encrypted.
    pub plain: bool,
}

impl ApiPlace {
    /// Creates the place of an address, with encryption or without.
    pub fn of(address: SocketAddr, plain: bool) -> Self {
        Self { host: address.ip().to_string(), port: address.port(), plain }
    }

    /// Returns the address, if it is one and not a name.
    pub fn address(&self) -> Option<SocketAddr> {
        self.host.parse::<IpAddr>().ok().map(|ip| SocketAddr::new(ip, self.port))
    }

    /// Returns whether it is certainly this machine.
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
}
