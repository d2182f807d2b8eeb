//! A sealed record in flight.

use std::sync::Arc;

use block::Frame;
use format::{Brought, Entry, LogPosition, Place, RecordPlaces};

use crate::log::record::{Record, Sealed};

/// A sealed record in flight.
pub(crate) struct InFlight {
    pub(crate) record: Record,
    /// Its header with the entries, as written; none for a mere flush.
    pub(crate) header: Vec<Frame>,
    /// What the next record has a copy of.
    pub(crate) own: Arc<[u8]>,
    /// The location of the record, of its blocks, if it has any, and of the next one.
    pub(crate) at: LogPosition,
    pub(crate) places: Option<RecordPlaces>,
    pub(crate) next: LogPosition,
    pub(crate) lsn: u64,
    pub(crate) applied: bool,
    /// Whether it waits to be taken.
    pub(crate) unsent: bool,
    /// Whether its write succeeded, once it has ended: if not, it is moved (`elsewhere`).
    pub(crate) written: Option<bool>,
    /// How many flushes had failed when it was taken.
    pub(crate) flushes_failed: u64,
    /// How often its location has refused it while there was no other.
    pub(crate) kept_in_place: u32,
}

impl InFlight {
    /// Creates one that waits to be taken: its location, its blocks, and the location of the next
    /// one.
    pub(crate) fn new(
        record: Record,
        sealed: Sealed,
        (at, places, next): (LogPosition, Option<RecordPlaces>, LogPosition),
        lsn: u64,
        applied: bool,
    ) -> Self {
        Self {
            record,
            header: sealed.frames,
            own: sealed.own,
            at,
            places,
            next,
            lsn,
            applied,
            unsent: true,
            written: None,
            flushes_failed: 0,
            kept_in_place: 0,
        }
    }

    /// Returns how many rows it takes in the log.
    pub(crate) fn rows(&self) -> u32 {
        self.places.map_or(0, RecordPlaces::rows)
    }

    /// Returns where the blocks of the record are, in the order of the entries of `record`.
    pub(crate) fn brought_to(&self, record: &Record) -> Vec<Place> {
        let brought = record.entries.iter().flat_map(Entry::brought);
        let place = |places: RecordPlaces| move |it: Brought| places.payload(it.payload_units);
        self.places.map_or_else(Vec::new, |places| brought.map(place(places)).collect())
    }

    /// Returns the number of blocks of its header and payload.
    pub(crate) fn blocks(&self) -> u32 {
        (self.header.len() + self.record.frames.len()) as u32
    }

    /// Returns whether it only says where the log continues.
    pub(crate) fn is_link(&self) -> bool {
        self.record.entries.is_empty() && !self.header.is_empty()
    }

    /// Returns whether its write is in flight.
    pub(crate) fn is_flying(&self) -> bool {
        self.written.is_none() && !self.unsent
    }
}
