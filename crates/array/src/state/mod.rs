//! All objects in memory, indexed for the look-ups of protocols and management.
//!
//! Objects with an index are private to this module and change only by its methods, which preserve
//! these invariants:
//!
//! * Names are unique, ignoring case: an object is in the index of names under its name only. A
//!   destroyed object keeps its name.
//! * A connection is recorded in the volume and in the host or group, with the same LUN, and counts
//!   once.
//! * A snapshot is recorded in its volume and, if it was made with a group, in a moment of that
//!   group; both exist as long as it does.
//! * The volume group or pod in the name of a volume exists; if the volume is not destroyed,
//!   neither is its container.
//! * Exactly the separately destroyed objects are in the order of eradication.
//! * The volumes that an initiator sees change only with the generation.
//!
//! Only durable objects are here; see [`crate::array`] for the exceptions.

mod containers;
mod ends;
mod groups;
mod host_groups;
mod hosts;
mod load;
mod prepare;
mod snapshots;
mod tags;
mod volumes;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use block::VolumeId;

use crate::error::Error;
use crate::objects::certificates::StoredCertificate;
use crate::objects::directory::Directory;
use crate::objects::groups::{Group, GroupId};
use crate::objects::hosts::HostId;
use crate::objects::notifications::Notifications;
use crate::objects::ports::Ports;
use crate::objects::settings::Settings;
use crate::objects::snapshots::SnapshotRecord;
use crate::tables::agenda::Agenda;
use crate::tables::alerts::Alerts;
use crate::tables::audit::AuditLog;
use crate::tables::containers::Containers;
use crate::tables::host_groups::HostGroups;
use crate::tables::host_states::HostStates;
use crate::tables::hosts::HostEntry;
use crate::tables::moments::Moment;
use crate::tables::releases::Releases;
use crate::tables::tags::Tags;
use crate::tables::time::ArrayTime;
use crate::tables::tokens::TokenRows;
use crate::tables::users::Users;
use crate::tables::volumes::VolumeEntry;
use crate::values::name::InitiatorName;

/// All objects.
pub(crate) struct State {
    settings: Settings,
    pool_id: [u8; 16],
    write_cache: bool,
    volumes: HashMap<VolumeId, VolumeEntry>,
    /// Volumes by name in lower case, including destroyed ones.
    volume_names: BTreeMap<String, VolumeId>,
    snapshots: HashMap<VolumeId, SnapshotRecord>,
    /// Destroyed objects, by when they are eradicated.
    doomed: BTreeSet<(u64, VolumeId)>,
    groups: BTreeMap<GroupId, Group>,
    /// The snapshots of groups, by the suffixes in lower case.
    moments: BTreeMap<GroupId, BTreeMap<String, Moment>>,
    /// Snapshots whose records contained the names of their groups.
    adopted: Vec<VolumeId>,
    /// Groups that are destroyed, by when they are eradicated.
    doomed_groups: BTreeSet<(u64, GroupId)>,
    pub(crate) agenda: Agenda,
    /// By name in lower case.
    group_names: BTreeMap<String, GroupId>,
    next_group_id: u64,
    hosts: BTreeMap<HostId, HostEntry>,
    /// By name in lower case.
    host_names: BTreeMap<String, HostId>,
    initiators: HashMap<InitiatorName, HostId>,
    host_groups: HostGroups,
    pub(crate) host_states: HostStates,
    pub(crate) users: Users,
    pub(crate) audit: AuditLog,
    pub(crate) alerts: Alerts,
    /// By name in lower case.
    pub(crate) certificates: BTreeMap<String, Arc<StoredCertificate>>,
    pub(crate) releases: Releases,
    /// The number of connections, of hosts and of host groups.
    connection_count: usize,
    pub(crate) containers: Containers,
    pub(crate) tags: Tags,
    /// The keys of records that this version no longer keeps: the next change removes them.
    pub(crate) retired: Vec<Vec<u8>>,
    pub(crate) notifications: Arc<Notifications>,
    pub(crate) directory: Arc<Directory>,
    pub(crate) ports: Ports,
    pub(crate) time: ArrayTime,
    /// The array's own volume, unless the pool has none yet.
    token_volume: Option<VolumeId>,
    pub(crate) token_rows: TokenRows,
    next_host_id: u64,
    /// Incremented with each change that an initiator could notice.
    generation: u64,
    /// The generation in which an initiator was last removed: that of the empty map of unknown
    /// initiators.
    removal_generation: u64,
}

impl State {
    fn empty(pool_id: [u8; 16], write_cache: bool) -> Result<Self, Error> {
        Ok(Self {
            settings: Settings::defaults(&pool_id)?,
            pool_id,
            write_cache,
            volumes: HashMap::new(),
            volume_names: BTreeMap::new(),
            snapshots: HashMap::new(),
            doomed: BTreeSet::new(),
            groups: BTreeMap::new(),
            moments: BTreeMap::new(),
            adopted: Vec::new(),
            doomed_groups: BTreeSet::new(),
            agenda: Agenda::default(),
            group_names: BTreeMap::new(),
            next_group_id: 1,
            hosts: BTreeMap::new(),
            host_names: BTreeMap::new(),
            initiators: HashMap::new(),
            host_groups: HostGroups::default(),
            host_states: HostStates::default(),
            users: Users::built_in()?,
            audit: AuditLog::default(),
            alerts: Alerts::default(),
            certificates: BTreeMap::new(),
            releases: Releases::default(),
            connection_count: 0,
            containers: Containers::default(),
            tags: Tags::default(),
            retired: Vec::new(),
            notifications: Arc::default(),
            directory: Arc::default(),
            ports: Ports::new(),
            time: ArrayTime::default(),
            token_volume: None,
            token_rows: TokenRows::default(),
            next_host_id: 1,
            generation: 1,
            removal_generation: 1,
        })
    }

    fn next_generation(&mut self) -> u64 {
        self.generation += 1;
        self.generation
    }

    /// Replaces the array's settings; hosts see the effect on volumes as changes of volumes. Each
    /// volume, host and group is examined once, regardless of the connections.
    pub(crate) fn replace_settings(&mut self, settings: Settings) {
        let are_switched = settings.offloads != self.settings.offloads;
        self.settings = settings;
        if !are_switched {
            return;
        }
        let (offloads, write_cache) = (self.settings.offloads, self.write_cache);
        for entry in self.volumes.values_mut() {
            let group = self.containers.limits_of(&entry.record.name);
            entry.attributes = entry.record.attributes(offloads, write_cache, group);
        }
        let hosts = self.hosts.iter().filter(|(_, entry)| !entry.luns().is_empty());
        for host in hosts.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.touch(host);
        }
        let groups = self.host_groups.by_id.iter().filter(|(_, entry)| !entry.luns.is_empty());
        for group in groups.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.touch_group(group);
        }
    }
}

/// Read access for other modules.
impl State {
    /// Returns the settings.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns all volumes, including destroyed ones.
    pub(crate) fn volumes(&self) -> &HashMap<VolumeId, VolumeEntry> {
        &self.volumes
    }

    /// Returns volumes by name in lower case, including destroyed ones.
    pub(crate) fn volume_names(&self) -> &BTreeMap<String, VolumeId> {
        &self.volume_names
    }

    /// Returns all snapshots, including destroyed ones.
    pub(crate) fn snapshots(&self) -> &HashMap<VolumeId, SnapshotRecord> {
        &self.snapshots
    }

    /// Returns the destroyed volumes and snapshots, by when they are eradicated.
    pub(crate) fn doomed(&self) -> &BTreeSet<(u64, VolumeId)> {
        &self.doomed
    }

    /// Returns all groups, including destroyed ones.
    pub(crate) fn groups(&self) -> &BTreeMap<GroupId, Group> {
        &self.groups
    }

    /// Returns groups by name in lower case.
    pub(crate) fn group_names(&self) -> &BTreeMap<String, GroupId> {
        &self.group_names
    }

    /// Returns the snapshots of groups, by the suffixes in lower case.
    pub(crate) fn moments(&self) -> &BTreeMap<GroupId, BTreeMap<String, Moment>> {
        &self.moments
    }

    /// Returns the destroyed groups, by when they are eradicated.
    pub(crate) fn doomed_groups(&self) -> &BTreeSet<(u64, GroupId)> {
        &self.doomed_groups
    }

    /// Returns all hosts.
    pub(crate) fn hosts(&self) -> &BTreeMap<HostId, HostEntry> {
        &self.hosts
    }

    /// Returns hosts by name in lower case.
    pub(crate) fn host_names(&self) -> &BTreeMap<String, HostId> {
        &self.host_names
    }

    /// Returns the host of each initiator.
    pub(crate) fn initiators(&self) -> &HashMap<InitiatorName, HostId> {
        &self.initiators
    }

    /// Returns all host groups.
    pub(crate) fn host_groups(&self) -> &HostGroups {
        &self.host_groups
    }

    /// Returns the pool's id, which is part of the names of volumes on the wire.
    pub(crate) fn pool_id(&self) -> &[u8; 16] {
        &self.pool_id
    }

    /// Returns the number of connections, of hosts and of host groups.
    pub(crate) fn connection_count(&self) -> usize {
        self.connection_count
    }

    /// Returns the array's own volume, unless the pool has none yet.
    pub(crate) fn token_volume(&self) -> Option<VolumeId> {
        self.token_volume
    }

    /// Returns the next free id of a group.
    pub(crate) fn next_group_id(&self) -> u64 {
        self.next_group_id
    }

    /// Returns the next free id of a host.
    pub(crate) fn next_host_id(&self) -> u64 {
        self.next_host_id
    }

    /// Returns the generation, which increases with each change that an initiator could notice.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Returns the generation in which an initiator was last removed: that of the empty map of
    /// unknown initiators.
    pub(crate) fn removal_generation(&self) -> u64 {
        self.removal_generation
    }
}
