//! Moving columns to free parts of other devices: those of a device that was lost or is being
//! removed, and some to a device that was added.
//!
//! Some columns are moved at a time, a *batch*. From its beginning, writes to one of these columns
//! go to both parts; the store copies what was written before ([`crate::Segments::rebuild`]); then
//! another map takes effect, with the columns at their new locations. Until then nothing durable
//! has changed, so a batch that is given up costs only time, and after a restart the map is all
//! that is needed.
//!
//! Invariants:
//! 1. If a device to which a column is moved was not in all the time since the batch began, the
//!    batch is given up; otherwise the device could lack what was written meanwhile.
//! 2. A part that a batch has left is not used by the next one: a write that was in flight when
//!    that one began may still land there. The plan of the one after that waits for these writes.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use format::parts_map::COLUMNS_MIN;
use format::{Geometry, Part};
use sys::Disk;

use super::device::Slot;
use super::growing::{free_parts, parts_in};
use super::laying::{leaving, targets, without_emptied};
use super::members::{Change, Members};
use super::table::{Moves, Table};
use super::workers::FLUSH;
use crate::devices::{DeviceError, DeviceState, ToLayAnew};
use crate::parts::{Parts, segments_left};

/// The number of columns moved at a time. Each batch ends with a new map on all devices.
const BATCH: usize = 64;
/// How long parts that were left are not used, unless another batch has ended since.
const RESTS_AT_LEAST: Duration = Duration::from_secs(60);
/// Columns are moved to balance two devices if at least this many, and at least a sixty-fourth of
/// the emptier device's parts, would have to move.
const UNEVEN_PARTS_MIN: u64 = 2;
const UNEVEN_DIVISOR: u64 = 64;
/// How many of the fullest and of the emptiest devices are considered.
const UNEVEN_TRIED: usize = 3;
const PPM: u64 = 1_000_000;

/// The current batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    /// Its number among all attempts of targets to catch up.
    attempt: u64,
    /// The devices to which columns are moved; for each, how often it had gone out and how many of
    /// its flushes had failed when the batch began.
    targets: Vec<(Arc<Slot>, u64, u64)>,
    /// Parts that earlier batches have left since the last one that was completed, and since when.
    resting: Vec<Part>,
    ended: Option<Instant>,
}

impl Batch {
    /// Returns the parts that may not be used yet, because something may still land there.
    pub(super) fn resting(&self) -> &[Part] {
        &self.resting
    }
}

impl Members {
    /// Begins a batch, if columns must be moved, there is room, and no batch is in progress.
    pub(super) fn begin_moves(&self) {
        if !self.has_begun() {
            return;
        }
        let change = self.change();
        let Some(table) = self.placement().mapped_table() else { return };
        if !table.moves().is_empty() {
            return;
        }
        let slots = self.slots();
        let mut batch = self.batch();
        let moves = self.plan_moves(&slots, &table, &batch.resting);
        if moves.is_empty() {
            // Nothing that was in flight when the last batch ended takes so long.
            if batch.ended.is_some_and(|ended| ended.elapsed() >= RESTS_AT_LEAST) {
                batch.resting.clear();
            }
            return;
        }
        let is_target =
            |slot: &&Arc<Slot>| moves.values().any(|part| u16::from(part.device) == slot.number);
        let targets = slots.iter().filter(is_target).map(|slot| {
            let device = slot.device.as_ref();
            let failures = device.map_or(0, |device| device.disk.flush_failures());
            (slot.clone(), slot.exits(), failures)
        });
        batch.targets = targets.collect();
        batch.attempt = self.next_attempt();
        self.placement().replace(Table::moving(table.map().clone(), moves));
        drop(change);
    }

    /// Returns the attempt number of the current batch.
    pub(super) fn moving(&self) -> Option<u64> {
        let table = self.placement().mapped_table()?;
        (!table.moves().is_empty()).then(|| self.batch().attempt)
    }

    /// Returns the moves of this segment.
    pub(super) fn moves_of(&self, segment: u32) -> Vec<(usize, Part)> {
        let Some(table) = self.placement().mapped_table() else { return Vec::new() };
        let moves = table.moves().range((segment, 0)..(segment + 1, 0));
        moves.map(|((_, column), part)| (*column, *part)).collect()
    }

    /// Ends a batch whose columns were copied completely: they are at their new locations from here
    /// on. A device that is being emptied and has no column left is removed.
    ///
    /// # Errors
    /// If one of the target devices was not in all the time, or fails: the batch is given up.
    pub(super) fn end_moves(&self) -> io::Result<()> {
        let flushed = self.flush_targets();
        let mut change = self.change();
        let ended = flushed.and_then(|()| self.check_targets()).and_then(|()| {
            let table = self.placement().mapped_table().filter(|table| !table.moves().is_empty());
            let table =
                table.ok_or_else(|| io::Error::other("no columns are being moved (any longer)"))?;
            let mut map = table.map().successor();
            let mut left = Vec::new();
            for ((segment, column), part) in table.moves() {
                left.push(map.part(*segment, *column));
                map.set(*segment, *column, *part);
            }
            let rest = without_emptied(&self.slots(), &mut map);
            self.commit_map(&mut change, rest, map, Moves::new())?;
            let mut batch = self.batch();
            (batch.resting, batch.ended) = (left, Some(Instant::now()));
            Ok(())
        });
        if ended.is_err() {
            self.give_up_moves();
        }
        ended
    }

    /// Gives up the current batch.
    pub(super) fn give_up_moves(&self) {
        if let Some(table) = self.placement().mapped_table() {
            // Writes to these parts may still land.
            let mut batch = self.batch();
            batch.resting.extend(table.moves().values().copied());
            batch.ended = Some(Instant::now());
            self.placement().replace(Table::new(table.map().clone()));
        }
    }

    fn flush_targets(&self) -> io::Result<()> {
        let targets: Vec<_> = self.batch().targets.iter().map(|(slot, ..)| slot.clone()).collect();
        let calls = targets.into_iter().map(|slot| (slot, |disk: &dyn Disk| disk.flush()));
        self.each(calls, Slot::readable, FLUSH, |slot, flushed| {
            flushed.map_err(|error| self.fail_with(slot, error))
        })
    }

    fn check_targets(&self) -> io::Result<()> {
        let were_in = self.batch().targets.iter().all(|(slot, departed, failures)| {
            slot.readable().is_some_and(|device| device.disk.flush_failures() == *failures)
                && slot.exits() == *departed
        });
        if were_in { Ok(()) } else { Err(not_in_all_the_time()) }
    }

    /// Plans the next moves, beginning with the segments that lack most.
    fn plan_moves(&self, slots: &[Arc<Slot>], table: &Table, resting: &[Part]) -> Moves {
        let geometry = self.placement().geometry();
        let devices = self.standings(slots, table);
        let (bytes, leaving) = (targets(&devices), leaving(&devices));
        let leaves = |number: u16| leaving & 1 << number != 0;
        let has_columns = |slot: &&Arc<Slot>| table.used(slot.number) > 0;
        let is_any_left = slots.iter().filter(has_columns).any(|slot| leaves(slot.number));
        // A device that was added gets its columns from wider segments, if segments can be wider.
        let can_widen = |it: Arc<ToLayAnew>| !it.narrow.is_empty();
        let is_even = is_any_left || self.to_lay_anew().is_some_and(can_widen);
        let uneven = if is_even { Vec::new() } else { uneven(table, &bytes, geometry) };
        if !is_any_left && uneven.is_empty() {
            return Moves::new();
        }
        let mut free = free_parts(table, &bytes, geometry);
        for part in resting {
            // A device that was removed has no free parts.
            let _ = free.take(*part);
        }
        if is_any_left {
            return replace_lost(table, leaves, &mut free);
        }
        let moves = uneven.into_iter().map(|pair| even_out(table, pair, &mut free));
        moves.into_iter().find(|moves| !moves.is_empty()).unwrap_or_default()
    }

    /// Begins to remove a device for an administrator: its columns are moved elsewhere, and then it
    /// is removed. A device without columns is removed at once.
    ///
    /// # Errors
    /// [`DeviceError::NoRoom`] if the others have too few free parts.
    pub(super) fn empty(&self, number: u16) -> Result<(), DeviceError> {
        self.begin()?;
        let mut change = self.change();
        let slot = self.slot(number)?;
        let Some(mut table) = self.placement().mapped_table() else {
            return Err(DeviceError::InStripes(self.slots().len()));
        };
        // Nothing is moved to a device that is being removed itself.
        if table.moves().values().any(|part| u16::from(part.device) == number) {
            self.give_up_moves();
            table = self.placement().mapped_table().unwrap_or(table);
        }
        let slots = self.slots();
        if table.used(number) == 0 {
            let rest = slots.iter().filter(|slot| slot.number != number).cloned().collect();
            let mut map = table.map().successor();
            map.emptied &= !(1 << number);
            return Ok(self.commit_map(&mut change, rest, map, table.moves().clone())?);
        }
        let is_other = |other: &&Arc<Slot>| {
            other.is_in() && other.number != slot.number && !table.is_emptied(other.number)
        };
        let others: BTreeMap<u16, u64> =
            slots.iter().filter(is_other).map(|slot| (slot.number, slot.bytes())).collect();
        let geometry = self.placement().geometry();
        let parts: Vec<u32> = others.values().map(|bytes| parts_in(geometry, *bytes)).collect();
        // Segments become narrower if the others have no free parts.
        let (has, needs) =
            (segments_left(&parts, COLUMNS_MIN.into()), table.map().segment_count() - 1);
        if has < needs {
            return Err(DeviceError::NoRoom { number, needs, has });
        }
        self.mark_emptied(&mut change, &table, number, true)
    }

    /// Cancels the removal of a device.
    pub(super) fn keep(&self, change: &mut Change, number: u16) -> Result<bool, DeviceError> {
        match self.placement().mapped_table() {
            Some(table) if table.is_emptied(number) => {
                self.mark_emptied(change, &table, number, false).map(|()| true)
            }
            _ => Ok(false),
        }
    }

    fn mark_emptied(
        &self,
        change: &mut Change,
        table: &Table,
        number: u16,
        is_emptied: bool,
    ) -> Result<(), DeviceError> {
        let mut map = table.map().successor();
        map.emptied = map.emptied & !(1 << number) | u64::from(is_emptied) << number;
        Ok(self.commit_map(change, self.slots(), map, table.moves().clone())?)
    }
}

fn not_in_all_the_time() -> io::Error {
    io::Error::other("a device to which columns are moved was out in the meantime")
}

/// Returns the new locations of columns on devices that leave.
fn replace_lost(table: &Table, leaves: impl Fn(u16) -> bool, free: &mut Parts) -> Moves {
    let map = table.map();
    let lost = |segment: u32| {
        let lost = map.parts(segment).enumerate();
        lost.filter(|(_, part)| leaves(part.device.into())).map(|(column, _)| column)
    };
    let mut segments: Vec<(usize, u32)> =
        (1..map.segment_count()).map(|segment| (lost(segment).count(), segment)).collect();
    segments.retain(|(count, _)| *count > 0);
    segments.sort_by_key(|(count, segment)| (std::cmp::Reverse(*count), *segment));
    let mut moves = Moves::new();
    for (_, segment) in segments {
        let mut devices: Vec<u8> = map.parts(segment).map(|part| part.device).collect();
        for column in lost(segment) {
            if moves.len() >= BATCH {
                return moves;
            }
            if let Some(part) = free.allot_beside(&devices) {
                devices.push(part.device);
                moves.insert((segment, column), part);
            }
        }
    }
    moves
}

/// Two devices of which one is much fuller than the other, and the number of parts that balances
/// them.
struct Uneven {
    full: u16,
    empty: u16,
    parts: u64,
}

/// Returns pairs of the fullest and the emptiest devices that differ much in the share of their
/// parts that is used.
fn uneven(table: &Table, bytes: &BTreeMap<u16, u64>, geometry: Geometry) -> Vec<Uneven> {
    let all = |number: u16| u64::from(parts_in(geometry, bytes[&number])).max(1);
    let fill = |number: u16| u64::from(table.used(number)) * PPM / all(number);
    let mut devices: Vec<u16> = bytes.keys().copied().collect();
    devices.sort_by_key(|number| (fill(*number), *number));
    let empty = devices.iter().copied().take(UNEVEN_TRIED);
    let pairs = empty.flat_map(|empty| {
        let full = devices.iter().copied().rev().take(UNEVEN_TRIED);
        full.map(move |full| (full, empty))
    });
    let pairs = pairs.filter_map(|(full, empty)| {
        let differs = fill(full).saturating_sub(fill(empty));
        let parts = differs * all(empty).min(all(full)) / (2 * PPM);
        let least = UNEVEN_PARTS_MIN.max(all(empty) / UNEVEN_DIVISOR);
        (parts >= least).then_some(Uneven { full, empty, parts })
    });
    pairs.collect()
}

/// Returns the moves of columns from the fuller device to the emptier one.
fn even_out(table: &Table, pair: Uneven, free: &mut Parts) -> Moves {
    let map = table.map();
    let mut moves = Moves::new();
    for segment in 1..map.segment_count() {
        if moves.len() as u64 >= pair.parts.min(BATCH as u64) {
            break;
        }
        let on = |number| map.column_on(segment, number);
        let (Some(column), None) = (on(pair.full), on(pair.empty)) else { continue };
        let Some(part) = free.take_on(pair.empty as u8) else { break };
        moves.insert((segment, column), part);
    }
    moves
}

impl Slot {
    /// Returns whether the device has been away for so long.
    pub(super) fn is_lost(&self, after: Duration) -> bool {
        let is_away =
            matches!(self.state(), DeviceState::Out | DeviceState::Kept | DeviceState::Missing);
        is_away && self.since().elapsed() >= after
    }
}
