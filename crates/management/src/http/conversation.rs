//! Requests and responses on one connection, up to an orderly end.
//!
//! The part of a request's body that a handler leaves unread is read before its response is sent.
//! Otherwise HTTP would close the connection without announcing that in the response: a client that
//! still sends the body, or sends its next request, would see a broken connection instead of the
//! response. For the same reason, a connection announces its end (TLS: close_notify), and input
//! after that is read for a while: closing a socket with unread bytes may discard the response
//! before them (RFC 9112, 9.6).

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use api::{LetIn, Origin};
use axum::Router;
use axum::http::HeaderValue;
use axum::http::header::{CONNECTION, EXPECT};
use axum::response::Response;
use http_body_util::BodyExt;
use hyper::Request;
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::doors::Place;

/// How long a client may take for the head of a request, and pause between requests.
const HEADER_TIMEOUT: Duration = Duration::from_secs(20);
/// The most bytes of a body that are read and discarded, so that the connection can continue.
const UNREAD_BYTES_MAX: usize = 1 << 20;
/// The time limit for that.
const UNREAD_TIMEOUT: Duration = Duration::from_secs(5);
/// The most bytes read after the end.
const LINGER_BYTES_MAX: usize = 16 << 20;
/// How long a client may take to notice the end and to close its side.
const LINGER_TIMEOUT: Duration = Duration::from_secs(5);

/// Answers the requests of a connection until it ends or is displaced.
pub(super) async fn converse(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    router: Router,
    origin: Origin,
    place: &Arc<Place>,
) {
    let answers =
        Answers { router: TowerToHyperService::new(router), origin, place: place.clone() };
    let mut conversation = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), answers);
    let ended = tokio::select! {
        ended = poll_fn(|context| conversation.poll_without_shutdown(context)) => Some(ended),
        () = place.given_away() => None,
    };
    let mut stream = conversation.into_parts().io.into_inner();
    match ended {
        Some(ended) => {
            if let Err(error) = ended {
                tracing::debug!("a management connection ended: {error}");
            }
            tokio::select! {
                _ = timeout(LINGER_TIMEOUT, close(stream)) => {}
                () = place.given_away() => {}
            }
        }
        None => {
            tracing::debug!("a connection from {} gave way to others", origin.0);
            // Another connection has displaced it: send close_notify if that does not block.
            let _ = timeout(Duration::ZERO, stream.shutdown()).await;
        }
    }
}

/// Announces the end of the connection, and reads until the client has noticed it.
async fn close(mut stream: impl AsyncRead + AsyncWrite + Unpin) -> std::io::Result<()> {
    stream.shutdown().await?;
    let (mut bytes, mut left) = (vec![0; 16 << 10], LINGER_BYTES_MAX);
    loop {
        let count = stream.read(&mut bytes).await?;
        left = left.saturating_sub(count);
        if count == 0 || left == 0 {
            return Ok(());
        }
    }
}

/// The interface, as one connection sees it.
struct Answers {
    router: TowerToHyperService<Router>,
    origin: Origin,
    place: Arc<Place>,
}

impl Service<Request<Incoming>> for Answers {
    type Response = Response;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let is_expecting = request.headers().contains_key(EXPECT);
        let (head, body) = request.into_parts();
        let body = Lent::new(body);
        let mut request = Request::from_parts(head, body.clone());
        request.extensions_mut().insert(self.origin);
        let (router, place) = (self.router.clone(), self.place.clone());
        Box::pin(async move {
            place.begin();
            let mut answer = router.call(request).await?;
            // A client that waits for 100 Continue has not sent the body.
            let is_coming = !is_expecting || body.is_begun();
            if !(is_coming && body.read_to_its_end().await) {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            place.end(answer.extensions().get::<LetIn>().is_some());
            Ok(answer)
        })
    }
}

/// The body of a request, of which a handler may leave a part unread.
#[derive(Clone)]
struct Lent(Arc<(Mutex<Incoming>, AtomicBool)>);

impl Lent {
    fn new(body: Incoming) -> Self {
        Self(Arc::new((Mutex::new(body), AtomicBool::new(false))))
    }

    /// Returns whether any part of it was requested.
    fn is_begun(&self) -> bool {
        self.0.1.load(Ordering::Relaxed)
    }

    /// Reads the rest of it; returns `false` if that is too long, takes too long, or fails.
    async fn read_to_its_end(mut self) -> bool {
        let read = async {
            let mut left = UNREAD_BYTES_MAX;
            while let Some(frame) = self.frame().await {
                let Ok(frame) = frame else { return false };
                let length = frame.data_ref().map_or(0, Bytes::len);
                let Some(rest) = left.checked_sub(length) else { return false };
                left = rest;
            }
            true
        };
        timeout(UNREAD_TIMEOUT, read).await.unwrap_or(false)
    }
}

impl Body for Lent {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        self.0.1.store(true, Ordering::Relaxed);
        Pin::new(&mut *self.0.0.lock()).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.0.0.lock().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.0.lock().size_hint()
    }
}
