//! Creating an empty datastore.

use std::time::{SystemTime, UNIX_EPOCH};

use super::cluster::Cluster;
use super::descriptor::Description;
use super::directory::encode_directory;
use super::disk::Disk;
use super::error::DatastoreError;
use super::layout::{DESCRIPTOR_BYTES, Layout, Pool, SLOT_SECTORS};
use super::lock_record::{HOSTS_MAX, LockRecord};
use super::map::encode_slots;
use super::pulse::Pulse;
use super::sector::SECTOR_BYTES;
use super::table::{ENTRIES, Owner};
use crate::random::Random;

/// The maximum size of one write.
const WRITE_BYTES_MAX: usize = 256 << 10;

/// Writes all metadata except the pointer blocks, which are written when they are first used. The
/// superblock is wiped first and written last, so that there is no partial datastore.
pub(super) async fn format(disk: &Disk, label: &str) -> Result<(), DatastoreError> {
    if disk.medium.sector_bytes() != SECTOR_BYTES {
        let text = format!("a datastore needs blocks of {SECTOR_BYTES} bytes");
        return Err(DatastoreError::Argument(text));
    }
    let layout = Layout::plan(new_id(), label, disk.medium.bytes())?;
    disk.write(0, &[0; SECTOR_BYTES as usize]).await?;
    let pulse = |slot| Pulse::free().encode(layout.heartbeat(slot)).to_vec();
    write_all(disk, layout.heartbeat(0), (0..HOSTS_MAX).map(pulse)).await?;
    let directory = |part| encode_directory(layout.directory(part), part, &[0; ENTRIES]);
    let directory: Vec<u8> = (0..layout.directory_sectors()).flat_map(directory).collect();
    let lock = layout.directory_guard().lock;
    let pieces = [LockRecord::free_before(&directory).encode(lock).to_vec(), directory];
    write_all(disk, lock, pieces.into_iter()).await?;
    let descriptors = (0..layout.files).map(|file| empty_descriptor(&layout, file));
    write_all(disk, layout.descriptor(0), descriptors).await?;
    for pool in [Pool::Data, Pool::Pointer] {
        let clusters = (0..layout.clusters(pool)).map(|index| empty_cluster(&layout, pool, index));
        write_all(disk, layout.cluster(pool, 0), clusters).await?;
    }
    disk.write(0, &layout.encode()).await
}

fn empty_descriptor(layout: &Layout, file: u32) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(DESCRIPTOR_BYTES as usize);
    let description = Description::free().encode(file, layout.description(file));
    bytes.extend(LockRecord::free_before(&description).encode(layout.descriptor(file)));
    bytes.extend(description);
    let owner = Owner { file, generation: 0, part: 0 };
    bytes.extend(encode_slots(layout, owner, 0..SLOT_SECTORS, &[]));
    bytes
}

fn empty_cluster(layout: &Layout, pool: Pool, index: u32) -> Vec<u8> {
    let cluster = Cluster::empty(layout, pool, index).encode(layout);
    [LockRecord::free_before(&cluster).encode(layout.cluster(pool, index)), cluster].concat()
}

/// Writes consecutive pieces, many in parallel.
async fn write_all(
    disk: &Disk,
    offset: u64,
    pieces: impl Iterator<Item = Vec<u8>>,
) -> Result<(), DatastoreError> {
    let (mut at, mut bytes) = (offset, Vec::new());
    for piece in pieces {
        bytes.extend(piece);
        if bytes.len() >= WRITE_BYTES_MAX {
            disk.write(at, &bytes).await?;
            at += bytes.len() as u64;
            bytes.clear();
        }
    }
    if bytes.is_empty() { Ok(()) } else { disk.write(at, &bytes).await }
}

/// Returns an id unlike that of any other datastore.
fn new_id() -> [u8; 16] {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seed = since.as_nanos() as u64 ^ u64::from(std::process::id()) << 48;
    let mut id = [0; 16];
    Random::new(seed).fill(&mut id);
    id
}
