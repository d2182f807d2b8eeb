//! Snapshots, clones and groups; destroying volumes and recovering them.

use super::*;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn of(names: &[&str], suffix: Option<&str>) -> NewSnapshots {
    NewSnapshots {
        source: SnapshotSource::Volumes(names.iter().map(|name| (*name).to_owned()).collect()),
        suffix: suffix.map(|suffix| Suffix::new(suffix).unwrap()),
        apply_retention: false,
        created_ms: 9,
    }
}

fn names(array: &Array, filter: SnapshotFilter) -> Vec<String> {
    let found = array.snapshots(&filter, None, usize::MAX).unwrap();
    found.into_iter().map(|snapshot| snapshot.name).collect()
}

fn live(array: &Array) -> Vec<String> {
    names(array, SnapshotFilter { destroyed: Some(false), ..SnapshotFilter::default() })
}

fn destroyed(array: &Array) -> Vec<String> {
    names(array, SnapshotFilter { destroyed: Some(true), ..SnapshotFilter::default() })
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    let error = result.unwrap_err();
    assert!(!error.to_string().contains('\n'), "{error}");
    error.code()
}

fn with_volumes(names: &[&str]) -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    for name in names {
        array.create_volume(new_volume(name, 1 << 30)).unwrap();
    }
    (store, array)
}

#[test]
fn snapshots_are_named_after_their_volume_and_counted() {
    let (store, array) = with_volumes(&["db", "log"]);
    let made = array.create_snapshots(&of(&["db"], None)).unwrap();
    assert_eq!((made[0].name.as_str(), made[0].size_bytes), ("db.1", 1 << 30));
    array.create_snapshots(&of(&["db"], Some("before"))).unwrap();
    array.create_snapshots(&of(&["log", "db"], None)).unwrap();
    assert_eq!(live(&array), ["db.1", "db.2", "db.before", "log.2"]);
    assert_eq!(code(array.create_snapshots(&of(&["db"], Some("BEFORE")))), "snapshot_exists");
    assert_eq!(code(array.create_snapshots(&of(&["db", "DB"], None))), "invalid_volumes");
    assert_eq!(code(array.create_snapshots(&of(&[], None))), "invalid_volumes");
    assert_eq!(code(array.create_snapshots(&of(&["db", "none"], None))), "no_such_volume");
    assert_eq!(code(Suffix::new("7")), "invalid_name");
    // If one fails, none is made: the others would be of another time.
    assert_eq!(live(&array).len(), 4);
    array.rename_volume("db", VolumeName::new("base").unwrap()).unwrap();
    let suffix = |text| Suffix::new(text).unwrap();
    assert_eq!(array.rename_snapshot("base.before", suffix("after")).unwrap().name, "base.after");
    let again = Array::open(store, false).unwrap();
    for array in [&array, &again] {
        assert_eq!(live(array), ["base.1", "base.2", "base.after", "log.2"]);
        let shown = array.snapshot("BASE.After").unwrap();
        assert_eq!((shown.volume.as_str(), shown.suffix.as_str()), ("base", "after"));
        assert_eq!(shown.serial.len(), 24);
        assert_eq!(code(array.snapshot("db.1")), "no_such_snapshot");
        assert_eq!(array.counts().snapshots, 4);
        let page = array.snapshots(&SnapshotFilter::default(), Some("base.2"), 2).unwrap();
        assert_eq!(
            page.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(),
            ["base.after", "log.2"]
        );
        assert_eq!(array.volume("base").unwrap().snapshot_count, 3);
    }
    assert_eq!(again.create_snapshots(&of(&["base"], None)).unwrap()[0].name, "base.3");
}

#[test]
fn damaged_blocks_of_a_snapshot_are_reported_by_its_name_and_lbas() {
    let (_, array) = with_volumes(&["db"]);
    let large = NewVolume { logical_block: LogicalBlockSize::B4096, ..new_volume("big", 1 << 30) };
    array.create_volume(large).unwrap();
    array.create_snapshots(&of(&["db", "big"], Some("daily"))).unwrap();
    for (name, first_lba, count) in [("db.daily", 80, 16), ("big.daily", 10, 2)] {
        let id = array.snapshot(name).unwrap().id;
        let reported = array.damaged_blocks(id, block::SectorRange::new(80, 16));
        let volume = Some(name.to_owned());
        assert_eq!(reported, crate::DamagedBlocks { volume, volume_id: id, first_lba, count });
    }
}

/// Volumes and snapshots that the store has lost to damage remain, with their connections and
/// names: hosts get MEDIUM ERROR. The array's own volume is created again.
#[test]
fn an_array_opens_without_the_volumes_that_the_store_has_lost() {
    let (store, array) = with_volumes(&["a", "b"]);
    array.create_snapshots(&of(&["a", "b"], Some("daily"))).unwrap();
    let lost = [array.volume("b").unwrap().id, array.snapshot("a.daily").unwrap().id];
    let own = array.token_volume().0;
    drop(array);
    lost.into_iter().chain([own]).for_each(|id| store.lose(id));
    let array = crate::Array::open(store.clone(), false).unwrap();
    assert_eq!(array.volume("b").unwrap().id, lost[0]);
    assert_eq!(array.snapshot("a.daily").unwrap().id, lost[1]);
    assert_ne!(array.token_volume().0, own);
    // A volume without any trace in the store is still reported as damage.
    drop(array);
    let missing = crate::Array::open(store.clone(), false).unwrap().volume("a").unwrap().id;
    store.kept.lock().1.remove(&missing);
    assert!(crate::Array::open(store, false).is_err());
}

#[test]
fn a_group_is_snapshotted_as_one() {
    let (store, array) = with_volumes(&["a", "b", "c"]);
    let name = |text: &str| GroupName::new(text).unwrap();
    let volumes = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>();
    array.create_group(name("app"), &volumes(&["a", "b"]), 5).unwrap();
    assert_eq!(code(array.create_group(name("APP"), &[], 5)), "group_exists");
    let group = |suffix: Option<&str>| NewSnapshots {
        source: SnapshotSource::Group("app".into()),
        ..of(&[], suffix)
    };
    array.create_snapshots(&group(None)).unwrap();
    array.create_snapshots(&group(Some("nightly"))).unwrap();
    array.create_snapshots(&of(&["a"], None)).unwrap();
    let change = GroupChange {
        add: volumes(&["c", "a"]),
        remove: volumes(&["b"]),
        ..GroupChange::default()
    };
    assert_eq!(array.change_group("App", &change).unwrap().volumes, ["a", "c"]);
    let array = Array::open(store, false).unwrap();
    array.create_snapshots(&group(None)).unwrap();
    let of_group = SnapshotFilter { group: Some("APP".into()), ..SnapshotFilter::default() };
    let all = ["app.1.a", "app.2.a", "app.nightly.a", "app.1.b", "app.nightly.b", "app.2.c"];
    assert_eq!(names(&array, of_group), all);
    assert_eq!(live(&array)[0], "a.1");
    let renamed = array.rename_snapshot("app.1.a", Suffix::new("x").unwrap());
    assert_eq!(code(renamed), "group_snapshot");
    // A destroyed volume is excluded from the group until it is recovered.
    array.destroy_volume("c", 0).unwrap();
    assert_eq!(array.group("app").unwrap().volumes, ["a"]);
    assert_eq!(array.create_snapshots(&group(None)).unwrap().len(), 1);
    array.recover_volume("c").unwrap();
    assert_eq!(array.group("app").unwrap().volumes, ["a", "c"]);
    // Its snapshots are destroyed, recovered and eradicated with it.
    let app = volumes(&["app"]);
    let count = live(&array).len();
    array.destroy_groups(&app, 7).unwrap();
    assert_eq!(live(&array), ["a.1"]);
    assert_eq!(code(array.create_snapshots(&group(None))), "group_destroyed");
    assert_eq!(code(array.recover_snapshot("app.1.a")), "group_destroyed");
    assert_eq!(code(array.create_group(name("App"), &[], 5)), "group_destroyed");
    assert_eq!(array.snapshot("app.nightly.b").unwrap().eradicate_ms, Some(7 + DAY_MS));
    array.recover_groups(&app).unwrap();
    assert_eq!((live(&array).len(), array.counts().snapshots), (count, count));
    assert_eq!(code(array.eradicate_groups(&app)), "not_destroyed");
    array.destroy_groups(&app, 7).unwrap();
    array.eradicate_groups(&app).unwrap();
    assert_eq!(code(array.group("app")), "no_such_group");
    assert_eq!((live(&array).len(), array.counts().destroyed), (1, 0));
    array.create_group(name("app"), &[], 5).unwrap();
    assert_eq!(code(array.create_snapshots(&group(None))), "empty_group");
}

#[test]
fn volumes_are_overwritten_and_hosts_are_notified_of_the_size() {
    let (store, array) = with_volumes(&["a"]);
    let iqn = "iqn.2026-11.com.example:1";
    array.create_host(new_host("esx1", &[iqn])).unwrap();
    array.connect("a", "esx1", None).unwrap();
    array.create_snapshots(&of(&["a"], Some("old"))).unwrap();
    array.resize_volume("a", 2 << 30, false).unwrap();
    let before = array.lun_map(iqn);
    let clone = array.clone_volume("a.old", VolumeName::new("b").unwrap(), 3).unwrap();
    assert_eq!((clone.size_bytes, clone.created_ms), (1 << 30, 3));
    assert_ne!(clone.serial, array.volume("a").unwrap().serial);
    let name = VolumeName::new("B").unwrap();
    assert_eq!(code(array.clone_volume("a", name, 3)), "volume_exists");
    assert_eq!(array.overwrite_volume("a", "a.old").unwrap().size_bytes, 1 << 30);
    let after = array.lun_map(iqn);
    assert!(after.generation > before.generation);
    assert_eq!(after.luns[&1].size.0 * 512, 1 << 30);
    assert_eq!(after.luns[&1].serial, before.luns[&1].serial);
    assert_eq!(code(array.overwrite_volume("a", "a")), "wrong_source");
    assert_eq!(code(array.overwrite_volume("a", "nobody")), "no_such_volume");
    array.resize_volume("b", 3 << 30, false).unwrap();
    assert_eq!(array.overwrite_volume("a", "b").unwrap().size_bytes, 3 << 30);
    let logical_block = LogicalBlockSize::B4096;
    array.create_volume(NewVolume { logical_block, ..new_volume("4kn", 1 << 20) }).unwrap();
    assert_eq!(code(array.overwrite_volume("a", "4kn")), "wrong_source");
    let again = Array::open(store, false).unwrap();
    assert_eq!(again.volume("a").unwrap(), array.volume("a").unwrap());
}

#[test]
fn objects_destroyed_together_are_recovered_together_until_eradication() {
    let (store, array) = with_volumes(&["a", "b"]);
    array.create_snapshots(&of(&["a"], Some("x"))).unwrap();
    array.create_snapshots(&of(&["a"], Some("y"))).unwrap();
    let gone = array.destroy_snapshot("a.x", HOUR_MS).unwrap();
    assert_eq!(gone.eradicate_ms, Some(HOUR_MS + DAY_MS));
    let shown = array.destroy_volume("a", 2 * HOUR_MS).unwrap();
    assert_eq!(shown.eradicate_ms, Some(2 * HOUR_MS + DAY_MS));
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!((live(&array), destroyed(&array).len()), (vec![], 2));
    assert_eq!((array.counts().volumes, array.counts().destroyed), (1, 2));
    // The name stays taken; the volume can only be recovered or eradicated.
    let reported = array.create_volume(new_volume("A", 4096)).unwrap_err().to_string();
    assert_eq!(
        reported,
        "Volume a has been destroyed. Recover it, or eradicate it to free its name and its space."
    );
    let new_name = || VolumeName::new("c").unwrap();
    assert_eq!(code(array.rename_volume("b", VolumeName::new("a").unwrap())), "volume_destroyed");
    assert_eq!(code(array.rename_volume("a", new_name())), "volume_destroyed");
    assert_eq!(code(array.resize_volume("a", 2 << 30, false)), "volume_destroyed");
    assert_eq!(code(array.create_snapshots(&of(&["a"], None))), "volume_destroyed");
    assert_eq!(code(array.clone_volume("a.y", new_name(), 0)), "snapshot_destroyed");
    assert_eq!(code(array.destroy_volume("a", 0)), "volume_destroyed");
    assert_eq!(code(array.recover_snapshot("a.x")), "volume_destroyed");
    assert_eq!(code(array.recover_volume("b")), "not_destroyed");
    assert_eq!(code(array.eradicate_volume("b")), "not_destroyed");
    array.create_host(new_host("esx1", &[])).unwrap();
    assert_eq!(code(array.connect("a", "esx1", None)), "volume_destroyed");
    assert_eq!(array.volumes(None, true, 9).len(), 1);
    assert_eq!(array.connections(Some("a"), None).unwrap(), []);
    // A snapshot destroyed before the volume stays destroyed.
    assert_eq!(array.recover_volume("a").unwrap().eradicate_ms, None);
    assert_eq!((live(&array), destroyed(&array)), (vec!["a.y".into()], vec!["a.x".into()]));
    assert_eq!(code(array.create_snapshots(&of(&["a"], Some("x")))), "snapshot_destroyed");
    assert_eq!(code(array.eradicate_snapshot("a.y")), "not_destroyed");
    // A new delay applies to objects destroyed from then on.
    let delay =
        |seconds| SettingsChange { eradication_delay_s: Some(seconds), ..Default::default() };
    assert_eq!(code(array.change_settings(delay(0))), "invalid_delay");
    assert_eq!(code(array.change_settings(delay(30 * 86_400 + 1))), "invalid_delay");
    array.change_settings(delay(60)).unwrap();
    assert_eq!(array.destroy_volume("b", 0).unwrap().eradicate_ms, Some(60_000));
    array.eradicate_due(59_999).unwrap();
    assert_eq!(array.counts().destroyed, 2);
    array.eradicate_due(60_000).unwrap();
    assert_eq!((array.take_gone().len(), array.take_gone().len()), (1, 0));
    assert_eq!(code(array.volume("b")), "no_such_volume");
    array.eradicate_due(HOUR_MS + DAY_MS).unwrap();
    assert_eq!((live(&array), destroyed(&array)), (vec!["a.y".into()], vec![]));
    array.create_volume(new_volume("b", 4096)).unwrap();
    let again = Array::open(store, false).unwrap();
    assert_eq!(again.settings().eradication_delay_s, 60);
    assert_eq!(live(&again), ["a.y"]);
}

/// A volume with more snapshots than one commit eradicates needs several. Once eradication has
/// begun, the volume can't be recovered, even after a crash in between.
#[test]
fn eradication_continues_where_it_stopped() {
    let (store, array) = with_volumes(&["a", "b"]);
    for _ in 0..2_500 {
        array.create_snapshots(&of(&["a"], None)).unwrap();
    }
    array.create_snapshots(&of(&["b"], None)).unwrap();
    array.destroy_snapshot("a.7", 0).unwrap();
    array.destroy_volume("a", 0).unwrap();
    array.eradicate_due(DAY_MS).unwrap();
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(array.volumes(None, true, 9).len(), 1);
    assert_eq!(code(array.recover_volume("a")), "eradicated");
    while array.counts().destroyed > 0 {
        array.eradicate_due(DAY_MS).unwrap();
    }
    assert_eq!(live(&array), ["b.1"]);
    assert_eq!(store.kept.lock().1.len(), 3, "the array's own volume, b and b.1");
    // On request, eradication is complete when the call returns.
    for _ in 0..1_000 {
        array.create_snapshots(&of(&["b"], None)).unwrap();
    }
    array.destroy_volume("b", 0).unwrap();
    array.eradicate_volume("b").unwrap();
    assert_eq!(store.kept.lock().1.len(), 1);
}

/// The maximum number of snapshots: their cost in memory, records and time.
#[test]
fn a_hundred_thousand_snapshots_take_a_moment() {
    let (store, array) = with_volumes(&["a", "b"]);
    for n in 0..SNAPSHOTS_MAX {
        let volume = if n % 10 == 0 { "a" } else { "b" };
        array.create_snapshots(&of(&[volume], None)).unwrap();
    }
    assert_eq!(code(array.create_snapshots(&of(&["a"], None))), "limit_reached");
    let kept = store.kept.lock().0.clone();
    let bytes: usize = kept.iter().map(|(key, value)| 5 + key.len() + value.len()).sum();
    assert!(bytes < SNAPSHOTS_MAX * 100, "{bytes} bytes of records");
    let array = Array::open(store, false).unwrap();
    let filter = SnapshotFilter { volume: Some("a".into()), ..SnapshotFilter::default() };
    assert_eq!(array.snapshots(&filter, None, usize::MAX).unwrap().len(), 10_000);
    assert_eq!(array.counts().snapshots, SNAPSHOTS_MAX);
    array.destroy_volume("b", 0).unwrap();
    array.recover_volume("b").unwrap();
    assert_eq!(array.counts().snapshots, SNAPSHOTS_MAX);
}
