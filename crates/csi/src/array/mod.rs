//! A client of the array's REST 2.x management interface (docs/rest.md).

mod connections;
mod health;
mod snapshots;
mod trust;
mod volumes;

use std::path::Path;
use std::time::Duration;

use reqwest::{Method, StatusCode, Url};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tonic::Status;

pub use snapshots::{Snapshot, SnapshotQuery};
pub use volumes::Volume;

/// The used version of the interface.
const ROOT: &str = "/api/2.26/";
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// The timeout of a response: a change waits for the pool. Callers retry after their own timeout.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// The most names in one request.
const NAMES_MAX: usize = 500;

/// Parameters of a request.
type Query<'a> = &'a [(&'a str, &'a str)];

/// A client of one array. It sends the token with each request, so it keeps no session.
pub struct Array {
    http: reqwest::Client,
    root: Url,
    token: String,
    /// The prefix of the names of all objects that the driver creates.
    prefix: String,
}

/// A page of a list.
#[derive(Deserialize)]
pub struct Page<T> {
    /// The objects.
    pub items: Vec<T>,
    /// Where the next page begins; `None` at the end.
    #[serde(rename = "continuation_token")]
    pub next: Option<String>,
}

/// The requested part of a list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The most items; 0 for as many as the array returns.
    pub limit: u32,
    /// Where the last page ended; empty for the first page.
    pub token: String,
}

/// The reason why a request failed.
#[derive(Debug)]
pub enum Refusal {
    /// The array does not respond, or the response is invalid: a retry may succeed.
    Unreachable(String),
    /// The array refused the request.
    Refused {
        /// The HTTP status.
        status: StatusCode,
        /// What is wrong, with the name of the object or parameter.
        faults: Vec<Fault>,
    },
}

/// An error in a request.
#[derive(Debug, Deserialize)]
pub struct Fault {
    /// The object or parameter.
    pub context: String,
    /// What is wrong with it.
    pub message: String,
}

#[derive(Deserialize)]
struct Faults {
    errors: Vec<Fault>,
}

impl Refusal {
    /// Returns whether the array's message was exactly this.
    fn says(&self, text: &str) -> bool {
        let Self::Refused { faults, .. } = self else { return false };
        faults.iter().any(|fault| fault.message == text)
    }

    /// Returns whether an id belongs to no object, or no longer.
    fn is_unknown_id(&self) -> bool {
        let Self::Refused { faults, .. } = self else { return false };
        faults.iter().any(|fault| fault.message.starts_with("The id does not exist"))
    }

    /// Returns whether the token of a list is not one of this array.
    pub fn is_bad_token(&self) -> bool {
        let Self::Refused { faults, .. } = self else { return false };
        faults.iter().any(|fault| fault.context == "continuation_token")
    }
}

impl From<Refusal> for Status {
    fn from(refusal: Refusal) -> Self {
        let (status, faults) = match refusal {
            Refusal::Unreachable(text) => return Self::unavailable(text),
            Refusal::Refused { status, faults } => (status, faults),
        };
        let about = |fault: &Fault| match fault.context.as_str() {
            "" => fault.message.clone(),
            context => format!("{context}: {}", fault.message),
        };
        let text = faults.iter().map(about).collect::<Vec<_>>().join(" ");
        // It was created meanwhile, for example by another attempt of the same request.
        if faults.iter().any(|fault| fault.message.ends_with("already exists.")) {
            return Self::aborted(text);
        }
        match status {
            StatusCode::BAD_REQUEST => Self::failed_precondition(text),
            StatusCode::UNAUTHORIZED => Self::unauthenticated(text),
            StatusCode::FORBIDDEN => Self::permission_denied(text),
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE => {
                Self::unavailable(text)
            }
            _ => Self::internal(text),
        }
    }
}

impl Array {
    /// Creates a client of the array at `url`, which may be plain HTTP on a loopback address only;
    /// `ca` is a file of certificates (PEM) that are trusted instead of the machine's.
    ///
    /// # Errors
    /// If an argument is invalid or a file can't be read.
    pub fn new(url: &str, token: &Path, ca: Option<&Path>, prefix: &str) -> Result<Self, String> {
        let root = Url::parse(url).map_err(|error| format!("{url} is not a URL: {error}"))?;
        let host = root.host_str().unwrap_or_default();
        let is_local = matches!(host, "localhost" | "127.0.0.1" | "[::1]");
        if !(root.scheme() == "https" || root.scheme() == "http" && is_local) {
            return Err(format!("{url}: an array is at https://…; http:// is for loopback only"));
        }
        let root = root.join(ROOT).map_err(|error| format!("{url}: {error}"))?;
        let token = std::fs::read_to_string(token)
            .map_err(|error| format!("can't read {}: {error}", token.display()))?;
        let http = reqwest::Client::builder()
            .tls_backend_preconfigured(trust::client(ca)?)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            // Connect to the array directly.
            .no_proxy()
            .build()
            .map_err(|error| format!("can't create an HTTP client: {error}"))?;
        Ok(Self { http, root, token: token.trim().to_owned(), prefix: prefix.to_owned() })
    }

    /// Returns the prefix of the names of all objects that the driver creates.
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Checks that the array responds, and accepts the token.
    ///
    /// # Errors
    /// Why not.
    pub async fn probe(&self) -> Result<(), Refusal> {
        self.get::<serde_json::Value>("arrays", &[]).await.map(drop)
    }

    /// Returns how many bytes can still be stored, before reduction.
    ///
    /// # Errors
    /// Why the array did not respond.
    pub async fn free_bytes(&self) -> Result<u64, Refusal> {
        #[derive(Deserialize)]
        struct Space {
            capacity: u64,
            space: Used,
        }
        #[derive(Deserialize)]
        struct Used {
            total_physical: u64,
        }
        let space: Space = self.only("arrays/space", &[]).await?;
        Ok(space.capacity.saturating_sub(space.space.total_physical))
    }

    async fn get<T: DeserializeOwned>(
        &self,
        resource: &str,
        query: Query<'_>,
    ) -> Result<Page<T>, Refusal> {
        self.send(Method::GET, resource, query, &()).await
    }

    /// Returns all items of a list, page by page.
    async fn all<T: DeserializeOwned>(
        &self,
        resource: &str,
        query: Query<'_>,
    ) -> Result<Vec<T>, Refusal> {
        let mut page = self.get(resource, query).await?;
        let mut all: Vec<T> = page.items;
        while let Some(token) = page.next {
            let mut query = query.to_vec();
            query.push(("continuation_token", &token));
            page = self.get(resource, &query).await?;
            all.extend(page.items);
        }
        Ok(all)
    }

    /// Returns the item with this id, even if destroyed; `None` if there is none.
    async fn by_id<T: DeserializeOwned>(
        &self,
        resource: &str,
        id: &str,
    ) -> Result<Option<T>, Refusal> {
        // A comma would request two.
        if id.contains(',') {
            return Ok(None);
        }
        match self.only(resource, &[("ids", id)]).await {
            Ok(item) => Ok(Some(item)),
            Err(refusal) if refusal.is_unknown_id() => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// Returns the item of a response that contains one.
    async fn only<T: DeserializeOwned>(
        &self,
        resource: &str,
        query: Query<'_>,
    ) -> Result<T, Refusal> {
        first(self.get(resource, query).await?)
    }

    /// Sends a change; a body of `()` means none.
    async fn send<T: DeserializeOwned>(
        &self,
        method: Method,
        resource: &str,
        query: Query<'_>,
        body: &impl Serialize,
    ) -> Result<Page<T>, Refusal> {
        let lost = |error: reqwest::Error| {
            let mut text = format!("{} does not answer: {error}", self.root);
            let mut cause = std::error::Error::source(&error);
            while let Some(inner) = cause {
                text.push_str(&format!(": {inner}"));
                cause = inner.source();
            }
            Refusal::Unreachable(text)
        };
        let path = self.root.join(resource).map_err(|error| {
            Refusal::Unreachable(format!("{resource} can't be requested: {error}"))
        })?;
        let has_body = method == Method::POST || method == Method::PATCH;
        let mut request = self.http.request(method, path).bearer_auth(&self.token).query(query);
        if has_body {
            request = request.json(body);
        }
        let answer = request.send().await.map_err(lost)?;
        let status = answer.status();
        if status.is_success() {
            return answer.json().await.map_err(lost);
        }
        let Faults { errors: faults } = answer.json().await.map_err(lost)?;
        Err(Refusal::Refused { status, faults })
    }
}

/// Returns the first item.
fn first<T>(page: Page<T>) -> Result<T, Refusal> {
    let none = || Refusal::Unreachable("the response is empty: this is not an array".into());
    page.items.into_iter().next().ok_or_else(none)
}

/// Adds the parameters of a part of a list to others.
fn with_part<'a>(
    query: &[(&'a str, &'a str)],
    part: &'a Part,
    limit: &'a str,
) -> Vec<(&'a str, &'a str)> {
    let mut query = query.to_vec();
    if part.limit > 0 {
        query.push(("limit", limit));
    }
    if !part.token.is_empty() {
        query.push(("continuation_token", &part.token));
    }
    query
}
