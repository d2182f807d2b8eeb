//! Pools in stripes whose columns are moved: to free parts, off devices to be removed, to a new
//! one.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use block::FrameMut;
use format::{Features, Place};
use sys::{Disk, Persist};

use super::laying_tests::come;
use super::stripes_checked::{check, open};
use super::stripes_tests::{LOG, METADATA, Pool, ROWS, geometry, root};
use super::tests::{Plain, devices, frame};
use super::{Device, DeviceSet};
use crate::devices::DeviceState::{In, Out};
use crate::devices::{DeviceError, Lacking, Rebuilt};
use crate::plan::StripePlan;
use crate::segments::Segments;

impl Pool {
    /// Makes a pool with a map of parts, on devices of these sizes in parts, with some of them
    /// spare.
    pub(super) fn planned(parts: &[u64], spares: usize) -> Self {
        let disks: Vec<_> = parts.iter().map(|_| Plain::new()).collect();
        for (disk, parts) in disks.iter().zip(parts) {
            disk.len_bytes.store((16 << 20) + parts * (64 << 10), Ordering::Relaxed);
        }
        let bytes: Vec<u64> = disks.iter().map(|disk| disk.len_bytes()).collect();
        let capacity_bytes = Some(geometry(2).pool_bytes());
        let plan = StripePlan::new(&bytes, spares, capacity_bytes, Some(64 << 10)).unwrap();
        let k = plan.geometry.columns;
        assert_eq!(plan.geometry, geometry(k));
        let mut root = root(k, 1);
        root.features.incompatible |= Features::PARTS;
        let wiped = [Place::of_block(1, 0)];
        let with = (&wiped[..], [3; 16]);
        DeviceSet::make_planned(&devices(&disks), &root, with, &plan).unwrap();
        Self::of(k, disks)
    }
}

/// Copies what the current batch lacks.
fn copy(set: &DeviceSet) {
    for (is_metadata, segments) in [(false, &LOG[..]), (true, &METADATA[..])] {
        for segment in segments.iter().filter(|segment| set.lacks(Lacking::Parts, **segment)) {
            for rows in [0..7, 7..ROWS] {
                let rebuilt = set.rebuild(Lacking::Parts, *segment, is_metadata, rows).unwrap();
                assert_eq!(rebuilt, Rebuilt::All);
            }
        }
    }
}

fn is_moving(set: &DeviceSet) -> bool {
    set.begin_to_give();
    set.lacking().iter().any(|(who, _)| *who == Lacking::Parts)
}

/// Moves all that has to be moved; returns how many batches it took.
pub(super) fn move_all(set: &DeviceSet) -> usize {
    let mut batches = 0;
    while is_moving(set) {
        copy(set);
        set.given(Lacking::Parts).unwrap();
        batches += 1;
        assert!(batches < 50);
    }
    batches
}

pub(super) fn used(set: &DeviceSet) -> Vec<u32> {
    set.devices().iter().map(|device| device.parts.unwrap().used).collect()
}

/// Asserts that everything is readable if any two devices are lost.
pub(super) fn survives_two(pool: &Pool) {
    for a in 0..pool.disks.len() {
        for b in a + 1..pool.disks.len() {
            let left = pool.disks.iter().enumerate().filter(|(at, _)| *at != a && *at != b);
            let left: Vec<_> = left.map(|(_, disk)| disk.clone()).collect();
            check(&pool.written, pool.k, &open(pool.k, &left, true).unwrap());
        }
    }
}

#[test]
fn devices_of_any_sizes_hold_a_pool() {
    for (parts, k) in [(&[15, 15, 40, 90, 15][..], 3), (&[30; 30][..], 16), (&[9; 48][..], 16)] {
        let mut pool = Pool::planned(parts, 0);
        assert_eq!(pool.k, k);
        pool.fill();
        pool.check();
        if parts.len() < 10 {
            survives_two(&pool);
        }
        let again = open(pool.k, &pool.disks, false).unwrap();
        check(&pool.written, pool.k, &again);
    }
}

#[test]
fn columns_of_a_lost_device_are_rebuilt_on_the_others() {
    let mut pool = Pool::planned(&[20; 6], 1);
    pool.fill();
    pool.disks[2].go();
    pool.record(1, 1, Persist::Itself).unwrap();
    pool.metadata(5, 1, 2).unwrap();
    for segment in LOG {
        pool.record(segment, 1, Persist::Itself).unwrap();
    }
    assert_eq!(pool.pool.devices()[2].state, Out);
    assert!(!is_moving(&pool.pool), "it may come back");
    pool.pool.set_lost_after(Duration::ZERO);
    assert_eq!(move_all(&pool.pool), 1);
    assert_eq!((used(&pool.pool)[2], used(&pool.pool).iter().sum()), (0, 15 * 5));
    pool.check();
    // Now two more may be lost, and the lost device can be removed.
    pool.pool.remove(2).unwrap();
    pool.disks.remove(2);
    assert_eq!(pool.pool.devices().len(), 5);
    survives_two(&pool);
}

/// With two devices lost, segments that lack two columns come first.
#[test]
fn segments_that_lack_most_are_rebuilt_first() {
    let mut pool = Pool::planned(&[60; 8], 2);
    pool.fill();
    for lost in [1, 4] {
        pool.disks[lost].go();
    }
    pool.pool.append_as(format::Place::NONE, &[], Persist::All).unwrap();
    pool.pool.set_lost_after(Duration::ZERO);
    assert!(is_moving(&pool.pool));
    let table = pool.pool.members().placement().table().unwrap();
    let moves = |segment| pool.pool.members().moves_of(segment).len();
    for segment in 1..table.map().segment_count() {
        let lost = table.map().parts(segment).filter(|part| [1, 4].contains(&part.device));
        assert_eq!(moves(segment), lost.count());
    }
    move_all(&pool.pool);
    pool.check();
    assert_eq!((used(&pool.pool)[1], used(&pool.pool)[4]), (0, 0));
}

#[test]
fn a_device_that_is_removed_is_emptied_first() {
    let mut pool = Pool::planned(&[20; 6], 1);
    pool.fill();
    pool.pool.remove(1).unwrap();
    assert!(pool.pool.devices()[1].parts.unwrap().is_emptied);
    // Removal continues after a restart, and a device that is to stay after all stays.
    pool.pool = open(pool.k, &pool.disks, false).unwrap();
    pool.pool.fence(2).unwrap();
    pool.pool.take_back(1).unwrap();
    assert!(!is_moving(&pool.pool));
    pool.pool.remove(1).unwrap();
    move_all(&pool.pool);
    assert_eq!(pool.pool.devices().iter().map(|it| it.number).collect::<Vec<_>>(), [0, 2, 3, 4, 5]);
    pool.check();
    pool.disks.remove(1);
    survives_two(&pool);
    // With another one gone segments are as narrow as they can be, and then there is no room.
    pool.pool.remove(3).unwrap();
    let refused = pool.pool.remove(4).unwrap_err();
    assert!(matches!(refused, DeviceError::NoRoom { number: 4, has: 0, .. }), "{refused}");
}

/// From its own copy: that of another device may be wrong, and would then be wrong twice.
#[test]
fn a_moved_copy_of_metadata_is_read_from_its_own_location() {
    for liar in [0, 2, 3, 4, 5] {
        let mut pool = Pool::planned(&[20; 6], 1);
        pool.fill();
        let mut blocks = pool.disks[liar].blocks.lock().unwrap();
        for (_, block) in blocks.iter_mut().filter(|(at, _)| **at >= 16 << 20) {
            *block = frame(0xee);
        }
        drop(blocks);
        pool.pool.remove(1).unwrap();
        move_all(&pool.pool);
        for (&(segment, block), written) in &pool.written {
            if METADATA.contains(&segment) {
                let right = (0..3).filter(|copy| {
                    let mut read = [FrameMut::stale()];
                    let place = Place::of_block(segment, block);
                    pool.pool.read_copy(place, *copy, &mut read).is_ok()
                        && read[0][..] == written[..]
                });
                assert!(right.count() >= 2, "block {block} of segment {segment}, liar {liar}");
            }
        }
    }
}

#[test]
fn an_added_device_takes_its_share_and_the_pool_can_grow() {
    let mut pool = Pool::planned(&[20; 18], 0);
    pool.fill();
    // It lacks nothing, and is in at once.
    assert_eq!(come(&mut pool, 40), 18);
    assert_eq!(pool.pool.devices()[18].state, In);
    // No segment can be wider.
    assert_eq!(pool.pool.to_lay_anew(), None);
    move_all(&pool.pool);
    let now = used(&pool.pool);
    assert_eq!(now.iter().sum::<u32>(), 15 * 18);
    // At most one part per segment, as no segment has two on one device.
    assert!((13..=15).contains(&now[18]), "{now:?}");
    assert!(now[..18].iter().all(|used| (12..=15).contains(used)), "{now:?}");
    pool.check();
    // Most of the free parts.
    let more = format::Geometry { segment_count: 20, ..super::stripes_tests::geometry(16) };
    pool.pool.grow(more.pool_bytes()).unwrap();
    assert_eq!(pool.pool.len_bytes(), more.pool_bytes());
    assert_eq!(used(&pool.pool).iter().sum::<u32>(), 19 * 18);
    pool.check();
}

#[test]
fn writes_during_a_move_go_to_the_new_location() {
    let mut pool = Pool::planned(&[20; 6], 1);
    pool.fill();
    pool.pool.remove(0).unwrap();
    assert!(is_moving(&pool.pool));
    for at in 0..6 {
        pool.record(LOG[at % 6], 1, Persist::Itself).unwrap();
        pool.metadata(METADATA[at % 4], at as u32 * 5, 2).unwrap();
    }
    copy(&pool.pool);
    for at in 0..6 {
        pool.record(LOG[at % 6], 1, Persist::Itself).unwrap();
        pool.metadata(METADATA[at % 4], at as u32 * 7, 2).unwrap();
    }
    pool.pool.given(Lacking::Parts).unwrap();
    pool.disks.remove(0);
    pool.check();
    survives_two(&pool);
}

/// Until the map changes, columns are where they were.
#[test]
fn an_unfinished_batch_changes_nothing() {
    let mut pool = Pool::planned(&[20; 6], 1);
    pool.fill();
    pool.pool.remove(0).unwrap();
    assert!(is_moving(&pool.pool));
    copy(&pool.pool);
    let again = open(pool.k, &pool.disks, false).unwrap();
    assert_eq!(used(&again)[0], used(&pool.pool)[0]);
    check(&pool.written, pool.k, &again);
}

/// A device that columns move to goes out, and may be back before the batch ends: it lacks what was
/// written meanwhile.
#[test]
fn a_batch_whose_target_was_out_is_given_up() {
    for returns in [false, true] {
        let mut pool = Pool::planned(&[20; 6], 1);
        pool.fill();
        pool.pool.remove(0).unwrap();
        assert!(is_moving(&pool.pool));
        copy(&pool.pool);
        let moves = pool.pool.members().moves_of(LOG[0]);
        let target = moves.first().map_or(1, |(_, part)| u16::from(part.device));
        pool.pool.take_out(target, "a test").unwrap();
        for segment in LOG {
            pool.record(segment, 1, Persist::Itself).unwrap();
        }
        if returns {
            pool.pool.take_back(target).unwrap();
            pool.catch_up(target);
        }
        assert!(pool.pool.given(Lacking::Parts).is_err());
        assert!(pool.pool.lacking().is_empty());
        pool.check();
        if !returns {
            pool.pool.take_back(target).unwrap();
            pool.catch_up(target);
        }
        move_all(&pool.pool);
        pool.disks.remove(0);
        survives_two(&pool);
    }
}

/// Otherwise writes would go to a device that is no member.
#[test]
fn a_target_of_a_move_can_be_removed_again() {
    let mut pool = Pool::planned(&[20; 18], 0);
    pool.fill();
    let device = devices(&[Plain::new()]).remove(0);
    assert_eq!(pool.pool.add(device, [8; 16]).unwrap(), 18);
    pool.pool.given(Lacking::Device(18)).unwrap();
    assert!(is_moving(&pool.pool));
    pool.pool.remove(18).unwrap();
    assert_eq!(pool.pool.devices().len(), 18);
    for segment in LOG {
        pool.record(segment, 1, Persist::Itself).unwrap();
    }
    assert!(pool.pool.given(Lacking::Parts).is_err());
    pool.check();
}

/// The map is read from any device that is in; without it nothing opens.
#[test]
fn a_map_that_is_wrong_on_one_device_is_read_from_another() {
    let mut pool = Pool::planned(&[20; 5], 0);
    pool.fill();
    let spoil = |disk: &Arc<Plain>| {
        for at in format::parts_map::PARTS_MAP_OFFSETS_BYTES {
            disk.put(at, 1);
        }
    };
    pool.disks[..4].iter().for_each(spoil);
    check(&pool.written, pool.k, &open(pool.k, &pool.disks, false).unwrap());
    spoil(&pool.disks[4]);
    let refused = DeviceSet::open(devices(&pool.disks), false).unwrap_err();
    assert!(matches!(refused, super::DeviceSetError::NoMap), "{refused}");
}

/// A part that a batch has left may still get writes that were in flight then.
#[test]
fn parts_left_by_a_batch_are_unused_by_the_next() {
    let mut pool = Pool::planned(&[20; 6], 1);
    pool.fill();
    pool.pool.remove(0).unwrap();
    assert!(is_moving(&pool.pool));
    let table = pool.pool.members().placement().table().unwrap();
    let left: Vec<_> =
        table.moves().keys().map(|(segment, column)| table.map().part(*segment, *column)).collect();
    copy(&pool.pool);
    pool.pool.given(Lacking::Parts).unwrap();
    pool.disks.remove(0);
    let device = Device::over(Plain::new(), "new".into());
    assert_eq!(pool.pool.add(device, [4; 16]).unwrap(), 0);
    pool.pool.given(Lacking::Device(0)).unwrap();
    assert!(is_moving(&pool.pool));
    let table = pool.pool.members().placement().table().unwrap();
    assert!(table.moves().values().all(|part| !left.contains(part)));
    assert!(!left.is_empty() && !table.moves().is_empty());
}
