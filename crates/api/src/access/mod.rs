//! Who may ask, and for what.
//!
//! [`check`] stands in front of every request but a few that are open. It finds out who asks, by an
//! API token (`Authorization: Bearer TOKEN`) or a session (`x-auth-token: SESSION`, which a login
//! gives for an API token), slows down who asks too often, refuses what the role may not ask for,
//! and hands a [`Caller`] on in the extensions of the request. Of a change it notes whose it is,
//! and everything that is then done with [`run`] is entered into the audit log.
//!
//! * [`token`]: secrets and their forms, [`session`]: what a login gives,
//! * [`role`]: what a role may ask for,
//! * [`limit`]: how often somebody may ask,
//! * [`deed`]: what the audit log says of a request,
//! * [`denied`]: refusals, in the form of the path,
//! * [`login`], [`users`], [`audit`]: the requests that are about all this.
//!
//! Nothing here reads a clock or draws random bytes: [`Sources`] are handed in.

pub(crate) mod audit;
mod deed;
mod denied;
mod limit;
pub(crate) mod login;
mod role;
pub(crate) mod session;
mod token;
pub(crate) mod users;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use array::users::BUILT_IN_USER;
use array::{Role, TokenHash};
use axum::extract::{Request, State};
use axum::http::header::AUTHORIZATION;
use axum::http::{Extensions, HeaderMap, HeaderName, Method};
use axum::middleware::Next;
use axum::response::Response;
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use denied::Denied;
use limit::{Buckets, FAILED_LOGINS, REQUESTS, neighbourhood};
use session::Sessions;
pub use token::Token;

use crate::Interface;

/// How many requests that change nothing are worked on at once: fewer than there are threads, and
/// as many times the memory of the longest list is taken.
pub(crate) const READS_MAX: usize = 2;

/// Where a request carries its session, and where a login gives it.
pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("x-auth-token");

/// Who asks: in the extensions of every request that is not open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user: String,
    /// What it may do.
    pub role: Role,
}

/// Where a request comes from: to be put into its extensions by the program that listens. Requests
/// without one, which no socket brought, count as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(pub IpAddr);

impl Origin {
    const NOWHERE: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self::NOWHERE)
    }
}

/// In the extensions of every answer to a caller who is known: for the program that listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetIn;

/// What can't be had here.
pub struct Sources {
    /// A time in milliseconds that never goes back, from wherever it begins.
    pub uptime_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Random bytes that are fit for keys; `None` where there are none to be had.
    pub entropy: Box<dyn Fn() -> Option<[u8; 32]> + Send + Sync>,
}

/// Who is known here, besides the users of the array, and how often they ask.
pub struct Access {
    /// The token of the run file: who reads it owns the process, and acts as the built-in user.
    local: Token,
    sources: Sources,
    sessions: Mutex<Sessions>,
    failures: Mutex<Buckets<IpAddr>>,
    requests: Mutex<Buckets<TokenHash>>,
    /// Turns of requests that look at something: see [`READS_MAX`].
    pub(crate) reads: Arc<Semaphore>,
}

/// What somebody is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    /// The token of the run file.
    Local,
    /// An API token.
    Token(TokenHash),
}

impl Access {
    /// Nobody is logged in yet; `local` is the token of the run file.
    pub fn new(local: Token, sources: Sources) -> Self {
        Self {
            local,
            sources,
            sessions: Mutex::default(),
            failures: Mutex::new(Buckets::new(FAILED_LOGINS)),
            requests: Mutex::new(Buckets::new(REQUESTS)),
            reads: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// Random bytes; `None` where there are none to be had.
    pub(crate) fn random(&self) -> Option<[u8; 32]> {
        (self.sources.entropy)()
    }
}

impl Interface {
    /// Who a credential stands for now; `None` where it is withdrawn.
    fn caller(&self, credential: Credential) -> Option<Caller> {
        let (user, role) = match credential {
            Credential::Local => (BUILT_IN_USER.to_owned(), Role::ArrayAdmin),
            Credential::Token(hash) => self.array.authenticate(&hash, (self.now_ms)())?,
        };
        Some(Caller { user, role })
    }

    /// Whose token this is. A wrong one counts against the address that it came from; after too
    /// many, no token from there is looked at but that of the run file, so that nobody locks the
    /// owner of the machine out.
    fn known(&self, token: &[u8], origin: Origin) -> Result<(Caller, Credential), Denied> {
        let access = &self.access;
        let (from, now_ms) = (neighbourhood(origin.0), (access.sources.uptime_ms)());
        let credential = if access.local.is(token) {
            Credential::Local
        } else {
            let checked = access.failures.lock().check(&from, now_ms);
            checked.map_err(|seconds| Denied::TooManyFailures { seconds })?;
            Credential::Token(TokenHash::of(token))
        };
        let Some(caller) = self.caller(credential) else {
            access.failures.lock().spend(from, now_ms);
            access.sessions.lock().fail(origin.0, (self.now_ms)());
            tracing::warn!("an unknown API token came from {}", origin.0);
            return Err(Denied::WrongToken);
        };
        Ok((caller, credential))
    }

    /// Who sent a request.
    fn sender(&self, headers: &HeaderMap, origin: Origin) -> Result<(Caller, Credential), Denied> {
        let access = &self.access;
        if let Some(session) = headers.get(SESSION_HEADER) {
            let hash = TokenHash::of(session.as_bytes());
            let credential = access.sessions.lock().use_one(&hash, (access.sources.uptime_ms)());
            let found = credential.and_then(|it| Some((self.caller(it)?, it)));
            return found.ok_or(Denied::NoSession);
        }
        let header = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        match header.and_then(bearer) {
            Some(token) => self.known(token, origin),
            None => Err(Denied::NoSession),
        }
    }

    /// Counts a request. Who owns the process is not counted.
    fn count(&self, credential: Credential) -> Result<(), Denied> {
        let Credential::Token(hash) = credential else { return Ok(()) };
        let now_ms = (self.access.sources.uptime_ms)();
        let mut requests = self.access.requests.lock();
        requests.check(&hash, now_ms).map_err(|seconds| Denied::TooManyRequests { seconds })?;
        requests.spend(hash, now_ms);
        Ok(())
    }

    fn admit(&self, request: &Request) -> Result<Caller, Denied> {
        let origin = Origin::of(request.extensions());
        let (caller, credential) = self.sender(request.headers(), origin)?;
        self.count(credential)?;
        let (method, path) = (request.method(), request.uri().path());
        if !role::may(caller.role, method, path) {
            tracing::warn!("{} ({}) may not {method} {path}", caller.user, caller.role);
            return Err(Denied::Role(caller.role));
        }
        Ok(caller)
    }
}

/// Runs what may wait for the store on a thread that may, and enters it into the audit log if the
/// request is one that changes something; `code` is what the log says of a refusal. `None` where
/// the work panicked.
pub(crate) async fn run<T, E>(
    interface: Arc<Interface>,
    work: impl FnOnce(&Interface) -> Result<T, E> + Send + 'static,
    code: impl FnOnce(&E) -> &'static str + Send + 'static,
) -> Option<Result<T, E>>
where
    T: Send + 'static,
    E: From<array::Error> + Send + 'static,
{
    let deed = deed::of_this_request();
    // What only looks waits for others that do; changes always find a thread.
    let turn = match deed {
        None => Some(interface.access.reads.clone().acquire_owned().await.ok()?),
        Some(_) => None,
    };
    let run = move || {
        let done = match deed {
            Some(deed) => interface.array.attributed(deed, || work(&interface), code),
            None => work(&interface),
        };
        // Whoever has gone away meanwhile has kept its turn up to here.
        drop(turn);
        done
    };
    tokio::task::spawn_blocking(run).await.ok()
}

/// The token of an `Authorization` header.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    match header.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(token),
        _ => None,
    }
}

/// Whether anybody may ask: for versions, and for a session.
fn is_open(method: &Method, path: &str) -> bool {
    let is_login = |rest: &str| rest.split_once('/').is_some_and(|(_, rest)| rest == "login");
    match *method {
        Method::GET | Method::HEAD => matches!(path, "/v1/version" | "/api/api_version"),
        Method::POST => path.strip_prefix("/api/2.").is_some_and(is_login),
        _ => false,
    }
}

/// Lets a request through to its handler, or refuses it.
pub(crate) async fn check(
    State(interface): State<Arc<Interface>>,
    mut request: Request,
    next: Next,
) -> Response {
    if is_open(request.method(), request.uri().path()) {
        return next.run(request).await;
    }
    let path = request.uri().path().to_owned();
    match interface.admit(&request) {
        Err(denied) => denied.answer(&path),
        Ok(caller) => {
            request.extensions_mut().insert(caller.clone());
            let mut answer = deed::run(&interface, caller, request, next).await;
            answer.extensions_mut().insert(LetIn);
            answer
        }
    }
}
