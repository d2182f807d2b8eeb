//! Every class of metadata with one bad copy: nothing is lost, and the copy is rewritten.

use super::*;
use crate::Next;

/// Both locations of a piece of metadata; of a superblock or a label, its own.
fn copies(class: &str, at: u64) -> Vec<u64> {
    let half = (16 << 20) / 2;
    if ["superblock", "label"].contains(&class) { vec![at] } else { vec![at, at + half] }
}

/// Calls `test` for each copy of each class of metadata, in a pool with a bit of it flipped.
fn for_each_copy(test: impl Fn(&Pool, What, u64)) {
    let probe = make();
    let classes = classes(&Store::load(probe.disk.clone(), COLD).unwrap());
    let mut met = 0;
    for (index, (class, what, at, bits)) in classes.into_iter().enumerate() {
        if class == "chunk" {
            continue;
        }
        for copy in copies(class, at) {
            assert!(probe.disk.block(copy / 4096)[..] == probe.disk.block(at / 4096)[..]);
            let pool = make();
            pool.disk.flip_one(copy, (index as u64).wrapping_mul(0x85eb_ca6b) % bits);
            test(&pool, what, copy);
            met += 1;
        }
    }
    assert!(met > 20, "{met}");
}

#[test]
fn one_bad_copy_of_each_class_costs_nothing_and_scrubbing_rewrites_it() {
    for_each_copy(|pool, what, at| {
        let store = open(pool);
        assert_eq!(lost(pool, &store), [], "{what:?}");
        let findings = scrub(&store);
        // Opening writes the epoch it takes over the older superblock, and rewrites a bad label.
        if !matches!(what, What::Superblock(_) | What::Label(_)) || !findings.is_empty() {
            assert_eq!(found(&findings, what, at).repair, Repair::Done, "{what:?}");
        }
        assert_eq!(scrub(&store), [], "{what:?}");
        assert_sound(&store);
        drop(store);
        let store = open(pool);
        assert_eq!(lost(pool, &store), [], "{what:?}");
        assert_eq!(scrub(&store), [], "{what:?}");
    });
}

/// A read of the second copy rewrites the first one: then there are two again.
#[test]
fn a_read_of_the_second_copy_repairs_the_first() {
    let (pages, nodes) = (std::cell::Cell::new(0), std::cell::Cell::new(0));
    for_each_copy(|pool, what, at| {
        let store = open(pool);
        assert_eq!(lost(pool, &store), [], "{what:?}");
        let has_read_second = store.has_bad_copies();
        while store.maintain().unwrap() != Next::Nothing {}
        assert!(!store.has_bad_copies());
        if has_read_second {
            let met = if matches!(what, What::Node(_)) { &nodes } else { &pages };
            met.set(met.get() + 1);
            let repaired = store.damage().findings;
            assert_eq!(found(&repaired, what, at).repair, Repair::Done, "{what:?}");
            assert_eq!(scrub(&store), [], "{what:?}");
        }
        assert_eq!(lost(pool, &store), [], "{what:?}");
        assert_sound(&store);
    });
    assert!(pages.get() > 2 && nodes.get() > 2, "{pages:?}, {nodes:?}");
}

/// Both halves of a metadata segment lose something, but not the same.
#[test]
fn different_metadata_may_be_bad_in_both_halves() {
    let pool = make();
    let classes = classes(&Store::load(pool.disk.clone(), COLD).unwrap());
    let metadata =
        classes.iter().filter(|(class, ..)| !["chunk", "superblock", "label"].contains(class));
    let mut turned = std::collections::BTreeSet::new();
    for (index, (class, _, at, _)) in metadata.enumerate() {
        // Two nodes share a block.
        if turned.insert(at / 4096) {
            pool.disk.flip_one(copies(class, *at)[index % 2], 77);
        }
    }
    assert!(turned.len() > 8, "{turned:?}");
    let store = open(&pool);
    assert_eq!(lost(&pool, &store), []);
    assert!(scrub(&store).iter().all(|finding| finding.repair == Repair::Done));
    assert_eq!(scrub(&store), []);
    assert_sound(&store);
}

/// The headers of all records after the checkpoint, one at a time; that of the last one, once the
/// log is at rest.
#[test]
fn a_bad_header_of_a_record_costs_nothing() {
    let probe = make();
    let store = open(&probe);
    (0..2).for_each(|_| store.note_rest());
    let (mut at, end) = {
        let superblock = store.checkpointing.lock().superblock().clone();
        (superblock.log, store.writer.lock().log.position().lsn)
    };
    let mut reader = crate::log::log_reader::LogReader::new(&store.world.medium);
    let mut headers = Vec::new();
    while at.lsn < end {
        let place = Place { segment: at.segment, offset_units: at.block * UNITS_PER_BLOCK };
        headers.push(offset(&store, place));
        at = crate::log::replay::next_record(&mut reader, &at, 0).unwrap().unwrap().behind();
    }
    drop(store);
    assert_eq!(headers.len(), 41, "40 writes, and what is written at rest");
    for header in headers {
        let disk = probe.disk.copy();
        disk.flip_one(header, 8 * 8);
        let pool = Pool { disk, volumes: probe.volumes, content: probe.content.clone() };
        let store = open(&pool);
        assert_eq!(lost(&pool, &store), []);
        assert_sound(&store);
        assert!(scrub(&store).iter().all(|finding| finding.repair == Repair::Done));
        assert_eq!(scrub(&store), []);
    }
}

/// The last write is intact, although its record is the last one with entries.
#[test]
fn only_one_record_is_written_when_the_log_becomes_idle() {
    let pool = make();
    let store = open(&pool);
    let lsn = || store.writer.lock().log.end().lsn;
    while store.maintain().unwrap() != Next::Nothing {}
    store.note_rest();
    let rested = lsn();
    for _ in 0..5 {
        store.note_rest();
        assert_eq!(store.maintain().unwrap(), Next::Nothing);
    }
    assert_eq!(lsn(), rested, "one record is enough");
    write(&store, pool.volumes[0], 0, &distinct(8, 12)).unwrap();
    (0..3).for_each(|_| store.note_rest());
    assert_eq!(lsn(), rested + 2);
}
