//! Volume groups: their volumes, and changes of all of these at once.

use block::VolumeLimits;

use super::*;
use crate::array::distinct::CHANGES_MAX;

const GROUP: ContainerKind = ContainerKind::VolumeGroup;

fn group(name: &str) -> ContainerName {
    ContainerName::new(GROUP, name).unwrap()
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

/// Returns an array with a volume group and these volumes.
fn with(volumes: &[&str]) -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    array.create_containers(vec![group("vg")], VolumeLimits::NONE, 1).unwrap();
    for name in volumes {
        array.create_volume(new_volume(name, 4096)).unwrap();
    }
    (store, array)
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn a_volume_is_in_the_group_of_its_name() {
    let (store, array) = with(&["vg/a", "VG/b", "alone"]);
    assert_eq!(array.container(GROUP, "Vg").unwrap().volumes, ["vg/a", "vg/b"]);
    assert_eq!(code(array.create_volume(new_volume("none/a", 4096))), "no_such_volume_group");
    assert_eq!(code(array.create_volume(new_volume("vg/A", 4096))), "volume_exists");
    assert_eq!(
        code(array.create_containers(vec![group("VG")], VolumeLimits::NONE, 1)),
        "volume_group_exists"
    );
    let to = |name: &str| VolumeName::new(name).unwrap();
    assert_eq!(code(array.clone_volume("alone", to("none/c"), 1)), "no_such_volume_group");
    array.clone_volume("vg/a", to("vg/c"), 1).unwrap();
    // Into the group, out of it, and to another name in it.
    array.rename_volume("alone", to("vg/alone")).unwrap();
    array.rename_volume("vg/b", to("b")).unwrap();
    array.rename_volume("vg/c", to("vg/d")).unwrap();
    assert_eq!(code(array.rename_volume("b", to("none/b"))), "no_such_volume_group");
    let expected = ["vg/a", "vg/alone", "vg/d"];
    assert_eq!(array.container(GROUP, "vg").unwrap().volumes, expected);
    // Volumes of groups with similar names are not in it.
    array.create_containers(vec![group("vg-2"), group("vg0")], VolumeLimits::NONE, 1).unwrap();
    array.create_volume(new_volume("vg-2/x", 4096)).unwrap();
    array.create_volume(new_volume("vg0/x", 4096)).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.container(GROUP, "vg").unwrap().volumes, expected);
    let listed: Vec<_> =
        array.containers(GROUP, None, None, 2).into_iter().map(|g| g.name).collect();
    assert_eq!(listed, ["vg", "vg-2"]);
    let next: Vec<_> = array.containers(GROUP, Some("VG-2"), Some(false), 9);
    assert_eq!(next.iter().map(|g| &*g.name).collect::<Vec<_>>(), ["vg0"]);
}

#[test]
fn a_group_is_renamed_with_its_volumes_and_snapshots() {
    let (store, array) = with(&["vg/a", "vg/b", "other"]);
    let iqn = "iqn.2026-11.com.example:1";
    array.create_host(new_host("h", &[iqn])).unwrap();
    array.connect("vg/a", "h", None).unwrap();
    let suffix = Some(Suffix::new("s").unwrap());
    let source = SnapshotSource::Volumes(names(&["vg/a"]));
    let new = NewSnapshots { source, suffix, apply_retention: false, created_ms: 1 };
    array.create_snapshots(&new).unwrap();
    let pg = GroupName::new("pg").unwrap();
    array.create_group(pg, &names(&["vg/a", "other"]), 1).unwrap();
    let source = SnapshotSource::Group("pg".into());
    array.create_snapshots(&NewSnapshots { source, ..new }).unwrap();
    assert_eq!(array.snapshot("pg.s.vg/a").unwrap().name, "pg.s.vg/a");
    array.destroy_volume("vg/b", 5).unwrap();
    let before = array.lun_map(iqn);
    array.rename_container("VG", group("VG")).unwrap();
    assert_eq!(array.rename_container("vg", group("new")).unwrap().volumes, ["new/a"]);
    assert_eq!(code(array.container(GROUP, "vg")), "no_such_volume_group");
    assert_eq!(array.snapshot("new/a.s").unwrap().name, "new/a.s");
    assert_eq!(array.snapshot("PG.s.NEW/a").unwrap().name, "pg.s.new/a");
    assert_eq!(array.group("pg").unwrap().volumes, ["new/a", "other"]);
    assert_eq!(array.lun_map(iqn).generation, before.generation, "hosts notice nothing");
    array.create_containers(vec![group("vg")], VolumeLimits::NONE, 1).unwrap();
    assert_eq!(code(array.rename_container("new", group("VG"))), "volume_group_exists");
    let array = Array::open(store, false).unwrap();
    array.recover_volume("new/b").unwrap();
    assert_eq!(array.container(GROUP, "new").unwrap().volumes, ["new/a", "new/b"]);
}

#[test]
fn a_group_is_destroyed_and_recovered_with_its_volumes() {
    let (store, array) = with(&["vg/a", "vg/b", "vg/gone"]);
    array.create_host(new_host("h", &["iqn.2026-11.com.example:1"])).unwrap();
    array.connect("vg/a", "h", None).unwrap();
    array.destroy_volume("vg/gone", 5).unwrap();
    let vg = names(&["vg"]);
    assert_eq!(code(array.recover_containers(GROUP, &vg)), "not_destroyed");
    assert_eq!(code(array.eradicate_containers(GROUP, &vg, true)), "not_destroyed");
    assert_eq!(code(array.destroy_containers(GROUP, &vg, true, 9)), "existing_connections");
    assert!(array.volume("vg/b").unwrap().eradicate_ms.is_none(), "all of them or none");
    array.disconnect("vg/a", "h").unwrap();
    let ended = array.destroy_containers(GROUP, &vg, true, 9).unwrap();
    assert!(ended[0].eradicate_ms.is_some() && ended[0].volumes.is_empty());
    assert_eq!(code(array.destroy_containers(GROUP, &vg, true, 9)), "volume_group_destroyed");
    assert_eq!(code(array.create_volume(new_volume("vg/c", 4096))), "volume_group_destroyed");
    assert_eq!(
        code(array.create_containers(vec![group("vg")], VolumeLimits::NONE, 9)),
        "volume_group_destroyed"
    );
    assert_eq!(code(array.rename_container("vg", group("x"))), "volume_group_destroyed");
    let array = Array::open(store, false).unwrap();
    assert_eq!(code(array.recover_volume("vg/a")), "volume_group_destroyed");
    let back = array.recover_containers(GROUP, &vg).unwrap();
    assert_eq!(back[0].volumes, ["vg/a", "vg/b"], "what had ended before stays so");
    array.recover_volume("vg/gone").unwrap();
}

#[test]
fn a_group_is_eradicated_with_its_volumes_on_request_or_when_its_time_is_over() {
    let (store, array) = with(&["vg/a", "vg/b"]);
    array.create_containers(vec![group("later"), group("empty")], VolumeLimits::NONE, 1).unwrap();
    array.create_volume(new_volume("later/a", 4096)).unwrap();
    array.destroy_containers(GROUP, &names(&["vg", "later", "empty"]), true, 1_000).unwrap();
    array.eradicate_containers(GROUP, &names(&["vg"]), true).unwrap();
    assert_eq!(code(array.volume("vg/a")), "no_such_volume");
    array.create_containers(vec![group("vg")], VolumeLimits::NONE, 1).unwrap();
    array.create_volume(new_volume("vg/a", 4096)).unwrap();
    // A volume that was destroyed before, and is kept for longer, keeps its group.
    let longer = SettingsChange { eradication_delay_s: Some(10), ..Default::default() };
    array.change_settings(longer).unwrap();
    array.destroy_volume("vg/a", 1_000).unwrap();
    let shorter = SettingsChange { eradication_delay_s: Some(1), ..Default::default() };
    array.change_settings(shorter).unwrap();
    array.destroy_containers(GROUP, &names(&["vg"]), true, 1_000).unwrap();
    let day_ms = 86_400_000;
    let left = |array: &Array| -> Vec<String> {
        array.containers(GROUP, None, None, 9).into_iter().map(|group| group.name).collect()
    };
    array.eradicate_due(2_000).unwrap();
    assert_eq!(left(&array), ["empty", "later", "vg"]);
    array.eradicate_due(11_000).unwrap();
    array.eradicate_due(11_000).unwrap();
    assert_eq!(left(&array), ["empty", "later"]);
    let array = Array::open(store.clone(), false).unwrap();
    for _ in 0..4 {
        array.eradicate_due(1_000 + day_ms).unwrap();
    }
    assert_eq!(left(&array), [] as [&str; 0]);
    assert_eq!(code(array.volume("later/a")), "no_such_volume");
    let log = array.audit_log(None, 9);
    assert!(log.iter().any(|entry| entry.deed.names == "later"), "{log:?}");
    assert!(!store.kept.lock().0.keys().any(|key| key[0] == b'V'));
}

#[test]
fn the_maximum_number_of_volumes_of_a_group_fits_one_commit() {
    let (_, array) = with(&[]);
    let new = |from: usize, to: usize| {
        (from..to).map(|n| new_volume(&format!("vg/v{n}"), 4096)).collect::<Vec<_>>()
    };
    array.create_volumes(new(0, 300)).unwrap();
    assert_eq!(code(array.create_volumes(new(300, 501))), "limit_reached");
    array.create_volumes(new(300, CONTAINER_VOLUMES_MAX)).unwrap();
    assert_eq!(code(array.create_volume(new_volume("vg/more", 4096))), "limit_reached");
    let renamed = array.rename_container("vg", group("all")).unwrap();
    assert_eq!(renamed.volumes.len(), CHANGES_MAX);
    array.create_containers(vec![group("vg")], VolumeLimits::NONE, 1).unwrap();
    array.create_volume(new_volume("vg/one", 4096)).unwrap();
    let both = names(&["all", "vg"]);
    assert_eq!(code(array.destroy_containers(GROUP, &both, true, 1)), "limit_reached");
    array.destroy_containers(GROUP, &both[..1], true, 1).unwrap();
    array.eradicate_containers(GROUP, &both[..1], true).unwrap();
    assert_eq!(array.counts().volumes, 1);
    let many: Vec<_> = (0..CONTAINERS_MAX).map(|n| group(&format!("g{n}"))).collect();
    for piece in many[1..].chunks(CHANGES_MAX) {
        array.create_containers(piece.to_vec(), VolumeLimits::NONE, 1).unwrap();
    }
    assert_eq!(
        code(array.create_containers(vec![group("x")], VolumeLimits::NONE, 1)),
        "limit_reached"
    );
}

#[test]
fn a_volume_with_a_missing_group_is_damage() {
    let (store, _) = with(&["vg/a"]);
    store.kept.lock().0.retain(|key, _| key[0] != b'V');
    assert!(Array::open(store, false).is_err());
}

#[test]
fn the_limits_of_a_group_are_seen_by_the_hosts_of_its_volumes() {
    let (store, array) = with(&["vg/a", "out"]);
    let iqn = "iqn.2026-11.com.example:1";
    array.create_host(new_host("h", &[iqn])).unwrap();
    array.connect("vg/a", "h", Some(1)).unwrap();
    array.connect("out", "h", Some(2)).unwrap();
    let seen = |array: &Array| {
        let luns = array.lun_map(iqn).luns.clone();
        (luns[&1].group.map(|group| group.limits), luns[&2].group.map(|group| group.limits))
    };
    assert_eq!(seen(&array), (None, None));
    let before = array.lun_map(iqn).generation;
    let limits = VolumeLimits { bandwidth_bytes_per_s: Some(1 << 20), iops: Some(100) };
    let change = LimitsChange { bandwidth_bytes_per_s: Some(Some(1 << 20)), iops: Some(Some(100)) };
    let changed = array.limit_volume_groups(&names(&["VG"]), change).unwrap();
    assert_eq!(changed[0].limits, limits);
    assert_eq!(seen(&array), (Some(limits), None));
    assert!(array.lun_map(iqn).generation > before, "sessions look again");
    let number = array.lun_map(iqn).luns[&1].group.unwrap().number;
    assert_eq!(array.volume_group_limits(number), limits);
    // Into it, and out of it; a new name of the group is the same group.
    array.rename_volume("out", VolumeName::new("vg/in").unwrap()).unwrap();
    assert_eq!(seen(&array), (Some(limits), Some(limits)));
    array.rename_container("vg", group("team")).unwrap();
    array.rename_volume("team/a", VolumeName::new("a").unwrap()).unwrap();
    assert_eq!(seen(&array), (None, Some(limits)));
    let array = Array::open(store, false).unwrap();
    assert_eq!(seen(&array), (None, Some(limits)));
    assert_eq!(array.volume_group_limits_by_name(), [("team".to_owned(), limits)]);
    // One of the limits is removed, then the other.
    let change = LimitsChange { iops: Some(None), ..LimitsChange::default() };
    array.limit_volume_groups(&names(&["team"]), change).unwrap();
    assert_eq!(seen(&array).1.unwrap().iops, None);
    let change = LimitsChange { bandwidth_bytes_per_s: Some(None), ..LimitsChange::default() };
    array.limit_volume_groups(&names(&["team"]), change).unwrap();
    assert_eq!(seen(&array), (None, None));
    let bad = LimitsChange { iops: Some(Some(99)), ..LimitsChange::default() };
    assert_eq!(code(array.limit_volume_groups(&names(&["team"]), bad)), "invalid_limit");
    let low = VolumeLimits { iops: Some(1), ..VolumeLimits::NONE };
    assert_eq!(code(array.create_containers(vec![group("x")], low, 1)), "invalid_limit");
    array.create_containers(vec![group("x")], limits, 1).unwrap();
    assert_eq!(array.container(GROUP, "x").unwrap().limits, limits);
}

#[test]
fn a_group_of_an_older_version_has_no_limits() {
    let (store, _) = with(&["vg/a"]);
    let row = br#"{"v":1,"name":"vg","created_ms":1}"#.to_vec();
    let mut kept = store.kept.lock();
    let (_, old) = kept.0.iter_mut().find(|(key, _)| key[0] == b'V').unwrap();
    assert_eq!(*old, row, "one without limits is stored as it was");
    drop(kept);
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.container(GROUP, "vg").unwrap().limits, VolumeLimits::NONE);
}
