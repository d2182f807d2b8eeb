//! Samples the counters each second into the [`History`].
//!
//! A thread of low priority reads the counters, which are atomics, so no command waits for it. It
//! takes the lock of the list of paths for a few of them at a time, and only when there are new
//! ones.

mod done;
mod file;
mod space;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use array::Array;
use front::counters::{Counters, PathCounters, PathKey};
use history::{Activity, Capacity, GAUGES, Gauge, History, Object, Tick};
use sys::Clock;
use sys::attendant::Attendant;
use sys::wall::now_ms;

use done::Done;
use space::Spaces;

/// The time between two samples.
const INTERVAL: Duration = Duration::from_secs(1);
/// The number of samples between two checks of the pool's capacity, and of eradicated volumes.
const LOOK_EVERY: u64 = 10;
/// The number of paths that are read while the lock is held.
const PIECE: usize = 64;

/// Samples until it is dropped; then it writes the rest.
pub struct Sampler {
    thread: Option<Attendant>,
    history: Arc<History>,
}

impl Sampler {
    /// Opens the history of a pool in a directory, and continues it.
    ///
    /// # Errors
    /// If no thread can be created.
    pub fn start(
        directory: Option<&Path>,
        array: Arc<Array>,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let history = Arc::new(match directory {
            Some(directory) => file::open(directory, array.pool().pool_id),
            None => History::not_kept("there is no directory next to the pool".into()),
        });
        let mut samples = Samples::new(array.clone(), counters);
        let mut spaces = Spaces::new(array);
        let (clock, its_history, mut failed) = (Clock::start(), history.clone(), false);
        let mut last = clock.now();
        let thread = Attendant::start("history", Arc::default(), move |_| {
            let now = clock.now();
            let covered = now.saturating_sub(last);
            if covered >= INTERVAL {
                last = now;
                let tick = samples.take(now_ms(), covered);
                let written = its_history.record(tick);
                let written = written.and(spaces.look(&its_history, now));
                // Logged once, until it works again.
                if let Err(error) = &written
                    && !failed
                {
                    tracing::warn!("samples of the history are lost: {error}");
                }
                failed = written.is_err();
            }
            (last + INTERVAL).saturating_sub(clock.now()).max(Duration::from_millis(1))
        })?;
        Ok(Self { thread: Some(thread), history })
    }

    /// Returns the history that it writes.
    pub fn history(&self) -> &Arc<History> {
        &self.history
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        drop(self.thread.take());
        if let Err(error) = self.history.save() {
            tracing::warn!("the last samples of the history are lost: {error}");
        }
    }
}

/// The counters of a path, and their previous values.
struct Watched {
    path: Arc<PathCounters>,
    host: Option<u64>,
    before: Done,
}

/// Converts counters to ticks.
struct Samples {
    array: Arc<Array>,
    counters: Arc<Counters>,
    paths: BTreeMap<PathKey, Watched>,
    /// The previous values of each port.
    ports: Vec<Done>,
    /// The generation of the array when the hosts of the paths were looked up.
    generation: Option<u64>,
    taken: u64,
}

impl Samples {
    fn new(array: Arc<Array>, counters: Arc<Counters>) -> Self {
        let (paths, ports) = (BTreeMap::new(), Vec::new());
        Self { array, counters, paths, ports, generation: None, taken: 0 }
    }

    /// Returns the activity since the last call, a time of `covered`.
    fn take(&mut self, now_ms: u64, covered: Duration) -> Tick {
        let looks = self.taken.is_multiple_of(LOOK_EVERY);
        self.taken += 1;
        self.find_paths();
        if looks {
            self.retire_gone();
        }
        let covered_ms = u64::try_from(covered.as_millis()).unwrap_or(u64::MAX);
        let mut array = Activity::default();
        let mut objects: BTreeMap<Object, Activity> = BTreeMap::new();
        for ((_, volume), watched) in &mut self.paths {
            let Some(done) = watched.before.advance_to(&watched.path) else { continue };
            array.merge(&done);
            let volume = volume.map(|id| Object::Volume(id.0));
            for object in volume.into_iter().chain(watched.host.map(Object::Host)) {
                objects.entry(object).or_default().merge(&done);
            }
        }
        objects.extend(self.through_ports());
        for activity in objects.values_mut() {
            *activity = activity.with_peaks(covered_ms);
        }
        Tick {
            now_ms,
            covered_ms,
            array: array.with_peaks(covered_ms),
            objects,
            capacity: looks.then(|| capacity(&self.array)),
        }
    }

    /// Returns the activity of each port that was used.
    fn through_ports(&mut self) -> Vec<(Object, Activity)> {
        let now: Vec<Done> = done::of_ports(&self.counters);
        self.ports.resize_with(now.len(), Done::default);
        let ports = self.counters.port_ids().iter().zip(&now).zip(&mut self.ports);
        let since = ports.filter_map(|((id, now), before)| {
            let done = now.since(before)?;
            *before = now.clone();
            Some((Object::Port(u64::from(*id)), done))
        });
        since.collect()
    }

    /// Adds new paths, and looks up their hosts if these may have changed.
    fn find_paths(&mut self) {
        let generation = Some(self.array.generation());
        let moved = generation != self.generation;
        if self.counters.path_count() != self.paths.len() {
            let mut after: Option<PathKey> = None;
            loop {
                let found = self.counters.some_paths(after.as_ref(), PIECE);
                let Some((last, _)) = found.last() else { break };
                after = Some(last.clone());
                for (key, path) in found {
                    let host = self.array.host_id(&key.0);
                    let before = Done::default();
                    self.paths.entry(key).or_insert(Watched { path, host, before });
                }
            }
        }
        if moved {
            for ((initiator, _), watched) in &mut self.paths {
                watched.host = self.array.host_id(initiator);
            }
            self.generation = generation;
        }
    }

    /// Drops the counters of eradicated volumes. Their values are added to the counters of their
    /// initiators without a volume, and must not be counted there as new activity.
    fn retire_gone(&mut self) {
        let is_gone = |id| self.array.volume_name(id).is_none();
        let gone = self.paths.keys().filter(|(_, volume)| volume.is_some_and(is_gone));
        let gone: Vec<PathKey> = gone.cloned().collect();
        for key in gone {
            if !self.counters.retire(&key, &self.paths[&key].path) {
                // A session still uses it: retry next time.
                continue;
            }
            let Some(Watched { host, before, .. }) = self.paths.remove(&key) else { continue };
            let path = self.counters.path(&key.0, None);
            let rest = Watched { path, host, before: Done::default() };
            let rest = self.paths.entry((key.0, None)).or_insert(rest);
            rest.before.add(&before);
        }
    }
}

/// Returns the capacity of the pool.
fn capacity(array: &Array) -> Capacity {
    let (pool, figures) = (array.pool(), array.pool_space().figures);
    let of = |name: &str| match name {
        "capacity" => Some(pool.capacity_bytes),
        "used" => Some(pool.used_bytes),
        "data" => Some(pool.data_bytes),
        "provisioned" => Some(pool.provisioned_bytes),
        "mapped" => Some(pool.mapped_bytes),
        "unique" => figures.map(|figures| figures.unique_bytes),
        "shared" => figures.map(|figures| figures.shared_bytes),
        "snapshots" => figures.map(|figures| figures.snapshots_bytes),
        "system" => figures.map(|figures| figures.system_bytes),
        _ => None,
    };
    Capacity(GAUGES.map(|name| of(name).map(Gauge::once).unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use array::{HostName, InitiatorName, NewHost, NewVolume, Reduction, VolumeName};
    use block::{LogicalBlockSize, VolumeId, VolumeLimits};

    use super::*;
    use front::counters::Class;

    #[test]
    fn classes_are_in_the_stored_order() {
        assert_eq!(Class::ALL.map(Class::name), history::CLASSES);
        assert_eq!(front::counters::COMMAND_LATENCY_BOUNDS_US, history::LATENCY_BOUNDS_US);
    }

    /// Returns an array with a host, and its counters.
    fn watched() -> (tempfile::TempDir, Arc<Array>, Arc<Counters>, Samples, Object) {
        let directory = tempfile::tempdir().unwrap();
        let disk = sys::FileDisk::create(&directory.path().join("pool"), 512 << 20).unwrap();
        store::Store::create(&disk, &[7; 64]).unwrap();
        let store = store::Store::open(Arc::new(disk), store::OpenOptions::default()).unwrap();
        let array = Arc::new(Array::open(Arc::new(store), false).unwrap());
        let host = array.create_host(NewHost {
            name: HostName::new("h").unwrap(),
            initiators: vec![InitiatorName::new("iqn.2026-01.com.example:a").unwrap()],
            chap: None,
            personality: None,
            created_ms: 1,
        });
        let counters = Arc::new(Counters::new(1, vec![1]));
        let host = Object::Host(host.unwrap().id);
        let samples = Samples::new(array.clone(), counters.clone());
        (directory, array, counters, samples, host)
    }

    #[test]
    fn activity_counts_for_the_volume_and_for_the_named_host() {
        let (_directory, _, counters, mut samples, host) = watched();
        assert_eq!(samples.take(1, Duration::from_secs(1)).objects, BTreeMap::new());
        let own = counters.path("iqn.2026-01.com.example:a", Some(VolumeId(9)));
        let strange = counters.path("iqn.2026-01.com.example:b", None);
        own.count(Class::Read, true, 4096, Duration::from_micros(300));
        strange.count(Class::Other, false, 0, Duration::ZERO);
        let tick = samples.take(2, Duration::from_millis(500));
        assert_eq!(tick.objects.keys().copied().collect::<Vec<_>>(), [host, Object::Volume(9)]);
        let read = tick.objects[&host].0[0];
        assert_eq!((read.ok, read.bytes, read.per_s_max), (1, 4096, 2));
        assert_eq!(tick.objects[&host].1.percentile_us(0, 99), Some(300));
        own.count(Class::Read, true, 4096, Duration::from_micros(60));
        let next = samples.take(2, Duration::from_millis(500));
        assert_eq!(next.objects[&host].1.percentile_us(0, 99), Some(70), "of this tick only");
        assert_eq!((tick.array.0[0].ok, tick.array.0[6].failed), (1, 1));
        let nothing = samples.take(3, Duration::from_secs(1));
        assert_eq!((nothing.array, nothing.objects.len()), (Activity::default(), 0));
        assert!(tick.capacity.is_none());
    }

    #[test]
    fn counters_of_eradicated_volumes_are_dropped_and_counted_once() {
        let (_directory, array, counters, mut samples, host) = watched();
        let initiator = "iqn.2026-01.com.example:a";
        let volume = array.create_volume(NewVolume {
            name: VolumeName::new("v").unwrap(),
            size_bytes: 1 << 20,
            logical_block: LogicalBlockSize::default(),
            reduction: Reduction::default(),
            limits: VolumeLimits::default(),
            created_ms: 1,
        });
        let path = counters.path(initiator, Some(volume.unwrap().id));
        let read = |count| path.count(Class::Read, true, count, Duration::ZERO);
        // For the interval until it checks again.
        let mut done = || {
            let mut bytes = 0;
            for _ in 0..LOOK_EVERY {
                let tick = samples.take(2, Duration::from_secs(1));
                let of_host = tick.objects.get(&host).map_or(0, |done| done.0[0].bytes);
                assert_eq!(of_host, tick.array.0[0].bytes);
                bytes += of_host;
            }
            (bytes, samples.paths.len())
        };
        read(512);
        assert_eq!(done(), (512, 1));
        array.destroy_volume("v", 2).unwrap();
        read(1024);
        assert_eq!(done(), (1024, 1));
        array.eradicate_volume("v").unwrap();
        // The session has not noticed yet: what it counts is not lost.
        read(2048);
        assert_eq!(done(), (2048, 1));
        read(4096);
        drop(path);
        assert_eq!(done(), (4096, 1));
        assert_eq!((counters.path_count(), done()), (1, (0, 1)));
        let rest = counters.paths().remove(0);
        assert_eq!((rest.volume, rest.classes[0].bytes), (None, 7680));
        counters.path(initiator, None).count(Class::Other, false, 0, Duration::ZERO);
        assert_eq!(done(), (0, 1));
    }
}
