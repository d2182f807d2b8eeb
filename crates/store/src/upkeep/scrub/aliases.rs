//! Aliases of damaged chunks: what refers to them can't be read either.
//!
//! The rows are examined once, in the order of their ids. Originals are older than their aliases,
//! so the damage of an original is known before its aliases are reached, even if it is an alias
//! itself.

use std::collections::HashMap;

use format::page::ROWS_PER_PAGE;
use format::row::ROW_BYTES;
use format::{ChunkId, ChunkRow};

use super::pages::StoredTree;
use super::{Step, What};
use crate::chunks::pages::FastState;

/// The maximum number of remembered aliases of damaged chunks: 1.5 MiB. References to others are
/// only counted, as one range each.
const ALIASES_MAX: usize = 65_536;

/// The aliases of what is damaged, as far as the rows were examined.
#[derive(Default)]
pub(super) struct Aliases {
    damaged: HashMap<ChunkId, What, FastState>,
    /// The next page of rows; none when all were examined.
    next: Option<u64>,
    /// Pages that may not be on the device yet, in order.
    changed: Vec<u64>,
}

impl Aliases {
    /// Returns the damage because of which an alias can't be read.
    pub(super) fn damage_of(&self, id: ChunkId) -> Option<What> {
        self.damaged.get(&id).copied()
    }
}

impl Step<'_> {
    pub(super) fn begin_aliases(&self) -> Aliases {
        let changed = self.store.world.chunks.changed_pages();
        Aliases { damaged: HashMap::default(), next: Some(0), changed }
    }

    /// Examines further rows, until the end or until the budget is used.
    pub(super) fn aliases(&mut self, aliases: &mut Aliases) {
        let store = self.store;
        let mut tree = StoredTree::new(0, self.checkpointer.superblock().chunks);
        while let Some(from) = aliases.next
            && !self.is_spent()
        {
            let stored = tree.page(self, from);
            let changed = aliases.changed.partition_point(|page| *page < from);
            let changed = aliases.changed.get(changed).copied();
            let number = match (stored.as_ref().map(|(number, _)| *number), changed) {
                (Some(stored), Some(changed)) => stored.min(changed),
                (Some(one), None) | (None, Some(one)) => one,
                (None, None) => {
                    aliases.next = None;
                    return;
                }
            };
            // What is in memory is newer. Changed pages that are not there were written since.
            let page = store.world.chunks.in_memory((0, number));
            let page = page.or_else(|| stored.filter(|(at, _)| *at == number)?.1);
            if let Some(page) = page {
                self.alias_rows(aliases, number, &page[..]);
            }
            aliases.next = Some(number + 1);
        }
    }

    fn alias_rows(&mut self, aliases: &mut Aliases, page: u64, bytes: &[u8]) {
        for (at, raw) in (0..).zip(bytes.chunks_exact(ROW_BYTES)) {
            let Some(original) = ChunkRow::decode(raw).and_then(|row| row.original) else {
                continue;
            };
            let damage = self.scrub.findings.of_chunk(original);
            let Some(what) = damage.or(aliases.damage_of(original)) else { continue };
            if aliases.damaged.len() < ALIASES_MAX {
                aliases.damaged.insert(ChunkId(page * ROWS_PER_PAGE + at), what);
            } else {
                self.scrub.findings.name_no_more(what);
            }
        }
    }
}
