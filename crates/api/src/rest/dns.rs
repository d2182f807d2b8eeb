//! `dns`: how the array resolves names. There is one configuration, of management, once it is set.

use array::{Dns, DnsChange, SettingsChange};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, MaybeNamed, NameParams, Query, Refusals,
    Refused, answer,
};
use crate::settings::name_servers;
use crate::{Interface, Shared};

/// The name of the only configuration, and its purpose.
const NAME: &str = "management";

/// How names are looked up.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestDns {
    /// `management`.
    pub name: String,
    /// The domain of names without a dot; empty for none.
    pub domain: String,
    /// The name servers, each `ADDRESS` or `ADDRESS:PORT`.
    pub nameservers: Vec<String>,
    /// `management`.
    pub services: Vec<String>,
    /// The interface from which they are queried: none in particular.
    pub source: MaybeNamed,
}

listed_by_name!(RestDns);

impl From<Dns> for RestDns {
    fn from(dns: Dns) -> Self {
        Self {
            name: NAME.into(),
            domain: dns.domain().to_owned(),
            nameservers: dns.servers().iter().map(ToString::to_string).collect(),
            services: vec![NAME.into()],
            source: MaybeNamed::default(),
        }
    }
}

/// Returns the configuration, if it is set.
fn all(dns: Dns) -> Vec<RestDns> {
    if dns == Dns::default() { Vec::new() } else { vec![dns.into()] }
}

/// Lists the DNS settings: one, or none if no name server is set; then the system
/// resolves names.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/dns",
    tag = "arrays",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestDns>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| all(interface.array.dns())).await
}

/// How names are looked up. Omitted fields do not change; empty ones are cleared.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DnsPatch {
    /// `management`.
    pub name: Option<String>,
    /// The domain of names without a dot.
    pub domain: Option<String>,
    /// Up to 3 name servers, each `ADDRESS` or `ADDRESS:PORT`, in the order in which they are
    /// queried.
    pub nameservers: Option<Vec<String>>,
    /// Only `management`.
    pub services: Option<Vec<String>>,
    /// The interface from which they are queried: can't be set.
    pub source: Option<DnsSource>,
}

/// An interface.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DnsSource {
    /// Must be empty.
    pub name: Option<String>,
}

impl DnsPatch {
    fn change(self) -> Result<SettingsChange, Refused> {
        if self.domain.is_none() && self.nameservers.is_none() && self.services.is_none() {
            return Err(Refused::bad("", "Give a domain or nameservers."));
        }
        if self.services.is_some_and(|all| all.iter().any(|service| service != NAME)) {
            return Err(Refused::unsupported("services", "DNS settings for file services"));
        }
        if self.name.is_some_and(|name| name != NAME) {
            return Err(Refused::unsupported("name", "Another name for DNS settings"));
        }
        if self.source.and_then(|source| source.name).is_some_and(|name| !name.is_empty()) {
            return Err(Refused::unsupported("source", "An interface for DNS"));
        }
        let servers = self.nameservers.as_deref().map(name_servers).transpose()?;
        let dns = DnsChange { servers, domain: self.domain };
        Ok(SettingsChange { dns, ..SettingsChange::default() })
    }
}

/// Makes a change, and returns the result.
fn set(interface: &Interface, change: SettingsChange) -> Result<Items, Refused> {
    let settings = interface.array.change_settings(change)?;
    Items::of(all(settings.dns))
}

/// Sets how names are looked up, while nothing is set. This takes effect at once.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/dns",
    tag = "arrays",
    params(NameParams),
    request_body = DnsPatch,
    responses((status = 200, body = ItemsOf<RestDns>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<DnsPatch>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    let change = asked.change()?;
    if let Some(other) = names.iter().find(|name| *name != NAME) {
        return Err(Refused::unsupported(other, "DNS settings other than management"));
    }
    answer(interface, move |interface| {
        if interface.array.dns() != Dns::default() {
            return Err(Refused::bad(NAME, "DNS configuration already exists."));
        }
        set(interface, change)
    })
    .await
}

/// Changes how names are looked up. This takes effect at once.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/dns",
    tag = "arrays",
    params(NameParams),
    request_body = DnsPatch,
    responses((status = 200, body = ItemsOf<RestDns>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<DnsPatch>,
) -> Answer {
    let names = query.list("names")?;
    query.end()?;
    Refused::unless_only(NAME, &names)?;
    let change = asked.change()?;
    answer(interface, move |interface| set(interface, change)).await
}

/// Clears the settings: then the system resolves names.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/dns",
    tag = "arrays",
    params(NameParams),
    responses((status = 200, description = "Nothing is set."), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    Refused::unless_only(NAME, &names)?;
    answer(interface, move |interface| {
        let dns = DnsChange { servers: Some(Vec::new()), domain: Some(String::new()) };
        set(interface, SettingsChange { dns, ..SettingsChange::default() })?;
        Items::of::<RestDns>([])
    })
    .await
}
