//! The blocks of one file: its slots, which refer to pointer blocks, and the pointers in those.
//!
//! They are read when they are first needed and trusted as long as the file's lock is held, or is
//! as it was when this host gave it back. A change goes to disk first. If it fails there, what is
//! known is forgotten.
//!
//! A new file's slots are not written: those that an older file has left there don't count.

use std::collections::{BTreeSet, HashMap};
use std::ops::Range;

use super::error::DatastoreError;
use super::layout::{Layout, SLOT_SECTORS, SLOTS};
use super::mount::Core;
use super::sector::{Kind, SECTOR_BYTES, damaged};
use super::table::{self, ENTRIES, Entries, Owner, Pointer};

/// The maximum size for writing adjacent pointer blocks together.
const WRITE_BYTES_MAX: u64 = 256 << 10;

/// What is known about a file's blocks.
#[derive(Debug)]
pub(super) struct Map {
    file: u32,
    generation: u64,
    /// Empty: not read yet.
    slots: Vec<u32>,
    /// By slot.
    loaded: HashMap<u32, Vec<Pointer>>,
}

impl Map {
    pub(super) fn new(file: u32, generation: u64) -> Self {
        Self { file, generation, slots: Vec::new(), loaded: HashMap::new() }
    }

    /// Returns the map of a new file, which has no blocks.
    pub(super) fn empty(file: u32, generation: u64) -> Self {
        Self { slots: vec![0; SLOTS as usize], ..Self::new(file, generation) }
    }

    fn owner(&self, part: u32) -> Owner {
        Owner { file: self.file, generation: self.generation, part }
    }

    async fn load_slots(&mut self, core: &Core) -> Result<(), DatastoreError> {
        if self.slots.is_empty() {
            let layout = &core.layout;
            let bytes = u64::from(SLOT_SECTORS) * SECTOR_BYTES;
            let all = core.disk.read(layout.slots(self.file, 0), bytes).await?;
            self.slots = decode_slots(layout, self.owner(0), &all)?;
        }
        Ok(())
    }

    /// Reads the pointers of some slots, if they refer to any.
    async fn load(
        &mut self,
        core: &Core,
        slots: impl Iterator<Item = u32>,
    ) -> Result<(), DatastoreError> {
        self.load_slots(core).await?;
        let layout = &core.layout;
        let unknown = slots.filter(|slot| !self.loaded.contains_key(slot));
        let wanted: Vec<(u32, u32)> =
            unknown.filter_map(|slot| Some((slot, self.pointer_block(slot)?))).collect();
        let bytes = u64::from(layout.pointer_sectors) * SECTOR_BYTES;
        for run in wanted.chunk_by(|a, b| b.1 == a.1 + 1) {
            let first = layout.pointers(run[0].1, 0);
            let all = core.disk.read(first, bytes * run.len() as u64).await?;
            for ((slot, block), part) in run.iter().zip(all.chunks_exact(bytes as usize)) {
                let owner = self.owner(slot * layout.pointer_sectors);
                self.loaded.insert(*slot, decode_pointers(layout, *block, owner, part)?);
            }
        }
        Ok(())
    }

    fn pointer_block(&self, slot: u32) -> Option<u32> {
        self.slots.get(slot as usize)?.checked_sub(1)
    }

    /// Returns the pointers of some of its blocks.
    pub(super) async fn get(
        &mut self,
        core: &Core,
        blocks: Range<u32>,
    ) -> Result<Vec<Pointer>, DatastoreError> {
        let per_slot = core.layout.pointers_per_block();
        let mut pointers = Vec::with_capacity(blocks.len());
        self.load(core, blocks.start / per_slot..blocks.end.div_ceil(per_slot)).await?;
        let mut block = blocks.start;
        while block < blocks.end {
            let slot = block / per_slot;
            let end = blocks.end.min((slot + 1) * per_slot);
            let within = (block % per_slot) as usize..;
            let known = self.loaded.get(&slot).and_then(|all| all.get(within)).unwrap_or(&[]);
            let count = (end - block) as usize;
            pointers.extend(
                known.iter().copied().chain(std::iter::repeat(Pointer::Absent)).take(count),
            );
            block = end;
        }
        Ok(pointers)
    }

    /// Returns all data blocks and all pointer blocks of the file.
    pub(super) async fn all(
        &mut self,
        core: &Core,
    ) -> Result<(Vec<u32>, Vec<u32>), DatastoreError> {
        let (mut data, mut pointers) = (Vec::new(), Vec::new());
        self.load(core, 0..SLOTS).await?;
        for slot in 0..SLOTS {
            if let Some(block) = self.pointer_block(slot) {
                let known = self.loaded.get(&slot).into_iter().flatten();
                data.extend(known.filter_map(|pointer| pointer.block()));
                pointers.push(block);
            }
        }
        Ok((data, pointers))
    }

    /// Returns how many pointer blocks it lacks for blocks of the file, which are in order.
    pub(super) async fn missing(
        &mut self,
        core: &Core,
        blocks: &[u32],
    ) -> Result<u32, DatastoreError> {
        self.load_slots(core).await?;
        let per_slot = core.layout.pointers_per_block();
        let slots: BTreeSet<u32> = blocks.iter().map(|block| block / per_slot).collect();
        Ok(slots.iter().filter(|slot| self.pointer_block(**slot).is_none()).count() as u32)
    }

    /// Changes pointers: (block of the file, new value), in the order of the blocks; one write for
    /// each pointer block. `new_blocks` are the missing pointer blocks, taken for it.
    pub(super) async fn set(
        &mut self,
        core: &Core,
        changes: &[(u32, Pointer)],
        mut new_blocks: Vec<u32>,
    ) -> Result<(), DatastoreError> {
        let per_slot = core.layout.pointers_per_block();
        let parts = changes.chunk_by(|a, b| a.0 / per_slot == b.0 / per_slot);
        self.load(core, parts.clone().map(|part| part[0].0 / per_slot)).await?;
        new_blocks.sort_unstable();
        let mut new_blocks = new_blocks.into_iter();
        let mut named = Vec::new();
        for part in parts {
            let slot = part[0].0 / per_slot;
            if self.pointer_block(slot).is_some() {
                if let Err(error) = self.set_in(core, slot, part).await {
                    self.loaded.remove(&slot);
                    return Err(error);
                }
                continue;
            }
            let Some(block) = new_blocks.next() else {
                let text = "a slot has lost its pointers";
                return Err(damaged(core.layout.slots(self.file, 0), text));
            };
            let mut pointers = vec![Pointer::Absent; per_slot as usize];
            for (of, pointer) in part {
                pointers[(of % per_slot) as usize] = *pointer;
            }
            named.push(Named { slot, block, pointers });
        }
        self.add(core, named).await
    }

    async fn set_in(
        &mut self,
        core: &Core,
        slot: u32,
        changes: &[(u32, Pointer)],
    ) -> Result<(), DatastoreError> {
        let layout = &core.layout;
        let per_slot = layout.pointers_per_block();
        let first = self.owner(slot * layout.pointer_sectors);
        let (Some(block), Some(known)) = (self.pointer_block(slot), self.loaded.get_mut(&slot))
        else {
            return Err(damaged(layout.slots(self.file, 0), "a slot lacks its pointers"));
        };
        for (of, pointer) in changes {
            known[(of % per_slot) as usize] = *pointer;
        }
        // Unchanged sectors in between are written too: one command.
        let sector_of = |change: &(u32, Pointer)| change.0 % per_slot / ENTRIES as u32;
        let from = changes.first().map_or(0, sector_of);
        let to = changes.last().map_or(0, sector_of);
        let bytes = encode_pointers(layout, block, first, from..to + 1, known);
        core.disk.write(layout.pointers(block, from), &bytes).await
    }

    /// Order: pointer blocks are taken, then written, then referred to. A host that dies in between
    /// leaves a leak.
    async fn add(&mut self, core: &Core, named: Vec<Named>) -> Result<(), DatastoreError> {
        let (Some(first), Some(last)) = (named.first(), named.last()) else { return Ok(()) };
        let layout = &core.layout;
        let parts = first.slot / ENTRIES as u32..last.slot / ENTRIES as u32 + 1;
        let bytes = u64::from(layout.pointer_sectors) * SECTOR_BYTES;
        let together = (WRITE_BYTES_MAX / bytes).max(1) as usize;
        let runs = named.chunk_by(|a, b| b.block == a.block + 1);
        for run in runs.flat_map(|run| run.chunks(together)) {
            let content = |Named { slot, block, pointers }: &Named| {
                let owner = self.owner(slot * layout.pointer_sectors);
                encode_pointers(layout, *block, owner, 0..layout.pointer_sectors, pointers)
            };
            let content: Vec<u8> = run.iter().flat_map(content).collect();
            core.disk.write(layout.pointers(run[0].block, 0), &content).await?;
        }
        let mut slots = self.slots.clone();
        for Named { slot, block, .. } in &named {
            slots[*slot as usize] = block + 1;
        }
        let bytes = encode_slots(layout, self.owner(0), parts.clone(), &slots);
        if let Err(error) = core.disk.write(layout.slots(self.file, parts.start), &bytes).await {
            self.slots.clear();
            return Err(error);
        }
        self.slots = slots;
        self.loaded.extend(named.into_iter().map(|named| (named.slot, named.pointers)));
        Ok(())
    }
}

/// A pointer block that will belong to a file.
struct Named {
    slot: u32,
    block: u32,
    pointers: Vec<Pointer>,
}

/// Encodes some of the sectors of slots.
pub(super) fn encode_slots(
    layout: &Layout,
    first: Owner,
    parts: Range<u32>,
    slots: &[u32],
) -> Vec<u8> {
    let sector = |part: u32| {
        let entries = entries_of(slots, part);
        let owner = Owner { part, ..first };
        table::encode(Kind::Slots, layout.slots(first.file, part), owner, &entries)
    };
    parts.flat_map(sector).collect()
}

/// Decodes all slots of a file, as far as they are of its generation; every one refers to a pointer
/// block of the device, or none.
pub(super) fn decode_slots(
    layout: &Layout,
    first: Owner,
    bytes: &[u8],
) -> Result<Vec<u32>, DatastoreError> {
    let mut slots = Vec::with_capacity(SLOTS as usize);
    for (sector, part) in bytes.chunks_exact(SECTOR_BYTES as usize).zip(0..) {
        let offset = layout.slots(first.file, part);
        let owner = Owner { part, ..first };
        let entries = table::decode_if_newest(Kind::Slots, offset, owner, sector)?;
        if entries.iter().any(|entry| *entry > layout.pointer_blocks) {
            return Err(damaged(offset, "a slot refers to a pointer block beyond the last"));
        }
        slots.extend(entries);
    }
    Ok(slots)
}

/// Encodes some of the sectors of a pointer block.
fn encode_pointers(
    layout: &Layout,
    block: u32,
    first: Owner,
    sectors: Range<u32>,
    pointers: &[Pointer],
) -> Vec<u8> {
    let packed: Vec<u32> = pointers.iter().map(|pointer| pointer.pack()).collect();
    let sector = |sector: u32| {
        let entries = entries_of(&packed, sector);
        let owner = Owner { part: first.part + sector, ..first };
        table::encode(Kind::Pointers, layout.pointers(block, sector), owner, &entries)
    };
    sectors.flat_map(sector).collect()
}

/// Decodes all pointers of a pointer block; every one is within the device.
pub(super) fn decode_pointers(
    layout: &Layout,
    block: u32,
    first: Owner,
    bytes: &[u8],
) -> Result<Vec<Pointer>, DatastoreError> {
    let mut pointers = Vec::with_capacity(layout.pointers_per_block() as usize);
    for (content, sector) in bytes.chunks_exact(SECTOR_BYTES as usize).zip(0..) {
        let offset = layout.pointers(block, sector);
        let owner = Owner { part: first.part + sector, ..first };
        for entry in table::decode(Kind::Pointers, offset, owner, content)? {
            let pointer = Pointer::unpack(entry, layout.data_blocks);
            pointers.push(pointer.ok_or_else(|| {
                damaged(offset, format!("{entry:#010x} is not a pointer into this device"))
            })?);
        }
    }
    Ok(pointers)
}

/// Returns the entries of one sector of many.
fn entries_of(all: &[u32], part: u32) -> Entries {
    let first = part as usize * ENTRIES;
    std::array::from_fn(|index| all.get(first + index).copied().unwrap_or(0))
}
