//! Records that this version refuses, and those that it no longer keeps.

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

#[test]
fn damaged_records_are_refused_without_quoting_them() {
    let bad: [(&[u8], &[u8]); 13] = [
        (b"r\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\0", b"{\"v\":1}"),
        (b"x", b"{\"v\":1}"),
        (b"L\0h\0\0\0\0\0\0\0\x01\x01", b"{\"v\":1,\"at_ms\":1}"),
        (b"L\0x\0\0\0\0\0\0\0\x01\0\x01", b"{\"v\":1,\"at_ms\":1}"),
        (b"L\0m\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01", b"{\"v\":1}"),
        (b"s", b"{\"v\":2}"),
        (b"s", b"{\"v\":1}"),
        (b"s", b""),
        (
            b"s",
            b"{\"v\":1,\"name\":\"a\",\"target_name\":\"iqn.2026-11.com.example\",\
              \"company_id\":1,\"offloads_off\":[\"teleport\"]}",
        ),
        (b"v123", b"{\"v\":1}"),
        (b"h\0\0\0\0\0\0\0\x01", b"{\"v\":1,\"chap\":{\"secret\":\"correct horse\"}}"),
        (b"c\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x01", b"{\"v\":1,\"lun\":1}"),
        (
            b"v\0\0\0\0\0\0\0\x01",
            b"{\"v\":1,\"name\":\"a\",\"size_sectors\":8,\"block_bytes\":512,\
              \"company_id\":1,\"created_ms\":0}",
        ),
    ];
    for (key, value) in bad {
        let store = Arc::new(MemoryStore::default());
        store.kept.lock().0.insert(key.to_vec(), value.to_vec());
        let error = Array::open(store, false).unwrap_err();
        assert_eq!(error.code(), "damaged", "{error}");
        assert!(!error.to_string().contains("horse"), "{error}");
    }
}
