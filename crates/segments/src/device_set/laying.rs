//! Changing the layout of empty segments: narrower if devices are lost and the others have no free
//! part for their columns, wider if devices were added. Data in other segments must first be moved
//! by the store, which knows what it is.
//!
//! Invariants:
//! 1. Only segments that the store passes are changed: nothing refers to a place in them, they are
//!    not read, and not opened before the map with their new location is durable.
//! 2. A segment is placed on devices that are in, and never on one that leaves; it has at least two
//!    columns of data.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use format::parts_map::{COLUMNS_IN_MAP_MAX, COLUMNS_MIN};
use format::{Part, PartsMap};

use super::device::Slot;
use super::growing::{free_parts, parts_in};
use super::members::{Members, Slots};
use super::table::Table;
use crate::devices::ToLayAnew;
use crate::parts::Parts;
use crate::plan::stripe_columns;

/// What the answer of [`Members::to_lay_anew`] depends on.
#[derive(Clone, Debug)]
struct Basis {
    table: Arc<Table>,
    /// That of the members.
    generation: u64,
    devices: Vec<Standing>,
}

impl Basis {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.devices == other.devices
    }

    /// Returns whether the answer is unchanged without checking the devices: none is out, so none
    /// can have been lost in the meantime.
    fn is_still(&self, table: &Arc<Table>, generation: u64) -> bool {
        let has_all = self.devices.iter().all(|device| device.is_target);
        has_all && self.generation == generation && Arc::ptr_eq(&self.table, table)
    }
}

/// The role of a device in layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    number: u16,
    bytes: u64,
    /// Whether columns are placed on it.
    is_target: bool,
    /// Whether its columns must be moved elsewhere.
    leaves: bool,
}

/// The last answer. It is kept because walking the map takes a while, and usually nothing has
/// changed.
#[derive(Debug, Default)]
pub(super) struct LastLook(Option<(Basis, Option<Arc<ToLayAnew>>)>);

impl Members {
    /// Returns the roles of devices, by number.
    pub(super) fn standings(&self, slots: &[Arc<Slot>], table: &Table) -> Vec<Standing> {
        let after = self.lost_after();
        let standing = |slot: &Arc<Slot>| {
            let is_emptied = table.is_emptied(slot.number);
            Standing {
                number: slot.number,
                bytes: slot.bytes(),
                is_target: slot.is_in() && !is_emptied,
                leaves: is_emptied || slot.is_lost(after),
            }
        };
        slots.iter().map(standing).collect()
    }

    /// Returns the segments that should have another layout.
    pub(super) fn to_lay_anew(&self) -> Option<Arc<ToLayAnew>> {
        let table = self.placement().mapped_table().filter(|_| self.has_begun())?;
        let generation = self.generation();
        let mut last = self.last_look();
        if let Some((of, found)) = &last.0
            && of.is_still(&table, generation)
        {
            return found.clone();
        }
        let devices = self.standings(&self.slots(), &table);
        let basis = Basis { table, generation, devices };
        let known = last.0.take().filter(|(of, _)| of.is(&basis)).map(|(_, found)| found);
        let found = known.unwrap_or_else(|| {
            let found = self.look_at_widths(&basis);
            (!found.is_empty()).then(|| Arc::new(found))
        });
        last.0 = Some((basis, found.clone()));
        found
    }

    fn look_at_widths(&self, Basis { table, devices, .. }: &Basis) -> ToLayAnew {
        let Some(room) = self.room_to_lay(table, devices) else { return ToLayAnew::default() };
        let with_free = mask(room.free.free().filter(|(_, free)| *free > 0).map(|(it, _)| it));
        let targets = mask(targets(devices).keys().map(|number| *number as u8));
        let leaving = leaving(devices);
        let (mut lacking, mut narrow) = (Vec::new(), Vec::new());
        for segment in 1..table.map().segment_count() {
            let on = mask(table.map().parts(segment).map(|part| part.device));
            let lost = (on & leaving).count_ones();
            // If another device has a free part, the column is moved there instead.
            if lost > 0 && with_free & !on == 0 {
                lacking.push((std::cmp::Reverse(lost), segment));
            }
            let could_have = (on & targets | with_free).count_ones().min(room.widest as u32);
            let could_widen = on & !targets == 0 && room.can_widen();
            if could_widen && could_have > on.count_ones() {
                narrow.push(segment);
            }
        }
        lacking.sort_unstable();
        ToLayAnew { lacking: lacking.into_iter().map(|(_, segment)| segment).collect(), narrow }
    }

    /// Returns the room for segments; `None` if there is too little for any.
    fn room_to_lay(&self, table: &Table, devices: &[Standing]) -> Option<RoomToLay> {
        let (map, geometry) = (table.map(), self.placement().geometry());
        let targets = targets(devices);
        let most = COLUMNS_IN_MAP_MAX / u64::from(map.segment_count());
        let widest = stripe_columns(targets.len(), map.spares.into()).min(most as usize);
        if widest < COLUMNS_MIN.into() {
            return None;
        }
        let mut all: Vec<u32> = targets.values().map(|bytes| parts_in(geometry, *bytes)).collect();
        all.sort_unstable();
        // The columns of the largest devices must fit the others if they are lost.
        all.truncate(all.len() - usize::from(map.spares).min(all.len()));
        let parts_max = all.iter().copied().map(u64::from).sum();
        let used = targets.keys().map(|number| u64::from(table.used(*number))).sum();
        let free = free_parts(table, &targets, geometry);
        Some(RoomToLay { free, widest, used, parts_max })
    }

    /// Changes the layout of those of these segments that need it, and makes others narrower if
    /// these would otherwise lack a column; returns how many were changed. If it fails, all are
    /// where they were.
    ///
    /// # Errors
    /// Those of devices.
    pub(super) fn lay_anew(&self, segments: &[u32]) -> io::Result<u32> {
        self.begin()?;
        let mut change = self.change();
        let Some(table) = self.placement().mapped_table() else { return Ok(0) };
        let slots = self.slots();
        let devices = self.standings(&slots, &table);
        let Some(mut room) = self.room_to_lay(&table, &devices) else { return Ok(0) };
        for part in self.batch().resting() {
            // A device that was removed has no free parts.
            let _ = room.free.take(*part);
        }
        let leaving = leaving(&devices);
        let (mut map, mut laid) = (table.map().successor(), 0);
        let is_moved =
            |segment: u32| table.moves().range((segment, 0)..(segment + 1, 0)).next().is_some();
        let segments: Vec<u32> =
            segments.iter().copied().filter(|segment| !is_moved(*segment)).collect();
        for segment in &segments {
            laid += u32::from(room.lay(&mut map, *segment, leaving));
        }
        for segment in &segments {
            laid += u32::from(room.lay_for(&mut map, *segment, leaving, &segments));
        }
        if laid == 0 {
            return Ok(0);
        }
        let rest = without_emptied(&slots, &mut map);
        self.commit_map(&mut change, rest, map, table.moves().clone())?;
        Ok(laid)
    }
}

/// The room for segments.
struct RoomToLay {
    free: Parts,
    /// The maximum number of columns of a segment.
    widest: usize,
    /// How many parts are used, and how many may be.
    used: u64,
    parts_max: u64,
}

impl RoomToLay {
    /// Returns whether one more part may be used.
    fn can_widen(&self) -> bool {
        self.used < self.parts_max
    }

    /// Changes the layout of a segment if that improves it: rid of devices that leave, or wider.
    fn lay(&mut self, map: &mut PartsMap, segment: u32, leaving: u64) -> bool {
        let old: Vec<Part> = map.parts(segment).collect();
        // A device on which no columns are placed has no free parts.
        let given = old.iter().filter(|part| self.free.give_back(**part).is_ok()).count();
        let can_use = self.parts_max.saturating_sub(self.used).saturating_add(given as u64);
        let with_free = self.free.free().filter(|(_, free)| *free > 0).count();
        let columns = with_free.min(self.widest).min(can_use.try_into().unwrap_or(usize::MAX));
        let is_lacking = old.iter().any(|part| leaving & 1 << part.device != 0);
        let is_better = columns >= COLUMNS_MIN.into() && (is_lacking || columns > old.len());
        match is_better.then(|| self.free.allot(segment, columns)).flatten() {
            Some(parts) => {
                map.lay(segment, &parts);
                self.used = self.used + columns as u64 - given as u64;
                true
            }
            None => {
                for part in &old {
                    // A part on a device where no columns are placed was not given back.
                    let _ = self.free.take(*part);
                }
                false
            }
        }
    }
}

impl RoomToLay {
    /// Changes the layout of a segment that lacks columns and has too few devices with a free part:
    /// one of `others` becomes narrower for it.
    fn lay_for(&mut self, map: &mut PartsMap, segment: u32, leaving: u64, others: &[u32]) -> bool {
        let lacks = |map: &PartsMap, segment| {
            map.parts(segment).any(|part: Part| leaving & 1 << part.device != 0)
        };
        if !lacks(map, segment) {
            return false;
        }
        let can_give = |other: &&u32| {
            **other != segment
                && map.columns_of(**other) > COLUMNS_MIN.into()
                && !lacks(map, **other)
        };
        let givers: Vec<u32> = others.iter().filter(can_give).copied().collect();
        for other in givers {
            let old: Vec<Part> = map.parts(segment).chain(map.parts(other)).collect();
            let given: Vec<Part> =
                old.into_iter().filter(|part| self.free.give_back(*part).is_ok()).collect();
            let least = COLUMNS_MIN.into();
            let first = self.free.allot(segment, least);
            let second = first.as_ref().and_then(|_| self.free.allot_widest(other, self.widest));
            if let (Some(first), Some(second)) = (&first, &second) {
                map.lay(segment, first);
                map.lay(other, second);
                self.used = self.used + (first.len() + second.len()) as u64 - given.len() as u64;
                return true;
            }
            let taken = first.into_iter().flatten();
            taken.for_each(|part| self.free.give_back(part).expect("the part was taken just now"));
            given
                .iter()
                .for_each(|part| self.free.take(*part).expect("the part was free just now"));
        }
        false
    }
}

/// Returns the members without emptied ones that have no columns left.
pub(super) fn without_emptied(slots: &[Arc<Slot>], map: &mut PartsMap) -> Slots {
    let table = Table::new(map.clone());
    let is_gone = |number: u16| table.is_emptied(number) && table.used(number) == 0;
    for slot in slots.iter().filter(|slot| is_gone(slot.number)) {
        map.emptied &= !(1 << slot.number);
    }
    slots.iter().filter(|slot| !is_gone(slot.number)).cloned().collect()
}

/// Returns the devices on which columns are placed, with how much of each the pool uses.
pub(super) fn targets(devices: &[Standing]) -> BTreeMap<u16, u64> {
    let targets = devices.iter().filter(|device| device.is_target);
    targets.map(|device| (device.number, device.bytes)).collect()
}

/// Returns a mask of the devices whose columns must be moved: all except members that stay.
pub(super) fn leaving(devices: &[Standing]) -> u64 {
    !mask(devices.iter().filter(|device| !device.leaves).map(|device| device.number as u8))
}

/// Returns a mask of these devices.
fn mask(numbers: impl Iterator<Item = u8>) -> u64 {
    numbers.fold(0, |mask, number| mask | 1 << number)
}
