//! Capturing table pages and nodes: each gets its next location, which is recorded in the directory
//! above it, or in its row.

use std::sync::Arc;

use block::{BLOCK_BYTES, Frame};
use format::map::{NODE_BYTES, Node};
use format::page::{PageRef, REFS_PER_DIRECTORY, TableRoot};
use format::{NodeId, Place};

use crate::checkpoint::images::Image;
use crate::checkpoint::placer::Placer;
use crate::checkpoint::slices::Captured;
use crate::chunks::medium::Medium;
use crate::chunks::memory::PAGE_COST_BYTES;
use crate::chunks::pages::{PageKey, parent_of};
use crate::chunks::table::Table;
use crate::world::World;
use crate::{NODE_UNITS, StoreError};

/// The number of nodes in a block.
const NODES_PER_BLOCK: usize = BLOCK_BYTES as usize / NODE_BYTES;

/// The write of a page by a checkpoint.
pub(crate) struct PageImage {
    pub(super) key: PageKey,
    pub(crate) page: Frame,
    pub(crate) reference: PageRef,
    /// Its previous location.
    pub(super) before: PageRef,
}

/// Allocates locations for pages, and releases those of earlier versions.
pub(crate) trait PagePlacer {
    /// Allocates a location for a page that was at `old` (perhaps nowhere).
    fn place_page(&mut self, old: PageRef) -> Result<Place, StoreError>;
    /// Releases the page at `old`.
    fn release_page(&mut self, old: PageRef) -> Result<(), StoreError>;
}

impl Table {
    /// Gives every changed page its next location, bottom up, and returns what is to be written.
    /// From here on the pages count as stored there. The caller holds the writer's lock.
    pub(crate) fn capture(
        &self,
        medium: &Medium,
        placer: &mut dyn PagePlacer,
    ) -> Result<(TableRoot, Vec<PageImage>), StoreError> {
        let mut images = Vec::new();
        let height = self.root.read().height;
        for level in 0..=height {
            self.capture_level(medium, placer, level, usize::MAX, &mut images)?;
        }
        Ok((*self.root.read(), images))
    }

    /// The same as [`Table::capture`], for the first `count_max` changed pages of rows; the
    /// directories above them become changed. Not for the root, which is captured last.
    pub(crate) fn capture_rows(
        &self,
        medium: &Medium,
        placer: &mut dyn PagePlacer,
        count_max: usize,
    ) -> Result<Vec<PageImage>, StoreError> {
        let mut images = Vec::new();
        if self.root.read().height > 0 {
            self.capture_level(medium, placer, 0, count_max, &mut images)?;
        }
        Ok(images)
    }

    fn capture_level(
        &self,
        medium: &Medium,
        placer: &mut dyn PagePlacer,
        level: u8,
        count_max: usize,
        images: &mut Vec<PageImage>,
    ) -> Result<(), StoreError> {
        let mut keys: Vec<PageKey> = Vec::new();
        self.dirty.lock().retain(|key| {
            let taken = key.0 == level && keys.len() < count_max;
            if taken {
                keys.push(*key);
            }
            !taken
        });
        keys.sort_unstable();
        for key in keys {
            let reference = self.capture_page(medium, key, placer, images)?;
            self.name(medium, key, reference)?;
        }
        Ok(())
    }

    /// Places one page; a page of zeros gets no location, and can be evicted like any clean page.
    pub(crate) fn capture_page(
        &self,
        medium: &Medium,
        key: PageKey,
        placer: &mut dyn PagePlacer,
        images: &mut Vec<PageImage>,
    ) -> Result<PageRef, StoreError> {
        let mut shard = self.shards.of(key).write();
        shard.generation += 1;
        let slot = shard.get_mut(key).expect("a changed page is not evicted");
        let mut reference = PageRef::NONE;
        if slot.page.bytes() != &Frame::zeros()[..] {
            let place = placer.place_page(slot.stored)?;
            let page = slot.page.share();
            reference = PageRef { place, checksum: medium.keys.page_sum(&page[..]) };
            images.push(PageImage { key, page, reference, before: slot.stored });
        } else if !slot.stored.is_none() {
            placer.release_page(slot.stored)?;
        }
        slot.stored = reference;
        slot.dirty = false;
        slot.capture = self.memory.capture(PAGE_COST_BYTES);
        Ok(reference)
    }

    /// Undoes the capture of a page: it is at its previous location, and marked as changed. Returns
    /// whether the page is as captured: if it was evicted since, it was a page of zeros.
    pub(crate) fn give_back(
        &self,
        medium: &Medium,
        key: PageKey,
        (captured, before): (PageRef, PageRef),
    ) -> Result<bool, StoreError> {
        {
            let mut shard = self.shards.of(key).write();
            shard.generation += 1;
            let Some(slot) = shard.get_mut(key).filter(|slot| slot.stored == captured) else {
                return Ok(false);
            };
            slot.stored = before;
            self.mark(slot, key);
        }
        self.name(medium, key, before)?;
        Ok(true)
    }

    /// Records the location of a page in the directory above it.
    pub(crate) fn name(
        &self,
        medium: &Medium,
        key: PageKey,
        reference: PageRef,
    ) -> Result<(), StoreError> {
        {
            let mut root = self.root.write();
            // The former root may have another one above it since.
            if key.0 == root.height {
                root.page = reference;
                return Ok(());
            }
        }
        let parent = parent_of(key);
        let index = (key.1 % REFS_PER_DIRECTORY) as usize;
        self.change_page(medium, parent, |directory| reference.put_in_directory(directory, index))
    }
}

/// Places changed nodes, two to a block, and records their locations and checksums in their rows.
pub(crate) fn capture_nodes(
    world: &World,
    placer: &mut Placer<'_>,
    changed: Vec<(NodeId, Arc<Node>)>,
    captured: &mut Captured,
) -> Result<(), StoreError> {
    let medium = &world.medium;
    let mut bytes = [0; NODE_BYTES];
    for group in changed.chunks(NODES_PER_BLOCK) {
        let first = placer.place(group.len() as u32 * NODE_UNITS)?;
        for (index, (id, node)) in group.iter().enumerate() {
            node.encode(&mut bytes);
            let checksum = medium.keys.page_sum(&bytes);
            let offset_units = first.offset_units + index as u32 * NODE_UNITS;
            let place = Place { offset_units, ..first };
            let before = world.nodes.update_row(medium, *id, |row| {
                let before = (row.place, row.checksum);
                (row.place, row.checksum) = (place, checksum);
                before
            })?;
            placer.release(before.0, NODE_UNITS)?;
            captured.add_node(*id, place, before);
        }
        let nodes = group.iter().map(|(_, node)| node.clone()).collect();
        captured.images.push((first, Image::Nodes(nodes)));
    }
    Ok(())
}
