//! Copying data to targets that lack it.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use block::Frame;
use format::{Part, Place};
use sys::Disk;

use super::device::Slot;
use super::members::Members;
use super::placement::{At, Held};
use super::workers::{ALONE, TRANSFER};
use crate::devices::{DeviceState, Lacking, Rebuilt};

impl Members {
    /// Returns whether the target lacks anything of this segment.
    pub(super) fn lacks(&self, who: Lacking, segment: u32) -> bool {
        match (who, self.placement().table()) {
            (_, None) => true,
            (Lacking::Device(device), Some(table)) => {
                segment < table.map().segment_count()
                    && table.map().column_on(segment, device).is_some()
            }
            (Lacking::Parts, Some(_)) => !self.moves_of(segment).is_empty(),
        }
    }

    /// Writes to a target its share of these frames.
    pub(super) fn copy_to(&self, who: Lacking, place: Place, frames: &[Frame]) -> io::Result<()> {
        let Lacking::Device(device) = who else { return self.copy_to_parts(place, frames) };
        let (slot, slots) = (self.coming(device)?, self.slots());
        for run in self.placement().runs(place, frames.len(), &slots)? {
            let its = |at: &At| slots.get(at.position).is_some_and(|it| it.number == device);
            let at = match &run.held {
                Held::Copies(copies) => copies.iter().copied().find(its),
                held @ Held::Column(..) => Some(self.stored_copy(&slots, held, 0)?).filter(its),
            };
            if let Some(at) = at {
                self.give(&slot, at.offset_bytes, &frames[run.frames.clone()])?;
            }
        }
        Ok(())
    }

    fn copy_to_parts(&self, place: Place, frames: &[Frame]) -> io::Result<()> {
        for run in self.placement().runs(place, frames.len(), &self.slots())? {
            let Held::Column(rows, column) = run.held else { continue };
            let moves = self.moves_of(rows.segment);
            if let Some((_, part)) = moves.into_iter().find(|(moved, _)| *moved == column) {
                self.give_part((part, rows.first), &frames[run.frames.clone()])?;
            }
        }
        Ok(())
    }

    /// Rebuilds these rows of a segment for a target.
    pub(super) fn rebuild(
        self: &Arc<Self>,
        who: Lacking,
        (segment, is_metadata): (u32, bool),
        rows: Range<u32>,
    ) -> io::Result<Rebuilt> {
        let columns = match who {
            Lacking::Device(device) => {
                self.coming(device)?;
                let table = self.placement().table();
                let found = table.and_then(|table| {
                    let column = table.map().column_on(segment, device)?;
                    Some((column, table.map().part(segment, column)))
                });
                Vec::from_iter(found)
            }
            Lacking::Parts => self.moves_of(segment),
        };
        let mut rebuilt = Rebuilt::All;
        for (column, part) in columns {
            let Ok(found) = self.rows_of(column, (segment, is_metadata), rows.clone()) else {
                return Ok(Rebuilt::Nothing);
            };
            let Some((frames, agree)) = found else { continue };
            match who {
                Lacking::Device(device) => {
                    let offset_bytes = self.placement().row_of_part_bytes(part, rows.start);
                    self.give(&self.coming(device)?, offset_bytes, &frames)?;
                }
                Lacking::Parts => self.give_part((part, rows.start), &frames)?,
            }
            if !agree {
                rebuilt = Rebuilt::Doubtful;
            }
        }
        Ok(rebuilt)
    }

    /// Ends catching up of a device that is complete again: flushes it, and calls `admit`.
    ///
    /// # Errors
    /// Those of the device, which then is out; those of `admit`.
    pub(super) fn given(
        &self,
        device: u16,
        admit: impl FnOnce(&Arc<Slot>) -> io::Result<()>,
    ) -> io::Result<()> {
        let slot = self.slot(device).map_err(io::Error::other)?;
        let it = slot.clone();
        let flush = move |disk: &dyn Disk| it.flush_all(disk);
        let flushed = self.one(&slot, ALONE, flush).and_then(|()| admit(&slot));
        flushed.map_err(|error| match slot.state() {
            DeviceState::CatchingUp => self.fail_with(&slot, error),
            _ => error,
        })
    }

    /// Returns a device that is catching up.
    fn coming(&self, device: u16) -> io::Result<Arc<Slot>> {
        let slot = self.slot(device).map_err(io::Error::other)?;
        match slot.state() {
            DeviceState::CatchingUp => Ok(slot),
            _ => Err(io::Error::other("the device is not (or no longer) catching up")),
        }
    }

    fn give(&self, slot: &Arc<Slot>, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let frames = frames.to_vec();
        self.one(slot, TRANSFER, move |disk| disk.write(offset_bytes, &frames))
    }

    /// The same, for a part to which a column is moved, from one of its rows on. If this fails, all
    /// current moves are given up.
    fn give_part(&self, (part, row): (Part, u32), frames: &[Frame]) -> io::Result<()> {
        let given = self.slot(part.device.into()).map_err(io::Error::other).and_then(|slot| {
            self.give(&slot, self.placement().row_of_part_bytes(part, row), frames)
        });
        given.inspect_err(|_| self.give_up_moves())
    }
}
