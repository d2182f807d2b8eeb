//! What the log has changed in one volume, as runs of blocks that don't overlap.

use std::collections::BTreeMap;
use std::sync::Arc;

use format::{ChunkId, MapEntry};

/// The content of a run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value {
    /// All alike.
    Same(MapEntry),
    /// Consecutive chunks.
    Run(ChunkId),
    /// The content of a checkpoint's map, from this block on.
    Map { map: usize, start: u64 },
    /// Unknown.
    Unknown,
}

impl Value {
    /// Returns the content from `blocks` further on.
    pub(super) fn advanced(self, blocks: u64) -> Self {
        match self {
            Self::Run(first) => Self::Run(ChunkId(first.0 + blocks)),
            Self::Map { map, start } => Self::Map { map, start: start + blocks },
            alike => alike,
        }
    }
}

/// A run of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) start: u64,
    pub(super) count: u64,
    pub(super) value: Value,
}

/// Runs, by their first block. A clone costs nothing before one of the two changes.
#[derive(Clone, Debug, Default)]
pub(super) struct Extents(Arc<BTreeMap<u64, (u64, Value)>>);

impl Extents {
    /// Sets a run.
    pub(super) fn set(&mut self, start: u64, count: u64, value: Value) {
        if count == 0 {
            return;
        }
        let runs = Arc::make_mut(&mut self.0);
        split(runs, start);
        split(runs, start + count);
        let replaced: Vec<u64> = runs.range(start..start + count).map(|(at, _)| *at).collect();
        for at in replaced {
            runs.remove(&at);
        }
        runs.insert(start, (count, value));
    }

    /// Returns the runs in a range, cut to it; what is in none has the content of `rest` at its own
    /// block.
    pub(super) fn within(&self, start: u64, count: u64, rest: Value) -> Vec<Extent> {
        let end = start + count;
        let mut found = Vec::new();
        let mut at = start;
        let before = self.0.range(..start).next_back();
        for (&first, &(length, value)) in before.into_iter().chain(self.0.range(start..end)) {
            let (from, to) = (first.max(at), (first + length).min(end));
            if from >= to {
                continue;
            }
            if at < from {
                found.push(Extent { start: at, count: from - at, value: rest.advanced(at) });
            }
            found.push(Extent {
                start: from,
                count: to - from,
                value: value.advanced(from - first),
            });
            at = to;
        }
        if at < end {
            found.push(Extent { start: at, count: end - at, value: rest.advanced(at) });
        }
        found
    }

    /// Returns the first block after all runs.
    pub(super) fn end(&self) -> u64 {
        self.0.last_key_value().map_or(0, |(start, (count, _))| start + count)
    }
}

/// Splits the run that contains `at`.
fn split(runs: &mut BTreeMap<u64, (u64, Value)>, at: u64) {
    let Some((&start, &(count, value))) = runs.range(..at).next_back() else { return };
    if start + count > at {
        runs.insert(start, (at - start, value));
        runs.insert(at, (start + count - at, value.advanced(at - start)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with a model that has a value for each block.
    #[test]
    fn runs_hold_the_last_value_set() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (state >> 33) % below
        };
        let rest = Value::Map { map: 0, start: 0 };
        let mut extents = Extents::default();
        let mut model: Vec<Value> = (0..64).map(|at| rest.advanced(at)).collect();
        for round in 0..2000 {
            let start = random(64);
            let count = random(64 - start) + 1;
            let value = match random(3) {
                0 => Value::Same(MapEntry::Zero),
                1 => Value::Run(ChunkId(round * 100)),
                _ => Value::Map { map: 1, start: random(1000) },
            };
            let kept = extents.clone();
            extents.set(start, count, value);
            (0..count).for_each(|at| model[(start + at) as usize] = value.advanced(at));
            let (from, length) = (random(32), random(32) + 1);
            let mut at = from;
            for extent in extents.within(from, length, rest) {
                assert_eq!(extent.start, at);
                for block in 0..extent.count {
                    assert_eq!(extent.value.advanced(block), model[(at + block) as usize]);
                }
                at += extent.count;
            }
            assert_eq!(at, from + length);
            assert!(kept.end() <= 64);
        }
    }
}
