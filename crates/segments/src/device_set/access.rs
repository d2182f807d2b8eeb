//! Reading and writing what the devices have, for who may wait.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::{Frame, FrameMut};
use format::Place;
use format::geometry::METADATA_COPIES;
use parity::Code;
use sys::{Disk, Persist};

use super::device::{Device, Slot};
use super::members::{Members, Slots};
use super::placement::{self, At, Held, Rows, Run, Share};
use super::table::Table;

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
        let (slots, shares) = self.shares(place, frames)?;
        let write = |slot: &Arc<Slot>, offset_bytes: u64, frames: &[Frame]| {
            let Some(device) = slot.written() else { return Ok(()) };
            let written = device.disk.write_as(offset_bytes, frames, persist);
            written.or_else(|error| self.fail(slot, error))
        };
        for share in &shares {
            write(&slots[share.at.position], share.at.offset_bytes, &share.frames)?;
        }
        let has_none = |at: &usize| !shares.iter().any(|share| share.at.position == *at);
        if persist == Persist::All {
            for position in (0..slots.len()).filter(has_none) {
                write(&slots[position], 0, &[])?;
            }
        }
        Ok(())
    }

    /// What each device gets of an append, and the members that these are.
    ///
    /// # Errors
    /// As [`placement::Placement::shares`].
    fn shares(&self, place: Place, frames: &[Frame]) -> io::Result<(Slots, Vec<Share>)> {
        loop {
            let slots = self.slots();
            let shares = self.placement().shares(place, frames, &slots)?;
            if placement::are_known(&shares, &slots) {
                return Ok((slots, shares));
            }
        }
    }

    /// Reads from the devices that have it, one after the other, or makes it of what others have.
    ///
    /// # Errors
    /// That of the last that was asked.
    pub(super) fn read(&self, place: Place, frames: &mut [FrameMut], read: Read) -> io::Result<()> {
        let slots = self.slots();
        for run in self.placement().runs(place, frames.len(), &slots) {
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
        let mut from = |at: At, frames: &mut [FrameMut]| {
            let Some((slot, device)) = readable(slots, at) else { return false };
            let result = read(device.disk(), at.offset_bytes, frames);
            if let Err(error) = result {
                slot.read_errors.fetch_add(1, Ordering::Relaxed);
                failed = Some(error);
                return false;
            }
            true
        };
        match &run.held {
            Held::Copies(copies) => {
                if copies.iter().any(|at| from(*at, frames)) {
                    return Ok(());
                }
                Err(failed.unwrap_or_else(|| io::Error::other("no device is in")))
            }
            Held::Column(rows, column) => {
                let table = self.placement().table().ok_or_else(is_out)?;
                if from(self.placement().at(&table, *rows, *column, slots), frames) {
                    return Ok(());
                }
                self.make(slots, (*rows, *column, None), frames, read)
            }
        }
    }

    /// Makes a column of these rows of those that others have, without one of these if that is
    /// wanted.
    ///
    /// # Errors
    /// If there are too few, `NotConnected` where that is because of devices that are not in.
    fn make(
        &self,
        slots: &Slots,
        (rows, wanted, without): (Rows, usize, Option<usize>),
        frames: &mut [FrameMut],
        read: Read,
    ) -> io::Result<()> {
        let (code, table) = self.stripes()?;
        let (needed, shards) = (code.stripe().data(), code.stripe().shards());
        let (mut read_ones, mut failed) = (vec![None; shards], None);
        let mut left = needed;
        for column in (0..shards).filter(|column| *column != wanted && Some(*column) != without) {
            let at = self.placement().at(&table, rows, column, slots);
            let Some((slot, device)) = readable(slots, at).filter(|_| left > 0) else { continue };
            match read_frames(device.disk(), at.offset_bytes, frames.len(), read) {
                Ok(found) => {
                    read_ones[column] = Some(found);
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

    /// How parity is made, and where columns are.
    ///
    /// # Errors
    /// If the pool is not in stripes.
    fn stripes(&self) -> io::Result<(&dyn Code, Arc<Table>)> {
        self.placement().code().zip(self.placement().table()).ok_or_else(is_out)
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
        for run in self.placement().runs(place, frames.len(), &slots) {
            let frames = &mut frames[run.frames.clone()];
            match &run.held {
                Held::Column(rows, column) if copy > 0 => {
                    let shards = self.stripes()?.0.stripe().shards();
                    let mut others = (0..shards).filter(|other| other != column);
                    let without = Some(others.nth(copy - 1).ok_or_else(no_copy)?);
                    self.make(&slots, (*rows, *column, without), frames, read)?;
                }
                held => {
                    let at = self.stored_copy(&slots, held, copy)?;
                    let (_, device) = readable(&slots, at).ok_or_else(is_out)?;
                    read(device.disk(), at.offset_bytes, frames)?;
                }
            }
        }
        Ok(())
    }

    /// Where a copy is that is stored.
    pub(super) fn stored_copy(&self, slots: &Slots, held: &Held, copy: usize) -> io::Result<At> {
        match held {
            Held::Copies(copies) => copies.get(copy).copied().ok_or_else(no_copy),
            Held::Column(rows, column) if copy == 0 => {
                Ok(self.placement().at(&self.stripes()?.1, *rows, *column, slots))
            }
            Held::Column(..) => Err(no_copy()),
        }
    }

    /// Writes, durably, what a device should have of a copy.
    ///
    /// # Errors
    /// As [`crate::Segments::mend`].
    pub(super) fn mend(&self, place: Place, copy: u32, frames: &[Frame]) -> io::Result<()> {
        let slots = self.slots();
        for run in self.placement().runs(place, frames.len(), &slots) {
            if matches!(run.held, Held::Column(..)) && copy > 0 {
                let text = "it is made of what others have, and not stored";
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            let at = self.stored_copy(&slots, &run.held, copy as usize)?;
            let (slot, device) = readable(&slots, at).ok_or_else(is_out)?;
            self.begin()?;
            let written = device.disk.write_durable(at.offset_bytes, &frames[run.frames.clone()]);
            written.map_err(|error| self.fail_with(slot, error))?;
            slot.mended.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// What a column has in these rows of a segment; `None` if that is nothing.
    ///
    /// # Errors
    /// If others don't have it.
    pub(super) fn rows_of(
        &self,
        column: usize,
        (segment, is_metadata): (u32, bool),
        rows: Range<u32>,
    ) -> io::Result<Option<Vec<Frame>>> {
        let (slots, read): (_, Read) =
            (self.slots(), |disk, at, frames| disk.read_patiently(at, frames));
        let geometry = self.placement().geometry();
        let mut frames: Vec<FrameMut> = rows.clone().map(|_| FrameMut::stale()).collect();
        if is_metadata {
            let copies_of = column as u32 / METADATA_COPIES;
            if copies_of >= geometry.metadata_columns() {
                return Ok(None);
            }
            // Of the others, if this one is not in.
            let block = geometry.first_metadata_block() + copies_of * geometry.rows() + rows.start;
            self.read(Place::of_block(segment, block), &mut frames, read)?;
        } else {
            let (of, count) = (Rows { segment, first: rows.start }, frames.len());
            let run = Run { frames: 0..count, held: Held::Column(of, column) };
            self.read_run(&slots, &run, &mut frames, read)?;
        }
        Ok(Some(frames.into_iter().map(FrameMut::freeze).collect()))
    }

    /// Whether the parity of these rows of the log is that of the data.
    ///
    /// # Errors
    /// If a device is not in, or can't be read.
    pub(super) fn verify_rows(&self, segment: u32, rows: Range<u32>) -> io::Result<bool> {
        let (code, table) = self.stripes()?;
        let (slots, read): (_, Read) =
            (self.slots(), |disk, at, frames| disk.read_patiently(at, frames));
        let of = Rows { segment, first: rows.start };
        let column = |column| {
            let at = self.placement().at(&table, of, column, &slots);
            let (_, device) = readable(&slots, at).ok_or_else(is_out)?;
            read_frames(device.disk(), at.offset_bytes, rows.len(), read)
        };
        let columns = (0..code.stripe().shards()).map(column).collect::<io::Result<Vec<_>>>()?;
        let columns: Vec<&[Frame]> = columns.iter().map(Vec::as_slice).collect();
        code.verify(&columns).map_err(io::Error::other)
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

/// The device at this position, if it may be read.
fn readable(slots: &[Arc<Slot>], at: At) -> Option<(&Arc<Slot>, &Device)> {
    let slot = slots.get(at.position)?;
    Some((slot, slot.readable()?))
}

pub(super) fn is_out() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the device is out")
}

fn no_copy() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "there is no such copy (any more)")
}
