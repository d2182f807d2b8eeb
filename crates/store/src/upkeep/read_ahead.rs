//! Reads of the segment that is emptied next, which go on while the thread does something else.

use std::sync::Arc;

use block::FrameMut;
use format::Place;

use crate::chunks::medium::Medium;
use crate::chunks::reads::Reads;

/// Pieces of a segment that may be under way at once; more wait.
const SIDE_BY_SIDE: u32 = 16;

/// A thread's way to have a segment read while it moves another. Must stay on the thread that uses
/// it first, and belongs to one store.
///
/// One segment is read by it at a time. Where the medium has no channel, as in the simulator, the
/// thread waits for each read.
#[derive(Default)]
pub struct ReadAhead {
    reads: Way,
    /// Who reads by it now: a clone of this is theirs.
    whose: Arc<()>,
}

#[derive(Default)]
enum Way {
    #[default]
    Unknown,
    None,
    Found(Reads),
}

/// That somebody was the last to claim a [`ReadAhead`].
pub(crate) struct Claim(Arc<()>);

impl ReadAhead {
    /// One that always waits, for callers that read little.
    pub(crate) fn none() -> Self {
        Self { reads: Way::None, whose: Arc::default() }
    }

    /// Lets somebody read by it from now on, and forgets what others have not taken; `None` if the
    /// medium can't read while the thread does something else.
    pub(crate) fn claim(&mut self, medium: &Medium) -> Option<Claim> {
        if matches!(self.reads, Way::Unknown) {
            self.reads = Reads::of(medium, SIDE_BY_SIDE).map_or(Way::None, Way::Found);
        }
        let Way::Found(reads) = &mut self.reads else { return None };
        reads.forget();
        self.whose = Arc::default();
        Some(Claim(self.whose.clone()))
    }

    /// The reads of who claimed it last, and nobody else's.
    fn reads_of(&mut self, claim: &Claim) -> Option<&mut Reads> {
        match &mut self.reads {
            Way::Found(reads) if Arc::ptr_eq(&claim.0, &self.whose) => Some(reads),
            _ => None,
        }
    }

    /// Queues a read of whole blocks inside of a segment; the number of it. `None`: the claim
    /// is of another thread, or somebody claimed it since.
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

    /// Waits for the end of a read; `None` if it has failed, or the claim is no longer good.
    pub(crate) fn end(&mut self, claim: &Claim, number: u64) -> Option<Vec<FrameMut>> {
        self.reads_of(claim)?.end(number)
    }
}
