//! Stored data: its reduction, and the objects for which it is stored.

use super::*;

#[test]
fn reduction_is_switched_for_a_volume_and_runs_over_the_pool() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    let made = world.json(&["volume", "create", "v", "--size", "1G", "--compression", "off"]);
    assert_eq!((&made["deduplication"], &made["compression"]), (&json!(true), &json!(false)));
    world.text(&["volume", "create", "w", "--size", "1G"]);
    assert!(world.text(&["volume", "set", "w", "--deduplication", "off"]).contains("no dedup"));
    array.kill();
    let array = world.serve(&[]);
    world.text(&["volume", "clone", "v", "x"]);
    for (name, reported) in [("v", "no compression"), ("w", "no deduplication"), ("x", "no compr")]
    {
        assert!(world.text(&["volume", "show", name]).contains(reported), "{name}");
    }
    world.text(&["snapshot", "create", "v", "--suffix", "s"]);
    let set = ["volume", "set", "v.s", "--compression", "on"];
    assert_eq!(
        world.refusal(1, &set),
        "holdfast: Volume does not exist: v.s. The list of volumes shows their names.\n"
    );
    assert!(world.text(&["pool", "optimize", "status"]).contains("idle (0 complete"));
    let ended = world.json(&["pool", "optimize", "--wait"]);
    assert_eq!((&ended["running"], &ended["passes"]), (&json!(false), &json!(1)));
    assert!(world.refusal(2, &["pool", "optimize", "stop", "--wait"]).contains("--wait"));
    assert!(world.text(&["status"]).contains("idle (1 complete"));
    array.stop();
}

#[test]
fn space_is_accounted_for_also_after_a_crash() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    world.text(&["volume", "create", "v", "--size", "10G"]);
    world.text(&["snapshot", "create", "v", "--suffix", "s"]);
    let sums = || {
        let space = world.json(&["pool", "space", "--refresh"]);
        assert_eq!((&space["current"], &space["pending"]), (&json!(true), &json!(false)));
        let sum = |of: &[&str]| -> u64 {
            of.iter().map(|name| space["figures"][name].as_u64().unwrap()).sum()
        };
        let parts = ["unique_bytes", "snapshots_bytes", "shared_bytes", "system_bytes"];
        assert_eq!(sum(&parts), sum(&["live_bytes"]));
        (sum(&["provisioned_bytes"]), sum(&parts[..3]))
    };
    assert_eq!(sums(), (10 << 30, 0));
    array.kill();
    let array = world.serve(&[]);
    assert_eq!(sums(), (10 << 30, 0));
    assert_eq!(world.json(&["volume", "show", "v"])["space"]["unique_bytes"], 0);
    let shown = world.json(&["snapshot", "show", "v.s"]);
    assert_eq!((&shown["space"]["unique"], &shown["source"]["name"]), (&json!(0), &json!("v")));
    let accounted = &shown["accounted"];
    assert!(accounted["as_of_ms"].is_u64() && accounted["data_reduction"].is_null(), "{shown}");
    assert!(world.text(&["snapshot", "list"]).contains(" 0 B "));
    assert!(world.text(&["pool", "space"]).contains("nothing has changed since"));
    assert!(world.text(&["volume", "list"]).contains("UNIQUE"));
    array.stop();
}
