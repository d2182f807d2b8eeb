//! Both ends of a link over the network, in one process. `tests-peer --only link` tests it with
//! hosts, and in networks that fail.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);
const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The other machine.
const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 2));

/// Returns an address at which nobody listens. The system may offer a port again that a test of
/// this process has not used yet, so each is returned once.
fn free(at: IpAddr) -> SocketAddr {
    static RETURNED: Mutex<BTreeSet<SocketAddr>> = Mutex::new(BTreeSet::new());
    loop {
        let address = TcpListener::bind((at, 0)).unwrap().local_addr().unwrap();
        if RETURNED.lock().unwrap().insert(address) {
            return address;
        }
    }
}

fn options(own: Controller, listen: SocketAddr, peer: SocketAddr, secret: u8) -> TunnelOptions {
    let portal = |number: u16| SocketAddr::from((HERE, number));
    let portals = vec![(Controller::Ct0, portal(1)), (Controller::Ct1, portal(2))];
    TunnelOptions { own, listen, peer, secret: Secret::of([secret; 32]), portals, threads: 2 }
}

/// A controller that listens, where the other one would, and the connections it gets.
struct Owner {
    address: SocketAddr,
    peer: SocketAddr,
    doors: Option<Doors>,
    met: Receiver<UnixStream>,
}

impl Owner {
    fn new() -> Self {
        Self::at(free(HERE), free(THERE))
    }

    fn at(address: SocketAddr, peer: SocketAddr) -> Self {
        let tunnel = Tunnel::start(options(Controller::Ct0, address, peer, 7)).unwrap();
        let (sender, met) = channel();
        let meet = move |stream| drop(sender.send(stream));
        let doors = Some(tunnel.listen(Box::new(meet)).unwrap());
        Self { address, peer, doors, met }
    }

    /// Returns a valid other controller.
    fn other(&self) -> Arc<Tunnel> {
        Tunnel::start(options(Controller::Ct1, self.peer, self.address, 7)).unwrap()
    }

    /// Returns both ends of a connection of it.
    fn connected(&self, other: &Tunnel) -> (UnixStream, UnixStream) {
        let mut there = other.connect().unwrap();
        there.write_all(b"hello\n").unwrap();
        let mut here = self.met.recv_timeout(PATIENCE).unwrap();
        let mut line = [0; 6];
        here.read_exact(&mut line).unwrap();
        assert_eq!(&line, b"hello\n");
        (here, there)
    }

    /// Checks that such a controller is refused, while the valid one is accepted.
    fn must_refuse(&self, other: TunnelOptions) {
        let tunnel = Tunnel::start(other).unwrap();
        let mut stream = tunnel.connect().unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.write_all(b"hello\n").unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0, "it comes to its end");
        assert!(self.met.try_recv().is_err(), "it was let in");
        drop(self.connected(&self.other()));
    }
}

fn bytes(count: usize, seed: usize) -> Vec<u8> {
    (0..count).map(|at| ((at * 31 + seed) % 251) as u8).collect()
}

/// Writes in pieces of this many bytes, and returns what the other end has read.
fn moved(from: UnixStream, to: UnixStream, sent: Vec<u8>, piece: usize) -> Vec<u8> {
    let writing = thread::spawn(move || {
        sent.chunks(piece).for_each(|piece| (&from).write_all(piece).unwrap());
        from
    });
    let mut got = vec![0; 0];
    let mut buffer = vec![0; 70_001];
    let until = Instant::now() + PATIENCE;
    to.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    while !writing.is_finished() || until > Instant::now() {
        match (&to).read(&mut buffer) {
            Ok(0) => break,
            Ok(bytes) => got.extend(&buffer[..bytes]),
            Err(_) if writing.is_finished() => break,
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    drop(writing.join().unwrap());
    got
}

#[test]
fn a_secret_is_exactly_64_hex_digits() {
    let secret = Secret::of([0xa7; 32]);
    assert_eq!(Secret::parse(&secret.to_text()).unwrap().to_text(), secret.to_text());
    assert!(Secret::parse(&format!(" {}\n\n", "5A".repeat(32))).is_some());
    for text in ["", "secret", "é", &"7".repeat(63), &"7".repeat(65), &"+7".repeat(32)] {
        assert!(Secret::parse(text).is_none(), "{text}");
    }
    assert!(!format!("{secret:?}").contains("a7"), "it is never shown");
}

#[test]
fn all_bytes_arrive_in_order_in_both_directions() {
    let owner = Owner::new();
    let other = owner.other();
    for piece in [1 << 20, 4099, 48] {
        let count = if piece == 48 { 100_000 } else { 3_000_000 };
        let (here, there) = owner.connected(&other);
        let (sent, answer) = (bytes(count, 1), bytes(count, 2));
        let ends = (here.try_clone().unwrap(), there.try_clone().unwrap());
        let (expected, back) =
            (answer.clone(), thread::spawn(move || moved(ends.0, ends.1, answer, piece)));
        assert!(moved(there, here, sent.clone(), piece) == sent, "in pieces of {piece}");
        assert!(back.join().unwrap() == expected, "back, in pieces of {piece}");
    }
}

#[test]
fn both_ends_can_use_ipv6() {
    let free = || free(IpAddr::V6(std::net::Ipv6Addr::LOCALHOST));
    let owner = Owner::at(free(), free());
    let other = owner.other();
    let (here, there) = owner.connected(&other);
    assert!(moved(here, there, bytes(100_000, 6), 5000) == bytes(100_000, 6));
}

#[test]
fn many_connections_at_once_are_all_made() {
    let owner = Owner::new();
    let other = owner.other();
    let dialed: Vec<UnixStream> = (0..300_u32)
        .map(|number| {
            let mut stream = other.connect().unwrap();
            stream.write_all(format!("{number}\n").as_bytes()).unwrap();
            stream
        })
        .collect();
    for _ in 0..dialed.len() {
        let mut here = owner.met.recv_timeout(PATIENCE).unwrap();
        here.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut line = [0; 8];
        let bytes = here.read(&mut line).unwrap();
        here.write_all(&line[..bytes]).unwrap();
        // Until the other end has read its data.
        thread::spawn(move || here.read(&mut [0; 1]));
    }
    for (number, mut stream) in dialed.into_iter().enumerate() {
        let expected = format!("{number}\n");
        let mut line = vec![0; expected.len()];
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.read_exact(&mut line).unwrap();
        assert_eq!(line, expected.as_bytes());
    }
}

#[test]
fn a_peer_with_another_secret_or_place_is_refused() {
    let owner = Owner::new();
    let of = |own, secret| options(own, free(THERE), owner.address, secret);
    owner.must_refuse(of(Controller::Ct1, 8));
    // A peer that claims to be the same controller.
    owner.must_refuse(of(Controller::Ct0, 7));
    let mut elsewhere = of(Controller::Ct1, 7);
    elsewhere.portals.pop();
    owner.must_refuse(elsewhere);
}

/// Accepts any server, and presents nothing itself.
#[derive(Debug)]
struct Credulous;

impl ServerCertVerifier for Credulous {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

#[test]
fn a_client_without_a_key_gets_nothing() {
    let owner = Owner::new();
    let mut config = ClientConfig::builder_with_provider(trust::provider())
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Credulous))
        .with_no_client_auth();
    config.alpn_protocols = vec![b"holdfast-link".to_vec()];
    let name = ServerName::IpAddress(HERE.into());
    let tls = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = rustls::StreamOwned::new(tls, TcpStream::connect(owner.address).unwrap());
    stream.sock.set_read_timeout(Some(PATIENCE)).unwrap();
    let _ = stream.write_all(b"holdfast-link 1 control ct1 1 0.1.0\n");
    let error = stream.read(&mut [0; 1]).unwrap_err();
    // It gets a TLS alert, unless the end of its connection arrives first.
    let is_reset = error.kind() == io::ErrorKind::ConnectionReset;
    assert!(is_reset || error.to_string().contains("fatal alert"), "{error}");
    assert!(owner.met.try_recv().is_err());
    drop(owner.connected(&owner.other()));
}

#[test]
fn noise_and_silence_are_refused_while_the_other_controller_connects() {
    let owner = Owner::new();
    let connect = |_| TcpStream::connect(owner.address).unwrap();
    let silent: Vec<TcpStream> = (0..300).map(connect).collect();
    for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 5000], &[0x16, 3, 1, 0xff, 0xff], &[0xff; 9]]
    {
        let mut stream = connect(0);
        let _ = stream.write_all(noise);
        drop(owner.connected(&owner.other()));
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
    }
    // Silent ones are closed: the oldest at once, because others arrived, and the last after the
    // timeout.
    let begun = Instant::now();
    for mut stream in silent {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
    }
    assert!(begun.elapsed() < PATIENCE);
    assert!(owner.met.try_recv().is_err());
}

#[test]
fn the_last_output_of_an_ending_owner_arrives() {
    let mut owner = Owner::new();
    let other = owner.other();
    let (mut here, mut there) = owner.connected(&other);
    // The other end also has data in transit, which nobody reads any more.
    there.write_all(&bytes(10_000, 3)).unwrap();
    let said = bytes(100_000, 4);
    here.write_all(&said).unwrap();
    drop(here);
    owner.doors = None;
    let mut got = Vec::new();
    let _ = there.read_to_end(&mut got);
    assert!(got == said, "{} of {} bytes", got.len(), said.len());
    // And nobody listens any more.
    assert!(TcpStream::connect(owner.address).is_err());
}

/// Its host may have repeated it elsewhere.
#[test]
fn data_that_is_not_in_transit_is_not_sent_after_the_end() {
    let owner = Owner::new();
    let other = owner.other();
    let (here, there) = owner.connected(&other);
    there.set_nonblocking(true).unwrap();
    let (mut sent, mut full) = (0, 0);
    let piece = bytes(1 << 20, 5);
    while full < 20 {
        match (&there).write(&piece) {
            Ok(bytes) => (sent, full) = (sent + bytes, 0),
            Err(_) => {
                full += 1;
                thread::sleep(Duration::from_millis(10));
            }
        }
    }
    drop(there);
    thread::sleep(Duration::from_millis(300));
    here.set_read_timeout(Some(PATIENCE)).unwrap();
    let (sender, got) = mpsc::channel();
    thread::spawn(move || {
        let mut all = Vec::new();
        let _ = (&here).read_to_end(&mut all);
        let _ = sender.send(all.len());
    });
    let got = got.recv_timeout(PATIENCE).unwrap();
    assert!(got < sent, "all {sent} bytes came");
}

#[test]
fn dialling_without_a_listener_ends() {
    let nobody = free(HERE);
    let tunnel = Tunnel::start(options(Controller::Ct1, free(THERE), nobody, 7)).unwrap();
    let mut stream = tunnel.connect().unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    assert_eq!(stream.read(&mut [0; 1]).unwrap_or(0), 0);
}

#[test]
fn an_unavailable_address_is_reported_at_the_start() {
    let taken = TcpListener::bind((HERE, 0)).unwrap();
    let address = taken.local_addr().unwrap();
    let started = Tunnel::start(options(Controller::Ct0, address, free(THERE), 7));
    assert!(started.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse));
}
