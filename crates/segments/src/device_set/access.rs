//! Reading and writing what the devices have, for who may wait.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::{Frame, FrameMut};
use format::Place;
use format::geometry::METADATA_COPIES;
use sys::{Disk, Persist};

use super::device::Slot;
use super::members::{Members, Slots};
use super::placement::{self, Held, Run, Share, position, shard_at};

/// How something is read from a disk: patiently, or not.
pub(super) type Read = fn(&dyn Disk, u64, &mut [FrameMut]) -> io::Result<()>;

impl Members {
    /// Writes to each device what it gets of an append. One that refuses is out.
    ///
    /// # Errors
    /// That of a device that must stay in; if parity can't be made.
    pub(super) fn append(
        &self,
        place: Place,
        frames: &[Frame],
        persist: Persist,
    ) -> io::Result<()> {
        self.begin()?;
        let slots = self.slots();
        let shares = self.placement().shares(place, frames, slots.len())?;
        let write = |slot: &Arc<Slot>, share: &Share| {
            let Some(device) = slot.written() else { return Ok(()) };
            let written = device.disk.write_as(share.offset_bytes, &share.frames, persist);
            written.or_else(|error| self.fail(slot, error))
        };
        for share in &shares {
            write(&slots[share.position], share)?;
        }
        let has_none = |position: &usize| !shares.iter().any(|share| share.position == *position);
        if persist == Persist::All {
            for position in (0..slots.len()).filter(has_none) {
                write(&slots[position], &Share { position, offset_bytes: 0, frames: Vec::new() })?;
            }
        }
        Ok(())
    }

    /// Reads from the devices that have it, one after the other, or makes it of what others have.
    ///
    /// # Errors
    /// That of the last that was asked.
    pub(super) fn read(&self, place: Place, frames: &mut [FrameMut], read: Read) -> io::Result<()> {
        let slots = self.slots();
        for run in self.placement().runs(place, frames.len(), slots.len()) {
            self.read_run(&slots, &run, &mut frames[run.frames.clone()], read)?;
        }
        Ok(())
    }

    fn read_run(
        &self,
        slots: &Slots,
        run: &Run,
        frames: &mut [FrameMut],
        read: Read,
    ) -> io::Result<()> {
        let mut failed = None;
        let mut from = |slot: &Slot, frames: &mut [FrameMut]| {
            let Some(device) = slot.readable() else { return false };
            let result = read(device.disk(), run.offset_bytes, frames);
            if let Err(error) = result {
                slot.read_errors.fetch_add(1, Ordering::Relaxed);
                failed = Some(error);
                return false;
            }
            true
        };
        match &run.held {
            Held::Copies(positions) => {
                if positions.iter().any(|position| from(&slots[usize::from(*position)], frames)) {
                    return Ok(());
                }
                Err(failed.unwrap_or_else(|| io::Error::other("no device is in")))
            }
            Held::Column { segment, column } => {
                let own = position(*segment, *column, slots.len());
                if from(&slots[own], frames) {
                    return Ok(());
                }
                self.make(slots, (*segment, *column, None), run.offset_bytes, frames, read)
            }
        }
    }

    /// Makes a shard of a segment of those that others have, without one of these if that is
    /// wanted.
    ///
    /// # Errors
    /// If there are too few, `NotConnected` where that is because of devices that are not in.
    fn make(
        &self,
        slots: &Slots,
        (segment, wanted, without): (u32, usize, Option<usize>),
        offset_bytes: u64,
        frames: &mut [FrameMut],
        read: Read,
    ) -> io::Result<()> {
        let code = self.placement().code().ok_or_else(is_out)?;
        let (needed, shards) = (code.stripe().data(), slots.len());
        let (mut read_ones, mut failed) = (vec![None; shards], None);
        let mut left = needed;
        for shard in (0..shards).filter(|shard| *shard != wanted && Some(*shard) != without) {
            let slot = &slots[position(segment, shard, shards)];
            let Some(device) = slot.readable().filter(|_| left > 0) else { continue };
            match read_frames(device.disk(), offset_bytes, frames.len(), read) {
                Ok(found) => {
                    read_ones[shard] = Some(found);
                    left -= 1;
                }
                Err(error) => {
                    slot.read_errors.fetch_add(1, Ordering::Relaxed);
                    failed = Some(error);
                }
            }
        }
        if left > 0 {
            return Err(failed.unwrap_or_else(is_out));
        }
        placement::make(code, &read_ones, wanted, frames).map_err(io::Error::other)
    }

    /// Reads one of the copies, by its number: see [`crate::Segments::copies`].
    ///
    /// # Errors
    /// What the device says; `NotFound` and `NotConnected` if there is none such (any more).
    pub(super) fn read_copy(
        &self,
        place: Place,
        copy: u32,
        frames: &mut [FrameMut],
    ) -> io::Result<()> {
        let (slots, copy) = (self.slots(), copy as usize);
        let read: Read = |disk, at, frames| disk.read_patiently(at, frames);
        for run in self.placement().runs(place, frames.len(), slots.len()) {
            let frames = &mut frames[run.frames.clone()];
            match &run.held {
                Held::Column { segment, column } if copy > 0 => {
                    let mut others = (0..slots.len()).filter(|shard| shard != column);
                    let without = Some(others.nth(copy - 1).ok_or_else(no_copy)?);
                    self.make(
                        &slots,
                        (*segment, *column, without),
                        run.offset_bytes,
                        frames,
                        read,
                    )?;
                }
                held => {
                    let slot = stored_copy(&slots, held, copy)?;
                    let device = slot.readable().ok_or_else(is_out)?;
                    read(device.disk(), run.offset_bytes, frames)?;
                }
            }
        }
        Ok(())
    }

    /// Writes, durably, what a device should have of a copy.
    ///
    /// # Errors
    /// As [`crate::Segments::mend`].
    pub(super) fn mend(&self, place: Place, copy: u32, frames: &[Frame]) -> io::Result<()> {
        let slots = self.slots();
        for run in self.placement().runs(place, frames.len(), slots.len()) {
            if matches!(run.held, Held::Column { .. }) && copy > 0 {
                let text = "it is made of what others have, and not stored";
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            let slot = stored_copy(&slots, &run.held, copy as usize)?;
            let device = slot.readable().ok_or_else(is_out)?;
            self.begin()?;
            let written = device.disk.write_durable(run.offset_bytes, &frames[run.frames.clone()]);
            written.map_err(|error| self.fail_with(slot, error))?;
            slot.mended.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Writes to one device what it should have of these frames.
    ///
    /// # Errors
    /// What it says.
    pub(super) fn copy_to(&self, slot: &Slot, place: Place, frames: &[Frame]) -> io::Result<()> {
        let Some(to) = slot.written() else { return Err(is_out()) };
        let slots = self.slots();
        let is_it = |position: usize| slots[position].number == slot.number;
        for run in self.placement().runs(place, frames.len(), slots.len()) {
            let has_it = match &run.held {
                Held::Copies(positions) => positions.iter().any(|at| is_it((*at).into())),
                Held::Column { segment, column } => is_it(position(*segment, *column, slots.len())),
            };
            if has_it {
                to.disk.write(run.offset_bytes, &frames[run.frames.clone()])?;
            }
        }
        Ok(())
    }

    /// What a device should have in these rows of a segment; `None` if that is nothing.
    ///
    /// # Errors
    /// If others don't have it.
    pub(super) fn rows_for(
        &self,
        slot: &Slot,
        segment: u32,
        is_metadata: bool,
        rows: Range<u32>,
    ) -> io::Result<Option<(u64, Vec<Frame>)>> {
        let (slots, read): (_, Read) =
            (self.slots(), |disk, at, frames| disk.read_patiently(at, frames));
        let own = slots.iter().position(|other| other.number == slot.number).ok_or_else(is_out)?;
        let shard = shard_at(segment, own, slots.len());
        let (geometry, offset_bytes) =
            (self.placement().geometry(), self.placement().row_offset_bytes(segment, rows.start));
        let mut frames: Vec<FrameMut> = rows.clone().map(|_| FrameMut::stale()).collect();
        if is_metadata {
            let column = shard as u32 / METADATA_COPIES;
            if column >= geometry.metadata_columns() {
                return Ok(None);
            }
            // Of the others: it is not in.
            let block = geometry.first_metadata_block() + column * geometry.rows() + rows.start;
            self.read(Place::of_block(segment, block), &mut frames, read)?;
        } else {
            self.make(&slots, (segment, shard, None), offset_bytes, &mut frames, read)?;
        }
        Ok(Some((offset_bytes, frames.into_iter().map(FrameMut::freeze).collect())))
    }

    /// Whether the parity of these rows of the log is that of the data.
    ///
    /// # Errors
    /// If a device is not in, or can't be read.
    pub(super) fn verify_rows(&self, segment: u32, rows: Range<u32>) -> io::Result<bool> {
        let code = self.placement().code().ok_or_else(is_out)?;
        let (slots, read): (_, Read) =
            (self.slots(), |disk, at, frames| disk.read_patiently(at, frames));
        let offset_bytes = self.placement().row_offset_bytes(segment, rows.start);
        let shard = |shard| {
            let slot = &slots[position(segment, shard, slots.len())];
            let device = slot.readable().ok_or_else(is_out)?;
            read_frames(device.disk(), offset_bytes, rows.len(), read)
        };
        let shards = (0..slots.len()).map(shard).collect::<io::Result<Vec<_>>>()?;
        let shards: Vec<&[Frame]> = shards.iter().map(Vec::as_slice).collect();
        code.verify(&shards).map_err(io::Error::other)
    }

    /// The only device that is written to, if it is one.
    pub(super) fn only(&self) -> Option<Arc<Slot>> {
        let slots = self.slots();
        let mut written = slots.iter().filter(|slot| slot.written().is_some());
        let only = written.next()?;
        written.next().is_none().then(|| only.clone())
    }
}

fn read_frames(
    disk: &dyn Disk,
    offset_bytes: u64,
    count: usize,
    read: Read,
) -> io::Result<Vec<Frame>> {
    let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
    read(disk, offset_bytes, &mut frames)?;
    Ok(frames.into_iter().map(FrameMut::freeze).collect())
}

/// The device that has a copy which is stored.
fn stored_copy<'a>(slots: &'a Slots, held: &Held, copy: usize) -> io::Result<&'a Arc<Slot>> {
    let at = match held {
        Held::Copies(positions) => positions.get(copy).map(|position| usize::from(*position)),
        Held::Column { segment, column } => {
            (copy == 0).then(|| position(*segment, *column, slots.len()))
        }
    };
    at.and_then(|at| slots.get(at)).ok_or_else(no_copy)
}

pub(super) fn is_out() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the device is out")
}

fn no_copy() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "there is no such copy (any more)")
}
