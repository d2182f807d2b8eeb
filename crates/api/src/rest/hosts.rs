//! `hosts`.

use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use array::{
    ChapChange, ChapUser, HostInfo, HostName, InitiatorName, NewHost, Personality, SpaceSums,
    VolumesOf,
};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::joint_space::SUMMED_MAX;
use super::space::RestJointSpace;
use super::{
    Answer, Body, HIDDEN, Items, ItemsOf, ListParams, Listed, Listing, MaybeNamed, NameParams,
    Named, Query, Refusals, Refused, answer, each,
};
use crate::{Interface, Shared, sessions};

/// A host.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestHost {
    /// The host's name.
    pub name: String,
    /// How it authenticates; secrets are never shown.
    pub chap: RestChap,
    /// How many volumes are connected to it.
    pub connection_count: usize,
    /// Its group, if it is in one.
    pub host_group: MaybeNamed,
    /// Its iSCSI names.
    pub iqns: Vec<String>,
    /// Its NVMe names: none.
    pub nqns: Vec<String>,
    /// Its Fibre Channel names: none.
    pub wwns: Vec<String>,
    /// Whether it belongs to this array: always.
    pub is_local: bool,
    /// Its operating system, as it was set. It does not change how the host is served.
    #[schema(required = true)]
    pub personality: Option<String>,
    /// The arrays whose paths it prefers: not supported.
    pub preferred_arrays: Vec<Named>,
    /// On how many paths it is logged in.
    pub port_connectivity: RestConnectivity,
    /// The stored data of the volumes that are connected to it. `null` for the remaining hosts of a
    /// list once a million connections have been summed up.
    #[schema(required = true)]
    pub space: Option<RestJointSpace>,
}

/// On how many paths a host is logged in.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestConnectivity {
    /// `Redundant`: at several portals; `Single Path`: at one; `None`.
    pub details: String,
}

/// The source of the listed hosts: the portals at which hosts are logged in, and the space of their
/// volumes.
struct Shown<'a> {
    paths: HashMap<String, BTreeSet<u16>>,
    space: RefCell<SpaceSums<'a>>,
}

impl<'a> Shown<'a> {
    fn now(interface: &'a Interface) -> Self {
        let mut paths: HashMap<String, BTreeSet<u16>> = HashMap::new();
        for session in sessions::named(interface) {
            if let Some(host) = session.host {
                paths.entry(host).or_default().insert(session.portal);
            }
        }
        Self { paths, space: RefCell::new(interface.array.space_sums(SUMMED_MAX)) }
    }

    fn one(&self, host: HostInfo) -> RestHost {
        let details = match self.paths.get(&host.name).map_or(0, BTreeSet::len) {
            0 => "None",
            1 => "Single Path",
            _ => "Redundant",
        };
        // Also `None` for a host that was deleted after it was listed.
        let space = self.space.borrow_mut().of(VolumesOf::Host(&host.name)).ok();
        RestHost::new(host, details, space.map(RestJointSpace::from))
    }
}

/// How a host and the target authenticate each other.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestChap {
    /// The user that the host logs in with.
    #[schema(required = true)]
    pub host_user: Option<String>,
    /// `****` where there is one.
    #[schema(required = true)]
    pub host_password: Option<String>,
    /// The user that the target answers with.
    #[schema(required = true)]
    pub target_user: Option<String>,
    /// `****` where there is one.
    #[schema(required = true)]
    pub target_password: Option<String>,
}

impl RestHost {
    fn new(host: HostInfo, details: &str, space: Option<RestJointSpace>) -> Self {
        let hidden = |user: &Option<String>| user.as_ref().map(|_| HIDDEN.to_owned());
        Self {
            name: host.name,
            chap: RestChap {
                host_password: hidden(&host.chap_user),
                host_user: host.chap_user,
                target_password: hidden(&host.chap_target_user),
                target_user: host.chap_target_user,
            },
            connection_count: host.connection_count,
            host_group: MaybeNamed { name: host.host_group },
            iqns: host.initiators,
            nqns: Vec::new(),
            wwns: Vec::new(),
            is_local: true,
            personality: host.personality.map(|personality| personality.to_string()),
            preferred_arrays: Vec::new(),
            port_connectivity: RestConnectivity { details: details.to_owned() },
            space,
        }
    }
}

impl Listed for RestHost {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["connection_count"]
    }
}

/// Lists all hosts, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hosts",
    tag = "hosts",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHost>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let (array, shown) = (&interface.array, Shown::now(interface));
        let show = |host| shown.one(host);
        if !names.is_empty() {
            return listing.all(&each(&names, |name| Ok(show(array.host(name)?)))?);
        }
        if let Some(names) = listing.names() {
            let found = names.into_iter().filter_map(|name| array.host(name).ok());
            return listing.among(&found.map(show).collect::<Vec<_>>());
        }
        listing.pieces(|after, limit| Ok(array.hosts(after, limit).into_iter().map(show).collect()))
    })
    .await
}

/// Users and secrets, as they are received. `Debug` does not show them.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChapPost {
    /// The user that the host logs in with; empty for none.
    pub host_user: Option<String>,
    /// Its secret: 12 to 255 printable ASCII characters; empty for none.
    pub host_password: Option<String>,
    /// The user that the target answers with.
    pub target_user: Option<String>,
    /// Its secret.
    pub target_password: Option<String>,
}

impl std::fmt::Debug for ChapPost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChapPost(…)")
    }
}

/// A host to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostPost {
    /// Its iSCSI names, at most 64.
    #[serde(default)]
    pub iqns: Vec<String>,
    /// Its NVMe names: must be empty.
    #[serde(default)]
    pub nqns: Vec<String>,
    /// Its Fibre Channel names: must be empty.
    #[serde(default)]
    pub wwns: Vec<String>,
    /// How it authenticates.
    pub chap: Option<ChapPost>,
    /// Its operating system: `aix`, `esxi`, `hitachi-vsp`, `hpux`, `oracle-vm-server`, `solaris` or
    /// `vms`; empty for none. It is only kept and shown.
    pub personality: Option<String>,
}

/// Creates hosts.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/hosts",
    tag = "hosts",
    params(("names" = String, Query, description = "The names of the hosts, comma-separated.")),
    request_body = HostPost,
    responses((status = 200, body = ItemsOf<RestHost>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<HostPost>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    refuse_fabrics(&[&asked.nqns, &asked.wwns])?;
    answer(interface, move |interface| {
        let initiators = initiators(&asked.iqns)?;
        let chap = asked.chap.map(chap).transpose()?.unwrap_or_default().of_new_host()?;
        let personality = asked.personality.map(|text| personality(&text)).transpose()?.flatten();
        let created_ms = (interface.now_ms)();
        let new = each(&names, |name| {
            let host = HostName::new(name).map_err(|error| Refused::about(name, &error))?;
            let (initiators, chap) = (initiators.clone(), chap.clone());
            Ok(NewHost { name: host, initiators, chap, personality, created_ms })
        })?;
        let (made, shown) = (interface.array.create_hosts(new)?, Shown::now(interface));
        Items::of(made.into_iter().map(|host| shown.one(host)))
    })
    .await
}

fn refuse_fabrics(names: &[&Vec<String>]) -> Result<(), Refused> {
    match names.iter().all(|names| names.is_empty()) {
        true => Ok(()),
        false => Err(Refused::unsupported("", "Fibre Channel and NVMe")),
    }
}

fn initiators(names: &[String]) -> Result<Vec<InitiatorName>, Refused> {
    each(names, |name| InitiatorName::new(name).map_err(|error| Refused::about(name, &error)))
}

/// Parses the operating system of a host; `None` if it is not set.
fn personality(text: &str) -> Result<Option<Personality>, Refused> {
    Ok((!text.is_empty()).then(|| Personality::new(text)).transpose()?)
}

/// Parses one direction of CHAP: `None` if it is unchanged, `Some(None)` if it is removed.
fn direction(
    user: Option<String>,
    secret: Option<String>,
) -> Result<Option<Option<ChapUser>>, Refused> {
    match (user.as_deref(), secret.as_deref()) {
        (None, None) => Ok(None),
        (Some("") | None, Some("") | None) => Ok(Some(None)),
        (Some(user), Some(secret)) if !user.is_empty() && !secret.is_empty() => {
            Ok(Some(Some(ChapUser::new(user, secret)?)))
        }
        _ => Err(Refused::bad("chap", "A user and its password are set together.")),
    }
}

/// Returns the change to make; omitted fields are unchanged.
fn chap(asked: ChapPost) -> Result<ChapChange, Refused> {
    Ok(ChapChange {
        initiator: direction(asked.host_user, asked.host_password)?,
        target: direction(asked.target_user, asked.target_password)?,
    })
}

/// The changes of hosts.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostPatch {
    /// A new name, for one host only.
    pub name: Option<String>,
    /// All of its iSCSI names, replacing the old ones.
    pub iqns: Option<Vec<String>>,
    /// iSCSI names to add.
    #[serde(default)]
    pub add_iqns: Vec<String>,
    /// iSCSI names to remove.
    #[serde(default)]
    pub remove_iqns: Vec<String>,
    /// Its NVMe names: must be empty.
    #[serde(default)]
    pub nqns: Vec<String>,
    /// Its Fibre Channel names: must be empty.
    #[serde(default)]
    pub wwns: Vec<String>,
    /// How it authenticates from now on. An omitted direction does not change; an empty user and
    /// password remove it, and removing the host's removes the target's as well.
    pub chap: Option<ChapPost>,
    /// Its operating system; empty for none.
    pub personality: Option<String>,
}

/// Changes hosts: all of the named ones, or none. Their connections do not change.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/hosts",
    tag = "hosts",
    params(("names" = String, Query, description = "The names of the hosts, comma-separated.")),
    request_body = HostPatch,
    responses((status = 200, body = ItemsOf<RestHost>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<HostPatch>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    refuse_fabrics(&[&asked.nqns, &asked.wwns])?;
    if asked.iqns.is_some() && !(asked.add_iqns.is_empty() && asked.remove_iqns.is_empty()) {
        let text = "Give either all `iqns`, or those to add and to remove.";
        return Err(Refused::bad("iqns", text));
    }
    answer(interface, move |interface| {
        let change = array::HostChange {
            name: asked.name.map(|name| HostName::new(&name)).transpose()?,
            initiators: asked.iqns.map(|names| initiators(&names)).transpose()?,
            add_initiators: initiators(&asked.add_iqns)?,
            remove_initiators: initiators(&asked.remove_iqns)?,
            chap: asked.chap.map(chap).transpose()?.unwrap_or_default(),
            personality: asked.personality.map(|text| personality(&text)).transpose()?,
        };
        let changed = interface.array.change_hosts(&names, &change)?;
        let shown = Shown::now(interface);
        Items::of(changed.into_iter().map(|host| shown.one(host)))
    })
    .await
}

/// Deletes hosts without connections: all of the named ones, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/hosts",
    tag = "hosts",
    params(("names" = String, Query, description = "The names of the hosts, comma-separated.")),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        interface.array.delete_hosts(&names)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}
