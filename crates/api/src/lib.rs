//! The management interface: JSON over HTTP, under `/v1`, and [`rest`] under `/api`.
//!
//! This crate defines the requests, their meaning and their refusals; it opens no socket and reads
//! no clock. The listening program passes an [`Interface`] to [`router`]. [`access`] decides who
//! may send which request. `GET /v1/openapi.json` describes all requests, from the same source as
//! the handlers.
//!
//! A refusal is `{"code": …, "message": …}`: the code is for programs and does not change, the
//! message is one line for people.

pub mod access;
mod alerts;
mod certificates;
mod controllers;
mod counters;
mod described;
mod device_changes;
mod devices;
mod directory;
mod error;
mod history;
mod host_check;
mod initiators;
mod integrity;
mod latency;
mod metrics;
mod offloads;
mod optimize;
mod page;
pub mod rest;
mod sessions;
mod settings;
mod snapshots;
mod space;
mod system;
mod time_servers;
mod together;
mod types;
mod volumes;
mod words;

#[cfg(test)]
mod tests;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use array::Array;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::HeaderName;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::get;
use axum::{Router, middleware};
use tower_http::timeout::RequestBodyTimeoutLayer;
use utoipa::OpenApi;
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use self::history::{CapacitySample, CommandRates, HistorySample, HistorySamples};
pub use access::audit::{Audit, AuditEntry};
pub use access::directory::{DirectoryLogin, TellLogin};
pub use access::login::{LoggedIn, LoggedInItems, OwnPassword, PasswordLogin, Session};
pub use access::users::{ApiToken, ApiTokenCreate, ApiTokenMade, ApiTokens, User, Users};
pub use access::{Access, Caller, LetIn, Origin, Sources, Token};
pub use alerts::{Alert, NotificationTest, NotificationTests};
pub use alerts::{SNMP_MANAGERS, SYSLOG_SERVERS, WATCHERS};
pub use alerts::{snmp_destination, syslog_destination, watcher_destination};
pub use certificates::{CertificateFacts, CertificateSubject, Certificates};
pub use controllers::{Controller, Controllers, OtherController};
pub use counters::{
    CommandCounters, Copied, Counters, MemoryCounters, PathCounters, PortCounters, WireCounters,
    Written,
};
pub use device_changes::{
    DeviceAdd, DeviceChange, DeviceChanges, DeviceRefusal, DeviceStateChange,
};
pub use devices::{
    CatchingUp, Device, DeviceCalls, DeviceHealth, DeviceParts, DeviceState, DeviceTransfers,
    Devices,
};
pub use directory::{
    DirectoryRole, DirectoryServer, DirectoryServers, DirectorySettings, DirectorySettingsChange,
};
pub use error::{ApiError, Refusal};
pub use host_check::{HostCheck, HostCheckRow, Verdict};
pub use initiators::{Initiator, Initiators, RefusedLogin};
pub use integrity::{DamageEntry, DamageList, Scrub};
pub use latency::LatencyBucket;
pub use offloads::{OffloadChange, OffloadSettings};
pub use optimize::Optimize;
pub use page::{Page, VolumeFilter};
pub use sessions::{HostSession, HostSessions, SessionTerms};
pub use settings::{ArraySettings, ArraySettingsChange};
pub use snapshots::SnapshotSpace;
use space::ratio;
pub use space::{PoolSpace, Space, SpaceFigures};
pub use time_servers::{TimeServer, TimeServers};
pub use types::*;

/// The maximum size of a request's body, in bytes: a host with all of its names, several times
/// over.
pub const BODY_BYTES_MAX: usize = 64 << 10;
/// The maximum pause of a client while it sends a body.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of objects in a list response.
pub const PAGE_MAX: usize = 10_000;

/// What the interface manages, and the external functions that it needs.
pub struct Interface {
    /// The objects of the array.
    pub array: Arc<Array>,
    /// Authentication and rate limits.
    pub access: Access,
    /// The program and its parameters.
    pub facts: Facts,
    /// The counters of the front end.
    pub telemetry: Arc<dyn Telemetry>,
    /// Changes the devices of the pool.
    pub changes: Arc<dyn DeviceChanges>,
    /// The sessions of hosts, and the destinations of notifications.
    pub watch: Arc<dyn Watch>,
    /// The counters over a year.
    pub history: Arc<::history::History>,
    /// The time in milliseconds since 1970.
    pub now_ms: fn() -> u64,
}

/// Facts that do not change while the program runs.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The version of the program.
    pub version: String,
    /// The addresses of the target, as `ADDR:PORT`.
    pub portals: Vec<String>,
    /// The relative identifiers of these ports, in the same order.
    pub port_ids: Vec<u16>,
    /// `commit` or `flush`.
    pub durability: String,
    /// The time of the start, in milliseconds since 1970.
    pub started_ms: u64,
    /// The id of the process.
    pub pid: u32,
    /// Whether this is the second of two controllers, `CT1`.
    pub is_second: bool,
    /// How many of the portals, the last ones, belong to the other controller.
    pub elsewhere: usize,
}

/// The counters of the front end. Called from a thread that may block.
pub trait Telemetry: Send + Sync {
    /// Returns the counters; the interface fills in the names of volumes.
    fn counters(&self) -> Counters;

    /// Returns the same without the counters per initiator and volume, which may be many.
    fn totals(&self) -> Counters {
        Counters { paths: Vec::new(), ..self.counters() }
    }

    /// Returns the devices of the pool; the interface fills in how much they hold.
    fn devices(&self) -> Devices;
}

/// The sessions of hosts, and the destinations of notifications. Called from threads that may
/// block.
pub trait Watch: Send + Sync {
    /// Returns all sessions that carry commands; the interface fills in hosts and portals.
    fn sessions(&self) -> Vec<HostSession>;

    /// Returns the most recently ended sessions of each initiator and portal, each with its end, in
    /// milliseconds since 1970.
    fn ended_sessions(&self) -> Vec<(u64, HostSession)>;

    /// Returns what is known about the other controller, if there are two and it is running.
    fn other_controller(&self) -> Option<OtherController> {
        None
    }

    /// Returns whether the other controller is kept stopped on request.
    fn is_other_stopped(&self) -> bool {
        false
    }

    /// Stops the other controller and keeps it stopped, or starts it again. The error is the reason
    /// why that is not possible, for people.
    fn keep_other_down(&self, _down: bool) -> Result<(), String> {
        Err("controllers can't be started and stopped here".into())
    }

    /// Switches the pool to the other controller, some time after the return. Called only if the
    /// other controller is running.
    fn switch(&self) {}

    /// Returns the last refused login of each initiator, by the name in its login; their number is
    /// bounded.
    fn refused_logins(&self) -> Vec<(String, RefusedLogin)>;

    /// Returns the time servers, with their last responses.
    fn time_servers(&self) -> Vec<TimeServer> {
        Vec::new()
    }

    /// Queries all time servers, and waits for their responses.
    fn test_time_servers(&self) -> Vec<TimeServer> {
        Vec::new()
    }

    /// Starts a login at the directory service. Does not wait: `tell` receives the result, on
    /// another thread.
    fn log_in_by_directory(&self, _user: String, _password: String, tell: TellLogin) {
        tell(DirectoryLogin::Refused);
    }

    /// Tests the servers of the directory service, and waits for the results.
    fn test_directory(&self) -> Vec<DirectoryServer> {
        Vec::new()
    }

    /// Returns the source of certificates, if there is a server that could use them.
    fn certificates(&self) -> Option<&dyn Certificates> {
        None
    }

    /// Sends a test event to each destination that `is_wanted` accepts by name; waits for the
    /// results.
    fn test_notifications(&self, is_wanted: &dyn Fn(&str) -> bool) -> Vec<NotificationTest>;
}

/// The header of a body that is already JSON.
const JSON: (HeaderName, &str) = (CONTENT_TYPE, "application/json");

type Shared = axum::extract::State<Arc<Interface>>;

/// The description of the interface, without its paths: the handlers add those.
#[derive(OpenApi)]
#[openapi(
    info(title = "Holdfast", description = "Management of a Holdfast array."),
    components(schemas(Refusal)),
    security(("token" = []), ("session" = []))
)]
struct Description;

/// Returns the whole interface, as a service for an HTTP server. Must run within a tokio runtime.
pub fn router(interface: Arc<Interface>) -> Router {
    let described = Arc::<OnceLock<Bytes>>::default();
    let (routes, _) = routes().split_for_parts();
    routes
        .route("/v1/openapi.json", get(move || describe(described.clone())))
        .fallback(|| async { ApiError::no_such_path().into_response() })
        .method_not_allowed_fallback(|| async { ApiError::no_such_method().into_response() })
        .with_state(interface.clone())
        .merge(rest::router(rest::routes().split_for_parts().0, interface.clone()))
        .layer(middleware::from_fn_with_state(interface, access::check))
        .layer(DefaultBodyLimit::max(BODY_BYTES_MAX))
        .layer(RequestBodyTimeoutLayer::new(BODY_TIMEOUT))
}

/// Returns the description of the interface: OpenAPI 3.1.
pub fn openapi() -> utoipa::openapi::OpenApi {
    let mut description = routes().split_for_parts().1;
    description.merge(rest::routes().split_for_parts().1);
    described(rest::described(description))
}

/// Returns the description. It is long, never changes, and takes tens of milliseconds to create, so
/// it is created at the first request: not at the start, when hosts wait.
async fn describe(described: Arc<OnceLock<Bytes>>) -> Result<impl IntoResponse, ApiError> {
    let make = || match serde_json::to_vec(&openapi()) {
        Ok(text) => Bytes::from(text),
        Err(error) => panic!("the description is not valid JSON: {error}"),
    };
    let made = tokio::task::spawn_blocking(move || described.get_or_init(make).clone()).await;
    made.map(|text| ([JSON], text)).map_err(|_| ApiError::broken())
}

/// Returns the types of [`openapi`], without the requests: the content of `web/openapi.json`.
pub fn types_for_the_page() -> utoipa::openapi::OpenApi {
    described::types_only(openapi())
}

fn routes() -> OpenApiRouter<Arc<Interface>> {
    OpenApiRouter::with_openapi(Description::openapi())
        .routes(routes!(system::version))
        .routes(routes!(system::status))
        .routes(routes!(system::pool, system::grow_pool))
        .routes(routes!(controllers::upgrade_pool))
        .routes(routes!(integrity::scrub, integrity::start_scrub, integrity::stop_scrub))
        .routes(routes!(integrity::damage))
        .routes(routes!(optimize::optimize, optimize::start_optimize, optimize::stop_optimize))
        .routes(routes!(space::space, space::refresh))
        .routes(routes!(system::counters))
        .routes(routes!(devices::devices, device_changes::add))
        .routes(routes!(device_changes::change_state, device_changes::remove))
        .routes(routes!(device_changes::identify))
        .routes(routes!(controllers::list))
        .routes(routes!(controllers::switch))
        .routes(routes!(controllers::stop))
        .routes(routes!(controllers::start))
        .routes(routes!(metrics::metrics))
        .routes(routes!(history::history))
        .routes(routes!(system::settings, system::change_settings))
        .routes(routes!(volumes::list, volumes::create))
        .routes(routes!(volumes::show, volumes::change))
        .routes(routes!(snapshots::space))
        .routes(routes!(host_check::check))
        .routes(routes!(sessions::list))
        .routes(routes!(initiators::list))
        .routes(routes!(alerts::close))
        .routes(routes!(alerts::test))
        .routes(routes!(time_servers::list))
        .routes(routes!(time_servers::test))
        .routes(routes!(directory::show, directory::change))
        .routes(routes!(directory::test))
        .routes(routes!(access::login::session, access::login::begin_session))
        .routes(routes!(access::login::change_own_password))
        .routes(routes!(access::users::list))
        .routes(routes!(access::users::show))
        .routes(routes!(access::users::remove_password))
        .routes(routes!(access::users::list_tokens, access::users::create_token))
        .routes(routes!(access::users::delete_token))
        .routes(routes!(access::audit::list))
}

fn described(mut description: utoipa::openapi::OpenApi) -> utoipa::openapi::OpenApi {
    let components = description.components.get_or_insert_default();
    let bearer = SecurityScheme::Http(Http::new(HttpAuthScheme::Bearer));
    components.add_security_scheme("token", bearer);
    let session = SecurityScheme::ApiKey(ApiKey::Header(ApiKeyValue::new("x-auth-token")));
    components.add_security_scheme("session", session);
    described::with_refusals(&mut description);
    description
}

/// Runs work that may wait for the store on a blocking thread.
async fn blocking<T: Send + 'static>(
    interface: Arc<Interface>,
    work: impl FnOnce(&Interface) -> Result<T, array::Error> + Send + 'static,
) -> Result<T, ApiError> {
    match access::run(interface, work, array::Error::code).await {
        Some(result) => result.map_err(ApiError::from),
        None => Err(ApiError::broken()),
    }
}
