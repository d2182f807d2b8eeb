//! `smtp-servers`: one item that says that no server is set up. The array's configuration names the
//! one that it sends alerts by, not this interface.

use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, NameParams, Query, Refusals, Refused, answer,
};
use crate::Shared;

/// A server that mail is sent by.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSmtpServer {
    /// `none`.
    pub name: String,
}

listed_by_name!(RestSmtpServer);

fn none() -> RestSmtpServer {
    RestSmtpServer { name: "none".into() }
}

/// Lists the servers that mail is sent by: one item that says that nothing is set up.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/smtp-servers",
    tag = "lists",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestSmtpServer>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |_| vec![none()]).await
}

/// What a server is set to: nothing.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SmtpPatch {
    /// Before each text: must be empty.
    pub body_prefix: Option<String>,
    /// Must be empty.
    pub encryption_mode: Option<String>,
    /// Must be empty.
    pub password: Option<String>,
    /// The address of the server: must be empty.
    pub relay_host: Option<String>,
    /// Must be empty, or `None`.
    pub sender_domain: Option<String>,
    /// Must be empty.
    pub sender_username: Option<String>,
    /// Before each subject: must be empty.
    pub subject_prefix: Option<String>,
    /// Must be empty.
    pub user_name: Option<String>,
}

/// Clears the server, which is always done. Setting one up is refused.
///
/// One client clears it so, with `None` as the domain, and ends with an exception at a refusal.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/smtp-servers",
    tag = "lists",
    request_body = SmtpPatch,
    responses((status = 200, body = ItemsOf<RestSmtpServer>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<SmtpPatch>,
) -> Answer {
    query.end()?;
    let domain = asked.sender_domain.filter(|domain| domain != "None");
    let is_cleared = domain.as_deref().is_none_or(str::is_empty);
    let others = [
        asked.body_prefix,
        asked.encryption_mode,
        asked.password,
        asked.relay_host,
        asked.sender_username,
        asked.subject_prefix,
        asked.user_name,
    ];
    let given = others.iter().flatten().collect::<Vec<_>>();
    if !is_cleared || given.is_empty() || given.iter().any(|text| !text.is_empty()) {
        return Err(Refused::unsupported("", "SMTP settings"));
    }
    answer(interface, |_| Items::of([none()])).await
}
