//! Webhooks: a POST of JSON, signed with a shared secret.
//!
//! ```text
//! x-holdfast-event: alert_opened
//! x-holdfast-timestamp: seconds since 1970, when it was sent
//! x-holdfast-signature: sha256=HEX, the HMAC-SHA256 of TIMESTAMP "." BODY
//! ```

use std::fmt::Write;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use hmac::{Hmac, KeyInit, Mac};
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use network::Names;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sha2::Sha256;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::{Event, SEND_TIMEOUT, Sender};

/// A receiver of events by HTTP.
pub struct Webhook {
    /// The URL: `https://…`, or `http://…`.
    pub url: Uri,
    /// For `https`.
    pub tls: Option<Arc<ClientConfig>>,
    /// The shared secret; `None` for unsigned requests.
    pub secret: Option<String>,
}

type Lost = Box<dyn std::error::Error + Send + Sync>;

impl Sender for Webhook {
    fn send(&self, event: &Event, names: &Names) -> Result<(), String> {
        let one_line = |error: &dyn std::fmt::Display| {
            // The path may contain a secret of the receiver's.
            format!("{}: {error}", self.url.authority().map_or("", |a| a.as_str()))
        };
        // Checking its certificate requires a valid clock.
        super::must_be_dated().map_err(|why| one_line(&why))?;
        let addresses = self.addresses(names).map_err(|error| one_line(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| one_line(&error))?;
        let request =
            self.request(event, sys::wall::now_ms() / 1000).map_err(|error| one_line(&error))?;
        let answer =
            runtime.block_on(async { timeout(SEND_TIMEOUT, self.post(request, &addresses)).await });
        match answer {
            Err(_) => Err(one_line(&"it does not answer in time")),
            Ok(Err(error)) => Err(one_line(&error)),
            Ok(Ok(status)) if status.is_success() => Ok(()),
            Ok(Ok(status)) => Err(one_line(&format!("it answers {status}"))),
        }
    }
}

impl Webhook {
    fn request(&self, event: &Event, now_s: u64) -> Result<Request<Full<Bytes>>, Lost> {
        let body = serde_json::to_vec(&event.json())?;
        let host = self.url.authority().ok_or("the URL has no host")?.as_str();
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        let path = self.url.path_and_query().map_or("/", |path| path.as_str());
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(path)
            .header("host", host)
            .header("user-agent", concat!("holdfast/", env!("CARGO_PKG_VERSION")))
            .header("content-type", "application/json")
            .header("x-holdfast-event", event.kind())
            .header("x-holdfast-timestamp", now_s);
        if let Some(secret) = &self.secret {
            let signature = signature(secret.as_bytes(), now_s, &body)?;
            request = request.header("x-holdfast-signature", format!("sha256={signature}"));
        }
        Ok(request.body(Full::new(Bytes::from(body)))?)
    }

    /// Returns the host of the URL, without brackets.
    fn host(&self) -> io::Result<&str> {
        let host = self.url.host().ok_or_else(|| io::Error::other("the URL has no host"))?;
        Ok(host.trim_start_matches('[').trim_end_matches(']'))
    }

    fn addresses(&self, names: &Names) -> io::Result<Vec<SocketAddr>> {
        let port = self.url.port_u16().unwrap_or(if self.tls.is_some() { 443 } else { 80 });
        names.addresses(self.host()?, port)
    }

    async fn post(
        &self,
        request: Request<Full<Bytes>>,
        addresses: &[SocketAddr],
    ) -> Result<StatusCode, Lost> {
        let host = self.host()?.to_owned();
        let stream = TcpStream::connect(addresses).await?;
        match &self.tls {
            None => converse(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(host).map_err(io::Error::other)?;
                let stream = TlsConnector::from(tls.clone()).connect(name, stream).await?;
                converse(stream, request).await
            }
        }
    }
}

async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<StatusCode, Lost> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // If it fails, no response arrives, which reports the error.
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await?;
    connection.abort();
    Ok(answer.status())
}

/// Returns the signature of a body, in hex.
fn signature(secret: &[u8], now_s: u64, body: &[u8]) -> Result<String, Lost> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret)?;
    mac.update(format!("{now_s}.").as_bytes());
    mac.update(body);
    let mut hex = String::new();
    for byte in mac.finalize().into_bytes() {
        // Writing to a string can't fail.
        let _ = write!(hex, "{byte:02x}");
    }
    Ok(hex)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_equals_that_of_other_implementations() {
        // printf '1700000000.{"a":1}' | openssl dgst -sha256 -hmac secret
        let signed = signature(b"secret", 1_700_000_000, b"{\"a\":1}").unwrap();
        assert_eq!(signed, "49f24e537407743fa4a0242bb63b94b9a47ee99cbbe071ccd8a22550ae411686");
    }
}
