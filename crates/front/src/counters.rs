//! Counters of what the front end has done: those that hosts show (esxtop), seen from the array.

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

/// The counters of one class since the start of the process.
#[derive(Debug, Default)]
struct ClassCounters {
    ok: AtomicU64,
    failed: AtomicU64,
    bytes: AtomicU64,
    ok_latency_us: AtomicU64,
    failed_latency_us: AtomicU64,
    largest_bytes: AtomicU64,
    /// Of successful commands.
    latencies: LatencyCounters,
}

/// A snapshot of these counters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClassSnapshot {
    /// Commands that ended with GOOD (or CONDITION MET).
    pub ok: u64,
    /// Commands that ended with another status, including miscompares of ATS.
    pub failed: u64,
    /// Bytes of volumes that successful commands read, wrote, copied, zeroed or deallocated.
    pub bytes: u64,
    /// The sum of the latencies of successful commands, from the last byte received to the
    /// response.
    pub ok_latency_us: u64,
    /// The sum of the latencies of failed commands.
    pub failed_latency_us: u64,
    /// The length of the longest successful command, in bytes.
    pub largest_bytes: u64,
}

impl ClassSnapshot {
    /// Returns the difference from `before`. The longest command is of all time.
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

    /// Returns the sum of both.
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

/// The counters of one initiator and one volume, or of all of them through one port.
#[derive(Debug, Default)]
pub struct PathCounters {
    classes: [ClassCounters; Class::ALL.len()],
    reserves: AtomicU64,
    zeros_bytes: AtomicU64,
    copied_from: CopyCounters,
    copied_to: CopyCounters,
}

impl PathCounters {
    /// Counts a received command if it reserves the whole volume for its initiator.
    pub fn count_reserve(&self, locks_volume: bool) {
        if locks_volume {
            self.reserves.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts zeros that a write contained, in writes long enough for WRITE SAME to replace.
    pub(super) fn count_zeros(&self, bytes: u64) {
        if bytes > 0 {
            self.zeros_bytes.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    /// Counts a completed command.
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

    /// Returns the latencies of successful commands of a class; `None` if there were none.
    pub fn latencies(&self, class: Class) -> Option<CommandLatencies> {
        self.classes[class as usize].latencies.snapshot()
    }

    /// Returns the current values, in the order of [`Class::ALL`].
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

/// A snapshot of the counters of one initiator and one volume.
#[derive(Clone, Debug)]
pub struct PathSnapshot {
    /// The iSCSI name of the initiator.
    pub initiator: String,
    /// The volume; `None` for commands to a LUN without a volume, and for volumes that are gone.
    pub volume: Option<VolumeId>,
    /// In the order of [`Class::ALL`].
    pub classes: [ClassSnapshot; Class::ALL.len()],
    /// Commands that reserved the whole volume (RESERVE).
    pub reserves: u64,
    /// Bytes of zeros in writes of 64 KiB and more, for which one WRITE SAME would do.
    pub zeros_bytes: u64,
    /// Copies that read the volume, whichever LUN the command was sent to.
    pub copied_from: CopySnapshot,
    /// Copies that wrote the volume.
    pub copied_to: CopySnapshot,
}

/// Raises a maximum. In nearly all cases this is only a load.
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
    /// By thread, to avoid sharing cache lines, and by port.
    ports: Vec<Vec<PathCounters>>,
    paths: RwLock<Paths>,
    /// The counters of the pool's device, by thread.
    devices: Vec<DeviceCounters>,
    turns: Vec<TurnCounters>,
}

impl Counters {
    /// Creates counters for this number of front ends, and ports with these relative identifiers.
    pub fn new(threads: usize, port_ids: Vec<u16>) -> Self {
        let wires = (0..threads).map(|_| WireCounters::default()).collect();
        let of_thread = || (0..port_ids.len()).map(|_| PathCounters::default()).collect();
        let ports = (0..threads).map(|_| of_thread()).collect();
        let devices = (0..threads).map(|_| DeviceCounters::default()).collect();
        let turns = (0..threads).map(|_| TurnCounters::default()).collect();
        Self { wires, port_ids, ports, paths: RwLock::default(), devices, turns }
    }

    /// Returns the turn counters of one thread; only that thread changes them.
    pub(super) fn turn_of(&self, thread: usize) -> &TurnCounters {
        &self.turns[thread]
    }

    /// Returns the device counters of one thread; only that thread changes them.
    pub(super) fn device_of(&self, thread: usize) -> &DeviceCounters {
        &self.devices[thread]
    }

    /// Returns the sum of all threads' device counters.
    pub fn device(&self) -> DeviceSnapshot {
        let all = self.devices.iter().map(DeviceCounters::snapshot);
        all.fold(DeviceSnapshot::default(), DeviceSnapshot::plus)
    }

    /// Returns one thread's counters of a port, by its relative identifier; only that thread
    /// changes them.
    pub(super) fn port_of(&self, thread: usize, port: u16) -> Option<&PathCounters> {
        let at = self.port_ids.iter().position(|id| *id == port)?;
        self.ports.get(thread)?.get(at)
    }

    /// Counts a successful copy at both of its volumes.
    pub(super) fn count_copy(&self, initiator: &str, copy: &Copied) {
        self.path(initiator, Some(copy.source)).copied_from.count(copy.bytes);
        self.path(initiator, Some(copy.destination)).copied_to.count(copy.bytes);
    }

    /// Returns the relative identifiers of the ports, in the order in which they are counted.
    pub fn port_ids(&self) -> &[u16] {
        &self.port_ids
    }

    /// Returns the counters of each port, each in the order of [`Class::ALL`].
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

    /// Returns the latencies of successful commands of a class through a port, by its index, or
    /// through all ports.
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

    /// Counts a connection that was assigned to a front end.
    pub fn connection_opened(&self, thread: usize) {
        self.wire_of(thread).connections.fetch_add(1, Ordering::Relaxed);
    }

    /// Counts the end of a connection.
    pub fn connection_closed(&self, thread: usize) {
        self.wire_of(thread).connections.fetch_sub(1, Ordering::Relaxed);
    }

    /// Returns the socket counters of one front end; only that front end changes them.
    pub fn wire_of(&self, thread: usize) -> &WireCounters {
        &self.wires[thread]
    }

    /// Returns the counters of an initiator and a volume. A connection keeps them, instead of
    /// looking them up for each command.
    pub fn path(&self, initiator: &str, volume: Option<VolumeId>) -> Arc<PathCounters> {
        let key = (initiator.to_owned(), volume);
        if let Some(path) = self.paths.read().get(&key) {
            return path.clone();
        }
        self.paths.write().entry(key).or_default().clone()
    }

    /// Returns the bytes transferred over sockets.
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

    /// Returns snapshots of all paths, sorted by initiator name.
    pub fn paths(&self) -> Vec<PathSnapshot> {
        self.paths_with(|path, _| path)
    }

    /// Maps each path's snapshot and counters with `of`.
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

    /// Returns the number of pairs of initiator and volume that have counters.
    pub fn path_count(&self) -> usize {
        self.paths.read().len()
    }

    /// Returns up to `limit` pairs of initiator and volume, from the first one after `after`.
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

    /// Returns the counters of one class for one volume, of all initiators.
    fn of_volume(&self, volume: VolumeId, class: Class) -> ClassSnapshot {
        let paths = self.paths.read();
        let of_it = paths.iter().filter(|((_, of), _)| *of == Some(volume));
        of_it
            .map(|(_, path)| path.snapshot()[class as usize])
            .fold(ClassSnapshot::default(), ClassSnapshot::plus)
    }

    /// Returns the counters of all initiators and volumes, in the order of [`Class::ALL`].
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
