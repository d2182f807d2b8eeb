//! Authentication, authorisation, rate limits and the audit log.
//!
//! [`check`] runs before every request except a few that are open. It identifies the caller by an
//! API token (`Authorization: Bearer TOKEN`) or a session (`x-auth-token: SESSION`, which a login
//! returns for an API token or a password), limits the request rate of callers, refuses what the
//! role does not allow, and passes a [`Caller`] on in the extensions of the request. For a change
//! it also records the caller, and everything that [`run`] then does is entered into the audit log.
//!
//! * [`token`]: generated secrets and their formats, [`password`]: passwords of users,
//! * [`directory`]: users of a directory service,
//! * [`session`]: sessions, which a login starts,
//! * [`role`]: the permissions of each role,
//! * [`limit`]: rate limits,
//! * [`deed`]: what the audit log records of a request,
//! * [`denied`]: refusals, in the format of the path's API,
//! * [`login`], [`users`], [`audit`]: the requests for access control.
//!
//! Nothing here reads a clock or generates random bytes: the caller provides [`Sources`].

pub(crate) mod audit;
mod deed;
pub(crate) mod denied;
pub(crate) mod directory;
mod limit;
pub(crate) mod login;
mod password;
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

/// The maximum number of concurrent read-only requests. It is less than the number of threads, and
/// it bounds memory: each request may hold the longest list.
pub(crate) const READS_MAX: usize = 2;

/// The header with the session, in requests and in the response to a login.
pub(crate) const SESSION_HEADER: HeaderName = HeaderName::from_static("x-auth-token");

/// The caller, in the extensions of every request that needs authentication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The user.
    pub user: String,
    /// The role.
    pub role: Role,
}

/// The address of the client: the listening program puts it into the request's extensions. Requests
/// without one did not come over a socket, and count as one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin(pub IpAddr);

impl Origin {
    pub(crate) const NOWHERE: Self = Self(IpAddr::V4(Ipv4Addr::UNSPECIFIED));

    fn of(extensions: &Extensions) -> Self {
        extensions.get().copied().unwrap_or(Self::NOWHERE)
    }
}

/// Marks the response to an identified caller, in its extensions, for the listening program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LetIn;

/// The external sources that this crate needs.
pub struct Sources {
    /// A monotonic time in milliseconds, from any starting point.
    pub uptime_ms: Box<dyn Fn() -> u64 + Send + Sync>,
    /// Random bytes that are suitable for keys; `None` if there are none.
    pub entropy: Box<dyn Fn() -> Option<[u8; 32]> + Send + Sync>,
}

/// Sessions and rate limits; the array keeps the users.
pub struct Access {
    /// The token of the run file: its reader owns the process, and acts as the built-in user.
    local: Token,
    sources: Sources,
    sessions: Mutex<Sessions>,
    failures: Mutex<Buckets<IpAddr>>,
    requests: Mutex<Buckets<TokenHash>>,
    passwords: password::Turns,
    directory: directory::Turns,
    /// Permits for read-only requests: see [`READS_MAX`].
    pub(crate) reads: Arc<Semaphore>,
}

/// What identifies a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Credential {
    /// The token of the run file.
    Local,
    /// An API token.
    Token(TokenHash),
    /// A password of a user: see [`array::PasswordHash::credential`].
    Password(TokenHash),
    /// A login of a user of the directory service, and the revision of the service's settings.
    Directory { user: TokenHash, role: Role, revision: u64 },
}

impl Access {
    /// Creates the state without sessions; `local` is the token of the run file.
    pub fn new(local: Token, sources: Sources) -> Self {
        Self {
            local,
            sources,
            sessions: Mutex::default(),
            failures: Mutex::new(Buckets::new(FAILED_LOGINS)),
            requests: Mutex::new(Buckets::new(REQUESTS)),
            passwords: password::Turns::default(),
            directory: directory::Turns::default(),
            reads: Arc::new(Semaphore::new(READS_MAX)),
        }
    }

    /// Returns random bytes; `None` if there are none.
    pub(crate) fn random(&self) -> Option<[u8; 32]> {
        (self.sources.entropy)()
    }
}

impl Interface {
    /// Returns the caller that a credential now identifies; `None` if it was withdrawn. `name` is
    /// the name of the user if it is a user of the directory service.
    fn caller(&self, credential: Credential, name: &str) -> Option<Caller> {
        let (user, role) = match credential {
            Credential::Local => (BUILT_IN_USER.to_owned(), Role::ArrayAdmin),
            Credential::Token(hash) => self.array.authenticate(&hash, (self.now_ms)())?,
            Credential::Password(hash) => self.array.has_password(&hash)?,
            Credential::Directory { role, revision, .. } => {
                let directory = self.array.directory();
                let is_good = directory.is_enabled && directory.revision() == revision;
                (is_good && !self.is_own(name)).then(|| (name.to_owned(), role))?
            }
        };
        Some(Caller { user, role })
    }

    /// Returns the owner of this token. A wrong token counts against the address of the client, and
    /// after too many such tokens are neither logged nor listed as failures. A right token is
    /// accepted all the same: nobody guesses 128 random bits, and clients share addresses, so a
    /// program with an old token must not lock out the others.
    fn known(&self, token: &[u8], origin: Origin) -> Result<(Caller, Credential), Denied> {
        let access = &self.access;
        let credential = match access.local.is(token) {
            true => Credential::Local,
            false => Credential::Token(TokenHash::of(token)),
        };
        if let Some(caller) = self.caller(credential, "") {
            return Ok((caller, credential));
        }
        let (from, now_ms) = (neighbourhood(origin.0), (access.sources.uptime_ms)());
        let mut failures = access.failures.lock();
        failures.check(&from, now_ms).map_err(|seconds| Denied::TooManyFailures { seconds })?;
        failures.spend(from, now_ms);
        drop(failures);
        access.sessions.lock().fail(origin.0, (self.now_ms)());
        tracing::warn!("an unknown API token came from {}", origin.0);
        Err(Denied::WrongToken)
    }

    /// Returns the sender of a request.
    fn sender(&self, headers: &HeaderMap, origin: Origin) -> Result<(Caller, Credential), Denied> {
        let access = &self.access;
        if let Some(session) = headers.get(SESSION_HEADER) {
            let hash = TokenHash::of(session.as_bytes());
            let used = access.sessions.lock().use_one(&hash, (access.sources.uptime_ms)());
            let found = used.and_then(|(it, name)| Some((self.caller(it, &name)?, it)));
            return found.ok_or(Denied::NoSession);
        }
        let header = headers.get(AUTHORIZATION).map(|value| value.as_bytes());
        match header.and_then(bearer) {
            Some(token) => self.known(token, origin),
            None => Err(Denied::NoSession),
        }
    }

    /// Counts a request. Requests of the process owner are not counted.
    fn count(&self, credential: Credential) -> Result<(), Denied> {
        let hash = match credential {
            Credential::Local => return Ok(()),
            Credential::Token(hash) | Credential::Password(hash) => hash,
            Credential::Directory { user, .. } => user,
        };
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

/// Runs work that may wait for the store on a blocking thread, and adds it to the audit log if the
/// request changes something; `code` is what the log says of a refusal. Returns `None` if the work
/// panicked.
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
    // A read-only request has waited for its permit; changes always find a thread. A request with
    // neither a permit nor an audit entry needs no authentication.
    let turn = match (&deed, deed::turn_of_this_request()) {
        (None, None) => Some(Arc::new(interface.access.reads.clone().acquire_owned().await.ok()?)),
        (_, turn) => turn,
    };
    let run = move || {
        let done = match deed {
            Some(deed) => interface.array.attributed(deed, || work(&interface), code),
            None => work(&interface),
        };
        // The permit is held until the work ends, even if the client has gone away.
        drop(turn);
        done
    };
    tokio::task::spawn_blocking(run).await.ok()
}

/// Returns the token of an `Authorization` header.
fn bearer(header: &[u8]) -> Option<&[u8]> {
    match header.split_at_checked(7) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case(b"bearer ") => Some(token),
        _ => None,
    }
}

/// Returns whether a path needs no authentication: versions, and login.
fn is_open(method: &Method, path: &str) -> bool {
    let is_login = |rest: &str| rest.split_once('/').is_some_and(|(_, rest)| rest == "login");
    match *method {
        Method::GET | Method::HEAD => matches!(path, "/v1/version" | "/api/api_version"),
        Method::POST => path == "/v1/session" || path.strip_prefix("/api/2.").is_some_and(is_login),
        _ => false,
    }
}

/// Passes a request on to its handler, or refuses it.
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
