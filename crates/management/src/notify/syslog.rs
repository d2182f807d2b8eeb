//! Syslog: RFC 5424 over UDP (RFC 5426), TCP (RFC 6587, octet counting) or TLS (RFC 5425).

use std::io::{self, Read, Write};
use std::net::UdpSocket;
use std::sync::Arc;

use array::Severity;
use network::Names;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use time::OffsetDateTime;

use super::{Event, News, SEND_TIMEOUT, Sender};

/// Receivers must accept 480 bytes, and should accept 2 KiB (RFC 5424, 6.1).
const MESSAGE_BYTES_MAX: usize = 2048;
/// The facility of alerts: system daemons (RFC 5424, table 1).
const FACILITY_DAEMON: u8 = 3;
/// The facility of changes: log audit.
const FACILITY_AUDIT: u8 = 13;

/// The most reads from a receiver at the end: it sends nothing but TLS records.
const LAST_READS_MAX: usize = 16;

/// The transport of messages.
#[derive(Clone)]
pub enum Transport {
    /// One datagram each, without confirmation.
    Udp,
    /// A stream.
    Tcp,
    /// An encrypted stream.
    Tls(Arc<ClientConfig>),
}

/// A syslog server.
pub struct Syslog {
    /// `HOST:PORT`.
    pub address: String,
    /// The transport.
    pub transport: Transport,
    /// The name of this machine.
    pub hostname: String,
}

impl Sender for Syslog {
    fn send(&self, event: &Event, names: &Names) -> Result<(), String> {
        let message = message(event, &self.hostname);
        self.transmit(message.as_bytes(), names)
            .map_err(|error| format!("{}: {error}", self.address))
    }
}

impl Syslog {
    fn transmit(&self, message: &[u8], names: &Names) -> io::Result<()> {
        let nowhere = || io::Error::new(io::ErrorKind::InvalidInput, "it has no port");
        let (host, port) = self.address.rsplit_once(':').ok_or_else(nowhere)?;
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        let addresses = names.addresses(&host, port.parse().map_err(|_| nowhere())?)?;
        if let (Transport::Udp, Some(address)) = (&self.transport, addresses.first()) {
            let any = if address.is_ipv4() { "0.0.0.0:0" } else { "[::]:0" };
            let socket = UdpSocket::bind(any)?;
            socket.connect(address)?;
            return socket.send(message).map(drop);
        }
        let mut framed = format!("{} ", message.len()).into_bytes();
        framed.extend_from_slice(message);
        let mut stream = network::connect(&addresses, SEND_TIMEOUT)?;
        stream.set_read_timeout(Some(SEND_TIMEOUT))?;
        stream.set_write_timeout(Some(SEND_TIMEOUT))?;
        let Transport::Tls(config) = &self.transport else {
            stream.write_all(&framed)?;
            return stream.shutdown(std::net::Shutdown::Write);
        };
        let name = ServerName::try_from(host).map_err(io::Error::other)?;
        let session = ClientConnection::new(config.clone(), name).map_err(io::Error::other)?;
        let mut stream = StreamOwned::new(session, stream);
        stream.write_all(&framed)?;
        stream.conn.send_close_notify();
        stream.flush()?;
        stream.sock.shutdown(std::net::Shutdown::Write)?;
        // Read what the receiver has sent (at least TLS 1.3 tickets) before the end: a connection
        // that is closed with unread bytes is reset, and the event may be lost with it (RFC 1122,
        // 4.2.2.13). A receiver that does not close has received it nevertheless.
        let mut rest = [0; 4096];
        for _ in 0..LAST_READS_MAX {
            if !matches!(stream.sock.read(&mut rest), Ok(1..)) {
                break;
            }
        }
        Ok(())
    }
}

/// Formats an event by RFC 5424, 6, without structured data.
fn message(event: &Event, hostname: &str) -> String {
    let facility = match event.news {
        News::Changed(_) => FACILITY_AUDIT,
        _ => FACILITY_DAEMON,
    };
    let severity = match event.severity() {
        Some(Severity::Critical) => 2,
        Some(Severity::Warning) => 4,
        Some(Severity::Info) => 6,
        None => 5,
    };
    let priority = facility * 8 + severity;
    let (time, kind, id) = (timestamp(event.time_ms), event.kind(), std::process::id());
    let host = printable(hostname);
    let text: String = event.text().chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    // A byte order mark announces UTF-8 (RFC 5424, 6.4).
    let mut message = format!(
        "<{priority}>1 {time} {host} holdfast {id} {kind} - \u{feff}{}: {text}",
        event.array
    );
    while message.len() > MESSAGE_BYTES_MAX {
        message.pop();
    }
    message
}

/// Returns a name in printable ASCII, or `-` (RFC 5424, 6.2.4).
fn printable(name: &str) -> String {
    let kept: String = name.chars().filter(char::is_ascii_graphic).take(255).collect();
    if kept.is_empty() { "-".into() } else { kept }
}

/// Formats a time by RFC 3339 with milliseconds, or returns `-` if that is impossible.
fn timestamp(ms: u64) -> String {
    let seconds = i64::try_from(ms / 1000).ok();
    let Some(at) = seconds.and_then(|s| OffsetDateTime::from_unix_timestamp(s).ok()) else {
        return "-".into();
    };
    let (year, month, day) = (at.year(), u8::from(at.month()), at.day());
    let (hour, minute, second) = at.to_hms();
    let milli = ms % 1000;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_follow_rfc_5424() {
        let event = |news| Event { news, time_ms: 1_700_000_000_123, array: "lab".into() };
        let text = message(&event(News::Test), "a host");
        let id = std::process::id();
        let head =
            format!("<29>1 2023-11-14T22:13:20.123Z ahost holdfast {id} test - \u{feff}lab: ");
        assert!(text.starts_with(&head), "{text}");
        assert_eq!((printable("é"), timestamp(u64::MAX)), ("-".into(), "-".into()));
        let long = Event { array: "é".repeat(2000), ..event(News::Test) };
        assert!(message(&long, "h").len() <= MESSAGE_BYTES_MAX);
    }
}
