//! Reads of the segment that is emptied next, in parallel with other work of the thread.

use std::sync::Arc;

use block::FrameMut;
use format::Place;

use crate::chunks::medium::Medium;
use crate::chunks::reads::Reads;

/// How many reads may be in flight at once; more wait.
const SIDE_BY_SIDE: u32 = 16;

/// Reads a segment for a thread while it moves another. It must stay on the thread that uses it
/// first, and belongs to one store.
///
/// It reads one segment at a time. If the medium has no channel, as in the simulator, the thread
/// waits for each read.
#[derive(Default)]
pub struct ReadAhead {
    reads: Way,
    /// The current user, who has a clone of this.
    whose: Arc<()>,
}

#[derive(Default)]
enum Way {
    #[default]
    Unknown,
    None,
    Found(Reads),
}

/// Identifies the last user that has claimed a [`ReadAhead`].
pub(crate) struct Claim(Arc<()>);

impl ReadAhead {
    /// One that always waits, for callers that read little.
    pub(crate) fn none() -> Self {
        Self { reads: Way::None, whose: Arc::default() }
    }

    /// Gives it to another user, and drops reads that the previous one has not taken; `None` if the
    /// medium can't read in parallel.
    pub(crate) fn claim(&mut self, medium: &Medium) -> Option<Claim> {
        if matches!(self.reads, Way::Unknown) {
            self.reads = Reads::of(medium, SIDE_BY_SIDE).map_or(Way::None, Way::Found);
        }
        let Way::Found(reads) = &mut self.reads else { return None };
        reads.forget();
        self.whose = Arc::default();
        Some(Claim(self.whose.clone()))
    }

    /// Returns the reads, if this was the last to claim it.
    fn reads_of(&mut self, claim: &Claim) -> Option<&mut Reads> {
        match &mut self.reads {
            Way::Found(reads) if Arc::ptr_eq(&claim.0, &self.whose) => Some(reads),
            _ => None,
        }
    }

    /// Queues a read of whole blocks within a segment; returns its number. `None`: the claim is of
    /// another thread, or not the last one.
    pub(crate) fn queue(
        &mut self,
        claim: &Claim,
        place: Place,
        frames: Vec<FrameMut>,
    ) -> Option<u64> {
        Some(self.reads_of(claim)?.queue(place, frames))
    }

    /// Starts what was queued.
    pub(crate) fn start(&mut self, claim: &Claim) {
        if let Some(reads) = self.reads_of(claim) {
            reads.start();
        }
    }

    /// Waits for the end of a read; `None` if it has failed, or the claim is no longer valid.
    pub(crate) fn end(&mut self, claim: &Claim, number: u64) -> Option<Vec<FrameMut>> {
        self.reads_of(claim)?.end(number)
    }
}
