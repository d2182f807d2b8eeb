//! Pods: name spaces of volumes, which are moved into and out of them, and are destroyed with them.

use block::VolumeLimits;

use super::*;

const POD: ContainerKind = ContainerKind::Pod;
const GROUP: ContainerKind = ContainerKind::VolumeGroup;

fn called(kind: ContainerKind, name: &str) -> ContainerName {
    ContainerName::new(kind, name).unwrap()
}

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

/// Returns an array with a pod and a volume group of the same name, and these volumes.
fn with(volumes: &[&str]) -> (Arc<MemoryStore>, Array) {
    let (store, array) = new_array();
    array.create_containers(vec![called(POD, "same")], VolumeLimits::NONE, 1).unwrap();
    array.create_containers(vec![called(GROUP, "same")], VolumeLimits::NONE, 1).unwrap();
    for name in volumes {
        array.create_volume(new_volume(name, 4096)).unwrap();
    }
    (store, array)
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

fn placed(array: &Array, name: &str, placed: Placed) -> Result<String, Error> {
    let update = VolumeUpdate { placed: Some(placed), ..VolumeUpdate::default() };
    Ok(array.update_volume(name, update)?.name)
}

#[test]
fn a_pod_is_a_separate_name_space() {
    let (store, array) = with(&["db", "same::db", "SAME/db", "same::log"]);
    assert_eq!(array.container(POD, "Same").unwrap().volumes, ["same::db", "same::log"]);
    assert_eq!(array.container(GROUP, "same").unwrap().volumes, ["same/db"]);
    assert_eq!(code(array.create_volume(new_volume("SAME::DB", 4096))), "volume_exists");
    assert_eq!(code(array.create_volume(new_volume("none::db", 4096))), "no_such_pod");
    assert_eq!(code(array.container(POD, "none")), "no_such_pod");
    assert_eq!(
        code(array.create_containers(vec![called(POD, "SAME")], VolumeLimits::NONE, 1)),
        "pod_exists"
    );
    // A neighbour with the same beginning of the name.
    array.create_containers(vec![called(POD, "same-2")], VolumeLimits::NONE, 1).unwrap();
    array.create_volume(new_volume("same-2::db", 4096)).unwrap();
    let suffix = Some(Suffix::new("s").unwrap());
    let source = SnapshotSource::Volumes(names(&["same::db"]));
    let new = NewSnapshots { source, suffix, apply_retention: false, created_ms: 1 };
    array.create_snapshots(&new).unwrap();
    let pg = GroupName::new("pg").unwrap();
    array.create_group(pg, &names(&["same::db", "db"]), 1).unwrap();
    let source = SnapshotSource::Group("pg".into());
    array.create_snapshots(&NewSnapshots { source, ..new }).unwrap();
    array.rename_container("same", called(POD, "other")).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.snapshot("OTHER::db.s").unwrap().name, "other::db.s");
    assert_eq!(array.snapshot("pg.s.other::db").unwrap().name, "pg.s.other::db");
    assert_eq!(array.container(POD, "other").unwrap().volumes, ["other::db", "other::log"]);
    assert_eq!(array.container(GROUP, "same").unwrap().volumes, ["same/db"]);
    let listed = array.containers(POD, None, None, 9);
    assert_eq!(listed.iter().map(|pod| &*pod.name).collect::<Vec<_>>(), ["other", "same-2"]);
    let listed = array.containers(GROUP, None, None, 9);
    assert_eq!(listed.iter().map(|group| &*group.name).collect::<Vec<_>>(), ["same"]);
    // Their ids differ, and each is valid for its kind only.
    let (pod, group) = (array.container(POD, "other"), array.container(GROUP, "same"));
    let (pod, group) = (pod.unwrap().id, group.unwrap().id);
    assert_eq!(array.container_name(POD, pod).as_deref(), Some("other"));
    assert_eq!(array.container_name(GROUP, pod), None);
    assert_eq!(array.container_name(GROUP, group).as_deref(), Some("same"));
}

#[test]
fn volumes_move_into_and_out_of_pods() {
    let (store, array) = with(&["db", "same/in-group"]);
    let into = |kind| Placed::Within(called(kind, "same"));
    assert_eq!(placed(&array, "db", into(POD)).unwrap(), "same::db");
    assert_eq!(placed(&array, "same::db", Placed::OutOf(GROUP)).unwrap(), "same::db");
    assert_eq!(placed(&array, "same::db", into(GROUP)).unwrap(), "same/db");
    assert_eq!(placed(&array, "same/db", Placed::OutOf(POD)).unwrap(), "same/db");
    assert_eq!(placed(&array, "same/db", into(POD)).unwrap(), "same::db");
    let nowhere = Placed::Within(called(POD, "none"));
    assert_eq!(code(placed(&array, "same::db", nowhere)), "no_such_pod");
    assert_eq!(placed(&array, "same::db", Placed::OutOf(POD)).unwrap(), "db");
    // Two volumes that would have the same name there.
    array.rename_volume("same/in-group", VolumeName::new("same/db").unwrap()).unwrap();
    let both = names(&["same/db", "db"]);
    let update = VolumeUpdate { placed: Some(into(POD)), ..VolumeUpdate::default() };
    assert_eq!(code(array.update_volumes(&both, &update)), "named_twice");
    array.create_volume(new_volume("other", 4096)).unwrap();
    let both = names(&["same/db", "other"]);
    array.update_volumes(&both, &update).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!(array.container(POD, "same").unwrap().volumes, ["same::db", "same::other"]);
    assert_eq!(array.container(GROUP, "same").unwrap().volumes, [] as [&str; 0]);
}

#[test]
fn a_pod_is_destroyed_with_its_volumes_only_on_request() {
    let (store, array) = with(&["same::a", "same/a"]);
    let pod = names(&["same"]);
    assert_eq!(code(array.destroy_containers(POD, &pod, false, 9)), "not_empty");
    array.destroy_containers(POD, &pod, true, 9).unwrap();
    assert_eq!(code(array.destroy_containers(POD, &pod, true, 9)), "pod_destroyed");
    assert_eq!(code(array.create_volume(new_volume("same::b", 4096))), "pod_destroyed");
    assert_eq!(code(array.eradicate_containers(POD, &pod, false)), "not_empty");
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!(code(array.recover_volume("same::a")), "pod_destroyed");
    array.recover_containers(POD, &pod).unwrap();
    assert!(array.volume("same::a").unwrap().eradicate_ms.is_none());
    array.destroy_volume("same::a", 9).unwrap();
    array.destroy_containers(POD, &pod, false, 9).unwrap();
    array.eradicate_containers(POD, &pod, true).unwrap();
    assert_eq!(code(array.container(POD, "same")), "no_such_pod");
    assert_eq!(array.container(GROUP, "same").unwrap().volumes, ["same/a"]);
    assert!(!store.kept.lock().0.keys().any(|key| key[0] == b'P'));
    // An empty pod is eradicated when its time is over.
    array.create_containers(vec![called(POD, "later")], VolumeLimits::NONE, 1).unwrap();
    array.destroy_containers(POD, &names(&["later"]), false, 1_000).unwrap();
    array.eradicate_due(1_000 + 86_400_000).unwrap();
    assert_eq!(array.containers(POD, None, None, 9), []);
}

#[test]
fn a_volume_with_a_missing_pod_is_damage() {
    let (store, _) = with(&["same::a"]);
    store.kept.lock().0.retain(|key, _| key[0] != b'P');
    assert!(Array::open(store, false).is_err());
}

/// A commit waits for the device: one for each of them would take long on a busy one.
#[test]
fn pods_and_their_volumes_are_eradicated_in_commits_that_do_not_grow_with_their_number() {
    let pods: Vec<String> = (0..50).map(|n| format!("pod{n}")).collect();
    let of = |pods: &[String]| {
        let (store, array) = with(&[]);
        let called = pods.iter().map(|pod| called(POD, pod)).collect();
        array.create_containers(called, VolumeLimits::NONE, 1).unwrap();
        for pod in pods {
            for volume in ["a", "b"] {
                array.create_volume(new_volume(&format!("{pod}::{volume}"), 4096)).unwrap();
            }
        }
        array.destroy_containers(POD, pods, true, 9).unwrap();
        let before = store.changes.lock().len();
        array.eradicate_containers(POD, pods, true).unwrap();
        let commits = store.changes.lock().len() - before;
        let array = Array::open(store, false).unwrap();
        assert_eq!(array.containers(POD, None, None, 99).len(), 1, "`same` is left");
        assert_eq!(array.volumes(None, None, 99), []);
        commits
    };
    assert_eq!(of(&pods), of(&pods[..1]));
}
