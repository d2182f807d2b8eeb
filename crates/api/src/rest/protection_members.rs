//! `protection-groups/volumes`, `…/hosts`, `…/host-groups`: the members of protection groups.

use std::sync::Arc;

use array::{GroupChange, GroupInfo};
use axum::extract::State;

use super::members::{MemberParams, Members, Only, RestMember};
use super::protection_groups::name_of;
use super::query::NAMES_MAX;
use super::{
    Answer, Items, ItemsOf, ListParams, Listing, Query, Refusals, Refused, answer, each, volumes,
};
use crate::{Interface, Shared};

/// The kind of a member.
#[derive(Clone, Copy)]
enum Of {
    Volumes,
    Hosts,
    HostGroups,
}

impl Of {
    /// Returns the names of groups and of members.
    fn names(
        self,
        interface: &Interface,
        members: &Members,
    ) -> Result<(Vec<String>, Vec<String>), Refused> {
        let groups = members.groups.names(|id| name_of(interface, id))?;
        let members = members.members.names(|id| match self {
            Self::Volumes => volumes::name_of(interface, id),
            Self::Hosts | Self::HostGroups => None,
        })?;
        Ok((groups, members))
    }

    /// Refuses a name that does not exist, instead of returning an empty list.
    fn check(self, interface: &Interface, names: &[String]) -> Result<(), Refused> {
        let array = &interface.array;
        let found = each(names, |name| {
            match self {
                Self::Volumes => array.volume(name).map(drop),
                Self::Hosts => array.host(name).map(drop),
                Self::HostGroups => array.host_group(name).map(drop),
            }
            .map_err(Refused::from)
        });
        found.map(drop)
    }

    fn of(self, group: GroupInfo, only: &Only) -> Vec<RestMember> {
        let members = match self {
            Self::Volumes => group.volumes,
            Self::Hosts => group.hosts,
            Self::HostGroups => group.host_groups,
        };
        RestMember::all(&group.name, members, only)
    }

    fn adding(self, names: Vec<String>) -> GroupChange {
        let change = GroupChange::default();
        match self {
            Self::Volumes => GroupChange { add: names, ..change },
            Self::Hosts => GroupChange { add_hosts: names, ..change },
            Self::HostGroups => GroupChange { add_host_groups: names, ..change },
        }
    }

    fn removing(self, names: Vec<String>) -> GroupChange {
        let change = GroupChange::default();
        match self {
            Self::Volumes => GroupChange { remove: names, ..change },
            Self::Hosts => GroupChange { remove_hosts: names, ..change },
            Self::HostGroups => GroupChange { remove_host_groups: names, ..change },
        }
    }
}

async fn list_of(interface: Arc<Interface>, mut query: Query, of: Of) -> Answer {
    let (members, listing) = (Members::take(&mut query)?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let (groups, names) = of.names(interface, &members)?;
        of.check(interface, &names)?;
        let groups = match groups.is_empty() {
            true => array.groups(None, None, array::GROUPS_MAX),
            false => each(&groups, |name| Ok(array.group(name)?))?,
        };
        let only = Only::of(&names);
        let found = groups.into_iter().flat_map(|group| of.of(group, &only));
        listing.all(&found.collect::<Vec<_>>())
    })
    .await
}

/// Refuses more pairs than fit one commit.
fn check_pairs(groups: &[String], members: &[String]) -> Result<(), Refused> {
    match groups.len() * members.len() > NAMES_MAX {
        true => {
            let text = format!("At most {NAMES_MAX} members can be changed at once.");
            Err(Refused::bad("member_names", text))
        }
        false => Ok(()),
    }
}

async fn add_to(interface: Arc<Interface>, mut query: Query, of: Of) -> Answer {
    let members = Members::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (groups, names) = of.names(interface, &members)?;
        check_pairs(&groups, &names)?;
        let only = Only::of(&names);
        let changed = interface.array.change_groups(&groups, &of.adding(names))?;
        Items::of(changed.into_iter().flat_map(|group| of.of(group, &only)))
    })
    .await
}

async fn remove_from(interface: Arc<Interface>, mut query: Query, of: Of) -> Answer {
    let members = Members::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (groups, names) = of.names(interface, &members)?;
        of.check(interface, &names)?;
        check_pairs(&groups, &names)?;
        interface.array.change_groups(&groups, &of.removing(names.clone()))?;
        let of_group = |group: &String| RestMember::all(group, names.clone(), &Only::default());
        Items::of(groups.iter().flat_map(of_group))
    })
    .await
}

/// Lists the volumes of all protection groups, or of some; or the groups of some volumes.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/protection-groups/volumes",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_volumes(State(interface): Shared, query: Query) -> Answer {
    list_of(interface, query, Of::Volumes).await
}

/// Adds volumes to protection groups: each to each, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/protection-groups/volumes",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_volumes(State(interface): Shared, query: Query) -> Answer {
    add_to(interface, query, Of::Volumes).await
}

/// Removes volumes from protection groups: each from each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/protection-groups/volumes",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_volumes(State(interface): Shared, query: Query) -> Answer {
    remove_from(interface, query, Of::Volumes).await
}

/// Lists the hosts of all protection groups, or of some; or the groups of some hosts.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/protection-groups/hosts",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_hosts(State(interface): Shared, query: Query) -> Answer {
    list_of(interface, query, Of::Hosts).await
}

/// Adds hosts to protection groups: each to each, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/protection-groups/hosts",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_hosts(State(interface): Shared, query: Query) -> Answer {
    add_to(interface, query, Of::Hosts).await
}

/// Removes hosts from protection groups: each from each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/protection-groups/hosts",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_hosts(State(interface): Shared, query: Query) -> Answer {
    remove_from(interface, query, Of::Hosts).await
}

/// Lists the host groups of all protection groups, or of some; or the groups of some host groups.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/protection-groups/host-groups",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_host_groups(State(interface): Shared, query: Query) -> Answer {
    list_of(interface, query, Of::HostGroups).await
}

/// Adds host groups to protection groups: each to each, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/protection-groups/host-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_host_groups(State(interface): Shared, query: Query) -> Answer {
    add_to(interface, query, Of::HostGroups).await
}

/// Removes host groups from protection groups: each from each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/protection-groups/host-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_host_groups(State(interface): Shared, query: Query) -> Answer {
    remove_from(interface, query, Of::HostGroups).await
}
