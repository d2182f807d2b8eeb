//! Pools in stripes without some of their devices, and with replacements for them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use block::{FRAME_BYTES, FrameMut};
use format::label::Member;
use format::{DeviceId, Label, Place, Superblock};
use sys::{Buffers, FileDisk, Persist};

use super::stripes_checked::{check, open};
use super::stripes_tests::{LOG, Pool, ROWS, geometry, root};
use super::tests::{Plain, devices, frame, segments_of, states};
use super::{Device, DeviceSet, DeviceSetError};
use crate::devices::DeviceState::{CatchingUp, In, Kept, Missing, Out};
use crate::devices::{DeviceError, DeviceStatus, Lacking};
use crate::labels;
use crate::segments::{Fence, RootError, Segments};

#[test]
fn a_replacement_device_gets_the_data_of_the_old_one() {
    for k in 2..=6 {
        let mut pool = Pool::new(k);
        pool.fill();
        let n = pool.disks.len();
        for number in 0..n {
            let old = pool.disks[number].clone();
            pool.pool.take_out(number as u16, "it is old").unwrap();
            pool.replace(number);
            pool.pool.take_out(number as u16, "it is no longer new").unwrap();
            let before = pool.disks[number].clone();
            let attempts = (2 * number + 2) as u64;
            let device = Lacking::Device(number as u16);
            assert_eq!(pool.come(number), [(device, attempts)], "another attempt");
            assert!(!Arc::ptr_eq(&before, &pool.disks[number]));
            pool.catch_up(number as u16);
            assert!(states(&pool.pool).iter().all(|state| *state == In));
            assert!(segments_of(&old) == segments_of(&pool.disks[number]), "{number} of {n}");
            // The old one is no longer a member.
            let mut with_old = pool.disks.clone();
            with_old[number] = old;
            assert_eq!(states(&open(k, &with_old, false).unwrap())[number], Missing);
        }
        pool.check();
        for segment in LOG {
            assert!(pool.pool.verify_rows(segment, 0..ROWS).unwrap());
        }
    }
}

#[test]
fn a_device_gets_its_own_share_by_copies() {
    let mut pool = Pool::new(3);
    pool.fill();
    let before = pool.disks[2].blocks.lock().unwrap().clone();
    pool.pool.take_out(2, "told so").unwrap();
    pool.pool.take_back(2).unwrap();
    let begin = geometry(3).part_offset_bytes(1);
    pool.disks[2].blocks.lock().unwrap().retain(|at, _| *at < begin);
    for ((segment, block), frame) in &pool.written {
        pool.pool
            .copy_to(
                Lacking::Device(2),
                Place::of_block(*segment, *block),
                std::slice::from_ref(frame),
            )
            .unwrap();
    }
    let after = pool.disks[2].blocks.lock().unwrap().clone();
    assert!(after.range(begin..).count() > 20);
    for (at, frame) in after.range(begin..) {
        assert!(before.get(at) == Some(frame));
    }
}

#[test]
fn a_device_that_fails_an_append_is_out_before_completion_and_a_third_stays_in() {
    let mut pool = Pool::new(2);
    pool.fill();
    pool.disks[1].go();
    pool.record(11, 1, Persist::Itself).unwrap();
    assert_eq!(states(&pool.pool), [In, Out, In, In]);
    assert_eq!(pool.disks[0].label().members[1].state, format::label::MemberState::Out);
    let verified = pool.pool.verify_rows(1, 0..1).map_err(|error| error.kind());
    assert_eq!(verified, Err(io::ErrorKind::NotConnected));
    pool.disks[0].go();
    pool.record(11, 2, Persist::All).unwrap();
    pool.check();
    assert_eq!(states(&pool.pool), [Out, Out, In, In]);
    // The error of a device without which nothing is readable is the pool's.
    pool.disks[2].go();
    assert!(pool.record(11, 1, Persist::Itself).is_err());
    assert_eq!(states(&pool.pool), [Out, Out, In, In]);
    assert!(matches!(
        pool.pool.take_out(3, "told so"),
        Err(DeviceError::Needed { number: 3, are_in: 2 })
    ));
    for disk in &pool.disks {
        disk.come_back();
    }
    pool.record(11, 1, Persist::Itself).unwrap();
    pool.check();
    // It opens from these two alone, and from no fewer.
    check(&pool.written, 2, &open(2, &pool.disks[2..], false).unwrap());
    for may_miss in [false, true] {
        let error = open(2, &pool.disks[3..], may_miss).unwrap_err();
        assert!(matches!(error, DeviceSetError::Lost { there: 1, least: 2 }), "{error}");
        assert_eq!(error.to_string().lines().count(), 1);
        assert!(matches!(
            open(2, &pool.disks[..2], may_miss),
            Err(DeviceSetError::TooFew { .. }
                | DeviceSetError::NoneIn(_)
                | DeviceSetError::Lost { .. })
                | Ok(_)
        ));
    }
    for number in [0, 1] {
        pool.pool.take_back(number).unwrap();
        pool.catch_up(number);
    }
    pool.disks[2].go();
    pool.disks[3].go();
    pool.check();
}

/// One that fails in the append, and others with the labels that record it.
#[test]
fn devices_that_fail_together_go_out_together_unless_too_many() {
    for (count, expected) in [(2, [Out, Out, In, In]), (3, [In; 4])] {
        let mut pool = Pool::new(2);
        pool.fill();
        pool.disks[..count].iter().for_each(|disk| disk.go());
        let appended = pool.record(11, 1, Persist::Itself);
        assert_eq!((appended.is_ok(), states(&pool.pool)), (count == 2, expected.to_vec()));
        pool.disks.iter().for_each(|disk| disk.come_back());
        pool.record(11, 1, Persist::Itself).unwrap();
        assert_eq!(states(&pool.pool), expected);
        // The newest label may have it out, but that change was never acknowledged.
        let again = open(2, &pool.disks, false).unwrap();
        assert!(states(&again).iter().filter(|state| **state == In).count() >= 2);
        check(&pool.written, 2, &again);
        check(&pool.written, 2, &pool.pool);
    }
}

/// The power fails before any write of a change: the devices open, and have all data.
#[test]
fn a_power_failure_in_a_change_of_labels_leaves_a_pool_that_opens() {
    for (writes, k) in (0..24).flat_map(|writes| [(writes, 2), (writes, 3)]) {
        let mut pool = Pool::new(k);
        pool.fill();
        pool.pool.take_out(1, "told so").unwrap();
        pool.record(11, 1, Persist::Itself).unwrap();
        pool.pool.take_back(1).unwrap();
        let left = Arc::new(AtomicU64::new(writes));
        for disk in &pool.disks {
            *disk.writes_left.lock().unwrap() = Some(left.clone());
        }
        let _ = pool.pool.take_out(0, "told so");
        let _ = pool.record(11, 1, Persist::Itself);
        for disk in &pool.disks {
            *disk.writes_left.lock().unwrap() = None;
        }
        check(&pool.written, k, &open(k, &pool.disks, false).unwrap());
    }
}

#[test]
fn half_of_the_devices_open_only_with_the_others_declared_missing() {
    let mut pool = Pool::new(2);
    pool.fill();
    let error = open(2, &pool.disks[..2], false).unwrap_err();
    assert!(matches!(error, DeviceSetError::TooFew { there: 2, are_in: 4 }), "{error}");
    check(&pool.written, 2, &open(2, &pool.disks[..2], true).unwrap());
    check(&pool.written, 2, &open(2, &pool.disks[1..], false).unwrap());
    let mut wide = Pool::new(4);
    wide.fill();
    check(&wide.written, 4, &open(4, &wide.disks[2..], false).unwrap());
    assert!(matches!(
        open(4, &wide.disks[3..], true),
        Err(DeviceSetError::Lost { there: 3, least: 4 })
    ));
}

#[test]
fn a_pool_in_stripes_keeps_its_number_of_devices() {
    let mut pool = Pool::new(2);
    pool.fill();
    let of = |disk: &Arc<Plain>| Device::over(disk.clone(), "new".into());
    let added = pool.pool.add(of(&Plain::new()), [8; 16]);
    assert!(matches!(added, Err(DeviceError::InStripes(4))), "{added:?}");
    for number in 0..4 {
        let removed = pool.pool.remove(number).unwrap_err();
        assert!(removed.to_string().contains("can only be replaced"), "{removed}");
    }
    pool.pool.take_out(3, "told so").unwrap();
    assert_eq!(states(&pool.pool), [In, In, In, Kept]);
    // A missing device of the pool comes back as itself.
    let without = open(2, &pool.disks[1..], false).unwrap();
    without.fence(2).unwrap();
    assert_eq!(states(&without), [Missing, In, In, Kept]);
    assert_eq!(without.add(of(&pool.disks[0]), [8; 16]).unwrap(), 0);
    assert_eq!(states(&without), [CatchingUp, In, In, Kept]);
}

#[test]
fn a_root_with_other_columns_and_too_many_devices_are_refused() {
    let pool = Pool::new(3);
    let of_mirror = Superblock { geometry: geometry(4), ..root(3, 9) };
    pool.pool.swap_root(2, &of_mirror).unwrap();
    let again = DeviceSet::open(devices(&pool.disks), false).unwrap();
    assert!(
        matches!(again.read_root(), Err(RootError::None(text)) if text.contains("4 data columns"))
    );
    let disks: Vec<_> = (0..19).map(|_| Plain::new()).collect();
    let made = DeviceSet::make(&devices(&disks), &root(16, 1), &[], [3; 16]).unwrap_err();
    assert!(made.to_string().contains("19 devices"), "{made}");
    assert!(disks.iter().all(|disk| disk.blocks.lock().unwrap().is_empty()));
}

/// Labels with valid checksums are not necessarily credible.
#[test]
fn labels_of_impossible_stripes_are_refused() {
    let pool = Pool::new(2);
    let right = pool.disks[0].label();
    let with = |change: &dyn Fn(&mut Label)| {
        let mut label = Label { sequence: 99, ..right.clone() };
        change(&mut label);
        // All labels say so, or it would not count.
        for (disk, member) in pool.disks.iter().zip(&label.members) {
            let of_disk = labels::of_device(&label, member.number, member.device);
            labels::write_both(&**disk, &of_disk).unwrap();
        }
        DeviceSet::open(devices(&pool.disks), true).map(drop)
    };
    let many = |label: &mut Label| {
        let last = *label.members.last().unwrap();
        let more =
            (4..20).map(|number| Member { number, device: DeviceId([number as u8; 16]), ..last });
        label.members.extend(more);
    };
    assert!(matches!(with(&many), Err(DeviceSetError::Unknown(20))));
    let renumbered = |label: &mut Label| label.members[3].number = 7;
    assert!(matches!(with(&renumbered), Err(DeviceSetError::Unknown(4))));
    // Three are a mirror, of which the root knows nothing.
    let three = |label: &mut Label| label.members.truncate(3);
    with(&three).unwrap();
    let opened = DeviceSet::open(devices(&pool.disks), true).unwrap();
    assert!(matches!(opened.read_root(), Err(RootError::None(_))));
}

/// Without a label it would be mistaken for the only device of a pool.
#[test]
fn a_device_of_a_striped_pool_does_not_open_as_a_pool() {
    let pool = Pool::new(2);
    for at in format::label::LABEL_OFFSETS_BYTES {
        pool.disks[1].put(at, 0);
    }
    let alone = crate::Local::over(pool.disks[1].clone());
    assert!(
        matches!(alone.read_root(), Err(RootError::None(text)) if text.contains("striped pool"))
    );
}

#[test]
fn a_segment_is_freed_and_appends_of_partial_rows_panic() {
    let mut pool = Pool::new(3);
    pool.fill();
    assert!(!pool.pool.free(LOG[0]).unwrap());
    let stopped = |place, frames: usize| {
        let call = || pool.pool.append(place, &vec![frame(1); frames]);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(call)).is_err());
    };
    stopped(Place::of_block(12, 0), 4);
    stopped(Place::of_block(12, ROWS - 1), 6);
    stopped(Place::of_block(12, ROWS), 3);
    stopped(Place::of_block(12, 4 * ROWS), 1);
    stopped(Place::of_block(12, 4 * ROWS - 1), 2);
    pool.pool.append_as(Place::NONE, &[], Persist::All).unwrap();
    pool.pool.append(Place::of_block(12, 0), &[]).unwrap();
    assert_eq!(pool.pool.write_and_flush(&mut || Ok(())).ok(), Some(()));
    assert_eq!(
        FRAME_BYTES as u64,
        pool.pool.locate(Place::of_block(1, 1)) - pool.pool.locate(Place::of_block(1, 0))
    );
}

/// Files, through the kernel: the other tests use their own lines.
#[test]
fn files_are_written_and_read_through_rings() {
    let directory = tempfile::tempdir().unwrap();
    let geometry = geometry(2);
    let file = |number: usize| {
        let path = directory.path().join(format!("d{number}"));
        let file = match path.exists() {
            true => FileDisk::open(&path),
            false => FileDisk::create(&path, geometry.pool_bytes()),
        };
        Device::of_file(Arc::new(file.unwrap()), format!("d{number}"))
    };
    let made: Vec<_> = (0..4).map(file).collect();
    DeviceSet::make(&made, &root(2, 1), &[Place::of_block(1, 0)], [3; 16]).unwrap();
    drop(made);
    let pool = DeviceSet::open((0..4).map(file).collect(), false).unwrap();
    pool.read_root().unwrap();
    pool.lay_out(geometry);
    assert_eq!(pool.fence(1).unwrap(), Fence::Lock);
    let mut channel = pool.channel(8).unwrap();
    let mut ended = Vec::new();
    let frames: Vec<_> = (0..32).map(frame).collect();
    channel.append(1, Place::of_block(3, 0), frames, Persist::All).unwrap();
    channel.append(2, Place::of_block(4, 2 * ROWS), vec![frame(9)], Persist::Itself).unwrap();
    channel.submit().unwrap();
    while ended.len() < 2 {
        channel.wait().unwrap();
        channel.complete(&mut ended).unwrap();
    }
    assert!(ended.drain(..).all(|ended| ended.result.is_ok()));
    // Through the channel, the rest through the set that made the pool.
    let writes = |device: &DeviceStatus| (device.counts.writes.ok(), device.counts.flushes.ok());
    let all: Vec<_> = pool.devices().iter().map(writes).collect();
    assert!(all.iter().all(|(writes, flushes)| *writes >= 2 && *flushes >= 1), "{all:?}");
    let read = |pool: &DeviceSet| -> Vec<u64> {
        pool.devices().iter().map(|device| device.counts.reads.bytes).collect()
    };
    let before = read(&pool);
    assert!(pool.verify_rows(3, 0..ROWS).unwrap());
    let row_bytes = u64::from(ROWS) * 4096;
    assert_eq!(read(&pool), before.iter().map(|bytes| bytes + row_bytes).collect::<Vec<_>>());
    for out in [3, 0] {
        let stale = |count| (0..count).map(|_| FrameMut::stale()).collect();
        channel.read(3, Place::of_block(3, 0), stale(32)).unwrap();
        channel.read(4, Place::of_block(4, 2 * ROWS), stale(1)).unwrap();
        channel.submit().unwrap();
        while ended.len() < 2 {
            channel.wait().unwrap();
            channel.complete(&mut ended).unwrap();
        }
        for ended in ended.drain(..) {
            let Buffers::Read(frames) = ended.buffers else { panic!("it was a read") };
            let expected = if ended.user_data == 3 { (0..32).collect() } else { vec![9] };
            assert_eq!(frames.iter().map(|frame| frame[5]).collect::<Vec<u8>>(), expected);
        }
        pool.take_out(out, "told so").unwrap();
    }
}
