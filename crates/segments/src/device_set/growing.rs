//! Growing the map of parts: more segments, in free parts.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use format::parts_map::{COLUMNS_IN_MAP_MAX, COLUMNS_MIN};
use format::{Geometry, PartsMap};

use super::device::Slot;
use super::lanes::UnderWay;
use super::maps::Stored;
use super::members::{Change, Members, Slots};
use super::table::{Moves, Table};
use super::workers::{FLUSH, ask};
use crate::parts::Parts;
use crate::plan::{segments_in, stripe_columns};

impl Members {
    /// Grows the map to as many segments as a pool of this size on each of as many devices as
    /// columns would have. Grows files if necessary.
    ///
    /// # Errors
    /// `StorageFull` if the devices have no room; that of a device.
    pub(super) fn grow_map(&self, capacity_bytes: u64) -> io::Result<()> {
        let mut change = self.change();
        let Some(table) = self.placement().mapped_table() else { return Ok(()) };
        let (geometry, map) = (self.placement().geometry(), table.map());
        let wanted = geometry.count_in(capacity_bytes);
        let Some(more) = wanted.checked_sub(map.segment_count().into()).filter(|more| *more > 0)
        else {
            return Ok(());
        };
        let slots = self.slots();
        let Room { bytes, width } = self.room_for(&slots, &table, geometry, more)?;
        if wanted * width.max(map.columns_max()) as u64 > COLUMNS_IN_MAP_MAX {
            let text = "the map of parts has no room for so many segments";
            return Err(io::Error::new(io::ErrorKind::StorageFull, text));
        }
        let mut parts = free_parts(&table, &bytes, geometry);
        let mut next = map.successor();
        for segment in map.segment_count()..wanted as u32 {
            let taken = parts.allot(segment, width);
            next.push(&taken.ok_or_else(|| no_room(0))?);
        }
        for slot in slots.iter() {
            if let Some(bytes) = bytes.get(&slot.number) {
                slot.set_bytes(*bytes);
            }
        }
        self.commit_map(&mut change, slots.clone(), next, table.moves().clone())
    }

    /// Finds the space for this many more segments, as wide as possible. Grows files if necessary.
    fn room_for(
        &self,
        slots: &[Arc<Slot>],
        table: &Table,
        geometry: Geometry,
        more: u64,
    ) -> io::Result<Room> {
        let map = table.map();
        let usable = || slots.iter().filter(|slot| slot.is_in() && !table.is_emptied(slot.number));
        let count = |bytes: &BTreeMap<u16, u64>, width: usize| {
            let parts: Vec<u32> = bytes.values().map(|bytes| parts_in(geometry, *bytes)).collect();
            let all = segments_in(&parts, width, map.spares.into());
            let room = free_parts(table, bytes, geometry).room(width);
            u64::from(room.min((1 + all).saturating_sub(map.segment_count())))
        };
        let has: BTreeMap<u16, u64> = usable().map(|slot| (slot.number, slot.bytes())).collect();
        let widest = stripe_columns(has.len(), map.spares.into());
        if widest >= COLUMNS_MIN.into() && count(&has, widest) >= more {
            return Ok(Room { bytes: has, width: widest });
        }
        // Each of n devices gets a share of the new columns, and the spares get parts, too.
        let shares = has.len().saturating_sub(map.spares.into()).max(1) as u64;
        let parts_each = (more * widest as u64).div_ceil(shares);
        let long = |slot: &Arc<Slot>| {
            let device = slot.device.as_ref()?;
            let wanted = slot.bytes() + parts_each * geometry.part_bytes;
            if device.disk.len_bytes() < wanted {
                // A device that can't grow keeps its size.
                let _ = ask(device, UnderWay::one(slot), FLUSH, move |disk| disk.grow(wanted));
            }
            let bytes = device.disk.len_bytes().min(wanted).max(slot.bytes());
            let whole = geometry.part_offset_bytes(geometry.count_in(bytes) as u32);
            Some((slot.number, whole.max(slot.bytes())))
        };
        let longer: BTreeMap<u16, u64> = usable().filter_map(long).collect();
        let mut widths = (usize::from(COLUMNS_MIN)..=widest).rev();
        match widths.find(|width| count(&longer, *width) >= more) {
            Some(width) => Ok(Room { bytes: longer, width }),
            None if widest < COLUMNS_MIN.into() => Err(no_room(0)),
            None => Err(no_room(count(&longer, COLUMNS_MIN.into()))),
        }
    }

    /// Makes this the map of these members, with these moves in progress.
    ///
    /// # Errors
    /// As [`Members::commit`]; the map is then unchanged.
    pub(super) fn commit_map(
        &self,
        change: &mut Change,
        slots: Slots,
        map: PartsMap,
        moves: Moves,
    ) -> io::Result<()> {
        let before = std::mem::replace(&mut change.map, Stored::of(&map));
        let committed = self.commit(change, slots, BTreeMap::new());
        match committed {
            Ok(()) => {
                self.placement().replace(Table::moving(map, moves));
                self.members_changed();
                Ok(())
            }
            Err(error) => {
                change.map = before;
                Err(error)
            }
        }
    }
}

/// The space for more segments.
struct Room {
    /// How much of each device the pool then uses.
    bytes: BTreeMap<u16, u64>,
    /// How many columns each segment has.
    width: usize,
}

fn no_room(fit: u64) -> io::Error {
    let text = format!(
        "the devices have room for only {fit} more segments: add a device, or reconnect those \
         that are out"
    );
    io::Error::new(io::ErrorKind::StorageFull, text)
}

/// Returns the number of parts in this many bytes of a device.
pub(super) fn parts_in(geometry: Geometry, bytes: u64) -> u32 {
    geometry.count_in(bytes).saturating_sub(1) as u32
}

/// Returns the free parts of devices of which the pool uses this many bytes each.
pub(super) fn free_parts(table: &Table, bytes: &BTreeMap<u16, u64>, geometry: Geometry) -> Parts {
    let mut parts = Parts::default();
    for (number, bytes) in bytes {
        parts.add(*number as u8, parts_in(geometry, *bytes));
    }
    let map = table.map();
    let used = (1..map.segment_count()).flat_map(|segment| map.parts(segment));
    for part in used.chain(table.moves().values().copied()) {
        // A device that is not among these has no free parts.
        let _ = parts.take(part);
    }
    parts
}
