//! `/v1/audit`: who changed what.

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::page::whole;
use crate::{ApiError, PAGE_MAX, Refusal, Shared, blocking};

/// A change that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// From 1; never used twice.
    pub number: u64,
    /// When, in milliseconds since 1970.
    pub time_ms: u64,
    /// Who.
    pub user: String,
    /// With which role.
    pub role: String,
    /// From which address.
    pub origin: String,
    /// The method of the request.
    pub method: String,
    /// The path of the request.
    pub path: String,
    /// The names of objects in the request, beside those in its path.
    pub names: String,
    /// `done`, or the code of the refusal.
    pub outcome: String,
}

impl From<array::AuditEntry> for AuditEntry {
    fn from(entry: array::AuditEntry) -> Self {
        let deed = entry.deed;
        Self {
            number: entry.number,
            time_ms: deed.time_ms,
            user: deed.user,
            role: deed.role.name().into(),
            origin: deed.origin,
            method: deed.method,
            path: deed.path,
            names: deed.names,
            outcome: entry.outcome,
        }
    }
}

/// A part of the audit log, the newest entry first.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Audit {
    /// The entries.
    pub entries: Vec<AuditEntry>,
    /// Whether there are older ones; to get them, pass the last one's number as `before`.
    pub more: bool,
}

/// Which entries to list.
#[derive(Clone, Debug, Default, Serialize, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct AuditFilter {
    /// Only entries older than the one with this number.
    #[serde(default, deserialize_with = "whole")]
    before: Option<u64>,
    /// The most entries to return: 1 to 10000 (the default).
    limit: Option<usize>,
}

/// The audit log, or a part of it, the newest entry first.
#[utoipa::path(get, path = "/v1/audit", params(AuditFilter), responses(
    (status = 200, body = Audit),
    (status = 400, body = Refusal),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
))]
pub(crate) async fn list(
    State(interface): Shared,
    filter: Result<Query<AuditFilter>, QueryRejection>,
) -> Result<Json<Audit>, ApiError> {
    let Query(AuditFilter { before, limit }) = filter?;
    blocking(interface, move |interface| {
        let limit = limit.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
        let mut found = interface.array.audit_log(before, limit + 1);
        let more = found.len() > limit;
        found.truncate(limit);
        Ok(Json(Audit { entries: found.into_iter().map(AuditEntry::from).collect(), more }))
    })
    .await
}
