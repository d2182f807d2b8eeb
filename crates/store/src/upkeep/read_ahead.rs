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

    /// Whether the medium can read so; looked at once.
    fn is_found(&mut self, medium: &Medium) -> bool {
        if matches!(self.reads, Way::Unknown) {
            self.reads = Reads::of(medium, SIDE_BY_SIDE).map_or(Way::None, Way::Found);
        }
        matches!(self.reads, Way::Found(_))
    }

    /// Lets somebody read by it from now on, and forgets what others have not taken; `None` if the
    /// medium can't read while the thread does something else.
    pub(crate) fn claim(&mut self, medium: &Medium) -> Option<Claim> {
        if !self.is_found(medium) {
            return None;
        }
        if let Way::Found(reads) = &mut self.reads {
            reads.forget();
        }
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

    /// Begins to read whole blocks inside of a segment; the number of that read. `None`: the claim
    /// is of another thread, or somebody claimed it since.
    pub(crate) fn begin(
        &mut self,
        claim: &Claim,
        place: Place,
        frames: Vec<FrameMut>,
    ) -> Option<u64> {
        let reads = self.reads_of(claim)?;
        let number = reads.queue(place, frames);
        reads.start();
        Some(number)
    }

    /// Waits for the end of a read; `None` if it has failed.
    pub(crate) fn end(&mut self, claim: &Claim, number: u64) -> Option<Vec<FrameMut>> {
        self.reads_of(claim)?.end(number)
    }
}
