//! Volume groups over REST, and volumes in them.

use super::*;

const GROUPS: &str = "/api/2.26/volume-groups";
const VOLUMES: &str = "/api/2.26/volumes";

fn names(page: &Value) -> Vec<&str> {
    let items = page["items"].as_array().unwrap_or_else(|| panic!("{page}"));
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

async fn world() -> World {
    let world = World::new();
    let (status, made) = world.ask("POST", &format!("{GROUPS}?names=vg"), Some(json!({}))).await;
    assert_eq!(status, 200, "{made}");
    let size = json!({"provisioned": 1 << 20});
    let path = format!("{VOLUMES}?names=vg/a,VG%2Fb,alone");
    let (status, made) = world.ask("POST", &path, Some(size)).await;
    assert_eq!((status, names(&made)), (200, vec!["vg/a", "vg/b", "alone"]));
    assert_eq!(made["items"][0]["volume_group"], json!({"name": "vg"}));
    assert_eq!(made["items"][2]["volume_group"], json!({}));
    world
}

#[tokio::test]
async fn volumes_are_made_in_groups_and_moved_into_and_out_of_them() {
    let world = world().await;
    let patch = async |name: &str, body: Value| {
        let path = format!("{VOLUMES}?names={name}");
        let (status, page) = world.ask("PATCH", &path, Some(body)).await;
        match status {
            200 => page["items"][0]["name"].as_str().unwrap().to_owned(),
            400 => page["errors"][0]["message"].as_str().unwrap().to_owned(),
            _ => panic!("{page}"),
        }
    };
    assert_eq!(patch("alone", json!({"volume_group": {"name": "VG"}})).await, "vg/alone");
    assert_eq!(patch("vg/alone", json!({"volume_group": {"name": ""}})).await, "alone");
    assert_eq!(patch("alone", json!({"name": "vg/in"})).await, "vg/in");
    assert_eq!(patch("vg/in", json!({"name": "on"})).await, "vg/on", "it stays in its group");
    let other = json!({"name": "none/on"});
    assert_eq!(patch("vg/on", other).await, "Volume group does not exist.");
    let taken = json!({"name": "vg/a"});
    assert_eq!(patch("vg/on", taken).await, "Volume already exists.");
    for (body, text) in [
        (json!({"volume_group": {"name": "none"}}), "Volume group does not exist."),
        (json!({"volume_group": {}}), "either a `name` or an `id`"),
        (json!({"volume_group": {"name": "vg"}, "name": "x"}), "Give either"),
        (json!({"volume_group": {"name": "vg"}, "destroyed": true}), "no other change"),
        (json!({"name": "vg/a/b"}), "names two volume groups"),
    ] {
        let reported = patch("vg/on", body.clone()).await;
        assert!(reported.contains(text), "{body}: {reported}");
    }
    // Several at once, unless two would have one name.
    let (_, made) = world.ask("POST", &format!("{GROUPS}?names=other"), None).await;
    let id = made["items"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("{VOLUMES}?names=vg/a,vg/b");
    let (_, moved) = world.ask("PATCH", &path, Some(json!({"volume_group": {"id": id}}))).await;
    assert_eq!(names(&moved), ["other/a", "other/b"]);
    let size = json!({"provisioned": 1 << 20});
    assert_eq!(world.ask("POST", &format!("{VOLUMES}?names=vg/a"), Some(size)).await.0, 200);
    let path = format!("{VOLUMES}?names=vg/a,other/a");
    let out = json!({"volume_group": {"name": ""}});
    assert_eq!(world.ask("PATCH", &path, Some(out)).await.0, 400);
    let (_, found) = world.ask("GET", &format!("{VOLUMES}?filter=name='OTHER/*'"), None).await;
    assert_eq!(names(&found), ["other/a", "other/b"]);
    let query = "volume-groups/volumes?group_names=other&member_names=other/b";
    let (_, members) = world.ask("GET", &format!("/api/2.26/{query}"), None).await;
    let pair = json!({"group": {"name": "other"}, "member": {"name": "other/b"},
        "context": {"name": world.array.name()}});
    assert_eq!(members["items"], json!([pair]));
    let (_, members) = world.ask("GET", "/api/2.26/volumes/volume-groups", None).await;
    assert_eq!(members["items"].as_array().unwrap().len(), 4);
    // The interface of our own takes and shows the same names.
    let (status, shown) = world.ask("GET", "/v1/volumes/other%2Fa", None).await;
    assert_eq!((status, &shown["name"]), (200, &json!("other/a")));
    let source = json!({"source": {"name": "other/a"}});
    let (status, copy) = world.ask("POST", &format!("{VOLUMES}?names=vg/c"), Some(source)).await;
    assert_eq!((status, names(&copy)), (200, vec!["vg/c"]));
    let (status, refused) =
        world.ask("POST", "/v1/volumes", Some(json!({"name": "no/a", "size_bytes": 4096}))).await;
    assert_eq!((status, &refused["code"]), (404, &json!("no_such_volume_group")));
}

#[tokio::test]
async fn groups_are_listed_renamed_destroyed_recovered_and_eradicated() {
    let world = world().await;
    let vg = format!("{GROUPS}?names=vg");
    let (_, page) = world.ask("GET", &vg, None).await;
    let group = &page["items"][0];
    assert_eq!((&group["volume_count"], &group["destroyed"]), (&json!(2), &json!(false)));
    assert_eq!(group["space"]["total_provisioned"], 2 << 20);
    assert_eq!(group["priority_adjustment"]["priority_adjustment_value"], 0);
    let id = group["id"].as_str().unwrap();
    assert_eq!(names(&world.ask("GET", &format!("{GROUPS}?ids={id}"), None).await.1), ["vg"]);
    let (_, space) = world.ask("GET", &format!("{GROUPS}/space?names=vg"), None).await;
    assert_eq!(space["items"][0]["space"], group["space"]);
    let no_limits = json!({"qos": {"bandwidth_limit": 549_755_813_888_u64},
        "priority_adjustment":
            {"priority_adjustment_operator": "+", "priority_adjustment_value": 0}});
    assert_eq!(world.ask("PATCH", &vg, Some(no_limits)).await.0, 200);
    for (method, query, body, text) in [
        ("POST", "names=vg", json!({}), "Volume group already exists."),
        ("POST", "names=a/b", json!({}), "must not contain '/'"),
        ("POST", "names=x", json!({"qos": {"iops_limit": 99}}), "IOPS are limited to 100"),
        ("PATCH", "names=vg", json!({"qos": {"iops_limit": 99}}), "IOPS are limited to 100"),
        ("PATCH", "names=vg", json!({"qos": {}, "name": "y"}), "not both"),
        (
            "PATCH",
            "names=vg",
            json!({"priority_adjustment": {"priority_adjustment_value": 10}}),
            "A priority of a volume group: not",
        ),
        ("PATCH", "names=vg", json!({"name": "x", "destroyed": true}), "no other change"),
        ("PATCH", "names=none", json!({}), "Volume group does not exist."),
        ("GET", "names=vg&destroyed=true", json!({}), "Volume group does not exist."),
        ("DELETE", "names=vg", json!({}), "is not destroyed"),
    ] {
        let path = format!("{GROUPS}?{query}");
        let (status, refused) = world.ask(method, &path, Some(body)).await;
        let reported = refused["errors"][0]["message"].as_str().unwrap_or_default();
        assert!(status == 400 && reported.contains(text), "{method} {query}: {refused}");
    }
    let (_, renamed) = world.ask("PATCH", &vg, Some(json!({"name": "new"}))).await;
    assert_eq!(names(&renamed), ["new"]);
    let volume =
        async |name: &str| world.ask("GET", &format!("{VOLUMES}?names={name}"), None).await;
    assert_eq!(volume("new/a").await.0, 200);
    let new = format!("{GROUPS}?names=new");
    let (status, ended) = world.ask("PATCH", &new, Some(json!({"destroyed": true}))).await;
    assert_eq!((status, &ended["items"][0]["destroyed"]), (200, &json!(true)));
    assert!(ended["items"][0]["time_remaining"].is_u64());
    assert_eq!(volume("new/a").await.1["items"][0]["destroyed"], true);
    assert_eq!(
        names(&world.ask("GET", &format!("{GROUPS}?destroyed=false"), None).await.1),
        [""; 0]
    );
    let one = json!({"destroyed": false});
    let (status, refused) = world.ask("PATCH", &format!("{VOLUMES}?names=new/a"), Some(one)).await;
    let reported = &refused["errors"][0]["message"];
    assert_eq!((status, reported), (400, &json!("Volume group has been destroyed.")));
    assert_eq!(world.ask("PATCH", &new, Some(json!({"destroyed": false}))).await.0, 200);
    assert_eq!(volume("new/a").await.1["items"][0]["destroyed"], false);
    assert_eq!(world.ask("PATCH", &new, Some(json!({"destroyed": true}))).await.0, 200);
    assert_eq!(world.ask("DELETE", &new, None).await.0, 200);
    assert_eq!(volume("new/a").await.0, 400);
    assert_eq!(volume("alone").await.0, 200);
    assert_eq!(world.ask("GET", &new, None).await.0, 400);
}

#[tokio::test]
async fn a_volume_group_has_its_own_limits() {
    let world = world().await;
    let vg = format!("{GROUPS}?names=vg");
    let limited = json!({"qos": {"iops_limit": 1000, "bandwidth_limit": 1 << 20}});
    let (_, page) = world.ask("PATCH", &vg, Some(limited.clone())).await;
    assert_eq!(page["items"][0]["qos"], limited["qos"]);
    let (_, metrics) = metrics::text(&world, "/metrics").await;
    let expected = "holdfast_volume_group_limit_commands_per_second{volume_group=\"vg\"} 1000";
    assert!(metrics.contains(expected), "{metrics}");
    let none_left = json!({"qos": {"iops_limit": 100_000_000}});
    let (_, page) = world.ask("PATCH", &vg, Some(none_left)).await;
    assert_eq!(page["items"][0]["qos"]["iops_limit"], 100_000_000);
    assert_eq!(page["items"][0]["qos"]["bandwidth_limit"], 1 << 20);
    let (_, page) = world.ask("GET", &format!("{VOLUMES}?names=vg/a"), None).await;
    assert_eq!(page["items"][0]["qos"]["iops_limit"], 100_000_000, "those of volumes stay");
}
