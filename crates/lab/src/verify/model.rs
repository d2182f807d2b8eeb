//! What every block must contain.

use std::collections::BTreeMap;

use super::operation::{Action, BLOCK_BYTES, Operation, REGION_BLOCKS};
use crate::random::Random;

/// Marks a block that the load has written.
const MAGIC: [u8; 8] = *b"holdlab1";

/// The content of a block: zeros, or what an operation first wrote to a block. Copies preserve it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Content {
    /// The operation that wrote it; 0 for zeros.
    pub operation: u64,
    /// The block to which it was written.
    pub block: u64,
}

/// The result of an operation without a response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every block has the new content.
    Done,
    /// Every block has the old content.
    NotDone,
    /// Some have the new one (true), in the order of the blocks. Only possible for a write.
    Part(Vec<bool>),
}

/// The state of the span.
#[derive(Debug)]
pub struct Model {
    seed: u64,
    blocks: Vec<Content>,
    locked: Vec<bool>,
    pending: BTreeMap<u64, Operation>,
}

impl Model {
    /// Creates a span of zeros.
    pub fn new(seed: u64, span_bytes: u64) -> Self {
        let blocks = span_bytes / BLOCK_BYTES;
        Self {
            seed,
            blocks: vec![Content::default(); blocks as usize],
            locked: vec![false; blocks.div_ceil(REGION_BLOCKS) as usize],
            pending: BTreeMap::new(),
        }
    }

    /// Returns the number of blocks of the span.
    pub fn block_count(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// Returns what a block must contain, if nothing is in flight there.
    pub fn content(&self, block: u64) -> Content {
        self.blocks[block as usize]
    }

    /// Renders the bytes of a content.
    pub fn render(&self, content: Content, bytes: &mut [u8]) {
        bytes.fill(0);
        if content.operation == 0 {
            return;
        }
        let key = self.seed ^ content.operation.rotate_left(32) ^ content.block.rotate_left(8);
        let noise = bytes.len() / 2;
        Random::new(key).fill(&mut bytes[..noise]);
        bytes[noise..].fill(content.operation as u8 | 1);
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&self.seed.to_le_bytes());
        bytes[16..24].copy_from_slice(&content.operation.to_le_bytes());
        bytes[24..32].copy_from_slice(&content.block.to_le_bytes());
    }

    /// Returns whether regions are free for an operation or a read.
    pub fn are_free(&self, regions: &[u64]) -> bool {
        regions.iter().all(|region| self.locked.get(*region as usize) == Some(&false))
    }

    /// Reserves regions, or frees them.
    pub fn lock(&mut self, regions: &[u64], locked: bool) {
        for region in regions {
            if let Some(lock) = self.locked.get_mut(*region as usize) {
                *lock = locked;
            }
        }
    }

    /// Records that an operation is about to be sent.
    pub fn start(&mut self, operation: Operation) {
        self.lock(&operation.action.regions(), true);
        self.pending.insert(operation.id, operation);
    }

    /// Records the result of an operation.
    pub fn finish(&mut self, id: u64, outcome: &Outcome) -> Result<(), String> {
        let operation =
            self.pending.remove(&id).ok_or_else(|| format!("operation {id} is not in flight"))?;
        for (index, (block, content)) in self.effects(&operation).into_iter().enumerate() {
            let done = match outcome {
                Outcome::Done => true,
                Outcome::NotDone => false,
                Outcome::Part(parts) => parts.get(index).copied().unwrap_or(false),
            };
            if done {
                self.blocks[block as usize] = content;
            }
        }
        self.lock(&operation.action.regions(), false);
        Ok(())
    }

    /// Returns operations that were sent and not finished.
    pub fn pending(&self) -> Vec<Operation> {
        self.pending.values().copied().collect()
    }

    /// Returns what an operation in flight writes where.
    pub fn effects(&self, operation: &Operation) -> Vec<(u64, Content)> {
        let written = operation.action.written();
        let start = written.start;
        written
            .map(|block| {
                let content = match operation.action {
                    Action::Write { .. } | Action::Compare { .. } => {
                        Content { operation: operation.id, block }
                    }
                    Action::Zero { .. } => Content::default(),
                    Action::Copy { source, .. } => self.content(source + (block - start)),
                };
                (block, content)
            })
            .collect()
    }

    /// Returns the result of an operation without a response, by what its blocks contain now:
    /// `found` has their bytes in order. An error if a block has neither the old nor the new
    /// content, or if an atomic operation happened in part.
    pub fn settle(&self, operation: &Operation, found: &[u8]) -> Result<Outcome, String> {
        let mut expected = vec![0; BLOCK_BYTES as usize];
        let mut parts = Vec::new();
        let (mut old_seen, mut new_seen) = (None, None);
        let bytes = found.chunks_exact(BLOCK_BYTES as usize);
        for ((block, new), found) in self.effects(operation).into_iter().zip(bytes) {
            let old = self.content(block);
            self.render(new, &mut expected);
            let holds_new = expected == found;
            self.render(old, &mut expected);
            let holds_old = expected == found;
            match (holds_old, holds_new) {
                (false, false) => {
                    return Err(format!(
                        "operation {} ({}): block {block} holds {}, neither {old:?} nor {new:?}",
                        operation.id,
                        operation.action,
                        describe(found)
                    ));
                }
                (true, false) => old_seen = Some(block),
                (false, true) => new_seen = Some(block),
                (true, true) => {}
            }
            parts.push(holds_new);
        }
        match (old_seen, new_seen) {
            (Some(old), Some(new)) if operation.action.is_atomic() => Err(format!(
                "operation {} ({}) happened in part: block {old} is old, block {new} is new",
                operation.id, operation.action
            )),
            (Some(_), Some(_)) => Ok(Outcome::Part(parts)),
            (Some(_), None) => Ok(Outcome::NotDone),
            _ => Ok(Outcome::Done),
        }
    }

    /// Compares blocks from `first` on with what they must contain.
    pub fn check(&self, first: u64, found: &[u8]) -> Result<(), String> {
        let mut expected = vec![0; BLOCK_BYTES as usize];
        for (block, found) in (first..).zip(found.chunks_exact(BLOCK_BYTES as usize)) {
            let content = self.content(block);
            self.render(content, &mut expected);
            if expected != found {
                return Err(format!(
                    "block {block} must hold {content:?} and holds {}",
                    describe(found)
                ));
            }
        }
        Ok(())
    }
}

/// Returns what a block seems to contain, for messages.
fn describe(block: &[u8]) -> String {
    let field = |at: usize| -> Option<u64> {
        Some(u64::from_le_bytes(block.get(at..at + 8)?.try_into().ok()?))
    };
    if block.iter().all(|byte| *byte == 0) {
        return String::from("zeros");
    }
    match (block.starts_with(&MAGIC), field(16), field(24)) {
        (true, Some(operation), Some(origin)) => {
            format!("the head of what operation {operation} wrote to block {origin}")
        }
        _ => format!("foreign bytes {:02x?}", &block[..block.len().min(16)]),
    }
}
