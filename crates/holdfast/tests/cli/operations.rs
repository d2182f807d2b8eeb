//! How each device of a pool fares, as administrators are told.

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
