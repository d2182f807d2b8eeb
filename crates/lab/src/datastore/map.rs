//! The blocks of one file: its slots, which name pointer blocks, and the pointers in those.
//!
//! They are read when they are first asked for and believed as long as the file's lock is held. A
//! change goes to disk first. If it fails there, what is known is forgotten.

use std::collections::HashMap;
use std::ops::Range;

use super::error::DatastoreError;
use super::layout::{Layout, Pool, SLOT_SECTORS, SLOTS};
use super::mount::Core;
use super::sector::{Kind, SECTOR_BYTES, damaged};
use super::table::{self, ENTRIES, Entries, Owner, Pointer};

/// What is known of a file's blocks.
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

    /// Reads the pointers of a slot, where it names any.
    async fn load(&mut self, core: &Core, slot: u32) -> Result<(), DatastoreError> {
        self.load_slots(core).await?;
        let Some(block) = self.pointer_block(slot) else { return Ok(()) };
        if !self.loaded.contains_key(&slot) {
            let layout = &core.layout;
            let bytes = u64::from(layout.pointer_sectors) * SECTOR_BYTES;
            let all = core.disk.read(layout.pointers(block, 0), bytes).await?;
            let first = self.owner(slot * layout.pointer_sectors);
            self.loaded.insert(slot, decode_pointers(layout, block, first, &all)?);
        }
        Ok(())
    }

    fn pointer_block(&self, slot: u32) -> Option<u32> {
        self.slots.get(slot as usize)?.checked_sub(1)
    }

    /// The pointers of some of its blocks.
    pub(super) async fn get(
        &mut self,
        core: &Core,
        blocks: Range<u32>,
    ) -> Result<Vec<Pointer>, DatastoreError> {
        let per_slot = core.layout.pointers_per_block();
        let mut pointers = Vec::with_capacity(blocks.len());
        let mut block = blocks.start;
        while block < blocks.end {
            let slot = block / per_slot;
            let end = blocks.end.min((slot + 1) * per_slot);
            self.load(core, slot).await?;
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

    /// All data blocks and all pointer blocks that the file has.
    pub(super) async fn all(
        &mut self,
        core: &Core,
    ) -> Result<(Vec<u32>, Vec<u32>), DatastoreError> {
        let (mut data, mut pointers) = (Vec::new(), Vec::new());
        self.load_slots(core).await?;
        for slot in 0..SLOTS {
            if let Some(block) = self.pointer_block(slot) {
                self.load(core, slot).await?;
                let known = self.loaded.get(&slot).into_iter().flatten();
                data.extend(known.filter_map(|pointer| pointer.block()));
                pointers.push(block);
            }
        }
        Ok((data, pointers))
    }

    /// Changes pointers: (block of the file, what it is to be), in the order of the blocks.
    pub(super) async fn set(
        &mut self,
        core: &Core,
        changes: &[(u32, Pointer)],
    ) -> Result<(), DatastoreError> {
        let per_slot = core.layout.pointers_per_block();
        for part in changes.chunk_by(|a, b| a.0 / per_slot == b.0 / per_slot) {
            let slot = part[0].0 / per_slot;
            self.load(core, slot).await?;
            if self.pointer_block(slot).is_none() {
                self.add_pointer_block(core, slot).await?;
            }
            if let Err(error) = self.set_in(core, slot, part).await {
                self.loaded.remove(&slot);
                return Err(error);
            }
        }
        Ok(())
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
            return Err(damaged(layout.slots(self.file, 0), "a slot has lost its pointers"));
        };
        for (of, pointer) in changes {
            known[(of % per_slot) as usize] = *pointer;
        }
        // Sectors in between that are as they were are written too: one command.
        let sector_of = |change: &(u32, Pointer)| change.0 % per_slot / ENTRIES as u32;
        let from = changes.first().map_or(0, sector_of);
        let to = changes.last().map_or(0, sector_of);
        let bytes = encode_pointers(layout, block, first, from..to + 1, known);
        core.disk.write(layout.pointers(block, from), &bytes).await
    }

    /// Order: the pointer block is taken, then has its content, then is named. A host that dies
    /// in between leaves a leak.
    async fn add_pointer_block(&mut self, core: &Core, slot: u32) -> Result<(), DatastoreError> {
        let layout = &core.layout;
        let Some(block) = core.take_blocks(Pool::Pointer, 1).await?.pop() else {
            return Err(DatastoreError::Full);
        };
        let absent = vec![Pointer::Absent; layout.pointers_per_block() as usize];
        let first = self.owner(slot * layout.pointer_sectors);
        let bytes = encode_pointers(layout, block, first, 0..layout.pointer_sectors, &absent);
        core.disk.write(layout.pointers(block, 0), &bytes).await?;
        let mut slots = self.slots.clone();
        slots[slot as usize] = block + 1;
        let part = slot / ENTRIES as u32;
        let bytes = encode_slots(layout, self.owner(0), part..part + 1, &slots);
        if let Err(error) = core.disk.write(layout.slots(self.file, part), &bytes).await {
            self.slots.clear();
            return Err(error);
        }
        self.slots = slots;
        self.loaded.insert(slot, absent);
        Ok(())
    }
}

/// Some of the sectors of slots.
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

/// All slots of a file; every one names a pointer block of the device, or none.
pub(super) fn decode_slots(
    layout: &Layout,
    first: Owner,
    bytes: &[u8],
) -> Result<Vec<u32>, DatastoreError> {
    let mut slots = Vec::with_capacity(SLOTS as usize);
    for (sector, part) in bytes.chunks_exact(SECTOR_BYTES as usize).zip(0..) {
        let offset = layout.slots(first.file, part);
        let entries = table::decode(Kind::Slots, offset, Owner { part, ..first }, sector)?;
        if entries.iter().any(|entry| *entry > layout.pointer_blocks) {
            return Err(damaged(offset, "a slot names a pointer block beyond the last"));
        }
        slots.extend(entries);
    }
    Ok(slots)
}

/// Some of the sectors of a pointer block.
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

/// All pointers of a pointer block; every one is within the device.
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
                damaged(offset, format!("{entry:#010x} is no pointer into this device"))
            })?);
        }
    }
    Ok(pointers)
}

/// The entries of one sector of many.
fn entries_of(all: &[u32], part: u32) -> Entries {
    let first = part as usize * ENTRIES;
    std::array::from_fn(|index| all.get(first + index).copied().unwrap_or(0))
}
