//! The layout of the device, and the superblock that describes it.
//!
//! In this order: the superblock, the heartbeats, the directory's lock and the directory, the file
//! descriptors, the clusters of data blocks, the clusters of pointer blocks, the pointer blocks,
//! and from the next multiple of 1 MiB on the data blocks.
//!
//! The superblock (the sector at byte 0), written once, by `format`:
//!
//! | bytes | what |
//! |---|---|
//! | 16..32 | the datastore's id |
//! | 32..96 | its label, UTF-8, ended by zeros |
//! | 96..104 | bytes of the device that are used |
//! | 104..108 | bytes in a data block |
//! | 108..112 | file descriptors |
//! | 112..116 | data blocks |
//! | 116..120 | blocks in a cluster |
//! | 120..124 | sectors in a pointer block |
//! | 124..128 | pointer blocks |

use super::error::DatastoreError;
use super::lock_record::HOSTS_MAX;
use super::sector::{Kind, Put, SECTOR_BYTES, Sector, Take, text_of};
use super::table::ENTRIES;

/// Bytes in a block of a datastore, the unit of allocation of files (VMFS 5 and 6).
pub const BLOCK_BYTES: u64 = 1 << 20;

/// Bytes of a file descriptor: lock, description, and the sectors with references to its pointer
/// blocks.
pub(super) const DESCRIPTOR_BYTES: u64 = 4096;
/// Sectors of a descriptor with references to pointer blocks.
pub(super) const SLOT_SECTORS: u32 = 6;
/// The maximum number of pointer blocks of a file.
pub(super) const SLOTS: u32 = SLOT_SECTORS * ENTRIES as u32;
/// Lock and bitmap.
pub(super) const CLUSTER_BYTES: u64 = 2 * SECTOR_BYTES;
/// The maximum number of blocks in a cluster: the size of a bitmap.
pub(super) const CLUSTER_BLOCKS_MAX: u32 = 2048;
/// The range of block numbers in a pointer.
pub(super) const BLOCKS_MAX: u32 = 1 << 30;
/// Bytes of a label.
pub(super) const LABEL_BYTES_MAX: usize = 64;

const FILES_MAX: u32 = 1 << 16;
const POINTER_SECTORS_MAX: u32 = 1 << 12;
const HEARTBEATS: u64 = 64 << 10;
const DIRECTORY: u64 = 128 << 10;

/// The use of blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pool {
    Data,
    Pointer,
}

/// A lock, and the content after it that is changed only under the lock. A file's lock also covers
/// data elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Guard {
    pub(super) lock: u64,
    pub(super) content_bytes: u64,
}

impl Guard {
    /// Returns where its content is.
    pub(super) fn content(&self) -> u64 {
        self.lock + SECTOR_BYTES
    }

    /// Returns the size of lock and content.
    pub(super) fn bytes(&self) -> u64 {
        SECTOR_BYTES + self.content_bytes
    }
}

/// The superblock's content, which determines every location.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) id: [u8; 16],
    pub(super) label: String,
    pub(super) files: u32,
    pub(super) data_blocks: u32,
    pub(super) cluster_blocks: u32,
    /// The number of sectors in a pointer block.
    pub(super) pointer_sectors: u32,
    pub(super) pointer_blocks: u32,
}

impl Layout {
    /// Returns a layout for a device of this size.
    pub(super) fn plan(id: [u8; 16], label: &str, bytes: u64) -> Result<Self, DatastoreError> {
        if label.is_empty() || label.len() > LABEL_BYTES_MAX || label.contains('\0') {
            let text = format!("a label has 1 to {LABEL_BYTES_MAX} bytes");
            return Err(DatastoreError::Argument(text));
        }
        let blocks = u32::try_from(bytes / BLOCK_BYTES).unwrap_or(BLOCKS_MAX).min(BLOCKS_MAX);
        let mut layout = Self {
            id,
            label: label.to_owned(),
            // As many as small scenarios need, and no more metadata than there is room for.
            files: (blocks / 16).clamp(32, 1024),
            data_blocks: 0,
            // About 64 clusters, so that each of 64 hosts can have its own.
            cluster_blocks: (blocks / 64).next_power_of_two().clamp(16, CLUSTER_BLOCKS_MAX),
            pointer_sectors: 8,
            pointer_blocks: 0,
        };
        // A thin file may be twice as large as the whole datastore.
        let most = blocks.saturating_mul(2);
        while layout.file_blocks_max() < most && layout.pointer_sectors < POINTER_SECTORS_MAX {
            layout.pointer_sectors *= 2;
        }
        // Two for each file, and eight times what is needed to refer to every block once.
        let per_block = layout.pointers_per_block();
        layout.pointer_blocks = 2 * layout.files + blocks / (per_block / 8);
        let metadata = layout.data_start().div_ceil(BLOCK_BYTES) as u32;
        layout.data_blocks = blocks.saturating_sub(metadata);
        // The clusters of data blocks take room themselves.
        while layout.data_blocks > 0 && layout.bytes_used() > bytes {
            layout.data_blocks -= 1;
        }
        if layout.data_blocks < 4 {
            let text = format!("a device of {bytes} bytes is too small for a datastore");
            return Err(DatastoreError::Argument(text));
        }
        Ok(layout)
    }

    pub(super) fn encode(&self) -> Sector {
        let mut put = Put::new();
        put.bytes(16, &self.id).bytes(32, self.label.as_bytes()).u64(96, self.bytes_used());
        put.u32(104, BLOCK_BYTES as u32).u32(108, self.files).u32(112, self.data_blocks);
        put.u32(116, self.cluster_blocks).u32(120, self.pointer_sectors);
        put.u32(124, self.pointer_blocks);
        put.seal(Kind::Superblock, 0)
    }

    /// Decodes the superblock of a device with this many bytes.
    pub(super) fn decode(bytes: &[u8], device_bytes: u64) -> Result<Self, DatastoreError> {
        let take = Take::open(Kind::Superblock, 0, bytes)?;
        let mut id = [0; 16];
        id.copy_from_slice(take.bytes(16, 16));
        let layout = Self {
            id,
            label: text_of(&take, 32, LABEL_BYTES_MAX)?,
            files: take.u32(108),
            data_blocks: take.u32(112),
            cluster_blocks: take.u32(116),
            pointer_sectors: take.u32(120),
            pointer_blocks: take.u32(124),
        };
        let fits = u64::from(take.u32(104)) == BLOCK_BYTES
            && (1..=FILES_MAX).contains(&layout.files)
            && (1..=BLOCKS_MAX).contains(&layout.data_blocks)
            && (1..=CLUSTER_BLOCKS_MAX).contains(&layout.cluster_blocks)
            && (1..=POINTER_SECTORS_MAX).contains(&layout.pointer_sectors)
            && (1..=BLOCKS_MAX).contains(&layout.pointer_blocks)
            // Only now: nothing overflows.
            && take.u64(96) == layout.bytes_used();
        if !fits {
            return Err(take.damaged("its sizes are inconsistent"));
        }
        if layout.bytes_used() > device_bytes {
            return Err(take.damaged(format!("the device has only {device_bytes} bytes")));
        }
        Ok(layout)
    }

    /// Returns the end of the last data block.
    pub(super) fn bytes_used(&self) -> u64 {
        self.data_start() + u64::from(self.data_blocks) * BLOCK_BYTES
    }

    /// Returns the directory, after its lock.
    pub(super) fn directory_guard(&self) -> Guard {
        let content_bytes = u64::from(self.directory_sectors()) * SECTOR_BYTES;
        Guard { lock: DIRECTORY - SECTOR_BYTES, content_bytes }
    }

    /// Returns a file's description, with the lock of everything that belongs to the file.
    pub(super) fn file_guard(&self, file: u32) -> Guard {
        Guard { lock: self.descriptor(file), content_bytes: SECTOR_BYTES }
    }

    /// Returns a cluster's bitmap, with its lock.
    pub(super) fn cluster_guard(&self, pool: Pool, cluster: u32) -> Guard {
        Guard { lock: self.cluster(pool, cluster), content_bytes: SECTOR_BYTES }
    }

    pub(super) fn heartbeat(&self, slot: u32) -> u64 {
        HEARTBEATS + u64::from(slot.min(HOSTS_MAX - 1)) * SECTOR_BYTES
    }

    pub(super) fn directory_sectors(&self) -> u32 {
        self.files.div_ceil(ENTRIES as u32)
    }

    pub(super) fn directory(&self, sector: u32) -> u64 {
        DIRECTORY + u64::from(sector) * SECTOR_BYTES
    }

    /// Returns a file's descriptor, which begins with its lock.
    pub(super) fn descriptor(&self, file: u32) -> u64 {
        let start = self.directory(self.directory_sectors()).next_multiple_of(DESCRIPTOR_BYTES);
        start + u64::from(file) * DESCRIPTOR_BYTES
    }

    /// Returns where the name and size of a file are.
    pub(super) fn description(&self, file: u32) -> u64 {
        self.descriptor(file) + SECTOR_BYTES
    }

    /// Returns a sector with references to pointer blocks of a file.
    pub(super) fn slots(&self, file: u32, part: u32) -> u64 {
        self.descriptor(file) + (2 + u64::from(part)) * SECTOR_BYTES
    }

    pub(super) fn blocks(&self, pool: Pool) -> u32 {
        match pool {
            Pool::Data => self.data_blocks,
            Pool::Pointer => self.pointer_blocks,
        }
    }

    pub(super) fn clusters(&self, pool: Pool) -> u32 {
        self.blocks(pool).div_ceil(self.cluster_blocks)
    }

    /// Returns the number of blocks in a cluster: the last may be shorter.
    pub(super) fn blocks_in(&self, pool: Pool, cluster: u32) -> u32 {
        let before = u64::from(cluster) * u64::from(self.cluster_blocks);
        let left = u64::from(self.blocks(pool)).saturating_sub(before);
        left.min(u64::from(self.cluster_blocks)) as u32
    }

    /// Returns a cluster's lock; its bitmap is the next sector.
    pub(super) fn cluster(&self, pool: Pool, cluster: u32) -> u64 {
        let before = match pool {
            Pool::Data => 0,
            Pool::Pointer => u64::from(self.clusters(Pool::Data)),
        };
        self.descriptor(self.files) + (before + u64::from(cluster)) * CLUSTER_BYTES
    }

    /// Returns a sector of a pointer block.
    pub(super) fn pointers(&self, block: u32, sector: u32) -> u64 {
        let start = self.cluster(Pool::Pointer, self.clusters(Pool::Pointer));
        let sectors = u64::from(block) * u64::from(self.pointer_sectors) + u64::from(sector);
        start.next_multiple_of(DESCRIPTOR_BYTES) + sectors * SECTOR_BYTES
    }

    fn data_start(&self) -> u64 {
        self.pointers(self.pointer_blocks, 0).next_multiple_of(BLOCK_BYTES)
    }

    /// Returns where a data block is on the device.
    pub(super) fn data(&self, block: u32) -> u64 {
        self.data_start() + u64::from(block) * BLOCK_BYTES
    }

    /// Returns the number of pointers in a pointer block.
    pub(super) fn pointers_per_block(&self) -> u32 {
        self.pointer_sectors * ENTRIES as u32
    }

    /// Returns the maximum number of blocks of a file.
    pub(super) fn file_blocks_max(&self) -> u32 {
        SLOTS.saturating_mul(self.pointers_per_block())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_superblock_survives_the_disk_and_fits_the_device() {
        for mib in [16, 64, 100, 1 << 10, 5 << 10, 64 << 10, 4 << 20, 64 << 20] {
            let bytes = mib * BLOCK_BYTES + 12_345;
            let layout = Layout::plan([7; 16], "a label", bytes).unwrap();
            assert!(layout.bytes_used() <= bytes);
            assert!(layout.bytes_used() + 3 * BLOCK_BYTES > bytes, "{mib}: {layout:?}");
            assert_eq!(Layout::decode(&layout.encode(), bytes).unwrap(), layout);
            assert!(Layout::decode(&layout.encode(), layout.bytes_used() - 1).is_err());
            assert!(layout.file_blocks_max() >= layout.data_blocks);
            assert!(layout.clusters(Pool::Data) >= 4.min(layout.data_blocks / 16));
        }
        assert!(Layout::plan([7; 16], "a label", 2 << 20).is_err());
        assert!(Layout::plan([7; 16], "", 64 << 20).is_err());
    }

    #[test]
    fn regions_follow_each_other() {
        let layout = Layout::plan([0; 16], "l", 1 << 30).unwrap();
        let places = [
            layout.heartbeat(0),
            layout.heartbeat(HOSTS_MAX - 1) + SECTOR_BYTES,
            layout.directory_guard().lock,
            layout.directory(0),
            layout.directory(layout.directory_sectors()),
            layout.descriptor(0) + 1,
            layout.slots(layout.files - 1, SLOT_SECTORS - 1) + SECTOR_BYTES,
            layout.cluster(Pool::Data, 0) + 1,
            layout.cluster(Pool::Pointer, 0),
            layout.pointers(0, 0),
            layout.data(0),
            layout.bytes_used(),
        ];
        assert!(places.is_sorted(), "{places:?}");
        assert_eq!(layout.directory_guard().content(), layout.directory(0));
        assert_eq!(layout.file_guard(3).content(), layout.description(3));
        let cluster = layout.cluster_guard(Pool::Pointer, 0);
        assert_eq!(cluster.lock + cluster.bytes(), layout.cluster(Pool::Pointer, 1));
        assert_eq!(layout.slots(0, SLOT_SECTORS - 1) + SECTOR_BYTES, layout.descriptor(1));
    }
}
