//! Reservations that are kept through a restart.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::VolumeId;

use super::memory::MemoryStore;
use super::{new_array, new_volume};
use crate::{Array, REGISTRATIONS_MAX, Registration, Reservations};

/// A registration with the longest names.
fn registration(number: usize) -> Registration {
    let initiator = format!("iqn.2026-11.com.example:{number:0>199}");
    assert_eq!(initiator.len(), 223);
    Registration {
        initiator,
        isid: [0xff; 6],
        target_port: u16::MAX,
        key: u64::MAX - number as u64,
    }
}

fn kept(count: usize) -> Reservations {
    let registrations: Vec<_> = (0..count).map(registration).collect();
    Reservations { type_code: Some(5), holder: count.checked_sub(1), registrations }
}

fn volume(array: &Array, name: &str) -> VolumeId {
    array.create_volume(new_volume(name, 4096)).unwrap().id
}

fn reservation_rows(store: &MemoryStore) -> Vec<usize> {
    let rows = store.kept.lock();
    rows.0.iter().filter(|(key, _)| key[0] == b'r').map(|(_, value)| value.len()).collect()
}

#[test]
fn any_number_of_registrations_comes_back_and_goes_again() {
    let (store, array) = new_array();
    let (one, two) = (volume(&array, "one"), volume(&array, "two"));
    let generation = array.generation();
    let other = Reservations { type_code: None, holder: None, ..kept(3) };
    array.keep_reservations(two, Some(other.clone())).unwrap();
    for count in [1, 0, 200, 201, REGISTRATIONS_MAX, 400, 1] {
        array.keep_reservations(one, Some(kept(count))).unwrap();
        let rows = reservation_rows(&store);
        assert_eq!(rows.len(), 1 + count.div_ceil(200).max(1), "{count}");
        // The limits of the store for a value and for a change.
        assert!(rows.iter().all(|bytes| *bytes <= 64 << 10));
        assert!(rows.iter().sum::<usize>() < 250 << 10);
        let again = Array::open(store.clone(), false).unwrap();
        assert_eq!(again.reservations(), [(one, kept(count)), (two, other.clone())]);
        assert_eq!(array.reservations(), again.reservations());
    }
    array.keep_reservations(one, None).unwrap();
    array.keep_reservations(one, None).unwrap();
    assert_eq!(Array::open(store, false).unwrap().reservations(), [(two, other)]);
    assert_eq!(array.generation(), generation, "no initiator is told");
    let error = array.keep_reservations(one, Some(kept(REGISTRATIONS_MAX + 1))).unwrap_err();
    assert_eq!(error.code(), "limit_reached");
}

#[test]
fn they_go_with_their_volume_and_can_not_come_after_it() {
    let (store, array) = new_array();
    let id = volume(&array, "short");
    array.keep_reservations(id, Some(kept(300))).unwrap();
    array.destroy_volume("short", 1).unwrap();
    array.eradicate_volume("short").unwrap();
    assert!(reservation_rows(&store).is_empty());
    array.keep_reservations(id, Some(kept(1))).unwrap();
    assert!(reservation_rows(&store).is_empty() && array.reservations().is_empty());
    assert!(Array::open(store, false).unwrap().reservations().is_empty());
}

#[test]
fn what_the_store_refuses_is_not_shown() {
    let (store, array) = new_array();
    let id = volume(&array, "full");
    array.keep_reservations(id, Some(kept(1))).unwrap();
    store.refuses.store(true, Ordering::Relaxed);
    let error = array.keep_reservations(id, Some(kept(2))).unwrap_err();
    assert_eq!(error.code(), "pool_full");
    array.keep_reservations(id, Some(kept(1))).unwrap(); // it is so already
    assert_eq!(array.reservations(), [(id, kept(1))]);
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let (store, array) = new_array();
    let id = volume(&array, "damaged");
    array.keep_reservations(id, Some(kept(300))).unwrap();
    let rows: Vec<(Vec<u8>, Vec<u8>)> = {
        let kept = store.kept.lock();
        kept.0
            .iter()
            .filter(|(key, _)| key[0] == b'r')
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect()
    };
    let replaced = |from: &str, to: &str| {
        let text = String::from_utf8(rows[1].1.clone()).unwrap();
        assert!(text.contains(from), "{}", &text[..80]);
        Some(text.replacen(from, to, 1).into_bytes())
    };
    let bad: [(usize, Option<Vec<u8>>); 6] = [
        (0, None),
        (1, None),
        (1, replaced("\"parts\":2", "\"parts\":3")),
        (1, replaced("\"type\":5", "\"type\":6")),
        (1, replaced("\"holder\":299", "\"holder\":300")),
        (1, replaced("281474976710655", "281474976710656")), // an ISID of more than six bytes
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
    // A record of a volume that is not there.
    let damaged = Arc::new(MemoryStore::default());
    damaged.kept.lock().0.extend(rows);
    assert_eq!(Array::open(damaged, false).unwrap_err().code(), "damaged");
}
