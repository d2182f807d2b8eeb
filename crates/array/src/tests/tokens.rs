//! Stored ROD tokens over a restart and over a takeover.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use block::{SectorRange, VolumeId};
use format::target_state::tokens::{StoredToken, StoredTokenMaker};

use super::{new_array, new_volume};
use crate::Array;

fn token(source: VolumeId, byte: u8) -> StoredToken {
    StoredToken {
        incarnation: 0,
        source,
        inactivity_s: 300,
        token: [byte; 512],
        initiator: "iqn.2026-11.com.example:a".into(),
        pieces: vec![SectorRange::new(u64::from(byte), 8)],
    }
}

fn maker(byte: u8) -> StoredTokenMaker {
    StoredTokenMaker { incarnation: 0, key: [byte; 32], next_id: 10 }
}

fn ids(array: &Array) -> Option<Vec<u64>> {
    array.tokens().map(|(_, tokens)| tokens.into_iter().map(|(id, _)| id).collect())
}

#[test]
fn tokens_survive_a_takeover_and_are_removed_after_a_power_on() {
    let (store, array) = new_array();
    array.begin_incarnation().unwrap();
    assert_eq!(array.tokens(), None);
    let id = array.create_volume(new_volume("one", 4096)).unwrap().id;
    let other = array.create_volume(new_volume("two", 4096)).unwrap().id;
    let made = [(1, Some(token(id, 1))), (2, Some(token(other, 2))), (3, Some(token(id, 3)))];
    array.keep_tokens(Some(maker(7)), made.into()).unwrap();
    array.keep_tokens(None, [(3, None), (9, None)].into()).unwrap();
    let again = Array::open(store.clone(), false).unwrap();
    assert_eq!(again.tokens(), array.tokens());
    let (made_by, tokens) = again.tokens().unwrap();
    assert_eq!((made_by.key, made_by.next_id, tokens.len()), ([7; 32], 10, 2));
    let incarnation = array.incarnation();
    assert_eq!(tokens[0], (1, StoredToken { incarnation, ..token(id, 1) }));
    // A token whose volume is gone is void, even if its end was not stored yet.
    again.destroy_volume("two", 1).unwrap();
    again.eradicate_volume("two").unwrap();
    assert_eq!(ids(&again), Some(vec![1]));

    store.openings.fetch_add(1, Ordering::Relaxed);
    let next = Array::open(store.clone(), false).unwrap();
    next.begin_incarnation().unwrap();
    assert_eq!(next.tokens(), None);
    let rows = || store.kept.lock().0.keys().filter(|key| key.starts_with(b"St")).count();
    assert_eq!(rows(), 2, "a start commits nothing");
    next.keep_tokens(Some(maker(8)), BTreeMap::from([(1, Some(token(id, 4)))])).unwrap();
    assert_eq!((rows(), ids(&next)), (1, Some(vec![1])));
    assert_eq!(ids(&Array::open(store, false).unwrap()), Some(vec![1]));
}
