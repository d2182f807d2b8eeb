//! Switches of volumes and of the array, and the background pass of reduction.

use super::*;

#[tokio::test]
async fn offloads_are_switched_and_shown_for_a_volume_and_for_the_array() {
    let world = World::new();
    let new = json!({"name": "db1", "size_bytes": 4096});
    let (_, made) = world.ask("POST", "/v1/volumes", Some(new)).await;
    let on = json!({
        "compare_and_write": true,
        "extended_copy": true,
        "write_same": true,
        "unmap": true,
        "token_copy": true,
    });
    assert_eq!((&made["offloads"], &made["offloads_in_effect"]), (&on, &on));
    let change = json!({"offloads": {"extended_copy": false, "unmap": true}});
    let (status, volume) = world.ask("PATCH", "/v1/volumes/db1", Some(change)).await;
    assert_eq!((status, &volume["offloads"]["extended_copy"]), (200, &json!(false)));
    assert_eq!(volume["size_bytes"], 4096);
    let change = json!({"offloads": {"write_same": false}});
    let (status, settings) = world.ask("PATCH", "/v1/settings", Some(change)).await;
    assert_eq!((status, &settings["offloads"]["write_same"]), (200, &json!(false)));
    let (_, volume) = world.ask("GET", "/v1/volumes/db1", None).await;
    assert_eq!(volume["offloads"]["write_same"], true);
    let mut in_effect = on.clone();
    in_effect["extended_copy"] = json!(false);
    in_effect["write_same"] = json!(false);
    assert_eq!(volume["offloads_in_effect"], in_effect);
    let change = json!({"offloads": {"write_same": true}});
    assert_eq!(world.ask("PATCH", "/v1/settings", Some(change)).await.1["offloads"], on);
}

#[tokio::test]
async fn reduction_is_switched_and_shown_for_a_volume() {
    let world = World::new();
    let plain = json!({"name": "plain", "size_bytes": 8192});
    let (_, made) = world.ask("POST", "/v1/volumes", Some(plain)).await;
    let both = |volume: &Value| (volume["deduplication"].clone(), volume["compression"].clone());
    assert_eq!(both(&made), (json!(true), json!(true)));
    let new = json!({"name": "db1", "size_bytes": 8192, "deduplication": false});
    let (status, made) = world.ask("POST", "/v1/volumes", Some(new)).await;
    assert_eq!((status, both(&made)), (201, (json!(false), json!(true))));
    let change = json!({"compression": false, "size_bytes": 16384});
    let (status, changed) = world.ask("PATCH", "/v1/volumes/db1", Some(change)).await;
    assert_eq!((status, both(&changed)), (200, (json!(false), json!(false))));
    assert_eq!(changed["size_bytes"], 16384);
    let source = json!({"source": {"name": "db1"}});
    assert_eq!(world.ask("POST", "/api/2.26/volumes?names=c", Some(source)).await.0, 200);
    let (_, clone) = world.ask("GET", "/v1/volumes/c", None).await;
    assert_eq!(both(&clone), (json!(false), json!(false)));
    let change = json!({"deduplication": true});
    let (_, changed) = world.ask("PATCH", "/v1/volumes/db1", Some(change.clone())).await;
    assert_eq!(both(&changed), (json!(true), json!(false)));
    let (_, shown) = world.ask("GET", "/v1/volumes/db1", None).await;
    assert_eq!(shown, changed);
    // Snapshots have no such switches, and unknown names are refused.
    let snapshot = "/api/2.26/volume-snapshots?source_names=db1&suffix=s";
    assert_eq!(world.ask("POST", snapshot, None).await.0, 200);
    for (path, body, expected) in [
        ("/v1/volumes/db1.s", change, (404, "no_such_volume")),
        ("/v1/volumes/db1", json!({"dedup": true}), (400, "bad_request")),
        ("/v1/volumes/db1", json!({"compression": "off"}), (400, "bad_request")),
    ] {
        let (status, refused) = world.ask("PATCH", path, Some(body)).await;
        assert_eq!((status, refused["code"].as_str().unwrap()), expected, "{path}");
    }
    let wrong = json!({"name": "x", "size_bytes": 8192, "compression": 1});
    assert_eq!(world.ask("POST", "/v1/volumes", Some(wrong)).await.0, 400);
}

#[tokio::test]
async fn a_background_pass_is_begun_shown_and_stopped() {
    let world = World::new();
    let (status, idle) = world.ask("GET", "/v1/pool/optimize", None).await;
    assert_eq!((status, &idle["running"]), (200, &json!(false)));
    assert_eq!(idle["failure"], "the pool is full");
    let (status, begun) = world.ask("POST", "/v1/pool/optimize", None).await;
    assert_eq!((status, &begun["running"]), (200, &json!(true)));
    assert_eq!((&begun["rows_done"], &begun["rows_total"]), (&json!(0), &json!(256)));
    let (status, refused) = world.ask("POST", "/v1/pool/optimize", None).await;
    assert_eq!((status, &refused["code"]), (409, &json!("optimize_running")));
    for path in ["/v1/status", "/v1/counters"] {
        assert_eq!(world.ask("GET", path, None).await.1["optimize"], begun, "{path}");
    }
    let (status, stopped) = world.ask("DELETE", "/v1/pool/optimize", None).await;
    assert_eq!((status, &stopped["running"]), (200, &json!(false)));
}

#[tokio::test]
async fn a_volume_is_created_with_its_connections_or_not_at_all() {
    let world = World::new();
    for name in ["x", "y"] {
        world.host(name, &format!("iqn.2026-11.com.example:{name}")).await;
    }
    assert_eq!(world.ask("POST", "/api/2.26/host-groups?names=g", None).await.0, 200);
    let member = "/api/2.26/host-groups/hosts?group_names=g&member_names=y";
    assert_eq!(world.ask("POST", member, None).await.0, 200);
    let make = async |name: &str, connect: Value| {
        let new = json!({"name": name, "size_bytes": 4096, "connect": connect});
        world.ask("POST", "/v1/volumes", Some(new)).await
    };
    for (wrong, refused) in [
        (json!({"hosts": ["x", "none"]}), 404),
        (json!({"hosts": ["x"], "host_groups": ["none"]}), 404),
        (json!({"hosts": ["y"], "host_groups": ["g"]}), 400),
        (json!({"hosts": ["x"], "luns": [1]}), 400),
    ] {
        assert_eq!(make("v", wrong.clone()).await.0, refused, "{wrong}");
        assert_eq!(world.ask("GET", "/v1/volumes/v", None).await.0, 404, "{wrong}");
    }
    let (status, made) = make("v", json!({"hosts": ["x"], "host_groups": ["g"]})).await;
    assert_eq!((status, &made["connections"]), (201, &json!(2)));
    let of = "/api/2.26/connections?volume_names=v&sort=host.name";
    let (_, of) = world.ask("GET", of, None).await;
    let of = of["items"].as_array().unwrap().iter();
    let of: Vec<_> = of.map(|one| (one["host"]["name"].clone(), one["lun"].clone())).collect();
    assert_eq!(of, [(json!("x"), json!(1)), (json!("y"), json!(254))]);
}
