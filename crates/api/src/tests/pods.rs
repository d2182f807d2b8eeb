//! Pods over REST, and volumes in them.

use super::*;

const PODS: &str = "/api/2.26/pods";
const VOLUMES: &str = "/api/2.26/volumes";

fn names(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

async fn world() -> World {
    let world = World::new();
    let (status, made) =
        world.ask("POST", &format!("{PODS}?names=p&allow_throttle=false"), Some(json!({}))).await;
    assert_eq!(status, 200, "{made}");
    let size = json!({"provisioned": 1 << 20});
    let path = format!("{VOLUMES}?names=p::a,P::b,alone");
    let (status, made) = world.ask("POST", &path, Some(size)).await;
    assert_eq!((status, names(&made)), (200, vec!["p::a", "p::b", "alone"]));
    let first = &made["items"][0];
    assert_eq!((&first["pod"], &first["volume_group"]), (&json!({"name": "p"}), &json!({})));
    assert_eq!(made["items"][2]["pod"], json!({}));
    world
}

async fn refused(world: &World, method: &str, path: &str, body: Value) -> String {
    let (status, page) = world.ask(method, path, Some(body)).await;
    assert_eq!(status, 400, "{method} {path}: {page}");
    page["errors"][0]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn volumes_are_made_in_pods_and_moved_into_and_out_of_them() {
    let world = world().await;
    let patch = async |name: &str, body: Value| {
        let path = format!("{VOLUMES}?names={name}");
        let (status, page) = world.ask("PATCH", &path, Some(body)).await;
        assert_eq!(status, 200, "{page}");
        page["items"][0]["name"].as_str().unwrap().to_owned()
    };
    assert_eq!(patch("alone", json!({"pod": {"name": "P"}})).await, "p::alone");
    assert_eq!(patch("p::alone", json!({"name": "on"})).await, "p::on", "it stays in its pod");
    world.ask("POST", "/api/2.26/volume-groups?names=vg", Some(json!({}))).await;
    assert_eq!(patch("p::on", json!({"volume_group": {"name": "vg"}})).await, "vg/on");
    assert_eq!(patch("vg/on", json!({"pod": {"name": ""}})).await, "vg/on", "it is in none");
    let (_, page) = world.ask("GET", &format!("{PODS}?names=p"), None).await;
    let id = page["items"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(patch("vg/on", json!({"pod": {"id": id}})).await, "p::on");
    assert_eq!(patch("p::on", json!({"pod": {"name": ""}})).await, "on");
    let both = json!({"pod": {"name": "p"}, "volume_group": {"name": "vg"}});
    for (body, expected) in [
        (both, "give one of them"),
        (json!({"pod": {"name": "none"}}), "Pod does not exist."),
        (json!({"name": "p::vg/x"}), "a volume group and a pod"),
        (json!({"name": "none::x"}), "Pod does not exist."),
    ] {
        let message = refused(&world, "PATCH", &format!("{VOLUMES}?names=on"), body).await;
        assert!(message.contains(expected), "{message}");
    }
    let snapshots = "/api/2.26/volume-snapshots?source_names=p::a";
    let (status, made) = world.ask("POST", snapshots, Some(json!({"suffix": "s"}))).await;
    assert_eq!((status, names(&made)), (200, vec!["p::a.s"]));
}

#[tokio::test]
async fn a_pod_is_shown_on_this_array_only() {
    let world = world().await;
    let (_, page) = world.ask("GET", PODS, None).await;
    let pod = &page["items"][0];
    assert_eq!((&pod["name"], &pod["array_count"]), (&json!("p"), &json!(1)));
    assert_eq!(pod["arrays"][0]["name"], world.array.name().as_str());
    assert_eq!(pod["space"]["total_provisioned"], 2 << 20);
    assert_eq!(pod["space"]["used_provisioned"], 2 << 20);
    assert_eq!((&pod["volume_count"], &pod["promotion_status"]), (&json!(2), &json!("promoted")));
    let (_, page) = world.ask("GET", &format!("{PODS}/space?names=P"), None).await;
    assert_eq!(page["items"][0]["space"]["total_provisioned"], 2 << 20);
    for path in ["arrays?group_names=p", "members?pod_names=p", "arrays"] {
        let (status, page) = world.ask("GET", &format!("{PODS}/{path}"), None).await;
        assert_eq!((status, &page["items"][0]["pod"]["name"]), (200, &json!("p")), "{path}");
    }
    let defaults = "/api/2.26/container-default-protections";
    let (_, page) = world.ask("GET", &format!("{defaults}?names=p"), None).await;
    assert_eq!(page["items"][0]["default_protections"], json!([]));
    let message = refused(&world, "GET", &format!("{defaults}?names=none"), json!({})).await;
    assert_eq!(message, "Pod does not exist.");
    for (method, path, body, expected) in [
        ("POST", "?names=q", json!({"quota_limit": 1 << 30}), "A quota of a pod"),
        ("POST", "?names=q", json!({"source": {"name": "p"}}), "A copy of a whole pod"),
        ("POST", "?names=q", json!({"failover_preferences": [{"name": "x"}]}), "failover"),
        ("PATCH", "?names=p", json!({"mediator": "bar"}), "A mediator"),
        ("PATCH", "?names=p", json!({"requested_promotion_state": "demoted"}), "Demoting"),
        ("PATCH", "?names=p", json!({"quota_limit": 1}), "A quota of a pod"),
        ("POST", "/arrays?group_names=p&member_names=x", json!({}), "Stretching"),
        ("POST", "/members?pod_names=p&member_names=x", json!({}), "Stretching"),
        ("DELETE", "/members?pod_names=p&member_names=x", json!({}), "Stretching"),
        ("POST", "?names=P", json!({}), "Pod already exists."),
        ("POST", "?names=a.b", json!({}), "The pod name"),
    ] {
        let message = refused(&world, method, &format!("{PODS}{path}"), body).await;
        assert!(message.contains(expected), "{method} {path}: {message}");
    }
    let same = json!({"mediator": "purestorage", "requested_promotion_state": "promoted"});
    let (status, page) = world.ask("PATCH", &format!("{PODS}?names=p"), Some(same)).await;
    assert_eq!(status, 200, "{page}");
    let (_, page) = world.ask("GET", PODS, None).await;
    assert_eq!(names(&page), ["p"]);
}

#[tokio::test]
async fn pods_are_renamed_and_destroyed_with_their_volumes_on_request() {
    let world = world().await;
    let patch = async |query: &str, body: Value| {
        let (status, page) = world.ask("PATCH", &format!("{PODS}?{query}"), Some(body)).await;
        assert_eq!(status, 200, "{query}: {page}");
    };
    patch("names=p", json!({"name": "q"})).await;
    let (_, page) = world.ask("GET", VOLUMES, None).await;
    assert_eq!(names(&page), ["alone", "q::a", "q::b"]);
    let end = json!({"destroyed": true});
    let message = refused(&world, "PATCH", &format!("{PODS}?names=q"), end.clone()).await;
    assert!(message.contains("Pod q has volumes."), "{message}");
    patch("names=q&destroy_contents=true", end.clone()).await;
    let (_, page) = world.ask("GET", &format!("{PODS}?names=q&destroyed=true"), None).await;
    assert!(page["items"][0]["time_remaining"].as_u64().unwrap() > 0);
    let path = format!("{PODS}?names=q&destroyed=false");
    assert_eq!(refused(&world, "GET", &path, json!({})).await, "Pod does not exist.");
    patch("names=q", json!({"destroyed": false})).await;
    patch("names=q&destroy_contents=true", end).await;
    let message = refused(&world, "DELETE", &format!("{PODS}?names=q"), json!({})).await;
    assert!(message.contains("Pod q has volumes."), "{message}");
    let path = format!("{PODS}?names=q&eradicate_contents=true");
    assert_eq!(world.ask("DELETE", &path, None).await.0, 200);
    let (_, page) = world.ask("GET", VOLUMES, None).await;
    assert_eq!(names(&page), ["alone"]);
}
