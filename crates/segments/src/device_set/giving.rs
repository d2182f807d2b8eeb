//! Writing to those who lack something what others have.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use block::{BLOCK_BYTES, Frame};
use format::geometry::UNITS_PER_BLOCK;
use format::{Part, Place};

use super::device::Slot;
use super::members::Members;
use super::placement::{At, Held};
use super::workers::TRANSFER;
use crate::devices::{DeviceState, Lacking, Rebuilt};

impl Members {
    /// Whether something of this segment is lacking there.
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

    /// Writes to those who lack something what they should have of these frames.
    ///
    /// # Errors
    /// As [`crate::Segments::copy_to`].
    pub(super) fn copy_to(&self, who: Lacking, place: Place, frames: &[Frame]) -> io::Result<()> {
        let Lacking::Device(device) = who else { return self.copy_to_parts(place, frames) };
        let (slot, slots) = (self.coming(device)?, self.slots());
        for run in self.placement().runs(place, frames.len(), &slots) {
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
        for run in self.placement().runs(place, frames.len(), &self.slots()) {
            let Held::Column(rows, column) = run.held else { continue };
            let moves = self.moves_of(rows.segment);
            if let Some((_, part)) = moves.into_iter().find(|(moved, _)| *moved == column) {
                self.give_part((part, rows.first), &frames[run.frames.clone()])?;
            }
        }
        Ok(())
    }

    /// Writes to those who lack something what they should have in these rows of a segment.
    ///
    /// # Errors
    /// As [`crate::Segments::rebuild`].
    pub(super) fn rebuild(
        self: &Arc<Self>,
        who: Lacking,
        (segment, is_metadata): (u32, bool),
        rows: Range<u32>,
    ) -> io::Result<Rebuilt> {
        let start = Place { segment, offset_units: rows.start * UNITS_PER_BLOCK };
        let mut rebuilt = Rebuilt::All;
        match who {
            Lacking::Device(device) => {
                let (slot, table) = (self.coming(device)?, self.placement().table());
                let column = table.and_then(|table| table.map().column_on(segment, device));
                let at = column.zip(self.placement().row_on(device, start));
                let Some((column, offset_bytes)) = at else { return Ok(Rebuilt::All) };
                match self.rows_of(column, (segment, is_metadata), rows) {
                    Ok(Some((frames, agree))) => {
                        self.give(&slot, offset_bytes, &frames)?;
                        rebuilt = if agree { rebuilt } else { Rebuilt::Doubtful };
                    }
                    Ok(None) => {}
                    Err(_) => return Ok(Rebuilt::Nothing),
                }
            }
            Lacking::Parts => {
                for (column, part) in self.moves_of(segment) {
                    match self.rows_of(column, (segment, is_metadata), rows.clone()) {
                        Ok(Some((frames, agree))) => {
                            self.give_part((part, rows.start), &frames)?;
                            rebuilt = if agree { rebuilt } else { Rebuilt::Doubtful };
                        }
                        Ok(None) => {}
                        Err(_) => return Ok(Rebuilt::Nothing),
                    }
                }
            }
        }
        Ok(rebuilt)
    }

    /// A device that is catching up.
    fn coming(&self, device: u16) -> io::Result<Arc<Slot>> {
        let slot = self.slot(device).map_err(io::Error::other)?;
        match slot.state() {
            DeviceState::CatchingUp => Ok(slot),
            _ => Err(io::Error::other("it is not catching up (any more)")),
        }
    }

    fn give(&self, slot: &Arc<Slot>, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        let frames = frames.to_vec();
        self.one(slot, TRANSFER, move |disk| disk.write(offset_bytes, &frames))
    }

    /// The same, to a part that a column is moved to, from a row of it on. If that fails, all that
    /// is moved now stays where it is.
    fn give_part(&self, (part, row): (Part, u32), frames: &[Frame]) -> io::Result<()> {
        let given = self.slot(part.device.into()).map_err(io::Error::other).and_then(|slot| {
            let start_bytes = self.placement().geometry().part_offset_bytes(part.number);
            self.give(&slot, start_bytes + u64::from(row) * BLOCK_BYTES, frames)
        });
        given.inspect_err(|_| self.give_up_moves())
    }
}
