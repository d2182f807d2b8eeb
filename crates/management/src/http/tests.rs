//! The server with real clients over loopback.

use std::io::{Read, Write};
use std::net::Ipv4Addr;
use std::path::Path;

use axum::Extension;
use axum::routing::{get, post};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use trust::Fingerprint;

use super::*;
use crate::certificate::{self, ServerIdentity};

const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

fn bound() -> Bound {
    Bound::new("127.0.0.1:0".parse().unwrap()).unwrap()
}

fn identity() -> ServerIdentity {
    identity_in(tempfile::tempdir().unwrap().path())
}

/// Returns an identity whose files exist as long as the directory.
fn identity_in(directory: &Path) -> ServerIdentity {
    certificate::kept(Ok(directory), directory, Ipv4Addr::LOCALHOST.into()).unwrap()
}

/// Trusts exactly the certificate with this fingerprint.
fn pinned(fingerprint: Fingerprint) -> Arc<ClientConfig> {
    Arc::new(trust::pinned(fingerprint).unwrap())
}

/// Starts a server that returns the address of its caller.
fn start(bound: Bound, tls: Option<Arc<ServerConfig>>) -> Server {
    start_with(bound, tls, CONNECTIONS_MAX)
}

fn start_with(bound: Bound, tls: Option<Arc<ServerConfig>>, connections: usize) -> Server {
    let who = |Extension(Origin(from)): Extension<Origin>| async move { format!("to {from}") };
    let unread = || async { "body not read" };
    let router = move || Router::new().route("/", get(who)).route("/unread", post(unread));
    bound.start(tls, connections, router).unwrap()
}

/// Reads up to the end of a response whose body is `body`.
fn read_answer(stream: &mut impl Read, body: &str) -> String {
    let mut answer = Vec::new();
    while !answer.ends_with(body.as_bytes()) {
        let mut byte = [0];
        stream.read_exact(&mut byte).unwrap();
        answer.push(byte[0]);
    }
    String::from_utf8(answer).unwrap()
}

fn connect(address: SocketAddr) -> std::net::TcpStream {
    let stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    stream
}

fn converse(mut stream: impl Read + Write) -> io::Result<String> {
    stream.write_all(REQUEST)?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

fn ask(address: SocketAddr, tls: &Arc<ClientConfig>) -> io::Result<String> {
    let name = ServerName::try_from("elsewhere.example").unwrap();
    let client = ClientConnection::new(tls.clone(), name).map_err(io::Error::other)?;
    converse(StreamOwned::new(client, connect(address)))
}

#[test]
fn it_serves_until_it_is_dropped() {
    let bound = bound();
    let address = bound.address;
    let server = start(bound, None);
    assert!(converse(connect(address)).unwrap().ends_with("to 127.0.0.1"));
    drop(server);
    assert!(std::net::TcpStream::connect(address).is_err());
}

#[test]
fn only_the_holder_of_the_certificate_is_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let (bound, identity) = (bound(), identity_in(directory.path()));
    let address = bound.address;
    let _server = start(bound, Some(identity.tls.clone()));
    let right = pinned(identity.credentials.fingerprint());
    assert!(ask(address, &right).unwrap().ends_with("to 127.0.0.1"));
    let own = certificate::read_certificates(identity.credentials.path()).unwrap();
    let own = Arc::new(trust::certificates(own).unwrap());
    assert!(ask(address, &own).unwrap().ends_with("to 127.0.0.1"));
    let mut other = identity.credentials.fingerprint();
    other.0[0] ^= 1;
    let wrong = pinned(other);
    let reported = ask(address, &wrong).unwrap_err().to_string();
    assert!(reported.contains(&identity.credentials.fingerprint().to_string()), "{reported}");
    // Without encryption there is no response.
    let answer = converse(connect(address)).unwrap_or_default();
    assert!(!answer.contains("to 127"), "{answer}");
}

#[test]
fn silent_clients_do_not_delay_others() {
    let (bound, identity) = (bound(), identity());
    let address = bound.address;
    let _server = start(bound, Some(identity.tls.clone()));
    let tls = pinned(identity.credentials.fingerprint());
    // More than the limit, per address and in total.
    let silent: Vec<_> = (0..300)
        .map(|n| {
            let mut stream = connect(address);
            if n % 2 == 0 {
                // The beginning of a handshake.
                stream.write_all(&[22, 3, 1]).unwrap();
            }
            stream
        })
        .collect();
    for _ in 0..3 {
        assert!(ask(address, &tls).unwrap().ends_with("to 127.0.0.1"));
    }
    // The first ones were displaced, not the last ones.
    let is_open = |mut stream: &std::net::TcpStream| {
        stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
        matches!(stream.read(&mut [0]), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    };
    assert!(!is_open(&silent[0]) && is_open(&silent[299]));
    let open = silent.iter().filter(|stream| is_open(stream)).count();
    assert!(open < CONNECTIONS_MAX / 2, "{open}");
}

#[test]
fn clients_that_stop_within_a_request_do_not_delay_others() {
    let bound = bound();
    let address = bound.address;
    let _server = start(bound, None);
    let mut silent: Vec<_> = (0..300).map(|_| connect(address)).collect();
    for stream in &mut silent {
        // It fails on connections that are already closed.
        let _ = stream.write_all(b"GET / HT");
    }
    assert!(converse(connect(address)).unwrap().ends_with("to 127.0.0.1"));
}

/// It was closed after such a response, without an announcement.
#[test]
fn a_connection_continues_after_an_unread_body() {
    let bound = bound();
    let address = bound.address;
    let _server = start(bound, None);
    for length in [1, 300_000] {
        let mut stream = connect(address);
        let head = format!("POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
        stream.write_all(head.as_bytes()).unwrap();
        // Long enough that a response which does not wait for the body would be sent.
        std::thread::sleep(Duration::from_millis(100));
        stream.write_all(&vec![0; length]).unwrap();
        let answer = read_answer(&mut stream, "body not read");
        assert!(!answer.to_lowercase().contains("connection: close"), "{answer}");
        assert!(converse(stream).unwrap().ends_with("to 127.0.0.1"));
    }
}

#[test]
fn a_very_long_unread_body_ends_the_connection_after_the_response() {
    let bound = bound();
    let address = bound.address;
    let _server = start(bound, None);
    let length = 8 << 20;
    let mut stream = connect(address);
    let head = format!("POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n");
    stream.write_all(head.as_bytes()).unwrap();
    stream.write_all(&vec![0; length]).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
    assert!(answer.ends_with("body not read"), "{answer}");
}

#[test]
fn a_client_that_waits_for_100_continue_gets_the_response_instead() {
    let bound = bound();
    let address = bound.address;
    let _server = start(bound, None);
    let mut stream = connect(address);
    let head =
        "POST /unread HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\nExpect: 100-continue\r\n\r\n";
    stream.write_all(head.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    assert!(answer.to_lowercase().contains("connection: close"), "{answer}");
}

/// A TLS client treats an unannounced end as an attack.
#[test]
fn a_connection_announces_its_end() {
    let (bound, identity) = (bound(), identity());
    let address = bound.address;
    // One connection from one address.
    let _server = start_with(bound, Some(identity.tls.clone()), 2);
    let tls = pinned(identity.credentials.fingerprint());
    let open = || {
        let name = ServerName::try_from("elsewhere.example").unwrap();
        StreamOwned::new(ClientConnection::new(tls.clone(), name).unwrap(), connect(address))
    };
    let mut displaced = open();
    displaced.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    read_answer(&mut displaced, "to 127.0.0.1");
    let mut strange = open();
    // Invalid HTTP is answered, and the connection ends.
    strange.write_all(b"what is this?\r\n\r\n and more of it").unwrap();
    let mut answer = String::new();
    strange.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    assert_eq!(displaced.read(&mut [0]).unwrap(), 0);
}

#[test]
fn a_conversation_ends_without_a_valid_date_and_is_not_polled_again() {
    use std::cell::Cell;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let (is_dated, polls) = (Cell::new(true), Cell::new(0));
    let conversation = poll_fn(|context| {
        assert!(is_dated.get(), "it would have panicked");
        polls.set(polls.get() + 1);
        is_dated.set(polls.get() < 3);
        context.waker().wake_by_ref();
        Poll::<()>::Pending
    });
    runtime.block_on(while_dated(|| is_dated.get(), conversation));
    assert_eq!(polls.get(), 3);
    let mut was_dated = true;
    assert!(!log_clock_change(&mut was_dated, false) && log_clock_change(&mut was_dated, true));
}
