//! The tables on the device: directories, rows, and the nodes that rows refer to.

use std::collections::BTreeSet;

use block::{BLOCK_BYTES, Frame};
use format::geometry::METADATA_COPIES;
use format::map::NODE_BYTES;
use format::page::{PAGE_BYTES, PageRef, REFS_PER_DIRECTORY, ROWS_PER_PAGE, StreamRef, TableRoot};
use format::row::ROW_BYTES;
use format::{LeafRow, NodeId, NodeRow, Place};

use super::{Repair, Step, What};
use crate::StoreError;
use crate::chunks::medium::At;
use crate::chunks::pages::PageKey;
use crate::chunks::table_name::TableName;
use crate::chunks::verify::is_of_no_device;

/// A table of the superblock. Valid for one step: while it is held there is no checkpoint.
pub(super) struct StoredTree {
    table: TableName,
    root: TableRoot,
    /// The directories on the path to the last page, by their level.
    path: Vec<(PageKey, Option<Frame>)>,
}

impl StoredTree {
    pub(super) fn new(table: usize, root: TableRoot) -> Self {
        Self { table: TableName::ALL[table], root, path: Vec::new() }
    }

    /// Returns the first stored row page from number `from` on, and its content if it can be read.
    /// Reports damage on the path to `step`.
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

/// Reads all copies of something: returns its content, if one is right, and the location of the
/// first that is not. The copies of a device that is out are left to its catching up.
fn read_all<T>(
    copies: &[At],
    read: &dyn Fn(At) -> Result<T, StoreError>,
) -> (Option<T>, Option<Place>) {
    let (mut content, mut bad) = (None, None);
    for at in copies {
        // A read error that does not repeat is not damage.
        match read(*at).or_else(|_| read(*at)) {
            Ok(found) => content = content.or(Some(found)),
            Err(StoreError::Io(error)) if is_of_no_device(&error) => {}
            Err(_) => bad = bad.or(Some(at.place())),
        }
    }
    (content, bad)
}

impl Step<'_> {
    /// Reads all copies of a page; returns it from memory if all are damaged.
    fn read_page(&mut self, table: TableName, key: PageKey, page: PageRef) -> Option<Frame> {
        let (store, copies) = (self.store, self.copies(page.place, PAGE_BYTES));
        self.count(copies.len() as u64);
        let read = |at| store.world.medium.read_page_at(page, at);
        let (content, bad) = read_all(&copies, &read);
        let rows = store.world.table(table);
        if let Some(place) = bad {
            let is_marked = store.write_page_anew(table, key);
            let repair = if is_marked { Repair::Underway } else { Repair::Impossible };
            let (level, number) = key;
            let offset_bytes = self.offset_bytes(place);
            self.find(What::Page { table, level, number }, offset_bytes, repair);
        }
        content.or_else(|| rows.in_memory(key))
    }

    /// Returns where metadata is stored: in two places of its segment, or in one if the segment has
    /// one copy, and each of them on all devices with a copy.
    fn copies(&self, place: Place, bytes: usize) -> Vec<At> {
        let medium = &self.store.world.medium;
        let second = medium.geometry_of(place.segment).copy_of(place, bytes as u64);
        let second = second.filter(|_| !self.of_one_copy.contains(&place.segment));
        let places = std::iter::once(place).chain(second);
        match self.metadata_copies() {
            1 => places.map(At::from).collect(),
            copies => {
                places.flat_map(|place| (0..copies).map(move |copy| At::on(place, copy))).collect()
            }
        }
    }

    /// Returns how many devices have a copy of a place with metadata.
    fn metadata_copies(&self) -> u32 {
        let medium = &self.store.world.medium;
        match medium.geometry().has_stripes() {
            true => METADATA_COPIES,
            false => medium.disk.copies(),
        }
    }

    /// Reads some row pages of a table, and the nodes that they refer to; returns the next page.
    pub(super) fn pages(&mut self, table: usize, mut from: u64) -> Option<u64> {
        let roots = TableName::roots(self.checkpointer.superblock());
        let mut tree = StoredTree::new(table, roots[table]);
        while !self.is_spent() {
            let (number, page) = tree.page(self, from)?;
            match (TableName::ALL[table], page) {
                (TableName::Nodes, Some(page)) => self.nodes(number, &page[..]),
                (TableName::Leaves, Some(page)) => self.leaves(number, &page[..]),
                _ => {}
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
        let places = if self.store.world.medium.version().mirrors_metadata() { 2 } else { 1 };
        let copies = places * u64::from(self.metadata_copies());
        self.count((copies * nodes.len() as u64).div_ceil(2));
        for (id, row) in nodes {
            self.node(id, &row);
        }
    }

    fn leaves(&mut self, page: u64, bytes: &[u8]) {
        for (at, raw) in (0..).zip(bytes.chunks_exact(ROW_BYTES)) {
            if let Some(row) = LeafRow::decode(raw) {
                self.stored_leaf(page * ROWS_PER_PAGE + at, row);
            }
        }
    }

    /// Memory has all leaves.
    fn stored_leaf(&mut self, number: u64, row: LeafRow) {
        let Some(place) = self.pieces(row.first) else { return };
        // One that was removed meanwhile is in no later checkpoint.
        self.store.write_leaves_anew(&BTreeSet::from([number]));
        let offset_bytes = self.offset_bytes(place);
        self.find(What::Leaf(number), offset_bytes, Repair::Underway);
    }

    /// Reads all copies of all pieces of a stream, as far as they can be read; returns the location
    /// of the first bad one.
    pub(super) fn pieces(&mut self, first: StreamRef) -> Option<Place> {
        let (store, mut next, mut first_bad) = (self.store, first, None);
        while next.length_bytes > 0 {
            let copies = self.copies(next.page.place, next.length_bytes as usize);
            let blocks = u64::from(next.length_bytes).div_ceil(BLOCK_BYTES);
            self.count(copies.len() as u64 * blocks);
            let read = |at| store.world.medium.read_piece_at(next, at);
            let (found, bad) = read_all(&copies, &read);
            first_bad = first_bad.or(bad);
            let Some((behind, _)) = found else { break };
            next = behind;
        }
        first_bad
    }

    fn node(&mut self, id: NodeId, row: &NodeRow) {
        let store = self.store;
        let reference = PageRef { place: row.place, checksum: row.checksum };
        let read = |at| store.world.medium.read_node_at(reference, row.level, at);
        let (_, bad) = read_all(&self.copies(row.place, NODE_BYTES), &read);
        let Some(place) = bad else { return };
        let is_marked = store.write_node_anew(id);
        let repair = if is_marked { Repair::Underway } else { Repair::Impossible };
        let offset_bytes = self.offset_bytes(place);
        self.find(What::Node(id.0), offset_bytes, repair);
    }
}
