//! Volumes that are created with their connections.

use super::*;

fn to(hosts: &[&str], host_groups: &[&str]) -> ConnectTo {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    ConnectTo { hosts: owned(hosts), host_groups: owned(host_groups) }
}

/// Returns an array with hosts `x` and `y`, of which `y` is in group `g`; `a` is a volume of `x`
/// and of `g`, under the LUNs 1 and 254.
fn connected() -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    for host in ["x", "y"] {
        let iqn = format!("iqn.2026-11.com.example:{host}");
        array.create_host(new_host(host, &[&iqn])).unwrap();
    }
    array.create_host_groups(vec![HostGroupName::new("g").unwrap()], 9).unwrap();
    array.add_to_host_groups(&[("g".to_owned(), "y".to_owned())]).unwrap();
    array.create_connected_volume(new_volume("a", 4096), &to(&["X"], &["G"])).unwrap();
    (store, array)
}

fn luns(array: &Array) -> Vec<(String, String, u16)> {
    let all = array.connections(None, None).unwrap().into_iter();
    all.map(|one| (one.volume, one.host, one.lun)).collect()
}

fn rows(all: &[(&str, &str, u16)]) -> Vec<(String, String, u16)> {
    all.iter().map(|(volume, host, lun)| ((*volume).into(), (*host).into(), *lun)).collect()
}

#[test]
fn a_volume_is_created_with_its_connections_and_keeps_them() {
    let (store, array) = connected();
    let made = array.create_connected_volume(new_volume("b", 4096), &to(&["x"], &["g"])).unwrap();
    assert_eq!(made.connection_count, 2);
    // A LUN of the host or its group is not assigned again.
    array.create_connected_volume(new_volume("c", 4096), &to(&["y"], &[])).unwrap();
    let wanted =
        rows(&[("a", "x", 1), ("b", "x", 2), ("c", "y", 1), ("b", "y", 253), ("a", "y", 254)]);
    assert_eq!(luns(&array), wanted);
    let array = Array::open(store, false).unwrap();
    assert_eq!(luns(&array), wanted);
}

#[test]
fn a_refused_connection_refuses_the_volume() {
    let (store, array) = connected();
    let before = luns(&array);
    for (wrong, code) in [
        (to(&["x", "none"], &[]), "no_such_host"),
        (to(&["x"], &["none"]), "no_such_host_group"),
        (to(&["x", "X"], &[]), "named_twice"),
        (to(&["x", "y"], &["g"]), "named_twice"),
        (to(&vec!["x"; 501], &[]), "limit_reached"),
    ] {
        let refused = array.create_connected_volume(new_volume("b", 4096), &wrong).unwrap_err();
        assert_eq!(refused.code(), code, "{refused}");
        assert_eq!(array.volume("b").unwrap_err().code(), "no_such_volume");
    }
    store.refuses.store(true, Ordering::Relaxed);
    array.create_connected_volume(new_volume("b", 4096), &to(&["x"], &["g"])).unwrap_err();
    assert_eq!(array.volume("b").unwrap_err().code(), "no_such_volume");
    assert_eq!(luns(&array), before);
}
