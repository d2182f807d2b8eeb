//! The HTTPS server of the management interface, on its own thread, so that no request delays the
//! data path.
//!
//! What a client can occupy is bounded: a handshake and the head of a request by time, connections
//! by number, in total and from one address ([`doors`]), so that a slow or runaway client leaves
//! space for others. [`conversation`] handles the requests on one connection.
//!
//! While the clock has no valid date ([`wall`]), nothing is served: the libraries used here would
//! panic, and a panic ends the array.

mod conversation;
mod doors;

#[cfg(test)]
mod tests;

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::Duration;

use api::Origin;
use axum::Router;
use front::episode::Episode;
use rustls::ServerConfig;
use sys::wall;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use conversation::converse;
use doors::{Doors, Place};

pub use doors::CONNECTIONS_MAX;

/// The time limit of the TLS handshake.
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(10);
/// The most requests that wait for the store at the same time.
const WAITING_MAX: usize = 4;
/// The pause after a failure to accept (no descriptors left).
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// A bound address; nothing is served before [`Bound::start`].
pub struct Bound {
    listener: TcpListener,
    /// The address, with the actual port.
    pub address: SocketAddr,
}

impl Bound {
    /// Binds the address.
    ///
    /// # Errors
    /// The system's error.
    pub fn new(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Serves the result of `router` (called within the runtime) until the handle is dropped, on at
    /// most this many connections, 1 to [`CONNECTIONS_MAX`]; without `tls`, plain HTTP.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(
        self,
        tls: Option<Arc<ServerConfig>>,
        connections: usize,
        router: impl FnOnce() -> Router + Send + 'static,
    ) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(WAITING_MAX)
            .on_thread_start(give_way)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("management".into()).spawn(move || {
            give_way();
            runtime.block_on(async {
                tokio::select! {
                    served = serve(self.listener, tls, connections, router()) => {
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

/// Lowers the priority below that of threads that serve hosts. It still gets up to a third of a
/// processor's time, because it may hold a lock.
fn give_way() {
    if let Err(error) = rustix::process::nice(5) {
        tracing::debug!("management runs with the priority of hosts: {error}");
    }
}

/// A running server; dropping it stops it, after the changes in progress.
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
    connections: usize,
    router: Router,
) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let acceptor = tls.map(TlsAcceptor::from);
    let doors = Arc::new(Doors::new(connections));
    let (clock, mut failed) = (sys::Clock::start(), Episode::default());
    let mut refused = 0_u64;
    let mut is_dated = true;
    loop {
        match listener.accept().await {
            Ok((stream, address)) => {
                if let Some(count) = failed.end(clock.now()) {
                    tracing::info!("management connections are accepted again: {count} failures");
                }
                let Some(place) = doors.take(address.ip()) else {
                    // Logged at first, and then at each doubling.
                    refused += 1;
                    if refused.is_power_of_two() {
                        let ip = address.ip();
                        tracing::warn!(
                            "too many management connections: {ip} was refused ({refused} in total)"
                        );
                    }
                    continue;
                };
                if !log_clock_change(&mut is_dated, wall::is_dated()) {
                    continue;
                }
                let (router, acceptor) = (router.clone(), acceptor.clone());
                tokio::spawn(async move {
                    let origin = Origin(address.ip());
                    let admitted = admit(stream, acceptor, router, origin, &place);
                    while_dated(wall::is_dated, admitted).await;
                });
                // A displaced connection ends before more are accepted.
                tokio::task::yield_now().await;
            }
            Err(error) => {
                if failed.note(clock.now()) {
                    tracing::warn!("can't accept management connections: {error}");
                }
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

/// Notes whether there is a valid date, and logs when that has changed.
fn log_clock_change(was_dated: &mut bool, is_dated: bool) -> bool {
    match (std::mem::replace(was_dated, is_dated), is_dated) {
        (true, false) => tracing::error!(
            "the clock is before 1970 or after 9999: there is no management until it is \
             set"
        ),
        (false, true) => {
            tracing::info!("the clock has a valid date again: management is available")
        }
        _ => {}
    }
    is_dated
}

/// Runs a conversation as long as there is a valid date. HTTP reads the time whenever it is polled,
/// even if it would write no Date, so this checks each time.
async fn while_dated(is_dated: impl Fn() -> bool, conversation: impl Future<Output = ()>) {
    let mut conversation = pin!(conversation);
    poll_fn(|context| match is_dated() {
        true => conversation.as_mut().poll(context),
        false => Poll::Ready(()),
    })
    .await;
}

async fn admit(
    stream: TcpStream,
    acceptor: Option<TlsAcceptor>,
    router: Router,
    origin: Origin,
    place: &Arc<Place>,
) {
    // If this fails, the response is only slightly later.
    let _ = stream.set_nodelay(true);
    let Some(acceptor) = acceptor else { return converse(stream, router, origin, place).await };
    let shaken = tokio::select! {
        shaken = timeout(HANDSHAKE_TIMEOUT, acceptor.accept(stream)) => shaken,
        () = place.given_away() => {
            tracing::debug!("a handshake with {} gave way to others", origin.0);
            return;
        }
    };
    match shaken {
        Ok(Ok(stream)) => converse(stream, router, origin, place).await,
        Ok(Err(error)) => tracing::debug!("a handshake with {} failed: {error}", origin.0),
        Err(_) => tracing::debug!("a handshake with {} took too long", origin.0),
    }
}
