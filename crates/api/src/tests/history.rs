//! The history of performance: of the array, of volumes and of hosts; ranges and resolutions.

use ::history::{Activity, Capacity, ClassSums, GAUGES, Gauge, Object, Tick};

use super::*;

/// The time of these tests stands still at 1234 ms: a tick is of the second before.
const COVERED_MS: u64 = 1000;

fn sums(ok: u64, bytes: u64, ok_latency_us: u64) -> ClassSums {
    ClassSums { ok, bytes, ok_latency_us, ..ClassSums::default() }.with_peaks(COVERED_MS)
}

/// Returns an array with two volumes and a host; the first volume and the host have reads and
/// copies.
async fn busy() -> World {
    let portals = vec!["192.0.2.1:3260".into()];
    let facts = Facts { port_ids: vec![1], portals, ..Facts::default() };
    let world = World::of(Arc::new(Quiet), Arc::new(devices::OneDevice), facts);
    for name in ["v1", "v2"] {
        let new = json!({"name": name, "size_bytes": 1 << 30});
        assert_eq!(world.ask("POST", "/v1/volumes", Some(new)).await.0, 201);
    }
    world.host("h", "iqn.2026-01.com.example:h").await;
    let mut done = Activity::default();
    (done.0[0], done.0[2]) = (sums(100, 409_600, 30_000), sums(3, 3 << 20, 300));
    let (volume, host) = (world.array.volume("v1").unwrap(), world.array.host("h").unwrap());
    // Half of the reads took up to 200 µs, one took long.
    (done.1.0[0][7], done.1.0[0][8], done.1.0[0][25]) = (50, 49, 1);
    let objects = [
        (Object::Volume(volume.id.0), done),
        (Object::Host(host.id), done),
        (Object::Port(1), done),
    ];
    let capacity = Some(Capacity([Gauge::once(1 << 20); GAUGES.len()]));
    let objects = objects.into();
    let tick = Tick { now_ms: 1100, covered_ms: COVERED_MS, array: done, objects, capacity };
    world.history.record(tick).unwrap();
    world.history.save().unwrap();
    world
}

async fn items(world: &World, path: &str) -> Vec<Value> {
    let (status, page) = world.ask("GET", &format!("/api/2.26/{path}"), None).await;
    assert_eq!(status, 200, "{path}: {page}");
    page["items"].as_array().unwrap().clone()
}

#[tokio::test]
async fn the_last_second_is_reported_for_all_objects() {
    let world = busy().await;
    for (path, count) in [("arrays", 1), ("volumes", 2), ("hosts", 1)] {
        let found = items(&world, &format!("{path}/performance")).await;
        assert_eq!(found.len(), count, "{path}");
        let first = &found[0];
        for (field, value) in [
            ("reads_per_sec", 100),
            ("read_bytes_per_sec", 409_600),
            ("usec_per_read_op", 300),
            ("others_per_sec", 3),
            ("usec_per_other_op", 100),
            ("writes_per_sec", 0),
            ("time", 1100),
        ] {
            assert_eq!(first[field], value, "{path}: {field}");
        }
        assert_eq!(first["service_usec_per_read_op"], 300, "{path}");
        assert_eq!(first["queue_usec_per_read_op"], 0, "{path}");
    }
    let found = items(&world, "volumes/performance?names=v2").await;
    assert_eq!((&found[0]["name"], &found[0]["reads_per_sec"]), (&json!("v2"), &json!(0)));
    let busiest = items(&world, "volumes/performance?sort=reads_per_sec-&limit=1").await;
    assert_eq!(busiest[0]["name"], "v1");
    let (_, page) = world.ask("GET", "/api/2.26/volumes/performance?total_only=true", None).await;
    assert_eq!(page["total"][0]["reads_per_sec"], 100);
    for bad in ["volumes/performance?names=v9", "arrays/performance?names=other"] {
        assert_eq!(world.ask("GET", &format!("/api/2.26/{bad}"), None).await.0, 400, "{bad}");
    }
}

#[tokio::test]
async fn samples_are_listed_between_two_times() {
    let world = busy().await;
    for path in ["arrays", "volumes", "hosts"] {
        let path = format!("{path}/performance?start_time=0&end_time=1235&resolution=30000");
        let found = items(&world, &path).await;
        assert_eq!((&found[0]["time"], &found[0]["reads_per_sec"]), (&json!(0), &json!(100)));
    }
    // An idle volume has a known activity of zero.
    let idle = items(&world, "volumes/performance?start_time=0&names=v2").await;
    assert_eq!((idle.len(), &idle[0]["reads_per_sec"]), (1, &json!(0)));
    assert_eq!(items(&world, "arrays/performance?resolution=1000").await[0]["time"], 100);
    for bad in ["volumes/performance?resolution=1000", "arrays/performance?resolution=7"] {
        let (status, refused) = world.ask("GET", &format!("/api/2.26/{bad}"), None).await;
        assert_eq!((status, &refused["errors"][0]["context"]), (400, &json!("resolution")));
    }
    let (status, _) =
        world.ask("GET", "/api/2.26/arrays/performance?start_time=9&end_time=9", None).await;
    assert_eq!(status, 400);
}

/// The same figures, with the array; and those of a host group, which are its hosts'.
#[tokio::test]
async fn performance_is_reported_for_the_array_and_for_host_groups() {
    let world = busy().await;
    for path in [
        "hosts?names=idle",
        "host-groups?names=g,none",
        "host-groups/hosts?group_names=g&member_names=h,idle",
    ] {
        assert_eq!(world.ask("POST", &format!("/api/2.26/{path}"), None).await.0, 200, "{path}");
    }
    let arrays = items(&world, "arrays").await;
    let array = json!({"id": arrays[0]["id"], "name": arrays[0]["name"]});
    let samples = "start_time=0&end_time=1235&resolution=30000";
    for list in ["volumes", "hosts", "host-groups"] {
        for query in ["", "?sort=name-", "?filter=reads_per_sec=100", &format!("?{samples}")] {
            let plain = items(&world, &format!("{list}/performance{query}")).await;
            let by_array = items(&world, &format!("{list}/performance/by-array{query}")).await;
            let with_array = |item: &Value| {
                let mut item = item.clone();
                item["array"] = array.clone();
                item
            };
            assert!(!plain.is_empty(), "{list}{query}");
            let wanted: Vec<_> = plain.iter().map(with_array).collect();
            assert_eq!(by_array, wanted, "{list}{query}");
        }
    }
    let now = items(&world, "host-groups/performance").await;
    let rows = |items: &[Value]| {
        let row = |item: &Value| (item["name"].clone(), item["reads_per_sec"].clone());
        items.iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(rows(&now), [(json!("g"), json!(100)), (json!("none"), json!(0))]);
    assert_eq!((&now[0]["usec_per_read_op"], &now[0]["time"]), (&json!(300), &json!(1100)));
    let then = items(&world, &format!("host-groups/performance?{samples}")).await;
    assert_eq!(rows(&then), [(json!("g"), json!(100))]);
    let named = items(&world, "host-groups/performance/by-array?names=NONE").await;
    assert_eq!(rows(&named), [(json!("none"), json!(0))]);
    let path = "/api/2.26/volumes/performance/by-array?total_only=true";
    assert_eq!(world.ask("GET", path, None).await.1["total"][0]["reads_per_sec"], 100);
    let other = "volumes/performance/by-array?filter=array.name='other'";
    assert!(items(&world, other).await.is_empty());
    let path = "/api/2.26/host-groups/performance?names=h";
    assert_eq!(world.ask("GET", path, None).await.0, 400);
}

/// Found with the published exporter: these had no figures, although the array has them.
#[tokio::test]
async fn performance_is_reported_for_pods_volume_groups_and_interfaces() {
    let world = busy().await;
    for path in ["pods?names=p,empty", "volume-groups?names=vg"] {
        assert_eq!(world.ask("POST", &format!("/api/2.26/{path}"), None).await.0, 200, "{path}");
    }
    let samples = "start_time=0&end_time=1235&resolution=30000";
    for (list, name, from, body) in [
        ("volume-groups", "vg", "v1", json!({"volume_group": {"name": "vg"}})),
        ("pods", "p", "vg%2Fv1", json!({"pod": {"name": "p"}})),
    ] {
        let path = format!("/api/2.26/volumes?names={from}");
        let (status, reported) = world.ask("PATCH", &path, Some(body)).await;
        assert_eq!(status, 200, "{reported}");
        for query in [String::new(), format!("&{samples}")] {
            let reported = items(&world, &format!("{list}/performance?names={name}{query}")).await;
            assert_eq!(reported.len(), 1, "{list}{query}: {reported:?}");
            assert_eq!(reported[0]["reads_per_sec"], 100, "{list}{query}");
            let (_, all) = world.ask("GET", &format!("/api/2.26/{list}?names={name}"), None).await;
            assert_eq!(reported[0]["id"], all["items"][0]["id"]);
        }
    }
    assert_eq!(items(&world, "pods/performance?names=empty").await[0]["reads_per_sec"], 0);
    assert_eq!(items(&world, "pods/performance/by-array").await.len(), 2);
    assert!(items(&world, "pods/performance?destroyed=true").await.is_empty());
    // Found with the Ansible collection: a destroyed one ended `purefa_info`.
    let destroy = Some(json!({"destroyed": true}));
    assert_eq!(world.ask("PATCH", "/api/2.26/pods?names=empty", destroy).await.0, 200);
    assert_eq!(items(&world, "pods/performance").await.len(), 1);
    assert_eq!(items(&world, "pods/performance?destroyed=true").await.len(), 1);
    assert_eq!(items(&world, "pods/performance?names=empty").await.len(), 1);
    let ports = items(&world, "network-interfaces/performance").await;
    assert!(ports[0]["eth"]["transmitted_bytes_per_sec"].as_u64().unwrap() > 0, "{ports:?}");
    assert!(ports[0]["eth"]["received_packets_per_sec"].is_null());
    let path = format!("network-interfaces/performance?names=CT0.ETH0&{samples}");
    assert_eq!(items(&world, &path).await[0]["name"], "ct0.eth0");
    let none = "/api/2.26/network-interfaces/performance?names=ct9.eth9";
    assert_eq!(world.ask("GET", none, None).await.0, 400);
}

#[tokio::test]
async fn the_native_path_reports_offloads_and_capacity() {
    let world = busy().await;
    let (status, found) = world.ask("GET", "/v1/history", None).await;
    assert_eq!((status, &found["resolution_ms"]), (200, &json!(30_000)), "{found}");
    let sample = &found["samples"][0];
    assert_eq!((&sample["time_ms"], &sample["covered_ms"]), (&json!(0), &json!(1000)));
    let copy = &sample["commands"]["copy"];
    assert_eq!((&copy["per_s"], &copy["per_s_max"]), (&json!(3.0), &json!(3)));
    assert_eq!((&copy["bytes_per_s"], &copy["latency_us"]), (&json!(3_145_728.0), &json!(100.0)));
    assert!(sample["commands"]["write"].is_null());
    assert_eq!(sample["capacity"]["used_bytes"], 1 << 20);
    assert_eq!(sample["capacity"]["data_reduction"], 1.0);
    for (of, reads) in [("volume=v1", json!(100.0)), ("volume=v2", json!(null))] {
        let (_, found) = world.ask("GET", &format!("/v1/history?{of}"), None).await;
        let sample = &found["samples"][0];
        assert_eq!(sample["commands"]["read"]["per_s"], reads, "{of}");
        assert!(sample["capacity"].is_null());
    }
    let (_, found) = world.ask("GET", "/v1/history?resolution_ms=1000", None).await;
    assert_eq!(found["samples"][0]["time_ms"], 100);
    for (bad, status) in [
        ("volume=v1&host=h", 400),
        ("host_group=g&port=1", 400),
        ("host_group=g", 404),
        ("port=7", 404),
        ("port=x", 400),
        ("volume=v9", 404),
        ("host=v1", 404),
        ("resolution_ms=1", 400),
        ("volume=v1&resolution_ms=1000", 400),
        ("colour=red", 400),
    ] {
        let (found, refused) = world.ask("GET", &format!("/v1/history?{bad}"), None).await;
        assert_eq!(found, status, "{bad}: {refused}");
    }
}

#[tokio::test]
async fn the_native_path_reports_percentiles_of_all_objects() {
    let world = busy().await;
    for path in ["host-groups?names=g", "host-groups/hosts?group_names=g&member_names=h"] {
        assert_eq!(world.ask("POST", &format!("/api/2.26/{path}"), None).await.0, 200, "{path}");
    }
    for of in ["", "volume=v1", "host=h", "host_group=G", "port=1"] {
        let (status, found) = world.ask("GET", &format!("/v1/history?{of}"), None).await;
        let commands = &found["samples"][0]["commands"];
        let read = &commands["read"];
        assert_eq!((status, &read["per_s"]), (200, &json!(100.0)), "{of}: {found}");
        let shown = (&read["latency_us_p50"], &read["latency_us_p99"], &read["per_s_max"]);
        assert_eq!(shown, (&json!(200), &json!(300), &json!(100)), "{of}");
        // Other commands have no histogram.
        assert_eq!(commands["copy"]["latency_us_p50"], json!(null), "{of}");
    }
    // A host without commands has a known activity of zero.
    assert_eq!(world.ask("POST", "/api/2.26/hosts?names=idle", None).await.0, 200);
    let member = "/api/2.26/host-groups/hosts?group_names=g&member_names=idle";
    assert_eq!(world.ask("POST", member, None).await.0, 200);
    let (_, found) = world.ask("GET", "/v1/history?host_group=g", None).await;
    assert_eq!(found["samples"][0]["commands"]["read"]["per_s"], 100.0);
}
