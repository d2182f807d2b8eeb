//! REST 2.x: what its paths have in common, and what could break its clients.

use super::*;

const VOLUMES: &str = "/api/2.26/volumes";

/// The paths of REST 2.x with a version, and the methods that each takes. What is refused even if
/// it is only read is no list.
fn described_paths() -> Vec<(String, Vec<String>)> {
    let description = serde_json::to_value(openapi()).unwrap();
    let paths = description["paths"].as_object().unwrap().iter();
    let own = paths.filter(|(path, _)| path.starts_with("/api/2."));
    let is_method = |name: &str, item: &Value| {
        name != "parameters" && (name != "get" || item["responses"].get("200").is_some())
    };
    own.map(|(path, item)| {
        let methods = item.as_object().unwrap().iter().filter(|(name, it)| is_method(name, it));
        let methods = methods.map(|(name, _)| name.clone()).collect();
        (path.clone(), methods)
    })
    .collect()
}

fn message(refused: &Value) -> &str {
    refused["errors"][0]["message"].as_str().unwrap()
}

#[tokio::test]
async fn every_list_is_a_page_and_takes_the_same_parameters() {
    let world = World::new();
    let lists =
        described_paths().into_iter().filter(|(_, methods)| methods.contains(&"get".into()));
    let mut count = 0;
    for (path, _) in lists {
        count += 1;
        for minor in ["0", "26"] {
            let path = path.replace("{minor}", minor);
            let (status, page) = world.ask("GET", &path, None).await;
            assert_eq!(status, 200, "{path}: {page}");
            assert!(page["items"].is_array(), "{path}");
            assert_eq!(page["more_items_remaining"], false, "{path}");
        }
        let path = path.replace("{minor}", "26");
        let query = "limit=0&sort=name-&filter=not(name='x')&offset=3&context_names=";
        let (status, page) = world.ask("GET", &format!("{path}?{query}"), None).await;
        assert_eq!((status, &page["items"]), (200, &json!([])), "{path}");
        assert!(page["total_item_count"].is_u64(), "{path}");
        for bad in ["colour=red", "filter=name%3D", "limit=-1", "sort=a..b", "context_names=other"]
        {
            let (status, refused) = world.ask("GET", &format!("{path}?{bad}"), None).await;
            assert_eq!(status, 400, "{path}?{bad}");
            let name = bad.split('=').next().unwrap();
            assert_eq!(refused["errors"][0]["context"], name, "{path}?{bad}");
        }
    }
    assert!(count > 50);
}

#[tokio::test]
async fn changes_need_the_names_of_their_objects() {
    let world = World::new();
    for (path, methods) in described_paths() {
        let path = path.replace("{minor}", "26");
        for method in methods.iter().filter(|method| *method != "get") {
            if path.ends_with("/login") || path.ends_with("/logout") || path.ends_with("/arrays") {
                continue;
            }
            let (status, refused) = world.ask(&method.to_uppercase(), &path, None).await;
            assert_eq!(status, 400, "{method} {path}: {refused}");
        }
    }
}

#[tokio::test]
async fn unknown_versions_and_paths_are_404() {
    let world = World::new();
    for path in ["/api/2.43/volumes", "/api/1.19/volume", "/api/2.26/none", "/api/2.26", "/api/x"] {
        let (status, refused) = world.ask("GET", path, None).await;
        assert_eq!(status, 404, "{path}: {}", message(&refused));
    }
    let (status, refused) = world.ask("PUT", VOLUMES, None).await;
    assert_eq!(status, 405, "{}", message(&refused));
    let (_, versions) = world.ask("GET", "/api/api_version", None).await;
    assert_eq!(versions["version"].as_array().unwrap().len(), 43);
}

#[tokio::test]
async fn a_request_with_several_names_is_done_completely_or_not_at_all() {
    let world = World::new();
    let size = json!({"provisioned": 1 << 20});
    let make = |names: &str| format!("{VOLUMES}?names={names}");
    let (status, made) = world.ask("POST", &make("a,b,c"), Some(size.clone())).await;
    assert_eq!((status, made["items"].as_array().unwrap().len()), (200, 3));
    for (method, names, body) in [
        ("POST", "d,a", Some(size.clone())),
        ("POST", "d,D", Some(size.clone())),
        ("POST", "d,-", Some(size)),
        ("PATCH", "a,x", Some(json!({"destroyed": true}))),
        ("PATCH", "a,b", Some(json!({"name": "e"}))),
        ("PATCH", "a,b", Some(json!({"provisioned": 1, "destroyed": true}))),
        ("DELETE", "a,b", None),
    ] {
        let (status, refused) = world.ask(method, &make(names), body).await;
        assert_eq!(status, 400, "{method} {names}: {refused}");
    }
    let (_, page) = world.ask("GET", &format!("{VOLUMES}?filter=not(destroyed)"), None).await;
    let names: Vec<_> = page["items"].as_array().unwrap().iter().map(|v| &v["name"]).collect();
    assert_eq!(names, ["a", "b", "c"]);
    world.store.is_full.store(true, Ordering::Relaxed);
    let (status, refused) = world.ask("PATCH", &make("a"), Some(json!({"destroyed": true}))).await;
    let full = "The pool is full. Unmap or destroy something, or grow the pool.";
    assert_eq!((status, message(&refused)), (400, full));
}

#[tokio::test]
async fn destroyed_objects_are_distinguished_and_never_by_an_empty_list() {
    let world = World::new();
    let volume = |query: &str| format!("{VOLUMES}?names=a{query}");
    world.ask("POST", &volume(""), Some(json!({"provisioned": 4096}))).await;
    let (status, refused) = world.ask("GET", &volume("&destroyed=true"), None).await;
    assert_eq!((status, message(&refused)), (400, "Volume does not exist."));
    let (_, gone) = world.ask("PATCH", &volume(""), Some(json!({"destroyed": true}))).await;
    assert_eq!(gone["items"][0]["time_remaining"], 86_400_000);
    for (query, count) in [("", 1), ("?destroyed=true", 1), ("?destroyed=false", 0)] {
        let (_, page) = world.ask("GET", &format!("{VOLUMES}{query}"), None).await;
        assert_eq!(page["items"].as_array().unwrap().len(), count, "{query}");
    }
    let (status, refused) =
        world.ask("POST", &volume(""), Some(json!({"provisioned": 4096}))).await;
    assert_eq!((status, message(&refused)), (400, "Volume has been destroyed."));
}

#[tokio::test]
async fn unsupported_objects_are_an_empty_list_and_cant_be_created() {
    let world = World::new();
    for path in ["resource-accesses", "realms", "fleets"] {
        let path = format!("/api/2.26/{path}");
        let (status, page) = world.ask("GET", &path, None).await;
        assert_eq!((status, &page["items"]), (200, &json!([])), "{path}: {page}");
        let (status, refused) = world.ask("POST", &path, Some(json!({}))).await;
        assert_eq!(status, 400, "{path}: {refused}");
        assert!(message(&refused).contains("not supported"), "{path}: {refused}");
    }
    for path in ["volume-groups/tags", "pods/performance/replication", "resource-accesses/status"] {
        let (status, page) = world.ask("GET", &format!("/api/2.26/{path}"), None).await;
        assert_eq!((status, &page["items"]), (200, &json!([])), "{path}: {page}");
    }
}

#[tokio::test]
async fn resources_without_a_list_are_refused_with_the_reason() {
    let world = World::new();
    for (method, path, what) in [
        ("GET", "arrays/eula", "Licence agreements to sign"),
        ("PATCH", "arrays/eula", "Licence agreements to sign"),
        ("POST", "resource-accesses/batch", "Access of other arrays"),
    ] {
        let (status, refused) = world.ask(method, &format!("/api/2.26/{path}"), None).await;
        let reported = format!("{what}: not supported by this array.");
        assert_eq!((status, message(&refused)), (400, reported.as_str()), "{method} {path}");
    }
    let (status, _) = world.ask("GET", "/api/2.26/resource-accesses/batch", None).await;
    assert_eq!(status, 405);
}

/// What is refused may be asked for as it is.
#[tokio::test]
async fn fixed_settings_can_be_set_to_their_value() {
    let world = World::new();
    let lacks = |what: &str| format!("{what}: not supported by this array.");
    for (path, same, other, what) in [
        (
            "arrays",
            json!({"console_lock_enabled": false}),
            json!({"console_lock_enabled": true}),
            "Locking the console",
        ),
        (
            "arrays",
            json!({"idle_timeout": 1_800_000}),
            json!({"idle_timeout": 0, "name": "other"}),
            "An idle timeout other than 30 minutes",
        ),
        (
            "arrays",
            json!({"ntp_symmetric_key": ""}),
            json!({"ntp_symmetric_key": "horse"}),
            "Keys of time servers",
        ),
    ] {
        let path = format!("/api/2.26/{path}");
        let (_, before) = world.ask("GET", &path, None).await;
        let (status, page) = world.ask("PATCH", &path, Some(same.clone())).await;
        assert_eq!((status, &page["items"]), (200, &before["items"]), "{path} {same}");
        let (status, refused) = world.ask("PATCH", &path, Some(other.clone())).await;
        assert_eq!((status, message(&refused)), (400, lacks(what).as_str()), "{path} {other}");
        assert_eq!(world.ask("GET", &path, None).await.1["items"], before["items"], "{other}");
    }
    let (_, page) = world.ask("GET", "/api/2.26/syslog-servers/settings", None).await;
    assert_eq!(page["items"][0]["tls_audit_enabled"], false);
}

/// The sessions of these tests are those of `h` at both ports; `gone` was at the second.
#[tokio::test]
async fn initiators_are_listed_at_the_ports_where_they_are_or_were() {
    let facts = Facts {
        portals: vec!["192.0.2.9:3260".into(), "192.0.2.9:3261".into()],
        port_ids: vec![1, 2],
        ..Facts::default()
    };
    let world = World::of(Arc::new(Quiet), Arc::new(devices::OneDevice), facts);
    let list = async |query: &str| {
        let path = format!("/api/2.26/ports/initiators{query}");
        let (status, page) = world.ask("GET", &path, None).await;
        assert_eq!(status, 200, "{query}: {page}");
        page["items"].as_array().unwrap().clone()
    };
    let row = |item: &Value| {
        let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
        let iqn = text(&item["initiator"]["iqn"]);
        let name = iqn.rsplit(':').next().unwrap().to_owned();
        [name, text(&item["initiator"]["portal"]), text(&item["target"]["name"])].join(" ")
    };
    let rows = |items: &[Value]| items.iter().map(row).collect::<Vec<_>>();
    let all = list("").await;
    assert_eq!(rows(&all), ["gone 192.0.2.1:700 CT0.ETH1", "h - CT0.ETH0", "h - CT0.ETH1"]);
    assert_eq!(all[0]["target"]["portal"], "192.0.2.9:3261");
    assert_eq!(all[0]["target"]["iqn"], world.array.settings().target_name.to_string());
    assert_eq!(rows(&list("?names=ct0.eth0").await), ["h - CT0.ETH0"]);
    let filter = "?filter=initiator.iqn='*gone'";
    assert_eq!(rows(&list(filter).await), ["gone 192.0.2.1:700 CT0.ETH1"]);
    assert_eq!(rows(&list("?limit=1&sort=target.name").await), ["h - CT0.ETH0"]);
    let (status, refused) = world.ask("GET", "/api/2.26/ports/initiators?names=x", None).await;
    assert_eq!((status, message(&refused)), (400, "x does not exist."));
}

#[tokio::test]
async fn refusals_never_repeat_a_secret() {
    let world = World::new();
    for body in [
        json!({"chap": {"host_user": "u", "host_password": "horse"}}),
        json!({"chap": {"host_user": "u", "host_password": 7, "target_user": "horse"}}),
        json!({"chap": "horse"}),
        json!({"chap": {"target_user": "u", "target_password": "correct horse battery"}}),
        json!(["horse"]),
        json!({"personality": "horse"}),
    ] {
        let (status, refused) = world.ask("POST", "/api/2.26/hosts?names=h", Some(body)).await;
        assert_eq!(status, 400, "{refused}");
        assert!(!refused.to_string().contains("horse"), "{refused}");
    }
}

#[tokio::test]
async fn a_response_repeats_the_id_of_its_request() {
    let world = World::new();
    let request = Request::get(VOLUMES)
        .header("authorization", format!("Bearer {}", world.token))
        .header("x-request-id", "r-1")
        .body(Body::empty());
    let response = world.router.clone().oneshot(request.unwrap()).await.unwrap();
    assert_eq!(response.headers()["x-request-id"], "r-1");
}

/// One client compares whole messages to find out that nothing is left to do: each of its requests
/// is sent twice.
#[tokio::test]
async fn repeated_requests_get_the_exact_messages_that_clients_compare() {
    let world = World::new();
    let size = Some(json!({"provisioned": 1 << 20}));
    for (method, path, body) in [
        ("POST", "volumes?names=v", size.clone()),
        ("POST", "hosts?names=h", None),
        ("POST", "volume-snapshots?source_names=v&suffix=s", None),
    ] {
        let (status, made) = world.ask(method, &format!("/api/2.26/{path}"), body).await;
        assert_eq!(status, 200, "{path}: {made}");
    }
    let (connection, destroy) =
        ("connections?host_names=h&volume_names=v", Some(json!({"destroyed": true})));
    let (snapshot, volume) = ("volume-snapshots?names=v.s", "volumes?names=v");
    let snapshot_destroyed = "Volume snapshot has been destroyed. It can be recovered by purevol \
                              recover and eradicated by purevol eradicate.";
    let missing = "No such volume or snapshot.";
    for (method, path, body, again) in [
        ("POST", volume, size.clone(), "Volume already exists."),
        ("POST", "hosts?names=h", None, "Host already exists."),
        ("POST", connection, None, "Connection already exists."),
        ("DELETE", connection, None, "Connection does not exist."),
        ("PATCH", snapshot, destroy.clone(), snapshot_destroyed),
        ("DELETE", snapshot, None, missing),
        ("PATCH", snapshot, destroy.clone(), missing),
        ("PATCH", volume, destroy.clone(), "Volume has been deleted."),
        ("DELETE", connection, None, "Volume has been destroyed."),
        ("POST", connection, None, "Volume has been destroyed."),
        ("POST", volume, size, "Volume has been destroyed."),
        ("DELETE", volume, None, "Volume does not exist."),
        ("DELETE", connection, None, "Volume does not exist."),
        ("DELETE", "hosts?names=h", None, "Host does not exist."),
    ] {
        let path = format!("/api/2.26/{path}");
        world.ask(method, &path, body.clone()).await;
        let (status, refused) = world.ask(method, &path, body).await;
        assert_eq!((status, message(&refused)), (400, again), "{method} {path}");
        assert_eq!(refused["errors"].as_array().unwrap().len(), 1, "{refused}");
    }
}

/// A client adds up the space of the array without checking whether all parts are there.
#[tokio::test]
async fn the_space_of_the_array_has_every_part_that_clients_add_up() {
    let world = World::new();
    let (_, page) = world.ask("GET", "/api/2.26/arrays/space", None).await;
    assert_eq!(page["items"][0]["space"]["replication"], 0);
}
