//! `sessions`: the logins of users.
//!
//! Ended sessions are dropped, and a restart of the array ends all; the audit log keeps the changes
//! made in them. Failed logins are listed as well, with a count for each client address.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::{Answer, ItemsOf, ListParams, Listed, NameParams, Query, Refusals};
use crate::Shared;
use crate::access::session::{Begun, Failed, Method};

/// A session, or failed logins.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSession {
    /// The number of the event since the array was started, with leading zeros.
    pub name: String,
    /// The same.
    pub id: String,
    /// `login`, or `failed authentication`.
    pub event: String,
    /// How many logins: 1 for a session.
    pub event_count: u64,
    /// The address that it came from.
    pub location: String,
    /// `API token` or `password`.
    pub method: String,
    /// When it began, in milliseconds since 1970.
    pub start_time: u64,
    /// When the last login failed. Listed sessions have not ended.
    #[schema(required = true)]
    pub end_time: Option<u64>,
    /// The user; `null` if the login failed.
    #[schema(required = true)]
    pub user: Option<String>,
    /// Always `REST`.
    pub user_interface: String,
}

impl From<Begun> for RestSession {
    fn from(login: Begun) -> Self {
        let name = format!("{:012}", login.number);
        Self {
            id: name.clone(),
            name,
            event: "login".into(),
            event_count: 1,
            location: login.origin.to_canonical().to_string(),
            method: match login.method {
                Method::Token => "API token".into(),
                Method::Password => "password".into(),
            },
            start_time: login.at_ms,
            end_time: None,
            user: Some(login.user),
            user_interface: "REST".into(),
        }
    }
}

impl From<Failed> for RestSession {
    fn from(failed: Failed) -> Self {
        let name = format!("{:012}", failed.number);
        Self {
            id: name.clone(),
            name,
            event: "failed authentication".into(),
            event_count: failed.count,
            location: failed.origin.to_canonical().to_string(),
            method: "API token".into(),
            start_time: failed.first_ms,
            end_time: Some(failed.last_ms),
            user: None,
            user_interface: "REST".into(),
        }
    }
}

listed_by_name!(RestSession);

/// Lists the sessions that have not ended, and the failed logins, the oldest first.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/sessions",
    tag = "sessions",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestSession>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        let (begun, failed) = interface.logins();
        let begun = begun.into_iter().map(RestSession::from);
        let mut all: Vec<_> = begun.chain(failed.into_iter().map(RestSession::from)).collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    })
    .await
}
