//! The volumes that groups protect, on schedule and on demand; changes of their snapshots as a
//! whole; records of versions without schedules.

use super::*;

const HOUR_MS: u64 = 3_600_000;
const DAY_MS: u64 = 24 * HOUR_MS;

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

fn names(array: &Array, destroyed: bool) -> Vec<String> {
    let filter = SnapshotFilter { destroyed: Some(destroyed), ..SnapshotFilter::default() };
    let found = array.snapshots(&filter, None, usize::MAX).unwrap();
    found.into_iter().map(|snapshot| snapshot.name).collect()
}

fn take(array: &Array, suffix: Option<&str>, now_ms: u64) -> Result<Vec<SnapshotInfo>, Error> {
    array.create_snapshots(&NewSnapshots {
        source: SnapshotSource::Group("g".into()),
        suffix: suffix.map(|suffix| Suffix::new(suffix).unwrap()),
        apply_retention: false,
        created_ms: now_ms,
    })
}

fn change(array: &Array, change: GroupChange) -> Result<GroupInfo, Error> {
    array.change_group("g", &change)
}

fn with_group(volumes: &[&str], members: &[&str]) -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    for volume in volumes {
        array.create_volume(new_volume(volume, 4096)).unwrap();
    }
    array.create_group(GroupName::new("g").unwrap(), &strings(members), 5).unwrap();
    (store, array)
}

fn hourly() -> SnapshotSchedule {
    SnapshotSchedule { enabled: true, ..SnapshotSchedule::default() }
}

#[test]
fn hosts_and_host_groups_protect_their_volumes() {
    let (store, array) = with_group(&["a", "b", "c", "d"], &["a"]);
    for host in ["x", "y"] {
        array.create_host(new_host(host, &[])).unwrap();
    }
    array.create_host_groups(vec![HostGroupName::new("hg").unwrap()], 0).unwrap();
    array.add_to_host_groups(&[("hg".into(), "x".into())]).unwrap();
    array.connect("b", "x", None).unwrap();
    array.connect("b", "y", None).unwrap();
    array.connect_host_groups(&[("c".into(), "hg".into())], None).unwrap();
    let add_hosts = GroupChange { add_hosts: strings(&["x", "Y"]), ..GroupChange::default() };
    assert_eq!(code(change(&array, add_hosts.clone())), "mixed_members");
    let only_hosts = GroupChange { remove: strings(&["a"]), ..add_hosts };
    assert_eq!(change(&array, only_hosts).unwrap().hosts, ["x", "y"]);
    let array = Array::open(store.clone(), false).unwrap();
    take(&array, Some("s"), 7).unwrap();
    assert_eq!(names(&array, false), ["g.s.b", "g.s.c"]);
    // They can't be deleted while they are members.
    assert_eq!(code(array.delete_host("y")), "existing_connections");
    array.disconnect("b", "y").unwrap();
    assert_eq!(code(array.delete_host("y")), "in_group");
    let only_groups = GroupChange {
        remove_hosts: strings(&["x", "y"]),
        add_host_groups: strings(&["hg"]),
        ..GroupChange::default()
    };
    assert_eq!(change(&array, only_groups).unwrap().host_groups, ["hg"]);
    array.delete_host("y").unwrap();
    let array = Array::open(store, false).unwrap();
    take(&array, Some("t"), 7).unwrap();
    assert_eq!(names(&array, false), ["g.s.b", "g.s.c", "g.t.c"]);
    array.disconnect_host_groups(&[("c".into(), "hg".into())]).unwrap();
    array.remove_from_host_groups(&[("hg".into(), "x".into())]).unwrap();
    assert_eq!(code(array.delete_host_groups(&strings(&["hg"]))), "in_group");
    assert_eq!(code(take(&array, None, 8)), "empty_group");
}

#[test]
fn a_schedule_begins_when_it_is_switched_on_and_survives_the_end_of_the_process() {
    let (store, array) = with_group(&["a"], &["a"]);
    let now_ms = 100 * DAY_MS;
    assert!(array.run_due(now_ms).unwrap().is_empty());
    let wrong = SnapshotSchedule { at_ms: Some(0), ..hourly() };
    let set = |schedule| GroupChange { schedule: Some(schedule), now_ms, ..GroupChange::default() };
    assert_eq!(code(change(&array, set(wrong))), "invalid_schedule");
    assert_eq!(change(&array, set(hourly())).unwrap().next_ms, Some(now_ms));
    assert_eq!(array.run_due(now_ms).unwrap().taken, ["g.1"]);
    // Repeating it changes nothing: the schedule does not start again.
    let again = GroupChange { now_ms: now_ms + 9, ..set(hourly()) };
    assert_eq!(change(&array, again).unwrap().next_ms, Some(now_ms + HOUR_MS));
    let array = Array::open(store.clone(), false).unwrap();
    assert!(array.run_due(now_ms + HOUR_MS - 1).unwrap().is_empty());
    assert_eq!(array.run_due(now_ms + 30 * HOUR_MS + 7).unwrap().taken, ["g.2"]);
    assert_eq!(array.group("g").unwrap().next_ms, Some(now_ms + 31 * HOUR_MS));
    // The clock is set back: snapshots stay, and the next slot is not in the far future.
    assert_eq!(array.run_due(now_ms).unwrap().taken, ["g.3"]);
    assert_eq!(array.group("g").unwrap().next_ms, Some(now_ms + HOUR_MS));
    assert_eq!(Array::open(store, false).unwrap().group("g").unwrap().snapshot_count, 3);
}

#[test]
fn refused_snapshots_are_retried_later_and_not_shown() {
    let (store, array) = with_group(&["a"], &["a"]);
    let schedule = Some(hourly());
    change(&array, GroupChange { schedule, now_ms: 7, ..GroupChange::default() }).unwrap();
    store.refuses.store(true, Ordering::Relaxed);
    assert_eq!(code(array.run_due(7)), "pool_full");
    assert!(names(&array, false).is_empty());
    store.refuses.store(false, Ordering::Relaxed);
    assert!(array.run_due(60_006).unwrap().is_empty(), "it rests for a minute");
    assert_eq!(array.run_due(60_007).unwrap().taken, ["g.1"]);
    // A failure is reported once, and retried at the next slot.
    array.destroy_volume("a", 0).unwrap();
    let ran = array.run_due(HOUR_MS + 7).unwrap();
    assert_eq!(ran.missed.len(), 1);
    assert_eq!(ran.missed[0].1.code(), "empty_group");
    assert!(array.run_due(HOUR_MS + 8).unwrap().is_empty());
    array.recover_volume("a").unwrap();
    assert_eq!(array.run_due(2 * HOUR_MS + 7).unwrap().taken, ["g.2"]);
}

#[test]
fn a_renamed_group_keeps_its_snapshots_under_its_new_name() {
    let (store, array) = with_group(&["a", "b"], &["a", "b"]);
    take(&array, None, 7).unwrap();
    take(&array, Some("x"), 8).unwrap();
    array.create_group(GroupName::new("other").unwrap(), &[], 5).unwrap();
    let rename = |name: &str| GroupChange {
        name: Some(GroupName::new(name).unwrap()),
        ..GroupChange::default()
    };
    assert_eq!(code(change(&array, rename("OTHER"))), "group_exists");
    change(&array, rename("new")).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!(names(&array, false), ["new.1.a", "new.x.a", "new.1.b", "new.x.b"]);
    assert_eq!(code(array.snapshot("g.1.a")), "no_such_snapshot");
    let after = array.snapshots(&SnapshotFilter::default(), Some("new.1.a"), 2).unwrap();
    assert_eq!(after.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["new.x.a", "new.1.b"]);
    let filter = SnapshotFilter { group: Some("new".into()), ..SnapshotFilter::default() };
    assert_eq!(array.snapshots(&filter, None, 9).unwrap().len(), 4);
    let page = array.group_snapshots(None, None, Some("new.1"), 9).unwrap();
    assert_eq!(page.iter().map(|s| s.name.as_str()).collect::<Vec<_>>(), ["new.x"]);
}

#[test]
fn moments_are_destroyed_and_recovered_as_a_whole() {
    let (store, array) = with_group(&["a", "b"], &["a", "b"]);
    for (suffix, now_ms) in [("x", 7), ("y", 8)] {
        take(&array, Some(suffix), now_ms).unwrap();
    }
    let change = GroupChange { remove: strings(&["a"]), ..GroupChange::default() };
    array.change_group("g", &change).unwrap();
    // A snapshot with the same name would belong to another moment.
    assert_eq!(code(take(&array, Some("X"), 9)), "snapshot_exists");
    array.destroy_snapshot("g.x.a", 9).unwrap();
    assert_eq!(array.group_snapshot("g.x").unwrap().eradicate_ms, None, "b's is there");
    // All or none.
    let both = strings(&["g.x", "g.none"]);
    assert_eq!(code(array.destroy_group_snapshots(&both, 10)), "no_such_group_snapshot");
    let x = strings(&["G.X"]);
    let ended = array.destroy_group_snapshots(&x, 10).unwrap();
    assert_eq!((ended[0].name.as_str(), ended[0].eradicate_ms), ("g.x", Some(10 + DAY_MS)));
    assert_eq!(code(array.destroy_group_snapshots(&x, 10)), "snapshot_destroyed");
    assert_eq!(code(take(&array, Some("x"), 9)), "snapshot_destroyed");
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(
        (names(&array, false), names(&array, true)),
        (strings(&["g.y.a", "g.y.b"]), strings(&["g.x.a", "g.x.b"]))
    );
    assert_eq!(array.group_snapshots(Some("g"), Some(true), None, 9).unwrap().len(), 1);
    array.recover_group_snapshots(&x).unwrap();
    assert_eq!(names(&array, false).len(), 4);
    assert_eq!(code(array.recover_group_snapshots(&x)), "not_destroyed");
    assert_eq!(code(array.eradicate_group_snapshots(&x)), "not_destroyed");
    array.destroy_group_snapshots(&x, 10).unwrap();
    array.eradicate_group_snapshots(&x).unwrap();
    assert_eq!(code(array.group_snapshot("g.x")), "no_such_group_snapshot");
    take(&array, Some("x"), 9).unwrap();
    // Snapshots destroyed with the group are recovered with it, not separately.
    array.destroy_groups(&strings(&["g"]), 11).unwrap();
    for result in [
        array.destroy_group_snapshots(&x, 12).map(|_| ()),
        array.recover_group_snapshots(&x).map(|_| ()),
        array.eradicate_group_snapshots(&x),
    ] {
        assert_eq!(code(result), "group_destroyed");
    }
}

/// A group with more snapshots than one commit eradicates needs several. Once eradication has
/// begun, the group can't be recovered, even after a crash in between.
#[test]
fn the_eradication_of_a_group_continues_where_it_stopped() {
    let (store, array) = with_group(&["a"], &["a"]);
    for now_ms in 0..2_500 {
        take(&array, None, now_ms).unwrap();
    }
    array
        .create_snapshots(&NewSnapshots {
            source: SnapshotSource::Volumes(strings(&["a"])),
            suffix: None,
            apply_retention: true,
            created_ms: 1,
        })
        .unwrap();
    array.destroy_groups(&strings(&["g"]), 0).unwrap();
    assert_eq!(array.counts().snapshots, 1);
    array.eradicate_due(DAY_MS - 1).unwrap();
    array.eradicate_due(DAY_MS).unwrap();
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(names(&array, true).len(), 1_500);
    assert_eq!(code(array.recover_groups(&strings(&["g"]))), "eradicated");
    (0..4).for_each(|_| array.eradicate_due(DAY_MS).unwrap());
    assert_eq!(code(array.group("g")), "no_such_group");
    assert_eq!(names(&array, false), ["a.1"]);
    assert_eq!(store.kept.lock().1.len(), 3, "the array's own volume, a and a.1");
}

/// Old records of snapshots contained the names of their groups, which could be removed before
/// them.
#[test]
fn old_snapshots_are_assigned_to_their_groups() {
    let (store, array) = with_group(&["a"], &["a"]);
    take(&array, None, 7).unwrap();
    take(&array, None, 8).unwrap();
    let group = b"{\"v\":1,\"name\":\"g\",\"members\":[1],\"next_suffix\":2,\"created_ms\":5}";
    {
        let mut kept = store.kept.lock();
        for (key, value) in kept.0.iter_mut().filter(|(key, _)| key[0] == b'n') {
            let name = if key[8] % 2 == 0 { "gone" } else { "g" };
            let text = String::from_utf8(value.clone()).unwrap();
            let text = text.replace("\"group_id\":1", &format!("\"group\":\"{name}\""));
            *value = text.into_bytes();
        }
        let key = kept.0.keys().find(|key| key[0] == b'g').unwrap().clone();
        kept.0.insert(key, group.to_vec());
    }
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(names(&array, false), ["g.2.a", "gone.1.a"]);
    let info = array.group("g").unwrap();
    assert_eq!((info.schedule, info.retention), Default::default());
    assert_eq!(array.group("gone").unwrap().volumes, Vec::<String>::new());
    assert_eq!(take(&array, None, 9).unwrap()[0].name, "g.3.a");
    // The adoption is durable, so names may change.
    change(
        &array,
        GroupChange { name: Some(GroupName::new("x").unwrap()), ..GroupChange::default() },
    )
    .unwrap();
    let text: Vec<u8> = store
        .kept
        .lock()
        .0
        .iter()
        .filter(|(key, _)| key[0] == b'n')
        .flat_map(|(_, value)| value.clone())
        .collect();
    assert!(!String::from_utf8(text).unwrap().contains("\"group\""));
    let array = Array::open(store, false).unwrap();
    assert_eq!(names(&array, false), ["x.2.a", "x.3.a", "gone.1.a"]);
}
