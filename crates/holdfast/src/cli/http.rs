//! The HTTP server of the management interface: a thread of its own, so that no request makes the
//! data path wait.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};

/// The most connections at once. More wait in the kernel's queue.
const CONNECTIONS_MAX: usize = 64;
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

    /// Serves what `router` makes (called within the runtime) until the handle is dropped.
    pub fn start(self, router: impl FnOnce() -> Router + Send + 'static) -> io::Result<Server> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(WAITING_MAX)
            .build()?;
        let (stop, stopped) = oneshot::channel();
        let thread = std::thread::Builder::new().name("management".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    served = serve(self.listener, router()) => {
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

async fn serve(listener: TcpListener, router: Router) -> io::Result<()> {
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let room = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        let Ok(permit) = room.clone().acquire_owned().await else { return Ok(()) };
        match listener.accept().await {
            Ok((stream, _)) => {
                let router = router.clone();
                tokio::spawn(async move {
                    converse(stream, router).await;
                    drop(permit);
                });
            }
            Err(error) => {
                tracing::warn!("can't accept a management connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

async fn converse(stream: TcpStream, router: Router) {
    // A refusal only makes the answer a little later.
    let _ = stream.set_nodelay(true);
    let conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    if let Err(error) = conversation.await {
        tracing::debug!("a management connection ended: {error}");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};

    use axum::routing::get;

    use super::*;

    #[test]
    fn it_serves_until_it_is_dropped() {
        let bound = Bound::new("127.0.0.1:0".parse().unwrap()).unwrap();
        let address = bound.address;
        let server = bound.start(|| Router::new().route("/", get(|| async { "hello" }))).unwrap();
        let ask = || -> io::Result<String> {
            let mut stream = std::net::TcpStream::connect(address)?;
            stream.set_read_timeout(Some(Duration::from_secs(10)))?;
            stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
            let mut answer = String::new();
            stream.read_to_string(&mut answer)?;
            Ok(answer)
        };
        assert!(ask().unwrap().ends_with("hello"));
        drop(server);
        assert!(ask().is_err());
    }
}
