//! A pool on disks that hang until a test releases them.
//!
//! Each call is made on a thread, with the limit [`PATIENCE`]. That detects calls that never
//! return; tests measure no times.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::{Duration, Instant};

use block::{Frame, FrameMut};
use format::{Features, Geometry, Place, Superblock};
use sys::{Disk, Persist};

use super::tests::{GEOMETRY, Plain, frame, root, states};
use super::workers::Limits;
use super::{Device, DeviceSet, stripes_tests};
use crate::devices::DeviceState::{self, CatchingUp, Out};
use crate::plan::StripePlan;
use crate::segments::Segments;

/// A call that takes longer is blocked.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

pub(super) const LIMITS: Limits = Limits {
    read_late: Duration::from_millis(100),
    transfer: Duration::from_millis(900),
    flush: Duration::from_millis(900),
    alone: Duration::from_millis(900),
    opening: Duration::from_millis(900),
};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Call {
    Read,
    Write,
    Flush,
    Discard,
}

/// Selects the calls that hang, by their offset in bytes.
type Hangs = Box<dyn Fn(Call, u64) -> bool + Send>;

#[derive(Default)]
struct Gate {
    hangs: Option<Hangs>,
    /// The number of hanging calls.
    stuck: usize,
}

/// A disk in memory that hangs on request.
pub(super) struct Hanging {
    pub(super) plain: Arc<Plain>,
    gate: Mutex<Gate>,
    changed: Condvar,
}

impl Hanging {
    fn new() -> Arc<Self> {
        let (gate, changed) = Default::default();
        Arc::new(Self { plain: Plain::new(), gate, changed })
    }

    pub(super) fn hang(&self, hangs: impl Fn(Call, u64) -> bool + Send + 'static) {
        self.gate.lock().unwrap().hangs = Some(Box::new(hangs));
    }

    pub(super) fn hang_in(&self, kind: Call) {
        self.hang(move |call, _| call == kind);
    }

    pub(super) fn release(&self) {
        self.gate.lock().unwrap().hangs = None;
        self.changed.notify_all();
    }

    /// Waits until this many calls hang.
    pub(super) fn wait_stuck(&self, count: usize) {
        let gate = self.gate.lock().unwrap();
        let waited = self.changed.wait_timeout_while(gate, PATIENCE, |gate| gate.stuck != count);
        let stuck = waited.unwrap().0.stuck;
        assert_eq!(stuck, count);
    }

    fn pass(&self, call: Call, at: u64) {
        let mut gate = self.gate.lock().unwrap();
        gate.stuck += 1;
        self.changed.notify_all();
        let is_stuck = |gate: &mut Gate| gate.hangs.as_ref().is_some_and(|hangs| hangs(call, at));
        gate = self.changed.wait_while(gate, is_stuck).unwrap();
        gate.stuck -= 1;
        self.changed.notify_all();
    }
}

impl Disk for Hanging {
    fn len_bytes(&self) -> u64 {
        self.plain.len_bytes()
    }

    fn grow(&self, len_bytes: u64) -> io::Result<()> {
        self.pass(Call::Write, u64::MAX);
        self.plain.len_bytes.store(len_bytes, Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.pass(Call::Read, offset_bytes);
        self.plain.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.pass(Call::Write, offset_bytes);
        self.plain.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.pass(Call::Flush, 0);
        self.plain.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.plain.flush_failures()
    }

    fn discard(&self, offset_bytes: u64, _: u64) -> io::Result<bool> {
        self.pass(Call::Discard, offset_bytes);
        Ok(true)
    }
}

/// A pool on disks that hang.
pub(super) struct World {
    pub(super) disks: Vec<Arc<Hanging>>,
    pub(super) set: Arc<DeviceSet>,
    geometry: Geometry,
}

/// Releases all hanging calls, so that no thread is left.
impl Drop for World {
    fn drop(&mut self) {
        self.disks.iter().for_each(|disk| disk.release());
    }
}

pub(super) fn devices(disks: &[Arc<Hanging>]) -> Vec<Device> {
    let named = disks.iter().enumerate();
    let device = |(at, disk): (usize, &Arc<Hanging>)| {
        Device::over(disk.clone(), format!("d{at}")).with_workers(LIMITS)
    };
    named.map(device).collect()
}

/// Makes a call that must return.
pub(super) fn done<R: Send + 'static>(call: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = mpsc::channel();
    std::thread::spawn(move || drop(sender.send(call())));
    receiver.recv_timeout(PATIENCE).expect("the call is blocked, or has panicked")
}

impl World {
    pub(super) fn new(count: usize) -> Self {
        let disks: Vec<_> = (0..count).map(|_| Hanging::new()).collect();
        let (feature, columns) = match count > 3 {
            true => (Features::STRIPES, count as u8 - 2),
            false => (Features::MIRRORS, 1),
        };
        let incompatible = Features::KNOWN.incompatible | feature;
        let features = Features { incompatible, ..Features::KNOWN };
        let geometry = GEOMETRY.with_columns(columns).unwrap();
        let root = Superblock { features, geometry, ..root(1) };
        DeviceSet::make(&devices(&disks), &root, &[Place::of_block(1, 0)], [3; 16]).unwrap();
        Self::of(disks, geometry)
    }

    /// A pool with a map of parts, with twenty parts on each device.
    pub(super) fn planned(count: usize) -> Self {
        let disks: Vec<_> = (0..count).map(|_| Hanging::new()).collect();
        let (part_bytes, capacity_bytes) = (64 << 10, stripes_tests::geometry(2).pool_bytes());
        let bytes = (16 << 20) + 20 * part_bytes;
        disks.iter().for_each(|disk| disk.plain.len_bytes.store(bytes, Ordering::Relaxed));
        let bytes = vec![bytes; count];
        let plan = StripePlan::new(&bytes, 1, Some(capacity_bytes), Some(part_bytes)).unwrap();
        let mut root = stripes_tests::root(plan.geometry.columns, 1);
        root.features.incompatible |= Features::PARTS;
        let wiped = [Place::of_block(1, 0)];
        let with = (&wiped[..], [3; 16]);
        DeviceSet::make_planned(&devices(&disks), &root, with, &plan).unwrap();
        Self::of(disks, plan.geometry)
    }

    fn of(disks: Vec<Arc<Hanging>>, geometry: Geometry) -> Self {
        let set = DeviceSet::open(devices(&disks), false).unwrap();
        set.read_root().unwrap();
        set.lay_out(geometry);
        set.fence(1).unwrap();
        Self { disks, set: Arc::new(set), geometry }
    }

    /// Makes a call that must return.
    pub(super) fn call<R: Send + 'static>(
        &self,
        call: impl FnOnce(&DeviceSet) -> R + Send + 'static,
    ) -> R {
        let set = self.set.clone();
        done(move || call(&set))
    }

    pub(super) fn root(&self, sequence: u64) -> Superblock {
        Superblock { sequence, ..self.set.read_root().unwrap() }
    }

    /// Appends two rows of a record.
    pub(super) fn append(&self, row: u32, byte: u8) -> io::Result<()> {
        let frames = vec![frame(byte); 2 * usize::from(self.geometry.columns)];
        self.call(move |set| set.append_as(Place::of_block(2, row), &frames, Persist::Itself))
    }

    pub(super) fn states(&self) -> Vec<DeviceState> {
        states(&self.set)
    }

    pub(super) fn wait_for(&self, what: impl Fn(&DeviceSet) -> bool) {
        let begun = Instant::now();
        while !what(&self.set) {
            assert!(begun.elapsed() < PATIENCE, "{:?}", self.set.devices());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    /// Checks that this device is out because it hung, and is not taken back before the call has
    /// ended.
    pub(super) fn check_out(&self, number: u16) {
        let status = self.set.devices().swap_remove(number.into());
        let why = status.why_out.clone().unwrap_or_default();
        assert!(status.state == Out && why.contains("not responded"), "{status:?}");
        let refused = self.call(move |set| set.take_back(number)).unwrap_err();
        assert!(refused.to_string().contains("in flight"), "{refused}");
        self.disks[usize::from(number)].release();
        self.wait_for(|set| set.take_back(number).is_ok());
        assert_eq!(self.states()[usize::from(number)], CatchingUp);
    }
}
