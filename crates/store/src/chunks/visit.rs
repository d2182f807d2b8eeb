//! Walking a whole table: for tools and background passes.

use std::collections::BTreeSet;

use block::FrameMut;
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE};
use format::row::ROW_BYTES;

use crate::chunks::medium::Medium;
use crate::chunks::pages::{PageKey, child_of, parent_of};
use crate::chunks::table::{FREE_ROW, LostPage, Table, rows_of};

impl Table {
    /// Calls `visit_page` for every stored page, and `visit_row` for every used row. Continues
    /// after pages that can't be read, and returns those.
    pub(crate) fn visit(
        &self,
        medium: &Medium,
        visit_page: &mut dyn FnMut(PageRef),
        visit_row: &mut dyn FnMut(u64, &[u8]),
    ) -> Vec<LostPage> {
        let root = *self.root.read();
        let mut above_changed = BTreeSet::new();
        for &(mut key) in &*self.dirty.lock() {
            while key.0 < root.height {
                key = parent_of(key);
                above_changed.insert(key);
            }
        }
        let mut visit = Visit { above_changed, visit_page, visit_row, lost: Vec::new() };
        self.visit_below(medium, (root.height, 0), &mut visit);
        visit.lost
    }

    fn visit_below(&self, medium: &Medium, key: PageKey, visit: &mut Visit<'_>) {
        let found = self.look(medium.into(), key, |found| {
            found.map(|(page, stored)| (FrameMut::from_bytes(page), stored))
        });
        let found = match found {
            Ok(found) => found,
            Err(error) => return visit.lost.push(LostPage { key, rows: rows_of(key), error }),
        };
        if let Some((_, stored)) = &found
            && !stored.is_none()
        {
            (visit.visit_page)(*stored);
        }
        if key.0 == 0 {
            for (index, row) in
                found.iter().flat_map(|(page, _)| page.chunks_exact(ROW_BYTES)).enumerate()
            {
                if row != FREE_ROW {
                    (visit.visit_row)(key.1 * ROWS_PER_PAGE + index as u64, row);
                }
            }
        } else if found.is_some() || visit.above_changed.contains(&key) {
            for index in 0..REFS_PER_DIRECTORY {
                let child = child_of(key, index);
                self.visit_below(medium, child, visit);
            }
        }
    }
}

/// The callbacks of a walk.
struct Visit<'a> {
    /// Directories above changed pages: those pages are in memory, and the directories need not
    /// refer to them before they are captured.
    above_changed: BTreeSet<PageKey>,
    visit_page: &'a mut dyn FnMut(PageRef),
    visit_row: &'a mut dyn FnMut(u64, &[u8]),
    lost: Vec<LostPage>,
}
