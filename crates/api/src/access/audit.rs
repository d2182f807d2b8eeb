//! `/v1/audit`: the audit log.

use array::audit::{AUDIT_ENTRIES_MAX, AUDIT_TEXT_BYTES_MAX};
use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use crate::page::whole;
use crate::{ApiError, PAGE_MAX, Refusal, Shared, blocking};

/// A requested change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// From 1; never used twice.
    pub number: u64,
    /// The time, in milliseconds since 1970.
    pub time_ms: u64,
    /// The user.
    pub user: String,
    /// The user's role.
    pub role: String,
    /// The client's address.
    pub origin: String,
    /// The method of the request.
    pub method: String,
    /// The path of the request.
    pub path: String,
    /// The names of objects in the request, in addition to those in its path.
    pub names: String,
    /// `done`, or the code of the refusal.
    pub outcome: String,
}

impl From<&array::AuditEntry> for AuditEntry {
    fn from(entry: &array::AuditEntry) -> Self {
        let deed = entry.deed.clone();
        Self {
            number: entry.number,
            time_ms: deed.time_ms,
            user: deed.user,
            role: deed.role.name().into(),
            origin: deed.origin,
            method: deed.method,
            path: deed.path,
            names: deed.names,
            outcome: entry.outcome.clone(),
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
    /// The number of entries that match the filter, regardless of `before` and `limit`.
    #[serde(default)]
    #[schema(required = true)]
    pub total: u64,
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
    /// Only requests of this user.
    user: Option<String>,
    /// Only requests with this method: `POST`, `PUT`, `PATCH` or `DELETE`, in any case.
    action: Option<String>,
    /// Only entries with this text, of up to 256 bytes and in any case, in their path, names,
    /// origin or outcome.
    text: Option<String>,
}

/// The methods of requests for changes.
const ACTIONS: [&str; 4] = ["POST", "PUT", "PATCH", "DELETE"];

impl AuditFilter {
    /// Refuses parameters that no entry can match.
    fn check(&self) -> Result<(), ApiError> {
        let is_action = |name: &str| ACTIONS.iter().any(|action| action.eq_ignore_ascii_case(name));
        if self.action.as_deref().is_some_and(|name| !is_action(name)) {
            let text = "An action is `POST`, `PUT`, `PATCH` or `DELETE`.";
            return Err(ApiError::new(StatusCode::BAD_REQUEST, "invalid_action", text));
        }
        let texts = [self.user.as_deref(), self.text.as_deref()];
        if texts.into_iter().flatten().any(|text| text.len() > AUDIT_TEXT_BYTES_MAX) {
            let text = format!("A filter has up to {AUDIT_TEXT_BYTES_MAX} bytes.");
            return Err(ApiError::new(StatusCode::BAD_REQUEST, "filter_too_long", text));
        }
        Ok(())
    }

    /// Returns a filter for entries by user, action and text, which ignores `before` and `limit`.
    fn wanted(&self) -> impl Fn(&array::AuditEntry) -> bool {
        let text = self.text.as_deref().unwrap_or_default().to_lowercase();
        move |array::AuditEntry { deed, outcome, .. }| {
            self.user.as_ref().is_none_or(|user| *user == deed.user)
                && self.action.as_ref().is_none_or(|it| it.eq_ignore_ascii_case(&deed.method))
                && [&deed.path, &deed.names, &deed.origin, outcome]
                    .iter()
                    .any(|part| part.to_lowercase().contains(&text))
        }
    }
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
    let Query(filter) = filter?;
    filter.check()?;
    blocking(interface, move |interface| {
        let limit = filter.limit.unwrap_or(PAGE_MAX).clamp(1, PAGE_MAX);
        let before = filter.before.unwrap_or(u64::MAX);
        // All kept entries, which are few and not copied: only this way can those that match be
        // counted.
        let kept = interface.array.audit_log(None, AUDIT_ENTRIES_MAX);
        let is_wanted = filter.wanted();
        let wanted: Vec<_> = kept.into_iter().filter(|entry| is_wanted(entry)).collect();
        let total = wanted.len() as u64;
        let mut found: Vec<_> =
            wanted.into_iter().filter(|entry| entry.number < before).take(limit + 1).collect();
        let more = found.len() > limit;
        found.truncate(limit);
        Ok(Json(Audit {
            entries: found.iter().map(|entry| AuditEntry::from(&**entry)).collect(),
            more,
            total,
        }))
    })
    .await
}
