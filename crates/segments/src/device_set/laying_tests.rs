//! Pools in stripes whose segments are laid out anew when devices are lost or added.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sys::Persist;

use super::moving_tests::{move_all, survives_two, used};
use super::stripes_checked::{check, open};
use super::stripes_tests::Pool;
use super::tests::{Plain, devices};
use crate::devices::{Lacking, ToLayAnew};
use crate::segments::Segments;

/// Empty segments.
const FREE: [u32; 6] = [8, 11, 12, 13, 14, 15];

/// Makes a device count as lost.
fn lose(pool: &Pool, number: usize) {
    pool.disks[number].go();
    pool.pool.append_as(format::Place::NONE, &[], Persist::All).unwrap();
    pool.pool.set_lost_after(Duration::ZERO);
}

fn to_lay(pool: &Pool) -> Arc<ToLayAnew> {
    pool.pool.to_lay_anew().unwrap_or_default()
}

/// Adds a device of `parts` parts.
pub(super) fn come(pool: &mut Pool, parts: u64) -> u16 {
    let disk = Plain::new();
    disk.len_bytes.store((16 << 20) + parts * (64 << 10), Ordering::Relaxed);
    let device = devices(std::slice::from_ref(&disk)).remove(0);
    let number = pool.pool.add(device, [8; 16]).unwrap();
    pool.disks.push(disk);
    pool.pool.given(Lacking::Device(number)).unwrap();
    number
}

/// Writes to the segments that were empty.
fn use_free(pool: &mut Pool) {
    for segment in &FREE[..4] {
        for rows in [1, 4, 2] {
            pool.record(*segment, rows, Persist::Itself).unwrap();
        }
    }
    for at in 0..5 {
        pool.metadata(FREE[4], at * 5, at % 3 + 1).unwrap();
    }
}

#[test]
fn without_free_parts_segments_become_narrower() {
    let mut pool = Pool::planned(&[15; 6], 0);
    pool.fill();
    assert_eq!(pool.pool.to_lay_anew(), None);
    lose(&pool, 2);
    assert_eq!(move_all(&pool.pool), 0);
    let all: Vec<u32> = (1..16).collect();
    assert_eq!(*to_lay(&pool), ToLayAnew { lacking: all, narrow: vec![] });
    assert_eq!(pool.pool.lay_anew(&FREE).unwrap(), 6);
    assert!(FREE.iter().all(|segment| pool.pool.columns(*segment) == Some(3)));
    assert_eq!((pool.pool.columns(1), to_lay(&pool).lacking.len()), (Some(4), 9));
    assert_eq!(used(&pool.pool), [15, 15, 9, 15, 15, 15]);
    use_free(&mut pool);
    pool.check();
    // After a restart, and with two more devices gone, the segments laid out anew are readable.
    let left: Vec<_> = [0, 1, 3, 4, 5].map(|at| pool.disks[at].clone()).into();
    check(&pool.written, pool.k, &open(pool.k, &left, false).unwrap());
    let lost = |segment: &u32| !FREE.contains(segment);
    let of_free: super::stripes_tests::Written = pool
        .written
        .iter()
        .filter(|((it, _), _)| !lost(it))
        .map(|(k, v)| (*k, v.clone()))
        .collect();
    assert!(of_free.len() > 80);
    // All data of the others moves, and they are laid out too: then any two may be lost.
    pool.written = of_free;
    let others: Vec<u32> = (1..16).filter(lost).collect();
    assert_eq!(pool.pool.lay_anew(&others).unwrap(), 9);
    assert_eq!(pool.pool.to_lay_anew(), None);
    assert_eq!(used(&pool.pool), [15, 15, 0, 15, 15, 15]);
    pool.pool.remove(2).unwrap();
    pool.disks.remove(2);
    survives_two(&pool);
}

#[test]
fn with_an_added_device_segments_become_wider() {
    let mut pool = Pool::planned(&[15; 5], 0);
    pool.fill();
    assert_eq!(come(&mut pool, 15), 5);
    assert_eq!(move_all(&pool.pool), 0);
    assert_eq!(to_lay(&pool).narrow, (1..16).collect::<Vec<_>>());
    assert_eq!(pool.pool.lay_anew(&FREE).unwrap(), 6);
    assert_eq!((pool.pool.columns(FREE[0]), pool.pool.columns(1)), (Some(4), Some(3)));
    assert_eq!(used(&pool.pool), [15, 15, 15, 15, 15, 6]);
    use_free(&mut pool);
    pool.check();
    survives_two(&pool);
    // Doing it again improves nothing.
    assert_eq!(pool.pool.lay_anew(&FREE).unwrap(), 0);
}

#[test]
fn a_removed_device_is_emptied_without_free_parts_elsewhere() {
    let mut pool = Pool::planned(&[15; 6], 0);
    pool.pool.remove(4).unwrap();
    let lacking = to_lay(&pool).lacking.clone();
    assert_eq!(lacking.len(), 15);
    assert_eq!(pool.pool.lay_anew(&lacking).unwrap(), 15);
    assert_eq!(pool.pool.devices().iter().map(|it| it.number).collect::<Vec<_>>(), [0, 1, 2, 3, 5]);
    pool.disks.remove(4);
    pool.fill();
    pool.check();
    survives_two(&pool);
}

/// Parts reserved for the columns of lost devices are not used for wider segments.
#[test]
fn spare_parts_stay_free() {
    let mut pool = Pool::planned(&[18; 6], 1);
    assert_eq!(pool.pool.to_lay_anew(), None);
    // With seven devices of 18 parts, six have as many as all columns of 15 segments of six.
    come(&mut pool, 3);
    let narrow = to_lay(&pool).narrow.clone();
    assert_eq!(narrow.len(), 15);
    pool.pool.lay_anew(&narrow).unwrap();
    let (all, used): (u32, u32) = (6 * 18 + 3, used(&pool.pool).iter().sum());
    assert!(all - used >= 18 && used > 75, "{used} of {all}");
}

#[test]
fn a_segment_being_moved_keeps_its_layout() {
    let mut pool = Pool::planned(&[20; 6], 1);
    pool.fill();
    pool.pool.remove(1).unwrap();
    pool.pool.begin_to_give();
    let before = used(&pool.pool);
    assert_eq!(pool.pool.lay_anew(&FREE).unwrap(), 0);
    move_all(&pool.pool);
    assert!(before[1] > 0);
    pool.check();
}

#[test]
fn if_labels_can_not_be_written_the_layout_is_unchanged() {
    let mut pool = Pool::planned(&[15; 4], 0);
    pool.fill();
    come(&mut pool, 15);
    pool.disks.iter().for_each(|disk| disk.go());
    assert!(pool.pool.lay_anew(&FREE).is_err());
    assert_eq!((pool.pool.columns(FREE[0]), used(&pool.pool)[4]), (None, 0));
}

/// A replacement that is too small for its predecessor's columns is added as one more device, and
/// gets what fits.
#[test]
fn a_lost_device_is_replaced_by_a_smaller_one() {
    let mut pool = Pool::planned(&[15; 6], 0);
    lose(&pool, 3);
    let disk = Plain::new();
    disk.len_bytes.store((16 << 20) + 6 * (64 << 10), Ordering::Relaxed);
    let device = devices(std::slice::from_ref(&disk)).remove(0);
    assert_eq!(pool.pool.replace(3, device, [5; 16]).unwrap(), 6);
    pool.disks.push(disk);
    pool.pool.given(Lacking::Device(6)).unwrap();
    // Six columns have room there.
    move_all(&pool.pool);
    assert_eq!((used(&pool.pool)[3], used(&pool.pool)[6]), (9, 6));
    let lacking = to_lay(&pool).lacking.clone();
    assert_eq!((lacking.len(), pool.pool.lay_anew(&lacking).unwrap()), (9, 9));
    pool.disks.remove(3);
    assert_eq!(used(&pool.pool), [15, 15, 15, 15, 15, 6]);
    pool.fill();
    pool.check();
    survives_two(&pool);
}
