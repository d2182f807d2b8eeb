//! Pools on two and three in-memory disks, some of which fail.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use block::{FRAME_BYTES, Frame, FrameMut};
use format::label::{LABEL_OFFSETS_BYTES, MemberState};
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;
use format::{Features, Geometry, Label, Place, Superblock};
use sys::{Disk, Persist};

use super::{Device, DeviceSet, DeviceSetError, has_labels_of_several};
use crate::devices::{DeviceError, DeviceState, Lacking};
use crate::segments::{RootError, Segments};

pub(super) const GEOMETRY: Geometry =
    Geometry { part_bytes: 1 << 20, segment_count: 16, columns: 1 };

/// An in-memory disk that can be gone, or refuse some blocks.
pub(super) struct Plain {
    pub(super) blocks: Mutex<BTreeMap<u64, Frame>>,
    pub(super) len_bytes: AtomicU64,
    pub(super) is_gone: AtomicBool,
    /// The number of failed flushes, and whether flushes fail.
    failures: AtomicU64,
    fails_flushes: AtomicBool,
    /// Counts down the writes of the disks that share it; at 0 no more are executed.
    pub(super) writes_left: Mutex<Option<Arc<AtomicU64>>>,
}

impl Plain {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self {
            blocks: Mutex::default(),
            len_bytes: AtomicU64::new(GEOMETRY.pool_bytes()),
            is_gone: AtomicBool::new(false),
            failures: AtomicU64::new(0),
            fails_flushes: AtomicBool::new(false),
            writes_left: Mutex::default(),
        })
    }

    pub(super) fn block(&self, offset_bytes: u64) -> Frame {
        self.blocks.lock().unwrap().get(&offset_bytes).cloned().unwrap_or_else(Frame::zeros)
    }

    pub(super) fn put(&self, offset_bytes: u64, byte: u8) {
        self.blocks.lock().unwrap().insert(offset_bytes, frame(byte));
    }

    pub(super) fn label(&self) -> Label {
        Label::decode(&self.block(LABEL_OFFSETS_BYTES[0])[..]).unwrap()
    }

    fn answers(&self) -> io::Result<()> {
        match self.is_gone.load(Ordering::Relaxed) {
            true => Err(io::Error::other("the device has failed")),
            false => Ok(()),
        }
    }

    pub(super) fn go(&self) {
        self.is_gone.store(true, Ordering::Relaxed);
    }

    pub(super) fn come_back(&self) {
        self.is_gone.store(false, Ordering::Relaxed);
    }
}

impl Disk for Plain {
    fn len_bytes(&self) -> u64 {
        self.len_bytes.load(Ordering::Relaxed)
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        self.answers()?;
        for (at, frame) in (offset_bytes..).step_by(FRAME_BYTES).zip(frames) {
            frame.copy_from_slice(&self.block(at)[..]);
        }
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.answers()?;
        if let Some(left) = &*self.writes_left.lock().unwrap() {
            let one_less = |left: u64| left.checked_sub(1);
            let landed = left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less);
            landed.map_err(|_| io::Error::other("the power is off"))?;
        }
        let mut blocks = self.blocks.lock().unwrap();
        blocks.extend((offset_bytes..).step_by(FRAME_BYTES).zip(frames.iter().cloned()));
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        self.answers()?;
        if self.fails_flushes.load(Ordering::Relaxed) {
            self.failures.fetch_add(1, Ordering::Relaxed);
            return Err(io::Error::other("a flush that fails"));
        }
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        self.failures.load(Ordering::Relaxed)
    }
}

pub(super) fn frame(byte: u8) -> Frame {
    FrameMut::from_bytes(&[byte; FRAME_BYTES]).freeze()
}

pub(super) fn root(sequence: u64) -> Superblock {
    let incompatible = Features::KNOWN.incompatible | Features::MIRRORS;
    let features = Features { incompatible, ..Features::KNOWN };
    let first = Superblock::of_new_pool([7; 16], [9; 32], GEOMETRY.pool_bytes(), GEOMETRY);
    Superblock { sequence, features, ..first }
}

pub(super) fn devices(disks: &[Arc<Plain>]) -> Vec<Device> {
    let named = disks.iter().enumerate();
    named.map(|(at, disk)| Device::over(disk.clone(), format!("d{at}"))).collect()
}

pub(super) fn opened(disks: &[Arc<Plain>], may_miss: bool) -> Result<DeviceSet, DeviceSetError> {
    let set = DeviceSet::open(devices(disks), may_miss)?;
    set.read_root().unwrap();
    set.lay_out(GEOMETRY);
    Ok(set)
}

pub(super) fn made(count: usize) -> (Vec<Arc<Plain>>, DeviceSet) {
    let disks: Vec<_> = (0..count).map(|_| Plain::new()).collect();
    DeviceSet::make(&devices(&disks), &root(1), &[Place::of_block(1, 0)], [3; 16]).unwrap();
    let set = opened(&disks, false).unwrap();
    set.fence(1).unwrap();
    (disks, set)
}

/// Makes a pool in stripes, of more than three devices.
pub(super) fn made_in_stripes(count: usize) -> (Vec<Arc<Plain>>, DeviceSet) {
    let disks: Vec<_> = (0..count).map(|_| Plain::new()).collect();
    let geometry = GEOMETRY.with_columns(count as u8 - 2).unwrap();
    let incompatible = Features::KNOWN.incompatible | Features::STRIPES;
    let features = Features { incompatible, ..Features::KNOWN };
    let root = Superblock { features, geometry, ..root(1) };
    DeviceSet::make(&devices(&disks), &root, &[Place::of_block(1, 0)], [3; 16]).unwrap();
    let set = DeviceSet::open(devices(&disks), false).unwrap();
    set.read_root().unwrap();
    set.lay_out(geometry);
    set.fence(1).unwrap();
    (disks, set)
}

/// Returns a disk's content in segments other than segment 0, without zeros.
pub(super) fn segments_of(disk: &Plain) -> BTreeMap<u64, Frame> {
    let blocks = disk.blocks.lock().unwrap();
    let of_segments = blocks.range(format::geometry::SEGMENT_BYTES_MIN..);
    let of_segments = of_segments.filter(|(_, frame)| frame.iter().any(|byte| *byte != 0));
    of_segments.map(|(at, frame)| (*at, frame.clone())).collect()
}

pub(super) fn read(set: &DeviceSet, place: Place) -> io::Result<u8> {
    let mut frames = [FrameMut::stale()];
    set.read(place, &mut frames)?;
    Ok(frames[0][0])
}

pub(super) fn states(set: &DeviceSet) -> Vec<DeviceState> {
    set.devices().iter().map(|device| device.state).collect()
}

use DeviceState::{CatchingUp, In, Missing, Out};

#[test]
fn each_device_of_a_mirror_has_everything() {
    for count in 1..=3 {
        let (disks, set) = made(count);
        let (place, other) = (Place::of_block(2, 3), Place::of_block(9, 200));
        set.append_as(place, &[frame(1)], Persist::Itself).unwrap();
        set.append(other, &[frame(2), frame(3)]).unwrap();
        set.swap_root(2, &Superblock { epoch: 5, ..root(3) }).unwrap();
        for disk in &disks {
            assert_eq!(disk.block(set.locate(place))[0], 1);
            assert_eq!(disk.block(set.locate(other) + 4096)[0], 3);
            assert!(has_labels_of_several(&**disk));
        }
        // In any order, and each has a root.
        let reversed: Vec<_> = disks.iter().rev().cloned().collect();
        let again = DeviceSet::open(devices(&reversed), false).unwrap();
        assert_eq!(again.read_root().unwrap().epoch, 5);
        assert_eq!(again.copies(), count as u32);
        again.lay_out(GEOMETRY);
        for copy in 0..count as u32 {
            let mut frames = [FrameMut::stale()];
            again.read_copy(place, copy, &mut frames).unwrap();
            assert_eq!(frames[0][0], 1);
        }
        assert!(again.read_copy(place, count as u32, &mut [FrameMut::stale()]).is_err());
    }
}

#[test]
fn acknowledged_data_survives_the_loss_of_two_of_three_devices() {
    let (disks, set) = made(3);
    let place = Place::of_block(2, 0);
    set.append(place, &[frame(1)]).unwrap();
    for lost in [0, 2] {
        disks[lost].go();
        set.append(place.plus_blocks(lost as u32 + 1), &[frame(9)]).unwrap();
        assert_eq!(states(&set)[lost], Out);
        // The label was durable before.
        let member = disks[1].label().members[lost];
        assert_eq!(member.state, MemberState::Out);
    }
    assert_eq!(read(&set, place).unwrap(), 1);
    // The last one's error is that of the pool, and it stays in.
    disks[1].go();
    assert!(set.append(place, &[frame(1)]).is_err());
    assert_eq!(states(&set), [Out, In, Out]);
    disks[1].come_back();
    set.append(place, &[frame(4)]).unwrap();
    // It opens alone.
    let again = opened(&disks[1..2], false).unwrap();
    assert_eq!((states(&again), read(&again, place).unwrap()), (vec![Missing, In, Missing], 4));
}

/// The devices that continued without it are not connected, and it has no majority.
#[test]
fn a_device_that_was_left_behind_does_not_open_alone() {
    let (disks, set) = made(3);
    disks[0].go();
    set.append(Place::of_block(2, 0), &[frame(1)]).unwrap();
    disks[0].come_back();
    let error = opened(&disks[..1], false).unwrap_err();
    assert!(matches!(error, DeviceSetError::TooFew { there: 1, are_in: 3 }), "{error}");
    // Together with a device that knows, it is out.
    let again = opened(&disks, false).unwrap();
    assert_eq!(states(&again), [Out, In, In]);
    assert_eq!(read(&again, Place::of_block(2, 0)).unwrap(), 1);
    let error = opened(&disks[..2], false).unwrap_err();
    assert!(matches!(error, DeviceSetError::TooFew { there: 1, are_in: 2 }), "{error}");
}

#[test]
fn one_of_two_opens_only_with_the_other_declared_missing_and_then_outranks_it() {
    let (disks, set) = made(2);
    set.append(Place::of_block(2, 0), &[frame(1)]).unwrap();
    drop(set);
    assert!(matches!(opened(&disks[1..], false), Err(DeviceSetError::TooFew { .. })));
    let forced = opened(&disks[1..], true).unwrap();
    forced.append(Place::of_block(2, 0), &[frame(2)]).unwrap();
    assert_eq!(states(&forced), [Missing, In]);
    // The other one comes back: it is not trusted, and is copied to from scratch.
    let both = opened(&disks, false).unwrap();
    assert_eq!(states(&both), [Out, In]);
    both.fence(3).unwrap();
    assert_eq!(states(&both), [CatchingUp, In]);
    assert_eq!(read(&both, Place::of_block(2, 0)).unwrap(), 2);
}

#[test]
fn a_read_only_set_writes_nothing() {
    let (disks, set) = made(3);
    drop(set);
    let before: Vec<_> = disks.iter().map(|disk| disk.blocks.lock().unwrap().clone()).collect();
    let looking = opened(&disks[..2], false).unwrap();
    assert_eq!(read(&looking, Place::of_block(5, 0)).unwrap(), 0);
    disks[1].go();
    assert_eq!(read(&looking, Place::of_block(5, 0)).unwrap(), 0);
    assert!(looking.mend_labels(&root(2)).is_empty());
    for (disk, before) in disks.iter().zip(before) {
        assert!(*disk.blocks.lock().unwrap() == before);
    }
}

#[test]
fn a_device_catches_up_before_it_is_trusted() {
    let (disks, set) = made(2);
    let (old, new) = (Place::of_block(2, 0), Place::of_block(3, 0));
    set.append(old, &[frame(1)]).unwrap();
    disks[1].go();
    set.append(old, &[frame(2)]).unwrap();
    assert!(matches!(set.take_back(1), Err(DeviceError::Io(_))), "it has still failed");
    disks[1].come_back();
    set.take_back(1).unwrap();
    assert_eq!(set.lacking(), [(Lacking::Device(1), 1)]);
    set.append(new, &[frame(3)]).unwrap();
    assert_eq!(disks[1].block(set.locate(new))[0], 3, "it receives new writes");
    // It has no root, and an opening after a crash sees that.
    assert!(Superblock::decode(&disks[1].block(SUPERBLOCK_OFFSETS_BYTES[0])[..]).is_err());
    assert_eq!(states(&opened(&disks, false).unwrap()), [In, Out]);
    set.copy_to(Lacking::Device(1), old, &[frame(2)]).unwrap();
    set.given(Lacking::Device(1)).unwrap();
    assert_eq!(states(&set), [In, In]);
    // Now it has everything, and the other's label says so.
    assert_eq!(disks[0].label().members[1].state, MemberState::In);
    disks[0].go();
    set.append(new, &[frame(4)]).unwrap();
    let alone = opened(&disks[1..], false).unwrap();
    assert_eq!((read(&alone, old).unwrap(), read(&alone, new).unwrap()), (2, 4));
}

#[test]
fn a_device_that_fails_while_catching_up_goes_out_again() {
    let (disks, set) = made(3);
    disks[2].go();
    set.append(Place::of_block(2, 0), &[frame(1)]).unwrap();
    disks[2].come_back();
    set.take_back(2).unwrap();
    disks[2].fails_flushes.store(true, Ordering::Relaxed);
    set.write_and_flush(&mut || set.append(Place::of_block(2, 1), &[frame(1)])).unwrap();
    assert_eq!(states(&set), [In, In, Out]);
    assert!(set.copy_to(Lacking::Device(2), Place::of_block(2, 0), &[frame(1)]).is_err());
    assert!(set.given(Lacking::Device(2)).is_err());
    disks[2].fails_flushes.store(false, Ordering::Relaxed);
    set.take_back(2).unwrap();
    // Another flush has failed: what was copied to it may be gone.
    disks[2].failures.fetch_add(1, Ordering::Relaxed);
    assert!(set.given(Lacking::Device(2)).is_err());
    assert_eq!(states(&set), [In, In, Out]);
}

#[test]
fn a_failed_flush_takes_out_only_its_device() {
    let (disks, set) = made(2);
    disks[0].fails_flushes.store(true, Ordering::Relaxed);
    let place = Place::of_block(4, 0);
    set.write_and_flush(&mut || set.append(place, &[frame(1)])).unwrap();
    assert_eq!(states(&set), [Out, In]);
    assert_eq!(set.flush_failures(), 0);
    // A failed flush of the last one is the pool's.
    disks[1].fails_flushes.store(true, Ordering::Relaxed);
    assert!(set.write_and_flush(&mut || set.append(place, &[frame(1)])).is_err());
    assert!(set.flush_failures() > 0);
}

#[test]
fn roots_are_replaced_with_a_device_lost() {
    let (disks, set) = made(3);
    disks[1].go();
    set.swap_root(2, &root(3)).unwrap();
    assert_eq!(states(&set), [In, Out, In]);
    assert!(matches!(set.swap_root(2, &root(4)), Err(RootError::Overtaken { .. })));
    // Its old root is still there, and is not read.
    disks[1].come_back();
    let again = opened(&disks, false).unwrap();
    assert_eq!(again.read_root().unwrap().sequence, 3);
    // A copy is bad on one device: the others have it.
    disks[0].put(SUPERBLOCK_OFFSETS_BYTES[1], 0x55);
    disks[0].put(SUPERBLOCK_OFFSETS_BYTES[0], 0x55);
    assert!(again.root_copies().iter().all(Result::is_ok));
    assert_eq!(again.read_root().unwrap().sequence, 3);
    again.mend_root(1, &root(3)).unwrap();
    let newest = Superblock::decode(&disks[0].block(SUPERBLOCK_OFFSETS_BYTES[1])[..]).unwrap();
    assert_eq!(newest.sequence, 3);
}

#[test]
fn reads_continue_elsewhere_and_wrong_locations_are_repaired() {
    let (disks, set) = made(2);
    let place = Place::of_block(2, 0);
    set.append(place, &[frame(1)]).unwrap();
    for disk in &disks {
        disk.go();
        assert_eq!(read(&set, place).unwrap(), 1);
        disk.come_back();
    }
    assert_eq!(states(&set), [In, In], "a failed read takes no device out");
    let elsewhere = set.devices().iter().map(|device| device.reads_elsewhere).sum::<u64>();
    assert_eq!(elsewhere, 1, "it was tried first for one of them");
    let at = set.locate(place);
    for wrong in &disks {
        wrong.put(at, 7);
        let mut frames = [FrameMut::stale()];
        let read_wrong = |copy: &u32| {
            set.read_copy(place, *copy, &mut frames).unwrap();
            frames[0][0] == 7
        };
        let copy = (0..2).find(read_wrong).unwrap();
        set.mend(place, copy, &[frame(1)]).unwrap();
        assert_eq!(wrong.block(at)[0], 1);
    }
    assert_eq!(set.devices().iter().map(|device| device.mended).sum::<u64>(), 2);
}
