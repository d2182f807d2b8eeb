//! Snapshots, groups, copies, and recovery of destroyed objects.

use super::*;

impl World {
    /// A request of REST 2.x: its status and the names of its items, or its message.
    async fn named(&self, method: &str, path: &str, body: Option<Value>) -> (u16, Vec<String>) {
        let (status, answer) = self.ask(method, &format!("/api/2.26/{path}"), body).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let found = match answer["items"].as_array() {
            Some(items) => items.iter().map(|item| text(&item["name"])).collect(),
            None => vec![text(&answer["errors"][0]["message"])],
        };
        (status, found)
    }
}

fn ends(destroyed: bool) -> Option<Value> {
    Some(json!({ "destroyed": destroyed }))
}

fn found(names: &[&str]) -> (u16, Vec<String>) {
    (200, names.iter().map(|name| (*name).to_owned()).collect())
}

#[tokio::test]
async fn snapshots_of_a_group_are_made_listed_and_restored() {
    let world = World::new();
    for name in ["a", "b"] {
        let new = json!({"name": name, "size_bytes": 8192});
        assert_eq!(world.ask("POST", "/v1/volumes", Some(new)).await.0, 201);
    }
    let group = "protection-groups?names=app";
    assert_eq!(world.named("POST", group, None).await, found(&["app"]));
    let members = "/api/2.26/protection-groups/volumes?group_names=app&member_names=a,b";
    assert_eq!(world.ask("POST", members, None).await.0, 200);
    let of_group = "protection-group-snapshots?source_names=app";
    let before = || Some(json!({"suffix": "before"}));
    assert_eq!(world.named("POST", of_group, before()).await, found(&["app.before"]));
    let (status, reported) = world.named("POST", of_group, before()).await;
    assert!(status == 400 && reported[0].contains("already exists"), "{reported:?}");
    let made = world.named("POST", "volume-snapshots?source_names=a", None).await;
    assert_eq!(made, found(&["a.1"]));
    let renamed = world.named("PATCH", "volume-snapshots?names=a.1", Some(json!({"name": "x"})));
    assert_eq!(renamed.await, found(&["a.x"]));
    let all = world.named("GET", "volume-snapshots", None).await;
    assert_eq!(all, found(&["a.x", "app.before.a", "app.before.b"]));
    let of_group = world.named("GET", "volume-snapshots?filter=name='app.*.*'", None).await;
    assert_eq!(of_group, found(&["app.before.a", "app.before.b"]));
    let source = || Some(json!({"source": {"name": "a.x"}}));
    assert_eq!(world.named("POST", "volumes?names=c", source()).await, found(&["c"]));
    let (_, made) = world.ask("GET", "/v1/volumes/c", None).await;
    assert_eq!((&made["size_bytes"], &made["snapshots"]), (&json!(8192), &json!(0)));
    let overwrite = "volumes?names=a,b&overwrite=true";
    assert_eq!(world.named("POST", overwrite, source()).await, found(&["a", "b"]));
    let itself = Some(json!({"source": {"name": "a"}}));
    let (status, reported) = world.named("POST", overwrite, itself).await;
    assert!(status == 400 && reported[0].contains("it is the source itself"), "{reported:?}");
    // A destroyed group takes its snapshots along, and recovery brings them back.
    let count = async || {
        let (_, status) = world.ask("GET", "/v1/status", None).await;
        (status["volumes"].clone(), status["snapshots"].clone())
    };
    assert_eq!(world.named("PATCH", group, ends(false)).await.0, 400);
    assert_eq!(world.named("PATCH", group, ends(true)).await, found(&["app"]));
    assert_eq!(count().await, (json!(3), json!(1)));
    assert_eq!(world.named("PATCH", group, ends(false)).await, found(&["app"]));
    assert_eq!(count().await, (json!(3), json!(3)));
    assert_eq!(world.named("DELETE", group, None).await.0, 400);
    assert_eq!(world.named("PATCH", group, ends(true)).await.0, 200);
    assert_eq!(world.named("DELETE", group, None).await.0, 200);
    assert_eq!(world.named("GET", group, None).await.0, 400);
    assert_eq!(count().await, (json!(3), json!(1)));
}

#[tokio::test]
async fn destroyed_objects_are_shown_recovered_and_eradicated() {
    let world = World::new();
    let new = json!({"name": "a", "size_bytes": 4096});
    assert_eq!(world.ask("POST", "/v1/volumes", Some(new.clone())).await.0, 201);
    let change = json!({"eradication_delay_s": 60});
    let (_, settings) = world.ask("PATCH", "/v1/settings", Some(change)).await;
    assert_eq!(settings["eradication_delay_s"], 60);
    let (volume, snapshot) = ("volumes?names=a", "volume-snapshots?names=a.1");
    let made = "/api/2.26/volume-snapshots?source_names=a";
    let (_, made) = world.ask("POST", made, None).await;
    assert_eq!(world.named("PATCH", volume, ends(true)).await, found(&["a"]));
    let (_, shown) = world.ask("GET", "/v1/volumes/a", None).await;
    assert_eq!(shown["eradicate_ms"], 61_234);
    let (status, refused) = world.ask("POST", "/v1/volumes", Some(new)).await;
    assert_eq!((status, &refused["code"]), (409, &json!("volume_destroyed")));
    let wanted = "Volume a has been destroyed. Recover it, or eradicate it to free its name and \
                  its space.";
    assert_eq!(refused["message"], wanted);
    for (destroyed, volumes, snapshots) in [(false, vec![], vec![]), (true, vec!["a"], vec!["a.1"])]
    {
        let (_, page) = world.ask("GET", &format!("/v1/volumes?destroyed={destroyed}"), None).await;
        assert_eq!(page["volumes"].as_array().unwrap().len(), volumes.len());
        let list = format!("volume-snapshots?destroyed={destroyed}");
        assert_eq!(world.named("GET", &list, None).await, found(&snapshots));
    }
    assert_eq!(world.named("PATCH", volume, ends(false)).await, found(&["a"]));
    let (_, shown) = world.ask("GET", &format!("/api/2.26/{snapshot}"), None).await;
    assert_eq!(shown["items"], made["items"]);
    assert_eq!(world.named("PATCH", snapshot, ends(true)).await, found(&["a.1"]));
    assert_eq!(world.named("PATCH", snapshot, ends(false)).await, found(&["a.1"]));
    let of_one = "/v1/snapshots/a.1/space";
    assert_eq!(world.ask("GET", of_one, None).await, (200, json!({"space": null})));
    assert_eq!(world.named("DELETE", snapshot, None).await.0, 400);
    assert_eq!(world.named("PATCH", snapshot, ends(true)).await.0, 200);
    assert_eq!(world.named("DELETE", snapshot, None).await.0, 200);
    assert_eq!(world.ask("GET", of_one, None).await.0, 404);
    assert_eq!(world.named("DELETE", volume, None).await.0, 400);
    assert_eq!(world.named("PATCH", volume, ends(true)).await.0, 200);
    assert_eq!(world.named("DELETE", volume, None).await.0, 200);
    assert_eq!(world.ask("GET", "/v1/volumes/a", None).await.0, 404);
}
