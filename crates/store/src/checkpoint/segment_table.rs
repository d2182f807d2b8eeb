//! Capturing and reading a segment table in pages.
//!
//! The table describes the segments to which it is itself written: a page that gets a location
//! changes the row of its new segment, and of its old one. These rows may be in further pages. So a
//! capture has two steps, both after everything else is captured:
//!
//! 1. Changed pages get locations, with all directories above them, until no more rows change in a
//!    page without a location. A page gets at most one location, so this terminates.
//! 2. From then on no row changes: pages get their content, and the directories above them their
//!    locations and checksums, bottom up.
//!
//! Step 1 is bounded ([`crate::writer::segment_table`]): only rows of segments change that have
//! metadata, or are opened for some.
//!
//! Directories stay in memory once they were read, so that a capture reads nothing. Pages of rows
//! are never in the table's memory: their content is that of [`Segments`].

use std::collections::{BTreeMap, BTreeSet};

use block::FrameMut;
use format::page::{PageRef, REFS_PER_DIRECTORY, TableRoot};
use format::{Place, Superblock};

use crate::StoreError;
use crate::checkpoint::captures::{PageImage, PagePlacer};
use crate::checkpoint::placer::Placer;
use crate::checkpoint::slices::Captured;
use crate::chunks::medium::{Copied, Medium};
use crate::chunks::pages::{PageKey, child_of, parent_of};
use crate::chunks::table::Table;
use crate::chunks::table_name::TableName;
use crate::space::segments::Segments;
use crate::space::widths::SegmentWidths;
use crate::world::World;

/// Loads the segment table of a checkpoint. `stream` is the content of its stream.
///
/// # Errors
/// If a part can't be read, or is invalid.
pub(crate) fn load(
    world: &World,
    superblock: &Superblock,
    stream: &[u8],
) -> Result<Segments, StoreError> {
    let (geometry, version) = (world.medium.widest_geometry(), superblock.version);
    let mut segments = match superblock.segments.length_bytes {
        0 => Segments::new(geometry, version),
        _ => Segments::decode(geometry, version, stream)?,
    };
    segments.epoch = superblock.epoch;
    if !superblock.segment_table.page.is_none() {
        for page in 0..segments.page_count() {
            read_page(world, &mut segments, page)?;
        }
    }
    if superblock.features.has_segment_table() {
        segments.divide();
    }
    if superblock.features.has_parts() {
        segments.fill_with(world.medium.metadata_blocks());
    }
    if !world.medium.is_uniform() {
        segments.found_widths(&SegmentWidths::of(&world.medium, 1..geometry.segment_count));
    }
    Ok(segments)
}

fn read_page(world: &World, segments: &mut Segments, page: u64) -> Result<(), StoreError> {
    let (table, medium, key) = (&world.segment_table, &world.medium, (0, page));
    let stored = table.named(medium, key)?;
    if stored.is_none() {
        return Ok(());
    }
    let Copied { content, is_second } = medium.read_page(stored)?;
    if is_second {
        table.bad_copies.note(key);
    }
    segments.decode_page(medium.widest_geometry(), page, &content[..])
}

/// Calls `visit` for each stored page, with its reference.
///
/// # Errors
/// If a directory can't be read.
pub(crate) fn visit(
    world: &World,
    visit: &mut dyn FnMut(PageKey, PageRef),
) -> Result<(), StoreError> {
    let (table, medium) = (&world.segment_table, &world.medium);
    let root = *table.root.read();
    let mut left = vec![((root.height, 0), root.page)];
    while let Some((key, stored)) = left.pop() {
        if !stored.is_none() {
            visit(key, stored);
        }
        if key.0 > 0 {
            let children = (0..REFS_PER_DIRECTORY).map(|index| child_of(key, index));
            table.read_page(medium, key, |page| {
                let stored = (0..).map(|index| PageRef::in_directory(page, index));
                left.extend(children.zip(stored).filter(|(_, stored)| !stored.is_none()));
            })?;
        }
    }
    Ok(())
}

/// Captures changes of the table, and returns its root; none if it is a stream. The caller holds
/// the writer's lock, and has captured everything else.
///
/// # Errors
/// If memory and medium differ now.
pub(crate) fn capture(
    world: &World,
    placer: &mut Placer<'_>,
    captured: &mut Captured,
) -> Result<TableRoot, StoreError> {
    if placer.segments.pages.is_none() {
        return Ok(TableRoot::default());
    }
    let (table, medium) = (&world.segment_table, &world.medium);
    table.grow_for((0, placer.segments.page_count() - 1));
    let height = table.root.read().height;
    let mut plan = Plan { table, medium, height, next: BTreeMap::new() };
    // Directories that are new or must be rewritten.
    let mut keys: BTreeSet<PageKey> = table.dirty.lock().iter().copied().collect();
    loop {
        let changed = placer.segments.take_changed_pages();
        keys.extend(changed.into_iter().map(|page| (0, page)));
        if keys.is_empty() {
            break;
        }
        plan.change(placer, std::mem::take(&mut keys))?;
    }
    captured.add_pages(TableName::Segments, plan.carry_out(placer.segments)?);
    Ok(*table.root.read())
}

/// The new locations of pages.
struct Plan<'a> {
    table: &'a Table,
    medium: &'a Medium,
    height: u8,
    next: BTreeMap<PageKey, Next>,
}

/// The next state of a page.
#[derive(Clone, Copy)]
struct Next {
    /// Its next location; none if it is empty.
    place: Place,
    /// Its previous location.
    before: PageRef,
}

impl Plan<'_> {
    /// Changes pages and the directories above them. Those of rows come first: a row that the
    /// capture itself changes is in use, so all unneeded pages are known when the first directory
    /// gets its location.
    fn change(
        &mut self,
        placer: &mut Placer<'_>,
        mut keys: BTreeSet<PageKey>,
    ) -> Result<(), StoreError> {
        while let Some(key) = keys.pop_first() {
            if self.change_page(placer, key)? && key.0 < self.height {
                keys.insert(parent_of(key));
            }
        }
        Ok(())
    }

    /// Gives a page its next location, or none if it is no longer needed; returns `false` if it has
    /// one already, and all above it, too.
    fn change_page(&mut self, placer: &mut Placer<'_>, key: PageKey) -> Result<bool, StoreError> {
        let known = self.next.get(&key).copied();
        if known.is_some_and(|next| !next.place.is_none()) {
            return Ok(false);
        }
        let before = match known {
            Some(next) => next.before,
            None => self.table.named(self.medium, key)?,
        };
        // What was released has no location.
        let left = if known.is_some() { PageRef::NONE } else { before };
        let place = if self.is_needed(placer.segments, key)? {
            placer.place_page(left)?
        } else {
            placer.release_page(left)?;
            Place::NONE
        };
        self.next.insert(key, Next { place, before });
        Ok(true)
    }

    /// Returns whether a page, or anything below it, is not empty.
    fn is_needed(&self, segments: &Segments, key: PageKey) -> Result<bool, StoreError> {
        let (level, number) = key;
        if level == 0 {
            return Ok(segments.uses_page(number));
        }
        let child = |index: u64| child_of(key, index);
        let mut planned = self.next.range(child(0)..child(REFS_PER_DIRECTORY));
        if planned.any(|(_, next)| !next.place.is_none()) {
            return Ok(true);
        }
        self.table.read_page(self.medium, key, |page| {
            (0..REFS_PER_DIRECTORY).any(|index| {
                !PageRef::in_directory(page, index as usize).is_none()
                    && !self.next.contains_key(&child(index))
            })
        })
    }

    /// Encodes the pages, bottom up.
    fn carry_out(&self, segments: &Segments) -> Result<Vec<PageImage>, StoreError> {
        let Self { table, medium, next, .. } = self;
        let mut images = Vec::new();
        for (&key, &Next { place, before }) in next {
            if key.0 > 0 && place.is_none() && !table.is_in_memory(key) {
                // It never existed.
                continue;
            }
            let reference = match key.0 {
                0 => self.carry_out_rows(segments, key, &mut images),
                _ => table.capture_page(medium, key, &mut At(place), &mut images)?,
            };
            debug_assert_eq!(reference.place, place, "{key:?}");
            if reference != before {
                table.name(medium, key, reference)?;
            }
        }
        let marked = std::mem::take(&mut *table.dirty.lock());
        debug_assert!(marked.iter().all(|key| next.contains_key(key)), "{marked:?}");
        // Contiguous pages are written together.
        images.sort_unstable_by_key(|image: &PageImage| image.reference.place);
        Ok(images)
    }

    fn carry_out_rows(
        &self,
        segments: &Segments,
        key: PageKey,
        images: &mut Vec<PageImage>,
    ) -> PageRef {
        let Some(&Next { place, before }) =
            self.next.get(&key).filter(|next| !next.place.is_none())
        else {
            return PageRef::NONE;
        };
        let mut page = FrameMut::zeroed();
        segments.encode_page(key.1, &mut page[..]);
        let page = page.freeze();
        let reference = PageRef { place, checksum: self.medium.keys.page_sum(&page[..]) };
        images.push(PageImage { key, page, reference, before });
        reference
    }
}

/// Undoes the capture of a page of rows: it is at its previous location, and marked as changed.
///
/// # Errors
/// If memory and medium differ now.
pub(crate) fn give_back_rows(
    world: &World,
    segments: &mut Segments,
    page: u64,
    before: PageRef,
) -> Result<(), StoreError> {
    segments.change_page(page);
    world.segment_table.name(&world.medium, (0, page), before)
}

/// A location that was allocated before.
struct At(Place);

impl PagePlacer for At {
    fn place_page(&mut self, _: PageRef) -> Result<Place, StoreError> {
        Ok(self.0)
    }

    fn release_page(&mut self, _: PageRef) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Table {
    fn is_in_memory(&self, key: PageKey) -> bool {
        self.shards.of(key).read().get(key).is_some()
    }
}
