//! The name servers that the array queries, and the domain in which it looks names up.

use std::fmt;
use std::net::SocketAddr;

use crate::error::Error;
use crate::values::receivers::{HostPlace, is_domain};
use crate::values::text::shown;

/// The maximum number of name servers: a look-up queries one after the other, and must end in time.
pub const NAME_SERVERS_MAX: usize = 3;
/// The default port of a name server (RFC 1035, 4.2).
const PORT: u16 = 53;

/// A name server: an address, and a port if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameServer {
    text: String,
    address: SocketAddr,
}

impl NameServer {
    /// Parses `ADDRESS`, `ADDRESS:PORT`, or `[IPV6]:PORT`.
    ///
    /// # Errors
    /// `invalid_dns`.
    pub fn new(text: &str) -> Result<Self, Error> {
        let place = HostPlace::parse(text);
        let found = place.and_then(|place| {
            let address = place.host.parse().ok()?;
            Some(SocketAddr::new(address, place.port.unwrap_or(PORT)))
        });
        let refuse = || {
            let text = shown(text);
            invalid(format!("{text} is not a name server: give an address, or ADDRESS:PORT."))
        };
        Ok(Self { text: text.to_owned(), address: found.ok_or_else(refuse)? })
    }

    /// Returns its address and port.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl fmt::Display for NameServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The settings of DNS. Without name servers the system looks names up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Dns {
    servers: Vec<NameServer>,
    domain: String,
}

impl Dns {
    /// Checks name servers, in the order in which they are queried, and the domain of names without
    /// a dot; empty for none.
    ///
    /// # Errors
    /// `invalid_dns`.
    pub fn new(servers: Vec<NameServer>, domain: String) -> Result<Self, Error> {
        if servers.len() > NAME_SERVERS_MAX {
            let count = servers.len();
            let text = format!("There are up to {NAME_SERVERS_MAX} name servers, not {count}.");
            return Err(invalid(text));
        }
        let mut addresses = servers.iter().map(NameServer::address).enumerate();
        if addresses.any(|(at, one)| servers[..at].iter().any(|other| other.address == one)) {
            return Err(invalid("A name server is named twice.".into()));
        }
        if !domain.is_empty() && !is_domain(&domain) {
            let text = format!("{} is not the name of a domain.", shown(&domain));
            return Err(invalid(text));
        }
        if !domain.is_empty() && servers.is_empty() {
            let text = "A domain needs a name server; without one the system resolves names.";
            return Err(invalid(text.into()));
        }
        Ok(Self { servers, domain })
    }

    /// Returns the name servers, in the order in which they are queried.
    pub fn servers(&self) -> &[NameServer] {
        &self.servers
    }

    /// Returns the domain of names without a dot; empty for none.
    pub fn domain(&self) -> &str {
        &self.domain
    }
}

fn invalid(text: String) -> Error {
    Error::invalid("invalid_dns", text)
}

/// A change to the settings of DNS; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DnsChange {
    /// See [`Dns::servers`].
    pub servers: Option<Vec<NameServer>>,
    /// See [`Dns::domain`].
    pub domain: Option<String>,
}

impl Dns {
    /// Returns the settings after a change.
    pub(crate) fn changed(self, change: DnsChange) -> Result<Self, Error> {
        Self::new(change.servers.unwrap_or(self.servers), change.domain.unwrap_or(self.domain))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn servers(texts: &[&str]) -> Vec<NameServer> {
        texts.iter().map(|text| NameServer::new(text).unwrap()).collect()
    }

    #[test]
    fn name_servers_are_addresses_with_ports_or_without() {
        for (text, address) in [
            ("192.0.2.1", "192.0.2.1:53"),
            ("192.0.2.1:5353", "192.0.2.1:5353"),
            ("2001:db8::1", "[2001:db8::1]:53"),
            ("[2001:db8::1]:5353", "[2001:db8::1]:5353"),
        ] {
            let server = NameServer::new(text).unwrap();
            assert_eq!((server.to_string(), server.address()), (text.into(), parsed(address)));
        }
        for bad in ["", "ns.example.com", "192.0.2.1:0", "192.0.2", "192.0.2.1/24", "a b"] {
            assert_eq!(NameServer::new(bad).unwrap_err().code(), "invalid_dns", "{bad:?}");
        }
    }

    fn parsed(address: &str) -> SocketAddr {
        address.parse().unwrap()
    }

    #[test]
    fn there_are_up_to_three_name_servers_and_a_domain_needs_one() {
        let refused = |texts: &[&str], domain: &str| {
            Dns::new(servers(texts), domain.into()).unwrap_err().to_string()
        };
        let four = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];
        assert!(refused(&four, "").contains("up to 3"));
        assert!(refused(&["192.0.2.1", "192.0.2.1:53"], "").contains("twice"));
        assert!(refused(&["192.0.2.1"], "a b").contains("not the name of a domain"));
        assert!(refused(&[], "example.com").contains("needs a name server"));
        let dns = Dns::new(servers(&four[..3]), "example.com".into()).unwrap();
        let without = DnsChange { servers: Some(Vec::new()), ..DnsChange::default() };
        assert_eq!(dns.clone().changed(without.clone()).unwrap_err().code(), "invalid_dns");
        let none = DnsChange { domain: Some(String::new()), ..without };
        assert_eq!(dns.changed(none).unwrap(), Dns::default());
    }
}
