//! The stored states of hosts for each volume, over a restart.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::VolumeId;
use format::HostState;
use format::target_state::{NexusName, Registration, decode_incarnation, encode_incarnation};

use super::memory::MemoryStore;
use super::{new_array, new_volume};
use crate::{Array, REGISTRATIONS_MAX};

/// Returns a registration with the longest names.
fn registration(number: usize) -> Registration {
    let initiator = format!("iqn.2026-11.com.example:{number:0>199}");
    assert_eq!(initiator.len(), 223);
    let nexus = NexusName { target_port: u16::MAX, id: [0xff; 16], host: initiator };
    Registration { nexus, key: u64::MAX - number as u64 }
}

fn kept(count: usize) -> HostState {
    let registrations: Vec<_> = (0..count).map(registration).collect();
    let holder = count.checked_sub(1).map(|last| last as u16);
    HostState { type_code: Some(5), holder, registrations, ..HostState::default() }
}

fn volume(array: &Array, name: &str) -> VolumeId {
    array.create_volume(new_volume(name, 4096)).unwrap().id
}

fn rows_of(store: &MemoryStore) -> Vec<usize> {
    let rows = store.kept.lock();
    rows.0.iter().filter(|(key, _)| key.starts_with(b"Sv")).map(|(_, value)| value.len()).collect()
}

#[test]
fn any_number_of_registrations_is_stored_and_removed() {
    let (store, array) = new_array();
    let (one, two) = (volume(&array, "one"), volume(&array, "two"));
    let generation = array.generation();
    let other = HostState { type_code: None, holder: None, ..kept(3) };
    array.keep_host_state(two, Some(other.clone())).unwrap();
    for count in [1, 0, 200, 201, REGISTRATIONS_MAX, 400, 1] {
        array.keep_host_state(one, Some(kept(count))).unwrap();
        let rows = rows_of(&store);
        assert_eq!(rows.len(), 1 + count.div_ceil(200).max(1), "{count}");
        // The limits of the store for a value and for a change.
        assert!(rows.iter().all(|bytes| *bytes <= 64 << 10));
        assert!(rows.iter().sum::<usize>() < 250 << 10);
        let again = Array::open(store.clone(), false).unwrap();
        assert_eq!(again.host_states(), [(one, kept(count)), (two, other.clone())]);
        assert_eq!(array.host_states(), again.host_states());
    }
    array.keep_host_state(one, None).unwrap();
    array.keep_host_state(one, None).unwrap();
    assert_eq!(Array::open(store, false).unwrap().host_states(), [(two, other)]);
    assert_eq!(array.generation(), generation, "no initiator learns of it");
    let error = array.keep_host_state(one, Some(kept(REGISTRATIONS_MAX + 1))).unwrap_err();
    assert_eq!(error.code(), "limit_reached");
}

#[test]
fn registrations_end_with_their_volume() {
    let (store, array) = new_array();
    let id = volume(&array, "short");
    array.keep_host_state(id, Some(kept(300))).unwrap();
    array.destroy_volume("short", 1).unwrap();
    array.eradicate_volume("short").unwrap();
    assert!(rows_of(&store).is_empty());
    array.keep_host_state(id, Some(kept(1))).unwrap();
    assert!(rows_of(&store).is_empty() && array.host_states().is_empty());
    assert!(Array::open(store, false).unwrap().host_states().is_empty());
}

#[test]
fn a_state_that_the_store_refuses_is_not_shown() {
    let (store, array) = new_array();
    let id = volume(&array, "full");
    array.keep_host_state(id, Some(kept(1))).unwrap();
    store.refuses.store(true, Ordering::Relaxed);
    let error = array.keep_host_state(id, Some(kept(2))).unwrap_err();
    assert_eq!(error.code(), "pool_full");
    array.keep_host_state(id, Some(kept(1))).unwrap(); // it is so already
    assert_eq!(array.host_states(), [(id, kept(1))]);
}

/// Opens the pool like a start.
fn started(store: &Arc<MemoryStore>) -> Array {
    store.openings.fetch_add(1, Ordering::Relaxed);
    let array = Array::open(store.clone(), false).unwrap();
    array.begin_incarnation().unwrap();
    array
}

/// Returns the number in the key of earlier programs.
fn noted(store: &MemoryStore) -> Option<u64> {
    store.kept.lock().0.get(&b"Si"[..]).map(|value| decode_incarnation(value).unwrap())
}

fn note(store: &MemoryStore, incarnation: u64) {
    let value = encode_incarnation(incarnation);
    store.kept.lock().0.insert(b"Si".to_vec(), value);
}

#[test]
fn each_power_on_is_an_incarnation_and_states_record_theirs() {
    let (store, array) = new_array();
    let id = volume(&array, "one");
    let array = started(&store);
    let of = |incarnation| HostState { incarnation, ..kept(1) };
    array.keep_host_state(id, Some(kept(1))).unwrap();
    // As another controller reads it.
    let other = Array::open(store.clone(), false).unwrap();
    assert_eq!((other.incarnation(), other.host_states()), (1, vec![(id, of(1))]));
    // A start commits nothing: so a full pool starts as well.
    store.refuses.store(true, Ordering::Relaxed);
    let changes = store.changes.lock().len();
    let other = started(&store);
    assert_eq!((other.incarnation(), other.host_states()), (2, vec![(id, of(1))]));
    assert_eq!(store.changes.lock().len(), changes);
    store.refuses.store(false, Ordering::Relaxed);
    other.keep_host_state(id, Some(kept(1))).unwrap();
    let again = Array::open(store.clone(), false).unwrap();
    assert_eq!((again.incarnation(), again.host_states()), (2, vec![(id, of(2))]));
    assert_eq!(noted(&store), None);
}

/// Earlier programs counted starts in a key, possibly further than the pool itself. Their states
/// belong to no later start.
#[test]
fn the_count_of_earlier_programs_is_a_lower_bound_until_the_next_change() {
    let (store, array) = new_array();
    let id = volume(&array, "one");
    store.openings.store(39, Ordering::Relaxed);
    let array = started(&store);
    array.keep_host_state(id, Some(kept(1))).unwrap();
    note(&store, 40);
    store.openings.store(3, Ordering::Relaxed);
    let array = started(&store);
    assert_eq!(array.incarnation(), 41);
    assert_eq!(array.host_states()[0].1.incarnation, 40);
    assert_eq!(noted(&store), Some(40), "a start commits nothing");
    array.keep_host_state(id, Some(kept(1))).unwrap();
    assert_eq!((array.host_states()[0].1.incarnation, noted(&store)), (41, None));
    assert_eq!(started(&store).incarnation(), 42);
}

/// An earlier program may open a pool of version 2 again, and continues the count of the key.
#[test]
fn a_pool_of_version_2_has_its_incarnation_in_the_key_too() {
    let (store, array) = new_array();
    let id = volume(&array, "one");
    store.is_old.store(true, Ordering::Relaxed);
    note(&store, 4);
    store.openings.store(6, Ordering::Relaxed);
    let array = started(&store);
    assert_eq!((array.incarnation(), noted(&store)), (7, Some(4)));
    array.keep_host_state(id, Some(kept(2))).unwrap();
    assert_eq!((array.host_states()[0].1.incarnation, noted(&store)), (7, Some(7)));
    array.keep_host_state(id, Some(kept(3))).unwrap();
    let last = store.changes.lock().last().cloned().unwrap();
    assert!(last.iter().all(|key| key != b"Si"), "it says so already");
    // The pool is upgraded to version 3.
    store.is_old.store(false, Ordering::Relaxed);
    let array = started(&store);
    array.keep_host_state(id, Some(kept(1))).unwrap();
    assert_eq!((array.host_states()[0].1.incarnation, noted(&store)), (8, None));
}

/// Returns the records of a volume, with their keys.
fn pairs(store: &MemoryStore) -> Vec<(Vec<u8>, Vec<u8>)> {
    let kept = store.kept.lock();
    let pairs = kept.0.iter().filter(|(key, _)| key.starts_with(b"Sv"));
    pairs.map(|(key, value)| (key.clone(), value.clone())).collect()
}

#[test]
fn inconsistent_parts_are_refused() {
    let (store, array) = new_array();
    let id = volume(&array, "damaged");
    array.keep_host_state(id, Some(kept(300))).unwrap();
    let rows = pairs(&store);
    let changed = |row: usize, at: usize| {
        let mut value = rows[row].1.clone();
        value[at] ^= 1;
        Some(value)
    };
    // Missing parts, versions, counts of parts, types, holders.
    let bad = [
        (0, None),
        (1, None),
        (1, changed(1, 0)),
        (1, changed(1, 2)),
        (1, changed(1, 32)),
        (0, changed(0, 34)),
        (1, Some(Vec::new())),
    ];
    for (row, value) in bad {
        let damaged = Arc::new(MemoryStore::default());
        *damaged.kept.lock() = store.kept.lock().clone();
        match value {
            Some(value) => drop(damaged.kept.lock().0.insert(rows[row].0.clone(), value)),
            None => drop(damaged.kept.lock().0.remove(&rows[row].0)),
        }
        assert_eq!(Array::open(damaged, false).unwrap_err().code(), "damaged");
    }
    // A record of a nonexistent volume, and unknown keys.
    for (key, value) in rows.into_iter().chain([(b"Sx".to_vec(), Vec::new())]) {
        let damaged = Arc::new(MemoryStore::default());
        damaged.kept.lock().0.insert(key, value);
        assert_eq!(Array::open(damaged, false).unwrap_err().code(), "damaged");
    }
}

/// A pool of an earlier version: reservations as JSON, in two parts.
#[test]
fn reservations_of_earlier_versions_are_read_and_replaced_with_the_next_change() {
    let (store, array) = new_array();
    let id = volume(&array, "old");
    let key = |part: u64| {
        let mut key = vec![b'r'];
        key.extend(id.0.to_be_bytes());
        key.extend(part.to_be_bytes());
        key
    };
    let part = |who: &str, holder: &str| {
        let head = r#"{"v":1,"parts":2,"type":5,"holder":"#;
        format!(r#"{head}{holder},"registrations":[["{who}",2207613190145,2,77]]}}"#)
    };
    let put = |part: u64, text: String| store.kept.lock().0.insert(key(part), text.into_bytes());
    put(0, part("iqn.one", "1"));
    put(1, part("iqn.two", "1"));
    let old = Array::open(store.clone(), false).unwrap();
    let mut isid = [0; 16];
    isid[..6].copy_from_slice(&[2, 2, 0, 0, 0, 1]);
    let registration = |host: &str| {
        let nexus = NexusName { target_port: 2, id: isid, host: host.into() };
        Registration { nexus, key: 77 }
    };
    let want = HostState {
        aptpl: true,
        type_code: Some(5),
        holder: Some(1),
        registrations: vec![registration("iqn.one"), registration("iqn.two")],
        ..HostState::default()
    };
    assert_eq!(old.host_states(), [(id, want.clone())]);
    let is_old = || store.kept.lock().0.contains_key(&key(0));
    drop(old);
    let old = started(&store);
    assert!(is_old(), "a start alone changes no volume");
    let changed = HostState { generation: 1, ..want };
    old.keep_host_state(id, Some(changed.clone())).unwrap();
    assert!(!is_old() && !store.kept.lock().0.contains_key(&key(1)));
    let again = Array::open(store.clone(), false).unwrap();
    assert_eq!(again.host_states(), [(id, HostState { incarnation: 1, ..changed })]);
    again.keep_host_state(id, None).unwrap();
    assert!(pairs(&store).is_empty());
    for (first, second) in [("1", "0"), ("2", "2")] {
        put(0, part("iqn.one", first));
        put(1, part("iqn.two", second));
        assert_eq!(Array::open(store.clone(), false).unwrap_err().code(), "damaged");
    }
}
