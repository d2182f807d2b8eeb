//! Inline deduplication: blocks whose content is already stored become references.
//!
//! The front end does this before an edit joins a record. The index returns where a fingerprint was
//! seen; the content of that chunk is read, from the cache or the device, and compared byte for
//! byte. Until the record is applied the chunk is pinned (`State::pins`), so that it can't be freed
//! before it is referenced. If it was freed before it was pinned, the edit is planned again.

use crate::edits::classify::Class;
use crate::edits::edit::Edit;
use crate::edits::put::Candidate;
use crate::engine::Engine;
use crate::fetch::{Content, Fetch};
use crate::operation::{Pending, Then, wait_for_metadata};
use crate::world::view::View;
use crate::{ReadOperation, Started, Token};

impl Engine {
    /// Finds blocks of an edit that need not be stored, and compresses the rest.
    pub(crate) fn reduce(&self, mut edit: Box<Edit>, token: Token) -> Started {
        let world = &self.world;
        edit.classify(&world.medium.keys, |volume| {
            world.map_of(volume).map(|map| map.handling).unwrap_or_default()
        });
        let asked = std::mem::take(&mut edit.asked);
        let view = View::asking(world, &asked);
        let candidates = candidates(view, &edit);
        let mut fetch = Fetch::default();
        fetch.locate_chunks(view, candidates.iter().map(|candidate| candidate.chunk));
        if asked.is_waiting() {
            return wait_for_metadata(asked, world, Then::Reduce(edit));
        }
        edit.asked = asked;
        if candidates.is_empty() {
            return self.enter(edit, token);
        }
        // Under load the device is needed for other requests; the background pass finds these
        // blocks.
        if fetch.wants_reads() && self.writer.lock().queues.is_pressed() {
            fetch.drop_reads();
        }
        let reads = fetch.take_reads();
        if reads.is_empty() {
            return self.compared(edit, &candidates, &fetch, token);
        }
        let pending = Pending::Compare { fetch, candidates, edit };
        Started::Read(Box::new(ReadOperation { reads, pending }))
    }

    /// Continues with the content of the candidates, as far as it could be read.
    pub(crate) fn compared(
        &self,
        mut edit: Box<Edit>,
        candidates: &[Candidate],
        fetch: &Fetch,
        token: Token,
    ) -> Started {
        let mut found = candidates.iter().zip(&fetch.blocks).peekable();
        for (step, put) in edit.puts_mut() {
            while let Some((candidate, fetched)) = found.next_if(|(c, _)| c.step == step) {
                let Content::Ready(held) = &fetched.content else { continue };
                let Some(class) = put.classes.get_mut(candidate.block) else { continue };
                if let Some(sum) = class.fingerprint()
                    && put.frames[candidate.block] == *held
                {
                    *class = Class::Known(sum, candidate.chunk);
                }
            }
        }
        self.enter(edit, token)
    }

    /// Decides how the rest is stored, and submits the edit.
    fn enter(&self, mut edit: Box<Edit>, token: Token) -> Started {
        for (_, put) in edit.puts_mut() {
            if put.packs.is_empty() {
                put.pack();
            }
        }
        self.submit_edit(edit, token)
    }
}

/// Returns the blocks of an edit whose fingerprint was seen, and where.
fn candidates(world: View<'_>, edit: &Edit) -> Vec<Candidate> {
    let mut candidates = Vec::new();
    for (step, put) in edit.puts() {
        // Packed data was looked up before.
        if put.handling.unshared || !put.packs.is_empty() {
            continue;
        }
        for (block, class) in put.classes.iter().enumerate() {
            let chunk = class.fingerprint().and_then(|sum| world.find_chunk(sum));
            candidates.extend(chunk.map(|chunk| Candidate { step, block, chunk }));
        }
    }
    candidates
}
