//! `protection-groups` and `protection-groups/volumes`: volumes that are snapshotted together.

use array::{GroupChange, GroupInfo, GroupName};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::{
    Answer, DestroyedParam, Items, ItemsOf, ListParams, Listed, Listing, Named, Query, Refusals,
    Refused, Selection, SelectionParams, answer, each, volumes,
};
use crate::{Interface, Shared};

/// A protection group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestProtectionGroup {
    /// Its id, for ever.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether it is destroyed: never, as it ends at once.
    pub destroyed: bool,
    /// How many hosts are members: none.
    pub host_count: usize,
    /// How many host groups are members: none.
    pub host_group_count: usize,
    /// How many volumes are members.
    pub volume_count: usize,
    /// To how many arrays it is replicated: none.
    pub target_count: usize,
    /// Whether it is of this array: always.
    pub is_local: bool,
    /// `unlocked`: its snapshots can be eradicated.
    pub retention_lock: String,
    /// When snapshots are made of it.
    pub snapshot_schedule: RestSchedule,
    /// When it is replicated: never.
    pub replication_schedule: RestSchedule,
}

/// When something is done by itself.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RestSchedule {
    /// Whether it is.
    pub enabled: bool,
}

impl RestProtectionGroup {
    fn new(ids: Ids, group: &GroupInfo) -> Self {
        Self {
            id: ids.id(Kind::Group, group.id),
            name: group.name.clone(),
            destroyed: false,
            host_count: 0,
            host_group_count: 0,
            volume_count: group.volumes.len(),
            target_count: 0,
            is_local: true,
            retention_lock: "unlocked".into(),
            snapshot_schedule: RestSchedule::default(),
            replication_schedule: RestSchedule::default(),
        }
    }
}

impl Listed for RestProtectionGroup {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["volume_count"]
    }
}

/// The name of the group with this id.
pub(crate) fn name_of(interface: &Interface, id: &str) -> Option<String> {
    let number = Ids::of(&interface.array).number(Kind::Group, id)?;
    interface.array.group_name(number)
}

/// All protection groups, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/protection-groups",
    tag = "protection-groups",
    params(SelectionParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestProtectionGroup>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::take_with_destroyed(&mut query)?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let ids = Ids::of(array);
        let wants_others = selection.destroyed == Some(true);
        if !selection.is_empty() {
            let names = selection.names(|id| name_of(interface, id))?;
            let found = each(&names, |name| match wants_others {
                false => Ok(RestProtectionGroup::new(ids, &array.group(name)?)),
                true => Err(array::Error::NoSuchGroup(name.to_owned()).into()),
            })?;
            return listing.all(&found);
        }
        listing.pieces(|after, limit| {
            let found = if wants_others { Vec::new() } else { array.groups(after, limit) };
            Ok(found.iter().map(|group| RestProtectionGroup::new(ids, group)).collect())
        })
    })
    .await
}

/// Makes protection groups without members.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/protection-groups",
    tag = "protection-groups",
    params(("names" = String, Query, description = "The names of the groups, comma-separated.")),
    responses((status = 200, body = ItemsOf<RestProtectionGroup>), Refusals)
)]
pub(super) async fn create(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.required("names")?;
    for parameter in ["source_names", "source_ids", "overwrite"] {
        if query.text(parameter).is_some_and(|text| text != "false") {
            return Err(Refused::unsupported(parameter, "Copying protection groups"));
        }
    }
    query.end()?;
    answer(interface, move |interface| {
        let names = each(&names, |name| {
            GroupName::new(name).map_err(|error| Refused::about(name, &error))
        })?;
        let made = interface.array.create_groups(names, (interface.now_ms)())?;
        let ids = Ids::of(&interface.array);
        Items::of(made.iter().map(|group| RestProtectionGroup::new(ids, group)))
    })
    .await
}

/// Ends protection groups: all of those that are named, or none. Their volumes stay, and so do the
/// snapshots that were made with them.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/protection-groups",
    tag = "protection-groups",
    params(SelectionParams),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let names = selection.names(|id| name_of(interface, id))?;
        interface.array.delete_groups(&names)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}

/// A member of a protection group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestMember {
    /// The group.
    pub group: Named,
    /// The member.
    pub member: Named,
}

impl Listed for RestMember {
    fn key(&self) -> String {
        format!("{}/{}", self.group.name, self.member.name)
    }
}

/// Which groups and members, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct MemberParams {
    /// The names of groups, comma-separated.
    group_names: Option<String>,
    /// The ids of groups, comma-separated, instead.
    group_ids: Option<String>,
    /// The names of members, comma-separated.
    member_names: Option<String>,
    /// The ids of members, comma-separated, instead.
    member_ids: Option<String>,
}

/// Which groups and members.
#[derive(Debug)]
struct Members {
    groups: Selection,
    members: Selection,
}

impl Members {
    fn take(query: &mut Query) -> Result<Self, Refused> {
        Ok(Self {
            groups: Selection::take_named(query, "group_names", "group_ids")?,
            members: Selection::take_named(query, "member_names", "member_ids")?,
        })
    }

    fn required(query: &mut Query) -> Result<Self, Refused> {
        let members = Self::take(query)?;
        if members.groups.is_empty() || members.members.is_empty() {
            let text = "Both `group_names` and `member_names` are required.";
            return Err(Refused::bad("group_names", text));
        }
        Ok(members)
    }

    /// The names of the groups and of the volumes.
    fn names(&self, interface: &Interface) -> Result<(Vec<String>, Vec<String>), Refused> {
        let groups = self.groups.names(|id| name_of(interface, id))?;
        Ok((groups, self.members.names(|id| volumes::name_of(interface, id))?))
    }
}

fn members_of(group: GroupInfo, only: &[String]) -> Vec<RestMember> {
    let is_wanted = |name: &String| {
        only.is_empty() || only.iter().any(|wanted| wanted.eq_ignore_ascii_case(name))
    };
    let mut volumes: Vec<String> = group.volumes.into_iter().filter(is_wanted).collect();
    volumes.sort_unstable();
    let member =
        |name| RestMember { group: Named { name: group.name.clone() }, member: Named { name } };
    volumes.into_iter().map(member).collect()
}

/// The volumes of all protection groups, or of some; or the groups of some volumes.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/protection-groups/volumes",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_volumes(State(interface): Shared, mut query: Query) -> Answer {
    let (members, listing) = (Members::take(&mut query)?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let array = &interface.array;
        let (groups, volumes) = members.names(interface)?;
        // One that is not there is told, instead of an empty list.
        each(&volumes, |name| Ok(array.volume(name)?))?;
        let groups = match groups.is_empty() {
            true => array.groups(None, array::GROUPS_MAX),
            false => each(&groups, |name| Ok(array.group(name)?))?,
        };
        let found: Vec<_> =
            groups.into_iter().flat_map(|group| members_of(group, &volumes)).collect();
        listing.all(&found)
    })
    .await
}

async fn change_members(
    interface: std::sync::Arc<Interface>,
    mut query: Query,
    change: impl Fn(Vec<String>) -> GroupChange + Send + 'static,
) -> Answer {
    let members = Members::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (groups, volumes) = members.names(interface)?;
        let changed = interface.array.change_groups(&groups, &change(volumes.clone()))?;
        Items::of(changed.into_iter().flat_map(|group| members_of(group, &volumes)))
    })
    .await
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
    change_members(interface, query, |add| GroupChange { add, ..GroupChange::default() }).await
}

/// Takes volumes out of protection groups: each out of each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/protection-groups/volumes",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_volumes(State(interface): Shared, query: Query) -> Answer {
    change_members(interface, query, |remove| GroupChange { remove, ..GroupChange::default() })
        .await
}

/// The protection groups of all volumes, or of some: the same as `protection-groups/volumes`.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes/protection-groups",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_of_volumes(interface: Shared, query: Query) -> Answer {
    list_volumes(interface, query).await
}

/// Adds volumes to protection groups: each to each, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/volumes/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_to_groups(interface: Shared, query: Query) -> Answer {
    add_volumes(interface, query).await
}

/// Takes volumes out of protection groups: each out of each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/volumes/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_from_groups(interface: Shared, query: Query) -> Answer {
    remove_volumes(interface, query).await
}
