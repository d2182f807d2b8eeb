//! An observation: counters and states at one moment.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use api::{CatchingUp, DeviceHealth};
use array::Array;
use block::Offload;
use front::counters::{Class, ClassSnapshot, PathSnapshot};
use front::sessions::{Refused, SessionSnapshot};
use front::{Counters, DeviceSnapshot};
use network::{ClockState, Directories, Timekeeper};
use segments::DeviceStatus;
use store::Store;

use super::members;
use crate::health::Health;
use crate::notify::Notifier;

/// A session that ended this recently counts as present: some hosts log in for each command.
const JUST_ENDED_MS: u64 = 30_000;
/// The number of hosts read at once, so that no lock is held for long.
const HOSTS_AT_ONCE: usize = 250;

/// The certificate of management.
#[derive(Clone, Debug)]
pub struct Certificate {
    /// Its file.
    pub path: String,
    /// When it ends, in milliseconds since 1970.
    pub ends_ms: u64,
}

/// One of several devices of the pool, with its progress if it catches up and that is known.
pub type Member = (DeviceStatus, Option<CatchingUp>);

/// The observable state of how hosts are served. No call delays a command.
pub trait Observed: Send + Sync {
    /// Returns all sessions that carry commands.
    fn sessions(&self) -> Vec<SessionSnapshot>;

    /// Returns the last ended session of each initiator and portal, with its end in milliseconds
    /// since 1970.
    fn ended_sessions(&self) -> Vec<(u64, SessionSnapshot)>;

    /// Returns the refused logins since the start.
    fn refused(&self) -> BTreeMap<String, Refused>;

    /// Returns current failures in the background, and why.
    fn troubles(&self) -> BTreeMap<&'static str, String>;

    /// Returns whether the store accepts no more writes.
    fn has_failed(&self) -> bool;

    /// Returns the name of the other controller, if there is one and it is not present.
    fn missing_controller(&self) -> Option<&'static str>;

    /// Returns whether that one is kept down on request.
    fn is_other_held(&self) -> bool;
}

/// The sources of observations.
pub struct Sources {
    /// The objects of the array.
    pub array: Arc<Array>,
    /// The counters of the front end.
    pub counters: Arc<Counters>,
    /// Users and failures of the front end.
    pub observed: Box<dyn Observed>,
    /// The number of portals.
    pub portals: usize,
    /// The store on the pool's device.
    pub store: Arc<Store>,
    /// The pool's device or file, or the common name of several.
    pub device: String,
    /// Returns the devices, if there are several, with the progress of those that catch up.
    pub members: Box<dyn Fn() -> Vec<Member> + Send>,
    /// The health that devices report.
    pub health: Arc<Health>,
    /// Returns the current certificate; `None` if management is not encrypted.
    pub certificate: Box<dyn Fn() -> Option<Certificate> + Send>,
    /// The source of the clock's offset.
    pub time: Arc<Timekeeper>,
    /// The directory service.
    pub directories: Arc<Directories>,
}

/// An observation.
#[derive(Clone, Debug, Default)]
pub(super) struct Look {
    pub now_ms: u64,
    pub uptime_ms: u64,
    pub used_bytes: u64,
    pub capacity_bytes: u64,
    /// In percent, ascending.
    pub thresholds: Vec<u8>,
    /// The number of damaged blocks, and whether a scrub pass has finished since the start.
    pub damaged: u64,
    pub is_scrubbed: bool,
    pub device: String,
    /// The devices, if there are several.
    pub members: Vec<Member>,
    /// The health that each device reports, as far as it does.
    pub healths: Vec<(String, DeviceHealth)>,
    /// Transfers since the start.
    pub transfers: DeviceSnapshot,
    /// The number of retries of refused writes.
    pub retries: u64,
    /// The number of times that refused data was moved elsewhere.
    pub moved_writes: u64,
    /// The number of failed flushes.
    pub failed_flushes: u64,
    pub has_failed: bool,
    /// The other controller, if there is one and it is not present.
    pub missing_controller: Option<&'static str>,
    /// Whether it is kept down on request.
    pub is_stopped: bool,
    pub troubles: BTreeMap<&'static str, String>,
    /// The result of the last due snapshots, of each group with a schedule.
    pub snapshots: Vec<(String, Option<Result<(), String>>)>,
    /// The last jump of the clock, if it was within a day.
    pub clock_jump_ms: Option<i64>,
    /// The state of the clock according to time servers.
    pub clock: ClockState,
    /// For how long no server of the directory service could be reached, and why.
    pub directory: Option<(Duration, String)>,
    pub portals: usize,
    pub hosts: Vec<HostLook>,
    pub refused: BTreeMap<String, Refused>,
    pub certificate: Option<Certificate>,
    /// Each destination, and why it fails, if it does.
    pub notifications: Vec<(String, Option<String>)>,
}

/// An observation of a host.
#[derive(Clone, Debug, Default)]
pub(super) struct HostLook {
    pub name: String,
    /// The number of connected volumes.
    pub connections: usize,
    pub sessions: usize,
    /// The portals on which it has sessions.
    pub portals: BTreeSet<u16>,
    /// When its last ended session ended, in milliseconds since 1970.
    pub last_logout_ms: Option<u64>,
    /// The portals of sessions that ended within [`JUST_ENDED_MS`].
    pub portals_left: BTreeSet<u16>,
    /// Its counters since the start.
    pub done: Done,
    /// Offloads that are off for some of its volumes; only of hosts with sessions.
    pub off: BTreeSet<&'static str>,
}

impl HostLook {
    pub(super) fn class(&self, class: Class) -> ClassSnapshot {
        self.done.classes[class as usize]
    }
}

/// Counters since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Done {
    /// In the order of [`Class::ALL`].
    pub classes: [ClassSnapshot; Class::ALL.len()],
    /// Commands that reserved whole volumes.
    pub reserves: u64,
    /// Zeros sent as data, for which WRITE SAME would do.
    pub zeros_bytes: u64,
}

impl Done {
    fn add(&mut self, other: &Self) {
        self.reserves += other.reserves;
        self.zeros_bytes += other.zeros_bytes;
        for (sum, part) in self.classes.iter_mut().zip(other.classes) {
            *sum = sum.plus(part);
        }
    }
}

/// The ended sessions of an initiator.
#[derive(Default)]
struct Left {
    last_ms: u64,
    /// The portals of sessions that ended recently.
    portals: BTreeSet<u16>,
}

impl Left {
    fn add(&mut self, ended_ms: u64, portal: u16, now_ms: u64) {
        self.last_ms = self.last_ms.max(ended_ms);
        if now_ms.saturating_sub(ended_ms) < JUST_ENDED_MS {
            self.portals.insert(portal);
        }
    }
}

impl Sources {
    pub(super) fn look(&self, now_ms: u64, uptime_ms: u64, notifier: &Notifier) -> Look {
        let pool = self.array.pool();
        let scrub = self.array.scrub();
        let members = (self.members)();
        Look {
            now_ms,
            uptime_ms,
            used_bytes: pool.used_bytes,
            capacity_bytes: pool.capacity_bytes,
            thresholds: self.array.settings().space_thresholds.percents().to_vec(),
            damaged: scrub.damaged,
            is_scrubbed: scrub.pass > 0 && !scrub.running,
            device: self.device.clone(),
            healths: self.healths(&members),
            members,
            transfers: self.counters.device(),
            retries: self.store.device_retries(),
            moved_writes: self.store.moved_writes(),
            failed_flushes: self.store.failed_flushes(),
            has_failed: self.observed.has_failed(),
            missing_controller: self.observed.missing_controller(),
            is_stopped: self.observed.is_other_held(),
            troubles: self.observed.troubles(),
            snapshots: self.array.last_snapshots(),
            clock_jump_ms: self.array.clock_jump_ms(),
            clock: self.time.clock(),
            directory: self.directories.trouble(),
            portals: self.portals,
            hosts: self.hosts(now_ms),
            refused: self.observed.refused(),
            certificate: (self.certificate)(),
            notifications: notifier.troubles(),
        }
    }

    fn healths(&self, members: &[Member]) -> Vec<(String, DeviceHealth)> {
        let of = |device: &str, component: String| Some((component, self.health.of(device)?));
        if members.is_empty() {
            return of(&self.device, self.device.clone()).into_iter().collect();
        }
        members.iter().filter_map(|(device, _)| of(&device.name, members::name(device))).collect()
    }

    fn hosts(&self, now_ms: u64) -> Vec<HostLook> {
        let mut left: HashMap<String, Left> = HashMap::new();
        for (ended_ms, session) in self.observed.ended_sessions() {
            left.entry(session.initiator).or_default().add(ended_ms, session.portal, now_ms);
        }
        let mut of: HashMap<String, (usize, BTreeSet<u16>)> = HashMap::new();
        for session in self.observed.sessions() {
            let (count, portals) = of.entry(session.initiator).or_default();
            *count += 1;
            portals.insert(session.portal);
        }
        let mut paths: HashMap<String, Done> = HashMap::new();
        for path in self.counters.paths() {
            let PathSnapshot { initiator, classes, reserves, zeros_bytes, .. } = path;
            paths.entry(initiator).or_default().add(&Done { classes, reserves, zeros_bytes });
        }
        let mut hosts = Vec::new();
        let mut after: Option<String> = None;
        loop {
            let found = self.array.hosts(after.as_deref(), HOSTS_AT_ONCE);
            let is_last = found.len() < HOSTS_AT_ONCE;
            after = found.last().map(|host| host.name.clone());
            for host in found {
                let mut look =
                    HostLook { connections: host.connection_count, ..HostLook::default() };
                for initiator in &host.initiators {
                    if let Some((sessions, portals)) = of.get(initiator) {
                        look.sessions += sessions;
                        look.portals.extend(portals);
                    }
                    if let Some(left) = left.get(initiator) {
                        look.last_logout_ms = look.last_logout_ms.max(Some(left.last_ms));
                        look.portals_left.extend(&left.portals);
                    }
                    if let Some(done) = paths.get(initiator) {
                        look.done.add(done);
                    }
                }
                if let Some(initiator) = host.initiators.first().filter(|_| look.sessions > 0) {
                    let map = self.array.lun_map(initiator);
                    let off = map.luns.values().flat_map(|volume| volume.offloads.off());
                    look.off = off.map(Offload::name).collect();
                }
                look.name = host.name;
                hosts.push(look);
            }
            if is_last {
                return hosts;
            }
        }
    }
}
