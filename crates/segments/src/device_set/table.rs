//! Where the columns of the segments of a pool in stripes are, and where they are moved to.

use std::collections::BTreeMap;

use format::geometry::PARITY_COLUMNS;
use format::parts_map::MAPPED_DEVICES_MAX;
use format::{Part, PartsMap};

/// Columns that are moved: of a segment, which one, and the part that it goes to.
pub(super) type Moves = BTreeMap<(u32, usize), Part>;

/// The map of parts, and what is being changed of it. It never changes itself: another one takes
/// its place.
#[derive(Clone, Debug)]
pub(super) struct Table {
    map: PartsMap,
    moves: Moves,
    /// Whether all segments have the columns that the pool was made with.
    is_uniform: bool,
    /// How many columns each device has, by its number, and the highest of their parts.
    used: [u32; MAPPED_DEVICES_MAX as usize],
    last: [u32; MAPPED_DEVICES_MAX as usize],
}

impl Table {
    pub(super) fn new(map: PartsMap) -> Self {
        Self::moving(map, Moves::new())
    }

    /// These columns are being moved: what is written to them goes to both parts.
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

    /// How many columns a segment has, data and parity; `None` if there is no such segment.
    pub(super) fn columns(&self, segment: u32) -> Option<usize> {
        match (1..self.map.segment_count()).contains(&segment) {
            false => None,
            true if self.is_uniform => Some(self.map.made_with()),
            true => Some(self.map.columns_of(segment)),
        }
    }

    /// How many of them are data.
    pub(super) fn data_columns(&self, segment: u32) -> Option<u8> {
        Some((self.columns(segment)? - PARITY_COLUMNS as usize) as u8)
    }

    /// Whether all segments have the columns that the pool was made with.
    pub(super) fn is_uniform(&self) -> bool {
        self.is_uniform
    }

    pub(super) fn moves(&self) -> &Moves {
        &self.moves
    }

    /// The part that what is written to a column goes to, and the one that the column is moved to.
    pub(super) fn written(&self, segment: u32, column: usize) -> (Part, Option<Part>) {
        let other = self.moves.get(&(segment, column)).copied();
        (self.map.part(segment, column), other)
    }

    /// Whether something of the pool is on this device. Without a map all are on all devices.
    pub(super) fn has_share(&self, device: u16) -> bool {
        self.map.sequence == 0 || self.used(device) > 0
    }

    /// Whether a device is to be without columns.
    pub(super) fn is_emptied(&self, device: u16) -> bool {
        device < MAPPED_DEVICES_MAX && self.map.emptied & 1 << device != 0
    }

    /// The highest number of a part that a device has a column in; 0 if it has none.
    pub(super) fn last_part(&self, device: u16) -> u32 {
        self.last.get(usize::from(device)).copied().unwrap_or_default()
    }

    /// How many columns a device has.
    pub(super) fn used(&self, device: u16) -> u32 {
        self.used.get(usize::from(device)).copied().unwrap_or_default()
    }
}
