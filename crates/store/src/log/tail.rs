//! The tail of the log: how far it is applied, how far it is durable, where the next record goes,
//! and what a recovery would read now.
//!
//! ```text
//!  checkpoint ──── applied ──── position ──── sealed, not applied ──── end: the next record
//! ```
//!
//! Invariants, each checked by an assertion:
//! 1. LSNs are contiguous: a record is sealed at the [`end`](Tail::end), and the one after it has
//!    the next LSN; the same holds for those that are applied, each at the
//!    [`position`](Tail::position).
//! 2. `position <= end`, and `flushed_lsn < end`, by their LSNs.
//! 3. All of these only increase, with two exceptions: the end goes back to a record that the
//!    device has refused, from which records are sealed again, and the position to one that was
//!    applied early and that a failed flush may have lost. Neither goes back before what is
//!    durable.
//! 4. A segment that recovery would read is not free: so none of them is opened.

use std::collections::BTreeSet;
use std::sync::Arc;

use block::BLOCK_BYTES;
use format::{Geometry, LogPosition, Seal, record_places};

use segments::Shared;

use crate::WrittenBytes;
use crate::chunks::medium::Medium;
use crate::log::in_flight::InFlight;

/// The tail; see the module.
pub(crate) struct Tail {
    epoch: u64,
    geometry: Geometry,
    /// For the columns of each segment.
    disk: Shared,
    /// The segment that the log must leave, if it ends there; 0 is none.
    left_segment: u32,
    /// The location of the first record that is not applied yet, existing or not.
    position: LogPosition,
    /// The location of the next record.
    end: LogPosition,
    /// Header and entries of the records before these two positions, for the copy in the next
    /// record.
    position_own: Arc<[u8]>,
    end_own: Arc<[u8]>,
    /// Whether the last record has entries: see `quiet`.
    ends_with_entries: bool,
    /// Where the log ended at the last turn of maintenance that had nothing else to do.
    rested_at_lsn: Option<u64>,
    /// The last record that is known to be durable, with all earlier ones.
    flushed_lsn: u64,
    since_checkpoint: Since,
    written: WrittenBytes,
    commit_count: u64,
    /// How often something was written elsewhere because the device refused it.
    moved_count: u64,
}

/// What recovery would read.
#[derive(Clone)]
pub(crate) struct Since {
    /// Bytes of log since the last checkpoint.
    bytes: u64,
    segments: BTreeSet<u32>,
}

impl Tail {
    /// Creates a tail at a position.
    pub(crate) fn new(epoch: u64, position: LogPosition, medium: &Medium) -> Self {
        let segments = BTreeSet::from([position.segment, position.next_segment]);
        Self {
            epoch,
            geometry: medium.geometry(),
            disk: medium.disk.clone(),
            left_segment: 0,
            position,
            end: position,
            position_own: Arc::default(),
            end_own: Arc::default(),
            ends_with_entries: false,
            rested_at_lsn: None,
            flushed_lsn: position.lsn - 1,
            since_checkpoint: Since { bytes: 0, segments },
            written: WrittenBytes::default(),
            commit_count: 0,
            moved_count: 0,
        }
    }

    /// Sets the epoch of the next records.
    pub(crate) fn begin_epoch(&mut self, epoch: u64) {
        assert!(epoch > self.epoch, "epochs only increase");
        self.epoch = epoch;
    }

    /// Changes the medium to another one with the same segments.
    pub(crate) fn go_on(&mut self, disk: &Shared) {
        self.disk = disk.clone();
    }

    /// Records that recovery has applied the record before `position`, with this many rows; `own`
    /// is what the next record has a copy of.
    pub(crate) fn recovered(&mut self, position: LogPosition, own: Arc<[u8]>, rows: u32) {
        assert_eq!(position.lsn, self.position.lsn + 1, "recovery applies records in order");
        self.position = position;
        self.end = position;
        (self.position_own, self.end_own) = (own.clone(), own);
        self.ends_with_entries = true;
        self.flushed_lsn = position.lsn - 1;
        self.since_checkpoint.bytes += self.bytes_of(position.segment, rows);
    }

    /// Sets the new seal of the last record that recovery has applied, and what the next one has a
    /// copy of.
    pub(crate) fn sealed_again(&mut self, seal: Seal, own: Arc<[u8]>) {
        assert_eq!(self.position, self.end, "nothing was written yet");
        (self.position.previous, self.end.previous) = (seal, seal);
        (self.position_own, self.end_own) = (own.clone(), own);
    }

    /// Returns the epoch, and the LSN of the last durable record, for a record's header.
    pub(crate) fn stamp(&self) -> (u64, u64) {
        (self.epoch, self.flushed_lsn)
    }

    /// Returns the epoch of records that are sealed now.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the location of the first record that is not applied yet, existing or not.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Returns header and entries of the record before the position.
    pub(crate) fn position_own(&self) -> &Arc<[u8]> {
        &self.position_own
    }

    /// Returns the location of the next record.
    pub(crate) fn end(&self) -> LogPosition {
        self.end
    }

    /// Returns header and entries of the last record.
    pub(crate) fn end_own(&self) -> &Arc<[u8]> {
        &self.end_own
    }

    /// Returns whether the last record has entries.
    pub(crate) fn ends_with_entries(&self) -> bool {
        self.ends_with_entries
    }

    /// Returns the number of rows of each segment.
    pub(crate) fn segment_rows(&self) -> u32 {
        self.geometry.rows()
    }

    /// Returns how much of the log fits a whole segment.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.geometry.segment_bytes()
    }

    /// Returns the columns of the segment in which the log ends.
    pub(crate) fn columns(&self) -> u8 {
        self.columns_of(self.end.segment)
    }

    /// Returns the columns of a segment of the log.
    pub(crate) fn columns_of(&self, segment: u32) -> u8 {
        self.disk.columns(segment).unwrap_or(self.geometry.columns)
    }

    /// Returns the rows that are left of the segment in which the log ends; none, if the log must
    /// leave it.
    pub(crate) fn segment_rest_rows(&self) -> u32 {
        if self.is_left() { 0 } else { self.segment_rows() - self.end.block }
    }

    /// Makes the log continue in the next segment, although there is room in the one where it ends.
    pub(crate) fn leave_segment(&mut self) {
        self.left_segment = self.end.segment;
    }

    /// Returns whether the log must leave the segment in which it ends.
    pub(crate) fn is_left(&self) -> bool {
        self.left_segment == self.end.segment
    }

    /// Returns the maximum number of blocks of a record that fits the rest of the segment.
    pub(crate) fn segment_rest_blocks(&self) -> u32 {
        record_places::blocks_that_fit(self.columns().into(), self.segment_rest_rows())
    }

    fn bytes_of(&self, segment: u32, rows: u32) -> u64 {
        u64::from(rows) * u64::from(self.columns_of(segment)) * BLOCK_BYTES
    }

    /// Moves the end after a sealed record.
    pub(crate) fn sealed(&mut self, sealed: &InFlight) {
        assert_eq!(sealed.at.lsn, self.end.lsn, "a record follows the one before it");
        assert!(sealed.next.block <= self.segment_rows(), "no record crosses a segment");
        let bytes = self.bytes_of(sealed.at.segment, sealed.rows());
        self.since_checkpoint.bytes += bytes;
        self.written.log_bytes += bytes;
        self.end = sealed.next;
        if !sealed.header.is_empty() {
            assert_eq!(sealed.next.lsn, sealed.at.lsn + 1, "each record has the next LSN");
            self.end_own = sealed.own.clone();
            self.ends_with_entries = !sealed.record.entries.is_empty();
        }
    }

    /// Moves the end back: records from `from` on were refused, and are sealed again.
    pub(crate) fn seal_again_from(&mut self, from: LogPosition) {
        assert!(self.position.lsn <= from.lsn && from.lsn <= self.end.lsn, "it is in the log");
        assert!(from.lsn > self.flushed_lsn, "a durable record is not moved");
        self.end = from;
    }

    /// Moves the end to the next segment; `opened` follows that.
    pub(crate) fn enter_next_segment(&mut self, opened: u32) {
        let segment = self.end.next_segment;
        self.end = LogPosition { segment, block: 0, next_segment: opened, ..self.end };
        self.check_opened(opened);
        self.since_checkpoint.segments.extend([segment, opened]);
    }

    /// Checks invariant 4 for a free segment that was opened for the log.
    pub(crate) fn check_opened(&self, opened: u32) {
        let is_read = self.segments().contains(&opened);
        assert!(!is_read, "segment {opened} was free, but recovery would read it");
    }

    /// Adds a segment that recovery would read; returns whether it is new.
    pub(crate) fn note_segment(&mut self, segment: u32) -> bool {
        self.since_checkpoint.segments.insert(segment)
    }

    /// Records that a sealed record was applied.
    pub(crate) fn applied(&mut self, done: &InFlight) {
        assert_eq!(done.at.lsn, self.position.lsn, "records are applied in log order");
        assert!(done.next.lsn <= self.end.lsn, "only sealed records are applied");
        self.position = done.next;
        if !done.header.is_empty() {
            self.position_own = done.own.clone();
        }
    }

    /// Moves the position back: what was applied early from `from` on may be lost, and is written
    /// again.
    pub(crate) fn land_again_from(&mut self, from: LogPosition) {
        assert!(
            self.flushed_lsn < from.lsn && from.lsn <= self.position.lsn,
            "only unflushed records move"
        );
        self.position = from;
    }

    /// Records that everything up to a record is durable.
    pub(crate) fn flushed_to(&mut self, lsn: u64) {
        assert!(lsn >= self.flushed_lsn, "the durable position never decreases");
        assert!(lsn < self.end.lsn, "only sealed records are durable");
        self.flushed_lsn = lsn;
    }

    /// Returns the last record that is known to be durable, with all earlier ones.
    pub(crate) fn flushed_lsn(&self) -> u64 {
        self.flushed_lsn
    }

    /// Returns whether everything sealed is durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.flushed_lsn + 1 == self.end.lsn
    }

    /// Returns whether the log ends where it did at the previous call.
    pub(crate) fn has_rested(&mut self) -> bool {
        let lsn = self.end.lsn;
        self.rested_at_lsn.replace(lsn) == Some(lsn)
    }

    /// Returns the bytes of log since the last checkpoint.
    pub(crate) fn bytes(&self) -> u64 {
        self.since_checkpoint.bytes
    }

    /// Returns the segments that recovery would read.
    pub(crate) fn segments(&self) -> &BTreeSet<u32> {
        &self.since_checkpoint.segments
    }

    /// Records that a checkpoint of the state at the position is captured; returns what recovery
    /// would have read before. The segment in which the position is stays, and those for which
    /// `stays` returns true.
    pub(crate) fn checkpoint(&mut self, stays: impl Fn(u32) -> bool) -> Since {
        let before = self.since_checkpoint.clone();
        let begin = [self.position.segment, self.position.next_segment];
        self.since_checkpoint.bytes = 0;
        let segments = &mut self.since_checkpoint.segments;
        segments.retain(|segment| begin.contains(segment) || stays(*segment));
        before
    }

    /// Undoes that: the checkpoint failed, and the log has continued meanwhile.
    pub(crate) fn undo_checkpoint(&mut self, before: Since) {
        self.since_checkpoint.bytes += before.bytes;
        self.since_checkpoint.segments.extend(before.segments);
    }

    /// Returns what was written since the store was opened, except by checkpoints.
    pub(crate) fn written(&self) -> WrittenBytes {
        self.written
    }

    /// Counts data written by hosts.
    pub(crate) fn count_hosts_bytes(&mut self, bytes: u64) {
        self.written.hosts_bytes += bytes;
    }

    /// Counts moved data among what is sealed.
    pub(crate) fn count_moved_bytes(&mut self, bytes: u64) {
        self.written.moved_bytes += bytes;
    }

    /// Returns the number of commits written since the store was opened.
    pub(crate) fn commit_count(&self) -> u64 {
        self.commit_count
    }

    /// Counts a commit.
    pub(crate) fn count_commit(&mut self) {
        self.commit_count += 1;
    }

    /// Returns how often something was written elsewhere because the device refused it.
    pub(crate) fn moved_count(&self) -> u64 {
        self.moved_count
    }

    /// Counts something that is written elsewhere.
    pub(crate) fn count_move(&mut self) {
        self.moved_count += 1;
    }
}
