//! `host-groups` and `host-groups/hosts`: hosts that see the same volumes.

use std::cell::RefCell;

use array::{Error, HostGroupInfo, HostGroupName, SpaceSums, VolumesOf, VolumesSpace};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::joint_space::SUMMED_MAX;
use super::members::{MemberParams, Members, Only, RestMember};
use super::query::NAMES_MAX;
use super::space::RestJointSpace;
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, Listing, NameParams, Named, Query, Refusals,
    Refused, answer, each,
};
use crate::{Interface, Shared};

/// A host group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestHostGroup {
    /// The host group's name.
    pub name: String,
    /// How many volumes are connected to it.
    pub connection_count: usize,
    /// How many hosts are in it.
    pub host_count: usize,
    /// Whether it belongs to this array: always.
    pub is_local: bool,
    /// The stored data of the volumes that are connected to it.
    pub space: RestJointSpace,
}

/// The source of the listed host groups, with the space of their volumes.
struct Shown<'a>(RefCell<SpaceSums<'a>>);

impl<'a> Shown<'a> {
    fn of(interface: &'a Interface) -> Self {
        Self(RefCell::new(interface.array.space_sums(SUMMED_MAX)))
    }

    fn one(&self, group: HostGroupInfo) -> Result<RestHostGroup, Refused> {
        let space = match self.0.borrow_mut().of(VolumesOf::HostGroup(&group.name)) {
            // The group was deleted after it was listed, with all of its connections.
            Err(Error::NoSuchHostGroup(_)) => VolumesSpace::default(),
            space => space?,
        };
        Ok(RestHostGroup {
            name: group.name,
            connection_count: group.connection_count,
            host_count: group.hosts.len(),
            is_local: true,
            space: space.into(),
        })
    }

    fn all(&self, groups: Vec<HostGroupInfo>) -> Result<Vec<RestHostGroup>, Refused> {
        groups.into_iter().map(|group| self.one(group)).collect()
    }

    fn named(
        &self,
        names: &[String],
        interface: &Interface,
    ) -> Result<Vec<RestHostGroup>, Refused> {
        self.all(each(names, |name| Ok(interface.array.host_group(name)?))?)
    }
}

impl Listed for RestHostGroup {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["connection_count", "host_count"]
    }
}

/// Lists all host groups, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/host-groups",
    tag = "host-groups",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestHostGroup>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let shown = Shown::of(interface);
        if !names.is_empty() {
            return listing.all(&shown.named(&names, interface)?);
        }
        listing.pieces(|after, limit| shown.all(array.host_groups(after, limit)))
    })
    .await
}

/// Creates host groups without hosts.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/host-groups",
    tag = "host-groups",
    params(("names" = String, Query, description = "The names of the groups, comma-separated.")),
    responses((status = 200, body = ItemsOf<RestHostGroup>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(HostGroupPost {}): Body<HostGroupPost>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        let names = each(&names, |name| {
            HostGroupName::new(name).map_err(|error| Refused::about(name, &error))
        })?;
        let made = interface.array.create_host_groups(names, (interface.now_ms)())?;
        Items::of(Shown::of(interface).all(made)?)
    })
    .await
}

/// A host group to create: only its name can be given.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostGroupPost {}

/// The changes of a host group.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct HostGroupPatch {
    /// A new name, for one group only.
    pub name: Option<String>,
}

/// Renames a host group. Its hosts and connections do not change.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/host-groups",
    tag = "host-groups",
    params(("names" = String, Query, description = "The name of the group.")),
    request_body = HostGroupPatch,
    responses((status = 200, body = ItemsOf<RestHostGroup>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<HostGroupPatch>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let Some(new_name) = asked.name else {
            return Items::of(Shown::of(interface).named(&names, interface)?);
        };
        let [name] = &names[..] else {
            return Err(Refused::bad("names", "Only one at a time can be renamed."));
        };
        let changed = array.rename_host_group(name, HostGroupName::new(&new_name)?)?;
        Items::of(Shown::of(interface).all(vec![changed])?)
    })
    .await
}

/// Deletes host groups without hosts and connections: all of the named ones, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/host-groups",
    tag = "host-groups",
    params(("names" = String, Query, description = "The names of the groups, comma-separated.")),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        interface.array.delete_host_groups(&names)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}

/// Lists the hosts of all host groups, or of some; or the groups of some hosts.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/host-groups/hosts",
    tag = "host-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_hosts(State(interface): Shared, mut query: Query) -> Answer {
    let (members, listing) = (Members::take(&mut query)?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let (groups, hosts) = members.names()?;
        each(&hosts, |name| Ok(interface.array.host(name)?))?;
        let groups = match groups.is_empty() {
            true => interface.array.host_groups(None, array::HOST_GROUPS_MAX),
            false => each(&groups, |name| Ok(interface.array.host_group(name)?))?,
        };
        let only = Only::of(&hosts);
        let found = groups.into_iter().flat_map(|g| RestMember::all(&g.name, g.hosts, &only));
        listing.all(&found.collect::<Vec<_>>())
    })
    .await
}

/// Returns each host with each group: (group, host).
fn pairs(members: &Members) -> Result<Vec<(String, String)>, Refused> {
    let (groups, hosts) = members.names()?;
    if groups.len() * hosts.len() > NAMES_MAX {
        let text = format!("At most {NAMES_MAX} members can be changed at once.");
        return Err(Refused::bad("member_names", text));
    }
    let of_group = |group: &String| {
        let pair = |host: &String| (group.clone(), host.clone());
        hosts.iter().map(pair).collect::<Vec<_>>()
    };
    Ok(groups.iter().flat_map(of_group).collect())
}

fn change_hosts(
    interface: &Interface,
    members: &Members,
    change: impl Fn(&array::Array, &[(String, String)]) -> Result<(), array::Error>,
) -> Result<Items, Refused> {
    let pairs = pairs(members)?;
    change(&interface.array, &pairs)?;
    let member = |(group, member): (String, String)| RestMember::new(&group, member);
    Items::of(pairs.into_iter().map(member))
}

/// Adds hosts to a host group: all of the named ones, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/host-groups/hosts",
    tag = "host-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_hosts(State(interface): Shared, mut query: Query) -> Answer {
    let members = Members::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        change_hosts(interface, &members, array::Array::add_to_host_groups)
    })
    .await
}

/// Removes hosts from a host group: all of the named ones, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/host-groups/hosts",
    tag = "host-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_hosts(State(interface): Shared, mut query: Query) -> Answer {
    let members = Members::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        change_hosts(interface, &members, array::Array::remove_from_host_groups)
    })
    .await
}

/// Lists the host groups of all hosts, or of some: the same as `host-groups/hosts`.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hosts/host-groups",
    tag = "host-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_of_hosts(interface: Shared, query: Query) -> Answer {
    list_hosts(interface, query).await
}

/// Adds hosts to a host group: all of the named ones, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/hosts/host-groups",
    tag = "host-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_to_groups(interface: Shared, query: Query) -> Answer {
    add_hosts(interface, query).await
}

/// Removes hosts from a host group: all of the named ones, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/hosts/host-groups",
    tag = "host-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_from_groups(interface: Shared, query: Query) -> Answer {
    remove_hosts(interface, query).await
}
