//! Changes of several objects: all or none.

mod pods;
mod volume_groups;

use super::*;
use crate::volumes::TRUNCATED_MAX;

fn strings(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

/// Returns the state, and checks that it is the same after a restart: each change must be durable
/// as shown.
fn state(store: &Arc<MemoryStore>, array: &Array) -> (Vec<VolumeInfo>, Vec<HostInfo>, Vec<String>) {
    let look = |array: &Array| {
        let connections = array.connections(None, None).unwrap();
        let connections =
            connections.iter().map(|c| format!("{} {} {}", c.host, c.lun, c.volume)).collect();
        (array.volumes(None, None, usize::MAX), array.hosts(None, usize::MAX), connections)
    };
    let seen = look(array);
    assert_eq!(look(&Array::open(store.clone(), false).unwrap()), seen);
    seen
}

fn live(array: &Array) -> Vec<String> {
    array.volumes(None, false, usize::MAX).into_iter().map(|volume| volume.name).collect()
}

fn with_volumes(names: &[&str]) -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    let new = names.iter().map(|name| new_volume(name, 1 << 20)).collect();
    array.create_volumes(new).unwrap();
    (store, array)
}

#[test]
fn several_volumes_are_created_and_destroyed_together() {
    let (store, array) = with_volumes(&["a", "b", "c"]);
    let before = state(&store, &array);
    let new = |names: &[&str]| names.iter().map(|name| new_volume(name, 4096)).collect();
    assert_eq!(code(array.create_volumes(new(&["d", "B"]))), "volume_exists");
    assert_eq!(code(array.create_volumes(new(&["d", "D"]))), "named_twice");
    assert_eq!(code(array.destroy_volumes(&strings(&["a", "x"]), 5)), "no_such_volume");
    assert_eq!(code(array.recover_volumes(&strings(&["a"]))), "not_destroyed");
    let bigger = VolumeUpdate { size_bytes: Some(1 << 21), ..VolumeUpdate::default() };
    assert_eq!(code(array.update_volumes(&strings(&["a", "x"]), &bigger)), "no_such_volume");
    let name = Some(VolumeName::new("z").unwrap());
    let renamed = VolumeUpdate { name, ..VolumeUpdate::default() };
    assert_eq!(code(array.update_volumes(&strings(&["a", "b"]), &renamed)), "only_one");
    assert_eq!(state(&store, &array), before);

    let sizes = array.update_volumes(&strings(&["a", "b"]), &bigger).unwrap();
    assert_eq!(sizes.iter().map(|v| v.size_bytes).collect::<Vec<_>>(), [1 << 21, 1 << 21]);
    array.destroy_volumes(&strings(&["a", "b"]), 5).unwrap();
    assert_eq!(live(&array), ["c"]);
    assert_eq!(array.volumes(None, None, 9).len(), 3);
    assert_eq!(code(array.eradicate_volumes(&strings(&["a", "c"]))), "not_destroyed");
    array.recover_volumes(&strings(&["A", "b"])).unwrap();
    array.destroy_volumes(&strings(&["a", "b"]), 5).unwrap();
    array.eradicate_volumes(&strings(&["b", "a"])).unwrap();
    assert_eq!(state(&store, &array).0.len(), 1);
    let many = vec!["c".to_owned(); CHANGES_MAX + 1];
    let refused = array.destroy_volumes(&many, 5).unwrap_err();
    let text = format!(
        "Array limit reached: at most {CHANGES_MAX} objects are changed at once. Send several \
         requests."
    );
    assert_eq!((refused.code(), refused.to_string()), ("limit_reached", text));
    let update = VolumeUpdate { size_bytes: Some(4096), truncate: true, ..VolumeUpdate::default() };
    let many: Vec<String> = (0..=TRUNCATED_MAX).map(|n| format!("c{n}")).collect();
    assert_eq!(code(array.update_volumes(&many, &update)), "limit_reached");
}

#[test]
fn copies_overwrite_existing_volumes_if_allowed() {
    let (store, array) = with_volumes(&["a", "b"]);
    let names = || ["b", "d"].map(|name| VolumeName::new(name).unwrap()).to_vec();
    let limits = block::VolumeLimits::NONE;
    let copy = |overwrite| NewCopy {
        source: "a".into(),
        names: names(),
        overwrite,
        limits,
        created_ms: 9,
    };
    let before = state(&store, &array);
    assert_eq!(code(array.copy_volumes(copy(false))), "volume_exists");
    assert_eq!(state(&store, &array), before);
    let made = array.copy_volumes(copy(true)).unwrap();
    assert_eq!((made[0].created_ms, made[1].created_ms), (7, 9));
    assert_eq!(live(&array), ["a", "b", "d"]);
    assert_eq!(state(&store, &array).0.len(), 3);
}

#[test]
fn connections_of_one_request_get_different_luns() {
    let (store, array) = with_volumes(&["a", "b", "c"]);
    let hosts = ["h1", "h2"].map(|name| new_host(name, &[])).to_vec();
    array.create_hosts(hosts).unwrap();
    array.connect("b", "h1", Some(2)).unwrap();
    let pairs = |all: &[(&str, &str)]| -> Vec<(String, String)> {
        all.iter().map(|(v, h)| ((*v).to_owned(), (*h).to_owned())).collect()
    };
    let both = pairs(&[("a", "h1"), ("c", "h1"), ("a", "h2"), ("c", "h2")]);
    let before = state(&store, &array);
    assert_eq!(code(array.connect_all(&both, Some(7))), "lun_in_use");
    assert_eq!(code(array.connect_all(&pairs(&[("a", "h1"), ("A", "H1")]), None)), "named_twice");
    assert_eq!(code(array.connect_all(&pairs(&[("a", "h1"), ("b", "h1")]), None)), {
        "connection_exists"
    });
    assert_eq!(state(&store, &array), before);
    array.connect_all(&both, None).unwrap();
    let seen = state(&store, &array).2;
    assert_eq!(seen, ["h1 1 a", "h1 2 b", "h1 3 c", "h2 1 a", "h2 2 c"]);
    assert_eq!(code(array.disconnect_all(&pairs(&[("a", "h1"), ("b", "h2")]))), {
        "no_such_connection"
    });
    assert_eq!(code(array.delete_hosts(&strings(&["h1"]))), "existing_connections");
    array.disconnect_all(&both).unwrap();
    assert_eq!(state(&store, &array).2, ["h1 2 b"]);
    array.connect_all(&pairs(&[("a", "h2"), ("c", "h1")]), Some(7)).unwrap();
    assert_eq!(state(&store, &array).2, ["h1 2 b", "h1 7 c", "h2 7 a"]);
}

/// The search continues after the last LUN that the same request assigned, past gaps and the LUNs
/// of the host's group.
#[test]
fn many_connections_of_one_host_fill_its_gaps_in_order() {
    let names: Vec<String> = (0..12).map(|n| format!("v{n}")).collect();
    let (_, array) = with_volumes(&names.iter().map(String::as_str).collect::<Vec<_>>());
    array.create_host(new_host("h", &[])).unwrap();
    array.create_host_groups(vec![HostGroupName::new("g").unwrap()], 5).unwrap();
    array.add_to_host_groups(&[("g".to_owned(), "h".to_owned())]).unwrap();
    array.connect("v0", "h", Some(2)).unwrap();
    array.connect("v1", "h", Some(6)).unwrap();
    for (volume, lun) in [("v2", 4), ("v3", 7), ("v4", 9)] {
        let pair = [(volume.to_owned(), "g".to_owned())];
        array.connect_host_groups(&pair, Some(lun)).unwrap();
    }
    let pairs: Vec<_> = names[5..].iter().map(|name| (name.clone(), "h".to_owned())).collect();
    let made = array.connect_all(&pairs, None).unwrap();
    assert_eq!(made.iter().map(|one| one.lun).collect::<Vec<_>>(), [1, 3, 5, 8, 10, 11, 12]);
    let state = array.read();
    let entry = state.hosts().values().next().unwrap();
    assert_eq!(entry.free_luns(8).take(2).collect::<Vec<_>>(), [9, 13]);
    assert_eq!(entry.free_luns(16_383).next(), None);
}

#[test]
fn hosts_get_and_lose_initiators() {
    let (store, array) = new_array();
    array.create_hosts(vec![new_host("h1", &[]), new_host("h2", &[])]).unwrap();
    let same = vec![new_host("h3", &["iqn.2026-11.com.example:9"]), new_host("h4", &[])];
    assert_eq!(code(array.create_hosts(same)), "only_one");
    let change = |add: &[u8], remove: &[u8]| HostChange {
        add_initiators: iqns(add),
        remove_initiators: iqns(remove),
        ..HostChange::default()
    };
    array.change_hosts(&strings(&["h1"]), &change(&[1, 2], &[])).unwrap();
    let before = state(&store, &array);
    for (name, add, remove, wanted) in [
        ("h2", &[1][..], &[][..], "initiator_in_use"),
        ("h1", &[1], &[], "invalid_initiator"),
        ("h1", &[], &[3], "no_such_initiator"),
    ] {
        assert_eq!(code(array.change_hosts(&strings(&[name]), &change(add, remove))), wanted);
    }
    assert_eq!(code(array.change_hosts(&strings(&["h1", "h2"]), &change(&[4], &[]))), "only_one");
    assert_eq!(state(&store, &array), before);
    let changed = array.change_hosts(&strings(&["h1"]), &change(&[3], &[1])).unwrap();
    assert_eq!(changed[0].initiators, ["iqn.2026-11.com.example:2", "iqn.2026-11.com.example:3"]);
    array.change_hosts(&strings(&["h2"]), &change(&[1], &[])).unwrap();
    array.delete_hosts(&strings(&["h1", "h2"])).unwrap();
    assert!(state(&store, &array).1.is_empty());
}

#[test]
fn several_snapshots_and_groups_change_together() {
    let (_, array) = with_volumes(&["a", "b"]);
    let names = ["g1", "g2"].map(|name| GroupName::new(name).unwrap()).to_vec();
    let made = array.create_groups(names.clone(), 3).unwrap();
    assert_eq!(array.group_name(made[1].id).as_deref(), Some("g2"));
    assert_eq!(code(array.create_groups(names, 3)), "group_exists");
    let both = strings(&["g1", "g2"]);
    let add = GroupChange { add: strings(&["a", "b"]), ..GroupChange::default() };
    let changed = array.change_groups(&both, &add).unwrap();
    assert!(changed.iter().all(|group| group.volumes == ["a", "b"]));
    let new = NewSnapshots {
        source: SnapshotSource::Group("g1".into()),
        suffix: None,
        apply_retention: false,
        created_ms: 4,
    };
    let snapshots: Vec<String> =
        array.create_snapshots(&new).unwrap().into_iter().map(|s| s.name).collect();
    let id = array.snapshot(&snapshots[0]).unwrap().id;
    assert_eq!(array.snapshot_name(id).as_ref(), Some(&snapshots[0]));
    assert_eq!(code(array.eradicate_snapshots(&snapshots)), "not_destroyed");
    array.destroy_snapshots(&snapshots, 5).unwrap();
    assert_eq!(code(array.destroy_snapshots(&snapshots, 5)), "snapshot_destroyed");
    array.recover_snapshots(&snapshots).unwrap();
    array.destroy_snapshots(&snapshots, 5).unwrap();
    array.eradicate_snapshots(&snapshots).unwrap();
    assert_eq!(array.counts().snapshots + array.counts().destroyed, 0);
    array.destroy_groups(&both, 5).unwrap();
    assert!(array.groups(None, false, 9).is_empty());
    array.eradicate_groups(&both).unwrap();
    assert!(array.groups(None, None, 9).is_empty());
}
