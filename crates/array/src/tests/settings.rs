//! Settings that hosts notice: offloads and thresholds.

use block::{Offload, Offloads, SectorCount, VolumeId};

mod directory;

use super::*;

#[test]
fn offloads_are_off_by_volume_or_array_and_reported_to_hosts() {
    let iqn = "iqn.2026-11.com.example:1";
    let (store, array) = new_array();
    array.create_host(new_host("esx1", &[iqn])).unwrap();
    for name in ["a", "b"] {
        array.create_volume(new_volume(name, 4096)).unwrap();
        array.connect(name, "esx1", None).unwrap();
    }
    let seen = |array: &Array| {
        let map = array.lun_map(iqn);
        (map.generation, map.luns.values().map(|volume| volume.offloads).collect::<Vec<_>>())
    };
    let (all, first) = (Offloads::ALL, seen(&array));
    assert_eq!(first.1, [all, all]);
    let offloads = vec![(Offload::Unmap, false)];
    let changed = array.update_volume("a", VolumeUpdate { offloads, ..Default::default() });
    let without_unmap = all.with(Offload::Unmap, false);
    assert_eq!(changed.unwrap().offloads, without_unmap);
    let second = seen(&array);
    assert_eq!(second.1, [without_unmap, all]);
    assert!(second.0 > first.0);
    let offloads = vec![(Offload::WriteSame, false)];
    array.change_settings(SettingsChange { offloads, ..Default::default() }).unwrap();
    let third = seen(&array);
    let without_same = all.with(Offload::WriteSame, false);
    assert_eq!(third.1, [without_unmap.and(without_same), without_same]);
    assert!(third.0 > second.0);
    // The setting survives a restart; new volumes take the array's setting.
    let array = Array::open(store, false).unwrap();
    assert_eq!(seen(&array).1, third.1);
    let shown = array.volume("b").unwrap();
    assert_eq!((shown.offloads, shown.offloads_in_effect), (all, without_same));
    let made = array.create_volume(new_volume("c", 4096)).unwrap();
    assert_eq!(made.offloads_in_effect, without_same);
    let offloads = vec![(Offload::WriteSame, true)];
    array.change_settings(SettingsChange { offloads, ..Default::default() }).unwrap();
    assert_eq!(seen(&array).1, second.1);
}

#[test]
fn reduction_is_set_changed_and_inherited_by_clones() {
    let (store, array) = new_array();
    let none = Reduction { deduplication: false, compression: false };
    let made = array.create_volume(NewVolume { reduction: none, ..new_volume("a", 8192) }).unwrap();
    assert_eq!(made.reduction, none);
    let plain = array.create_volume(new_volume("b", 8192)).unwrap();
    assert_eq!(plain.reduction, Reduction::default());
    let set = |name: &str, reduction| {
        array.update_volume(name, VolumeUpdate { reduction, ..Default::default() })
    };
    let volumes = vec!["a".to_owned()];
    let source = SnapshotSource::Volumes(volumes);
    array
        .create_snapshots(&NewSnapshots {
            source,
            suffix: None,
            apply_retention: false,
            created_ms: 1,
        })
        .unwrap();
    // An omitted field does not change; a new size is in the same commit.
    let compressed = ReductionChange { compression: Some(true), ..Default::default() };
    let update =
        VolumeUpdate { reduction: compressed, size_bytes: Some(16384), ..Default::default() };
    let changed = array.update_volume("a", update).unwrap();
    let half = Reduction { compression: true, ..none };
    assert_eq!((changed.reduction, changed.size_bytes), (half, 16384));
    // Nothing changes, so nothing is written; a snapshot is not a volume, so it is refused.
    store.refuses.store(true, Ordering::Relaxed);
    assert_eq!(set("a", compressed).unwrap().reduction, half);
    assert_eq!(set("a.1", compressed).unwrap_err().code(), "no_such_volume");
    let dedup = ReductionChange { deduplication: Some(true), ..Default::default() };
    assert_eq!(set("a", dedup).unwrap_err().code(), "pool_full");
    store.refuses.store(false, Ordering::Relaxed);
    // A clone has the setting of its source; a clone of a snapshot, that of the time of the
    // snapshot.
    for (source, name, expected) in [("a", "c", half), ("a.1", "d", none)] {
        let clone = array.clone_volume(source, VolumeName::new(name).unwrap(), 2).unwrap();
        assert_eq!(clone.reduction, expected, "{source}");
    }
    // An overwritten volume keeps its own setting.
    assert_eq!(array.overwrite_volume("b", "a").unwrap().reduction, Reduction::default());
    let array = Array::open(store, false).unwrap();
    let found = ["a", "b", "c", "d"].map(|name| array.volume(name).unwrap().reduction);
    assert_eq!(found, [half, Reduction::default(), half, none]);
}

#[test]
fn records_without_switches_have_all_offloads_on() {
    let store = Arc::new(MemoryStore::default());
    let settings = b"{\"v\":1,\"name\":\"a\",\"target_name\":\"iqn.2026-11.com.example\",\
                     \"company_id\":1}";
    let volume = b"{\"v\":1,\"name\":\"a\",\"size_sectors\":8,\"block_bytes\":512,\
                   \"company_id\":1,\"created_ms\":0}";
    let mut kept = store.kept.lock();
    kept.0.insert(b"s".to_vec(), settings.to_vec());
    kept.0.insert(b"v\0\0\0\0\0\0\0\x01".to_vec(), volume.to_vec());
    kept.1.insert(VolumeId(1), (SectorCount(8), false));
    drop(kept);
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.settings().offloads, Offloads::ALL);
    assert_eq!(array.settings().space_thresholds.percents(), [80]);
    assert!(!array.is_chap_required());
    assert_eq!(array.volume("a").unwrap().offloads_in_effect, Offloads::ALL);
}

#[test]
fn chap_is_required_once_it_is_set_and_after_a_restart() {
    let (store, array) = new_array();
    assert!(!array.is_chap_required());
    let change = SettingsChange { chap_required: Some(true), ..Default::default() };
    assert!(array.change_settings(change).unwrap().chap_required);
    let array = Array::open(store.clone(), false).unwrap();
    assert!(array.is_chap_required());
    let change = SettingsChange { chap_required: Some(false), ..Default::default() };
    array.change_settings(change).unwrap();
    assert!(!Array::open(store, false).unwrap().is_chap_required());
}

#[test]
fn thresholds_are_checked_ordered_and_kept() {
    let (store, array) = new_array();
    assert_eq!(array.settings().space_thresholds.percents(), [80]);
    for wrong in [vec![0], vec![100], vec![1, 2, 3, 4, 5]] {
        assert_eq!(SpaceThresholds::new(wrong).unwrap_err().code(), "invalid_threshold");
    }
    let space_thresholds = Some(SpaceThresholds::new(vec![95, 70, 70]).unwrap());
    array.change_settings(SettingsChange { space_thresholds, ..Default::default() }).unwrap();
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(array.settings().space_thresholds.percents(), [70, 95]);
    let space_thresholds = Some(SpaceThresholds::new(Vec::new()).unwrap());
    array.change_settings(SettingsChange { space_thresholds, ..Default::default() }).unwrap();
    let array = Array::open(store, false).unwrap();
    assert!(array.settings().space_thresholds.percents().is_empty());
}

#[test]
fn name_servers_are_kept_and_older_records_have_none() {
    let (store, array) = new_array();
    assert_eq!(array.dns(), Dns::default());
    let server = NameServer::new("192.0.2.1:5353").unwrap();
    let set = |servers: Option<Vec<NameServer>>, domain: Option<&str>| {
        let dns = DnsChange { servers, domain: domain.map(str::to_owned) };
        array.change_settings(SettingsChange { dns, ..SettingsChange::default() })
    };
    assert_eq!(set(None, Some("example.com")).unwrap_err().code(), "invalid_dns");
    let made = set(Some(vec![server.clone()]), Some("example.com")).unwrap();
    assert_eq!((made.dns.servers(), made.dns.domain()), (&[server][..], "example.com"));
    let again = Array::open(store.clone(), false).unwrap();
    assert_eq!(again.dns(), made.dns);
    set(Some(Vec::new()), Some("")).unwrap();
    let stored = store.kept.lock().0[b"s".as_slice()].clone();
    assert!(
        !String::from_utf8(stored).unwrap().contains("domain"),
        "as an older version writes it"
    );
    assert_eq!(Array::open(store, false).unwrap().dns(), Dns::default());
}
