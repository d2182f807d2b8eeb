//! `pods`: name spaces of volumes (`POD::VOLUME`), which are renamed and deleted together. All of
//! them are on this array alone: stretching and replication are refused.

use array::{ContainerInfo, ContainerKind};
use axum::extract::State;
use block::VolumeLimits;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::containers::{changed, eradicated, listed, name_of, new_names, sum_of};
use super::ids::{Ids, Kind};
use super::space::RestJointSpace;
use super::volume_parts::Reference;
use super::{
    Answer, Body, DestroyedParam, Items, ItemsOf, ListParams, Listed, MaybeNamed, Named, Query,
    Refusals, Refused, Selection, SelectionParams, answer,
};
use crate::{Interface, Shared};

const KIND: ContainerKind = ContainerKind::Pod;
/// The name of the default mediator, as clients know it.
const MEDIATOR: &str = "purestorage";
/// The highest quota, in bytes: clients expect a number.
const NO_QUOTA: u64 = 1 << 52;

/// An array that a pod is on: this one.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPodArray {
    /// The id of the array.
    pub id: String,
    /// The name of the array.
    pub name: String,
    /// The same, as a member.
    pub member: RestPodMember,
    /// `unknown`: there is none.
    pub mediator_status: String,
    /// `false`: no other array could continue.
    pub pre_elected: bool,
    /// `online`.
    pub status: String,
}

/// A member of a pod.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPodMember {
    /// The id of the array.
    pub id: String,
    /// The name of the array.
    pub name: String,
    /// `arrays`.
    pub resource_type: String,
}

/// The stored data of a pod.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPodSpace {
    /// That of its volumes.
    #[serde(flatten)]
    pub volumes: RestJointSpace,
    /// The sum of the sizes of its volumes.
    pub used_provisioned: u64,
    /// Stored bytes for replication: 0, not supported.
    pub replication: u64,
}

impl From<RestJointSpace> for RestPodSpace {
    fn from(volumes: RestJointSpace) -> Self {
        Self { used_provisioned: volumes.total_provisioned, volumes, replication: 0 }
    }
}

/// A pod.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPod {
    /// The id of the pod, which never changes.
    pub id: String,
    /// The name of the pod.
    pub name: String,
    /// 1: this array.
    pub array_count: u32,
    /// The arrays that it is on: this one.
    pub arrays: Vec<RestPodArray>,
    /// The same, as references.
    pub members: Vec<RestPodMember>,
    /// Whether it is destroyed. It can be recovered until it is eradicated.
    pub destroyed: bool,
    /// How much longer it can be recovered, in milliseconds, if it is destroyed.
    #[schema(required = true)]
    pub time_remaining: Option<u64>,
    /// The array that continues alone: always empty, there is only one.
    #[schema(value_type = Vec<Object>)]
    pub failover_preferences: Vec<Named>,
    /// Bytes reserved on another array: 0.
    pub footprint: u64,
    /// How many pods replicate to it: 0.
    pub link_source_count: u32,
    /// How many pods it replicates to: 0.
    pub link_target_count: u32,
    /// `purestorage`, which means the default to clients. There is no mediator.
    pub mediator: String,
    /// Empty.
    pub mediator_version: String,
    /// `promoted`: hosts can write to its volumes.
    pub promotion_status: String,
    /// `promoted`.
    pub requested_promotion_state: String,
    /// The maximum size of its volumes together: the highest value, as there is no quota.
    pub quota_limit: u64,
    /// The pod that it is a copy of; always `{}`.
    pub source: MaybeNamed,
    /// The stored data of its volumes.
    pub space: RestPodSpace,
    /// The number of volumes in it that are not destroyed.
    pub volume_count: usize,
}

impl RestPod {
    fn new(interface: &Interface, ids: Ids, pod: ContainerInfo) -> Self {
        let left = |due: u64| due.saturating_sub((interface.now_ms)());
        let (id, name) = (ids.id(Kind::Array, 0), interface.array.name());
        let resource_type = "arrays".into();
        let member = RestPodMember { id: id.clone(), name: name.clone(), resource_type };
        Self {
            id: ids.id(Kind::Pod, pod.id),
            array_count: 1,
            members: vec![member.clone()],
            arrays: vec![RestPodArray {
                id,
                name,
                member,
                mediator_status: "unknown".into(),
                pre_elected: false,
                status: "online".into(),
            }],
            destroyed: pod.eradicate_ms.is_some(),
            time_remaining: pod.eradicate_ms.map(left),
            failover_preferences: Vec::new(),
            footprint: 0,
            link_source_count: 0,
            link_target_count: 0,
            mediator: MEDIATOR.into(),
            mediator_version: String::new(),
            promotion_status: "promoted".into(),
            requested_promotion_state: "promoted".into(),
            quota_limit: NO_QUOTA,
            source: MaybeNamed::default(),
            space: RestJointSpace::from(sum_of(interface, KIND, &pod)).into(),
            volume_count: pod.volumes.len(),
            name: pod.name,
        }
    }

    fn all(interface: &Interface, pods: Vec<ContainerInfo>) -> Vec<Self> {
        let ids = Ids::of(&interface.array);
        pods.into_iter().map(|pod| Self::new(interface, ids, pod)).collect()
    }
}

impl Listed for RestPod {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["volume_count"]
    }
}

/// Lists all pods, or some.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/pods",
    tag = "pods",
    params(SelectionParams, DestroyedParam, ListParams),
    responses((status = 200, body = ItemsOf<RestPod>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    listed(interface, KIND, query, RestPod::all).await
}

/// A pod to create.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PodPost {
    /// The array that continues alone: must be empty.
    #[serde(default)]
    pub failover_preferences: Vec<Reference>,
    /// The maximum size of its volumes together: only the highest value, which means no quota.
    pub quota_limit: Option<u64>,
    /// The pod to copy: not supported.
    pub source: Option<Reference>,
}

/// The changes of pods.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct PodPatch {
    /// A new name, for one pod only. Its volumes are renamed with it.
    pub name: Option<String>,
    /// `true` destroys, `false` recovers; no other field may be given.
    pub destroyed: Option<bool>,
    /// As for a new pod.
    #[serde(default)]
    pub failover_preferences: Vec<Reference>,
    /// As for a new pod.
    pub quota_limit: Option<u64>,
    /// Whether the quota may be below the current use: not supported, as there is no quota.
    pub ignore_usage: Option<bool>,
    /// `purestorage`, which means the default.
    pub mediator: Option<String>,
    /// `promoted`.
    pub requested_promotion_state: Option<String>,
}

/// Refuses what pods of one array do not support.
fn check(preferences: &[Reference], quota: Option<u64>) -> Result<(), Refused> {
    if !preferences.is_empty() {
        let text = "A failover preference, as a pod is on one array";
        return Err(Refused::unsupported("failover_preferences", text));
    }
    match quota.unwrap_or(NO_QUOTA) {
        NO_QUOTA => Ok(()),
        _ => Err(Refused::unsupported("quota_limit", "A quota of a pod")),
    }
}

/// The parameter of new pods, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct PodPostParams {
    /// The names of the pods, comma-separated.
    names: String,
    /// Whether a copy may be delayed if the array is busy: there are no copies.
    allow_throttle: Option<bool>,
}

/// Creates pods without volumes.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/pods",
    tag = "pods",
    params(PodPostParams),
    request_body = PodPost,
    responses((status = 200, body = ItemsOf<RestPod>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<PodPost>,
) -> Answer {
    let names = query.required("names")?;
    query.flag("allow_throttle")?;
    query.end()?;
    check(&asked.failover_preferences, asked.quota_limit)?;
    if asked.source.is_some() {
        return Err(Refused::unsupported("source", "A copy of a whole pod"));
    }
    answer(interface, move |interface| {
        let names = new_names(KIND, &names)?;
        let made =
            interface.array.create_containers(names, VolumeLimits::NONE, (interface.now_ms)())?;
        Items::of(RestPod::all(interface, made))
    })
    .await
}

/// Whether volumes end with their pod, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct PodPatchParams {
    /// Whether the volumes of a pod are destroyed with it; otherwise one with volumes is refused.
    destroy_contents: Option<bool>,
}

/// Renames a pod with its volumes; destroys or recovers some.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/pods",
    tag = "pods",
    params(SelectionParams, PodPatchParams),
    request_body = PodPatch,
    responses((status = 200, body = ItemsOf<RestPod>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<PodPatch>,
) -> Answer {
    let selection = Selection::required(&mut query)?;
    let contents = query.flag("destroy_contents")?.unwrap_or(false);
    query.end()?;
    let PodPatch { name, destroyed, failover_preferences, quota_limit, .. } = asked;
    let (mediator, state) = (asked.mediator, asked.requested_promotion_state);
    if destroyed.is_some() && (name.is_some() || mediator.is_some() || state.is_some()) {
        return Err(Refused::bad("destroyed", "`destroyed` allows no other change."));
    }
    check(&failover_preferences, quota_limit)?;
    if asked.ignore_usage == Some(true) {
        return Err(Refused::unsupported("ignore_usage", "A quota of a pod"));
    }
    if mediator.is_some_and(|mediator| mediator != MEDIATOR) {
        let text = "A mediator, as a pod is on one array";
        return Err(Refused::unsupported("mediator", text));
    }
    if state.is_some_and(|state| state != "promoted") {
        let text = "Demoting a pod, as no other array has it";
        return Err(Refused::unsupported("requested_promotion_state", text));
    }
    answer(interface, move |interface| {
        let names = selection.names(|id| name_of(interface, KIND, id))?;
        let changed = changed(interface, KIND, &names, (destroyed, contents), name)?;
        Items::of(RestPod::all(interface, changed))
    })
    .await
}

/// Whether volumes are eradicated with their pod, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct PodDeleteParams {
    /// Whether the volumes of a pod are eradicated with it; otherwise one with volumes is refused.
    eradicate_contents: Option<bool>,
}

/// Eradicates destroyed pods, and their volumes if requested: their data is permanently gone.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/pods",
    tag = "pods",
    params(SelectionParams, PodDeleteParams),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn eradicate(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::required(&mut query)?;
    let contents = query.flag("eradicate_contents")?.unwrap_or(false);
    query.end()?;
    eradicated(interface, KIND, selection, contents).await
}
