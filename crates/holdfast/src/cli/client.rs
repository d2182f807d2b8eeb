//! How a verb talks to the array: JSON over HTTP.

use std::time::Duration;

use serde::Serialize;
use serde::de::DeserializeOwned;
use ureq::http::{Method, Request, StatusCode};

use super::args::{Common, PassVerb};
use super::discover::{self, Address};
use super::failure::Failure;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// A change waits for the pool, which may be busy; whoever waits longer should know.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// More than a page of the longest objects.
const ANSWER_BYTES_MAX: u64 = 64 << 20;

/// An array that can be asked.
pub struct Client {
    agent: ureq::Agent,
    address: Address,
}

impl Client {
    /// Finds the array that the arguments mean. Nothing is sent yet.
    pub fn find(common: &Common) -> Result<Self, Failure> {
        let address = discover::find(common)?;
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(ANSWER_TIMEOUT))
            .max_redirects(0)
            // An array on this machine is never behind a proxy.
            .proxy(None)
            .build();
        Ok(Self { agent: config.into(), address })
    }

    /// Asks for something.
    pub fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        decode(&self.send(Method::GET, path, &[])?)
    }

    /// Asks for all of a list, page by page: `parts` takes a page apart into what is on it
    /// and whether there is more, and `name` is what the next page starts behind.
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

    /// Makes something.
    pub fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        decode(&self.send(Method::POST, path, &encode(body)?)?)
    }

    /// Has something done that needs no more words.
    pub fn act(&self, path: &str) -> Result<(), Failure> {
        self.send(Method::POST, path, &[]).map(drop)
    }

    /// Changes something.
    pub fn patch<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        decode(&self.send(Method::PATCH, path, &encode(body)?)?)
    }

    /// Removes something.
    pub fn delete(&self, path: &str) -> Result<(), Failure> {
        self.send(Method::DELETE, path, &[]).map(drop)
    }

    /// Starts or stops a pass over the pool, or asks how it stands; its status in any case.
    pub fn pass<T: DeserializeOwned>(&self, path: &str, verb: PassVerb) -> Result<T, Failure> {
        match verb {
            PassVerb::Start => return self.post(path, &()),
            PassVerb::Stop => self.delete(path)?,
            PassVerb::Status => {}
        }
        self.get(path)
    }

    fn send(&self, method: Method, path: &str, body: &[u8]) -> Result<Vec<u8>, Failure> {
        let api = self.address.api;
        let request = Request::builder()
            .method(method)
            .uri(format!("http://{api}{path}"))
            .header("authorization", format!("Bearer {}", self.address.token))
            .header("content-type", "application/json");
        let lost = |error: &dyn std::fmt::Display| {
            let origin = &self.address.origin;
            Failure::Unreachable(format!("{api} ({origin}) does not answer: {error}"))
        };
        let answer = if body.is_empty() {
            request.body(()).map_err(ureq::Error::from).and_then(|r| self.agent.run(r))
        } else {
            request.body(body).map_err(ureq::Error::from).and_then(|r| self.agent.run(r))
        };
        let mut answer = answer.map_err(|error| lost(&error))?;
        let bytes = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
        let bytes = bytes.map_err(|error| lost(&error))?;
        if answer.status().is_success() {
            return Ok(bytes);
        }
        Err(refusal(answer.status(), &bytes, api))
    }
}

fn refusal(status: StatusCode, body: &[u8], api: std::net::SocketAddr) -> Failure {
    match serde_json::from_slice::<api::Refusal>(body) {
        Ok(refusal) if status == StatusCode::UNAUTHORIZED => Failure::Unreachable(refusal.message),
        Ok(refusal) => Failure::Refused(refusal.message),
        Err(_) => Failure::Unreachable(format!("{api} answers {status}: this is not an array")),
    }
}

fn encode(body: &impl Serialize) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(body).map_err(|error| Failure::Machine(format!("can't write JSON: {error}")))
}

fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Failure> {
    serde_json::from_slice(body)
        .map_err(|error| Failure::Unreachable(format!("the answer can't be understood: {error}")))
}

/// A name as a part of a path or a query: all but letters, digits, `-` and `_` is escaped.
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

/// A name that stands alone in a path. An empty one would be another path.
pub fn path_of(kind: &str, name: &str) -> Result<String, Failure> {
    if name.is_empty() {
        return Err(Failure::Usage("a name must not be empty".into()));
    }
    Ok(format!("/v1/{kind}/{}", part(name)))
}
