//! The supply of free segments: what was done to win some, and where that is of no use for now.
//!
//! Invariants:
//! 1. The *work* ([`Supply::work_bytes`]) only grows, and no job was fed after more of it than was
//!    done.
//! 2. Where nothing can be brought back for a need, nothing can for one for which less is done; and
//!    what feeds one feeds those for which more is done.

use std::collections::BTreeSet;

use crate::space::need::Need;

/// When reclaim found nothing to bring back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exhausted {
    /// How much was live in the log's segments.
    pub(crate) live_bytes: u64,
    /// How much log was written since the start, and changed metadata waited for a checkpoint: what
    /// was written over since may be worth a look.
    pub(crate) log_bytes: u64,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Supply {
    /// What was done to win space: see `starved`.
    work_bytes: u64,
    /// How much of that when a job that had waited joined the last time, for each need.
    fed_at_work_bytes: [u64; Need::ALL.len()],
    /// When reclaim found nothing to bring back, for each need.
    exhausted_at: [Option<Exhausted>; Need::ALL.len()],
    /// Blocks that were looked at to tell replacements from new data, since the start.
    needs_looked_at: u64,
    /// Reclaim rests until so many bytes of log were written, or so few bytes are live.
    reclaim_rest: Option<(u64, u64)>,
    /// Segments that could not be emptied: what is live in them is damaged.
    unreclaimable: BTreeSet<u32>,
    /// Segments of metadata that are being emptied: no checkpoint fills their holes.
    compacted: BTreeSet<u32>,
    /// Compaction has gained nothing: it rests until so many bytes of log were written.
    compaction_rest: Option<u64>,
}

impl Supply {
    /// What was done to win space.
    pub(crate) fn work_bytes(&self) -> u64 {
        self.work_bytes
    }

    /// So much more was.
    pub(crate) fn count_work(&mut self, bytes: u64) {
        self.work_bytes += bytes;
    }

    /// A job has joined that had waited for this.
    pub(crate) fn fed(&mut self, need: Need) {
        self.fed_at_work_bytes[need as usize..].fill(self.work_bytes);
    }

    /// What was done since one was fed.
    pub(crate) fn work_bytes_since_fed(&self, need: Need) -> u64 {
        let fed_at = self.fed_at_work_bytes[need as usize];
        assert!(fed_at <= self.work_bytes, "work that was not done yet has fed somebody");
        self.work_bytes - fed_at
    }

    /// When nothing could be brought back for this, if that was so.
    pub(crate) fn exhausted(&self, need: Need) -> Option<Exhausted> {
        self.exhausted_at[need as usize]
    }

    /// Nothing can be brought back for this.
    pub(crate) fn note_exhausted(&mut self, need: Need, exhausted: Exhausted) {
        self.exhausted_at[..=need as usize].fill(Some(exhausted));
    }

    /// Blocks that were looked at to tell replacements from new data.
    pub(crate) fn needs_looked_at(&self) -> u64 {
        self.needs_looked_at
    }

    /// One more is.
    pub(crate) fn look_at_need(&mut self) {
        self.needs_looked_at += 1;
    }

    /// Reclaim has found nothing worth the moving: it rests until so many bytes of log were written
    /// since the start, or no more are live than so many.
    pub(crate) fn rest_from_reclaim(&mut self, log_bytes: u64, live_bytes: u64) {
        self.reclaim_rest = Some((log_bytes, live_bytes));
    }

    /// Whether it rests, now that so many are.
    pub(crate) fn does_reclaim_rest(&self, log_bytes: u64, live_bytes: u64) -> bool {
        self.reclaim_rest.is_some_and(|(until, least)| log_bytes < until && live_bytes > least)
    }

    /// Segments that could not be emptied.
    pub(crate) fn is_unreclaimable(&self, segment: u32) -> bool {
        self.unreclaimable.contains(&segment)
    }

    /// One could not be: it is left alone until it is freed.
    pub(crate) fn leave_alone(&mut self, segment: u32) {
        self.unreclaimable.insert(segment);
    }

    /// One is freed.
    pub(crate) fn freed(&mut self, segment: u32) {
        self.unreclaimable.remove(&segment);
    }

    /// Segments of metadata that are being emptied.
    pub(crate) fn compacted(&self) -> &BTreeSet<u32> {
        &self.compacted
    }

    /// These are, from here on.
    pub(crate) fn begin_compaction(&mut self, segments: BTreeSet<u32>) {
        self.compacted = segments;
    }

    /// None are any more; those that were, unless they were given up.
    pub(crate) fn end_compaction(&mut self) -> BTreeSet<u32> {
        std::mem::take(&mut self.compacted)
    }

    /// Compaction rests until so many bytes of log were written since the start.
    pub(crate) fn rest_from_compaction(&mut self, log_bytes: u64) {
        self.compaction_rest = Some(log_bytes);
    }

    /// Whether it rests, now that so many were.
    pub(crate) fn does_compaction_rest(&self, log_bytes: u64) -> bool {
        self.compaction_rest.is_some_and(|until| log_bytes < until)
    }
}
