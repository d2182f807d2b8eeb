//! Records that this version no longer keeps.

use super::*;

/// Returns a store with the lab's reports of an earlier version, and a record that no version could
/// read.
fn with_reports() -> (Arc<MemoryStore>, Vec<Vec<u8>>) {
    let (store, _) = new_array();
    let keys = [b"Lweekly".to_vec(), b"Lother".to_vec()];
    let values = [br#"{"v":1,"name":"weekly","measured":{}}"#.to_vec(), b"\xff".to_vec()];
    store.kept.lock().0.extend(keys.iter().cloned().zip(values));
    (store, keys.to_vec())
}

#[test]
fn reports_of_the_lab_are_dropped_by_the_first_change() {
    let (store, keys) = with_reports();
    let are_kept = || keys.iter().all(|key| store.kept.lock().0.contains_key(key));
    let changes = store.changes.lock().len();
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!((store.changes.lock().len(), are_kept()), (changes, true), "opening writes nothing");
    store.refuses.store(true, Ordering::Relaxed);
    assert!(array.create_volume(new_volume("a", 4096)).is_err());
    store.refuses.store(false, Ordering::Relaxed);
    assert!(are_kept());
    array.create_volume(new_volume("a", 4096)).unwrap();
    assert!(keys.iter().all(|key| !store.kept.lock().0.contains_key(key)));
    // They are removed once: the store in memory refuses to remove a nonexistent record.
    array.create_volume(new_volume("b", 4096)).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.counts().volumes, 2);
}
