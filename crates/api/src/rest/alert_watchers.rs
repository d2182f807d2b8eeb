//! `alert-watchers`: the recipients of mail about alerts. The pool stores them; the mail relay is
//! that of `smtp-servers`.

use array::Watcher;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::receivers::{RestTestResult, Tested, named, removed, tested};
use super::{
    Answer, Body, ItemsOf, ListParams, Listed, NameParams, Query, Refusals, Refused, answer,
};
use crate::{Interface, Shared, watcher_destination};

/// A recipient of mail about alerts.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestAlertWatcher {
    /// The address.
    pub name: String,
    /// Whether mail is sent.
    pub enabled: bool,
}

listed_by_name!(RestAlertWatcher);

fn all(interface: &Interface) -> Vec<RestAlertWatcher> {
    let shown = |watcher: &Watcher| RestAlertWatcher {
        name: watcher.address.as_str().to_owned(),
        enabled: watcher.is_enabled,
    };
    interface.array.notifications().watchers().map(shown).collect()
}

/// Lists the recipients of mail about alerts.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/alert-watchers",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestAlertWatcher>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, all).await
}

/// The settings of a watcher.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WatcherPost {
    /// Whether mail is sent.
    pub enabled: Option<bool>,
}

/// Adds watchers, which receive mail unless `enabled` is false.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/alert-watchers",
    tag = "notifications",
    params(NameParams),
    request_body = WatcherPost,
    responses((status = 200, body = ItemsOf<RestAlertWatcher>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<WatcherPost>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        interface.array.create_watchers(&names, asked.enabled.unwrap_or(true))?;
        named(&all(interface), &names)
    })
    .await
}

/// Enables or disables mail to watchers.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/alert-watchers",
    tag = "notifications",
    params(NameParams),
    request_body = WatcherPost,
    responses((status = 200, body = ItemsOf<RestAlertWatcher>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<WatcherPost>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    let is_enabled = asked.enabled.ok_or_else(|| Refused::bad("enabled", "Give `enabled`."))?;
    answer(interface, move |interface| {
        interface.array.enable_watchers(&names, is_enabled)?;
        named(&all(interface), &names)
    })
    .await
}

/// Removes watchers.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/alert-watchers",
    tag = "notifications",
    params(NameParams),
    responses((status = 200, description = "Removed."), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, query: Query) -> Answer {
    removed(interface, query, |array, names| array.delete_watchers(names)).await
}

/// Sends a test notification to all watchers, or to some, and returns the results. Only
/// for array admins, because it sends messages.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/alert-watchers/test",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestTestResult>), Refusals)
)]
pub(super) async fn try_out(State(interface): Shared, query: Query) -> Answer {
    tested(interface, query, |interface| {
        let tested = |watcher: &Watcher| Tested {
            name: watcher.address.as_str().to_owned(),
            notified_as: watcher_destination(watcher.address.as_str()),
            destination: watcher.address.as_str().to_owned(),
            is_enabled: watcher.is_enabled,
        };
        interface.array.notifications().watchers().map(tested).collect()
    })
    .await
}
