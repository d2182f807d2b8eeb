//! Changes of members that a power failure has interrupted.

use format::Label;
use format::label::MemberState;
use sys::Persist;

use super::DeviceSetError;
use super::stripes_checked::{check, open};
use super::stripes_tests::Pool;
use crate::devices::DeviceState::{In, Kept};
use crate::labels;
use crate::segments::Segments;

fn label_of(pool: &Pool, disk: usize) -> Label {
    labels::read(&*pool.disks[disk]).into_iter().flatten().last().unwrap()
}

/// A pool on five disks, the first of which is out, and has the label of a change that makes it a
/// member in: no other disk got that label. `more` makes the label newer.
fn cut_off(more: u64) -> Pool {
    let mut pool = Pool::new(3);
    pool.fill();
    pool.pool.take_out(0, "a test").unwrap();
    pool.record(11, 3, Persist::Itself).unwrap();
    let others = label_of(&pool, 1);
    let mut label = labels::of_device(&others, 0, others.members[0].device);
    label.sequence += more;
    label.members[0].state = MemberState::In;
    labels::write_both(&*pool.disks[0], &label).unwrap();
    pool
}

#[test]
fn a_change_in_only_one_label_does_not_count() {
    // As new as the others' label, as those have changed since, and newer.
    for more in [0, 1, 2] {
        let pool = cut_off(more);
        let states = |disks: &[usize]| {
            let disks: Vec<_> = disks.iter().map(|at| pool.disks[*at].clone()).collect();
            let opened = open(pool.k, &disks, false)?;
            check(&pool.written, pool.k, &opened);
            Ok(opened.devices()[0].state)
        };
        let all: Result<_, DeviceSetError> = states(&[0, 1, 2, 3, 4]);
        assert_eq!(all.unwrap(), Kept);
        assert_eq!(states(&[0, 1, 2, 4]).unwrap(), Kept);
        // With it they would be enough.
        let lost = states(&[0, 3, 4]).unwrap_err();
        assert!(matches!(lost, DeviceSetError::Lost { there: 2, least: 3 }), "{lost}");
    }
}

/// The next change has a newer label nevertheless.
#[test]
fn an_interrupted_change_is_superseded() {
    let pool = cut_off(5);
    let cut = label_of(&pool, 0).sequence;
    let again = open(pool.k, &pool.disks, false).unwrap();
    again.fence(2).unwrap();
    assert!((1..5).all(|disk| label_of(&pool, disk).sequence > cut));
    assert_ne!(again.devices()[0].state, In);
}

/// A device that catches up has the newest label as well, in which it is out.
#[test]
fn a_label_on_a_device_that_it_has_out_counts() {
    let mut pool = Pool::new(2);
    pool.fill();
    pool.pool.take_out(0, "a test").unwrap();
    pool.record(11, 3, Persist::Itself).unwrap();
    pool.disks[3].go();
    pool.record(11, 3, Persist::Itself).unwrap();
    pool.pool.take_back(0).unwrap();
    assert_eq!(label_of(&pool, 0).sequence, label_of(&pool, 1).sequence);
    // According to the other one's label both were in.
    let both: Vec<_> = [0, 3].map(|disk| pool.disks[disk].clone()).into();
    pool.disks[3].come_back();
    let opened = open(pool.k, &both, true).unwrap_err();
    assert!(matches!(opened, DeviceSetError::NoneIn(_)), "{opened}");
}

/// With most of the devices that its label has in, the others can't have continued without it.
#[test]
fn a_change_in_most_labels_counts() {
    let pool = cut_off(1);
    for disk in [1, 2] {
        let label = label_of(&pool, 0);
        let of_disk = labels::of_device(&label, disk as u16, label.members[disk].device);
        labels::write_both(&*pool.disks[disk], &of_disk).unwrap();
    }
    let opened = open(pool.k, &pool.disks, false).unwrap();
    assert_eq!(opened.devices()[0].state, In);
}
