//! The state and the counters of each device of a pool, as administrators see them.

use super::*;

#[test]
fn the_calls_of_each_device_are_counted() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    let reported = world.json(&["device", "list"]);
    let calls = &reported[0]["calls"];
    assert!(calls["writes"]["ok"].as_u64() > Some(0), "{reported}");
    assert!(calls["writes"]["bytes"].as_u64() >= Some(4096), "{reported}");
    array.stop();

    let world = World::new();
    world.make_on(&["a", "b", "c"]);
    let array = world.serve_on(&["a", "b", "c"], &[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    let reported = world.json(&["device", "list"]);
    let written = |device: &Value| device["calls"]["writes"]["bytes"].as_u64().unwrap();
    assert!(reported.as_array().unwrap().iter().all(|device| written(device) > 4096), "{reported}");
    let text = world.text(&["device", "list", "--counters"]);
    let heads = text.lines().next().unwrap();
    assert!(heads.contains("P99") && heads.contains("ELSEWHERE"), "{text}");
    assert_eq!(text.lines().filter(|line| line.contains("flushes")).count(), 3, "{text}");
    array.stop();
}

#[test]
fn a_file_has_no_health() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    assert_eq!(world.json(&["device", "list"])[0]["health"], json!(null));
    let text = world.text(&["device", "list", "--health"]);
    let row: Vec<&str> = text.lines().nth(1).unwrap().split_whitespace().skip(2).collect();
    assert_eq!(row, ["-"; 6], "{text}");
    world.refusal(2, &["device", "list", "--health", "--counters"]);
    array.stop();
}

/// Runs `inspect` on these places; returns its exit code and its outputs.
fn inspected(world: &World, names: &[&str], more: &[&str]) -> (Option<i32>, String, String) {
    let places = world.places(names);
    let words = ["inspect"].iter().chain(more).copied();
    let words: Vec<&str> = words.chain(places.iter().map(String::as_str)).collect();
    let output = world.output(&words);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn inspect_shows_which_devices_of_a_pool_would_suffice() {
    let world = World::new();
    world.make_on(&["a", "b", "c", "d", "e", "f"]);
    let (code, reported, _) = inspected(&world, &["a", "b", "c", "d", "e", "f"], &[]);
    assert_eq!(code, Some(0), "{reported}");
    let enough =
        "any 4 of 6 devices; 6 current ones are present: all data can be read, even without 2";
    assert!(reported.contains(enough), "{reported}");
    let (code, reported, _) = inspected(&world, &["f", "c", "d", "a"], &[]);
    assert_eq!(code, Some(0), "{reported}");
    assert!(
        reported.contains("4 current ones are present: all data can be read, all of them"),
        "{reported}"
    );
    assert!(reported.contains("device      1: missing; it was in, id "), "{reported}");
    assert!(
        reported.contains(&format!("device      2: in, {}, label", world.place("c/pool.data")))
    );

    let array = world.serve_on(&["a", "b", "c", "d", "e", "f"], &[]);
    let ids: Vec<String> = world
        .json(&["device", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|device| device["id"].as_str().unwrap().to_owned())
        .collect();
    world.text(&["device", "fail", "4"]);
    array.stop();
    let (code, reported, error) = inspected(&world, &["a", "c", "e"], &[]);
    assert_eq!(code, Some(1));
    assert!(error.contains("it takes 4 of this pool"), "{error}");
    let lacking = format!(
        "2 current ones are present: no data can be read, 2 more of these are required: \
         1 ({}), 3 ({}), 5 ({})",
        ids[1], ids[3], ids[5]
    );
    assert!(reported.contains(&lacking), "{reported}");
    assert!(reported.contains("device      4: kept out, "), "{reported}");
    let (code, reported, _) = inspected(&world, &["a", "c", "e"], &["--json"]);
    assert_eq!(code, Some(1));
    let reported: Value = serde_json::from_str(&reported).unwrap();
    let devices = &reported["devices"];
    assert_eq!((&devices["needed"], &devices["lacking"]), (&json!(4), &json!(2)));
    assert_eq!(devices["members"][3]["place"], json!(null));
    assert_eq!(devices["members"][0]["sequence"], devices["sequence"]);
    assert_eq!(devices["members"][0]["whole_labels"], json!(2));
    // The device with an older label.
    assert!(
        devices["members"][4]["sequence"].as_u64() < devices["sequence"].as_u64(),
        "{reported}"
    );
}

#[test]
fn inspect_of_mirrors_needs_any_one_and_reports_strangers() {
    let (world, other) = (World::new(), World::new());
    world.make_on(&["a", "b", "c"]);
    let (code, reported, _) = inspected(&world, &["b"], &[]);
    assert_eq!(code, Some(0), "{reported}");
    assert!(
        reported.contains("any 1 of 3 devices; 1 current ones are present: all data"),
        "{reported}"
    );
    other.make_on(&["d", "e"]);
    std::fs::rename(other.place("d"), world.place("d")).unwrap();
    let (code, reported, error) = inspected(&world, &["a", "b", "d"], &[]);
    assert_eq!(code, Some(1), "{reported}");
    assert!(error.contains("two different pools"), "{error}");
    assert_eq!(reported.matches("it has no label of this pool").count(), 1, "{reported}");
}
