//! The objects that an administrator names: volumes, hosts, connections and the settings of the
//! array.
//!
//! An [`Array`] keeps them in memory, indexed for the look-ups of protocols and management, and
//! durably in the key-value space of the store. Every change is checked first, then committed in
//! *one* [`store::Change`], together with its effect on volumes, and only then shown: a crash
//! leaves all of it or none.
//!
//! * [`name`]: which names are allowed, and how they compare,
//! * [`identity`]: serial numbers and NAA designators, which never change or repeat,
//! * [`chap`], [`personality`]: properties of hosts besides their names,
//! * [`settings`]: the name of the array, of its target, the company identifier, offloads,
//! * [`alerts`]: what is wrong, since when and until when,
//! * [`users`]: users, roles and API tokens, [`audit`]: who changed what,
//! * [`space`]: thresholds of the pool's space, and growing it,
//! * [`accounting`]: which objects the pool's bytes are stored for,
//! * [`integrity`]: scrubbing, and the names of what is damaged,
//! * [`reduction`]: how a volume's data is reduced, and the background pass,
//! * [`limits`]: limits on what hosts do with a volume,
//! * [`tags`]: labels that users keep with volumes and snapshots,
//! * [`lab_reports`]: measurements of the lab on the array,
//! * [`protection`]: what groups do by their [`schedule`] and their [`retention`],
//! * [`salvaged`]: names for what is salvaged from a damaged pool,
//! * `time`: the time that passes before something is eradicated,
//! * [`backing`]: what is needed of the store,
//! * [`error`]: why a change is refused.

mod accounting;
pub mod alerts;
pub mod audit;
pub mod backing;
pub mod chap;
mod clones;
mod connections;
mod eradication;
pub mod error;
mod groups;
mod host_groups;
mod host_state;
mod hosts;
pub mod identity;
mod initiators;
mod integrity;
pub mod lab_reports;
pub mod limits;
mod moments;
pub mod name;
pub mod personality;
mod ports;
pub mod protection;
mod record;
mod reduction;
pub mod retention;
mod salvaged;
pub mod schedule;
pub mod settings;
mod several;
mod snapshots;
pub mod space;
mod state;
pub mod tags;
mod time;
mod token_rows;
mod token_volume;
pub mod users;
mod volumes;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::VolumeId;
use parking_lot::{Mutex, RwLock};
use store::Change;

pub use accounting::{Accounted, ObjectSpace, PoolFigures, PoolSpace};
pub use alerts::{Alert, AlertCode, AlertState, Condition, Seen, Severity, Told};
pub use audit::{AuditEntry, Deed};
pub use backing::Backing;
pub use chap::{Chap, ChapChange, ChapUser, Secret};
pub use connections::{CONNECTIONS_SHOWN_MAX, ConnectionInfo};
pub use eradication::ERADICATION_DELAY_S;
pub use error::{Error, Kind};
pub use groups::{GroupChange, GroupInfo};
pub use host_groups::{HostGroupInfo, SharedConnectionInfo};
pub use host_state::REGISTRATIONS_MAX;
pub use hosts::{HostChange, HostInfo, NewHost};
pub use identity::CompanyId;
pub use initiators::Initiator;
pub use integrity::{Damage, DamageReport, DamagedBlocks, Scrubbed};
pub use lab_reports::{LabMeasured, LabReport};
pub use limits::LimitsChange;
pub use moments::GroupSnapshotInfo;
pub use name::{
    GroupName, HostGroupName, HostName, InitiatorName, LabReportName, Suffix, TokenName, UserName,
    VolumeName,
};
pub use personality::Personality;
pub use ports::PORTS_MAX;
pub use protection::Ran;
pub use reduction::{Optimized, Reduction, ReductionChange};
pub use retention::Retention;
pub use salvaged::{SalvagedObject, SalvagedObjects, salvaged_objects};
pub use schedule::SnapshotSchedule;
pub use settings::{Settings, SettingsChange};
pub use several::{CHANGES_MAX, NewCopy};
pub use snapshots::{
    Looked, NewSnapshots, SnapshotFilter, SnapshotGlance, SnapshotInfo, SnapshotSource,
};
pub use space::SpaceThresholds;
pub use store::{OptimizeStatus, PoolStatus, Repair, ScrubStatus, WrittenBytes};
pub use tags::{Tag, TagFilter, Tagged};
pub use users::{NewToken, Role, TokenHash, TokenInfo, UserInfo};
pub use volumes::{NewVolume, SourceInfo, VolumeInfo, VolumeUpdate};

use state::State;
pub use state::shown;

/// The most volumes of an array, destroyed ones included; each costs about 1 KiB of memory.
pub const VOLUMES_MAX: usize = 50_000;
/// How many objects of a list are read while a lock is held.
pub(crate) const LOOKED_AT_ONCE: usize = 250;
/// The most snapshots of an array, including destroyed ones; all may belong to one volume. Each
/// costs about half a KiB of memory.
pub const SNAPSHOTS_MAX: usize = 100_000;
/// The most tags of all volumes and snapshots; each costs up to 2 KiB of memory.
pub const TAGS_MAX: usize = 100_000;
/// The most groups of an array.
pub const GROUPS_MAX: usize = 1_000;
/// The most volumes that are snapshotted together: their records must fit one commit of the store.
pub const GROUP_MEMBERS_MAX: usize = 512;
/// The most hosts of an array; each costs about 4 KiB of memory.
pub const HOSTS_MAX: usize = 10_000;
/// The most host groups of an array.
pub const HOST_GROUPS_MAX: usize = 1_000;
/// The most initiator names of a host: their record must fit one value of the store.
pub const INITIATORS_PER_HOST_MAX: usize = 64;
/// The lowest LUN of a volume. LUN 0 stays free, as hosts and clients expect.
pub const LUN_MIN: u16 = 1;
/// The highest LUN: the last of the flat space addressing method (SAM-5 4.7.7.4).
pub const LUN_MAX: u16 = 16_383;

/// The objects of an array. Shared by all threads; changes wait for each other, but readers never
/// wait for a commit.
pub struct Array {
    backing: Arc<dyn Backing>,
    state: RwLock<State>,
    /// Held from checking a change until it is shown, so that changes are serialised.
    turn: Mutex<()>,
    /// See [`Array::token_volume`].
    token_volume: VolumeId,
    /// The newest generation in `state`, readable without its lock.
    generation: AtomicU64,
    /// Eradicated volumes that the front end has not fetched yet.
    gone: Mutex<Vec<VolumeId>>,
    /// The state of [`Array::run_due`].
    turns: Mutex<protection::Turns>,
}

impl std::fmt::Debug for Array {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Array").field("generation", &self.generation()).finish_non_exhaustive()
    }
}

/// How many objects there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Volumes that are not destroyed.
    pub volumes: usize,
    /// Snapshots that are not destroyed.
    pub snapshots: usize,
    /// Volumes and snapshots that are destroyed and not eradicated yet.
    pub destroyed: usize,
    /// Hosts.
    pub hosts: usize,
    /// Connections, of hosts and of host groups.
    pub connections: usize,
}

impl Array {
    /// Loads the array from its store. `write_cache` is what protocols report for every volume
    /// (WCE): whether the store acknowledges writes before they are durable.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the stored objects contradict each other, or were written by a newer
    /// version; those of the store if a new pool is prepared.
    pub fn open(backing: Arc<dyn Backing>, write_cache: bool) -> Result<Self, Error> {
        let state = State::load(backing.as_ref(), write_cache)?;
        state.keep_adopted(backing.as_ref())?;
        let token_volume = match state.token_volume {
            Some(id) => id,
            None => token_volume::make(backing.as_ref())?,
        };
        let generation = AtomicU64::new(state.generation);
        let (state, turn, gone) = (RwLock::new(state), Mutex::new(()), Mutex::default());
        let turns = Mutex::default();
        Ok(Self { backing, state, turn, token_volume, generation, gone, turns })
    }

    /// The names of all volumes, including destroyed ones, after the checks of [`Array::open`].
    /// Nothing is written, not even what [`Array::open`] prepares in a new pool.
    ///
    /// # Errors
    /// [`Error::Damaged`] if the stored objects contradict each other, or were written by a newer
    /// version.
    pub fn volume_names(backing: &dyn Backing) -> Result<BTreeMap<VolumeId, String>, Error> {
        let state = State::load(backing, false)?;
        let names = state.volumes.iter();
        Ok(names.map(|(id, entry)| (*id, entry.record.name.to_string())).collect())
    }

    /// Goes up with every change that an initiator could notice: a cheap way to see whether any
    /// [`Array::lun_map`] may have changed.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    /// How many objects there are.
    pub fn counts(&self) -> Counts {
        let state = self.state.read();
        Counts {
            volumes: state.live_volumes().count(),
            snapshots: state.live_volumes().map(|volume| state.live_snapshots(volume)).sum(),
            destroyed: state.doomed.len(),
            hosts: state.hosts.len(),
            connections: state.connection_count,
        }
    }

    /// Checks a change, commits it, and shows it: the only way in which anything changes.
    ///
    /// `plan` reads the state and returns what to commit; `show` applies the same to the state once
    /// it is durable, and can't fail.
    fn change<P, R>(
        &self,
        plan: impl FnOnce(&State) -> Result<(Change, P), Error>,
        show: impl FnOnce(&mut State, P) -> R,
    ) -> Result<R, Error> {
        let _turn = self.turn.lock();
        let (mut change, planned) = plan(&self.state.read())?;
        let (mut entry, mut time) = (None, None);
        if !change.volumes.is_empty() || !change.config.is_empty() {
            entry = self.account(&self.state.read().audit, &mut change)?;
            time = self.state.read().time.due_record();
            change.config.extend(time.map(record::time_row).transpose()?);
            self.backing.change(change)?;
        }
        let mut state = self.state.write();
        if let Some(time) = time {
            state.time.stored(time);
        }
        if let Some(entry) = entry {
            audit::entered(&mut state.audit, entry);
        }
        let shown = show(&mut state, planned);
        self.generation.store(state.generation, Ordering::Release);
        Ok(shown)
    }

    /// Makes several changes of one kind in one commit. Each is planned on the state before the
    /// commit, with the number of changes before it, so no two may concern the same object.
    fn change_all<T, P, R>(
        &self,
        all: impl IntoIterator<Item = T>,
        plan: impl Fn(&State, usize, T) -> Result<(Change, P), Error>,
        show: impl Fn(&mut State, P) -> R,
    ) -> Result<Vec<R>, Error> {
        let plan_all = |state: &State| {
            let (mut whole, mut planned) = (Change::default(), Vec::new());
            for (before, one) in all.into_iter().enumerate() {
                let (change, one) = plan(state, before, one)?;
                whole.volumes.extend(change.volumes);
                whole.config.extend(change.config);
                planned.push(one);
            }
            Ok((whole, planned))
        };
        self.change(plan_all, |state, planned: Vec<P>| {
            planned.into_iter().map(|one| show(state, one)).collect()
        })
    }
}
