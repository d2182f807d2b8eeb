//! Which incarnation of a pool durable state belongs to.

use format::FormatVersion;
use format::superblock::SUPERBLOCK_OFFSETS_BYTES;

use super::*;
use crate::StoreError;

fn made(version: FormatVersion) -> Arc<MemoryDisk> {
    let disk = MemoryDisk::new(256 << 20);
    Store::create_as(&*disk, &[7; 64], 16 << 20, version).unwrap();
    disk
}

fn opened(disk: &Arc<MemoryDisk>, upgrade: bool) -> Store {
    Store::open(disk.clone(), OpenOptions { upgrade, ..OpenOptions::default() }).unwrap()
}

fn number(store: &Store) -> u64 {
    store.incarnation().number
}

/// Makes something of the current incarnation durable.
fn keep_something(store: &Store) {
    let config = vec![(b"Skept".to_vec(), Some(number(store).to_le_bytes().to_vec()))];
    store.change(Change { config, ..Change::default() }).unwrap();
}

/// Returns the highest incarnation of anything durable.
fn kept(store: &Store) -> u64 {
    let config = store.config();
    let number = |value: &[u8]| u64::from_le_bytes(value.try_into().unwrap());
    config.iter().find(|(key, _)| key == b"Skept").map_or(0, |(_, value)| number(value))
}

/// This holds after any crash, and with either superblock lost.
#[test]
fn no_opening_reuses_an_incarnation_with_durable_state() {
    for version in [FormatVersion::V2, FormatVersion::V3] {
        for writes in 0..12 {
            let disk = made(version);
            (0..3).for_each(|_| keep_something(&opened(&disk, false)));
            disk.fail_after(writes);
            let options = OpenOptions { upgrade: writes % 2 == 0, ..OpenOptions::default() };
            if let Ok(store) = Store::open(disk.clone(), options) {
                let config = vec![(b"Skept".to_vec(), Some(number(&store).to_le_bytes().to_vec()))];
                let _ = store.change(Change { config, ..Change::default() });
            }
            disk.fail_after(u64::MAX);
            for lost in [None, Some(0), Some(1)] {
                let disk = disk.copy();
                if let Some(lost) = lost {
                    disk.flip_one(SUPERBLOCK_OFFSETS_BYTES[lost] + 100, 0);
                }
                let Ok(looked) = Store::load(disk.clone(), OpenOptions::default()) else {
                    assert!(lost.is_some() && writes < 4, "{writes} writes");
                    continue;
                };
                for upgrade in [false, true] {
                    let store = opened(&disk.copy(), upgrade);
                    assert!(number(&store) > kept(&looked), "{version:?}, {writes} writes");
                    keep_something(&store);
                }
            }
        }
    }
}

/// A controller that takes over continues the incarnation that it has followed, and no other.
#[test]
fn a_takeover_continues_the_incarnation_unless_the_pool_was_opened_since() {
    for (version, goes_on) in [(FormatVersion::V2, false), (FormatVersion::V3, true)] {
        let disk = made(version);
        let takeover = |seen| {
            let options =
                OpenOptions { upgrade: false, takes_over: Some(seen), ..Default::default() };
            Store::open(disk.clone(), options).unwrap()
        };
        let seen = number(&opened(&disk, false));
        for _ in 0..2 {
            let store = takeover(seen);
            assert_eq!((store.has_taken_over(), number(&store) == seen), (goes_on, goes_on));
            keep_something(&store);
        }
        let store = opened(&disk, false);
        assert!(number(&store) > seen && !store.has_taken_over());
        drop(store);
        let store = takeover(seen);
        assert!(number(&store) > seen + 1 && !store.has_taken_over(), "{version:?}");
    }
}

#[test]
fn opening_for_use_begins_an_incarnation_and_inspection_does_not() {
    let disk = made(FormatVersion::V3);
    for opening in 1..4 {
        let store = opened(&disk, false);
        assert_eq!((number(&store), store.incarnation().is_stored), (opening, true));
        store.checkpoint().unwrap();
        let looked = Store::load(disk.clone(), OpenOptions::default()).unwrap();
        assert_eq!((number(&looked), number(&store)), (opening, opening));
    }
}

/// The number keeps counting, whether an opening upgrades the pool or its use does.
#[test]
fn an_upgrade_keeps_the_incarnation() {
    for in_use in [false, true] {
        let disk = made(FormatVersion::V2);
        (0..4).for_each(|_| drop(opened(&disk, false)));
        let store = opened(&disk, !in_use);
        assert_eq!((number(&store), store.incarnation().is_stored), (5, !in_use));
        if in_use {
            assert!(store.upgrade().unwrap());
        }
        assert_eq!((number(&store), store.incarnation().is_stored), (5, true));
        store.checkpoint().unwrap();
        assert_eq!(number(&opened(&disk, false)), 6);
    }
}

#[test]
fn a_raised_incarnation_is_durable() {
    let disk = made(FormatVersion::V3);
    let store = opened(&disk, false);
    let id = volume(&store, MIB);
    disk.fail_after(0);
    store.raise_incarnation(40).unwrap_err();
    assert_eq!(number(&store), 1);
    disk.fail_after(u64::MAX);
    let store = opened(&disk, false);
    store.raise_incarnation(40).unwrap();
    store.raise_incarnation(7).unwrap();
    assert_eq!(number(&store), 40);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    assert_eq!(number(&opened(&disk.copy(), false)), 41);
    store.checkpoint().unwrap();
    let store = opened(&disk, false);
    assert_eq!(number(&store), 41);
    assert!(read(&store, id, 0, 8) == distinct(8, 1));
    assert!(matches!(store.raise_incarnation(u64::MAX), Err(StoreError::Damaged(_))));
    assert_eq!(number(&opened(&disk, false)), 42);
}
