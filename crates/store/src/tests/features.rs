//! Pools of version 3 that lack features: they are readable as they are, and get the features while
//! they are in use.

use std::collections::BTreeMap;

use format::{Features, Superblock};
use segments::Shared;

use super::target_state::keep;
use super::upgraded::{assert_stands_twice, golden, hash, options, settle};
use super::*;
use crate::{Next, Salvage, SalvageOptions, UpgradeStatus};

/// A pool of version 3 without features, as left by the last program that knew none when it was
/// killed: 564 keys, one of them with 64 KB; volumes, snapshots and clones, compressed and shared
/// data, patterns and holes; two checkpoints, and 15 records after the last.
pub(super) const V3: &[u8] = include_bytes!("golden/v3.zst");

/// What that program read of each volume.
const V3_HOLDS: [(u64, u64); 7] = [
    (1, 0xf78d_de1f_0af7_95c5),
    (2, 0x296a_b24e_e84a_fe3d),
    (3, 0x40f0_c981_ded7_a0d1),
    (4, 0x03cb_72f6_acc7_338b),
    (5, 0x4f63_0496_e27d_b004),
    (6, 0xfaff_25e7_4620_5d7f),
    (7, 0xf78d_de1f_0af7_95c5),
];

/// The number of its keys, and the hash of keys and values ([`hash_of_config`]).
const V3_CONFIG: (usize, u64) = (564, 0xecb7_8447_141a_e141);

/// A pool of version 3 with leaves and a segment stream, as left by the last program that knew no
/// other feature when it was killed: 562 keys; volumes, snapshots and clones, compressed data,
/// patterns and holes; two checkpoints, and 15 records after the last.
pub(super) const V3_LEAVES: &[u8] = include_bytes!("golden/v3-leaves.zst");

/// What that program read of each volume.
const V3_LEAVES_HOLDS: [(u64, u64); 6] = [
    (1, 0xab70_eecd_0ac4_9523),
    (2, 0x0374_2141_200c_3943),
    (3, 0xdc07_9ca1_6755_80f1),
    (4, 0x9a75_5f75_9062_019b),
    (5, 0x45b9_bf98_4083_5d60),
    (6, 0xdc07_9ca1_6755_80f1),
];

const V3_LEAVES_CONFIG: (usize, u64) = (562, 0x6ac0_68f6_f1bc_e156);

/// A pool of version 3 with leaves and a segment table, as left by the last program that knew no
/// other feature when it was killed: 515 keys; volumes, a snapshot and a clone, compressed data,
/// patterns, zeros and holes; two checkpoints, and 30 records after the last.
pub(super) const V3_SEGMENT_TABLE: &[u8] = include_bytes!("golden/v3-segment-table.zst");

/// What that program read of each volume.
const V3_SEGMENT_TABLE_HOLDS: [(u64, u64); 5] = [
    (1, 0xa982_0270_ef51_a6fb),
    (2, 0xf020_4a6d_d372_87fe),
    (3, 0x905b_e580_d130_6273),
    (4, 0xa982_0270_ef51_a6fb),
    (5, 0xd5ca_88ac_b25c_a6b5),
];

const V3_SEGMENT_TABLE_CONFIG: (usize, u64) = (515, 0x21f3_8013_d3c1_ac2f);

fn hash_of_config(store: &Store) -> (usize, u64) {
    let config = store.config();
    let mut bytes = Vec::new();
    for (key, value) in &config {
        bytes.extend_from_slice(key);
        bytes.push(0);
        bytes.extend_from_slice(value);
        bytes.push(1);
    }
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    (config.len(), bytes.iter().fold(0xcbf2_9ce4_8422_2325, add))
}

fn assert_holds_all_of_v3(store: &Store) {
    assert_eq!(V3_HOLDS.map(|(id, _)| (id, hash(store, id))), V3_HOLDS);
    assert_eq!(hash_of_config(store), V3_CONFIG);
    assert_sound(store);
}

fn assert_holds_all_of_v3_leaves(store: &Store) {
    assert_eq!(V3_LEAVES_HOLDS.map(|(id, _)| (id, hash(store, id))), V3_LEAVES_HOLDS);
    assert_eq!(hash_of_config(store), V3_LEAVES_CONFIG);
    assert_sound(store);
}

fn assert_holds_all_of_v3_segment_table(store: &Store) {
    let holds = V3_SEGMENT_TABLE_HOLDS.map(|(id, _)| (id, hash(store, id)));
    assert_eq!(holds, V3_SEGMENT_TABLE_HOLDS);
    assert_eq!(hash_of_config(store), V3_SEGMENT_TABLE_CONFIG);
    assert_sound(store);
}

/// A packed pool, and a check of its content.
type Lacking = (&'static [u8], fn(&Store));

/// Pools of version 3 that lack features.
const LACKING: [Lacking; 3] = [
    (V3, assert_holds_all_of_v3),
    (V3_LEAVES, assert_holds_all_of_v3_leaves),
    (V3_SEGMENT_TABLE, assert_holds_all_of_v3_segment_table),
];

/// Asserts that the pool has nothing in an earlier format.
fn assert_is_latest(store: &Store) {
    assert!(store.upgrade_status().is_latest);
    let superblock = store.checkpointing.lock().superblock().clone();
    assert_eq!((superblock.config.length_bytes, superblock.segments.length_bytes), (0, 0));
    assert!(!superblock.leaves.page.is_none() && !superblock.segment_table.page.is_none());
    assert_stands_twice(store);
}

#[test]
fn a_pool_of_version_3_without_features_is_read_as_it_is() {
    let disk = golden(V3);
    let before = disk.copy();
    let store = Store::load(disk.clone(), options(true)).unwrap();
    assert_holds_all_of_v3(&store);
    drop(store);
    let salvage = Salvage::open(disk.clone(), SalvageOptions::default()).unwrap();
    assert_eq!(salvage.config().count(), V3_CONFIG.0);
    assert!(salvage.losses().is_empty());
    assert!(disk.same_as(&before), "inspection changed the pool");
}

/// Opens a pool twice without upgrading it, and changes it: its content stays, and its superblock
/// passes `assert_lacks`.
fn stays_as_it_is(packed: &[u8], assert_holds: fn(&Store), assert_lacks: fn(&Superblock)) {
    let disk = golden(packed);
    for _ in 0..2 {
        let store = Store::open(disk.clone(), options(false)).unwrap();
        assert!(!store.upgrade_status().is_latest);
        keep(&store, &[(b"more", Some(b"value"))]);
        settle(&store);
        store.checkpoint().unwrap();
        keep(&store, &[(b"more", None)]);
        assert_holds(&store);
        assert_lacks(store.checkpointing.lock().superblock());
    }
}

#[test]
fn a_pool_of_version_3_stays_without_features_if_not_upgraded() {
    stays_as_it_is(V3, assert_holds_all_of_v3, |superblock| {
        assert_eq!(superblock.features, Features::default());
        assert!(superblock.config.length_bytes > 0 && superblock.leaves.page.is_none());
    });
}

#[test]
fn a_pool_of_version_3_gets_its_features_when_it_is_opened() {
    for (packed, assert_holds) in LACKING {
        let disk = golden(packed);
        let store = Store::open(disk.clone(), options(true)).unwrap();
        let UpgradeStatus { version, is_latest, left_bytes, .. } = store.upgrade_status();
        // A pool that lacks only labels needs no other work.
        let is_divided = packed == V3_SEGMENT_TABLE;
        assert!(version == 3 && is_latest && (left_bytes == 0) == is_divided);
        assert_holds(&store);
        assert!(is_divided || store.maintenance_due());
        settle(&store);
        assert_is_latest(&store);
        assert_holds(&store);
        drop(store);
        let store = Store::open(disk, options(false)).unwrap();
        assert_is_latest(&store);
        assert_holds(&store);
    }
}

#[test]
fn a_pool_of_version_3_gets_its_features_while_it_is_used() {
    let both = |golden| [false, true].map(|checkpoints| (golden, checkpoints));
    for ((packed, assert_holds), checkpoints) in LACKING.into_iter().flat_map(both) {
        let disk = golden(packed);
        let store = Store::open(disk.clone(), options(false)).unwrap();
        keep(&store, &[(b"more", Some(b"value"))]);
        assert!(store.upgrade().unwrap());
        assert!(!store.upgrade().unwrap(), "it has them already");
        keep(&store, &[(b"more", None), (b"long", None)]);
        if checkpoints {
            store.checkpoint().unwrap();
        }
        if packed != V3_SEGMENT_TABLE {
            keep(&store, &[(b"long", Some(&b"a long value; ".repeat(4600)))]);
        }
        drop(store);
        let store = Store::open(disk.clone(), options(false)).unwrap();
        assert_holds(&store);
        settle(&store);
        assert_is_latest(&store);
    }
}

/// The device fails at each write: the result is a pool with the features or without.
#[test]
fn an_interrupted_feature_upgrade_leaves_a_usable_pool() {
    LACKING.into_iter().for_each(|(packed, assert_holds)| cut_off(packed, assert_holds));
}

fn cut_off(packed: &[u8], assert_holds: fn(&Store)) {
    let mut found = BTreeMap::new();
    for writes in 0..40 {
        let disk = golden(packed);
        disk.fail_after(writes);
        if let Ok(store) = Store::open(disk.clone(), options(true)) {
            while matches!(store.maintain(), Ok(next) if next != Next::Nothing) {}
        }
        let left = disk.copy();
        let store = Store::open(left.clone(), options(false)).unwrap();
        let superblock = store.checkpointing.lock().superblock().clone();
        let Superblock { features, segments, segment_table, .. } = superblock;
        if features.has_labels() {
            assert!(Shared::from(left.clone()).labels().iter().all(Result::is_ok), "at {writes}");
        }
        let form = (features.has_segment_table(), segments.length_bytes > 0);
        assert_ne!(form.1, !segment_table.page.is_none(), "the table is in pages or a stream");
        *found.entry(form).or_insert(0) += 1;
        assert_holds(&store);
        drop(store);
        let store = Store::open(left, options(true)).unwrap();
        settle(&store);
        assert_is_latest(&store);
        assert_holds(&store);
    }
    let forms: Vec<(bool, bool)> = found.keys().copied().collect();
    match packed == V3_SEGMENT_TABLE {
        true => assert_eq!(forms, [(true, false)]),
        false => assert_eq!(forms, [(false, true), (true, false), (true, true)]),
    }
}

#[test]
fn a_pool_with_leaves_is_read_as_it_is() {
    let disk = golden(V3_LEAVES);
    let before = disk.copy();
    let store = Store::load(disk.clone(), options(true)).unwrap();
    assert_holds_all_of_v3_leaves(&store);
    drop(store);
    assert!(disk.same_as(&before), "inspection changed the pool");
}

#[test]
fn a_pool_with_a_segment_table_is_read_as_it_is() {
    let disk = golden(V3_SEGMENT_TABLE);
    let before = disk.copy();
    let store = Store::load(disk.clone(), options(true)).unwrap();
    assert_holds_all_of_v3_segment_table(&store);
    drop(store);
    assert!(disk.same_as(&before), "inspection changed the pool");
}

#[test]
fn a_pool_stays_without_labels_if_not_upgraded() {
    stays_as_it_is(V3_SEGMENT_TABLE, assert_holds_all_of_v3_segment_table, |superblock| {
        assert!(superblock.features.has_segment_table() && !superblock.features.has_labels());
    });
    let disk = golden(V3_SEGMENT_TABLE);
    drop(Store::open(disk.clone(), options(false)).unwrap());
    assert!(Shared::from(disk.clone()).labels().iter().all(Result::is_err));
    drop(Store::open(disk.clone(), options(true)).unwrap());
    assert!(Shared::from(disk).labels().iter().all(Result::is_ok));
}

#[test]
fn a_pool_with_leaves_keeps_its_segment_stream_if_not_upgraded() {
    stays_as_it_is(V3_LEAVES, assert_holds_all_of_v3_leaves, |superblock| {
        assert_eq!(superblock.features.incompatible, Features::LEAVES);
        assert!(superblock.segments.length_bytes > 0 && superblock.segment_table.page.is_none());
    });
}
