//! Reports of the lab, kept on an array.

use super::access::file;
use super::*;

/// What the lab's own tests write.
pub const SAMPLE: &str = include_str!("../../../lab/src/sheet/sample.json");

#[test]
fn a_report_of_the_lab_is_kept() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    let sample = file(&world, "sample.json", SAMPLE);
    let sample = sample.as_str();
    assert!(world.text(&["lab", "list"]).contains("holdfast lab keep NAME FILE"));
    let said = world.text(&["lab", "keep", "weekly", sample]);
    assert!(said.contains("as weekly: 4 scenarios, 3 of 3 aims met"), "{said}");
    let line = world.json(&["lab", "keep", "Weekly", sample]);
    assert_eq!((&line["name"], &line["failed"]), (&json!("Weekly"), &json!(1)));
    assert_eq!(world.json(&["lab", "list"]), json!([line]));
    let shown = world.json(&["lab", "show", "weekly"]);
    assert_eq!(shown["measured"]["scenarios"][0]["cases"][0]["ratio"], json!(20.9091));
    array.stop();

    let array = world.serve(&[]);
    assert_eq!(world.json(&["lab", "show", "weekly"]), shown);
    let text = world.text(&["lab", "show", "weekly"]);
    let told: Vec<&str> = text.split_whitespace().collect();
    let told = told.join(" ");
    for part in [
        "Measured: 2026-11-22 20:00:00 UTC",
        "Sizes: the papers' divided by 64",
        "Hosts: 4, over 2 portals",
        "P-13 1 VM (in software) time 2.30 s 0.110 s 20.9x 1 of 1 met off 4.5 min, on 35 s",
        "2 VMs time 4.60 s 0.000400 s too fast to tell",
        "thin rate 7600 IOPS 8300 IOPS on/off 1.09x",
        "V-34 failed: data differs",
        "V-52 skipped: the target has no replication",
    ] {
        assert!(told.contains(part), "{part:?} in\n{text}");
    }
    let csv = world.text(&["lab", "show", "weekly", "--csv"]);
    assert_eq!(csv.lines().count(), 1 + 2 + 2 + 2 + 1, "{csv}");
    let audit = world.json(&["audit", "--limit", "1"]);
    assert_eq!((&audit[0]["method"], &audit[0]["outcome"]), (&json!("PUT"), &json!("done")));
    refusals(&world, sample);
    world.text(&["lab", "delete", "WEEKLY"]);
    assert_eq!(world.json(&["lab", "list"]), json!([]));
    array.stop();
}

fn refusals(world: &World, sample: &str) {
    let other = file(world, "other.json", &SAMPLE.replacen("\"form\": 1", "\"form\": 9", 1));
    let said = world.refusal(2, &["lab", "keep", "r", &other]);
    assert!(said.contains("form 9; this program reads form 1"), "{said}");
    world.refusal(4, &["lab", "keep", "r", "nowhere.json"]);
    let said = world.refusal(1, &["lab", "keep", "a.b", sample]);
    assert!(said.contains("lab report name"), "{said}");
    let said = world.refusal(1, &["lab", "show", "none"]);
    assert!(said.contains("does not exist"), "{said}");
    world.refusal(1, &["lab", "delete", "none"]);
}
