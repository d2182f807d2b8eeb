//! The locations of the columns of a striped pool, and the moves in progress.

use std::collections::BTreeMap;

use format::geometry::PARITY_COLUMNS;
use format::parts_map::MAPPED_DEVICES_MAX;
use format::{Part, PartsMap};

/// Columns being moved: the segment, the column, and the part that it is moved to.
pub(super) type Moves = BTreeMap<(u32, usize), Part>;

/// The map of parts, and moves in progress. It is immutable: changes replace it.
#[derive(Clone, Debug)]
pub(super) struct Table {
    map: PartsMap,
    moves: Moves,
    /// Whether all segments have the number of columns with which the pool was created.
    is_uniform: bool,
    /// The number of columns on each device, by its number, and the highest of their parts.
    used: [u32; MAPPED_DEVICES_MAX as usize],
    last: [u32; MAPPED_DEVICES_MAX as usize],
}

impl Table {
    pub(super) fn new(map: PartsMap) -> Self {
        Self::moving(map, Moves::new())
    }

    /// Returns a table with moves in progress: writes to these columns go to both parts.
    pub(super) fn moving(map: PartsMap, moves: Moves) -> Self {
        let mut used = [0; MAPPED_DEVICES_MAX as usize];
        let mut last = used;
        for part in (1..map.segment_count()).flat_map(|segment| map.parts(segment)) {
            let device = usize::from(part.device);
            used[device] += 1;
            last[device] = part.number.max(last[device]);
        }
        let is_uniform = map.is_uniform();
        Self { map, moves, is_uniform, used, last }
    }

    pub(super) fn map(&self) -> &PartsMap {
        &self.map
    }

    /// Returns the number of columns of a segment, data and parity; `None` if there is no such
    /// segment.
    pub(super) fn columns(&self, segment: u32) -> Option<usize> {
        match (1..self.map.segment_count()).contains(&segment) {
            false => None,
            true if self.is_uniform => Some(self.map.made_with()),
            true => Some(self.map.columns_of(segment)),
        }
    }

    /// Returns the number of data columns.
    pub(super) fn data_columns(&self, segment: u32) -> Option<u8> {
        Some((self.columns(segment)? - PARITY_COLUMNS as usize) as u8)
    }

    /// Returns whether all segments have the number of columns with which the pool was created.
    pub(super) fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    pub(super) fn moves(&self) -> &Moves {
        &self.moves
    }

    /// Returns the part to which writes to a column go, and the one to which the column is being
    /// moved.
    pub(super) fn written(&self, segment: u32, column: usize) -> (Part, Option<Part>) {
        let other = self.moves.get(&(segment, column)).copied();
        (self.map.part(segment, column), other)
    }

    /// Returns whether this device has a share of the pool. Without a map all devices have one.
    pub(super) fn has_share(&self, device: u16) -> bool {
        self.map.sequence == 0 || self.used(device) > 0
    }

    /// Returns whether a device is being emptied.
    pub(super) fn is_emptied(&self, device: u16) -> bool {
        device < MAPPED_DEVICES_MAX && self.map.emptied & 1 << device != 0
    }

    /// Returns the highest part of a device that has a column; 0 if there is none.
    pub(super) fn last_part(&self, device: u16) -> u32 {
        self.last.get(usize::from(device)).copied().unwrap_or_default()
    }

    /// Returns how many columns a device has.
    pub(super) fn used(&self, device: u16) -> u32 {
        self.used.get(usize::from(device)).copied().unwrap_or_default()
    }
}
