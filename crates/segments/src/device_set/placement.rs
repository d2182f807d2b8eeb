//! What of a segment is on which device.
//!
//! Devices are named by their *position*: their place among the members. In a pool in stripes that
//! is their number, which never changes hands but to who replaces one.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use block::{BLOCK_BYTES, FRAME_BYTES, Frame, FrameMut};
use format::geometry::{METADATA_COPIES, PARITY_COLUMNS, UNITS_PER_BLOCK};
use format::{Geometry, Place};
use parity::{Code, ParityError, Stripe};
use smallvec::SmallVec;

use super::opening::DeviceSetError;
use crate::layout::Layout;

/// The most devices of a pool each of which has all of it.
pub(super) const MIRRORS_MAX: usize = 3;
/// Reads of places that are so near to each other go to the same device, as long as it is well.
const NEAR_BYTES: u64 = 256 << 10;

/// Positions of devices, in the order in which they are asked.
pub(super) type Positions = SmallVec<[u8; 4]>;

/// Which devices have something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Each of these.
    Copies(Positions),
    /// The one with this column of this segment; others have what makes it.
    Column { segment: u32, column: usize },
}

/// Blocks that are one behind the other on their devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Which of the blocks that were asked for.
    pub(super) frames: Range<usize>,
    /// Where they are on each device that has them, in bytes.
    pub(super) offset_bytes: u64,
    pub(super) held: Held,
}

/// What a device gets of an append.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) position: usize,
    pub(super) offset_bytes: u64,
    pub(super) frames: Vec<Frame>,
}

/// How segments are laid on the devices of a pool.
#[derive(Clone, Debug)]
pub(super) struct Placement {
    layout: Arc<Layout>,
    /// How many devices there are, and how parity is made, in a pool in stripes.
    stripes: Option<Arc<dyn Code>>,
}

/// How many devices of a pool on so many must be in: with fewer, something can't be read. In
/// stripes that is as many as have data, and one where each of them has all.
pub fn least_in(devices: usize) -> usize {
    if devices > MIRRORS_MAX { devices - PARITY_COLUMNS as usize } else { 1 }
}

impl Placement {
    /// That of a pool on so many devices.
    ///
    /// # Errors
    /// [`DeviceSetError::Unknown`] if no stripe has so many columns; if a library is missing.
    pub(super) fn on(devices: usize) -> Result<Self, DeviceSetError> {
        let stripes = match least_in(devices) {
            1 => None,
            columns => {
                let stripe = Stripe::new(columns, PARITY_COLUMNS as usize);
                let stripe = stripe.map_err(|_| DeviceSetError::Unknown(devices))?;
                Some(parity::code(stripe)?)
            }
        };
        Ok(Self { layout: Arc::default(), stripes })
    }

    /// Devices are divided like this from now on.
    pub(super) fn lay_out(&self, geometry: Geometry) {
        assert_eq!(geometry.columns, self.columns(), "columns are those of the devices");
        self.layout.set(geometry);
    }

    pub(super) fn geometry(&self) -> Geometry {
        self.layout.get()
    }

    /// How parity is made, in a pool in stripes.
    pub(super) fn code(&self) -> Option<&dyn Code> {
        self.stripes.as_deref()
    }

    /// How many columns of data a segment has.
    pub(super) fn columns(&self) -> u8 {
        self.code().map_or(1, |code| code.stripe().data() as u8)
    }

    /// How many devices must be in: with fewer, something can't be read.
    pub(super) fn least_in(&self) -> usize {
        self.columns().into()
    }

    /// Where so many blocks from a place on are. `devices`: how many there are now.
    pub(super) fn runs(&self, place: Place, count: usize, devices: usize) -> SmallVec<[Run; 1]> {
        let Some(code) = self.code() else {
            let offset_bytes = self.layout.offset_bytes(place, count);
            let first = (offset_bytes / NEAR_BYTES) as usize;
            let positions = (first..first + devices).map(|at| (at % devices.max(1)) as u8);
            let held = Held::Copies(positions.collect());
            return SmallVec::from_iter([Run { frames: 0..count, offset_bytes, held }]);
        };
        let (geometry, shards) = (self.geometry(), code.stripe().shards());
        assert!(
            geometry.contains(place, (count * FRAME_BYTES) as u64)
                && place.offset_units.is_multiple_of(UNITS_PER_BLOCK),
            "{count} blocks at {place:?} are not inside of {geometry:?}"
        );
        let (segment, rows) = (place.segment, geometry.rows());
        let first = place.offset_units / UNITS_PER_BLOCK;
        let (mut runs, mut at) = (SmallVec::new(), 0);
        // Of no blocks at all too there is a run, which ends.
        while at < count || runs.is_empty() {
            let block = first + at as u32;
            let end = count.min(at + (rows - block % rows) as usize);
            let held = match block.checked_sub(geometry.first_metadata_block()) {
                None => Held::Column { segment, column: (block / rows) as usize },
                Some(block) => {
                    let copies = (0..METADATA_COPIES as usize).map(|copy| {
                        let shard = (block / rows * METADATA_COPIES) as usize + copy;
                        position(segment, shard, shards) as u8
                    });
                    Held::Copies(copies.collect())
                }
            };
            let offset_bytes = self.row_offset_bytes(segment, block % rows);
            runs.push(Run { frames: at..end, offset_bytes, held });
            at = end;
        }
        runs
    }

    /// Where a row of a segment is on each device, in bytes.
    pub(super) fn row_offset_bytes(&self, segment: u32, row: u32) -> u64 {
        self.geometry().part_offset_bytes(segment) + u64::from(row) * BLOCK_BYTES
    }

    /// The part of an append that each device gets. An append without frames has an empty part for
    /// each of them, so that all are flushed. In stripes, an append to the log is a whole record.
    ///
    /// # Errors
    /// If parity can't be made.
    pub(super) fn shares(
        &self,
        place: Place,
        frames: &[Frame],
        devices: usize,
    ) -> io::Result<Vec<Share>> {
        let Some(code) = self.code().filter(|_| !frames.is_empty()) else {
            let offset_bytes = self.layout.offset_or_start(place, frames.len());
            let share = |position| Share { position, offset_bytes, frames: frames.to_vec() };
            return Ok((0..devices).map(share).collect());
        };
        if self.geometry().is_of_metadata(place) {
            return Ok(self.copies_of(place, frames, devices));
        }
        let (columns, shards) = (code.stripe().data(), code.stripe().shards());
        let rows = frames.len() / columns;
        let row = place.offset_units / UNITS_PER_BLOCK;
        assert!(
            frames.len() == rows * columns
                && row as usize + rows <= self.geometry().rows() as usize,
            "{} blocks at {place:?} are no rows of {columns} columns",
            frames.len()
        );
        let data: Vec<&[Frame]> = frames.chunks_exact(rows).collect();
        let parity = code.encode(&data).map_err(io::Error::other)?;
        let offset_bytes = self.row_offset_bytes(place.segment, row);
        let columns = data.into_iter().map(<[Frame]>::to_vec).chain(parity);
        let share = |(shard, frames)| {
            let position = position(place.segment, shard, shards);
            Share { position, offset_bytes, frames }
        };
        Ok((0..).zip(columns).map(share).collect())
    }

    /// What each device gets of metadata, in a pool in stripes.
    fn copies_of(&self, place: Place, frames: &[Frame], devices: usize) -> Vec<Share> {
        let runs = self.runs(place, frames.len(), devices);
        let shares = runs.into_iter().flat_map(|run| {
            let Held::Copies(positions) = run.held else { return Vec::new() };
            let share = |position: u8| Share {
                position: position.into(),
                offset_bytes: run.offset_bytes,
                frames: frames[run.frames.clone()].to_vec(),
            };
            positions.into_iter().map(share).collect()
        });
        shares.collect()
    }
}

/// The device with a shard of a segment.
pub(super) fn position(segment: u32, shard: usize, shards: usize) -> usize {
    (segment as usize + shard) % shards
}

/// The shard of a segment that a device has.
pub(super) fn shard_at(segment: u32, position: usize, shards: usize) -> usize {
    (position + shards - segment as usize % shards) % shards
}

/// Fills `frames` with a shard, made of what others have of the same rows.
///
/// # Errors
/// If these are too few.
pub(super) fn make(
    code: &dyn Code,
    others: &[Option<Vec<Frame>>],
    wanted: usize,
    frames: &mut [FrameMut],
) -> Result<(), ParityError> {
    let given: Vec<Option<&[Frame]>> = others.iter().map(Option::as_deref).collect();
    let made = code.reconstruct(&given, &[wanted])?;
    for (frame, made) in frames.iter_mut().zip(made.iter().flatten()) {
        frame.copy_from_slice(&made[..]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(columns: u8, part_bytes: u64) -> Placement {
        let placement = Placement::on(usize::from(columns) + 2).unwrap();
        placement.lay_out(Geometry { part_bytes, segment_count: 16, columns });
        placement
    }

    #[test]
    fn a_read_is_cut_where_a_column_ends() {
        let placement = of(4, 64 << 10);
        let cut = |block, count: usize| -> Vec<(usize, u64, usize)> {
            let runs = placement.runs(Place::of_block(1, block), count, 6).into_iter();
            let cut = runs.map(|run| {
                let Held::Column { column, .. } = run.held else { panic!("it is of the log") };
                (column, (run.offset_bytes - (16 << 20)) / BLOCK_BYTES, run.frames.len())
            });
            cut.collect()
        };
        assert_eq!(cut(0, 16), [(0, 0, 16)]);
        assert_eq!(cut(15, 2), [(0, 15, 1), (1, 0, 1)]);
        assert_eq!(cut(20, 40), [(1, 4, 12), (2, 0, 16), (3, 0, 12)]);
        assert_eq!(cut(63, 1), [(3, 15, 1)]);
    }

    #[test]
    fn what_is_outside_is_stopped() {
        let placement = of(3, 64 << 10);
        let stopped = |place, count| {
            let call = std::panic::AssertUnwindSafe(|| placement.runs(place, count, 5));
            assert!(std::panic::catch_unwind(call).is_err());
        };
        stopped(Place::of_block(1, 40), 9);
        stopped(Place { segment: 1, offset_units: 1 }, 1);
        stopped(Place::of_block(16, 0), 1);
    }

    proptest! {
        #[test]
        fn runs_are_all_blocks_once_and_in_order(
            (columns, bits) in (2..=16u8, 16..=24u32),
            (first, count) in (any::<u32>(), 1..20_000usize),
        ) {
            let placement = of(columns, 1 << bits);
            let (all, rows) =
                (placement.geometry().blocks_per_segment(), placement.geometry().rows());
            let first = first % all;
            let count = count.min((all - first) as usize);
            let mut at = 0;
            for run in placement.runs(Place::of_block(3, first), count, columns.into()) {
                let block = first + at as u32;
                prop_assert!(!run.frames.is_empty() && run.frames.start == at);
                let column = (block / rows) as usize;
                prop_assert_eq!(run.held, Held::Column { segment: 3, column });
                prop_assert_eq!(run.offset_bytes, placement.row_offset_bytes(3, block % rows));
                at = run.frames.end;
                // It ends where it has to, and nowhere else.
                prop_assert!(at == count || (first + at as u32).is_multiple_of(rows));
            }
            prop_assert_eq!(at, count);
        }
    }
}
