//! A connection to a directory server, encrypted unless it stays on this machine.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

use array::{Directory, DirectoryUri};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, StreamOwned};

use super::ber;
use super::message::{Answer, Entry, Outcome, Request, Search};
use crate::{Names, connect};

/// The longest accepted message: many times the expected length.
const MESSAGE_BYTES_MAX: usize = 64 << 10;
/// The longest part of a server's text that is displayed.
const TEXT_CHARS_MAX: usize = 200;

/// A stream with a deadline for all operations.
struct Timed {
    stream: TcpStream,
    end: Instant,
}

impl Timed {
    fn left(&self) -> io::Result<Duration> {
        let left = self.end.saturating_duration_since(Instant::now());
        match left.is_zero() {
            true => Err(late()),
            false => Ok(left),
        }
    }
}

fn late() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "it does not answer in time")
}

fn told(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => late(),
        _ => error,
    }
}

impl Read for Timed {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer).map_err(told)
    }
}

impl Write for Timed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes).map_err(told)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}

enum Wire {
    Plain(Timed),
    Tls(Box<StreamOwned<ClientConnection, Timed>>),
}

impl Wire {
    fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.read_exact(buffer),
            Self::Tls(stream) => stream.read_exact(buffer),
        }
    }

    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(stream) => stream.write_all(bytes),
            Self::Tls(stream) => stream.write_all(bytes).and_then(|()| stream.flush()),
        }
    }
}

/// A connection with one request at a time.
pub(super) struct Connection {
    wire: Wire,
    last_id: u32,
    end: Instant,
}

fn no_ldap() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "what it answers is no LDAP")
}

/// Returns the error of an operation that failed.
pub(super) fn failed(what: &str, outcome: &Outcome) -> io::Error {
    let said = outcome.text.chars().take(TEXT_CHARS_MAX).flat_map(char::escape_debug);
    let said: String = said.collect();
    let code = outcome.code;
    io::Error::other(format!("it refuses {what}: {said} (LDAP result {code})"))
}

/// Returns the TLS configuration with the trusted certificates.
fn trusted(directory: &Directory) -> io::Result<Arc<ClientConfig>> {
    let config = match directory.ca_certificate.is_empty() {
        true => trust::of_machine(),
        false => {
            let pem = directory.ca_certificate.as_bytes();
            let all = CertificateDer::pem_slice_iter(pem).collect::<Result<Vec<_>, _>>();
            trust::certificates(all.map_err(|_| io::Error::other("the certificate is no PEM"))?)
        }
    };
    config.map(Arc::new).map_err(io::Error::other)
}

/// Returns whether encryption is not required: the connection stays on this machine, and no trusted
/// certificate is configured.
fn is_plain(uri: &DirectoryUri, directory: &Directory) -> bool {
    !uri.is_tls() && uri.is_loopback() && directory.ca_certificate.is_empty()
}

impl Connection {
    /// Connects, and begins TLS.
    pub(super) fn open(
        uri: &DirectoryUri,
        directory: &Directory,
        names: &Names,
        end: Instant,
    ) -> io::Result<Self> {
        // Checking a certificate requires a valid clock.
        if !sys::wall::is_dated() {
            let text = "the clock of this machine is before 1970 or after 9999";
            return Err(io::Error::other(text));
        }
        let addresses = names.addresses(uri.host(), uri.port())?;
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late());
        }
        let stream = connect(&addresses, left).map_err(told)?;
        stream.set_nodelay(true)?;
        let wire = Wire::Plain(Timed { stream, end });
        let mut connection = Self { wire, last_id: 0, end };
        if is_plain(uri, directory) {
            return Ok(connection);
        }
        if !uri.is_tls() {
            match connection.ask(&Request::StartTls)? {
                Answer::Extended(Outcome { code: 0, .. }) => {}
                Answer::Extended(outcome) => return Err(failed("TLS", &outcome)),
                _ => return Err(no_ldap()),
            }
        }
        connection.encrypt(uri, trusted(directory)?)
    }

    fn encrypt(self, uri: &DirectoryUri, config: Arc<ClientConfig>) -> io::Result<Self> {
        let Wire::Plain(mut stream) = self.wire else { return Err(no_ldap()) };
        let name = ServerName::try_from(uri.host().to_owned()).map_err(io::Error::other)?;
        let mut tls = ClientConnection::new(config, name).map_err(io::Error::other)?;
        while tls.is_handshaking() {
            tls.complete_io(&mut stream)?;
        }
        let wire = Wire::Tls(Box::new(StreamOwned::new(tls, stream)));
        Ok(Self { wire, ..self })
    }

    fn send(&mut self, request: &Request<'_>) -> io::Result<()> {
        self.last_id += 1;
        self.wire.write_all(&request.message(self.last_id))
    }

    /// Returns the next response to the last request.
    fn answer(&mut self) -> io::Result<Answer> {
        let mut message = Vec::new();
        let whole = loop {
            // A header has at most six bytes, and every message has as many as its length field
            // needs.
            let mut byte = [0];
            self.wire.read_exact(&mut byte)?;
            message.extend(byte);
            if let Some(whole) = ber::length(&message).map_err(|_| no_ldap())? {
                break whole;
            }
        };
        if whole > MESSAGE_BYTES_MAX {
            let text = format!("it answers with more than {MESSAGE_BYTES_MAX} bytes");
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        let read = message.len();
        message.resize(whole.max(read), 0);
        self.wire.read_exact(&mut message[read..])?;
        match Answer::parse(&message).map_err(|_| no_ldap())? {
            (id, answer) if id == self.last_id => Ok(answer),
            // Number 0 says that the server ends the connection (RFC 4511, 4.4.1).
            (0, Answer::Extended(outcome)) => Err(failed("to go on", &outcome)),
            _ => Err(no_ldap()),
        }
    }

    fn ask(&mut self, request: &Request<'_>) -> io::Result<Answer> {
        self.send(request)?;
        self.answer()
    }

    /// Binds, and returns the result. An empty password is never sent: a server would accept it as
    /// an anonymous bind (RFC 4513, 5.1.2).
    pub(super) fn bind(&mut self, user: &str, password: &str) -> io::Result<Outcome> {
        if user.is_empty() || password.is_empty() {
            return Err(io::Error::other("there is no user, or no password, to bind with"));
        }
        match self.ask(&Request::Bind(user, password))? {
            Answer::Bound(outcome) => Ok(outcome),
            _ => Err(no_ldap()),
        }
    }

    /// Searches. Does not follow referrals.
    pub(super) fn search(&mut self, search: Search<'_>) -> io::Result<(Vec<Entry>, Outcome)> {
        let most = search.entries_max as usize;
        let seconds = self.end.saturating_duration_since(Instant::now()).as_secs() as u32;
        self.send(&Request::Search(Search { seconds: seconds.max(1), ..search }))?;
        let (mut found, mut references) = (Vec::new(), 0);
        loop {
            match self.answer()? {
                Answer::Entry(entry) => found.push(entry),
                Answer::Reference => references += 1,
                Answer::SearchDone(outcome) => return Ok((found, outcome)),
                _ => return Err(no_ldap()),
            }
            if found.len() > most || references > most + 64 {
                return Err(io::Error::other("it answers with more than it was asked for"));
            }
        }
    }

    /// Ends the connection with an unbind request; it does not matter whether that arrives.
    pub(super) fn end(mut self) {
        let _ = self.send(&Request::Unbind);
    }
}
