//! `syslog-servers`: servers that receive alerts and the audit log by syslog. The pool stores them.

use std::sync::Arc;

use array::{Array, SyslogServer, SyslogUri};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::receivers::{RestTestResult, Tested, named, removed, tested};
use super::{
    Answer, Body, ItemsOf, ListParams, Listed, NameParams, Query, Refusals, Refused, answer,
};
use crate::{Interface, Shared, syslog_destination};

/// The data that all servers receive: alerts and the audit log.
const SERVICE: &str = "management";
/// The type of all servers.
const TARGET_TYPE: &str = "syslog";

/// A syslog server.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSyslogServer {
    /// The name of the server.
    pub name: String,
    /// What it receives: `management`, which is alerts and the audit log.
    pub services: Vec<String>,
    /// `syslog`.
    pub target_type: String,
    /// `udp://HOST:PORT`, `tcp://HOST:PORT` or `tls://HOST:PORT`, as it was given.
    pub uri: String,
}

listed_by_name!(RestSyslogServer);

fn all(interface: &Interface) -> Vec<RestSyslogServer> {
    let shown = |server: &SyslogServer| RestSyslogServer {
        name: server.name.to_string(),
        services: vec![SERVICE.into()],
        target_type: TARGET_TYPE.into(),
        uri: server.uri.to_string(),
    };
    interface.array.notifications().servers().map(shown).collect()
}

/// Lists the syslog servers.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/syslog-servers",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestSyslogServer>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, all).await
}

/// The settings of a server.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SyslogServerPost {
    /// Its name, if it is given here as well: the same as in the query.
    pub name: Option<String>,
    /// Only `management`.
    pub services: Option<Vec<String>>,
    /// Only `syslog`.
    pub target_type: Option<String>,
    /// `udp://HOST:PORT`, `tcp://HOST:PORT` or `tls://HOST:PORT`; without a port 514, and 6514
    /// with TLS.
    pub uri: Option<String>,
}

impl SyslogServerPost {
    /// Returns the URI, for the servers that the query names.
    fn uri(self, names: &[String]) -> Result<SyslogUri, Refused> {
        if self.services.is_some_and(|all| all.iter().any(|service| service != SERVICE)) {
            return Err(Refused::unsupported("services", "A service other than management"));
        }
        if self.target_type.is_some_and(|kind| kind != TARGET_TYPE) {
            return Err(Refused::unsupported("target_type", "A target other than syslog"));
        }
        let is_other = |name: &String| names != std::slice::from_ref(name);
        if self.name.as_ref().is_some_and(is_other) {
            return Err(Refused::unsupported("name", "Another name for a syslog server"));
        }
        let uri = self.uri.ok_or_else(|| Refused::bad("uri", "Give a uri."))?;
        Ok(SyslogUri::new(&uri)?)
    }
}

/// Sets the URI of servers, which are added or changed, and returns them.
async fn set(
    interface: Arc<Interface>,
    mut query: Query,
    asked: SyslogServerPost,
    change: fn(&Array, &[String], &SyslogUri) -> Result<(), array::Error>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    let uri = asked.uri(&names)?;
    answer(interface, move |interface| {
        change(&interface.array, &names, &uri)?;
        named(&all(interface), &names)
    })
    .await
}

/// Adds a server, or several with one URI.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/syslog-servers",
    tag = "notifications",
    params(NameParams),
    request_body = SyslogServerPost,
    responses((status = 200, body = ItemsOf<RestSyslogServer>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<SyslogServerPost>,
) -> Answer {
    set(interface, query, asked, Array::create_syslog_servers).await
}

/// Changes the URI of servers.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/syslog-servers",
    tag = "notifications",
    params(NameParams),
    request_body = SyslogServerPost,
    responses((status = 200, body = ItemsOf<RestSyslogServer>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<SyslogServerPost>,
) -> Answer {
    set(interface, query, asked, Array::move_syslog_servers).await
}

/// Removes servers.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/syslog-servers",
    tag = "notifications",
    params(NameParams),
    responses((status = 200, description = "Removed."), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, query: Query) -> Answer {
    removed(interface, query, |array, names| array.delete_syslog_servers(names)).await
}

/// Sends a test notification to all servers, or to some, and returns the results. Only
/// for array admins, because it sends messages.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/syslog-servers/test",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestTestResult>), Refusals)
)]
pub(super) async fn try_out(State(interface): Shared, query: Query) -> Answer {
    tested(interface, query, |interface| {
        let tested = |server: &SyslogServer| Tested {
            name: server.name.to_string(),
            notified_as: syslog_destination(server.name.as_str()),
            destination: server.uri.to_string(),
            is_enabled: true,
        };
        interface.array.notifications().servers().map(tested).collect()
    })
    .await
}
