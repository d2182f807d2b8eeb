//! The placement of segments on devices.
//!
//! Devices are identified by their *position*: their index among the members as a caller has seen
//! them. The map of a striped pool has their numbers instead, because members come and go.

use std::io;
use std::ops::Range;
use std::sync::{Arc, PoisonError, RwLock};

use block::{BLOCK_BYTES, FRAME_BYTES, Frame, FrameMut};
use format::geometry::{METADATA_COPIES, PARITY_COLUMNS, UNITS_PER_BLOCK};
use format::{Geometry, PLACE_UNIT_BYTES, Part, PartsMap, Place};
use parity::{Code, DATA_SHARDS_MAX, ParityError, SHARDS_MAX, Stripe};
use smallvec::SmallVec;

use super::device::Slot;
use super::opening::DeviceSetError;
use super::table::Table;
use crate::layout::Layout;

/// The maximum number of devices of a mirrored pool.
pub(super) const MIRRORS_MAX: usize = 3;
/// Reads within this distance go to the same device, as long as it is healthy.
const NEAR_BYTES: u64 = 256 << 10;

/// A location on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At {
    /// The index of the device among the members; none, if it was added after the caller looked at
    /// them.
    pub(super) position: usize,
    pub(super) offset_bytes: u64,
}

/// The devices that hold some data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Held {
    /// Each of these, in the order in which they are read.
    Copies(SmallVec<[At; 3]>),
    /// The device with this column of data, which can be reconstructed from the others.
    Column(Rows, usize),
}

/// Rows of a segment, from the first on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) segment: u32,
    pub(super) first: u32,
}

/// Blocks that are contiguous on their devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Run {
    /// Their range among the requested blocks.
    pub(super) frames: Range<usize>,
    pub(super) held: Held,
}

/// The part of an append that one device gets.
#[derive(Debug)]
pub(super) struct Share {
    pub(super) at: At,
    pub(super) frames: Vec<Frame>,
}

/// How segments are placed on the devices of a pool.
#[derive(Debug)]
pub(super) struct Placement {
    layout: Layout,
    /// The location of columns, and the codes for parity, in a striped pool.
    stripes: Option<Stripes>,
}

#[derive(Debug)]
struct Stripes {
    /// The codes for each number of data columns, from two on.
    codes: Vec<Arc<dyn Code>>,
    table: RwLock<Arc<Table>>,
}

/// Returns how many of `devices` devices that have a share of the pool must be in to read
/// everything: all but two in a striped pool, one in a mirrored one.
pub fn least_in(devices: usize) -> usize {
    if devices > MIRRORS_MAX { devices - PARITY_COLUMNS as usize } else { 1 }
}

impl Placement {
    /// Returns the placement of a pool on this many devices, without a map of parts.
    ///
    /// # Errors
    /// [`DeviceSetError::Unknown`] if there are no stripes of this many columns; if a library is
    /// missing.
    pub(super) fn on(pool_id: [u8; 16], devices: usize) -> Result<Self, DeviceSetError> {
        if devices <= MIRRORS_MAX {
            return Ok(Self { layout: Layout::default(), stripes: None });
        }
        let columns = u8::try_from(devices).map_err(|_| DeviceSetError::Unknown(devices))?;
        if devices > SHARDS_MAX {
            return Err(DeviceSetError::Unknown(devices));
        }
        Self::mapped(PartsMap::over_all(pool_id, columns, 1))
    }

    /// Returns the placement of a pool with this map.
    ///
    /// # Errors
    /// If a library is missing.
    pub(super) fn mapped(map: PartsMap) -> Result<Self, DeviceSetError> {
        let stripes = (2..=DATA_SHARDS_MAX).map(|data| Stripe::new(data, PARITY_COLUMNS as usize));
        let codes = stripes.flatten().map(parity::code).collect::<Result<_, _>>()?;
        let table = RwLock::new(Arc::new(Table::new(map)));
        Ok(Self { layout: Layout::default(), stripes: Some(Stripes { codes, table }) })
    }

    /// Sets the division of devices.
    ///
    /// # Panics
    /// If the map has fewer segments: reading a root checks that.
    pub(super) fn lay_out(&self, geometry: Geometry) {
        assert_eq!(geometry.columns, self.columns(), "the number of columns is the pool's");
        if let Some(table) = self.table() {
            let map = table.map();
            if map.sequence == 0 {
                let columns = map.made_with() as u8;
                let all = PartsMap::over_all(map.pool_id, columns, geometry.segment_count);
                self.replace(Table::new(all));
            } else {
                assert!(map.segment_count() >= geometry.segment_count, "the map has all segments");
            }
        }
        self.layout.set(geometry);
    }

    pub(super) fn geometry(&self) -> Geometry {
        self.layout.get()
    }

    /// Returns the geometry with the columns of a segment.
    pub(super) fn geometry_of(&self, table: &Table, segment: u32) -> Geometry {
        let geometry = self.geometry();
        match table.data_columns(segment) {
            Some(columns) => Geometry { columns, ..geometry },
            // The caller refuses a place in a segment that does not exist.
            None => geometry,
        }
    }

    /// Returns whether the pool is striped.
    pub(super) fn has_stripes(&self) -> bool {
        self.stripes.is_some()
    }

    /// Returns the code for parity of a segment, in a striped pool.
    pub(super) fn code_of(&self, table: &Table, segment: u32) -> Option<&dyn Code> {
        let columns = table.data_columns(segment)?;
        let code = self.stripes.as_ref()?.codes.get(usize::from(columns).checked_sub(2)?)?;
        Some(&**code)
    }

    /// Returns the location of columns, in a striped pool.
    pub(super) fn table(&self) -> Option<Arc<Table>> {
        let stripes = self.stripes.as_ref()?;
        Some(stripes.table.read().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// The same, in a pool with a map of parts.
    pub(super) fn mapped_table(&self) -> Option<Arc<Table>> {
        self.table().filter(|table| table.map().sequence > 0)
    }

    /// Replaces the location of columns. For [`super::members`], which has recorded it in labels
    /// before, if necessary.
    pub(super) fn replace(&self, table: Table) {
        let stripes = self.stripes.as_ref();
        let known = stripes.map(|it| it.table.write().unwrap_or_else(PoisonError::into_inner));
        *known.expect("only a striped pool has a map of parts") = Arc::new(table);
    }

    /// Returns the number of data columns of segments when the pool was created.
    pub(super) fn columns(&self) -> u8 {
        self.table().map_or(1, |table| (table.map().made_with() - PARITY_COLUMNS as usize) as u8)
    }

    /// Returns how many of `devices` devices that have a share of the pool must be in to read
    /// everything.
    pub(super) fn least_in(&self, devices: usize) -> usize {
        match self.stripes {
            Some(_) => devices.saturating_sub(PARITY_COLUMNS as usize),
            None => devices.min(1),
        }
    }

    /// Returns how many shares of an append must be written before the others count as late.
    pub(super) fn enough_of(&self, shares: usize) -> usize {
        self.least_in(shares).max(1)
    }

    /// Returns where `count` blocks from a place on are, on these members.
    ///
    /// # Errors
    /// `NotFound` if there is no such place, in a pool whose segments may change their layout: the
    /// caller holds nothing that keeps the segment as it was, and will not trust the data.
    ///
    /// # Panics
    /// The same, in any other pool: the request would reach other data.
    pub(super) fn runs(
        &self,
        place: Place,
        count: usize,
        slots: &[Arc<Slot>],
    ) -> io::Result<SmallVec<[Run; 1]>> {
        let Some(table) = self.table() else {
            let offset_bytes = self.layout.offset_bytes(place, count);
            let (first, devices) = ((offset_bytes / NEAR_BYTES) as usize, slots.len());
            let at = |at: usize| At { position: at % devices.max(1), offset_bytes };
            let held = Held::Copies((first..first + devices).map(at).collect());
            return Ok(SmallVec::from_iter([Run { frames: 0..count, held }]));
        };
        let geometry = self.geometry_of(&table, place.segment);
        let is_inside = geometry.contains(place, (count * FRAME_BYTES) as u64)
            && place.offset_units.is_multiple_of(UNITS_PER_BLOCK);
        if !is_inside && table.map().sequence > 0 {
            let text = format!("segment {} does not have this place (any longer)", place.segment);
            return Err(io::Error::new(io::ErrorKind::NotFound, text));
        }
        assert!(is_inside, "{count} blocks at {place:?} are not within {geometry:?}");
        let rows = geometry.rows();
        let first = place.offset_units / UNITS_PER_BLOCK;
        let (mut runs, mut at) = (SmallVec::new(), 0);
        // A request for no blocks also has one run, so that it completes.
        while at < count || runs.is_empty() {
            let block = first + at as u32;
            let end = count.min(at + (rows - block % rows) as usize);
            let of = Rows { segment: place.segment, first: block % rows };
            let held = match block.checked_sub(geometry.first_metadata_block()) {
                None => Held::Column(of, (block / rows) as usize),
                Some(block) => {
                    let column = (block / rows * METADATA_COPIES) as usize;
                    let copies = column..column + METADATA_COPIES as usize;
                    let copy = |column| self.at(&table, of, column, slots);
                    Held::Copies(copies.map(copy).collect())
                }
            };
            runs.push(Run { frames: at..end, held });
            at = end;
        }
        Ok(runs)
    }

    /// Returns where rows of a column are: nowhere, if the segment does not have this column (any
    /// longer).
    pub(super) fn at(&self, table: &Table, rows: Rows, column: usize, slots: &[Arc<Slot>]) -> At {
        match table.columns(rows.segment).is_some_and(|columns| column < columns) {
            true => self.in_part(table.map().part(rows.segment, column), rows.first, slots),
            false => At { position: usize::MAX, offset_bytes: 0 },
        }
    }

    fn in_part(&self, part: Part, row: u32, slots: &[Arc<Slot>]) -> At {
        let offset_bytes = self.row_of_part_bytes(part, row);
        At { position: position_of(slots, part.device.into()), offset_bytes }
    }

    /// Returns the offset of a row of a part on its device, in bytes.
    pub(super) fn row_of_part_bytes(&self, part: Part, row: u32) -> u64 {
        self.geometry().part_offset_bytes(part.number) + u64::from(row) * BLOCK_BYTES
    }

    /// Returns the offset of the row of a log place on a device, in bytes; `None` if it is not
    /// there.
    pub(super) fn row_on(&self, device: u16, place: Place) -> Option<u64> {
        let Some(table) = self.table() else { return Some(self.layout.offset_bytes(place, 1)) };
        let parts = table.map().parts(place.segment);
        let part = parts.into_iter().find(|part| u16::from(part.device) == device)?;
        let row = place.offset_units / UNITS_PER_BLOCK % self.geometry().rows();
        Some(self.row_of_part_bytes(part, row))
    }

    /// Returns the offset of a place on the device that is read first, in bytes.
    pub(super) fn locate(&self, place: Place, slots: &[Arc<Slot>]) -> u64 {
        let in_block = u64::from(place.offset_units % UNITS_PER_BLOCK) * PLACE_UNIT_BYTES;
        let held = self.runs(place.block_start(), 1, slots).map(|mut runs| runs.remove(0).held);
        let start = match held {
            Ok(Held::Copies(ref copies)) => copies.first().map_or(0, |at| at.offset_bytes),
            Ok(Held::Column(rows, column)) => {
                self.table().map_or(0, |table| self.at(&table, rows, column, &[]).offset_bytes)
            }
            Err(_) => 0,
        };
        start + in_block
    }

    /// Returns the share of an append that each device gets. An append without frames has an empty
    /// share for each of them, so that all are flushed. In a striped pool, an append to the log is
    /// a whole record.
    ///
    /// # Errors
    /// If parity can't be computed.
    pub(super) fn shares(
        &self,
        place: Place,
        frames: &[Frame],
        slots: &[Arc<Slot>],
    ) -> io::Result<Vec<Share>> {
        let stripes = self.stripes.as_ref().zip(self.table()).filter(|_| !frames.is_empty());
        let code = |table: Arc<Table>| Some((self.code_of(&table, place.segment)?, table));
        let Some((code, table)) = stripes.and_then(|(_, table)| code(table)) else {
            let offset_bytes = self.layout.offset_or_start(place, frames.len());
            let at = |position| At { position, offset_bytes };
            let share = |position| Share { at: at(position), frames: frames.to_vec() };
            return Ok((0..slots.len()).map(share).collect());
        };
        let geometry = self.geometry_of(&table, place.segment);
        let block = place.offset_units / UNITS_PER_BLOCK;
        let (of, columns) = if geometry.is_of_metadata(place) {
            (Rows { segment: place.segment, first: 0 }, copies_of(geometry, place, frames))
        } else {
            let columns = code.stripe().data();
            let rows = frames.len() / columns;
            assert!(
                frames.len() == rows * columns && block as usize + rows <= geometry.rows() as usize,
                "{} blocks at {place:?} are not whole rows of {columns} columns",
                frames.len()
            );
            let data: Vec<&[Frame]> = frames.chunks_exact(rows).collect();
            let parity = code.encode(&data).map_err(io::Error::other)?;
            let all = data.into_iter().map(<[Frame]>::to_vec).chain(parity).enumerate();
            let all = all.map(|(column, frames)| (column, block, frames)).collect();
            (Rows { segment: place.segment, first: block }, all)
        };
        let mut shares = Vec::with_capacity(columns.len());
        for (column, row, frames) in columns {
            let (own, other) = table.written(of.segment, column);
            let share = |part, frames| Share { at: self.in_part(part, row, slots), frames };
            let copy = other.map(|part| share(part, frames.clone()));
            shares.push(share(own, frames));
            shares.extend(copy);
        }
        Ok(shares)
    }
}

/// Returns what each column of a metadata segment gets of `frames`, and from which row on.
fn copies_of(geometry: Geometry, place: Place, frames: &[Frame]) -> Vec<(usize, u32, Vec<Frame>)> {
    let first = place.offset_units / UNITS_PER_BLOCK - geometry.first_metadata_block();
    assert!(geometry.contains(place, (frames.len() * FRAME_BYTES) as u64), "{place:?}");
    let (mut columns, mut at) = (Vec::new(), 0);
    while at < frames.len() {
        let block = first + at as u32;
        let row = block % geometry.rows();
        let end = frames.len().min(at + (geometry.rows() - row) as usize);
        let column = (block / geometry.rows() * METADATA_COPIES) as usize;
        let copies = column..column + METADATA_COPIES as usize;
        columns.extend(copies.map(|column| (column, row, frames[at..end].to_vec())));
        at = end;
    }
    columns
}

/// Returns whether all shares are for these members, and none for a device that was added later.
pub(super) fn are_known(shares: &[Share], slots: &[Arc<Slot>]) -> bool {
    shares.iter().all(|share| share.at.position < slots.len())
}

/// Returns the index among the members of the device with this number.
fn position_of(slots: &[Arc<Slot>], number: u16) -> usize {
    // Usually numbers are positions, because none is missing in between.
    let near = slots.get(usize::from(number)).filter(|slot| slot.number == number);
    match near {
        Some(_) => number.into(),
        None => slots.iter().position(|slot| slot.number == number).unwrap_or(usize::MAX),
    }
}

/// Reconstructs a shard into `frames` from the other columns of the same rows.
///
/// # Errors
/// If there are too few.
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
#[path = "placement_tests.rs"]
mod tests;
