//! The state and the counters of each device of a pool, as administrators see them.

use super::*;

#[test]
fn what_each_device_is_asked_is_counted() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    let told = world.json(&["device", "list"]);
    let calls = &told[0]["calls"];
    assert!(calls["writes"]["ok"].as_u64() > Some(0), "{told}");
    assert!(calls["writes"]["bytes"].as_u64() >= Some(4096), "{told}");
    array.stop();

    let world = World::new();
    world.make_on(&["a", "b", "c"]);
    let array = world.serve_on(&["a", "b", "c"], &[]);
    world.text(&["volume", "create", "v", "--size", "1G"]);
    let told = world.json(&["device", "list"]);
    let written = |device: &Value| device["calls"]["writes"]["bytes"].as_u64().unwrap();
    assert!(told.as_array().unwrap().iter().all(|device| written(device) > 4096), "{told}");
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
fn inspect_says_which_devices_of_a_pool_would_be_enough() {
    let world = World::new();
    world.make_on(&["a", "b", "c", "d", "e", "f"]);
    let (code, told, _) = inspected(&world, &["a", "b", "c", "d", "e", "f"], &[]);
    assert_eq!(code, Some(0), "{told}");
    let enough = "any 4 of 6 devices; 6 that count are there: all can be read, and without 2 of";
    assert!(told.contains(enough), "{told}");
    let (code, told, _) = inspected(&world, &["f", "c", "d", "a"], &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("4 that count are there: all can be read, each of them"), "{told}");
    assert!(told.contains("device      1: missing; it was in, id "), "{told}");
    assert!(told.contains(&format!("device      2: in, {}, label", world.place("c/pool.data"))));

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
    let (code, told, error) = inspected(&world, &["a", "c", "e"], &[]);
    assert_eq!(code, Some(1));
    assert!(error.contains("it takes 4 of this pool"), "{error}");
    let lacking = format!(
        "2 that count are there: no data can be read, it takes 2 more of these: 1 ({}), 3 ({}), \
         5 ({})",
        ids[1], ids[3], ids[5]
    );
    assert!(told.contains(&lacking), "{told}");
    assert!(told.contains("device      4: kept out, "), "{told}");
    let (code, told, _) = inspected(&world, &["a", "c", "e"], &["--json"]);
    assert_eq!(code, Some(1));
    let told: Value = serde_json::from_str(&told).unwrap();
    let devices = &told["devices"];
    assert_eq!((&devices["needed"], &devices["lacking"]), (&json!(4), &json!(2)));
    assert_eq!(devices["members"][3]["place"], json!(null));
    assert_eq!(devices["members"][0]["sequence"], devices["sequence"]);
    assert_eq!(devices["members"][0]["whole_labels"], json!(2));
    // The device with an older label.
    assert!(devices["members"][4]["sequence"].as_u64() < devices["sequence"].as_u64(), "{told}");
}

#[test]
fn inspect_of_mirrors_takes_any_and_names_strangers() {
    let (world, other) = (World::new(), World::new());
    world.make_on(&["a", "b", "c"]);
    let (code, told, _) = inspected(&world, &["b"], &[]);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("any 1 of 3 devices; 1 that count are there: all can be read"), "{told}");
    other.make_on(&["d", "e"]);
    std::fs::rename(other.place("d"), world.place("d")).unwrap();
    let (code, told, error) = inspected(&world, &["a", "b", "d"], &[]);
    assert_eq!(code, Some(1), "{told}");
    assert!(error.contains("two different pools"), "{error}");
    assert_eq!(told.matches("it has no label of this pool").count(), 1, "{told}");
}
