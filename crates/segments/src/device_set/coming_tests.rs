//! Devices that are added, removed, stay out, or belong to another pool.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use format::{Place, Superblock};

use super::tests::{
    GEOMETRY, Plain, devices, frame, made, made_in_stripes, opened, read, root, states,
};
use super::{Device, DeviceSet, DeviceSetError};
use crate::devices::DeviceState::{CatchingUp, In, Kept, Missing, Out};
use crate::devices::{DeviceError, Lacking};
use crate::segments::Segments;

#[test]
fn devices_are_added_and_removed() {
    let (disks, set) = made(2);
    let place = Place::of_block(2, 0);
    set.append(place, &[frame(1)]).unwrap();
    let blank = Plain::new();
    let of = |disk: &Arc<Plain>| Device::over(disk.clone(), "new".into());
    assert_eq!(set.add(of(&blank), [1; 16]).unwrap(), 2);
    assert_eq!(states(&set), [In, In, CatchingUp]);
    let full = set.add(of(&Plain::new()), [2; 16]);
    assert!(matches!(full, Err(DeviceError::Full(3))));
    set.copy_to(Lacking::Device(2), place, &[frame(1)]).unwrap();
    set.given(Lacking::Device(2)).unwrap();
    // A device that is in has to go out first, and its successor has another number.
    let other = Plain::new();
    assert!(matches!(set.replace(0, of(&other), [3; 16]), Err(DeviceError::State { .. })));
    set.take_out(0, "it is old").unwrap();
    assert_eq!(states(&set)[0], Kept);
    assert_eq!(set.replace(0, of(&other), [3; 16]).unwrap(), 3);
    assert_eq!(set.devices().iter().map(|it| it.number).collect::<Vec<_>>(), [1, 2, 3]);
    set.copy_to(Lacking::Device(3), place, &[frame(1)]).unwrap();
    set.given(Lacking::Device(3)).unwrap();
    set.remove(1).unwrap();
    set.remove(2).unwrap();
    assert!(matches!(set.remove(3), Err(DeviceError::Last(3))));
    assert!(matches!(set.take_out(9, ""), Err(DeviceError::Unknown(9))));
    // A removed device is no longer a member; the remaining ones are the whole pool.
    let again = opened(std::slice::from_ref(&other), false).unwrap();
    assert_eq!((states(&again), read(&again, place).unwrap()), (vec![In], 1));
    let newest = opened(&[disks[0].clone(), other], false).unwrap();
    assert_eq!(newest.devices().len(), 1);
    let short = Plain::new();
    short.len_bytes.store(1 << 20, Ordering::Relaxed);
    assert!(matches!(set.add(of(&short), [1; 16]), Err(DeviceError::Small { .. })));
}

/// A copy to a device that catches up must not be continued for a new one with the same number.
#[test]
fn an_attempt_to_catch_up_is_not_continued_for_another_device() {
    let (_, set) = made(2);
    let add = |entropy: u8| {
        let device = devices(&[Plain::new()]).remove(0);
        set.add(device, [entropy; 16]).unwrap();
        set.lacking()
    };
    let first = add(1);
    set.remove(2).unwrap();
    let second = add(2);
    let device = Lacking::Device(2);
    assert_eq!((first[0].0, second[0].0), (device, device), "the highest number is free again");
    assert_ne!(first, second);
}

#[test]
fn a_device_kept_out_stays_out_when_the_pool_is_reopened() {
    let (disks, set) = made(3);
    set.take_out(2, "told so").unwrap();
    disks[1].go();
    set.append(Place::of_block(2, 0), &[frame(1)]).unwrap();
    disks[1].come_back();
    let again = opened(&disks, false).unwrap();
    assert_eq!(states(&again), [In, Out, Kept]);
    again.fence(9).unwrap();
    assert_eq!(states(&again), [In, CatchingUp, Kept]);
    again.take_back(2).unwrap();
    assert_eq!(states(&again), [In, CatchingUp, CatchingUp]);
}

#[test]
fn a_device_that_was_too_short_or_missing_can_be_added_later() {
    let (disks, set) = made(3);
    drop(set);
    disks[0].len_bytes.store(GEOMETRY.pool_bytes() - 4096, Ordering::Relaxed);
    let short = opened(&disks, false).unwrap();
    assert_eq!(states(&short), [Out, In, In]);
    disks[0].len_bytes.store(GEOMETRY.pool_bytes(), Ordering::Relaxed);
    let without = opened(&disks[1..], false).unwrap();
    without.fence(2).unwrap();
    assert!(matches!(without.take_back(0), Err(DeviceError::State { .. })));
    let number = without.add(Device::over(disks[0].clone(), "d0".into()), [1; 16]).unwrap();
    assert_eq!((number, states(&without)), (0, vec![CatchingUp, In, In]));
}

#[test]
fn devices_of_two_pools_and_the_same_twice_are_refused() {
    let (disks, _) = made(2);
    let others: Vec<_> = (0..2).map(|_| Plain::new()).collect();
    let other_root = Superblock { pool_id: [8; 16], ..root(1) };
    DeviceSet::make(&devices(&others), &other_root, &[], [4; 16]).unwrap();
    let mixed = [disks[0].clone(), disks[1].clone(), others[0].clone()];
    assert!(matches!(opened(&mixed, false), Err(DeviceSetError::OtherPool(..))));
    let twice = [disks[0].clone(), disks[0].clone()];
    assert!(matches!(opened(&twice, false), Err(DeviceSetError::Twice(..))));
    assert!(matches!(opened(&[Plain::new()], false), Err(DeviceSetError::NoLabel(_))));
    // A blank device is ignored next to enough others.
    let blank = Plain::new();
    let again = opened(&[disks[0].clone(), disks[1].clone(), blank.clone()], false).unwrap();
    again.fence(2).unwrap();
    assert_eq!(states(&again), [In, In]);
    assert!(blank.blocks.lock().unwrap().is_empty());
}

/// A scrub finds nothing to repair in labels that were written before the root changed.
#[test]
fn labels_stay_valid_until_the_next_change() {
    let (disks, set) = made(2);
    set.swap_root(2, &Superblock { epoch: 7, ..root(3) }).unwrap();
    assert!(set.mend_labels(&root(3)).is_empty());
    disks[1].blocks.lock().unwrap().remove(&format::label::LABEL_OFFSETS_BYTES[0]);
    assert_eq!(set.mend_labels(&root(3)).len(), 1);
    assert!(set.mend_labels(&root(3)).is_empty());
}

/// The newest label is never only on a device that does not count: if the power failed then,
/// nothing would open.
#[test]
fn labels_of_devices_that_are_in_are_written_first() {
    let (disks, set) = made(2);
    set.take_out(0, "a test").unwrap();
    disks[1].go();
    assert!(set.take_back(0).is_err());
    disks[1].come_back();
    assert!(disks[0].label().sequence <= disks[1].label().sequence);
    let again = opened(&disks, false).unwrap();
    assert_eq!(states(&again)[1], In);
}

#[test]
fn a_pool_in_stripes_keeps_its_devices() {
    let (disks, set) = made_in_stripes(4);
    let of = |disk: &Arc<Plain>| Device::over(disk.clone(), "new".into());
    let blank = Plain::new();
    assert!(matches!(set.add(of(&blank), [1; 16]), Err(DeviceError::InStripes(4))));
    assert!(matches!(set.remove(1), Err(DeviceError::InStripes(4))));
    set.take_out(1, "a test").unwrap();
    set.take_out(3, "a test").unwrap();
    let needed = set.take_out(0, "a test");
    assert!(matches!(needed, Err(DeviceError::Needed { number: 0, are_in: 2 })));
    // A device that replaces another has its number, and the other is no longer a member.
    assert_eq!(set.replace(3, of(&blank), [1; 16]).unwrap(), 3);
    set.given(Lacking::Device(3)).unwrap();
    assert_eq!(states(&set), [In, Kept, In, In]);
    drop(set);
    let open = |disks: &[Arc<Plain>], may_miss| DeviceSet::open(devices(disks), may_miss);
    let [a, _, c, old] = <[Arc<Plain>; 4]>::try_from(disks).ok().unwrap();
    let again = open(&[a.clone(), old, c.clone()], false).unwrap();
    assert_eq!(states(&again)[3], Missing);
    // Two of three that are in are enough, and one is not.
    assert!(open(&[a.clone(), c], false).is_ok());
    let lost = open(&[a], true);
    assert!(matches!(lost, Err(DeviceSetError::Lost { there: 1, least: 2 })));
}
