//! Snapshots of volumes and of groups, and volumes that are restored from them.

use super::*;

fn names(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|one| one["name"].as_str().unwrap()).collect()
}

#[test]
fn snapshots_are_taken_of_volumes_and_of_groups() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    for name in ["a", "b"] {
        world.text(&["volume", "create", name, "--size", "1G"]);
    }
    let group = world.json(&["group", "create", "g", "a", "b"]);
    assert_eq!((&group["volumes"], &group["destroyed"]), (&json!(["a", "b"]), &json!(false)));
    // A group with only some of the volumes would not be what was requested.
    let half = world.refusal(1, &["group", "create", "half", "a", "none"]);
    assert!(half.contains("Volume does not exist: none."), "{half}");
    assert_eq!(names(&world.json(&["group", "list"])), ["g"]);
    assert_eq!(world.json(&["group", "list", "--destroyed"]), json!([]));

    let made = world.json(&["snapshot", "create", "--group", "g", "--suffix", "one"]);
    assert_eq!(names(&made), ["g.one.a", "g.one.b"]);
    assert_eq!((&made[0]["suffix"], &made[0]["source"]["name"]), (&json!("g.one"), &json!("a")));
    assert_eq!(names(&world.json(&["snapshot", "create", "a", "b"])), ["a.1", "b.1"]);
    world.text(&["snapshot", "rename", "a.1", "x"]);
    assert_eq!(names(&world.json(&["snapshot", "list", "--group", "G"])), ["g.one.a", "g.one.b"]);
    assert_eq!(names(&world.json(&["snapshot", "list", "a"])), ["a.x", "g.one.a"]);
    assert_eq!(names(&world.json(&["snapshot", "list", "a", "--group", "g"])), ["g.one.a"]);
    let sorted = ["snapshot", "list", "--filter", "source.name=b", "--sort", "-name"];
    assert_eq!(names(&world.json(&sorted)), ["g.one.b", "b.1"]);
    assert!(world.refusal(1, &["snapshot", "list", "--group", "none"]).contains("does not exist"));
    assert!(world.refusal(1, &["snapshot", "list", "none"]).contains("does not exist: none"));
    let shown = world.text(&["snapshot", "show", "g.one.a"]);
    assert!(shown.lines().any(|line| line.starts_with("Group:") && line.ends_with(" g")));

    let wrong = world.refusal(1, &["volume", "restore", "b", "a.x"]);
    assert!(wrong.contains("holdfast volume overwrite b --from a.x"), "{wrong}");
    assert_eq!(world.json(&["volume", "restore", "a", "a.x"])["name"], "a");
    let none = world.refusal(1, &["volume", "overwrite", "none", "--from", "a.x"]);
    assert!(none.contains("Volume does not exist: none."), "{none}");
    assert_eq!(names(&world.json(&["volume", "list"])), ["a", "b"]);
    assert_eq!(world.json(&["volume", "overwrite", "b", "--from", "a.x"])["name"], "b");
    end_and_come_back(&world);
    array.stop();
}

fn end_and_come_back(world: &World) {
    world.text(&["snapshot", "destroy", "a.x", "g.one.a"]);
    let shown = world.text(&["snapshot", "show", "a.x"]);
    assert!(shown.contains("yes; eradicated in 23 h 59 min"), "{shown}");
    assert_eq!(names(&world.json(&["snapshot", "list", "--destroyed"])), ["a.x", "g.one.a"]);
    // All of them or none.
    assert!(world.refusal(1, &["snapshot", "recover", "a.x", "b.1"]).contains("is not destroyed"));
    world.text(&["snapshot", "recover", "a.x", "g.one.a"]);
    world.text(&["snapshot", "destroy", "a.x", "--eradicate"]);
    let gone = world.refusal(1, &["snapshot", "show", "a.x"]);
    let wanted = "holdfast: No such volume or snapshot: a.x. The list of snapshots shows their \
                  names.\n";
    assert_eq!(gone, wanted);
    world.text(&["volume", "destroy", "b"]);
    let again = world.refusal(1, &["volume", "destroy", "b"]);
    assert!(again.starts_with("holdfast: Volume b has been destroyed. Recover it"), "{again}");
    world.text(&["volume", "eradicate", "b"]);
    world.refusal(1, &["volume", "recover", "b"]);
    world.text(&["group", "destroy", "g"]);
    assert!(world.text(&["group", "show", "g"]).contains("yes; eradicated in 23 h"));
    world.text(&["group", "recover", "g"]);
    assert_eq!(names(&world.json(&["snapshot", "list", "--group", "g"])), ["g.one.a"]);
    world.text(&["group", "destroy", "g", "--eradicate"]);
    assert_eq!(world.json(&["snapshot", "list"]), json!([]));
}
