//! Snapshots, groups, clones, and recovery of destroyed objects.

use super::*;

#[tokio::test]
async fn snapshots_of_a_group_are_made_listed_and_restored() {
    let world = World::new();
    for name in ["a", "b"] {
        let new = json!({"name": name, "size_bytes": 8192});
        assert_eq!(world.ask("POST", "/v1/volumes", Some(new)).await.0, 201);
    }
    let group = json!({"name": "app", "volumes": ["a"]});
    assert_eq!(world.ask("POST", "/v1/groups", Some(group)).await.0, 201);
    let add = json!({"add": ["b"]});
    let (status, group) = world.ask("PATCH", "/v1/groups/app", Some(add)).await;
    assert_eq!((status, &group["volumes"]), (200, &json!(["a", "b"])));
    let asked = json!({"group": "app", "suffix": "before"});
    let (status, made) = world.ask("POST", "/v1/snapshots", Some(asked.clone())).await;
    assert_eq!((status, &made["snapshots"][1]["name"]), (201, &json!("app.before.b")));
    let (status, refused) = world.ask("POST", "/v1/snapshots", Some(asked)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("snapshot_exists")));
    let asked = json!({"volumes": ["a"]});
    let (_, made) = world.ask("POST", "/v1/snapshots", Some(asked)).await;
    assert_eq!(made["snapshots"][0]["name"], "a.1");
    let renamed = world.ask("PATCH", "/v1/snapshots/a.1", Some(json!({"suffix": "x"}))).await.1;
    assert_eq!(world.ask("GET", "/v1/snapshots/a.x", None).await, (200, renamed));
    let (_, page) = world.ask("GET", "/v1/snapshots?limit=1&after=a.x", None).await;
    let first = &page["snapshots"][0]["name"];
    assert_eq!((first, &page["more"]), (&json!("app.before.a"), &json!(true)));
    let (_, of_group) = world.ask("GET", "/v1/snapshots?group=app", None).await;
    assert_eq!(of_group["snapshots"].as_array().unwrap().len(), 2);
    let clone = json!({"name": "c", "source": "a.x"});
    let (status, made) = world.ask("POST", "/v1/clones", Some(clone)).await;
    assert_eq!((status, &made["size_bytes"], &made["snapshots"]), (201, &json!(8192), &json!(0)));
    let source = json!({"source": "a.x"});
    assert_eq!(world.ask("POST", "/v1/volumes/a/restore", Some(source.clone())).await.0, 200);
    let (status, refused) = world.ask("POST", "/v1/volumes/b/restore", Some(source.clone())).await;
    assert_eq!((status, &refused["code"]), (400, &json!("wrong_source")));
    assert_eq!(world.ask("POST", "/v1/volumes/b/overwrite", Some(source)).await.0, 200);
    // A destroyed group takes its snapshots along, and recovery brings them back.
    let count = async || {
        let (_, status) = world.ask("GET", "/v1/status", None).await;
        (status["volumes"].clone(), status["snapshots"].clone())
    };
    assert_eq!(world.ask("POST", "/v1/groups/app/recover", None).await.0, 409);
    assert_eq!(world.ask("DELETE", "/v1/groups/app", None).await.0, 204);
    assert_eq!(count().await, (json!(3), json!(1)));
    assert!(world.ask("GET", "/v1/groups/app", None).await.1["eradicate_ms"].is_u64());
    assert_eq!(world.ask("POST", "/v1/groups/app/recover", None).await.0, 200);
    assert_eq!(count().await, (json!(3), json!(3)));
    assert_eq!(world.ask("POST", "/v1/groups/app/eradicate", None).await.0, 409);
    assert_eq!(world.ask("DELETE", "/v1/groups/app?eradicate=true", None).await.0, 204);
    assert_eq!(world.ask("GET", "/v1/groups/app", None).await.0, 404);
    assert_eq!(count().await, (json!(3), json!(1)));
}

#[tokio::test]
async fn what_is_destroyed_is_shown_recovered_and_eradicated() {
    let world = World::new();
    let new = json!({"name": "a", "size_bytes": 4096});
    assert_eq!(world.ask("POST", "/v1/volumes", Some(new.clone())).await.0, 201);
    let change = json!({"eradication_delay_s": 60});
    let (_, settings) = world.ask("PATCH", "/v1/settings", Some(change)).await;
    assert_eq!(settings["eradication_delay_s"], 60);
    let (_, made) = world.ask("POST", "/v1/snapshots", Some(json!({"volumes": ["a"]}))).await;
    assert_eq!(world.ask("DELETE", "/v1/volumes/a", None).await.0, 204);
    let (_, shown) = world.ask("GET", "/v1/volumes/a", None).await;
    assert_eq!(shown["eradicate_ms"], 61_234);
    let (status, refused) = world.ask("POST", "/v1/volumes", Some(new)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("volume_destroyed")));
    let wanted = "Volume a has been destroyed. Recover it, or eradicate it to free its name and \
                  its space.";
    assert_eq!(refused["message"], wanted);
    let count = |list: &Value| list.as_array().unwrap().len();
    for (query, expected) in [("", 0), ("?destroyed=true", 1)] {
        let (_, volumes) = world.ask("GET", &format!("/v1/volumes{query}"), None).await;
        let (_, snapshots) = world.ask("GET", &format!("/v1/snapshots{query}"), None).await;
        assert_eq!(count(&volumes["volumes"]), expected);
        assert_eq!(count(&snapshots["snapshots"]), expected);
    }
    assert_eq!(world.ask("POST", "/v1/volumes/a/recover", None).await.0, 200);
    let (_, snapshot) = world.ask("GET", "/v1/snapshots/a.1", None).await;
    assert_eq!(snapshot, made["snapshots"][0]);
    assert_eq!(world.ask("DELETE", "/v1/snapshots/a.1", None).await.0, 204);
    assert_eq!(world.ask("POST", "/v1/snapshots/a.1/recover", None).await.0, 200);
    assert_eq!(world.ask("POST", "/v1/snapshots/a.1/eradicate", None).await.0, 409);
    assert_eq!(world.ask("DELETE", "/v1/snapshots/a.1?eradicate=true", None).await.0, 204);
    assert_eq!(world.ask("GET", "/v1/snapshots/a.1", None).await.0, 404);
    assert_eq!(world.ask("POST", "/v1/volumes/a/eradicate", None).await.0, 409);
    assert_eq!(world.ask("DELETE", "/v1/volumes/a", None).await.0, 204);
    assert_eq!(world.ask("POST", "/v1/volumes/a/eradicate", None).await.0, 204);
    assert_eq!(world.ask("GET", "/v1/volumes/a", None).await.0, 404);
}
