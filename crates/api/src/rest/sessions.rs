//! `sessions`: who is logged in.
//!
//! Sessions that have ended are forgotten, and so are all of them when the array starts: what was
//! done in them is told by the audit log.

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::{Answer, ItemsOf, ListParams, Listed, NameParams, Query, Refusals};
use crate::Shared;
use crate::access::session::Begun;

/// A session.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSession {
    /// Which login it was since the array was started, with leading zeros.
    pub name: String,
    /// The same.
    pub id: String,
    /// `login`.
    pub event: String,
    /// 1.
    pub event_count: u32,
    /// The address that it came from.
    pub location: String,
    /// `API token`: there is no other way.
    pub method: String,
    /// When, in milliseconds since 1970.
    pub start_time: u64,
    /// When it ended: those that are told have not.
    pub end_time: Option<u64>,
    /// Who.
    pub user: String,
    /// How: always `REST`.
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
            method: "API token".into(),
            start_time: login.at_ms,
            end_time: None,
            user: login.user,
            user_interface: "REST".into(),
        }
    }
}

listed_by_name!(RestSession);

/// The sessions that have not ended, the oldest first.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/sessions",
    tag = "sessions",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestSession>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        interface.logins().into_iter().map(RestSession::from).collect()
    })
    .await
}
