//! What the front end has done: the counters that hosts show (esxtop), seen from the array.

mod class;
mod copies;
mod latency;
mod retired;
mod turns;
mod wire;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use block::VolumeId;
use parking_lot::RwLock;

pub use class::Class;
pub use copies::CopySnapshot;
pub use latency::{COMMAND_LATENCY_BOUNDS_US, CommandLatencies};
pub use turns::TurnSnapshot;
pub use wire::{WireCounters, WireSnapshot};

use super::device::{DeviceCounters, DeviceSnapshot};
pub(crate) use copies::Copied;
use copies::CopyCounters;
use latency::LatencyCounters;
use turns::TurnCounters;

/// What was done of one class. Counts from the start of the process.
#[derive(Debug, Default)]
struct ClassCounters {
    ok: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    ok_latency_us: AtomicU64,
    failed_latency_us: AtomicU64,
    largest_bytes: AtomicU64,
    /// Of the successful ones.
    latencies: LatencyCounters,
}

/// The same at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSnapshot {
    /// Commands that ended with GOOD (or CONDITION MET).
    pub ok: u64,
    /// Commands that ended otherwise: an ATS miscompare too.
    pub failed: u64,
    /// Bytes of volumes that the successful ones read, wrote, copied, zeroed or deallocated.
    pub bytes: u64,
    /// The sum of the latencies of the successful ones, from the last byte received to the answer.
    pub ok_latency_us: u64,
    /// The same of those that failed.
    pub failed_latency_us: u64,
    /// The bytes of the longest successful one.
    pub largest_bytes: u64,
}

impl ClassSnapshot {
    /// What was done since `before`; the longest one is of all times.
    pub fn since(self, before: Self) -> Self {
        Self {
            ok: self.ok.saturating_sub(before.ok),
            failed: self.failed.saturating_sub(before.failed),
            bytes: self.bytes.saturating_sub(before.bytes),
            ok_latency_us: self.ok_latency_us.saturating_sub(before.ok_latency_us),
            failed_latency_us: self.failed_latency_us.saturating_sub(before.failed_latency_us),
            largest_bytes: self.largest_bytes,
        }
    }

    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            ok: self.ok + other.ok,
            failed: self.failed + other.failed,
            bytes: self.bytes + other.bytes,
            ok_latency_us: self.ok_latency_us + other.ok_latency_us,
            failed_latency_us: self.failed_latency_us + other.failed_latency_us,
            largest_bytes: self.largest_bytes.max(other.largest_bytes),
        }
    }
}

/// What one initiator did to one volume, or all of them through one port.
#[derive(Debug, Default)]
pub struct PathCounters {
    classes: [ClassCounters; Class::ALL.len()],
    reserves: AtomicU64,
    zeros_bytes: AtomicU64,
    copied_from: CopyCounters,
    copied_to: CopyCounters,
}

impl PathCounters {
    /// Counts a command that has come, if it locks the whole volume for its initiator.
    pub fn count_reserve(&self, locks_volume: bool) {
        if locks_volume {
            self.reserves.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts zeros that a write has carried, as long as those that WRITE SAME is for.
    pub(super) fn count_zeros(&self, bytes: u64) {
        if bytes > 0 {
            self.zeros_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts a command that has ended.
    pub fn count(&self, class: Class, ok: bool, bytes: u64, latency: Duration) {
        let counters = &self.classes[class as usize];
        let latency_us = latency.as_micros() as u64;
        if ok {
            counters.ok.fetch_add(1, Ordering::Relaxed);
            counters.bytes.fetch_add(bytes, Ordering::Relaxed);
            counters.ok_latency_us.fetch_add(latency_us, Ordering::Relaxed);
            counters.latencies.count(latency_us);
            raise(&counters.largest_bytes, bytes);
        } else {
            counters.failed.fetch_add(1, Ordering::Relaxed);
            counters.failed_latency_us.fetch_add(latency_us, Ordering::Relaxed);
        }
    }

    /// How long the successful ones of a class took; `None` if there were none.
    pub fn latencies(&self, class: Class) -> Option<CommandLatencies> {
        self.classes[class as usize].latencies.snapshot()
    }

    /// What was counted so far, in the order of [`Class::ALL`].
    pub fn snapshot(&self) -> [ClassSnapshot; Class::ALL.len()] {
        Class::ALL.map(|class| {
            let counters = &self.classes[class as usize];
            ClassSnapshot {
                ok: counters.ok.load(Ordering::Relaxed),
                failed: counters.failed.load(Ordering::Relaxed),
                bytes: counters.bytes.load(Ordering::Relaxed),
                ok_latency_us: counters.ok_latency_us.load(Ordering::Relaxed),
                failed_latency_us: counters.failed_latency_us.load(Ordering::Relaxed),
                largest_bytes: counters.largest_bytes.load(Ordering::Relaxed),
            }
        })
    }
}

/// What one initiator did to one volume, at one moment.
#[derive(Clone, Debug)]
pub struct PathSnapshot {
    /// The iSCSI name of the initiator.
    pub initiator: String,
    /// The volume; `None` for commands to a LUN that the initiator has no volume at, and for what
    /// was done to volumes that are gone.
    pub volume: Option<VolumeId>,
    /// In the order of [`Class::ALL`].
    pub classes: [ClassSnapshot; Class::ALL.len()],
    /// Commands that locked the whole volume (RESERVE).
    pub reserves: u64,
    /// Zeros that writes of 64 KiB and more carried, instead of one WRITE SAME, in bytes.
    pub zeros_bytes: u64,
    /// Copies that read the volume, whichever LUN the command was sent to.
    pub copied_from: CopySnapshot,
    /// Copies that wrote it.
    pub copied_to: CopySnapshot,
}

/// Raises a maximum: a look in nearly all cases.
pub(super) fn raise(most: &AtomicU64, value: u64) {
    if value > most.load(Ordering::Relaxed) {
        most.fetch_max(value, Ordering::Relaxed);
    }
}

/// An initiator and a volume.
pub type PathKey = (String, Option<VolumeId>);
type Paths = BTreeMap<PathKey, Arc<PathCounters>>;

/// All counters of the front end.
#[derive(Debug)]
pub struct Counters {
    wires: Vec<WireCounters>,
    /// The relative identifiers of the ports, in the order in which they are counted.
    port_ids: Vec<u16>,
    /// By thread, so that none waits for another's cache line, and by port.
    ports: Vec<Vec<PathCounters>>,
    paths: RwLock<Paths>,
    /// The pool's device, by thread.
    devices: Vec<DeviceCounters>,
    turns: Vec<TurnCounters>,
}

impl Counters {
    /// Of so many front ends, and of ports with these relative identifiers.
    pub fn new(threads: usize, port_ids: Vec<u16>) -> Self {
        let wires = (0..threads).map(|_| WireCounters::default()).collect();
        let of_thread = || (0..port_ids.len()).map(|_| PathCounters::default()).collect();
        let ports = (0..threads).map(|_| of_thread()).collect();
        let devices = (0..threads).map(|_| DeviceCounters::default()).collect();
        let turns = (0..threads).map(|_| TurnCounters::default()).collect();
        Self { wires, port_ids, ports, paths: RwLock::default(), devices, turns }
    }

    /// The turns of one thread, which alone changes them.
    pub(super) fn turn_of(&self, thread: usize) -> &TurnCounters {
        &self.turns[thread]
    }

    /// What one thread asks of the device, which alone changes it.
    pub(super) fn device_of(&self, thread: usize) -> &DeviceCounters {
        &self.devices[thread]
    }

    /// What all threads ask of the device.
    pub fn device(&self) -> DeviceSnapshot {
        let all = self.devices.iter().map(DeviceCounters::snapshot);
        all.fold(DeviceSnapshot::default(), DeviceSnapshot::plus)
    }

    /// Those of a port, by its relative identifier, in one thread, which alone changes them.
    pub(super) fn port_of(&self, thread: usize, port: u16) -> Option<&PathCounters> {
        let at = self.port_ids.iter().position(|id| *id == port)?;
        self.ports.get(thread)?.get(at)
    }

    /// Counts a copy that has ended well, at both of its volumes.
    pub(super) fn count_copy(&self, initiator: &str, copy: &Copied) {
        self.path(initiator, Some(copy.source)).copied_from.count(copy.bytes);
        self.path(initiator, Some(copy.destination)).copied_to.count(copy.bytes);
    }

    /// The relative identifiers of the ports, in the order in which they are counted.
    pub fn port_ids(&self) -> &[u16] {
        &self.port_ids
    }

    /// What went through each port, each in the order of [`Class::ALL`].
    pub fn ports(&self) -> Vec<[ClassSnapshot; Class::ALL.len()]> {
        let ports = self.ports.first().map_or(0, Vec::len);
        let one = |port: usize| {
            let of_threads = self.ports.iter().filter_map(|thread| thread.get(port));
            of_threads.fold([ClassSnapshot::default(); Class::ALL.len()], |mut sum, counters| {
                for (sum, part) in sum.iter_mut().zip(counters.snapshot()) {
                    *sum = sum.plus(part);
                }
                sum
            })
        };
        (0..ports).map(one).collect()
    }

    /// How long the successful commands of a class took that came through a port, by its place, or
    /// through any.
    pub fn port_latencies(&self, class: Class, port: Option<usize>) -> CommandLatencies {
        let mut sum = CommandLatencies::default();
        for thread in &self.ports {
            let wanted =
                thread.iter().enumerate().filter(|(at, _)| port.is_none_or(|it| it == *at));
            for more in wanted.filter_map(|(_, counters)| counters.latencies(class)) {
                latency::add(&mut sum, &more);
            }
        }
        sum
    }

    /// A connection was given to a front end.
    pub fn connection_opened(&self, thread: usize) {
        self.wire_of(thread).connections.fetch_add(1, Ordering::Relaxed);
    }

    /// It has ended.
    pub fn connection_closed(&self, thread: usize) {
        self.wire_of(thread).connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// What one front end moves, which alone changes it.
    pub fn wire_of(&self, thread: usize) -> &WireCounters {
        &self.wires[thread]
    }

    /// Those of an initiator and a volume; to be kept by the connection, not asked a command.
    pub fn path(&self, initiator: &str, volume: Option<VolumeId>) -> Arc<PathCounters> {
        let key = (initiator.to_owned(), volume);
        if let Some(path) = self.paths.read().get(&key) {
            return path.clone();
        }
        self.paths.write().entry(key).or_default().clone()
    }

    /// What was moved over sockets.
    pub fn wire(&self) -> WireSnapshot {
        let sum = |field: fn(&WireCounters) -> &AtomicU64| {
            self.wires.iter().map(|wire| field(wire).load(Ordering::Relaxed)).sum()
        };
        WireSnapshot {
            received_bytes: sum(|wire| &wire.received_bytes),
            sent_bytes: sum(|wire| &wire.sent_bytes),
            connections: sum(|wire| &wire.connections),
        }
    }

    /// What each initiator did to each volume, in the order of their names.
    pub fn paths(&self) -> Vec<PathSnapshot> {
        self.paths_with(|path, _| path)
    }

    /// The same, each as `of` makes it, which is also given the counters.
    pub fn paths_with<T>(&self, of: impl Fn(PathSnapshot, &PathCounters) -> T) -> Vec<T> {
        let paths = self.paths.read();
        let snapshot = |((initiator, volume), path): (&PathKey, &Arc<PathCounters>)| {
            let snapshot = PathSnapshot {
                initiator: initiator.clone(),
                volume: *volume,
                classes: path.snapshot(),
                reserves: path.reserves.load(Ordering::Relaxed),
                zeros_bytes: path.zeros_bytes.load(Ordering::Relaxed),
                copied_from: path.copied_from.snapshot(),
                copied_to: path.copied_to.snapshot(),
            };
            of(snapshot, path)
        };
        paths.iter().map(snapshot).collect()
    }

    /// How many initiators did something to how many volumes.
    pub fn path_count(&self) -> usize {
        self.paths.read().len()
    }

    /// Up to `limit` of an initiator and a volume, from the first one behind `after`.
    pub fn some_paths(
        &self,
        after: Option<&PathKey>,
        limit: usize,
    ) -> Vec<(PathKey, Arc<PathCounters>)> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let paths = self.paths.read();
        let behind = paths.range::<PathKey, _>((from, Bound::Unbounded));
        behind.take(limit).map(|(key, path)| (key.clone(), path.clone())).collect()
    }

    /// What all initiators did to one volume, of one class.
    fn of_volume(&self, volume: VolumeId, class: Class) -> ClassSnapshot {
        let paths = self.paths.read();
        let of_it = paths.iter().filter(|((_, of), _)| *of == Some(volume));
        of_it
            .map(|(_, path)| path.snapshot()[class as usize])
            .fold(ClassSnapshot::default(), ClassSnapshot::plus)
    }

    /// What all initiators did to all volumes, in the order of [`Class::ALL`].
    pub fn totals(&self) -> [ClassSnapshot; Class::ALL.len()] {
        let mut totals = [ClassSnapshot::default(); Class::ALL.len()];
        for path in self.paths.read().values() {
            for (total, part) in totals.iter_mut().zip(path.snapshot()) {
                *total = total.plus(part);
            }
        }
        totals
    }
}

impl scsi::Statistics for Counters {
    fn of(&self, volume: VolumeId) -> scsi::UnitStatistics {
        let read = self.of_volume(volume, Class::Read);
        let write = self.of_volume(volume, Class::Write);
        scsi::UnitStatistics {
            reads: read.ok,
            writes: write.ok,
            read_bytes: read.bytes,
            written_bytes: write.bytes,
            read_us: read.ok_latency_us,
            write_us: write.ok_latency_us,
        }
    }
}

#[cfg(test)]
mod tests;
