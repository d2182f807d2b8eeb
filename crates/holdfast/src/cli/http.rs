//! The HTTPS server of the management interface: a thread of its own, so that no request makes the
//! data path wait.
//!
//! What a client may hold up is bounded: a handshake and the head of a request by time, connections
//! by number, all of them and those from one address, so that one client that is slow, or has gone
//! mad, leaves room for the others.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use api::Origin;
use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

/// The most connections at once. More wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 256;
/// The most of them from one address; one more is closed at once.
const CONNECTIONS_PER_ADDRESS_MAX: usize = 128;
/// How long a client may take for the handshake of TLS.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may take for the head of a request, and be silent between two.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);
/// The most requests that wait for the store at once.
const WAITING_MAX: usize = 4;
/// How long after a failure to accept (no descriptors left) it is tried again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Where the interface listens; nothing is answered before [`Bound::start`].
pub struct Bound {
    listener: TcpListener,
    /// The address, with the port that was taken.
    pub address: SocketAddr,
}

impl Bound {
    /// Takes the address.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Serves what `router` makes (called within the runtime) until the handle is dropped; without
    /// `tls` in the clear.
    pub fn start(
        self,
        tls: Option<Arc<ServerConfig>>,
        router: impl FnOnce() -> Router + Send + 'static,
    ) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(WAITING_MAX)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("management".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    served = serve(self.listener, tls, router()) => {
                        if let Err(error) = served {
                            tracing::error!("the management interface failed: {error}");
                        }
                    }
                    _ = stopped => {}
                }
            });
        })?;
        Ok(Server { stop: Some(stop), thread: Some(thread) })
    }
}

/// A server that runs; dropping it ends it, after the changes that are under way.
pub struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::error!("the management thread panicked");
        }
    }
}

async fn serve(
    listener: TcpListener,
    tls: Option<Arc<ServerConfig>>,
    router: Router,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let acceptor = tls.map(TlsAcceptor::from);
    let doors = Arc::new(Doors::new());
    loop {
        let Ok(permit) = doors.room.clone().acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((stream, address)) => {
                let Some(place) = Place::take(&doors, address.ip(), permit) else {
                    tracing::warn!("too many management connections from {}", address.ip());
                    continue;
                };
                let (router, acceptor) = (router.clone(), acceptor.clone());
                tokio::spawn(async move {
                    admit(stream, acceptor, router, Origin(address.ip())).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!("can't accept a management connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// How many connections there are, and from where.
struct Doors {
    room: Arc<Semaphore>,
    by_address: Mutex<HashMap<IpAddr, usize>>,
}

impl Doors {
    fn new() -> Self {
        Self { room: Arc::new(Semaphore::new(CONNECTIONS_MAX)), by_address: Mutex::default() }
    }
}

/// A connection's place, given back when it is dropped.
struct Place {
    doors: Arc<Doors>,
    address: IpAddr,
    _permit: OwnedSemaphorePermit,
}

impl Place {
    /// None where the address has as many as it may have.
    fn take(doors: &Arc<Doors>, address: IpAddr, permit: OwnedSemaphorePermit) -> Option<Self> {
        let address = address.to_canonical();
        let mut by_address = doors.by_address.lock();
        let count = by_address.entry(address).or_default();
        if *count >= CONNECTIONS_PER_ADDRESS_MAX {
            return None;
        }
        *count += 1;
        Some(Self { doors: doors.clone(), address, _permit: permit })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut by_address = self.doors.by_address.lock();
        if let Some(count) = by_address.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                by_address.remove(&self.address);
            }
        }
    }
}

async fn admit(stream: TcpStream, acceptor: Option<TlsAcceptor>, router: Router, origin: Origin) {
    // A refusal only makes the answer a little later.
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else { return converse(stream, router, origin).await };
    match timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)).await {
        Ok(Ok(stream)) => converse(stream, router, origin).await,
        Ok(Err(error)) => tracing::debug!("a handshake with {} failed: {error}", origin.0),
        Err(_) => tracing::debug!("a handshake with {} took too long", origin.0),
    }
}

async fn converse(stream: impl AsyncRead + AsyncWrite + Unpin, router: Router, origin: Origin) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(origin);
        router.call(request)
    });
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    if let Err(error) = conversation.await {
        tracing::debug!("a management connection ended: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use axum::Extension;
    use axum::routing::get;
    use rustls::pki_types::ServerName;
    use rustls::{ClientConfig, ClientConnection, StreamOwned};

    use super::*;
    use crate::cli::certificate::{self, ServerIdentity};
    use crate::cli::config::Config;
    use crate::cli::pool;
    use crate::cli::trust::{Trust, pinned};

    const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";

    fn bound() -> Bound {
        Bound::new("127.0.0.1:0".parse().unwrap()).unwrap()
    }

    fn identity() -> ServerIdentity {
        let directory = tempfile::tempdir().unwrap();
        let pool = directory.path().to_owned();
        let place = pool::Place { data: pool.join("pool.data"), pool };
        let api = "127.0.0.1:1".parse().unwrap();
        certificate::of_array(&Config::default(), &place, [7; 16], api).unwrap()
    }

    /// A server that says from where it is asked.
    fn start(bound: Bound, tls: Option<Arc<ServerConfig>>) -> Server {
        let who = |Extension(Origin(from)): Extension<Origin>| async move { format!("to {from}") };
        bound.start(tls, move || Router::new().route("/", get(who))).unwrap()
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
    fn only_who_has_the_certificate_is_trusted() {
        let (bound, identity) = (bound(), identity());
        let address = bound.address;
        let _server = start(bound, Some(identity.tls.clone()));
        let right =
            Trust::Fingerprint(identity.credentials.fingerprint()).client().unwrap().unwrap();
        assert!(ask(address, &right).unwrap().ends_with("to 127.0.0.1"));
        for version in [&rustls::version::TLS12, &rustls::version::TLS13] {
            let builder = ClientConfig::builder_with_provider(certificate::provider());
            let client = builder
                .with_protocol_versions(&[version])
                .unwrap()
                .dangerous()
                .with_custom_certificate_verifier(pinned(identity.credentials.fingerprint()))
                .with_no_client_auth();
            assert!(ask(address, &Arc::new(client)).unwrap().ends_with("to 127.0.0.1"));
        }
        let mut other = identity.credentials.fingerprint();
        other.0[0] ^= 1;
        let wrong = Trust::Fingerprint(other).client().unwrap().unwrap();
        let told = ask(address, &wrong).unwrap_err().to_string();
        assert!(told.contains(&identity.credentials.fingerprint().to_string()), "{told}");
        // In the clear there is no answer.
        let answer = converse(connect(address)).unwrap_or_default();
        assert!(!answer.contains("to 127"), "{answer}");
    }

    #[test]
    fn clients_that_say_nothing_do_not_hold_others_up() {
        let (bound, identity) = (bound(), identity());
        let address = bound.address;
        let _server = start(bound, Some(identity.tls.clone()));
        let tls = Trust::Fingerprint(identity.credentials.fingerprint()).client().unwrap().unwrap();
        let mut silent: Vec<_> = (0..100).map(|_| connect(address)).collect();
        // One that says a little of a handshake.
        silent[0].write_all(&[22, 3, 1]).unwrap();
        assert!(ask(address, &tls).unwrap().ends_with("to 127.0.0.1"));
    }

    #[test]
    fn too_many_connections_of_one_client_are_closed_at_once() {
        let (bound, identity) = (bound(), identity());
        let address = bound.address;
        let _server = start(bound, Some(identity.tls.clone()));
        let silent: Vec<_> = (0..CONNECTIONS_PER_ADDRESS_MAX).map(|_| connect(address)).collect();
        for mut more in (0..10).map(|_| connect(address)) {
            assert!(matches!(more.read(&mut [0]), Ok(0)));
        }
        drop(silent);
    }

    #[test]
    fn one_address_leaves_room_for_another() {
        let doors = Arc::new(Doors::new());
        let permit = || doors.room.clone().try_acquire_owned().unwrap();
        let take = |address: &str| Place::take(&doors, address.parse().unwrap(), permit());
        let mut places: Vec<_> =
            (0..CONNECTIONS_PER_ADDRESS_MAX).map(|_| take("192.0.2.1").unwrap()).collect();
        assert!(take("192.0.2.1").is_none() && take("::ffff:192.0.2.1").is_none());
        assert_eq!(doors.room.available_permits(), CONNECTIONS_MAX - places.len());
        assert!(take("192.0.2.2").is_some());
        places.pop();
        assert!(take("192.0.2.1").is_some());
        drop(places);
        assert!(doors.by_address.lock().is_empty());
        assert_eq!(doors.room.available_permits(), CONNECTIONS_MAX);
    }
}
