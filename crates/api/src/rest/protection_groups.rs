//! `protection-groups`: volumes snapshotted together, on a schedule or on demand.

use array::{GroupChange, GroupInfo, GroupName, Retention, SnapshotSchedule};
use axum::extract::State;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::ids::{Ids, Kind};
use super::space::RestSnapshotsSpace;
use super::{
    Answer, Body, DestroyedParam, Items, ItemsOf, ListParams, Listed, Listing, Named, Query,
    Refusals, Refused, Selection, SelectionParams, answer, each,
};
use crate::{Interface, Shared};

const DAY_MS: u64 = 86_400_000;

/// A protection group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestProtectionGroup {
    /// Its id, which never changes.
    pub id: String,
    /// The protection group's name.
    pub name: String,
    /// Whether it is destroyed. It can be recovered until it is eradicated.
    pub destroyed: bool,
    /// How much longer it can be recovered, in milliseconds, if it is destroyed.
    #[schema(required = true)]
    pub time_remaining: Option<u64>,
    /// The stored data of its snapshots.
    pub space: RestSnapshotsSpace,
    /// How many hosts are members.
    pub host_count: usize,
    /// How many host groups are members.
    pub host_group_count: usize,
    /// How many volumes are members.
    pub volume_count: usize,
    /// How many arrays it is replicated to: 0, not supported.
    pub target_count: usize,
    /// Whether it belongs to this array: always.
    pub is_local: bool,
    /// The array that it belongs to.
    pub source: Named,
    /// `unlocked`: its snapshots can be eradicated.
    pub retention_lock: String,
    /// Who may eradicate it.
    pub eradication_config: RestGroupEradication,
    /// When its snapshots are taken.
    pub snapshot_schedule: RestSchedule,
    /// How long these are kept.
    pub source_retention: RestRetention,
    /// When it is replicated: never.
    pub replication_schedule: RestReplicationSchedule,
    /// How long replicas are kept: there are none.
    pub target_retention: RestRetention,
}

/// Who may eradicate a group.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestGroupEradication {
    /// `enabled`: everybody who may change it, once it is destroyed.
    pub manual_eradication: String,
}

/// A schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RestSchedule {
    /// Whether it is on.
    pub enabled: bool,
    /// The interval, in milliseconds.
    pub frequency: u64,
    /// The time of day (UTC), in milliseconds from midnight.
    #[schema(required = true)]
    pub at: Option<u64>,
}

/// When a group is replicated: never.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestReplicationSchedule {
    /// Off.
    #[serde(flatten)]
    pub schedule: RestSchedule,
    /// The times of day at which it is suspended: `{}`, none.
    pub blackout: Map<String, Value>,
}

/// How long snapshots are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct RestRetention {
    /// For how many seconds all snapshots are kept.
    pub all_for_sec: u64,
    /// How many of each day are kept after that.
    pub per_day: u32,
    /// For how many days these are kept.
    pub days: u32,
}

impl From<SnapshotSchedule> for RestSchedule {
    fn from(schedule: SnapshotSchedule) -> Self {
        let SnapshotSchedule { enabled, frequency_ms, at_ms } = schedule;
        Self { enabled, frequency: frequency_ms, at: at_ms }
    }
}

impl From<Retention> for RestRetention {
    fn from(retention: Retention) -> Self {
        let Retention { all_for_s, per_day, days } = retention;
        Self { all_for_sec: all_for_s, per_day, days }
    }
}

/// Returns the replication schedule, which is always off: replication is not supported.
fn never() -> RestSchedule {
    RestSchedule { enabled: false, frequency: 4 * 3_600_000, at: None }
}

impl RestProtectionGroup {
    fn new(interface: &Interface, ids: Ids, group: GroupInfo) -> Self {
        let left = |due: u64| due.saturating_sub((interface.now_ms)());
        Self {
            id: ids.id(Kind::Group, group.id),
            name: group.name,
            destroyed: group.eradicate_ms.is_some(),
            time_remaining: group.eradicate_ms.map(left),
            space: RestSnapshotsSpace::of(interface.array.group_snapshots_bytes(group.id)),
            host_count: group.hosts.len(),
            host_group_count: group.host_groups.len(),
            volume_count: group.volumes.len(),
            target_count: 0,
            is_local: true,
            source: Named { name: interface.array.name() },
            retention_lock: "unlocked".into(),
            eradication_config: RestGroupEradication { manual_eradication: "enabled".into() },
            snapshot_schedule: group.schedule.into(),
            source_retention: group.retention.into(),
            replication_schedule: RestReplicationSchedule {
                schedule: never(),
                blackout: Map::new(),
            },
            target_retention: Retention::default().into(),
        }
    }
}

impl Listed for RestProtectionGroup {
    fn key(&self) -> String {
        self.name.clone()
    }

    fn totalled() -> &'static [&'static str] {
        &["host_count", "host_group_count", "volume_count"]
    }
}

/// Returns the name of the group with this id.
pub(crate) fn name_of(interface: &Interface, id: &str) -> Option<String> {
    let number = Ids::of(&interface.array).number(Kind::Group, id)?;
    interface.array.group_name(number)
}

/// Finds a group that is destroyed or not, as requested. Refuses one that does not match as
/// nonexistent.
pub(super) fn find(
    interface: &Interface,
    name: &str,
    destroyed: Option<bool>,
) -> Result<GroupInfo, Refused> {
    let group = interface.array.group(name)?;
    match destroyed {
        Some(destroyed) if destroyed != group.eradicate_ms.is_some() => {
            Err(array::Error::NoSuchGroup(group.name).into())
        }
        _ => Ok(group),
    }
}

/// Lists all protection groups, or some.
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
        let (array, destroyed) = (&interface.array, selection.destroyed);
        let ids = Ids::of(array);
        let show = |group| RestProtectionGroup::new(interface, ids, group);
        if !selection.is_empty() {
            let names = selection.names(|id| name_of(interface, id))?;
            let one = |name: &str| find(interface, name, destroyed).map(show);
            return listing.all(&each(&names, one)?);
        }
        listing.pieces(|after, limit| {
            Ok(array.groups(after, destroyed, limit).into_iter().map(show).collect())
        })
    })
    .await
}

/// Creates protection groups without members.
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
        Items::of(made.into_iter().map(|group| RestProtectionGroup::new(interface, ids, group)))
    })
    .await
}

/// The changes of a schedule. Omitted fields do not change.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SchedulePatch {
    /// Whether it is on.
    pub enabled: Option<bool>,
    /// The interval, in milliseconds: 5 minutes to 400 days. One that is not of whole days clears
    /// the time of day.
    pub frequency: Option<u64>,
    /// The time of day (UTC), in milliseconds from midnight; only if the interval is of whole days.
    /// `null` clears it.
    #[serde(default, deserialize_with = "or_null")]
    #[schema(value_type = Option<u64>)]
    pub at: Option<Option<u64>>,
}

/// Parses a value that can be cleared: `null` differs from an omitted value.
fn or_null<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Option<u64>>, D::Error> {
    Option::deserialize(from).map(Some)
}

/// The changes of a retention. Omitted fields do not change.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RetentionPatch {
    /// For how many seconds all snapshots are kept: up to 400 days.
    pub all_for_sec: Option<u64>,
    /// How many of each day are kept after that: up to 1440.
    pub per_day: Option<u32>,
    /// For how many days these are kept: up to 4000.
    pub days: Option<u32>,
}

/// The changes of protection groups.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ProtectionGroupPatch {
    /// A new name, for one group only.
    pub name: Option<String>,
    /// `true` destroys, `false` recovers; no other field may be given.
    pub destroyed: Option<bool>,
    /// When snapshots are taken.
    pub snapshot_schedule: Option<SchedulePatch>,
    /// How long these are kept.
    pub source_retention: Option<RetentionPatch>,
    /// The replication schedule: it can't be switched on.
    pub replication_schedule: Option<SchedulePatch>,
    /// How long replicas are kept: there are none.
    pub target_retention: Option<RetentionPatch>,
}

impl SchedulePatch {
    /// Returns the schedule after the change of `old`. An interval of hours clears the time of day,
    /// as published clients need it: the Ansible module of schedules can't send `null`, and reports
    /// a change even if its request was refused.
    fn of(&self, old: &RestSchedule) -> RestSchedule {
        let frequency = self.frequency.unwrap_or(old.frequency);
        let kept = old.at.filter(|_| frequency.is_multiple_of(DAY_MS));
        RestSchedule {
            enabled: self.enabled.unwrap_or(old.enabled),
            frequency,
            at: self.at.unwrap_or(kept),
        }
    }
}

impl RetentionPatch {
    fn of(&self, old: &RestRetention) -> RestRetention {
        RestRetention {
            all_for_sec: self.all_for_sec.unwrap_or(old.all_for_sec),
            per_day: self.per_day.unwrap_or(old.per_day),
            days: self.days.unwrap_or(old.days),
        }
    }
}

impl ProtectionGroupPatch {
    fn changes_more(&self) -> bool {
        let Self { name, snapshot_schedule, source_retention, .. } = self;
        name.is_some() || snapshot_schedule.is_some() || source_retention.is_some()
    }

    /// Refuses settings of replication, except those in effect: off.
    fn check(&self) -> Result<(), Refused> {
        let schedule = self.replication_schedule.as_ref().map(|patch| patch.of(&never()));
        let none = RestRetention::from(Retention::default());
        let retention = self.target_retention.as_ref().map(|patch| patch.of(&none));
        if schedule.is_some_and(|schedule| schedule != never()) {
            return Err(Refused::unsupported("replication_schedule", "Replication"));
        }
        if retention.is_some_and(|retention| retention != none) {
            return Err(Refused::unsupported("target_retention", "Replication"));
        }
        if self.destroyed.is_some() && self.changes_more() {
            return Err(Refused::bad("destroyed", "`destroyed` allows no other change."));
        }
        Ok(())
    }

    /// Returns the change to a group whose current state is `old`.
    fn of(&self, old: &GroupInfo, now_ms: u64) -> Result<GroupChange, array::Error> {
        let name = self.name.as_ref().map(|name| GroupName::new(name)).transpose()?;
        let schedule = self.snapshot_schedule.as_ref().map(|patch| {
            let RestSchedule { enabled, frequency, at } = patch.of(&old.schedule.into());
            SnapshotSchedule { enabled, frequency_ms: frequency, at_ms: at }
        });
        let retention = self.source_retention.as_ref().map(|patch| {
            let RestRetention { all_for_sec, per_day, days } = patch.of(&old.retention.into());
            Retention { all_for_s: all_for_sec, per_day, days }
        });
        Ok(GroupChange { name, schedule, retention, now_ms, ..GroupChange::default() })
    }
}

/// Changes, destroys or recovers protection groups: all of the named ones, or none. Destroying and
/// recovering include their snapshots.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/protection-groups",
    tag = "protection-groups",
    params(SelectionParams),
    request_body = ProtectionGroupPatch,
    responses((status = 200, body = ItemsOf<RestProtectionGroup>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<ProtectionGroupPatch>,
) -> Answer {
    let selection = Selection::required(&mut query)?;
    query.end()?;
    asked.check()?;
    answer(interface, move |interface| {
        let (array, now_ms) = (&interface.array, (interface.now_ms)());
        let names = selection.names(|id| name_of(interface, id))?;
        let changed = match asked.destroyed {
            Some(true) => array.destroy_groups(&names, now_ms)?,
            Some(false) => array.recover_groups(&names)?,
            None => array.change_each_group(&names, |old| asked.of(old, now_ms))?,
        };
        let ids = Ids::of(array);
        Items::of(changed.into_iter().map(|group| RestProtectionGroup::new(interface, ids, group)))
    })
    .await
}

/// Eradicates destroyed protection groups with their snapshots. Their volumes are not affected.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/protection-groups",
    tag = "protection-groups",
    params(SelectionParams),
    responses((status = 200, body = ItemsOf<Named>), Refusals)
)]
pub(super) async fn eradicate(State(interface): Shared, mut query: Query) -> Answer {
    let selection = Selection::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let names = selection.names(|id| name_of(interface, id))?;
        interface.array.eradicate_groups(&names)?;
        Items::of(names.into_iter().map(|name| Named { name }))
    })
    .await
}
