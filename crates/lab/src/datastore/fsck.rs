//! Checking a datastore, without changing it. No host may use it meanwhile: changes in progress
//! would be seen in part.

use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

use super::cluster::Cluster;
use super::descriptor::Description;
use super::directory::decode_directory;
use super::disk::Disk;
use super::error::DatastoreError;
use super::layout::{
    BLOCK_BYTES, CLUSTER_BYTES, DESCRIPTOR_BYTES, Guard, Layout, Pool, SLOT_SECTORS,
};
use super::lock_record::{HOSTS_MAX, LockRecord};
use super::map::{decode_pointers, decode_slots};
use super::medium::Medium;
use super::mount::read_layout;
use super::pulse::Pulse;
use super::sector::{Kind, SECTOR_BYTES, Take};
use super::table::{Owner, Pointer, hash_of};

const SECTOR: usize = SECTOR_BYTES as usize;
/// The maximum number of findings of damage that are kept; the others are counted.
const DAMAGE_MAX: usize = 100;

/// The result of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct FsckReport {
    /// Its label.
    pub label: String,
    /// The number of files.
    pub files: u64,
    /// The number of data blocks.
    pub blocks: u64,
    /// How many of those are free.
    pub blocks_free: u64,
    /// Referenced by a file, present.
    pub blocks_present: u64,
    /// Referenced by a file, to be zeroed.
    pub blocks_to_be_zeroed: u64,
    /// Taken and unreferenced: a host has died in between, or what it took was never given back.
    pub blocks_leaked: u64,
    /// Pointer blocks that are taken and unreferenced.
    pub pointer_blocks_leaked: u64,
    /// Descriptors in use without a name in the directory.
    pub descriptors_leaked: u64,
    /// Hosts whose heartbeats were not ended.
    pub hosts: u64,
    /// Locks that those hold.
    pub locks_held: u64,
    /// Locks of hosts whose heartbeats ended: the next host that needs them breaks them.
    pub locks_stale: u64,
    /// What must never exist, whenever a host has died: the first findings.
    pub damage: Vec<String>,
    /// The number of such findings.
    pub damage_count: u64,
}

impl FsckReport {
    /// Returns whether there is anything that must never exist.
    pub fn is_damaged(&self) -> bool {
        self.damage_count > 0
    }

    /// Returns whether anything is taken without an owner.
    pub fn has_leaks(&self) -> bool {
        self.blocks_leaked + self.pointer_blocks_leaked + self.descriptors_leaked > 0
    }

    /// Returns whether there is neither damage nor leaks nor locks of dead hosts.
    pub fn is_clean(&self) -> bool {
        !self.is_damaged() && !self.has_leaks() && self.locks_stale == 0
    }

    fn note(&mut self, what: impl Into<String>) {
        self.damage_count += 1;
        if self.damage.len() < DAMAGE_MAX {
            self.damage.push(what.into());
        }
    }

    /// Returns the content; adds a finding if it is invalid.
    fn sound<T>(&mut self, decoded: Result<T, DatastoreError>) -> Option<T> {
        decoded.map_err(|error| self.note(error.to_string())).ok()
    }
}

impl fmt::Display for FsckReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.is_damaged(), self.is_clean()) {
            (true, _) => "DAMAGED",
            (_, true) => "clean",
            _ => "sound, with leaks or locks of dead hosts",
        };
        writeln!(f, "datastore {:?}: {state}", self.label)?;
        writeln!(f, "  files                  {}", self.files)?;
        writeln!(f, "  blocks of 1 MiB        {}", self.blocks)?;
        writeln!(f, "    present              {}", self.blocks_present)?;
        writeln!(f, "    to be zeroed         {}", self.blocks_to_be_zeroed)?;
        writeln!(f, "    free                 {}", self.blocks_free)?;
        writeln!(f, "    leaked               {}", self.blocks_leaked)?;
        writeln!(f, "  pointer blocks leaked  {}", self.pointer_blocks_leaked)?;
        writeln!(f, "  descriptors leaked     {}", self.descriptors_leaked)?;
        writeln!(f, "  hosts                  {}", self.hosts)?;
        writeln!(f, "  locks held             {}", self.locks_held)?;
        writeln!(f, "  locks of dead hosts    {}", self.locks_stale)?;
        writeln!(f, "  damage                 {}", self.damage_count)?;
        self.damage.iter().try_for_each(|what| writeln!(f, "    {what}"))
    }
}

/// Which blocks of a pool are taken, and which are referenced.
struct Claims {
    what: &'static str,
    /// `None`: the cluster is damaged.
    taken: Vec<Option<bool>>,
    named: Vec<bool>,
}

impl Claims {
    fn name(&mut self, block: u32, by: &str, report: &mut FsckReport) {
        let index = block as usize;
        let Some(named) = self.named.get_mut(index) else {
            report.note(format!("{by} refers to {} {block}, which does not exist", self.what));
            return;
        };
        if std::mem::replace(named, true) {
            report
                .note(format!("{by} refers to {} {block}, which has another reference", self.what));
        }
        if self.taken[index] == Some(false) {
            report.note(format!("{by} refers to {} {block}, which is free", self.what));
        }
    }

    fn leaked(&self) -> u64 {
        let both = self.taken.iter().zip(&self.named);
        both.filter(|(taken, named)| **taken == Some(true) && !**named).count() as u64
    }

    fn free(&self) -> u64 {
        self.taken.iter().filter(|taken| **taken == Some(false)).count() as u64
    }
}

struct Check<'a> {
    disk: &'a Disk,
    layout: &'a Layout,
    pulses: Vec<Option<Pulse>>,
    report: FsckReport,
}

/// Checks a datastore: that each block is free, or leaked, or taken and referenced by one file;
/// that bitmaps and their counts, names and descriptors, pointers and the device agree; all
/// checksums; who holds which locks.
///
/// # Errors
/// Those of the device, and if there is no valid superblock. Damage is not an error: it is in the
/// report.
pub async fn fsck<M>(medium: &M) -> Result<FsckReport, DatastoreError>
where
    M: Medium + Clone + 'static,
{
    let disk = Disk::new(Rc::new(medium.clone()), 0);
    let layout = read_layout(&disk).await?;
    let report = FsckReport {
        label: layout.label.clone(),
        blocks: u64::from(layout.data_blocks),
        ..FsckReport::default()
    };
    let mut check = Check { disk: &disk, layout: &layout, pulses: Vec::new(), report };
    check.heartbeats().await?;
    let directory = layout.directory_guard();
    let bytes = disk.read(directory.lock, directory.bytes()).await?;
    check.lock(directory, &bytes);
    let mut data = check.clusters(Pool::Data, "block").await?;
    let mut pointers = check.clusters(Pool::Pointer, "pointer block").await?;
    check.files(&mut data, &mut pointers).await?;
    let mut report = check.report;
    report.blocks_free = data.free();
    report.blocks_leaked = data.leaked();
    report.pointer_blocks_leaked = pointers.leaked();
    Ok(report)
}

impl Check<'_> {
    async fn heartbeats(&mut self) -> Result<(), DatastoreError> {
        let first = self.layout.heartbeat(0);
        let all = self.disk.read(first, u64::from(HOSTS_MAX) * SECTOR_BYTES).await?;
        for (sector, slot) in all.chunks_exact(SECTOR).zip(0..) {
            let pulse = Pulse::decode(sector, self.layout.heartbeat(slot));
            let pulse = self.report.sound(pulse);
            self.report.hosts += u64::from(pulse.is_some_and(|pulse| pulse.is_alive));
            self.pulses.push(pulse);
        }
        Ok(())
    }

    /// Checks a lock, and whether its stamp matches its content: hosts rely on it.
    fn lock(&mut self, guard: Guard, bytes: &[u8]) {
        let (sector, content) = bytes.split_at(SECTOR);
        let Some(lock) = self.report.sound(LockRecord::decode(sector, guard.lock)) else { return };
        let content = &content[..guard.content_bytes as usize];
        if lock.mode.is_none() && lock.stamp != 0 && !lock.proves(content) {
            let at = guard.lock;
            self.report
                .note(format!("the content of the lock at byte {at} differs from its stamp"));
        }
        for holder in &lock.holders {
            match self.pulses.get(holder.slot as usize).copied().flatten() {
                Some(pulse) if pulse.is_of(holder) => self.report.locks_held += 1,
                _ => self.report.locks_stale += 1,
            }
        }
    }

    async fn clusters(&mut self, pool: Pool, what: &'static str) -> Result<Claims, DatastoreError> {
        let layout = self.layout;
        let bytes = u64::from(layout.clusters(pool)) * CLUSTER_BYTES;
        let all = self.disk.read(layout.cluster(pool, 0), bytes).await?;
        let mut taken = Vec::with_capacity(layout.blocks(pool) as usize);
        for (pair, index) in all.chunks_exact(2 * SECTOR).zip(0..) {
            self.lock(layout.cluster_guard(pool, index), pair);
            let cluster = Cluster::decode(layout, pool, index, &pair[SECTOR..]);
            let cluster = self.report.sound(cluster);
            taken.extend(
                (0..layout.blocks_in(pool, index))
                    .map(|block| cluster.as_ref().map(|cluster| cluster.is_taken(block))),
            );
        }
        Ok(Claims { what, named: vec![false; taken.len()], taken })
    }

    async fn files(
        &mut self,
        data: &mut Claims,
        pointers: &mut Claims,
    ) -> Result<(), DatastoreError> {
        let hashes = self.directory().await?;
        let mut names: BTreeMap<String, u32> = BTreeMap::new();
        for (file, hash) in (0..).zip(hashes) {
            let place = self.layout.descriptor(file);
            let bytes = self.disk.read(place, DESCRIPTOR_BYTES).await?;
            self.lock(self.layout.file_guard(file), &bytes);
            let description = Description::decode(
                file,
                self.layout.description(file),
                self.layout.file_blocks_max(),
                &bytes[SECTOR..2 * SECTOR],
            );
            let Some(description) = self.report.sound(description) else { continue };
            self.name(file, hash, &description, &mut names);
            let slots = &bytes[2 * SECTOR..(2 + SLOT_SECTORS as usize) * SECTOR];
            if description.is_used {
                self.file(file, &description, slots, data, pointers).await?;
            } else {
                self.unused_slots(file, slots);
            }
        }
        Ok(())
    }

    /// Returns the hashes of all names; `None` if they can't be read.
    async fn directory(&mut self) -> Result<Vec<Option<u32>>, DatastoreError> {
        let mut hashes = Vec::new();
        for part in 0..self.layout.directory_sectors() {
            let offset = self.layout.directory(part);
            let sector = self.disk.read_sector(offset).await?;
            match self.report.sound(decode_directory(offset, part, &sector)) {
                Some(entries) => hashes.extend(entries.map(Some)),
                None => hashes.extend([None; super::table::ENTRIES]),
            }
        }
        hashes.truncate(self.layout.files as usize);
        Ok(hashes)
    }

    /// Checks whether the directory and a descriptor agree.
    fn name(
        &mut self,
        file: u32,
        hash: Option<u32>,
        description: &Description,
        names: &mut BTreeMap<String, u32>,
    ) {
        let Description { is_used, name, .. } = description;
        match (hash, is_used) {
            (None, _) | (Some(0), false) => {}
            (Some(0), true) => {
                self.report.descriptors_leaked += 1;
                return;
            }
            (Some(_), false) => {
                self.report.note(format!("a name refers to descriptor {file}, which is free"));
            }
            (Some(hash), true) if hash != hash_of(name) => {
                self.report.note(format!("a name other than {name:?} refers to descriptor {file}"));
            }
            _ => {}
        }
        if *is_used {
            self.report.files += 1;
            if let Some(other) = names.insert(name.clone(), file) {
                self.report.note(format!("descriptors {other} and {file} are both {name:?}"));
            }
        }
    }

    /// Unreferenced ones must be valid as well.
    fn unused_slots(&mut self, file: u32, slots: &[u8]) {
        for (sector, part) in slots.chunks_exact(SECTOR).zip(0..) {
            let opened = Take::open(Kind::Slots, self.layout.slots(file, part), sector);
            self.report.sound(opened.map(drop));
        }
    }

    async fn file(
        &mut self,
        file: u32,
        description: &Description,
        slots: &[u8],
        data: &mut Claims,
        pointers: &mut Claims,
    ) -> Result<(), DatastoreError> {
        let layout = self.layout;
        let name = &description.name;
        let owner = Owner { file, generation: description.generation, part: 0 };
        let Some(slots) = self.report.sound(decode_slots(layout, owner, slots)) else {
            return Ok(());
        };
        let size = description.size_bytes.div_ceil(BLOCK_BYTES);
        for (slot, entry) in (0..).zip(slots) {
            let Some(block) = u32::checked_sub(entry, 1) else { continue };
            pointers.name(block, name, &mut self.report);
            let bytes = u64::from(layout.pointer_sectors) * SECTOR_BYTES;
            let all = self.disk.read(layout.pointers(block, 0), bytes).await?;
            let first = Owner { part: slot * layout.pointer_sectors, ..owner };
            let decoded = decode_pointers(layout, block, first, &all);
            let Some(known) = self.report.sound(decoded) else { continue };
            let start = u64::from(slot) * u64::from(layout.pointers_per_block());
            for (at, pointer) in (start..).zip(known) {
                match pointer {
                    Pointer::Absent => continue,
                    Pointer::Present(_) => self.report.blocks_present += 1,
                    Pointer::ToBeZeroed(_) => self.report.blocks_to_be_zeroed += 1,
                }
                if let Some(block) = pointer.block() {
                    data.name(block, name, &mut self.report);
                }
                if at >= size {
                    self.report.note(format!("{name} has block {at}, beyond its end"));
                }
            }
        }
        Ok(())
    }
}
