//! Every class of durable byte, with one bit flipped.

mod damaged_leaf;
mod lost_pages;
mod moved;
mod one_copy;
mod reduced;
mod replayed;
mod restarted;

use format::geometry::UNITS_PER_BLOCK;
use format::label::LABEL_OFFSETS_BYTES;
use format::map::NODE_BYTES;
use format::page::{PageRef, StreamRef};
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;
use format::{ChunkId, ChunkRow, Place};

use super::*;
use crate::{
    DamageList, Finding, InspectOptions, Repair, ScrubStep, StoreError, TableName, What, inspect,
};

const BLOCKS: u64 = 700;
pub(super) const COLD: OpenOptions = OpenOptions {
    // All metadata of these small pools, and a few blocks of data.
    memory_bytes: 2 << 20,
    durability: crate::Durability::Commit,
    checkpoint_log_bytes: 1 << 40,
    tuning: crate::Tuning::DEFAULT,
    upgrade: true,
    discard: false,
    takes_over: None,
    log_end: None,
};

/// A pool with content of all kinds: a volume with data, zeros, patterns and holes, a second one
/// that shares leaves with it, a key, and a long log after the checkpoint.
struct Pool {
    disk: Arc<MemoryDisk>,
    volumes: [VolumeId; 2],
    content: [Vec<u8>; 2],
}

fn make() -> Pool {
    let (disk, store) = pool(1 << 30);
    let volumes = [volume(&store, 8 * MIB), volume(&store, 600 * MIB)];
    let config = vec![(b"key".to_vec(), Some(vec![7; 9000]))];
    store.change(Change { config, ..Change::default() }).unwrap();
    let mut content = [vec![0; 8 << 20], vec![0; 8 << 20]];
    let put = |content: &mut Vec<u8>, id, block: u64, bytes: &[u8]| {
        write(&store, id, block * 8, bytes).unwrap();
        content[block as usize * 4096..][..bytes.len()].copy_from_slice(bytes);
    };
    for at in (0..BLOCKS).step_by(50) {
        put(&mut content[0], volumes[0], at, &distinct(400, at + 1));
    }
    put(&mut content[0], volumes[0], 100, &[0; 40_960]);
    put(&mut content[0], volumes[0], 120, &[5; 40_960]);
    // Two whole leaves, and blocks that are referenced twice.
    let segments = vec![
        segment(volumes[0], 0, volumes[1], 0, 2 * MIB),
        segment(volumes[0], 2 * MIB + 800, volumes[1], 2 * MIB + 808, 160),
    ];
    store.execute(VolumeRequest::Copy { segments }).unwrap();
    let (from, to) = (&content[0].clone(), &mut content[1]);
    to[..2 << 20].copy_from_slice(&from[..2 << 20]);
    let at = (2 << 20) + 400 * 1024;
    to[at + 4096..at + 4096 + 81_920].copy_from_slice(&from[at..at + 81_920]);
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    for at in 0..40 {
        put(&mut content[0], volumes[0], 1000 + at * 3, &distinct(16, 900 + at));
    }
    drop(store);
    Pool { disk, volumes, content }
}

fn open(pool: &Pool) -> Store {
    Store::open(pool.disk.clone(), COLD).unwrap()
}

fn scrub(store: &Store) -> Vec<Finding> {
    assert!(store.scrub_start(5));
    for _ in 0..100_000 {
        match store.scrub_step(64, 6).unwrap() {
            ScrubStep::Complete => {
                let DamageList { findings, findings_more, .. } = store.damage();
                assert_eq!(findings_more, 0);
                return findings;
            }
            ScrubStep::More { .. } => {}
            other => panic!("{other:?}"),
        }
    }
    panic!("the pass never ends");
}

fn flip(disk: &MemoryDisk, offset_bytes: u64, bit: u64) {
    disk.flip(offset_bytes, bit);
}

fn offset(store: &Store, place: Place) -> u64 {
    store.world.medium.geometry().offset_bytes(place)
}

/// Reads all blocks of both volumes, one by one: each is right, or MEDIUM ERROR with its own
/// sector. Returns the lost ones.
fn lost(pool: &Pool, store: &Store) -> Vec<(VolumeId, u64)> {
    let mut lost = Vec::new();
    for (id, content) in pool.volumes.iter().zip(&pool.content) {
        for block in 0..content.len() as u64 / 4096 {
            let range = SectorRange::new(block * 8, 8);
            match store.execute(VolumeRequest::Read { volume: *id, range }) {
                Ok(VolumeReply::Data(data)) => {
                    let want = &content[block as usize * 4096..][..4096];
                    assert!(data.to_vec() == want, "block {block} of {id} is wrong");
                }
                Err(VolumeError::Medium { sector }) => {
                    assert_eq!(sector, range.start);
                    lost.push((*id, block));
                }
                other => panic!("{other:?}"),
            }
        }
    }
    lost
}

/// Returns the blocks named in findings, of those that [`lost`] reads.
fn named(findings: &[Finding]) -> Vec<(VolumeId, u64)> {
    let ranges = findings.iter().flat_map(|finding| &finding.ranges);
    let mut blocks: Vec<(VolumeId, u64)> = ranges
        .flat_map(|named| {
            let first = named.range.start.0 / 8;
            (first..first + named.range.count.0 / 8).map(|block| (named.volume, block))
        })
        .filter(|(_, block)| *block < (8 << 20) / 4096)
        .collect();
    blocks.sort_unstable();
    blocks
}

/// Returns the blocks that the inspection of a pool names, of those that [`lost`] reads. The
/// inspection continues after what it can't read.
fn inspected(pool: &Pool) -> Vec<(VolumeId, u64)> {
    let options = InspectOptions { data: true, ..InspectOptions::default() };
    let report = inspect(pool.disk.clone(), options).unwrap();
    assert_eq!(report.lost_more, 0);
    let ranges = report.lost.iter().flat_map(|lost| {
        let first = lost.offset_bytes / 4096;
        let blocks = first..first + lost.length_bytes / 4096;
        blocks.map(|block| (VolumeId(lost.volume), block))
    });
    ranges.filter(|(_, block)| *block < (8 << 20) / 4096).collect()
}

/// Returns the reference to a stored page of a table.
fn page_of(store: &Store, table: TableName, level: u8, number: u64) -> PageRef {
    let superblock = store.checkpointing.lock().superblock().clone();
    let root = match table {
        TableName::Chunks => superblock.chunks,
        TableName::Nodes => superblock.nodes,
        TableName::Volumes => superblock.volumes,
        TableName::Leaves => superblock.leaves,
        TableName::Segments => superblock.segment_table,
    };
    let mut page = root.page;
    for above in (level..root.height).rev() {
        let index = number >> (8 * (above - level)) & 255;
        let directory = store.world.medium.read_page(page).unwrap().content;
        page = PageRef::in_directory(&directory[..], index as usize);
    }
    page
}

/// Returns the leaves of the key-value space: their numbers, and the first piece of each.
fn stored_leaves(store: &Store) -> Vec<(u64, StreamRef)> {
    let mut leaves = Vec::new();
    store.world.leaves.visit(&store.world.medium, &mut |_| {}, &mut |number, raw| {
        leaves.push((number, format::LeafRow::decode(raw).unwrap().first));
    });
    leaves
}

/// Returns the location of each class of durable byte, scrub's name for it, and the bits of it to
/// choose from.
fn classes(store: &Store) -> Vec<(&'static str, What, u64, u64)> {
    let world = &store.world;
    let superblock = store.checkpointing.lock().superblock().clone();
    let mut classes = Vec::new();
    for (copy, at) in SUPERBLOCK_OFFSETS_BYTES.into_iter().enumerate() {
        classes.push(("superblock", What::Superblock(copy as u8), at, 4096 * 8));
    }
    for (copy, at) in LABEL_OFFSETS_BYTES.into_iter().enumerate() {
        classes.push(("label", What::Label(copy as u8), at, 4096 * 8));
    }
    let streams = [superblock.config, superblock.pending, superblock.segments];
    for (index, stream) in streams.into_iter().enumerate() {
        let bits = u64::from(stream.length_bytes) * 8;
        if bits > 0 {
            let at = offset(store, stream.page.place);
            classes.push(("stream", What::Stream(index as u8), at, bits));
        }
    }
    assert!(superblock.chunks.height > 0);
    let mut page = |class, table, level, number| {
        let at = offset(store, page_of(store, table, level, number).place);
        classes.push((class, What::Page { table, level, number }, at, 4096 * 8));
    };
    page("directory", TableName::Chunks, superblock.chunks.height, 0);
    page("chunk rows", TableName::Chunks, 0, 0);
    page("chunk rows", TableName::Chunks, 0, 2);
    page("node rows", TableName::Nodes, 0, 0);
    page("volume rows", TableName::Volumes, 0, 0);
    page("rows of leaves", TableName::Leaves, 0, 0);
    assert!(superblock.segment_table.height > 0);
    page("directory of segments", TableName::Segments, superblock.segment_table.height, 0);
    page("segment rows", TableName::Segments, 0, 0);
    for (number, leaf) in stored_leaves(store) {
        let bits = u64::from(leaf.length_bytes) * 8;
        classes.push(("key-value leaf", What::Leaf(number), offset(store, leaf.page.place), bits));
    }
    for id in 1..superblock.next_node.0 {
        if let Ok(row) = world.nodes.row(&world.medium, format::NodeId(id)) {
            let class = if row.level == 1 { "leaf" } else { "inner node" };
            let at = offset(store, row.place);
            classes.push((class, What::Node(id), at, NODE_BYTES as u64 * 8));
        }
    }
    for id in (1..superblock.next_chunk.0).step_by(97) {
        let row = world.chunks.get(&world.medium, id, ChunkRow::decode).unwrap();
        if let Some(row) = row {
            classes.push(("chunk", What::Chunk(id), offset(store, row.place), 4096 * 8));
        }
    }
    classes
}

fn found(findings: &[Finding], what: What, at: u64) -> Finding {
    let finding = findings.iter().find(|finding| finding.what == what);
    let finding = finding.unwrap_or_else(|| panic!("{what:?} was not found: {findings:?}"));
    assert_eq!(finding.offset_bytes, at, "{what:?}");
    finding.clone()
}

#[test]
fn a_pass_over_a_sound_pool_finds_nothing_and_reads_it_all() {
    let pool = make();
    let store = open(&pool);
    assert_eq!(scrub(&store), []);
    let status = store.scrub_status();
    assert!(!status.running && status.pass == 1 && status.completed_s == 6);
    let live = store.pool_status().data_bytes / 4096;
    assert!(status.blocks_done >= live, "{status:?}, {live} blocks of data");
    assert_eq!(status.blocks_done, status.blocks_total);
    assert_eq!(store.scrub_step(64, 7).unwrap(), ScrubStep::Idle);
}

/// With all metadata in memory, any flipped bit of it is rewritten, and nothing is lost.
#[test]
fn a_flipped_bit_of_each_class_is_found_and_repaired_from_memory() {
    let probe = make();
    let count = classes(&open(&probe)).len();
    for index in 0..count {
        let pool = make();
        let store = open(&pool);
        assert_eq!(lost(&pool, &store), []);
        let (class, what, at, bits) = classes(&store)[index];
        let bit = (index as u64).wrapping_mul(0x9e37_79b9) % bits;
        flip(&pool.disk, at, bit);
        let finding = found(&scrub(&store), what, at);
        if class == "chunk" {
            // Few are cached.
            let lost = lost(&pool, &store);
            assert_eq!(finding.repair == Repair::Done, lost.is_empty(), "{what:?}");
            assert!(lost == named(&[finding]), "{what:?}");
            continue;
        }
        assert_eq!(finding.repair, Repair::Done, "{class} {what:?}");
        assert_eq!(scrub(&store), [], "{class} {what:?}");
        assert_eq!(lost(&pool, &store), [], "{class} {what:?}");
        assert_sound(&store);
        drop(store);
        let store = open(&pool);
        assert_eq!(lost(&pool, &store), [], "{class} {what:?}");
        assert_sound(&store);
    }
}

#[test]
fn a_corrupt_record_is_superseded_by_a_checkpoint() {
    for part in 0..3 {
        let pool = make();
        let store = open(&pool);
        let superblock = store.checkpointing.lock().superblock().clone();
        let log = superblock.log;
        let place = Place { segment: log.segment, offset_units: log.block * UNITS_PER_BLOCK };
        let at = offset(&store, place);
        // The header, the entries, and the payload.
        flip(&pool.disk, at, [8 * 8, 100 * 8, 4096 * 8 + 77][part]);
        let findings = scrub(&store);
        let finding = found(&findings, What::Record(log.lsn), at);
        assert_eq!(finding.repair, Repair::Done);
        let lost_blocks = lost(&pool, &store);
        // Its payload is the content of blocks: only that is lost.
        assert_eq!(lost_blocks.len(), usize::from(part == 2));
        assert_eq!(named(&findings), lost_blocks);
        drop(store);
        let store = open(&pool);
        assert_eq!(lost(&pool, &store), lost_blocks);
    }
}

#[test]
fn bytes_without_a_checksum_are_never_read() {
    let pool = make();
    let store = open(&pool);
    let superblock = store.checkpointing.lock().superblock().clone();
    // After the end of a stream or a leaf, up to the end of its block.
    let stream = stored_leaves(&store)[0].1;
    let end = offset(&store, stream.page.place) + u64::from(stream.length_bytes);
    assert!(!end.is_multiple_of(4096));
    flip(&pool.disk, end, 3);
    // After the log's end.
    let position = store.writer.lock().log.position();
    let place = Place { segment: position.segment, offset_units: position.block * UNITS_PER_BLOCK };
    flip(&pool.disk, offset(&store, place), 9);
    // After a record's entries, up to the end of its header's block.
    let first = Place {
        segment: superblock.log.segment,
        offset_units: superblock.log.block * UNITS_PER_BLOCK,
    };
    flip(&pool.disk, offset(&store, first) + 4000, 1);
    assert_eq!(scrub(&store), []);
    drop(store);
    let store = open(&pool);
    assert_eq!(lost(&pool, &store), []);
    assert_sound(&store);
}

#[test]
fn a_damaged_chunk_is_rewritten_from_the_cache() {
    let pool = make();
    let store = Store::open(pool.disk.clone(), OpenOptions::default()).unwrap();
    assert_eq!(lost(&pool, &store), []);
    let row = store.world.chunk(ChunkId(1)).unwrap();
    flip(&pool.disk, offset(&store, row.place), 12345);
    let finding = found(&scrub(&store), What::Chunk(1), offset(&store, row.place));
    assert_eq!(finding.repair, Repair::Done);
    assert_eq!(store.scrub_status().repairs, 1);
    assert_ne!(store.world.chunk(ChunkId(1)).unwrap().place, row.place);
    assert_eq!(scrub(&store), []);
    assert_sound(&store);
    drop(store);
    assert_eq!(lost(&pool, &open(&pool)), []);
}

/// The pass continues while blocks are overwritten, freed and moved, and reports none of that as
/// damage.
#[test]
fn changes_during_a_pass_are_not_damage() {
    for durability in [crate::Durability::Commit, crate::Durability::Flush] {
        let pool = make();
        let options = OpenOptions { durability, ..COLD };
        let store = Store::open(pool.disk.clone(), options).unwrap();
        for round in 0..40 {
            store.scrub_start(round);
            for step in 0..6 {
                store.scrub_step(24, round).unwrap();
                let at = (round * 37 + step * 101) % 1500;
                write(&store, pool.volumes[0], at * 8, &distinct(80, round * 10 + step)).unwrap();
                match step {
                    1 => drop(store.housekeep()),
                    2 if round % 3 == 0 => store.checkpoint().unwrap(),
                    3 if round % 4 == 0 => drop(store.reclaim_segment().unwrap()),
                    _ => {}
                }
            }
            assert!(store.damage().findings.is_empty(), "{:?}", store.damage());
        }
        assert_sound(&store);
    }
}
