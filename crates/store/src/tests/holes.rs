//! Where the next checkpoint goes when segments are short, and pages of the last one are bad.

use std::collections::BTreeSet;

use format::page::ROWS_PER_PAGE;

use super::nearly_full::{SEGMENT_BYTES, TUNING};
use super::*;
use crate::StoreError;
use crate::checkpoint::holes::Holes;

const LEAVES: u64 = 600;

/// A pool with nodes in several pages of rows, scattered over some metadata segments with holes
/// between them.
fn scattered() -> (Arc<MemoryDisk>, Store, VolumeId) {
    let disk = MemoryDisk::new((16 << 20) + 64 * SEGMENT_BYTES);
    Store::create_with_segments(&*disk, &[5; 64], SEGMENT_BYTES).unwrap();
    let options = OpenOptions { tuning: TUNING, ..OpenOptions::default() };
    let store = Store::open(disk.clone(), options).unwrap();
    let id = volume(&store, LEAVES * MIB);
    for round in 0..12 {
        for leaf in (0..LEAVES).filter(|leaf| round == 0 || leaf * 7 % 13 == round) {
            write(&store, id, leaf * MIB, &[round as u8 + 1; 4096]).unwrap();
        }
        store.checkpoint().unwrap();
    }
    (disk, store, id)
}

/// Returns the device block of a page of node rows.
fn row_page(store: &Store, node: u64) -> u64 {
    let medium = &store.world.medium;
    let page = store.world.nodes.table.stored_at(medium, (0, node / ROWS_PER_PAGE)).unwrap();
    assert!(!page.is_none());
    medium.geometry().offset_bytes(page.place) / 4096
}

fn found(store: &Store) -> BTreeSet<u64> {
    let checkpointer = store.checkpointing.lock();
    let mut holes = Holes::find(&store.world, &checkpointer, &BTreeSet::new());
    let geometry = store.world.medium.geometry();
    std::iter::from_fn(|| holes.take(1)).map(|at| geometry.offset_bytes(at) / 4096).collect()
}

/// Compaction wrote a checkpoint of its own after each one that freed segments, which wrote again
/// what hosts had changed since: in an aged pool half of all checkpoint bytes.
#[test]
fn scattered_metadata_is_written_with_a_due_checkpoint() {
    let (_disk, store, id) = scattered();
    let metadata = || store.writer.lock().state.segments.tally().metadata.len();
    let count = || store.pool_status().checkpoint_count;
    write(&store, id, 0, &[77; 4096]).unwrap();
    let (metadata_before, count_before) = (metadata(), count());
    let mut pass = None;
    store.checkpoint_compacting(&mut pass).unwrap();
    assert!(pass.is_none() && count() == count_before + 1, "{} checkpoints", count());
    assert!(metadata() < metadata_before, "{} of {metadata_before}", metadata());
    assert_sound(&store);
}

/// A checkpoint read the page to find holes, and the error ended all writing.
#[test]
fn a_bad_page_of_node_rows_does_not_end_writing_when_segments_are_short() {
    let (disk, store, id) = scattered();
    disk.fail_reads_of(row_page(&store, 300));
    write(&store, id, 0, &[77; 4096]).unwrap();
    let held = take_all_free(&store);
    match store.checkpoint() {
        Ok(()) | Err(StoreError::NoRoom { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    assert!(!store.has_failed(), "one bad page ended all writing");
    for segment in held {
        store.writer.lock().state.segments.free_dead_one(segment);
    }
    write(&store, id, 8, &[78; 4096]).unwrap();
    store.checkpoint().unwrap();
    disk.fail_reads_of(u64::MAX);
    assert_sound(&store);
}

/// The blocks below a bad page may be anywhere: none of them may be used as a hole.
#[test]
fn a_bad_page_adds_no_hole_and_keeps_those_of_other_segments() {
    let (disk, store, _) = scattered();
    let all = found(&store);
    assert!(all.len() > 100, "{} holes", all.len());
    let mut left = 0;
    for block in disk.written_blocks() {
        disk.fail_reads_of(block);
        let some = found(&store);
        assert!(some.is_subset(&all), "block {block} adds {:?}", some.difference(&all).next());
        left += usize::from(some.len() < all.len() && !some.is_empty());
    }
    assert!(left > 0, "any bad page takes all holes");
}
