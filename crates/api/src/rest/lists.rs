//! Lists of unsupported objects: always empty. Creating such an object is refused.
//!
//! Clients that collect all facts about an array request them, and accept empty lists.

use std::sync::Arc;

use axum::extract::State;
use axum::routing::{MethodRouter, get};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterIn, Paths};
use utoipa::openapi::{ContentBuilder, PathItem, Ref, RefOr, ResponseBuilder};
use utoipa_axum::router::{OpenApiRouter, UtoipaMethodRouter};

use super::{Answer, Listed, Listing, Query, Refused, answer};
use crate::{Interface, Shared};

/// Unsupported objects: path, name, and whether clients try to create or to change one.
const NONE: &[(&str, &str, bool)] = &[
    ("active-directory", "Active Directory accounts", true),
    ("admins/cache", "Users of a directory service", false),
    ("api-clients", "API clients", true),
    ("apps", "Apps", false),
    ("apps/nodes", "Apps", false),
    ("arrays/cloud-capacity", "Capacity of a cloud", false),
    ("array-connections", "Replication to other arrays", true),
    ("array-connections/path", "Replication to other arrays", false),
    ("directories", "Directories", true),
    ("directories/performance", "Directories", false),
    ("directories/policies", "Policies", false),
    ("directories/policies/autodir", "Policies", true),
    ("directories/policies/snapshot", "Policies", true),
    ("directories/space", "Directories", false),
    ("directory-exports", "Directory exports", true),
    ("directory-quotas", "Directory quotas", true),
    ("directory-snapshots", "Directory snapshots", true),
    ("file-systems", "File systems", true),
    ("fleets", "Fleets of arrays", true),
    ("fleets/members", "Fleets of arrays", true),
    ("hosts/performance/balance", "Counters of single paths", false),
    ("hosts/tags", "Tags of hosts", false),
    ("host-groups/tags", "Tags of host groups", false),
    ("kmip", "Key management", true),
    ("maintenance-windows", "Maintenance windows", true),
    ("network-interfaces/neighbors", "Neighbours on the network", false),
    ("network-interfaces/port-details", "Transceivers of ports", false),
    ("offloads", "Offload targets", true),
    ("pods/performance/replication", "Activity of pods", false),
    ("pods/performance/replication/by-array", "Activity of pods", false),
    ("pods/tags", "Tags of pods", false),
    ("pod-replica-links", "Replication", true),
    ("pod-replica-links/lag", "Replication", false),
    ("pod-replica-links/performance/replication", "Replication", false),
    ("policies", "Policies", false),
    ("policies/autodir", "Policies", true),
    ("policies/nfs", "Policies", true),
    ("policies/nfs/client-rules", "Policies", true),
    ("policies/password", "Policies", true),
    ("policies/quota", "Policies", true),
    ("policies/quota/members", "Policies", true),
    ("policies/quota/rules", "Policies", true),
    ("policies/smb", "Policies", true),
    ("policies/smb/client-rules", "Policies", true),
    ("policies/snapshot", "Policies", true),
    ("policies/snapshot/rules", "Policies", true),
    ("presets/workload", "Workloads", true),
    ("protection-groups/performance/replication", "Replication", false),
    ("protection-groups/performance/replication/by-array", "Replication", false),
    ("protection-groups/tags", "Tags of protection groups", false),
    ("protection-groups/targets", "Replication", true),
    ("protection-group-snapshots/transfer", "Replication", false),
    ("realms", "Realms", true),
    ("realms/performance", "Realms", false),
    ("realms/space", "Realms", false),
    ("realms/tags", "Realms", false),
    ("remote-pods", "Replication", false),
    ("remote-protection-groups", "Replication", false),
    ("remote-protection-group-snapshots", "Replication", false),
    ("remote-volume-snapshots", "Replication", false),
    ("remote-volume-snapshots/transfer", "Replication", false),
    ("resource-accesses", "Access of other arrays", true),
    ("resource-accesses/status", "Access of other arrays", false),
    ("software", "Software to install", true),
    ("software-patches", "Software to install", false),
    ("software-versions", "Software to install", false),
    ("sso/saml2/idps", "Single sign-on", true),
    ("subnets", "Subnets", true),
    ("subscription-assets", "Subscription assets", false),
    ("virtual-machines", "Virtual machines", false),
    ("virtual-machine-snapshots", "Virtual machines", false),
    ("volume-groups/tags", "Tags of volume groups", false),
    ("volume-snapshots/transfer", "Replication", false),
    ("workloads", "Workloads", true),
];

/// Requests that are refused even if they only read: path, methods, and name. Clients would use the
/// first agreement of an empty list, and would report for an empty list of tests that all passed.
const REFUSED: &[(&str, &[HttpMethod], &str)] = &[
    ("arrays/eula", &[HttpMethod::Get, HttpMethod::Patch], "Licence agreements to sign"),
    ("resource-accesses/batch", &[HttpMethod::Post], "Access of other arrays"),
];

/// Lists of exactly one object, which shows that the feature is off: path, name, and the
/// object. Clients try to set it up.
fn single() -> [(&'static str, &'static str, Value); 6] {
    [
        (
            "admins/settings",
            "Settings of all users",
            json!({"min_password_length": 8, "single_sign_on_enabled": false}),
        ),
        // No other array can connect, and so there is no key.
        (
            "array-connections/connection-key",
            "Replication to other arrays",
            json!({"connection_key": ""}),
        ),
        ("smi-s", "SMI-S", json!({"slp_enabled": false, "wbem_https_enabled": false})),
        // Clients use the first item of this list without a check.
        (
            "syslog-servers/settings",
            "Settings of syslog servers",
            json!({"logging_severity": "info", "tls_audit_enabled": false}),
        ),
        ("subscriptions", "Subscriptions", json!({"id": "none", "service": "none"})),
        (
            "support",
            "Remote support",
            json!({
                "phonehome_enabled": false,
                "proxy": "",
                "remote_assist_active": false,
                "remote_assist_duration": 0,
                "remote_assist_expires": 0,
                "remote_assist_opened": 0,
                "remote_assist_paths": [],
                "remote_assist_status": "disconnected",
            }),
        ),
    ]
}

/// An item of such a list.
#[derive(Clone, Serialize)]
#[serde(transparent)]
struct Plain(Value);

impl Listed for Plain {
    fn key(&self) -> String {
        String::new()
    }
}

/// Parameters that filter such lists, which are empty anyway.
const NARROWING: [&str; 12] = [
    "destroyed",
    "end_time",
    "expose_api_token",
    "flagged",
    "on",
    "protocol",
    "protocol_group",
    "resolution",
    "resource_destroyed",
    "start_time",
    "type",
    "vm_type",
];

async fn list(interface: Arc<Interface>, mut query: Query, items: Vec<Plain>) -> Answer {
    let mut named = query.list("names")?;
    named.extend(query.list("ids")?);
    for parameter in NARROWING {
        query.text(parameter);
    }
    for kind in [
        "array",
        "file_system",
        "group",
        "local_pod",
        "member",
        "policy",
        "remote",
        "remote_pod",
        "resource",
        "source",
    ] {
        query.list(&format!("{kind}_names"))?;
        query.list(&format!("{kind}_ids"))?;
    }
    let listing = Listing::take(&mut query)?;
    query.end()?;
    if let Some(name) = named.first() {
        return Err(Refused::missing(name));
    }
    answer(interface, move |_| listing.all(&items)).await
}

/// Returns the routes of these lists, with their descriptions.
pub(super) fn routes() -> OpenApiRouter<Arc<Interface>> {
    let none = NONE.iter().map(|(path, what, is_made)| {
        let methods =
            get(|State(interface): Shared, query: Query| list(interface, query, Vec::new()));
        described(path, format!("{what}: there are none."), is_made.then_some(what), methods)
    });
    let single = single().into_iter().map(|(path, what, item)| {
        let methods = get(move |State(interface): Shared, query: Query| {
            list(interface, query, vec![Plain(item)])
        });
        described(path, format!("{what}: nothing is set up."), Some(what), methods)
    });
    let refused = REFUSED.iter().map(|(path, methods, what)| refused(path, methods, what));
    none.chain(single).chain(refused).fold(OpenApiRouter::new(), OpenApiRouter::routes)
}

/// Returns a path that refuses all methods, with its description.
fn refused(
    path: &str,
    methods: &[HttpMethod],
    what: &'static str,
) -> UtoipaMethodRouter<Arc<Interface>> {
    let refuse = move || async move { Err::<(), _>(Refused::unsupported("", what)) };
    let (mut item, mut router) = (PathItem::default(), MethodRouter::new());
    for method in methods {
        let described =
            Some(operation(format!("{what}: refused, as it is not supported.")).build());
        match method {
            HttpMethod::Get => (item.get, router) = (described, router.get(refuse)),
            HttpMethod::Patch => (item.patch, router) = (described, router.patch(refuse)),
            _ => (item.post, router) = (described, router.post(refuse)),
        }
    }
    let mut paths = Paths::new();
    paths.paths.insert(format!("/api/2.{{minor}}/{path}"), item);
    (Vec::new(), paths, router)
}

/// Returns an operation with the common refusals.
fn operation(text: String) -> OperationBuilder {
    let refusal = || {
        let schema = RefOr::Ref(Ref::from_schema_name("RestRefusal"));
        let content = ContentBuilder::new().schema(Some(schema)).build();
        ResponseBuilder::new()
            .description("The refusal.")
            .content("application/json", content)
            .build()
    };
    let operation = OperationBuilder::new().tag("lists").summary(Some(text));
    ["400", "401", "403", "404", "413", "429", "500"]
        .into_iter()
        .fold(operation, |o, code| o.response(code, refusal()))
}

/// Returns a list with its description. If clients try to create or to change such objects
/// (`refused`), the response says that this is not supported.
fn described(
    path: &str,
    text: String,
    refused: Option<&'static str>,
    mut methods: MethodRouter<Arc<Interface>>,
) -> UtoipaMethodRouter<Arc<Interface>> {
    let path = format!("/api/2.{{minor}}/{path}");
    let schema = RefOr::Ref(Ref::from_schema_name("Items"));
    let content = ContentBuilder::new().schema(Some(schema)).build();
    let page = ResponseBuilder::new()
        .description("The list.")
        .content("application/json", content)
        .build();
    let listing =
        <super::ListParams as utoipa::IntoParams>::into_params(|| Some(ParameterIn::Query));
    let listed = operation(text).response("200", page).parameters(Some(listing)).build();
    let mut paths = Paths::new();
    paths.paths.insert(path.clone(), PathItem::new(HttpMethod::Get, listed));
    if let Some((what, item)) = refused.zip(paths.paths.get_mut(&path)) {
        let refuse = move || async move { Err::<(), _>(Refused::unsupported("", what)) };
        methods = methods.post(refuse).patch(refuse).delete(refuse);
        let refused = operation(format!("{what}: refused, as it is not supported.")).build();
        item.post = Some(refused.clone());
        item.patch = Some(refused.clone());
        item.delete = Some(refused);
    }
    (Vec::new(), paths, methods)
}
