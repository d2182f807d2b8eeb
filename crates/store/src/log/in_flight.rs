//! A record that was sealed, on its way to the device.

use std::sync::Arc;

use block::Frame;
use format::{Brought, Entry, LogPosition, Place, RecordPlaces};

use crate::log::record::{Record, Sealed};

/// A record on its way to the device.
pub(crate) struct InFlight {
    pub(crate) record: Record,
    /// Its header with the entries, as it is written; none for a mere flush.
    pub(crate) header: Vec<Frame>,
    /// What the next record has a copy of.
    pub(crate) own: Arc<[u8]>,
    /// Where the record is, and its blocks, if it has any, and where the next one goes.
    pub(crate) at: LogPosition,
    pub(crate) places: Option<RecordPlaces>,
    pub(crate) next: LogPosition,
    pub(crate) lsn: u64,
    pub(crate) applied: bool,
    /// It waits to be taken.
    pub(crate) unsent: bool,
    /// How it ended, once it has: if not well, it is placed anew (`elsewhere`).
    pub(crate) written: Option<bool>,
    /// How many flushes had failed when it was sent.
    pub(crate) flushes_failed: u64,
    /// How often its place has refused it while there was no other.
    pub(crate) kept_in_place: u32,
}

impl InFlight {
    /// One that waits to be taken: where it is, its blocks, and where the next one goes.
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

    /// Rows that it takes in the log.
    pub(crate) fn rows(&self) -> u32 {
        self.places.map_or(0, RecordPlaces::rows)
    }

    /// Where what the record brings is, in the order of its entries, which `record` has.
    pub(crate) fn brought_to(&self, record: &Record) -> Vec<Place> {
        let brought = record.entries.iter().flat_map(Entry::brought);
        let place = |places: RecordPlaces| move |it: Brought| places.payload(it.payload_units);
        self.places.map_or_else(Vec::new, |places| brought.map(place(places)).collect())
    }

    /// Blocks of its header and its payload.
    pub(crate) fn blocks(&self) -> u32 {
        (self.header.len() + self.record.frames.len()) as u32
    }

    /// Whether it says nothing but how the log goes on.
    pub(crate) fn is_link(&self) -> bool {
        self.record.entries.is_empty() && !self.header.is_empty()
    }

    /// Whether it is on the device's side.
    pub(crate) fn is_flying(&self) -> bool {
        self.written.is_none() && !self.unsent
    }
}
