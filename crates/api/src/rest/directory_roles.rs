//! `directory-services/roles`: the groups of the directory service and their roles. Each entry has
//! the name of its role; a role has one group at most.

use array::{Directory, DirectoryChange, DirectoryGroup, Role};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, NameParams, Named, Query, Refusals, Refused,
    answer,
};
use crate::Shared;

/// The refusal of creating and removing roles.
const OTHERS: &str = "A role with another name";

/// A role, and the group that has it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestDirectoryRole {
    /// The same as the role.
    pub name: String,
    /// `array_admin`, `storage_admin` or `readonly`.
    pub role: Named,
    /// What members may do: the role, as later versions call it.
    pub management_access_policies: Vec<Named>,
    /// The common name of the group, or its DN; absent if no group has the role.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The DN below which it is; it need not repeat the base DN.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_base: Option<String>,
}

listed_by_name!(RestDirectoryRole);

fn all(directory: &Directory) -> Vec<RestDirectoryRole> {
    let shown = |role: Role| {
        let DirectoryGroup { group, base } = directory.group(role).clone();
        let named = || Named { name: role.name().into() };
        let group = Some(group).filter(|group| !group.is_empty());
        RestDirectoryRole {
            name: role.name().into(),
            role: named(),
            management_access_policies: vec![named()],
            group_base: group.is_some().then_some(base),
            group,
        }
    };
    let mut all: Vec<_> = Role::ALL.map(shown).into();
    all.sort_by(|one, other| one.name.cmp(&other.name));
    all
}

/// Lists the roles with the groups that have them.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/directory-services/roles",
    tag = "directory services",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestDirectoryRole>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| all(&interface.array.directory())).await
}

/// Which group has a role. What is left out stays; without a group nobody has it.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryRolePatch {
    /// The common name of the group, or its DN.
    pub group: Option<String>,
    /// The DN below which it is; it need not repeat the base DN.
    pub group_base: Option<String>,
    /// Only the named role.
    pub role: Option<DirectoryRoleName>,
    /// Only the named role.
    pub management_access_policies: Option<Vec<DirectoryRoleName>>,
}

/// A role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct DirectoryRoleName {
    /// The name of the role.
    pub name: String,
}

/// Changes the group of a role. This takes effect at once: the sessions of users of the directory
/// service end.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/directory-services/roles",
    tag = "directory services",
    params(NameParams),
    request_body = DirectoryRolePatch,
    responses((status = 200, body = ItemsOf<RestDirectoryRole>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<DirectoryRolePatch>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    let role = |name: &String| Role::parse(name).map_err(|_| Refused::missing(name));
    let roles = names.iter().map(role).collect::<Result<Vec<_>, _>>()?;
    let policies = asked.management_access_policies.into_iter().flatten().chain(asked.role);
    if policies.into_iter().any(|policy| names.iter().any(|name| *name != policy.name)) {
        return Err(Refused::unsupported("role", "Another role with this name"));
    }
    if asked.group.is_none() && asked.group_base.is_none() {
        return Err(Refused::bad("", "Give a group or a group_base."));
    }
    answer(interface, move |interface| {
        let one = |role: &Role| (*role, asked.group.clone(), asked.group_base.clone());
        let groups = roles.iter().map(one).collect();
        let change = DirectoryChange { groups, ..DirectoryChange::default() };
        let changed = interface.array.change_directory(change)?;
        let is_named = |one: &RestDirectoryRole| names.contains(&one.name);
        Items::of(all(&changed).into_iter().filter(is_named))
    })
    .await
}

/// Creates a role: refused, as it is not supported.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/directory-services/roles",
    tag = "directory services",
    responses(Refusals)
)]
pub(super) async fn create() -> Answer {
    Err(Refused::unsupported("", OTHERS))
}

/// Removes a role: refused, as it is not supported.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/directory-services/roles",
    tag = "directory services",
    responses(Refusals)
)]
pub(super) async fn delete() -> Answer {
    Err(Refused::unsupported("", OTHERS))
}
