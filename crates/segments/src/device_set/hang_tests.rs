//! Devices that hang: no request waits for a single one of them.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use block::FrameMut;
use format::label::{LABEL_OFFSETS_BYTES, MemberState};
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;
use format::{Place, Superblock};
use sys::Persist;

use super::hanging::{Call, Hanging, LIMITS, PATIENCE, World, devices, done};
use super::tests::{GEOMETRY, frame, states};
use super::workers::Asked;
use super::{DeviceSet, DeviceSetError};
use crate::devices::DeviceState::{self, CatchingUp, In, Missing, Out};
use crate::devices::{Lacking, Rebuilt};
use crate::segments::Segments;

#[test]
fn a_hanging_write_takes_the_device_out() {
    for count in [2, 3, 6] {
        let world = World::new(count);
        world.disks[1].hang_in(Call::Write);
        world.append(0, 7).unwrap();
        // The others' labels said so first.
        let label = world.disks[0].plain.label();
        assert_eq!(label.members[1].state, MemberState::Out);
        let read = world.call(|set| super::tests::read(set, Place::of_block(2, 0)));
        assert_eq!(read.unwrap(), 7);
        world.check_out(1);
    }
}

#[test]
fn a_hanging_flush_takes_the_device_out() {
    let world = World::new(3);
    world.disks[2].hang_in(Call::Flush);
    let flushed = world.call(|set| {
        let mut write = || set.append(Place::of_block(2, 0), &[frame(1)]);
        set.write_and_flush(&mut write)
    });
    flushed.unwrap();
    world.check_out(2);
    world.disks[0].hang_in(Call::Flush);
    world.call(|set| set.append_as(Place::NONE, &[], Persist::All)).unwrap();
    world.check_out(0);
}

#[test]
fn a_hanging_read_is_served_elsewhere_and_takes_the_device_out() {
    for count in [2, 4, 6] {
        let world = World::new(count);
        world.append(0, 9).unwrap();
        world.append(64, 9).unwrap();
        // In a mirror: the device whose turn it is.
        let place = Place::of_block(2, if count > 3 { 1 } else { 64 });
        let asked = match count > 3 {
            true => 2 % count,
            false => (world.set.locate(place) >> 18) as usize % count,
        };
        world.disks[asked].hang_in(Call::Read);
        let read = world.call(move |set| super::tests::read(set, place));
        assert_eq!(read.unwrap(), 9);
        world.wait_for(|set| states(set)[asked] == Out);
        world.check_out(asked as u16);
    }
}

#[test]
fn hanging_reads_for_scrubbing_and_of_one_copy_end() {
    let world = World::new(4);
    world.append(0, 9).unwrap();
    assert!(world.call(|set| set.verify_rows(2, 0..2)).unwrap());
    world.disks[0].hang_in(Call::Read);
    let verified = world.call(|set| set.verify_rows(2, 0..2));
    assert_eq!(verified.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(world.states(), [Out, In, In, In]);
    // The first column of segment 2 is on device 2.
    world.disks[2].hang_in(Call::Read);
    let copy = world.call(|set| set.read_copy(Place::of_block(2, 0), 0, &mut [FrameMut::stale()]));
    assert_eq!(copy.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(world.states(), [Out, In, Out, In]);
    assert_eq!(world.call(|set| super::tests::read(set, Place::of_block(2, 0))).unwrap(), 9);
}

#[test]
fn a_hanging_root_write_takes_the_device_out() {
    let world = World::new(3);
    let (next, last) = (world.root(3), world.root(4));
    world.disks[1].hang(|call, at| call == Call::Write && SUPERBLOCK_OFFSETS_BYTES.contains(&at));
    world.call(move |set| set.swap_root(2, &next)).unwrap();
    for at in [0, 2] {
        let block = world.disks[at].plain.block(SUPERBLOCK_OFFSETS_BYTES[1]);
        assert_eq!(Superblock::decode(&block[..]).unwrap().sequence, 3);
    }
    world.check_out(1);
    // The root is that of the devices that are in, also for the next opening.
    world.disks[1].hang_in(Call::Read);
    world.call(move |set| set.swap_root(3, &last)).unwrap();
    assert!(world.call(|set| set.root_copies()).iter().all(Result::is_ok));
    world.disks[2].hang_in(Call::Read);
    assert_eq!(world.call(|set| set.read_root()).unwrap().sequence, 4);
    assert_eq!(world.states()[2], Out);
}

#[test]
fn a_hanging_label_write_takes_the_device_out() {
    let is_label = |call, at: u64| call == Call::Write && LABEL_OFFSETS_BYTES.contains(&at);
    let world = World::new(3);
    let root = world.root(2);
    for disk in &world.disks {
        disk.plain.blocks.lock().unwrap().remove(&LABEL_OFFSETS_BYTES[0]);
    }
    world.disks[1].hang(is_label);
    let mended = world.call(move |set| set.mend_labels(&root));
    assert_eq!(mended.len(), 2);
    world.check_out(1);
    // In a change of another device.
    let world = World::new(3);
    world.disks[1].hang(is_label);
    world.call(|set| set.take_out(0, "told so")).unwrap();
    world.check_out(1);
    // The labels of all devices are returned without that of the one that hangs.
    world.disks[2].hang_in(Call::Read);
    let labels = world.call(|set| set.labels());
    assert_eq!(
        labels.iter().map(Result::is_ok).collect::<Vec<_>>(),
        [true, true, true, true, false, false]
    );
}

#[test]
fn a_segment_is_freed_without_a_hanging_device() {
    let world = World::new(3);
    world.disks[0].hang_in(Call::Discard);
    assert!(world.call(|set| set.free(3)).unwrap());
    world.check_out(0);
}

#[test]
fn growing_a_hanging_device_ends_with_an_error() {
    let world = World::new(2);
    world.disks[0].hang_in(Call::Write);
    let grown = world.call(|set| set.grow(GEOMETRY.pool_bytes() + 4096));
    assert_eq!(grown.unwrap_err().kind(), io::ErrorKind::TimedOut);
    assert_eq!(world.states(), [In, In]);
}

#[test]
fn a_device_that_hangs_while_it_catches_up_is_out() {
    let world = World::new(4);
    world.append(0, 9).unwrap();
    for call in [Call::Write, Call::Flush] {
        world.call(|set| set.take_out(3, "told so")).unwrap();
        world.call(|set| set.take_back(3)).unwrap();
        world.disks[3].hang_in(call);
        let made = world.call(|set| {
            assert_eq!(set.rebuild(Lacking::Device(3), 2, false, 0..2)?, Rebuilt::All);
            set.copy_to(Lacking::Device(3), Place::of_block(2, 0), &[frame(9)])?;
            set.given(Lacking::Device(3))
        });
        assert_eq!(made.unwrap_err().kind(), io::ErrorKind::TimedOut, "{call:?}");
        world.check_out(3);
    }
    world.call(|set| set.take_out(3, "told so")).unwrap();
    // A device that already hangs does not begin to catch up.
    world.disks[3].hang_in(Call::Write);
    world.call(|set| set.take_back(3)).unwrap_err();
    assert_eq!(world.states()[3], DeviceState::Kept);
    world.disks[3].release();
    world.wait_for(|set| set.take_back(3).is_ok());
    // Another one hangs from which its data is reconstructed.
    world.disks[0].hang_in(Call::Read);
    assert!(world.call(|set| set.rebuild(Lacking::Device(3), 2, false, 0..2)).is_ok());
}

#[test]
fn a_hanging_rewrite_of_a_location_ends() {
    let world = World::new(2);
    let place = Place::of_block(2, 0);
    let asked = (world.set.locate(place) >> 18) as usize % 2;
    world.disks[asked].hang_in(Call::Write);
    let mended = world.call(move |set| set.mend(place, 0, &[frame(1)]));
    assert_eq!(mended.unwrap_err().kind(), io::ErrorKind::TimedOut);
    world.check_out(asked as u16);
}

#[test]
fn columns_are_not_moved_to_a_device_that_hangs() {
    let world = World::planned(6);
    world.append(0, 9).unwrap();
    world.set.set_lost_after(Duration::ZERO);
    world.call(|set| set.take_out(2, "told so")).unwrap();
    let copied = world.call(|set| {
        set.begin_to_give();
        let lacks = |segment: &u32| set.lacks(Lacking::Parts, *segment);
        (1..16).filter(lacks).map(|it| set.rebuild(Lacking::Parts, it, false, 0..4)).collect()
    });
    let copied: io::Result<Vec<Rebuilt>> = copied;
    assert!(!copied.unwrap().is_empty());
    world.disks[0].hang_in(Call::Flush);
    world.call(|set| set.given(Lacking::Parts)).unwrap_err();
    world.check_out(0);
    assert_eq!(world.call(|set| super::tests::read(set, Place::of_block(2, 0))).unwrap(), 9);
}

#[test]
fn two_hanging_devices_go_out_in_sequence_or_together() {
    let world = World::new(6);
    world.disks[1].hang_in(Call::Write);
    world.append(0, 1).unwrap();
    world.disks[4].hang_in(Call::Write);
    world.append(2, 2).unwrap();
    assert_eq!(world.states(), [In, Out, In, In, Out, In]);
    world.append(4, 3).unwrap();
    let world = World::new(6);
    world.disks[0].hang(|_, _| true);
    world.disks[5].hang(|_, _| true);
    world.append(0, 4).unwrap();
    assert_eq!(world.states(), [Out, In, In, In, In, Out]);
    assert_eq!(world.call(|set| super::tests::read(set, Place::of_block(2, 0))).unwrap(), 4);
}

/// Also when a label is read from it, while another device goes out.
#[test]
fn a_device_that_must_stay_is_waited_for() {
    let world = World::new(2);
    world.call(|set| set.take_out(1, "told so")).unwrap();
    for call in [Call::Write, Call::Flush, Call::Read] {
        world.disks[0].hang_in(call);
        let (set, (sender, receiver)) = (world.set.clone(), mpsc::channel());
        std::thread::spawn(move || {
            let place = Place::of_block(2, 0);
            let written = set.append_as(place, &[frame(5)], Persist::All);
            drop(sender.send(written.and_then(|()| super::tests::read(&set, place))));
        });
        world.disks[0].wait_stuck(1);
        assert!(receiver.recv_timeout(3 * LIMITS.transfer).is_err(), "it is not given up");
        world.disks[0].wait_stuck(1);
        world.disks[0].release();
        assert_eq!(receiver.recv_timeout(PATIENCE).unwrap().unwrap(), 5);
        let status = world.set.devices().swap_remove(0);
        assert_eq!((status.state, status.write_errors, status.read_errors), (In, 0, 0));
    }
}

/// A device that must stay although it hangs need not stay once another one is in again.
#[test]
fn a_hanging_device_goes_out_once_it_need_not_stay_in() {
    let world = World::new(4);
    for number in [2, 3] {
        world.call(move |set| set.take_out(number, "told so")).unwrap();
    }
    world.call(|set| set.take_back(2)).unwrap();
    world.disks[0].hang(|call, at| call == Call::Write && at >= GEOMETRY.part_offset_bytes(2));
    let (set, (sender, receiver)) = (world.set.clone(), mpsc::channel());
    std::thread::spawn(move || {
        let frames = [frame(5), frame(6)];
        drop(sender.send(set.append(Place::of_block(2, 0), &frames)));
    });
    assert!(receiver.recv_timeout(3 * LIMITS.transfer).is_err(), "it must stay");
    world.call(|set| set.given(Lacking::Device(2))).unwrap();
    receiver.recv_timeout(PATIENCE).unwrap().unwrap();
    assert_eq!(world.states()[0], Out);
}

#[test]
fn devices_are_called_in_parallel() {
    let world = World::new(3);
    for call in [Call::Write, Call::Flush] {
        world.disks.iter().for_each(|disk| disk.hang_in(call));
        let (set, (sender, receiver)) = (world.set.clone(), mpsc::channel());
        std::thread::spawn(move || {
            let mut write = || set.append(Place::of_block(2, 0), &[frame(1)]);
            drop(sender.send(set.write_and_flush(&mut write)));
        });
        world.disks.iter().for_each(|disk| disk.wait_stuck(1));
        // No device is late where none has it.
        assert!(receiver.recv_timeout(3 * LIMITS.flush).is_err());
        world.disks.iter().for_each(|disk| disk.release());
        receiver.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(world.states(), [In; 3]);
    }
}

/// The waiting thread was stopped: for it no time has passed.
#[test]
fn a_paused_thread_takes_no_device_for_late() {
    let world = World::new(2);
    let mut asked = Asked::new();
    world.disks[0].hang_in(Call::Flush);
    let device = devices(&world.disks).swap_remove(0);
    asked.begin((), &device, (), |limits| limits.flush, |disk| disk.flush());
    world.disks[0].wait_stuck(1);
    std::thread::sleep(2 * LIMITS.flush);
    assert!(asked.next().is_none());
    asked.give_up(|(), _| panic!("it is not late"));
    world.disks[0].release();
    let begun = Instant::now();
    while begun.elapsed() < PATIENCE {
        if let Some(((), flushed)) = asked.next() {
            return flushed.unwrap();
        }
    }
    panic!("it has ended");
}

/// Labels of one device are written in order, however long each takes.
#[test]
fn labels_of_one_device_are_written_in_order() {
    let world = World::new(2);
    world.call(|set| set.take_out(1, "told so")).unwrap();
    world.disks[0].hang(|call, at| call == Call::Write && LABEL_OFFSETS_BYTES.contains(&at));
    for _ in 0..2 {
        world.call(|set| set.take_back(1)).unwrap_err();
        world.disks[0].wait_stuck(1);
    }
    world.disks[0].release();
    world.wait_for(|set| set.take_back(1).is_ok());
    assert_eq!(world.states(), [In, CatchingUp]);
    world.wait_for(|set| set.members().slots()[0].in_flight.load(Ordering::Acquire) == 0);
    let sequence = |disk: &Arc<Hanging>| disk.plain.label().sequence;
    assert_eq!(sequence(&world.disks[0]), sequence(&world.disks[1]));
}

#[test]
fn a_pool_is_dropped_and_opened_while_a_device_hangs() {
    let mut world = World::new(3);
    world.disks[1].hang_in(Call::Write);
    world.append(0, 3).unwrap();
    let set = std::mem::replace(&mut world.set, World::new(1).set.clone());
    done(move || drop(Arc::into_inner(set).expect("nothing else has it")));
    world.disks[1].wait_stuck(1);
    world.disks[1].release();
    world.disks[1].wait_stuck(0);
    // And without one that can't be identified.
    world.disks[2].hang_in(Call::Read);
    let there = devices(&world.disks);
    let again = done(move || DeviceSet::open(there, true)).unwrap();
    assert_eq!(states(&again), [In, Out, Missing]);
    let notices = again.notices();
    assert!(notices[0].contains("d2") && notices[0].contains("not respond"), "{notices:?}");
    assert_eq!(notices[0].lines().count(), 1);
    let silent = devices(&world.disks[2..]);
    let opened = done(move || DeviceSet::open(silent, true)).map(drop);
    assert!(matches!(opened, Err(DeviceSetError::Silent(name)) if name == "d0"));
}

/// A device that hangs while it is added holds up no other.
#[test]
fn a_device_that_hangs_when_it_is_added_is_refused() {
    let world = World::new(2);
    let other = World::new(1);
    other.disks[0].hang_in(Call::Read);
    let device = devices(&other.disks).swap_remove(0);
    let (set, (sender, receiver)) = (world.set.clone(), mpsc::channel());
    std::thread::spawn(move || drop(sender.send(set.add(device, [8; 16]))));
    other.disks[0].wait_stuck(1);
    world.disks[0].hang_in(Call::Write);
    world.append(0, 3).unwrap();
    assert!(receiver.recv_timeout(PATIENCE).unwrap().is_err());
    assert_eq!(world.states(), [Out, In]);
}
