//! Reads of the same rows from a device that has them, or from as many as needed to reconstruct
//! them.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::{Frame, FrameMut};
use sys::Disk;

use super::access::is_out;
use super::device::Slot;
use super::lanes::UnderWay;
use super::members::Members;
use super::workers::{Asked, TRANSFER, timed_out};

/// How to read from a disk: with retries or without.
pub(super) type Read = fn(&dyn Disk, u64, &mut [FrameMut]) -> io::Result<()>;

/// With retries.
pub(super) const PATIENTLY: Read = |disk, at, frames| disk.read_patiently(at, frames);

/// How much to read from each device, and how.
#[derive(Clone, Copy)]
pub(super) struct Blocks {
    pub(super) count: usize,
    pub(super) read: Read,
}

impl Blocks {
    fn read_from(self, disk: &dyn Disk, offset_bytes: u64) -> io::Result<Vec<FrameMut>> {
        let mut frames: Vec<FrameMut> = (0..self.count).map(|_| FrameMut::stale()).collect();
        (self.read)(disk, offset_bytes, &mut frames)?;
        Ok(frames)
    }
}

/// A location: a device, and an offset on it in bytes.
pub(super) type Stand = (Arc<Slot>, u64);

/// The devices to read from.
#[derive(Default)]
pub(super) struct Sources {
    /// The device with the wanted data.
    pub(super) own: Option<Stand>,
    /// Devices with columns from which it can be reconstructed, by their numbers, or with copies of
    /// it.
    pub(super) others: Vec<(usize, Stand)>,
    /// How many of the others are needed.
    pub(super) needed: usize,
}

/// The data read.
pub(super) enum Gathered {
    Own(Vec<FrameMut>),
    Others(Vec<(usize, Vec<FrameMut>)>),
}

impl Gathered {
    /// Returns the data of each column.
    pub(super) fn by_column(self, columns: usize) -> Vec<Option<Vec<Frame>>> {
        let mut all = vec![None; columns];
        if let Self::Others(others) = self {
            for (column, frames) in others {
                all[column] = Some(frames.into_iter().map(FrameMut::freeze).collect());
            }
        }
        all
    }
}

/// A device that is read: its column, if it is one of the others.
type Source = (Option<usize>, Arc<Slot>);

impl Members {
    /// Reads from the device with the wanted data; if it fails or is late, from as many of the
    /// others as needed, and one more for each of them that fails or is late.
    ///
    /// # Errors
    /// That of the last that failed; `NotConnected` if too few are in.
    pub(super) fn gather(
        self: &Arc<Self>,
        sources: Sources,
        blocks: Blocks,
    ) -> io::Result<Gathered> {
        let Sources { own, others, needed } = sources;
        let (mut asked, mut found, mut failed) = (Asked::new(), Vec::new(), None);
        let mut others = others.into_iter();
        if let Some(own) = own {
            begin(&mut asked, (None, own), blocks);
        }
        let gathered = loop {
            let waits_for_own = asked.in_time().any(|(column, _)| column.is_none());
            while !waits_for_own
                && found.len() + asked.in_time().filter(|(column, _)| column.is_some()).count()
                    < needed
                && let Some((column, at)) = others.next()
            {
                begin(&mut asked, (Some(column), at), blocks);
            }
            if found.len() == needed && needed > 0 {
                break Ok(Gathered::Others(found));
            }
            let are_waiting = asked.waiting().filter(|(column, _)| column.is_some()).count();
            let are_too_few =
                are_waiting == asked.waiting().count() && found.len() + are_waiting < needed.max(1);
            let ended = match asked.ended() {
                None if are_too_few => break Err(failed.unwrap_or_else(is_out)),
                None => asked.next(),
                ended => ended,
            };
            match ended {
                Some(((None, _), Ok(frames))) => break Ok(Gathered::Own(frames)),
                Some(((Some(column), _), Ok(frames))) => found.push((column, frames)),
                Some(((_, slot), Err(error))) => {
                    slot.read_errors.fetch_add(1, Ordering::Relaxed);
                    failed = Some(error);
                }
                None => asked.give_up(|(_, slot), limit| {
                    let is_out = self.goes_on_without(slot, limit);
                    if is_out {
                        failed = Some(timed_out(limit));
                    }
                    is_out
                }),
            }
        };
        self.watch(asked);
        gathered
    }

    /// Waits for late reads that others have replaced; a device whose read exceeds its limit goes
    /// out.
    fn watch(self: &Arc<Self>, mut asked: Asked<Source, Vec<FrameMut>>) {
        if asked.waiting().next().is_none() {
            return;
        }
        let members = Arc::downgrade(self);
        std::thread::spawn(move || {
            while asked.waiting().next().is_some() {
                if asked.next().is_some() {
                    continue;
                }
                let Some(members) = members.upgrade() else { return };
                asked.give_up(|(_, slot), limit| {
                    members.goes_on_without(slot, limit);
                    true
                });
            }
        });
    }
}

fn begin(
    asked: &mut Asked<Source, Vec<FrameMut>>,
    (column, (slot, offset_bytes)): (Option<usize>, Stand),
    blocks: Blocks,
) {
    if let Some(device) = slot.readable() {
        let guard = UnderWay::one(&slot);
        let read = move |disk: &dyn Disk| blocks.read_from(disk, offset_bytes);
        asked.begin((column, slot.clone()), device, guard, TRANSFER, read);
    }
}
