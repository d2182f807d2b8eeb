//! The client of the management interface: JSON over HTTP, one connection for each request.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use api::rest::RestFault;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use management::place::ApiPlace;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

use super::args::{Common, PassVerb};
use super::discover::{self, Address};
use super::failure::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a request. A change waits for the pool, which may be busy; a longer wait should
/// be reported.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// The maximum length of a response: more than a page of the longest objects.
const ANSWER_BYTES_MAX: usize = 64 << 20;

/// An array that can be reached.
pub struct Client {
    runtime: Runtime,
    /// `None` for plain HTTP.
    tls: Option<Arc<ClientConfig>>,
    address: Address,
}

/// The reason why there is no response.
type Lost = Box<dyn std::error::Error + Send + Sync>;

impl Client {
    /// Finds the array that the arguments refer to. Sends nothing yet.
    pub fn find(common: &Common) -> Result<Self, Failure> {
        let address = discover::find(common)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime
            .map_err(|error| Failure::Machine(format!("can't wait for an answer: {error}")))?;
        Ok(Self { runtime, tls: address.trust.client()?, address })
    }

    /// Gets an object.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        decode(&self.send(Method::GET, path, &[])?)
    }

    /// Gets a whole list, page by page: `parts` splits a page into its items and whether there are
    /// more, and `name` is the item after which the next page starts.
    pub fn get_all<P: DeserializeOwned, T>(
        &self,
        path: &str,
        parts: impl Fn(P) -> (Vec<T>, bool),
        name: impl Fn(&T) -> &str,
    ) -> Result<Vec<T>, Failure> {
        let (mut all, mut more) = parts(self.get(path)?);
        while let Some(last) = all.last().filter(|_| more) {
            let found;
            let mark = if path.contains('?') { '&' } else { '?' };
            let next = format!("{path}{mark}after={}", part(name(last)));
            (found, more) = parts(self.get(&next)?);
            all.extend(found);
        }
        Ok(all)
    }

    /// Creates an object.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        decode(&self.send(Method::POST, path, &encode(body)?)?)
    }

    /// Changes an object.
    pub fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        decode(&self.send(Method::PATCH, path, &encode(body)?)?)
    }

    /// Removes an object.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(Method::DELETE, path, &[]).map(drop)
    }

    /// Starts or stops a pass over the pool, or shows its state; returns its status in any case.
    pub fn pass<T: DeserializeOwned>(&self, path: &str, verb: PassVerb) -> Result<T, Failure> {
        match verb {
            PassVerb::Start => return self.post(path, &()),
            PassVerb::Stop => self.delete(path)?,
            PassVerb::Status => {}
        }
        self.get(path)
    }

    /// Sends a request, and returns the body of the response, or the reason of its refusal.
    pub fn send(&self, method: Method, path: &str, body: &[u8]) -> Result<Vec<u8>, Failure> {
        let api = &self.address.api;
        let lost = |error: &dyn std::fmt::Display| {
            let origin = &self.address.origin;
            Failure::Unreachable(format!("{api} ({origin}) does not answer: {error}"))
        };
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", api.to_string())
            .header("authorization", format!("Bearer {}", self.address.token))
            .header("content-type", "application/json")
            .body(Full::new(Bytes::copy_from_slice(body)))
            .map_err(|error| Failure::Usage(format!("{path} can't be requested: {error}")))?;
        let answer =
            self.runtime.block_on(async { timeout(ANSWER_TIMEOUT, self.exchange(request)).await });
        let (status, bytes) =
            answer.map_err(|error| lost(&error))?.map_err(|error| lost(&error))?;
        if status.is_success() {
            return Ok(bytes);
        }
        Err(refusal(status, &bytes, api))
    }

    async fn exchange(&self, request: Request<Full<Bytes>>) -> Result<(StatusCode, Vec<u8>), Lost> {
        let ApiPlace { host, port, .. } = &self.address.api;
        let connected = timeout(CONNECT_TIMEOUT, TcpStream::connect((host.as_str(), *port)));
        let stream = connected.await.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))??;
        match &self.tls {
            None => converse(stream, request).await,
            Some(tls) => {
                let name = ServerName::try_from(host.clone())?;
                let secured = TlsConnector::from(tls.clone()).connect(name, stream);
                converse(timeout(CONNECT_TIMEOUT, secured).await??, request).await
            }
        }
    }
}

/// Sends a request over a new connection, and waits for the whole response.
async fn converse(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
) -> Result<(StatusCode, Vec<u8>), Lost> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    // An error of the connection shows as a missing response.
    let connection = tokio::spawn(connection);
    let answer = sender.send_request(request).await?;
    let status = answer.status();
    let bytes = Limited::new(answer.into_body(), ANSWER_BYTES_MAX).collect().await?.to_bytes();
    connection.abort();
    Ok((status, bytes.to_vec()))
}

fn refusal(status: StatusCode, body: &[u8], api: &ApiPlace) -> Failure {
    let own = serde_json::from_slice::<api::Refusal>(body).map(|refusal| refusal.message);
    let reported = own.or_else(|_| {
        let refusal = serde_json::from_slice::<api::rest::RestRefusal>(body)?;
        Ok::<_, serde_json::Error>(several(refusal))
    });
    match reported {
        Ok(text) if status == StatusCode::UNAUTHORIZED => Failure::Unreachable(text),
        Ok(text) => Failure::Refused(text),
        Err(_) => Failure::Unreachable(format!("{api} answers {status}: this is not an array")),
    }
}

/// Returns the messages of a refusal, without duplicates. The short messages that other clients
/// know contain neither the object nor what to do.
fn several(refusal: api::rest::RestRefusal) -> String {
    let mut reported: Vec<String> = refusal.errors.iter().map(RestFault::at_length).collect();
    reported.dedup();
    reported.join(" ")
}

/// Returns a body as JSON.
pub fn encode(body: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(body).map_err(|error| Failure::Machine(format!("can't write JSON: {error}")))
}

/// Parses a response.
pub fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::Unreachable(format!("the response can't be parsed: {error}")))
}

/// Escapes a name for a path or a query: everything but letters, digits, `-` and `_`.
pub fn part(name: &str) -> String {
    let mut text = String::new();
    for byte in name.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => text.push(char::from(byte)),
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

/// Returns the path of a name. An empty one would be another path.
pub fn path_of(kind: &str, name: &str) -> Result<String, Failure> {
    if name.is_empty() {
        return Err(Failure::Usage("a name must not be empty".into()));
    }
    Ok(format!("/v1/{kind}/{}", part(name)))
}
