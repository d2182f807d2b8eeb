//! The destinations of notifications: mail addresses, hosts with ports, and URIs of syslog servers.

use std::fmt;
use std::net::Ipv6Addr;

use crate::error::Error;
use crate::values::text::shown;

/// The maximum length of a domain name (RFC 1035, 2.3.4).
const DOMAIN_CHARS_MAX: usize = 253;
/// The maximum length of a label of a domain.
const LABEL_CHARS_MAX: usize = 63;
/// The maximum length of the part of an address before the `@` (RFC 5321, 4.5.3.1.1).
const LOCAL_CHARS_MAX: usize = 64;
/// The maximum length of an address (RFC 5321, 4.5.3.1.3).
const ADDRESS_CHARS_MAX: usize = 254;
/// The characters that the part before the `@` may contain in addition to letters and digits,
/// without quotes (RFC 5322, 3.2.3).
const LOCAL_MARKS: &str = "!#$%&'*+/=?^_`{|}~-.";

/// Returns whether a text is a domain name, or an IPv4 address.
pub(crate) fn is_domain(text: &str) -> bool {
    let is_label = |label: &str| {
        (1..=LABEL_CHARS_MAX).contains(&label.len())
            && label.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    text.len() <= DOMAIN_CHARS_MAX && text.split('.').all(is_label)
}

/// Returns whether a text is valid before the `@` of an address.
fn is_local_part(text: &str) -> bool {
    (1..=LOCAL_CHARS_MAX).contains(&text.len())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || LOCAL_MARKS.contains(c))
        && text.split('.').all(|part| !part.is_empty())
}

/// Checks the domain of the sender of mail.
pub(crate) fn check_sender_domain(text: &str) -> Result<(), Error> {
    match is_domain(text) {
        true => Ok(()),
        false => Err(Error::invalid(
            "invalid_relay",
            format!("{} is not the name of a domain, such as example.com.", shown(text)),
        )),
    }
}

/// Checks the part of the sender's address before the `@`.
pub(crate) fn check_sender_username(text: &str) -> Result<(), Error> {
    match is_local_part(text) {
        true => Ok(()),
        false => Err(Error::invalid(
            "invalid_relay",
            format!("{} is not allowed before the @ of an address.", shown(text)),
        )),
    }
}

/// A mail address: `NAME@DOMAIN`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MailAddress(String);

impl MailAddress {
    /// Checks an address.
    ///
    /// # Errors
    /// `invalid_address`.
    pub fn new(text: &str) -> Result<Self, Error> {
        let parts = text.rsplit_once('@');
        let is_good = parts.is_some_and(|(local, domain)| {
            is_local_part(local) && is_domain(domain) && text.len() <= ADDRESS_CHARS_MAX
        });
        match is_good {
            true => Ok(Self(text.to_owned())),
            false => Err(Error::invalid(
                "invalid_address",
                format!("{} is not a mail address, such as anna@example.com.", shown(text)),
            )),
        }
    }

    /// Returns it in lower case, for comparison.
    pub(crate) fn key(&self) -> String {
        self.0.to_ascii_lowercase()
    }

    /// Returns it as it was given.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A host by its name or address, and a port if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlace {
    /// The name or the address, without brackets.
    pub host: String,
    /// The port.
    pub port: Option<u16>,
}

impl HostPlace {
    /// Parses `HOST`, `HOST:PORT`, an IPv6 address, or `[IPV6]:PORT`.
    pub fn parse(text: &str) -> Option<Self> {
        let port_of = |text: &str| {
            let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse::<u16>().ok().filter(|port| is_number && *port > 0)
        };
        if text.parse::<Ipv6Addr>().is_ok() {
            return Some(Self { host: text.to_owned(), port: None });
        }
        if let Some((host, rest)) = text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            host.parse::<Ipv6Addr>().ok()?;
            let port = match rest {
                "" => None,
                rest => Some(port_of(rest.strip_prefix(':')?)?),
            };
            return Some(Self { host: host.to_owned(), port });
        }
        let (host, port) = match text.split_once(':') {
            Some((host, port)) => (host, Some(port_of(port)?)),
            None => (text, None),
        };
        is_domain(host).then(|| Self { host: host.to_owned(), port })
    }

    /// Returns `HOST:PORT`, with brackets around an IPv6 address, and this port if none is given.
    pub fn with_port(&self, default: u16) -> String {
        let (host, port) = (&self.host, self.port.unwrap_or(default));
        match host.contains(':') {
            true => format!("[{host}]:{port}"),
            false => format!("{host}:{port}"),
        }
    }
}

/// The transport of messages to a syslog server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyslogProtocol {
    /// UDP: a datagram for each message.
    Udp,
    /// TCP.
    Tcp,
    /// TLS over TCP.
    Tls,
}

/// The URI of a syslog server: `udp://`, `tcp://` or `tls://`, a host, and a port if one is given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyslogUri {
    text: String,
    /// The transport of messages.
    pub protocol: SyslogProtocol,
    /// The host.
    pub place: HostPlace,
}

impl SyslogUri {
    /// Checks a URI.
    ///
    /// # Errors
    /// `invalid_uri`.
    pub fn new(text: &str) -> Result<Self, Error> {
        let protocol = |scheme: &str| match scheme {
            "udp" => Some(SyslogProtocol::Udp),
            "tcp" => Some(SyslogProtocol::Tcp),
            "tls" => Some(SyslogProtocol::Tls),
            _ => None,
        };
        let parts = text.split_once("://");
        let found =
            parts.and_then(|(scheme, place)| Some((protocol(scheme)?, HostPlace::parse(place)?)));
        let (protocol, place) = found.ok_or_else(|| {
            let text = "A syslog server is udp://HOST:PORT, tcp://HOST:PORT or tls://HOST:PORT.";
            Error::invalid("invalid_uri", text)
        })?;
        Ok(Self { text: text.to_owned(), protocol, place })
    }

    /// Returns `HOST:PORT`, with the default port (RFC 5426, RFC 6587, RFC 5425) if none is given.
    pub fn address(&self) -> String {
        self.place.with_port(match self.protocol {
            SyslogProtocol::Udp | SyslogProtocol::Tcp => 514,
            SyslogProtocol::Tls => 6514,
        })
    }

    /// Returns it as it was given.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for SyslogUri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_of_mail_are_checked() {
        for good in ["anna@example.com", "a.b+c@x-y.example", "root@localhost"] {
            assert_eq!(MailAddress::new(good).unwrap().as_str(), good);
        }
        let long = format!("{}@example.com", "a".repeat(65));
        for bad in [
            "",
            "anna",
            "@example.com",
            "anna@",
            "a@b@c",
            "a b@c.d",
            "a..b@c.d",
            ".a@c.d",
            "a@-b.c",
            "a@b..c",
            "a@b\r\nc",
            "<a@b.c>",
            "a\n@b.c",
            &long,
        ] {
            assert_eq!(MailAddress::new(bad).unwrap_err().code(), "invalid_address", "{bad:?}");
        }
    }

    #[test]
    fn hosts_have_ports_or_not() {
        for (text, host, address) in [
            ("mail.example.com", "mail.example.com", "mail.example.com:25"),
            ("192.0.2.1:2525", "192.0.2.1", "192.0.2.1:2525"),
            ("2001:db8::1", "2001:db8::1", "[2001:db8::1]:25"),
            ("[2001:db8::1]", "2001:db8::1", "[2001:db8::1]:25"),
            ("[2001:db8::1]:587", "2001:db8::1", "[2001:db8::1]:587"),
        ] {
            let place = HostPlace::parse(text).unwrap();
            assert_eq!((&*place.host, &*place.with_port(25)), (host, address), "{text}");
        }
        for bad in ["", ":25", "a:", "a:0", "a:65536", "a:+5", "a b", "[a]:5", "[::1]5", "a/b"] {
            assert_eq!(HostPlace::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn uris_of_syslog_servers_are_checked() {
        for (text, address) in [
            ("udp://log.example.com", "log.example.com:514"),
            ("tcp://192.0.2.1:601", "192.0.2.1:601"),
            ("tls://[::1]", "[::1]:6514"),
        ] {
            let uri = SyslogUri::new(text).unwrap();
            assert_eq!((uri.as_str(), &*uri.address()), (text, address));
        }
        for bad in
            ["", "log", "http://example.com", "udp://", "udp://a/b", "udp://u:p@log", "UDP://log"]
        {
            assert_eq!(SyslogUri::new(bad).unwrap_err().code(), "invalid_uri", "{bad:?}");
        }
    }
}
