//! Checks in tests of striped pools.

use std::io;
use std::sync::Arc;

use block::{Frame, FrameMut};
use format::Place;

use super::stripes_tests::{LOG, ROWS, Written, geometry};
use super::tests::{Plain, devices};
use super::{DeviceSet, DeviceSetError};
use crate::segments::Segments;

pub(super) fn open(
    k: u8,
    disks: &[Arc<Plain>],
    may_miss: bool,
) -> Result<DeviceSet, DeviceSetError> {
    let pool = DeviceSet::open(devices(disks), may_miss)?;
    pool.read_root().unwrap();
    pool.lay_out(geometry(k));
    Ok(pool)
}

pub(super) fn read(pool: &DeviceSet, place: Place, blocks: usize) -> io::Result<Vec<Frame>> {
    let mut frames: Vec<_> = (0..blocks).map(|_| FrameMut::stale()).collect();
    pool.read(place, &mut frames)?;
    Ok(frames.into_iter().map(FrameMut::freeze).collect())
}

/// Reads everything that was written, in pieces that cross the ends of columns.
pub(super) fn check(written: &Written, k: u8, pool: &DeviceSet) {
    for segment in LOG.into_iter().chain([8, 12, 13]) {
        let blocks = u32::from(pool.columns(segment).unwrap_or(k)) * ROWS;
        for start in (0..blocks).step_by(21) {
            let found =
                read(pool, Place::of_block(segment, start), 21.min(blocks - start) as usize);
            for (block, found) in (start..).zip(found.unwrap()) {
                let expected = written.get(&(segment, block));
                assert!(expected.is_none_or(|expected| *expected == found), "{segment} {block}");
            }
        }
    }
    for ((segment, block), expected) in
        written.iter().filter(|(at, _)| [5, 6, 7, 10, 14].contains(&at.0))
    {
        assert_eq!(read(pool, Place::of_block(*segment, *block), 1).unwrap()[0], *expected);
    }
}
