//! `pods/arrays`, `pods/members` and `container-default-protections`: what clients request of a pod
//! besides itself.

use array::ContainerKind;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::containers::{find, name_of};
use super::{
    Answer, ItemsOf, ListParams, Listed, Listing, NameParams, Named, Query, Refusals, Refused,
    Selection, answer, each,
};
use crate::Shared;

const KIND: ContainerKind = ContainerKind::Pod;

/// The feature in refusals of stretching.
const STRETCHING: &str = "Stretching a pod to another array";

/// A pod and the array that it is on.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPodPlace {
    /// The pod.
    pub pod: Named,
    /// The same, under another name.
    pub group: Named,
    /// The array: this one.
    pub member: Named,
}

impl Listed for RestPodPlace {
    fn key(&self) -> String {
        self.pod.name.clone()
    }
}

async fn places(interface: std::sync::Arc<crate::Interface>, mut query: Query) -> Answer {
    let pods = Selection::take_named(&mut query, "pod_names", "pod_ids")?;
    let groups = Selection::take_named(&mut query, "group_names", "group_ids")?;
    let members = query.list("member_names")?;
    let listing = Listing::take(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let mut names = pods.names(|id| name_of(interface, KIND, id))?;
        names.extend(groups.names(|id| name_of(interface, KIND, id))?);
        let array = interface.array.name();
        if let Some(other) = members.iter().find(|name| !name.eq_ignore_ascii_case(&array)) {
            return Err(Refused::bad(other, "Array does not exist."));
        }
        let found = match names.is_empty() {
            true => interface.array.containers(KIND, None, None, array::CONTAINERS_MAX),
            false => each(&names, |name| Ok(find(interface, KIND, name, None)?))?,
        };
        let place = |name: String| RestPodPlace {
            pod: Named { name: name.clone() },
            group: Named { name },
            member: Named { name: array.clone() },
        };
        listing.all(&found.into_iter().map(|pod| place(pod.name)).collect::<Vec<_>>())
    })
    .await
}

/// Lists the array of each pod: this one.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/pods/arrays",
    tag = "pods",
    params(ListParams),
    responses((status = 200, body = ItemsOf<RestPodPlace>), Refusals)
)]
pub(super) async fn list_arrays(State(interface): Shared, query: Query) -> Answer {
    places(interface, query).await
}

/// Lists the array of each pod: this one.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/pods/members",
    tag = "pods",
    params(ListParams),
    responses((status = 200, body = ItemsOf<RestPodPlace>), Refusals)
)]
pub(super) async fn list_members(State(interface): Shared, query: Query) -> Answer {
    places(interface, query).await
}

/// Stretches pods: refused, as it is not supported.
#[utoipa::path(post, path = "/api/2.{minor}/pods/arrays", tag = "pods", responses(Refusals))]
pub(super) async fn stretch_arrays() -> Answer {
    Err(Refused::unsupported("", STRETCHING))
}

/// Removes pods from an array: refused, as it is not supported.
#[utoipa::path(delete, path = "/api/2.{minor}/pods/arrays", tag = "pods", responses(Refusals))]
pub(super) async fn unstretch_arrays() -> Answer {
    Err(Refused::unsupported("", STRETCHING))
}

/// Stretches pods: refused, as it is not supported.
#[utoipa::path(post, path = "/api/2.{minor}/pods/members", tag = "pods", responses(Refusals))]
pub(super) async fn stretch_members() -> Answer {
    Err(Refused::unsupported("", STRETCHING))
}

/// Removes pods from an array: refused, as it is not supported.
#[utoipa::path(delete, path = "/api/2.{minor}/pods/members", tag = "pods", responses(Refusals))]
pub(super) async fn unstretch_members() -> Answer {
    Err(Refused::unsupported("", STRETCHING))
}

/// The protection groups that new volumes of the array or of a pod get: none.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestDefaultProtection {
    /// The pod; empty for the array itself.
    pub name: String,
    /// `pod`; empty for the array itself.
    pub r#type: String,
    /// Always empty.
    #[schema(value_type = Vec<Object>)]
    pub default_protections: Vec<Named>,
}

impl Listed for RestDefaultProtection {
    fn key(&self) -> String {
        self.name.clone()
    }
}

/// Lists the default protection of the array, or of pods: none.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/container-default-protections",
    tag = "pods",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestDefaultProtection>), Refusals)
)]
pub(super) async fn list_protections(State(interface): Shared, mut query: Query) -> Answer {
    let (named, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let item = |name: String, r#type: &str| RestDefaultProtection {
            name,
            r#type: r#type.into(),
            default_protections: Vec::new(),
        };
        if named.is_empty() {
            return listing.all(&[item(String::new(), "")]);
        }
        let one = |name: &str| Ok(item(find(interface, KIND, name, None)?.name, "pod"));
        listing.all(&each(&named, one)?)
    })
    .await
}

/// The feature in refusals of default protection.
const PROTECTION: &str = "Default protection";

/// Sets the default protection: refused, as it is not supported.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/container-default-protections",
    tag = "pods",
    responses(Refusals)
)]
pub(super) async fn change_protections() -> Answer {
    Err(Refused::unsupported("", PROTECTION))
}
