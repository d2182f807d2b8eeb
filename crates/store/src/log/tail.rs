//! The tail of the log: how far it is applied, how far it is durable, where the next record goes,
//! and what a recovery of this moment would read.
//!
//! ```text
//!  checkpoint ──── applied ──── position ──── sealed, not applied ──── end: the next record
//! ```
//!
//! Invariants, each held by an assertion:
//! 1. LSNs are contiguous: a record is sealed at the [`end`](Tail::end), and the one behind it has
//!    the next LSN; so are those that are applied, each at the [`position`](Tail::position).
//! 2. `position <= end`, and `flushed_lsn < end`, by their LSNs.
//! 3. All of these only move on. The end goes back to a record that the device has refused, which
//!    is sealed anew from there on, and the position to one that was applied early and that a
//!    failed flush may have lost: neither behind what is durable.
//! 4. A segment that recovery would read is not free: so none that is opened is one of them.

use std::collections::BTreeSet;
use std::sync::Arc;

use block::BLOCK_BYTES;
use format::{Geometry, LogPosition, Seal, record_places};

use segments::Shared;

use crate::WrittenBytes;
use crate::chunks::medium::Medium;
use crate::log::in_flight::InFlight;

/// See the module.
pub(crate) struct Tail {
    epoch: u64,
    geometry: Geometry,
    /// Which knows the columns of each segment.
    disk: Shared,
    /// The segment that the log is to leave, if it ends there; 0 is none.
    left_segment: u32,
    /// Where the first record is, or will be, that is not applied yet.
    position: LogPosition,
    /// Where the next record will be.
    end: LogPosition,
    /// Header and entries of the records before these two: the next record has a copy.
    position_own: Arc<[u8]>,
    end_own: Arc<[u8]>,
    /// Whether the last record has entries: see `quiet`.
    ends_with_entries: bool,
    /// Where the log ended at the last turn of maintenance that found nothing else to do.
    rested_at_lsn: Option<u64>,
    /// The last record that is known to be durable, with all before it.
    flushed_lsn: u64,
    since_checkpoint: Since,
    written: WrittenBytes,
    commit_count: u64,
    /// How often something went elsewhere because the device refused to write.
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
    /// One that begins at a position.
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

    /// Records are of this epoch from here on.
    pub(crate) fn begin_epoch(&mut self, epoch: u64) {
        assert!(epoch > self.epoch, "epochs only grow");
        self.epoch = epoch;
    }

    /// The log is on this medium from here on, which says the same of its segments.
    pub(crate) fn go_on(&mut self, disk: &Shared) {
        self.disk = disk.clone();
    }

    /// Recovery has applied the record before `position`, of so many rows of its segment; `own` is
    /// what the next record has a copy of.
    pub(crate) fn recovered(&mut self, position: LogPosition, own: Arc<[u8]>, rows: u32) {
        assert_eq!(position.lsn, self.position.lsn + 1, "recovery follows the log");
        self.position = position;
        self.end = position;
        (self.position_own, self.end_own) = (own.clone(), own);
        self.ends_with_entries = true;
        self.flushed_lsn = position.lsn - 1;
        self.since_checkpoint.bytes += self.bytes_of(position.segment, rows);
    }

    /// The last record that recovery has applied has another seal, and the next one another copy.
    pub(crate) fn sealed_again(&mut self, seal: Seal, own: Arc<[u8]>) {
        assert_eq!(self.position, self.end, "nothing was written yet");
        (self.position.previous, self.end.previous) = (seal, seal);
        (self.position_own, self.end_own) = (own.clone(), own);
    }

    /// What a record is stamped with: the epoch, and the last record that is durable.
    pub(crate) fn stamp(&self) -> (u64, u64) {
        (self.epoch, self.flushed_lsn)
    }

    /// The epoch of records that are sealed now.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Where the first record is, or will be, that is not applied yet.
    pub(crate) fn position(&self) -> LogPosition {
        self.position
    }

    /// Header and entries of the record before the position.
    pub(crate) fn position_own(&self) -> &Arc<[u8]> {
        &self.position_own
    }

    /// Where the next record will be.
    pub(crate) fn end(&self) -> LogPosition {
        self.end
    }

    /// Header and entries of the last record.
    pub(crate) fn end_own(&self) -> &Arc<[u8]> {
        &self.end_own
    }

    /// Whether the last record has entries.
    pub(crate) fn ends_with_entries(&self) -> bool {
        self.ends_with_entries
    }

    /// Rows of each segment.
    pub(crate) fn segment_rows(&self) -> u32 {
        self.geometry.rows()
    }

    /// How much of the log a whole segment has room for.
    pub(crate) fn segment_bytes(&self) -> u64 {
        self.geometry.segment_bytes()
    }

    /// Columns of the segment in which the log ends.
    pub(crate) fn columns(&self) -> u8 {
        self.columns_of(self.end.segment)
    }

    /// Columns of a segment of the log.
    pub(crate) fn columns_of(&self, segment: u32) -> u8 {
        self.disk.columns(segment).unwrap_or(self.geometry.columns)
    }

    /// Rows that are left of the segment in which the log ends; none, if it is to leave that.
    pub(crate) fn segment_rest_rows(&self) -> u32 {
        if self.is_left() { 0 } else { self.segment_rows() - self.end.block }
    }

    /// The log is to go on in the next segment, although there is room in the one where it ends.
    pub(crate) fn leave_segment(&mut self) {
        self.left_segment = self.end.segment;
    }

    /// Whether it is to leave the segment in which it ends.
    pub(crate) fn is_left(&self) -> bool {
        self.left_segment == self.end.segment
    }

    /// How many blocks a record can have that is to fit what is left of the segment.
    pub(crate) fn segment_rest_blocks(&self) -> u32 {
        record_places::blocks_that_fit(self.columns().into(), self.segment_rest_rows())
    }

    fn bytes_of(&self, segment: u32, rows: u32) -> u64 {
        u64::from(rows) * u64::from(self.columns_of(segment)) * BLOCK_BYTES
    }

    /// The log goes on behind a record that was sealed.
    pub(crate) fn sealed(&mut self, sealed: &InFlight) {
        assert_eq!(sealed.at.lsn, self.end.lsn, "a record follows the one before it");
        assert!(sealed.next.block <= self.segment_rows(), "no record crosses a segment");
        let bytes = self.bytes_of(sealed.at.segment, sealed.rows());
        self.since_checkpoint.bytes += bytes;
        self.written.log_bytes += bytes;
        self.end = sealed.next;
        if !sealed.header.is_empty() {
            assert_eq!(sealed.next.lsn, sealed.at.lsn + 1, "each record has an LSN of its own");
            self.end_own = sealed.own.clone();
            self.ends_with_entries = !sealed.record.entries.is_empty();
        }
    }

    /// What was sealed from `from` on was refused, and is sealed anew.
    pub(crate) fn seal_again_from(&mut self, from: LogPosition) {
        assert!(self.position.lsn <= from.lsn && from.lsn <= self.end.lsn, "it is not applied");
        assert!(from.lsn > self.flushed_lsn, "what is durable stays where it is");
        self.end = from;
    }

    /// The log goes on in the segment that was to follow, and then in one that was opened for it.
    pub(crate) fn enter_next_segment(&mut self, opened: u32) {
        let segment = self.end.next_segment;
        self.end = LogPosition { segment, block: 0, next_segment: opened, ..self.end };
        self.check_opened(opened);
        self.since_checkpoint.segments.extend([segment, opened]);
    }

    /// Holds invariant 4 where a free segment was opened for the log.
    pub(crate) fn check_opened(&self, opened: u32) {
        let is_read = self.segments().contains(&opened);
        assert!(!is_read, "segment {opened} was free, and recovery would read it");
    }

    /// Recovery would read this segment: whether that was not known.
    pub(crate) fn note_segment(&mut self, segment: u32) -> bool {
        self.since_checkpoint.segments.insert(segment)
    }

    /// A record that was sealed is applied.
    pub(crate) fn applied(&mut self, done: &InFlight) {
        assert_eq!(done.at.lsn, self.position.lsn, "records are applied in the order of the log");
        assert!(done.next.lsn <= self.end.lsn, "what is applied was sealed");
        self.position = done.next;
        if !done.header.is_empty() {
            self.position_own = done.own.clone();
        }
    }

    /// What was applied early from `from` on may be lost: it is sent, and lands, once more.
    pub(crate) fn land_again_from(&mut self, from: LogPosition) {
        assert!(self.flushed_lsn < from.lsn && from.lsn <= self.position.lsn, "durable is durable");
        self.position = from;
    }

    /// All up to a record is durable.
    pub(crate) fn flushed_to(&mut self, lsn: u64) {
        assert!(lsn >= self.flushed_lsn, "what was durable stays so");
        assert!(lsn < self.end.lsn, "what is durable was sealed");
        self.flushed_lsn = lsn;
    }

    /// The last record that is known to be durable, with all before it.
    pub(crate) fn flushed_lsn(&self) -> u64 {
        self.flushed_lsn
    }

    /// Whether all that was sealed is durable.
    pub(crate) fn is_durable(&self) -> bool {
        self.flushed_lsn + 1 == self.end.lsn
    }

    /// Whether the log ends where it did when this was asked last.
    pub(crate) fn has_rested(&mut self) -> bool {
        let lsn = self.end.lsn;
        self.rested_at_lsn.replace(lsn) == Some(lsn)
    }

    /// Bytes of log since the last checkpoint.
    pub(crate) fn bytes(&self) -> u64 {
        self.since_checkpoint.bytes
    }

    /// Segments that recovery would read.
    pub(crate) fn segments(&self) -> &BTreeSet<u32> {
        &self.since_checkpoint.segments
    }

    /// A checkpoint of the state at the position is captured: what recovery would have read before.
    /// Of the segments those stay in which it begins, and those that `stays` says.
    pub(crate) fn checkpoint(&mut self, stays: impl Fn(u32) -> bool) -> Since {
        let before = self.since_checkpoint.clone();
        let begin = [self.position.segment, self.position.next_segment];
        self.since_checkpoint.bytes = 0;
        let segments = &mut self.since_checkpoint.segments;
        segments.retain(|segment| begin.contains(segment) || stays(*segment));
        before
    }

    /// That checkpoint came to nothing, and the log has gone on meanwhile.
    pub(crate) fn undo_checkpoint(&mut self, before: Since) {
        self.since_checkpoint.bytes += before.bytes;
        self.since_checkpoint.segments.extend(before.segments);
    }

    /// What was written since the store was opened, but for checkpoints.
    pub(crate) fn written(&self) -> WrittenBytes {
        self.written
    }

    /// Hosts have written so much.
    pub(crate) fn count_hosts_bytes(&mut self, bytes: u64) {
        self.written.hosts_bytes += bytes;
    }

    /// So much of what is sealed was moved.
    pub(crate) fn count_moved_bytes(&mut self, bytes: u64) {
        self.written.moved_bytes += bytes;
    }

    /// Commits that were written since the store was opened.
    pub(crate) fn commit_count(&self) -> u64 {
        self.commit_count
    }

    /// A commit was written.
    pub(crate) fn count_commit(&mut self) {
        self.commit_count += 1;
    }

    /// How often something went elsewhere because the device refused to write.
    pub(crate) fn moved_count(&self) -> u64 {
        self.moved_count
    }

    /// Something goes elsewhere.
    pub(crate) fn count_move(&mut self) {
        self.moved_count += 1;
    }
}
