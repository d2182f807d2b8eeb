//! The stored data of several volumes together.

use super::*;

const GIB: u64 = 1 << 30;

/// Returns an array with volumes a, b, c and d. Host x sees a by its own connection; its group g,
/// which also contains y, sees b and c.
fn connected() -> Array {
    let (_, array) = new_array();
    for name in ["a", "b", "c", "d"] {
        array.create_volume(new_volume(name, GIB)).unwrap();
    }
    array.create_hosts(vec![new_host("x", &[]), new_host("y", &[])]).unwrap();
    array.create_host_groups(vec![HostGroupName::new("g").unwrap()], 1).unwrap();
    let pair = |a: &str, b: &str| (a.to_owned(), b.to_owned());
    array.add_to_host_groups(&[pair("g", "x"), pair("g", "y")]).unwrap();
    array.connect("a", "x", None).unwrap();
    array.connect_host_groups(&[pair("b", "g"), pair("c", "g")], None).unwrap();
    array
}

#[test]
fn each_volume_of_an_object_counts_once() {
    let array = connected();
    let mut sums = array.space_sums(100);
    assert_eq!(sums.of(VolumesOf::Host("X")).unwrap().size_bytes, 3 * GIB);
    assert_eq!(sums.of(VolumesOf::Host("y")).unwrap().size_bytes, 2 * GIB);
    assert_eq!(sums.of(VolumesOf::HostGroup("g")).unwrap().size_bytes, 2 * GIB);
    array.create_group(GroupName::new("own").unwrap(), &["a".into(), "d".into()], 1).unwrap();
    array.create_group(GroupName::new("hosts").unwrap(), &[], 1).unwrap();
    array.create_group(GroupName::new("groups").unwrap(), &[], 1).unwrap();
    let hosts = GroupChange { add_hosts: vec!["x".into(), "y".into()], ..GroupChange::default() };
    array.change_group("hosts", &hosts).unwrap();
    let groups = GroupChange { add_host_groups: vec!["g".into()], ..GroupChange::default() };
    array.change_group("groups", &groups).unwrap();
    for (name, count) in [("own", 2), ("hosts", 3), ("groups", 2)] {
        let sum = sums.of(VolumesOf::Group(name)).unwrap();
        // The figures of all are unknown before the first pass.
        assert_eq!((sum.size_bytes, sum.unique_bytes), (count * GIB, None), "{name}");
        assert_eq!(sum.accounted, None, "{name}");
    }
    // A destroyed volume is still a member, and does not count.
    array.destroy_volume("d", 5).unwrap();
    assert_eq!(array.space_sums(100).of(VolumesOf::Group("own")).unwrap().size_bytes, GIB);
    for (refused, code) in [
        (sums.of(VolumesOf::Host("z")), "no_such_host"),
        (sums.of(VolumesOf::HostGroup("z")), "no_such_host_group"),
        (sums.of(VolumesOf::Group("z")), "no_such_group"),
    ] {
        assert_eq!(refused.unwrap_err().code(), code);
    }
}

#[test]
fn a_sum_ends_at_its_limit() {
    let array = connected();
    // The two connections of the group count once, whichever of its hosts is added up.
    let mut sums = array.space_sums(3);
    for object in [VolumesOf::Host("x"), VolumesOf::Host("y"), VolumesOf::HostGroup("g")] {
        assert!(sums.of(object).is_ok(), "{object:?}");
    }
    let refused = sums.of(VolumesOf::Host("x")).unwrap_err();
    assert_eq!(refused.code(), "too_many_connections");
    assert!(array.space_sums(2).of(VolumesOf::Host("x")).is_err());
    let hosts = GroupChange { add_hosts: vec!["x".into(), "y".into()], ..GroupChange::default() };
    array.create_group(GroupName::new("hosts").unwrap(), &[], 1).unwrap();
    array.change_group("hosts", &hosts).unwrap();
    assert!(array.space_sums(5).of(VolumesOf::Group("hosts")).is_ok());
    assert!(array.space_sums(4).of(VolumesOf::Group("hosts")).is_err());
}
