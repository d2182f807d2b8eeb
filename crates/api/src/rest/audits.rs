//! `audits`: the audit log, in the format of REST 2.x.

use array::AuditEntry;
use array::audit::{AUDIT_ENTRIES_MAX, DONE};
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    Answer, ItemsOf, ListParams, Listed, Listing, NameParams, Named, Query, Refusals, Refused,
    answer, each,
};
use crate::Shared;

/// A requested change.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestAudit {
    /// Its number, from 1, with leading zeros.
    pub name: String,
    /// The same.
    pub id: String,
    /// The resource.
    pub command: String,
    /// The method of the request.
    pub subcommand: String,
    /// The names of objects in the request, and the code if it was refused.
    pub arguments: String,
    /// The array.
    pub origin: Named,
    /// The time, in milliseconds since 1970.
    pub time: u64,
    /// The user.
    pub user: String,
    /// Always `REST`.
    pub user_interface: String,
}

impl RestAudit {
    fn of(entry: &AuditEntry, array: &str) -> Self {
        let name = format!("{:012}", entry.number);
        let deed = &entry.deed;
        let (resource, rest) = resource(&deed.path);
        let refused = match entry.outcome.as_str() {
            DONE => String::new(),
            code => format!("(refused: {code})"),
        };
        let arguments = [rest, &deed.names, &refused].into_iter().filter(|part| !part.is_empty());
        Self {
            id: name.clone(),
            name,
            command: resource.to_owned(),
            arguments: arguments.collect::<Vec<_>>().join(" "),
            subcommand: deed.method.clone(),
            origin: Named { name: array.to_owned() },
            time: deed.time_ms,
            user: deed.user.clone(),
            user_interface: "REST".into(),
        }
    }
}

/// Splits a path after the version into the resource and the rest.
fn resource(path: &str) -> (&str, &str) {
    let behind = path.strip_prefix("/api/2.").or(path.strip_prefix('/'));
    let behind = behind.and_then(|rest| rest.split_once('/')).map_or("", |(_, rest)| rest);
    behind.split_once('/').unwrap_or((behind, ""))
}

impl Listed for RestAudit {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// Lists the audit log, the oldest entry first, or some of its entries.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/audits",
    tag = "audits",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestAudit>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let array = interface.array.name();
        let mut log = interface.array.audit_log(None, AUDIT_ENTRIES_MAX);
        log.reverse();
        let log: Vec<_> = log.iter().map(|entry| RestAudit::of(entry, &array)).collect();
        if names.is_empty() {
            return listing.all(&log);
        }
        let found = each(&names, |name| {
            let found = log.iter().find(|entry| entry.name == name).cloned();
            found.ok_or_else(|| Refused::bad(name, format!("Audit entry does not exist: {name}.")))
        });
        listing.all(&found?)
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_identified_by_its_resource() {
        assert_eq!(resource("/v1/volumes/db1"), ("volumes", "db1"));
        assert_eq!(resource("/api/2.26/volumes"), ("volumes", ""));
        assert_eq!(resource("/api/2.4/volumes/tags/batch"), ("volumes", "tags/batch"));
        assert_eq!(resource("/"), ("", ""));
        assert_eq!(resource(""), ("", ""));
    }
}
