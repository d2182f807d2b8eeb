//! One test for each class of damage: what it costs, and what it must not cost.

use format::geometry::UNITS_PER_BLOCK;
use format::page::PageRef;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;
use format::{ChunkId, LeafRow, MapEntry, Place, RecordHeader, Superblock};

use super::*;
use crate::LogCut;

/// Returns the superblock as the pool was stopped, without the state of the log.
pub(super) fn superblock(disk: &MemoryDisk) -> Superblock {
    let copies = SUPERBLOCK_OFFSETS_BYTES.map(|at| {
        let mut frames = [FrameMut::stale()];
        sys::Disk::read(disk, at, &mut frames).unwrap();
        Superblock::decode(&frames[0][..]).ok()
    });
    copies.into_iter().flatten().max_by_key(|superblock| superblock.sequence).unwrap()
}

fn offset(superblock: &Superblock, place: Place) -> u64 {
    superblock.geometry.offset_bytes(place)
}

fn load(disk: &Arc<MemoryDisk>) -> Store {
    Store::load(disk.clone(), OpenOptions::default()).unwrap()
}

/// Returns the records after the checkpoint: the location and the header of each.
pub(super) fn records(disk: &Arc<MemoryDisk>) -> Vec<(u64, RecordHeader)> {
    let superblock = superblock(disk);
    let store = load(disk);
    let mut reader = crate::log::log_reader::LogReader::new(&store.world.medium);
    let mut at = superblock.log;
    let mut found = Vec::new();
    while let Some(record) = crate::log::replay::next_record(&mut reader, &at, 0).unwrap() {
        let place =
            Place { segment: record.at.segment, offset_units: record.at.block * UNITS_PER_BLOCK };
        found.push((offset(&superblock, place), record.header));
        at = record.behind();
    }
    found
}

fn chunk_at(store: &Store, volume: VolumeId, block: u64) -> ChunkId {
    let map = store.world.map_of(volume).unwrap();
    match crate::map::walk::entry_of((&store.world).into(), &map, block).unwrap() {
        MapEntry::Chunk(id) => id,
        other => panic!("block {block} is {other:?}"),
    }
}

#[test]
fn losing_one_superblock_costs_nothing_and_losing_both_costs_the_pool() {
    let pool = rich();
    for copy in SUPERBLOCK_OFFSETS_BYTES {
        let disk = pool.disk.copy();
        disk.flip(copy, 12_345);
        let (lost, cut) = salvage(&pool, &disk);
        assert!(lost.is_empty() && cut.is_none());
        let salvage = Salvage::open(disk.clone(), WHOLE).unwrap();
        assert!(salvage.notes()[0].contains("can't be used"), "{:?}", salvage.notes());
        let damaged = usize::from(copy != 0);
        let asked = SalvageOptions { superblock: Some(damaged), ..WHOLE };
        assert!(matches!(Salvage::open(disk, asked), Err(SalvageError::Store(_))));
    }
    let disk = pool.disk.copy();
    SUPERBLOCK_OFFSETS_BYTES.iter().for_each(|at| disk.flip(*at, 99));
    assert!(matches!(Salvage::open(disk, CUT), Err(SalvageError::Store(_))));
}

#[test]
fn a_lost_page_of_the_volume_table_costs_the_volumes_names_and_not_their_maps() {
    let pool = rich();
    let disk = pool.disk.copy();
    let superblock = superblock(&disk);
    assert_eq!(superblock.volumes.height, 0);
    disk.flip(offset(&superblock, superblock.volumes.page.place), 77);
    let (lost, cut) = salvage(&pool, &disk);
    assert!(cut.is_none());
    assert!(lost.values().all(|reason| *reason == LossReason::Volume));
    let salvage = Salvage::open(disk, WHOLE).unwrap();
    assert_eq!(salvage.lost_ids(), std::slice::from_ref(&(1..superblock.next_volume.0)));
    assert_eq!(salvage.losses().len(), 1);
    // What the log has written since is whole, and so is what it set in the others.
    let newest = *pool.content.keys().last().unwrap();
    assert!(!salvage.is_lost(newest) && lost.keys().all(|(id, _)| *id != newest));
    // The maps of the others are found as unreferenced nodes: each was one of theirs.
    let orphans = salvage.orphans();
    assert!(orphans.len() >= 4, "{orphans:?}");
    for orphan in orphans {
        let mut content = BTreeMap::new();
        let mut sink = |part: Salvaged<'_>| {
            let Salvaged::Data(block, frames) = part else { panic!("{part:?}") };
            content.extend((block..).zip(frames.iter().cloned()));
            Ok(())
        };
        salvage.read_orphan(&orphan, &mut sink).unwrap();
        let is_it = |held: &Vec<u8>| {
            held.chunks(4096).enumerate().all(|(block, bytes)| match content.get(&(block as u64)) {
                Some(frame) => frame[..] == *bytes,
                None => bytes.iter().all(|byte| *byte == 0),
            })
        };
        assert!(pool.at_checkpoint().values().any(|held| is_it(held)), "{orphan:?}");
    }
}

#[test]
fn a_lost_key_value_space_costs_no_data() {
    let pool = rich();
    let superblock = superblock(&pool.disk);
    let mut leaves = Vec::new();
    let store = load(&pool.disk);
    store.world.leaves.visit(&store.world.medium, &mut |_| {}, &mut |_, raw| {
        leaves.push(LeafRow::decode(raw).unwrap().first.page.place);
    });
    drop(store);
    assert_eq!(leaves.len(), 1, "one value that is longer than a block");
    for at in [superblock.leaves.page.place, leaves[0]] {
        let disk = pool.disk.copy();
        disk.flip(offset(&superblock, at), 300);
        let (lost, cut) = salvage(&pool, &disk);
        assert!(lost.is_empty() && cut.is_none());
        let salvage = Salvage::open(disk, WHOLE).unwrap();
        assert_eq!(salvage.losses().len(), 1);
        // The log has its keys.
        assert!(salvage.config().any(|(key, _)| key == b"last"));
        assert!(salvage.config().all(|(key, _)| key != b"key"));
    }
}

#[test]
fn segments_and_pending_nodes_are_not_needed() {
    let pool = rich();
    let superblock = superblock(&pool.disk);
    for stream in [superblock.segments, superblock.pending] {
        let disk = pool.disk.copy();
        if stream.length_bytes > 0 {
            disk.flip(offset(&superblock, stream.page.place), 50);
        }
        assert_eq!(salvage(&pool, &disk), (Lost::new(), None));
    }
}

#[test]
fn a_damaged_leaf_costs_only_blocks_that_the_log_has_not_set_since() {
    let pool = rich();
    let store = load(&pool.disk);
    let superblock = superblock(&pool.disk);
    let mut costs = Vec::new();
    for id in 1..superblock.next_node.0 {
        let Ok(row) = store.world.nodes.row(&store.world.medium, format::NodeId(id)) else {
            continue;
        };
        if row.place.is_none() {
            continue;
        }
        let disk = pool.disk.copy();
        disk.flip(offset(&superblock, row.place), 1000);
        let (lost, cut) = salvage(&pool, &disk);
        assert!(cut.is_none() && lost.values().all(|reason| *reason == LossReason::Map));
        let volumes: BTreeSet<VolumeId> = lost.keys().map(|(id, _)| *id).collect();
        assert!(lost.len() <= 256 * volumes.len() || row.level > 1, "{id}: {}", lost.len());
        costs.push(lost.len());
    }
    assert!(costs.iter().any(|cost| *cost > 0) && costs.len() > 5, "{costs:?}");
}

#[test]
fn a_damaged_page_of_chunk_rows_costs_those_chunks() {
    let pool = rich();
    let superblock = superblock(&pool.disk);
    let root = superblock.chunks;
    assert_eq!(root.height, 1);
    let directory = load(&pool.disk).world.medium.read_page(root.page).unwrap().content;
    let mut costs = 0;
    for index in 0..4 {
        let page = PageRef::in_directory(&directory[..], index);
        let disk = pool.disk.copy();
        disk.flip(offset(&superblock, page.place), 5);
        let (lost, cut) = salvage(&pool, &disk);
        assert!(cut.is_none() && lost.values().all(|reason| *reason == LossReason::ChunkRow));
        costs += lost.len();
        // Newer chunks have what the log says.
        let newest = *pool.content.keys().last().unwrap();
        assert!(lost.keys().all(|(id, _)| *id != newest));
    }
    assert!(costs > 50, "{costs}");
}

#[test]
fn a_damaged_chunk_costs_only_the_blocks_that_refer_to_it() {
    let pool = rich();
    let store = load(&pool.disk);
    let superblock = superblock(&pool.disk);
    let one = *pool.content.keys().next().unwrap();
    for (block, sharers) in [(70, 1..=8), (130, 1..=64)] {
        let row = store.world.chunk(chunk_at(&store, one, block)).unwrap();
        let disk = pool.disk.copy();
        disk.flip(offset(&superblock, row.place), 40);
        let (lost, cut) = salvage(&pool, &disk);
        assert!(cut.is_none() && lost.values().all(|reason| *reason == LossReason::Data));
        assert!(sharers.contains(&lost.len()), "{lost:?}");
        let content: BTreeSet<&[u8]> = lost
            .keys()
            .map(|(id, block)| &pool.content[id][*block as usize * 4096..][..4096])
            .collect();
        assert!(content.len() <= usize::from(row.group_blocks), "{lost:?}");
    }
}

/// Before a checkpoint the old location of a moved chunk is as good as the new one.
#[test]
fn a_moved_chunk_is_read_at_its_older_location() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 16 * MIB);
    (0..16).for_each(|mib| write(&store, id, mib * MIB, &distinct(MIB, mib)).unwrap());
    // The live rest of each MiB is moved together.
    (0..16).for_each(|mib| write(&store, id, mib * MIB + 8, &vec![0; (1 << 20) - 4096]).unwrap());
    store.checkpoint().unwrap();
    let before = store.world.chunk(chunk_at(&store, id, 0)).unwrap().place;
    let place = || store.world.chunk(chunk_at(&store, id, 0)).unwrap().place;
    while place() == before {
        assert!(store.reclaim_segment().unwrap());
    }
    let after = place();
    let superblock = superblock(&disk);
    drop(store);
    let mut expected = vec![0; 16 << 20];
    for (mib, held) in expected.chunks_exact_mut(1 << 20).enumerate() {
        held[..4096].copy_from_slice(&distinct(8, mib as u64));
    }
    for place in [before, after] {
        let disk = disk.copy();
        disk.flip_one(offset(&superblock, place), 9);
        let salvage = Salvage::open(disk.clone(), WHOLE).unwrap();
        let mut lost = Lost::new();
        compare(&salvage, id, &expected, &mut lost);
        assert!(lost.is_empty(), "{lost:?}");
    }
}

#[test]
fn a_damaged_record_in_the_middle_is_cut_only_on_request() {
    let pool = rich();
    let records = records(&pool.disk);
    assert!(records.len() > 10);
    // It affects the next one too, which has a copy: so the last two have no witness.
    for (at, header) in &records[..records.len() - 2] {
        let disk = pool.disk.copy();
        disk.flip(*at, 8 * 8);
        let Err(SalvageError::LogIsCut(cut)) = Salvage::open(disk.clone(), WHOLE) else {
            panic!("record {} was dropped silently", header.lsn);
        };
        let followed = header.lsn - records[0].1.lsn;
        let LogCut { lsn, last_lsn, .. } = cut;
        assert_eq!((lsn, last_lsn), (header.lsn, Some(pool.last_lsn())));
        assert_eq!(cut.followed, followed);
        assert!(cut.to_string().contains(&format!("record {lsn} of the log can't be read")));
        // Nothing from before it is lost.
        assert_eq!(salvage(&pool, &disk), (Lost::new(), Some(cut)));
    }
}

#[test]
fn a_damaged_payload_costs_its_blocks_and_cuts_nothing() {
    let pool = rich();
    let mut costs = 0;
    for (at, header) in records(&pool.disk) {
        if header.payload_blocks == 0 {
            continue;
        }
        let disk = pool.disk.copy();
        disk.flip(at + u64::from(header.header_blocks) * 4096, 90);
        let (lost, cut) = salvage(&pool, &disk);
        assert!(cut.is_none() && lost.values().all(|reason| *reason == LossReason::Data));
        costs += lost.len();
    }
    assert!(costs > 0);
}

/// Blocks that the device fails to read count as damaged, and so do those beyond the end of a
/// truncated file.
#[test]
fn unreadable_blocks_cost_only_their_content() {
    let pool = rich();
    let disk = pool.disk.copy();
    let one = *pool.content.keys().next().unwrap();
    let store = load(&pool.disk);
    let row = store.world.chunk(chunk_at(&store, one, 70)).unwrap();
    disk.fail_reads_of(offset(&superblock(&disk), row.place) / 4096);
    let (lost, cut) = salvage(&pool, &disk);
    assert!(cut.is_none() && lost.contains_key(&(one, 70)) && lost.len() <= 8, "{lost:?}");
    let short = pool.disk.copy();
    short.cut(240 << 20);
    let salvage = Salvage::open(short, WHOLE).unwrap();
    assert!(salvage.losses()[0].contains("the device has"), "{:?}", salvage.losses());
    assert_eq!(compare_all(&salvage, &pool.content), Lost::new());
}

/// If the block after the last record can't be read, another record may be there: recovery refuses
/// to open such a pool as well.
#[test]
fn an_unreadable_log_is_cut_only_on_request() {
    let pool = rich();
    let (at, last) = records(&pool.disk).pop().unwrap();
    let disk = pool.disk.copy();
    disk.fail_reads_of(at / 4096 + last.total_blocks());
    let (lost, cut) = salvage(&pool, &disk);
    let cut = cut.unwrap();
    assert_eq!((cut.lsn, cut.last_lsn), (last.lsn + 1, None));
    assert!(cut.to_string().contains("the log ends here"), "{cut}");
    assert_eq!(lost, Lost::new());
}

/// The log spans several segments, and is damaged at the first record of one.
#[test]
fn the_loss_of_a_record_at_the_start_of_a_segment_is_detected() {
    let (disk, store) = pool(256 << 20);
    let id = volume(&store, 64 * MIB);
    store.checkpoint().unwrap();
    (0..40).for_each(|mib| write(&store, id, mib * MIB, &distinct(MIB, mib)).unwrap());
    drop(store);
    let records = records(&disk);
    let first =
        records.windows(2).find(|pair| pair[1].0 != pair[0].0 + pair[0].1.total_blocks() * 4096);
    let (at, header) = first.expect("a second segment")[1];
    let damaged = disk.copy();
    damaged.flip(at, 100);
    let Err(SalvageError::LogIsCut(cut)) = Salvage::open(damaged.clone(), WHOLE) else {
        panic!("the log was cut silently");
    };
    assert_eq!(cut.lsn, header.lsn);
    assert_eq!(cut.last_lsn, Some(records.last().unwrap().1.lsn));
    let salvage = Salvage::open(damaged, CUT).unwrap();
    let mib = header.lsn - records[0].1.lsn;
    let expected: Vec<u8> = (0..mib).flat_map(|mib| distinct(MIB, mib)).collect();
    let mut lost = Lost::new();
    compare(&salvage, id, &expected, &mut lost);
    assert!(lost.is_empty(), "{lost:?}");
}
