//! Blocking reads and writes of devices.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::{Frame, FrameMut};
use format::Place;
use format::geometry::METADATA_COPIES;
use parity::Code;
use sys::{Disk, Persist};

use super::device::Slot;
use super::gather::{Blocks, Gathered, PATIENTLY, Read, Sources, Stand};
use super::members::{Members, Slots};
use super::placement::{self, At, Held, Rows, Run, Share};
use super::table::Table;
use super::workers::{ALONE, FLUSH, TRANSFER, Terms, each, timed_out};

impl Members {
    /// Writes to each device its share of an append. A device that fails goes out.
    ///
    /// # Errors
    /// That of a device that must stay in; if parity can't be computed.
    pub(super) fn append(
        &self,
        place: Place,
        frames: &[Frame],
        persist: Persist,
    ) -> io::Result<()> {
        self.begin()?;
        let (slots, shares) = self.shares(place, frames)?;
        let has_none = |at: &usize| !shares.iter().any(|share| share.at.position == *at);
        let (flushed, limit): (Vec<_>, _) = match persist {
            Persist::All => ((0..slots.len()).filter(has_none).collect(), FLUSH),
            Persist::Nothing | Persist::Itself => (Vec::new(), TRANSFER),
        };
        let empty = |position| (At { position, offset_bytes: 0 }, Vec::new());
        let written = shares.into_iter().map(|share| (share.at, share.frames));
        let calls = written.chain(flushed.into_iter().map(empty)).map(|(at, frames)| {
            let write = move |disk: &dyn Disk| disk.write_as(at.offset_bytes, &frames, persist);
            (slots[at.position].clone(), write)
        });
        self.each(calls, Slot::written, limit, |slot, written| {
            written.or_else(|error| self.fail(slot, error))
        })
    }

    /// Returns each device's share of an append, and the members that they refer to.
    ///
    /// # Errors
    /// As [`placement::Placement::shares`].
    fn shares(&self, place: Place, frames: &[Frame]) -> io::Result<(Slots, Vec<Share>)> {
        for _ in 0..LOOKS_MAX {
            let slots = self.slots();
            let shares = self.placement().shares(place, frames, &slots)?;
            if placement::are_known(&shares, &slots) {
                return Ok((slots, shares));
            }
            std::thread::yield_now();
        }
        Err(no_member())
    }

    /// Reads from a device that has the data, or reconstructs it from others.
    ///
    /// # Errors
    /// That of the last device that was read.
    pub(super) fn read(
        self: &Arc<Self>,
        place: Place,
        frames: &mut [FrameMut],
        read: Read,
    ) -> io::Result<()> {
        let slots = self.slots();
        for run in self.placement().runs(place, frames.len(), &slots)? {
            self.read_run(&slots, &run, &mut frames[run.frames.clone()], read)?;
        }
        Ok(())
    }

    fn read_run(
        self: &Arc<Self>,
        slots: &Slots,
        run: &Run,
        frames: &mut [FrameMut],
        read: Read,
    ) -> io::Result<()> {
        let (first, is_of_first) = match &run.held {
            Held::Copies(copies) => {
                let stands = copies.iter().map(|at| stand(slots, *at)).enumerate();
                let others = stands.filter_map(|(copy, at)| Some((copy, at?))).collect();
                let sources = Sources { own: None, others, needed: 1 };
                (copies.first().copied(), self.read_one(sources, frames, read)? == Some(0))
            }
            Held::Column(rows, column) => {
                let table = self.placement().table().ok_or_else(is_out)?;
                let at = self.placement().at(&table, *rows, *column, slots);
                let wanted = (*rows, *column, None);
                (Some(at), self.make(slots, stand(slots, at), wanted, frames, read)?)
            }
        };
        if !is_of_first && let Some(slot) = first.and_then(|at| slots.get(at.position)) {
            slot.note_read_elsewhere();
        }
        Ok(())
    }

    /// Reads from one of several devices that have the data; returns which of the others it was, if
    /// it was one.
    fn read_one(
        self: &Arc<Self>,
        sources: Sources,
        frames: &mut [FrameMut],
        read: Read,
    ) -> io::Result<Option<usize>> {
        let (other, mut found) = match self.gather(sources, Blocks { count: frames.len(), read })? {
            Gathered::Own(found) => (None, found),
            Gathered::Others(mut found) => {
                found.pop().map(|(other, found)| (Some(other), found)).unwrap_or_default()
            }
        };
        frames.swap_with_slice(&mut found);
        Ok(other)
    }

    /// Reads a column of these rows from its location, if that is to be tried, or reconstructs it
    /// from the others, optionally without one of these. Returns whether it was read from its
    /// location.
    ///
    /// # Errors
    /// If there are too few; `NotConnected` if that is because devices are not in.
    fn make(
        self: &Arc<Self>,
        slots: &Slots,
        own: Option<Stand>,
        (rows, wanted, without): (Rows, usize, Option<usize>),
        frames: &mut [FrameMut],
        read: Read,
    ) -> io::Result<bool> {
        let (code, table) = self.stripes(rows.segment)?;
        let (needed, columns) = (code.stripe().data(), code.stripe().shards());
        let others = self.stands(slots, &table, rows);
        let others = others.filter(|(other, _)| *other != wanted && Some(*other) != without);
        let sources = Sources { own, others: others.collect(), needed };
        match self.gather(sources, Blocks { count: frames.len(), read })? {
            Gathered::Own(mut found) => {
                frames.swap_with_slice(&mut found);
                Ok(true)
            }
            others => placement::make(code, &others.by_column(columns), wanted, frames)
                .map(|()| false)
                .map_err(io::Error::other),
        }
    }

    /// Returns the locations of all columns of these rows, by number.
    fn stands<'a>(
        &'a self,
        slots: &'a Slots,
        table: &'a Table,
        rows: Rows,
    ) -> impl Iterator<Item = (usize, Stand)> + 'a {
        (0..table.columns(rows.segment).unwrap_or(0)).filter_map(move |column| {
            Some((column, stand(slots, self.placement().at(table, rows, column, slots))?))
        })
    }

    /// Returns the code of a segment, and the location of columns.
    ///
    /// # Errors
    /// If the pool is not striped.
    fn stripes(&self, segment: u32) -> io::Result<(&dyn Code, Arc<Table>)> {
        let table = self.placement().table().ok_or_else(is_out)?;
        Ok((self.placement().code_of(&table, segment).ok_or_else(is_out)?, table))
    }

    /// Reads one copy, by its number: see [`crate::Segments::copies`].
    ///
    /// # Errors
    /// Those of the device; `NotFound` and `NotConnected` if the copy does not exist (any longer).
    pub(super) fn read_copy(
        self: &Arc<Self>,
        place: Place,
        copy: u32,
        frames: &mut [FrameMut],
    ) -> io::Result<()> {
        let (slots, copy) = (self.slots(), copy as usize);
        for run in self.placement().runs(place, frames.len(), &slots)? {
            let frames = &mut frames[run.frames.clone()];
            match &run.held {
                Held::Column(rows, column) if copy > 0 => {
                    let shards = self.stripes(rows.segment)?.0.stripe().shards();
                    let mut others = (0..shards).filter(|other| other != column);
                    let without = Some(others.nth(copy - 1).ok_or_else(no_copy)?);
                    self.make(&slots, None, (*rows, *column, without), frames, PATIENTLY)?;
                }
                held => {
                    let at = self.stored_copy(&slots, held, copy)?;
                    let own = stand(&slots, at);
                    self.read_one(Sources { own, ..Sources::default() }, frames, PATIENTLY)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the location of a stored copy.
    pub(super) fn stored_copy(&self, slots: &Slots, held: &Held, copy: usize) -> io::Result<At> {
        match held {
            Held::Copies(copies) => copies.get(copy).copied().ok_or_else(no_copy),
            Held::Column(rows, column) if copy == 0 => {
                Ok(self.placement().at(&self.stripes(rows.segment)?.1, *rows, *column, slots))
            }
            Held::Column(..) => Err(no_copy()),
        }
    }

    /// Rewrites a device's part of a copy, durably.
    pub(super) fn mend(&self, place: Place, copy: u32, frames: &[Frame]) -> io::Result<()> {
        let slots = self.slots();
        for run in self.placement().runs(place, frames.len(), &slots)? {
            if matches!(run.held, Held::Column(..)) && copy > 0 {
                let text = "this copy is reconstructed from others, and not stored";
                return Err(io::Error::new(io::ErrorKind::Unsupported, text));
            }
            let at = self.stored_copy(&slots, &run.held, copy as usize)?;
            let (slot, offset_bytes) = stand(&slots, at).ok_or_else(is_out)?;
            slot.readable().ok_or_else(is_out)?;
            self.begin()?;
            let frames = frames[run.frames.clone()].to_vec();
            let write = move |disk: &dyn Disk| disk.write_durable(offset_bytes, &frames);
            self.one(&slot, TRANSFER, write)?;
            slot.mended.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Returns the content of a column in these rows of a segment, if there is any, and whether all
    /// sources agree: `false` if one of them is not what was written.
    ///
    /// # Errors
    /// If the other devices lack it.
    pub(super) fn rows_of(
        self: &Arc<Self>,
        column: usize,
        (segment, is_metadata): (u32, bool),
        rows: Range<u32>,
    ) -> io::Result<Option<(Vec<Frame>, bool)>> {
        let slots = self.slots();
        let table = self.placement().table().ok_or_else(is_out)?;
        let geometry = self.placement().geometry_of(&table, segment);
        let of = Rows { segment, first: rows.start };
        let mut frames: Vec<FrameMut> = rows.clone().map(|_| FrameMut::stale()).collect();
        let mut agree = true;
        if is_metadata {
            let copies_of = column as u32 / METADATA_COPIES;
            if copies_of >= geometry.metadata_columns() {
                return Ok(None);
            }
            let block = geometry.first_metadata_block() + copies_of * geometry.rows() + rows.start;
            let (place, copy) = (Place::of_block(segment, block), column as u32 % METADATA_COPIES);
            // A copy from another device would repeat that device's error.
            if self.read_copy(place, copy, &mut frames).is_err() {
                self.read(place, &mut frames, PATIENTLY)?;
                let others = (0..METADATA_COPIES).filter(|other| *other != copy);
                agree = self.are_copies(place, others, &frames);
            }
        } else if let Some(found) = self.make_compared(&slots, of, column, rows.len()) {
            return Ok(Some(found?));
        } else {
            let run = Run { frames: 0..frames.len(), held: Held::Column(of, column) };
            self.read_run(&slots, &run, &mut frames, PATIENTLY)?;
        }
        Ok(Some((frames.into_iter().map(FrameMut::freeze).collect(), agree)))
    }

    /// Returns whether those of these copies of metadata that can be read are these frames.
    fn are_copies(
        self: &Arc<Self>,
        place: Place,
        mut copies: impl Iterator<Item = u32>,
        frames: &[FrameMut],
    ) -> bool {
        copies.all(|copy| {
            let mut others: Vec<FrameMut> = frames.iter().map(|_| FrameMut::stale()).collect();
            let is_read = self.read_copy(place, copy, &mut others).is_ok();
            !is_read || frames.iter().zip(&others).all(|(one, other)| one[..] == other[..])
        })
    }

    /// Reconstructs a lost column, and returns whether one source more than needed agrees; `None`
    /// if the column is not lost, or no source can be spared.
    fn make_compared(
        self: &Arc<Self>,
        slots: &Slots,
        rows: Rows,
        wanted: usize,
        count: usize,
    ) -> Option<io::Result<(Vec<Frame>, bool)>> {
        let (code, table) = self.stripes(rows.segment).ok()?;
        let (data, columns) = (code.stripe().data(), code.stripe().shards());
        let others = self.stands(slots, &table, rows);
        let others: Vec<_> = others.filter(|(_, (slot, _))| slot.is_in()).collect();
        if others.len() <= data || others.iter().any(|(column, _)| *column == wanted) {
            return None;
        }
        let sources = Sources { own: None, others, needed: data + 1 };
        // If one of them does not respond, the column is reconstructed from the rest.
        let found = self.gather(sources, Blocks { count, read: PATIENTLY }).ok()?;
        let mut found = found.by_column(columns);
        let spare = (0..columns).rev().find(|column| found[*column].is_some())?;
        let compared = found[spare].take()?;
        let given: Vec<Option<&[Frame]>> = found.iter().map(Option::as_deref).collect();
        let made = code.reconstruct(&given, &[wanted, spare]).map_err(io::Error::other);
        Some(made.map(|made| {
            let [wanted, spare] = <[Vec<Frame>; 2]>::try_from(made).unwrap_or_default();
            let agree = spare.iter().zip(&compared).all(|(one, other)| one[..] == other[..]);
            (wanted, agree)
        }))
    }

    /// Returns whether the parity of these rows of the log matches the data.
    ///
    /// # Errors
    /// If a device is not in, or can't be read.
    pub(super) fn verify_rows(
        self: &Arc<Self>,
        segment: u32,
        rows: Range<u32>,
    ) -> io::Result<bool> {
        let (code, table) = self.stripes(segment)?;
        let slots = self.slots();
        let of = Rows { segment, first: rows.start };
        let needed = code.stripe().shards();
        let others: Vec<_> = self.stands(&slots, &table, of).collect();
        if others.iter().filter(|(_, (slot, _))| slot.is_in()).count() < needed {
            return Err(is_out());
        }
        let sources = Sources { own: None, others, needed };
        let columns = self.gather(sources, Blocks { count: rows.len(), read: PATIENTLY })?;
        let columns = columns.by_column(needed);
        let columns: Vec<&[Frame]> = columns.iter().flatten().map(Vec::as_slice).collect();
        code.verify(&columns).map_err(io::Error::other)
    }

    /// Grows all devices that are written to and are shorter.
    ///
    /// # Errors
    /// Those of the devices. A device that can't grow has not failed; the pool then does not grow.
    pub(super) fn grow(&self, capacity_bytes: u64) -> io::Result<()> {
        let is_short = |slot: &&Arc<Slot>| {
            let device = slot.written();
            device.is_some_and(|device| device.disk.len_bytes() < capacity_bytes)
        };
        let slots = self.slots();
        let grow =
            |slot: &Arc<Slot>| (slot.clone(), move |disk: &dyn Disk| disk.grow(capacity_bytes));
        let terms = Terms { of: Slot::written, limit: ALONE, spare: usize::MAX };
        let mut late = Ok(());
        let gives_up = |_: &Arc<Slot>, limit| {
            late = Err(timed_out(limit));
            true
        };
        each(slots.iter().filter(is_short).map(grow), terms, gives_up, |_, grown| grown)?;
        late
    }

    /// Returns the device that is written to, if there is only one.
    pub(super) fn only(&self) -> Option<Arc<Slot>> {
        let slots = self.slots();
        let mut written = slots.iter().filter(|slot| slot.written().is_some());
        let only = written.next()?;
        written.next().is_none().then(|| only.clone())
    }
}

/// Returns the device at this position, and the offset on it.
fn stand(slots: &[Arc<Slot>], at: At) -> Option<Stand> {
    Some((slots.get(at.position)?.clone(), at.offset_bytes))
}

/// How often to look at the members again while the map has a device that is not a member: both
/// change, one right after the other.
pub(super) const LOOKS_MAX: usize = 10_000;

pub(super) fn no_member() -> io::Error {
    io::Error::other("the map of parts has a device that is not a member of the pool")
}

pub(super) fn is_out() -> io::Error {
    io::Error::new(io::ErrorKind::NotConnected, "the device is out")
}

fn no_copy() -> io::Error {
    io::Error::new(io::ErrorKind::NotFound, "the copy does not exist (any longer)")
}
