//! REST 2.x: host groups, tags, protection groups with schedules, limits, sources.

use super::*;

impl World {
    /// Sends a request to a path of REST 2.x that must succeed, and returns the items.
    async fn done(&self, method: &str, path: &str, body: Option<Value>) -> Vec<Value> {
        let (status, page) = self.ask(method, &format!("/api/2.26/{path}"), body).await;
        assert_eq!(status, 200, "{method} {path}: {page}");
        page["items"].as_array().unwrap().clone()
    }

    /// Sends a request that must be refused, and returns the message.
    async fn refused(&self, method: &str, path: &str, body: Option<Value>) -> String {
        let (status, refused) = self.ask(method, &format!("/api/2.26/{path}"), body).await;
        assert_eq!(status, 400, "{method} {path}: {refused}");
        refused["errors"][0]["message"].as_str().unwrap().to_owned()
    }

    async fn with_volumes(names: &str) -> Self {
        let world = Self::new();
        let size = Some(json!({"provisioned": 4096}));
        world.done("POST", &format!("volumes?names={names}"), size).await;
        world
    }
}

fn names(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["name"].as_str().unwrap()).collect()
}

fn fields(items: &[Value], paths: &[&str]) -> Vec<String> {
    let row = |item: &Value| {
        let field =
            |path: &&str| path.split('.').fold(item, |value, name| &value[name]).to_string();
        paths.iter().map(field).collect::<Vec<_>>().join(" ").replace('"', "")
    };
    items.iter().map(row).collect()
}

#[tokio::test]
async fn volumes_are_shared_by_the_hosts_of_a_group() {
    let world = World::with_volumes("a,b,c").await;
    world.done("POST", "hosts?names=x,y", None).await;
    let made = world.done("POST", "host-groups?names=g,empty", Some(json!({}))).await;
    assert_eq!((names(&made), &made[0]["host_count"]), (vec!["g", "empty"], &json!(0)));
    assert_eq!(
        world.refused("POST", "host-groups?names=G", None).await,
        "Host group already exists."
    );
    let hosts = "host-groups/hosts?group_names=g&member_names=x,y";
    let members = world.done("POST", hosts, None).await;
    let shown = world.done("GET", "hosts/host-groups?member_names=y", None).await;
    assert_eq!((members.len(), &shown[..]), (2, &members[1..]));
    assert_eq!(
        world.refused("POST", hosts, None).await,
        "Host x already exists in host group g. Remove it there first."
    );
    let shared = "connections?host_group_names=g&volume_names=a";
    let made = world.done("POST", shared, Some(json!({}))).await;
    let row = ["host.name", "host_group.name", "lun", "volume.name"];
    assert_eq!(fields(&made, &row), ["x g 254 a", "y g 254 a"]);
    world.done("POST", "connections?host_names=x&volume_names=b", None).await;
    let lun = Some(json!({"lun": 7}));
    world.done("POST", "connections?host_group_names=empty&volume_names=b,c", None).await;
    let all = ["x null 1 b", "x g 254 a", "y g 254 a", "null empty 253 c", "null empty 254 b"];
    assert_eq!(fields(&world.done("GET", "connections", None).await, &row), all);
    // Page by page the same.
    let mut paged = Vec::new();
    let mut path = "connections?limit=1".to_owned();
    while paged.len() < all.len() {
        let (_, page) = world.ask("GET", &format!("/api/2.26/{path}"), None).await;
        paged.extend(fields(page["items"].as_array().unwrap(), &row));
        let token = page["continuation_token"].as_str().unwrap_or_default();
        path = format!("connections?limit=1&continuation_token={token}");
    }
    assert_eq!(paged, all);
    let of_group = world.done("GET", "connections?host_group_names=g&host_names=y", None).await;
    assert_eq!(fields(&of_group, &row), ["y g 254 a"]);
    let of_volume = world.done("GET", "connections?volume_names=b", None).await;
    assert_eq!(fields(&of_volume, &row), ["x null 1 b", "null empty 254 b"]);
    // A volume is connected in one way.
    for path in ["connections?host_names=x&volume_names=a", shared] {
        let reported = world.refused("POST", path, lun.clone()).await;
        assert_eq!(reported, "Connection already exists.");
    }
    let private = "connections?host_names=x&volume_names=a";
    assert_eq!(
        world.refused("DELETE", private, None).await,
        "Volume a is connected to host x by host group g. Disconnect the group."
    );
    let both = "connections?host_names=x&host_group_names=g&volume_names=a";
    world.refused("POST", both, None).await;
    let reported = world.refused("DELETE", "host-groups?names=g", None).await;
    let wanted = "Host group g cannot be deleted due to existing connections (1). Disconnect it.";
    assert_eq!(reported, wanted);
    // Clients name a volume once for each row that they have found.
    world.done("DELETE", &format!("{shared},a,A"), None).await;
    assert_eq!(
        world.refused("DELETE", "host-groups?names=g", None).await,
        "Host group g has hosts. Remove them first."
    );
    world.done("DELETE", hosts, None).await;
    assert_eq!(
        world.refused("DELETE", hosts, None).await,
        "Host x does not exist in host group g."
    );
    let renamed = world.done("PATCH", "host-groups?names=g", Some(json!({"name": "h"}))).await;
    assert_eq!(names(&renamed), ["h"]);
    world.done("DELETE", "host-groups?names=h", None).await;
    assert_eq!(names(&world.done("GET", "host-groups", None).await), ["empty"]);
    assert_eq!(
        world.refused("GET", "host-groups?names=h", None).await,
        "Host group does not exist."
    );
}

#[tokio::test]
async fn tags_are_set_found_and_removed() {
    let world = World::with_volumes("a,b").await;
    let tags = json!([
        {"key": "app", "value": "db"},
        {"key": "tier", "value": "", "namespace": "x.example.com", "copyable": false},
    ]);
    let batch = "volumes/tags/batch?resource_names=a,b";
    let made = world.done("PUT", batch, Some(tags.clone())).await;
    let row = ["resource.name", "namespace", "key", "value", "copyable"];
    let of_a = ["a default app db true", "a x.example.com tier  false"];
    assert_eq!(fields(&made, &row)[..2], of_a);
    assert_eq!(world.done("GET", "volumes/tags", None).await, made);
    let one = world.done("GET", "volumes/tags?resource_names=a&namespaces=default", None).await;
    assert_eq!(fields(&one, &row), of_a[..1]);
    let filtered = world.done("GET", "volumes/tags?filter=resource.name='b'", None).await;
    assert_eq!(filtered.len(), 2);
    // A clone inherits copyable tags.
    let source = Some(json!({"source": {"name": "a"}}));
    let clone = world.done("POST", "volumes?names=c", source).await;
    assert_eq!(clone[0]["source"]["name"], "a");
    let of_c = world.done("GET", "volumes/tags?resource_names=c", None).await;
    assert_eq!(fields(&of_c, &row), ["c default app db true"]);
    // All or none.
    let more = Some(json!([{"key": "k", "value": "v"}]));
    let none = "volumes/tags/batch?resource_names=a,none";
    assert_eq!(world.refused("PUT", none, more.clone()).await, "Volume does not exist.");
    assert_eq!(world.done("GET", "volumes/tags?resource_names=a", None).await.len(), 2);
    let wrong = Some(json!([{"key": "", "value": "v"}]));
    world.refused("PUT", batch, wrong).await;
    world.refused("DELETE", "volumes/tags?resource_names=a", None).await;
    let app = "volumes/tags?resource_names=a&keys=app";
    world.done("DELETE", app, None).await;
    assert_eq!(world.refused("DELETE", app, None).await, "Tag does not exist: app of a.");
    world.done("POST", "volume-snapshots?source_names=a", Some(json!({"suffix": "s"}))).await;
    world.refused("PUT", "volumes/tags/batch?resource_names=a.s", more.clone()).await;
    world.done("PUT", "volume-snapshots/tags/batch?resource_names=a.s", more).await;
    let of_snapshots = world.done("GET", "volume-snapshots/tags", None).await;
    assert_eq!(fields(&of_snapshots, &row), ["a.s default k v true"]);
    let keys = "volume-snapshots/tags?resource_names=a.s&keys=k";
    world.done("DELETE", keys, None).await;
    assert!(world.done("GET", "volume-snapshots/tags", None).await.is_empty());
}

#[tokio::test]
async fn the_time_of_day_of_a_schedule_is_set_kept_and_cleared() {
    const DAY_MS: u64 = 86_400_000;
    let world = World::with_volumes("a").await;
    world.done("POST", "protection-groups?names=g", None).await;
    let group = "protection-groups?names=g";
    let change = async |schedule: Value| {
        let body = json!({"snapshot_schedule": schedule});
        let changed = world.done("PATCH", group, Some(body)).await;
        let schedule = &changed[0]["snapshot_schedule"];
        (schedule["frequency"].as_u64().unwrap(), schedule["at"].as_u64())
    };
    let daily = json!({"enabled": true, "frequency": DAY_MS, "at": 9_000_000});
    assert_eq!(change(daily.clone()).await, (DAY_MS, Some(9_000_000)));
    // What is left out stays, `null` clears.
    assert_eq!(change(json!({"enabled": false})).await.1, Some(9_000_000));
    assert_eq!(change(json!({"frequency": 2 * DAY_MS})).await, (2 * DAY_MS, Some(9_000_000)));
    assert_eq!(change(json!({"at": null})).await, (2 * DAY_MS, None));
    // An interval of hours has none: published clients send the interval alone.
    let hourly = 3_600_000;
    change(daily.clone()).await;
    assert_eq!(change(json!({"frequency": hourly})).await, (hourly, None));
    change(daily).await;
    assert_eq!(change(json!({"frequency": hourly, "at": null})).await, (hourly, None));
    // It is not back with the next interval of days.
    assert_eq!(change(json!({"frequency": DAY_MS})).await, (DAY_MS, None));
    // One that is sent with an interval of hours is refused, and nothing changes.
    for wrong in [json!({"frequency": hourly, "at": 9_000_000}), json!({"at": DAY_MS})] {
        let body = json!({"snapshot_schedule": wrong});
        let reported = world.refused("PATCH", group, Some(body)).await;
        assert!(
            reported.contains("`at`: null") || reported.contains("from midnight"),
            "{reported}"
        );
        assert_eq!(change(json!({})).await, (DAY_MS, None));
    }
}

#[tokio::test]
async fn protection_groups_have_schedules_and_an_end() {
    let world = World::with_volumes("a,b").await;
    let made = world.done("POST", "protection-groups?names=g", None).await;
    let shown = json!({"all_for_sec": 86_400, "per_day": 4, "days": 7});
    assert_eq!((&made[0]["source_retention"], &made[0]["destroyed"]), (&shown, &json!(false)));
    let members = "protection-groups/volumes?group_names=g&member_names=a,b";
    assert_eq!(world.done("POST", members, None).await.len(), 2);
    let group = "protection-groups?names=g";
    let schedule = json!({"snapshot_schedule": {"enabled": true, "frequency": 86_400_000,
        "at": 7_200_000}, "source_retention": {"per_day": 2}});
    let changed = world.done("PATCH", group, Some(schedule)).await;
    assert_eq!(changed[0]["snapshot_schedule"]["at"], 7_200_000);
    assert_eq!(changed[0]["source_retention"]["per_day"], 2);
    assert_eq!(changed[0]["source_retention"]["all_for_sec"], 86_400);
    for (wrong, word) in [
        (json!({"snapshot_schedule": {"frequency": 1}}), "5 minutes"),
        (json!({"source_retention": {"all_for_sec": 0}}), "kept"),
        (json!({"replication_schedule": {"enabled": true}}), "not supported"),
        (json!({"destroyed": true, "name": "h"}), "destroyed"),
    ] {
        let reported = world.refused("PATCH", group, Some(wrong)).await;
        assert!(reported.contains(word), "{reported}");
    }
    world
        .done("POST", "protection-group-snapshots?source_names=g&apply_retention=true", None)
        .await;
    let suffix = Some(json!({"suffix": "x"}));
    world.done("POST", "protection-group-snapshots?source_names=g", suffix.clone()).await;
    let reported = world.refused("POST", "protection-group-snapshots?source_names=g", suffix).await;
    assert_eq!(reported, "Volume snapshot already exists.");
    let all = world.done("GET", "protection-group-snapshots?limit=1", None).await;
    assert_eq!(names(&all), ["g.1"]);
    let one = "protection-group-snapshots?names=g.x";
    let gone = world.done("PATCH", one, Some(json!({"destroyed": true}))).await;
    assert_eq!(
        (&gone[0]["destroyed"], &gone[0]["time_remaining"]),
        (&json!(true), &json!(86_400_000))
    );
    let ended = "volume-snapshots?destroyed=true";
    assert_eq!(names(&world.done("GET", ended, None).await), ["g.x.a", "g.x.b"]);
    let live = format!("{one}&destroyed=false");
    let wanted = "Group snapshot does not exist: g.x. It is named GROUP.SUFFIX.";
    assert_eq!(world.refused("GET", &live, None).await, wanted);
    world.done("PATCH", one, Some(json!({"destroyed": false}))).await;
    // A destroyed group takes its snapshots along, and recovery restores them under its name.
    assert_eq!(
        world.refused("DELETE", group, None).await,
        "Group g is not destroyed. Destroy it first."
    );
    world.done("PATCH", group, Some(json!({"destroyed": true}))).await;
    assert_eq!(
        world.refused("POST", group, None).await,
        "Group g has been destroyed. Recover it, or eradicate it to free its name and the space \
         of its snapshots."
    );
    assert_eq!(world.done("GET", ended, None).await.len(), 4);
    assert!(world.done("GET", "protection-groups?destroyed=false", None).await.is_empty());
    world.done("PATCH", group, Some(json!({"destroyed": false}))).await;
    world.done("PATCH", group, Some(json!({"name": "h"}))).await;
    let live = world.done("GET", "volume-snapshots?source_names=a", None).await;
    assert_eq!(names(&live), ["h.1.a", "h.x.a"]);
    world.done("PATCH", "protection-groups?names=h", Some(json!({"destroyed": true}))).await;
    world.done("DELETE", "protection-groups?names=h", None).await;
    assert!(world.done("GET", "volume-snapshots", None).await.is_empty());
    assert_eq!(world.done("GET", "volumes", None).await.len(), 2);
}

#[tokio::test]
async fn groups_protect_hosts_or_host_groups() {
    let world = World::with_volumes("a,b").await;
    world.done("POST", "protection-groups?names=g", None).await;
    world.done("POST", "hosts?names=x", None).await;
    world.done("POST", "host-groups?names=hg", None).await;
    world.done("POST", "host-groups/hosts?group_names=hg&member_names=x", None).await;
    world.done("POST", "connections?host_names=x&volume_names=a", None).await;
    world.done("POST", "connections?host_group_names=hg&volume_names=b", None).await;
    let hosts = "protection-groups/hosts?group_names=g&member_names=x";
    world.done("POST", hosts, None).await;
    let shown = world.done("GET", "protection-groups", None).await;
    assert_eq!((&shown[0]["host_count"], &shown[0]["volume_count"]), (&json!(1), &json!(0)));
    let groups = "host-groups/protection-groups?group_names=g&member_names=hg";
    let mixed = "Group g can have volumes, hosts or host groups: one kind of these. Remove the \
                 others first.";
    assert_eq!(world.refused("POST", groups, None).await, mixed);
    world.done("POST", "protection-group-snapshots?source_names=g", None).await;
    world.done("DELETE", hosts, None).await;
    world.done("POST", groups, None).await;
    world.done("POST", "protection-group-snapshots?source_names=g", None).await;
    let made = world.done("GET", "volume-snapshots?sort=name", None).await;
    assert_eq!(names(&made), ["g.1.a", "g.1.b", "g.2.b"]);
    let listed = world.done("GET", "protection-groups/host-groups?member_names=hg", None).await;
    assert_eq!(fields(&listed, &["group.name", "member.name"]), ["g hg"]);
    for (path, kind) in [("hosts", "Host"), ("host-groups", "Host group"), ("volumes", "Volume")] {
        let path = format!("protection-groups/{path}?member_names=none");
        assert_eq!(world.refused("GET", &path, None).await, format!("{kind} does not exist."));
    }
}

#[tokio::test]
async fn limits_use_the_terms_of_clients() {
    let world = World::new();
    let none = json!({"bandwidth_limit": 549_755_813_888u64, "iops_limit": 100_000_000});
    let new = json!({"provisioned": 4096, "qos": {"iops_limit": 1000}});
    let made = world.done("POST", "volumes?names=a", Some(new)).await;
    assert_eq!(made[0]["qos"]["iops_limit"], 1000);
    assert_eq!(made[0]["qos"]["bandwidth_limit"], none["bandwidth_limit"]);
    let change = json!({"qos": {"bandwidth_limit": 1_048_576, "iops_limit": 100_000_000}});
    let changed = world.done("PATCH", "volumes?names=a", Some(change)).await;
    let qos = json!({"bandwidth_limit": 1_048_576, "iops_limit": 100_000_000});
    assert_eq!(changed[0]["qos"], qos);
    assert_eq!(world.array.volume("a").unwrap().limits.iops, None);
    let found = world.done("GET", "volumes?filter=qos.bandwidth_limit%3C2000000", None).await;
    assert_eq!(names(&found), ["a"]);
    let wrong = json!({"qos": {"iops_limit": 99}});
    assert_eq!(
        world.refused("PATCH", "volumes?names=a", Some(wrong)).await,
        "IOPS are limited to 100 to 100,000,000 a second; not 99."
    );
    // A clone begins without limits.
    let clone = Some(json!({"source": {"name": "a"}}));
    assert_eq!(world.done("POST", "volumes?names=b", clone).await[0]["qos"], none);
}
