//! Bytes with a valid checksum that make no sense: reported as damage, never a panic.

use format::geometry::UNITS_PER_BLOCK;
use format::log::RECORD_HEADER_BYTES;
use format::page::PageRef;
use format::superblock::{SUPERBLOCK_BYTES, SUPERBLOCK_OFFSETS_BYTES};
use format::{
    ChunkId, ChunkRow, Entry, Fingerprint, Keys, NodeId, Place, RecordHeader, Superblock,
};

use super::*;
use crate::StoreError;

fn is_damage(result: Result<Store, StoreError>) -> bool {
    matches!(result, Err(StoreError::Damaged(_)))
}

pub(super) fn superblock(disk: &MemoryDisk) -> Superblock {
    let copies = SUPERBLOCK_OFFSETS_BYTES.map(|at| {
        let mut frames = [FrameMut::stale()];
        sys::Disk::read(disk, at, &mut frames).unwrap();
        Superblock::decode(&frames[0][..SUPERBLOCK_BYTES]).ok()
    });
    copies.into_iter().flatten().max_by_key(|superblock| superblock.sequence).unwrap()
}

/// Opens a pool after the same change to both superblocks.
fn open_bent(disk: Arc<MemoryDisk>, change: impl Fn(&mut Superblock)) -> Result<Store, StoreError> {
    let mut bent = superblock(&disk);
    change(&mut bent);
    for at in SUPERBLOCK_OFFSETS_BYTES {
        let frame = FrameMut::from_bytes(&bent.encode()).freeze();
        sys::Disk::write(&*disk, at, &[frame]).unwrap();
    }
    Store::open(disk, OpenOptions::default())
}

#[test]
fn a_superblock_with_impossible_values_is_damage() {
    let changes: [fn(&mut Superblock); 10] = [
        |superblock| superblock.log.segment = 64,
        |superblock| superblock.log.next_segment = 0,
        |superblock| superblock.log.block = 4097,
        |superblock| superblock.log.lsn = 0,
        |superblock| superblock.metadata_segment = 64,
        |superblock| superblock.metadata_segment = 40,
        |superblock| superblock.metadata_block = 4097,
        |superblock| superblock.next_chunk = ChunkId(u64::MAX),
        // These ids exist, but there is none left for the next chunks.
        |superblock| superblock.next_chunk = ChunkId((1 << 60) - 1),
        |superblock| superblock.sequence = u64::MAX,
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let (disk, store) = pool(1 << 30);
        drop(store);
        assert!(is_damage(open_bent(disk, change)), "change {index}");
    }
}

/// Writes a superblock with a changed location of the next checkpoint, and opens the pool.
fn with_next_checkpoint_at(block: impl Fn(u32) -> u32) -> Result<Store, StoreError> {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 8 * MIB);
    (0..8).for_each(|mib| write(&store, id, mib * MIB, &distinct(8, mib)).unwrap());
    store.checkpoint().unwrap();
    // Something in the segment is dead.
    write(&store, id, 0, &distinct(8, 9)).unwrap();
    store.checkpoint().unwrap();
    drop(store);
    open_bent(disk, |superblock| superblock.metadata_block = block(superblock.metadata_block))
}

#[test]
fn a_next_checkpoint_over_live_metadata_is_damage() {
    assert_sound(&with_next_checkpoint_at(|block| block).unwrap());
    assert!(is_damage(with_next_checkpoint_at(|_| 0)));
    // Where the counts leave it open, the check decides.
    let store = with_next_checkpoint_at(|block| block - 1).unwrap();
    assert!(!store.check(CheckOptions::default()).unwrap().findings.is_empty());
}

/// A pool with data in its log after a checkpoint, and a changed superblock.
fn with_log_at(change: fn(&mut Superblock)) -> Result<Store, StoreError> {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 32 * MIB);
    (0..32).for_each(|mib| write(&store, id, mib * MIB, &distinct(256, mib)).unwrap());
    store.checkpoint().unwrap();
    drop(store);
    open_bent(disk, change)
}

#[test]
fn a_log_end_before_live_data_is_damage() {
    assert_sound(&with_log_at(|_| ()).unwrap());
    let changes: [fn(&mut Superblock); 5] = [
        // The segment where checkpoints continue: both would write to it.
        |superblock| superblock.log.segment = superblock.metadata_segment,
        |superblock| superblock.log.next_segment = superblock.metadata_segment,
        // The old location.
        |superblock| superblock.log.block = 0,
        |superblock| superblock.log.next_segment = 1,
        |superblock| superblock.log.next_segment = superblock.log.segment,
    ];
    for (index, change) in changes.into_iter().enumerate() {
        assert!(is_damage(with_log_at(change)), "change {index}");
    }
}

#[test]
fn records_of_a_later_epoch_than_the_superblocks_are_damage() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(1, 0)).unwrap();
    drop(store);
    assert!(is_damage(open_bent(disk, |superblock| superblock.epoch -= 1)));
}

/// Writes a record with these entries at the start of the empty log.
fn append(disk: &MemoryDisk, entries: &[Entry], next_segment: u32) {
    let superblock = superblock(disk);
    let mut encoded = Vec::new();
    entries.iter().for_each(|entry| format::RecordVersion::V3.add(entry, &mut encoded));
    let version = format::RecordVersion::V3;
    let header = RecordHeader {
        version,
        lsn: superblock.log.lsn,
        epoch: superblock.epoch,
        flushed_lsn: superblock.log.lsn,
        previous: superblock.log.previous,
        header_blocks: 1,
        payload_blocks: 1,
        entries_bytes: encoded.len() as u32,
        entry_count: entries.len() as u32,
        next_segment,
        copied_bytes: 0,
        seal: format::Seal::default(),
    };
    let mut record = vec![0; RECORD_HEADER_BYTES];
    record.extend(&encoded);
    record.resize(4096, 0);
    header.seal(&mut record, &Keys::derive(&superblock.root_key));
    let place = Place {
        segment: superblock.log.segment,
        offset_units: superblock.log.block * UNITS_PER_BLOCK,
    };
    let at = superblock.geometry.offset_bytes(place);
    sys::Disk::write(disk, at, &[FrameMut::from_bytes(&record).freeze()]).unwrap();
}

#[test]
fn a_record_with_an_impossible_entry_is_damage() {
    let store_entry = |payload_units, first| Entry::Store {
        first: ChunkId(first),
        payload_units,
        flags: format::StoreFlags { staged: true, ..Default::default() },
        fingerprints: vec![Fingerprint([1; 16])],
    };
    let bent = [
        (store_entry(1, 1), 2),
        (store_entry(UNITS_PER_BLOCK, 1), 2),
        (store_entry(u32::MAX - 63, 1), 2),
        (store_entry(0, u64::MAX), 2),
        (Entry::Release { first: ChunkId(1), count: u32::MAX }, 2),
        (Entry::VolumeCreate { volume: VolumeId(u64::MAX), size_blocks: 8 }, 2),
        (Entry::VolumeCreate { volume: VolumeId(1), size_blocks: u64::MAX }, 2),
        (Entry::Release { first: ChunkId(1), count: 1 }, 64),
        (Entry::Release { first: ChunkId(1), count: 1 }, 0),
        // Its own segment.
        (Entry::Release { first: ChunkId(1), count: 1 }, 1),
    ];
    for (entry, next_segment) in bent {
        let (disk, store) = pool(1 << 30);
        drop(store);
        append(&disk, std::slice::from_ref(&entry), next_segment);
        assert!(is_damage(Store::open(disk, OpenOptions::default())), "{entry:?}");
    }
    // The same record with a valid entry is accepted.
    let (disk, store) = pool(1 << 30);
    drop(store);
    append(&disk, &[Entry::VolumeCreate { volume: VolumeId(1), size_blocks: 8 }], 2);
    let store = Store::open(disk, OpenOptions::default()).unwrap();
    assert!(store.volume_status(VolumeId(1)).is_some());
}

#[test]
fn a_node_at_a_wrong_level_is_damage() {
    let (_disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    let (world, node) = (&store.world, NodeId(1));
    assert!(world.nodes.get(&world.medium, node, 1).is_ok());
    assert!(world.nodes.get(&world.medium, node, 2).is_err());
}

#[test]
fn the_check_reports_a_chunk_between_two_blocks() {
    let (_disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    assert_sound(&store);
    let medium = &store.world.medium;
    let moved = store.world.chunks.update(medium, 1, |raw| {
        let mut row = ChunkRow::decode(raw).unwrap();
        row.place.offset_units += 1;
        row.encode(raw);
    });
    moved.unwrap();
    let report = store.check(CheckOptions { data: true }).unwrap();
    assert_eq!(report.findings.len(), 1, "{:?}", report.findings);
}

#[test]
fn live_bytes_below_zero_or_outside_the_pool_are_damage() {
    let (_disk, store) = pool(1 << 30);
    let mut writer = store.writer.lock();
    let segments = &mut writer.state.segments;
    let place = |segment| Place { segment, offset_units: 0 };
    assert!(segments.add_live(place(5), 8).is_ok() && segments.sub_live(place(5), 8).is_ok());
    assert!(segments.sub_live(place(5), 1).is_err());
    assert!(segments.add_live(place(64), 1).is_err());
}

#[test]
fn a_reference_beyond_the_pool_is_reported_with_its_location() {
    let (_disk, store) = pool(1 << 30);
    let place = Place { segment: 2, offset_units: u32::MAX };
    let Err(error) = store.world.medium.read_page(PageRef { place, checksum: 0 }) else {
        panic!("a page outside of the pool was read");
    };
    assert!(error.to_string().contains("274877906880"), "{error}");
}
