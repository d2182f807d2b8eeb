//! The supply of free segments: what was done to free some, and where that is useless for now.
//!
//! Invariants:
//! 1. The *work* ([`Supply::work_bytes`]) only increases, and the work at which a job was last
//!    admitted is never higher.
//! 2. If nothing can be reclaimed for a need, nothing can for one for which less is done; and a job
//!    with one need counts as admitted also for needs for which more is done.

use std::collections::BTreeSet;

use crate::space::need::Need;

/// The state in which reclaim found nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exhausted {
    /// The live bytes in the log's segments.
    pub(crate) live_bytes: u64,
    /// The bytes of log written since the start, and of changed metadata that waited for a
    /// checkpoint: what was overwritten since may be worth another try.
    pub(crate) log_bytes: u64,
}

/// The supply; see the module.
#[derive(Default)]
pub(crate) struct Supply {
    /// What was done to free space: see `starved`.
    work_bytes: u64,
    /// For each need, the work done when a waiting job last joined.
    fed_at_work_bytes: [u64; Need::ALL.len()],
    /// For each need, the state in which reclaim found nothing.
    exhausted_at: [Option<Exhausted>; Need::ALL.len()],
    /// Blocks examined to distinguish replacements from new data, since the start.
    needs_looked_at: u64,
    /// Reclaim pauses until this many bytes of log were written, or at most this many bytes are
    /// live.
    reclaim_rest: Option<(u64, u64)>,
    /// Segments that could not be emptied, because live data in them is damaged.
    unreclaimable: BTreeSet<u32>,
    /// Segments of metadata that are being emptied: no checkpoint fills their holes.
    compacted: BTreeSet<u32>,
    /// Compaction has gained nothing: it pauses until this many bytes of log were written.
    compaction_rest: Option<u64>,
}

impl Supply {
    /// Returns the work done to free space.
    pub(crate) fn work_bytes(&self) -> u64 {
        self.work_bytes
    }

    /// Adds to it.
    pub(crate) fn count_work(&mut self, bytes: u64) {
        self.work_bytes += bytes;
    }

    /// Records that a job joined that had waited with this need.
    pub(crate) fn fed(&mut self, need: Need) {
        self.fed_at_work_bytes[need as usize..].fill(self.work_bytes);
    }

    /// Returns the work done since such a job joined.
    pub(crate) fn work_bytes_since_fed(&self, need: Need) -> u64 {
        let fed_at = self.fed_at_work_bytes[need as usize];
        assert!(fed_at <= self.work_bytes, "a job was admitted by work that was not done yet");
        self.work_bytes - fed_at
    }

    /// Returns the state in which nothing could be reclaimed for this need, if there was one.
    pub(crate) fn exhausted(&self, need: Need) -> Option<Exhausted> {
        self.exhausted_at[need as usize]
    }

    /// Records that nothing can be reclaimed for this need.
    pub(crate) fn note_exhausted(&mut self, need: Need, exhausted: Exhausted) {
        self.exhausted_at[..=need as usize].fill(Some(exhausted));
    }

    /// Returns the blocks examined to distinguish replacements from new data.
    pub(crate) fn needs_looked_at(&self) -> u64 {
        self.needs_looked_at
    }

    /// Counts one more.
    pub(crate) fn look_at_need(&mut self) {
        self.needs_looked_at += 1;
    }

    /// Pauses reclaim, which has found nothing worth moving, until this many bytes of log were
    /// written since the start, or no more than this many are live.
    pub(crate) fn rest_from_reclaim(&mut self, log_bytes: u64, live_bytes: u64) {
        self.reclaim_rest = Some((log_bytes, live_bytes));
    }

    /// Returns whether it pauses at these values.
    pub(crate) fn does_reclaim_rest(&self, log_bytes: u64, live_bytes: u64) -> bool {
        self.reclaim_rest.is_some_and(|(until, least)| log_bytes < until && live_bytes > least)
    }

    /// Returns whether a segment could not be emptied.
    pub(crate) fn is_unreclaimable(&self, segment: u32) -> bool {
        self.unreclaimable.contains(&segment)
    }

    /// Marks a segment as such until it is freed.
    pub(crate) fn leave_alone(&mut self, segment: u32) {
        self.unreclaimable.insert(segment);
    }

    /// Removes the mark of a freed segment.
    pub(crate) fn freed(&mut self, segment: u32) {
        self.unreclaimable.remove(&segment);
    }

    /// Returns the segments of metadata that are being emptied.
    pub(crate) fn compacted(&self) -> &BTreeSet<u32> {
        &self.compacted
    }

    /// Sets them.
    pub(crate) fn begin_compaction(&mut self, segments: BTreeSet<u32>) {
        self.compacted = segments;
    }

    /// Clears them; returns those that were being emptied and were not given up.
    pub(crate) fn end_compaction(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.compacted)
    }

    /// Pauses compaction until this many bytes of log were written since the start.
    pub(crate) fn rest_from_compaction(&mut self, log_bytes: u64) {
        self.compaction_rest = Some(log_bytes);
    }

    /// Returns whether it pauses at this value.
    pub(crate) fn does_compaction_rest(&self, log_bytes: u64) -> bool {
        self.compaction_rest.is_some_and(|until| log_bytes < until)
    }
}
