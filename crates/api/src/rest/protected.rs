//! `volumes/protection-groups` and similar resources: the same as [`super::protection_members`], by
//! member.

use super::members::{MemberParams, RestMember};
use super::{Answer, ItemsOf, ListParams, Query, Refusals, protection_members};
use crate::Shared;

/// Lists the volumes of all protection groups, or of some; or the groups of some volumes.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/volumes/protection-groups",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_of_volumes(interface: Shared, query: Query) -> Answer {
    protection_members::list_volumes(interface, query).await
}

/// Adds volumes to protection groups: each to each, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/volumes/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_volumes(interface: Shared, query: Query) -> Answer {
    protection_members::add_volumes(interface, query).await
}

/// Removes volumes from protection groups: each from each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/volumes/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_volumes(interface: Shared, query: Query) -> Answer {
    protection_members::remove_volumes(interface, query).await
}

/// Lists the hosts of all protection groups, or of some; or the groups of some hosts.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/hosts/protection-groups",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_of_hosts(interface: Shared, query: Query) -> Answer {
    protection_members::list_hosts(interface, query).await
}

/// Adds hosts to protection groups: each to each, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/hosts/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_hosts(interface: Shared, query: Query) -> Answer {
    protection_members::add_hosts(interface, query).await
}

/// Removes hosts from protection groups: each from each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/hosts/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_hosts(interface: Shared, query: Query) -> Answer {
    protection_members::remove_hosts(interface, query).await
}

/// Lists the host groups of all protection groups, or of some; or the groups of some host groups.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/host-groups/protection-groups",
    tag = "protection-groups",
    params(MemberParams, ListParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn list_of_host_groups(interface: Shared, query: Query) -> Answer {
    protection_members::list_host_groups(interface, query).await
}

/// Adds host groups to protection groups: each to each, or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/host-groups/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn add_host_groups(interface: Shared, query: Query) -> Answer {
    protection_members::add_host_groups(interface, query).await
}

/// Removes host groups from protection groups: each from each, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/host-groups/protection-groups",
    tag = "protection-groups",
    params(MemberParams),
    responses((status = 200, body = ItemsOf<RestMember>), Refusals)
)]
pub(super) async fn remove_host_groups(interface: Shared, query: Query) -> Answer {
    protection_members::remove_host_groups(interface, query).await
}
