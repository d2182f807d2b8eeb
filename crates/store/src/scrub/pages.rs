//! The tables as they are on the device: directories, rows, and the nodes that rows name.

use block::Frame;
use format::page::{PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, TableRoot};
use format::row::ROW_BYTES;
use format::{NodeId, NodeRow};

use super::{Repair, Step, TableName, What};
use crate::pages::PageKey;

/// A table as the superblock names it. Good for one step: while it is held no checkpoint is made.
pub(super) struct StoredTree {
    table: TableName,
    root: TableRoot,
    /// The directories on the way to the last page, by their level.
    path: Vec<(PageKey, Option<Frame>)>,
}

impl StoredTree {
    pub(super) fn new(table: usize, root: TableRoot) -> Self {
        Self { table: TableName::ALL[table], root, path: Vec::new() }
    }

    /// The first row page from number `from` on that is stored, and its content if that can be
    /// had. Damage on the way is told to `step`.
    pub(super) fn page(
        &mut self,
        step: &mut Step<'_>,
        mut from: u64,
    ) -> Option<(u64, Option<Frame>)> {
        'next: loop {
            let mut reference = self.root.page;
            for level in (0..=self.root.height).rev() {
                let span = REFS_PER_DIRECTORY.pow(u32::from(level));
                let number = from / span;
                if level == self.root.height && number > 0 {
                    return None;
                }
                let content = match reference.is_none() {
                    true => None,
                    false => self.content(step, (level, number), reference),
                };
                if level == 0 && !reference.is_none() {
                    return Some((from, content));
                }
                let Some(content) = content else {
                    from = (number + 1) * span;
                    continue 'next;
                };
                let child = from / (span / REFS_PER_DIRECTORY) % REFS_PER_DIRECTORY;
                reference = PageRef::in_directory(&content[..], child as usize);
            }
            return None;
        }
    }

    fn content(&mut self, step: &mut Step<'_>, key: PageKey, reference: PageRef) -> Option<Frame> {
        if let Some((_, content)) = self.path.iter().find(|(held, _)| *held == key) {
            return content.clone();
        }
        let content = step.read_page(self.table, key, reference);
        if key.0 > 0 {
            self.path.retain(|((level, _), _)| *level != key.0);
            self.path.push((key, content.clone()));
        }
        content
    }
}

impl Step<'_> {
    /// A page from the device; from memory if it is damaged there.
    fn read_page(&mut self, table: TableName, key: PageKey, page: PageRef) -> Option<Frame> {
        let medium = &self.store.world.medium;
        self.count(1);
        // What fails once may be the way there, not the page.
        if let Ok(content) = medium.read_page(page).or_else(|_| medium.read_page(page)) {
            return Some(content);
        }
        let rows = self.store.world.table(table);
        let repair = if rows.write_anew(key) { Repair::Underway } else { Repair::Impossible };
        let (level, number) = key;
        let offset_bytes = self.offset_bytes(page.place);
        self.find(What::Page { table, level, number }, offset_bytes, repair);
        rows.in_memory(key)
    }

    /// Reads some row pages of a table, and the nodes that they name; says which page is the next.
    pub(super) fn pages(&mut self, table: usize, mut from: u64) -> Option<u64> {
        let superblock = self.checkpointer.superblock();
        let roots = [superblock.chunks, superblock.nodes, superblock.volumes];
        let mut tree = StoredTree::new(table, roots[table]);
        while !self.is_spent() {
            let (number, page) = tree.page(self, from)?;
            if TableName::ALL[table] == TableName::Nodes
                && let Some(page) = page
            {
                self.nodes(number, &page[..]);
            }
            from = number + 1;
        }
        Some(from)
    }

    fn nodes(&mut self, page: u64, bytes: &[u8]) {
        let rows = bytes.chunks_exact(ROW_BYTES).enumerate();
        let mut nodes: Vec<(NodeId, NodeRow)> = rows
            .filter_map(|(at, raw)| {
                let id = NodeId(page * ROWS_PER_PAGE + at as u64);
                Some((id, NodeRow::decode(raw).filter(|row| !row.place.is_none())?))
            })
            .collect();
        nodes.sort_unstable_by_key(|(_, row)| (row.place.segment, row.place.offset_units));
        self.count((nodes.len() as u64).div_ceil(2));
        for (id, row) in nodes {
            self.node(id, &row);
        }
    }

    fn node(&mut self, id: NodeId, row: &NodeRow) {
        let (medium, nodes) = (&self.store.world.medium, &self.store.world.nodes);
        let reference = PageRef { place: row.place, checksum: row.checksum };
        let read = || medium.read_node(reference, row.level);
        if read().or_else(|_| read()).is_ok() {
            return;
        }
        let repair =
            if nodes.write_anew(medium, id) { Repair::Underway } else { Repair::Impossible };
        let offset_bytes = self.offset_bytes(row.place);
        self.find(What::Node(id.0), offset_bytes, repair);
    }
}
