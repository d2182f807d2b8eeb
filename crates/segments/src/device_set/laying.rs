//! Segments that nothing is in are laid anew: narrower, where devices are lost and the others have
//! no free part for what these had, and wider, where devices have come. What is in other segments
//! has to be moved first, by the store, which knows what that is.
//!
//! Invariants:
//! 1. Only what the store hands over is laid anew: nothing names a place in it, nobody reads it,
//!    and nobody opens it before the map that says where it is now is durable.
//! 2. A segment is laid on devices that are in, and never on one that leaves; it has at least two
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

/// What the answer to [`Members::to_lay_anew`] follows from.
#[derive(Clone, Debug)]
struct Basis {
    table: Arc<Table>,
    /// Of the members.
    generation: u64,
    devices: Vec<Standing>,
}

impl Basis {
    fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.table, &other.table) && self.devices == other.devices
    }

    /// Whether it is the same without a look at the devices: none is out, and can be lost by now.
    fn is_still(&self, table: &Arc<Table>, generation: u64) -> bool {
        let has_all = self.devices.iter().all(|device| device.is_target);
        has_all && self.generation == generation && Arc::ptr_eq(&self.table, table)
    }
}

/// How a device stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Standing {
    number: u16,
    bytes: u64,
    /// Whether columns go to it.
    is_target: bool,
    /// Whether its columns have to go elsewhere.
    leaves: bool,
}

/// The last answer: walking the map takes a while, and mostly nothing has changed.
#[derive(Debug, Default)]
pub(super) struct LastLook(Option<(Basis, Option<Arc<ToLayAnew>>)>);

impl Members {
    /// How devices stand, by number.
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

    /// Which segments should be laid otherwise than they are.
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
            // Where one has a free part the column goes there by itself.
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

    /// What segments can be laid on; `None` if that is too little for any.
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
        // What the largest ones hold is to be made again on the others.
        all.truncate(all.len() - usize::from(map.spares).min(all.len()));
        let parts_max = all.iter().copied().map(u64::from).sum();
        let used = targets.keys().map(|number| u64::from(table.used(*number))).sum();
        let free = free_parts(table, &targets, geometry);
        Some(RoomToLay { free, widest, used, parts_max })
    }

    /// Lays those of these segments anew that should be, and others narrower where these lack
    /// something otherwise; how many were. All are where they were if it fails.
    ///
    /// # Errors
    /// What devices say.
    pub(super) fn lay_anew(&self, segments: &[u32]) -> io::Result<u32> {
        self.begin()?;
        let mut change = self.change();
        let Some(table) = self.placement().mapped_table() else { return Ok(0) };
        let slots = self.slots();
        let devices = self.standings(&slots, &table);
        let Some(mut room) = self.room_to_lay(&table, &devices) else { return Ok(0) };
        for part in self.batch().resting() {
            // Of a device that has gone since nothing is free.
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

/// What segments can be laid on.
struct RoomToLay {
    free: Parts,
    /// The most columns of a segment.
    widest: usize,
    /// How many parts are in use, and how many may be.
    used: u64,
    parts_max: u64,
}

impl RoomToLay {
    /// Whether one more part may be used.
    fn can_widen(&self) -> bool {
        self.used < self.parts_max
    }

    /// Lays a segment anew, if it gets better by that: rid of devices that leave, or wider.
    fn lay(&mut self, map: &mut PartsMap, segment: u32, leaving: u64) -> bool {
        let old: Vec<Part> = map.parts(segment).collect();
        // Of a device that columns don't go to nothing is free.
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
                    // Of a device that columns don't go to it was not given back.
                    let _ = self.free.take(*part);
                }
                false
            }
        }
    }
}

impl RoomToLay {
    /// Lays a segment anew that lacks something and has too few devices with a free part: one of
    /// these others becomes narrower for it.
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
            taken.for_each(|part| self.free.give_back(part).expect("it was taken just now"));
            given.iter().for_each(|part| self.free.take(*part).expect("it was free just now"));
        }
        false
    }
}

/// Those that stay members: all but emptied ones that have no column any more.
pub(super) fn without_emptied(slots: &[Arc<Slot>], map: &mut PartsMap) -> Slots {
    let table = Table::new(map.clone());
    let is_gone = |number: u16| table.is_emptied(number) && table.used(number) == 0;
    for slot in slots.iter().filter(|slot| is_gone(slot.number)) {
        map.emptied &= !(1 << slot.number);
    }
    slots.iter().filter(|slot| !is_gone(slot.number)).cloned().collect()
}

/// The devices that columns go to, with how much of each the pool has.
pub(super) fn targets(devices: &[Standing]) -> BTreeMap<u16, u64> {
    let targets = devices.iter().filter(|device| device.is_target);
    targets.map(|device| (device.number, device.bytes)).collect()
}

/// A bit for each device whose columns have to go elsewhere: all but those of members that stay.
pub(super) fn leaving(devices: &[Standing]) -> u64 {
    !mask(devices.iter().filter(|device| !device.leaves).map(|device| device.number as u8))
}

/// A bit for each of these devices.
fn mask(numbers: impl Iterator<Item = u8>) -> u64 {
    numbers.fold(0, |mask, number| mask | 1 << number)
}
