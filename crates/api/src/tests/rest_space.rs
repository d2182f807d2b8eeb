//! REST 2.x: the space of hosts, host groups and protection groups.

use super::*;

const GIB: u64 = 1 << 30;

impl World {
    async fn made(&self, path: &str, body: Option<Value>) {
        let (status, page) = self.ask("POST", &format!("/api/2.26/{path}"), body).await;
        assert_eq!(status, 200, "{path}: {page}");
    }

    /// The names and the provisioned GiB of a list of spaces.
    async fn spaces(&self, path: &str) -> Vec<(String, u64)> {
        let (status, page) = self.ask("GET", &format!("/api/2.26/{path}"), None).await;
        assert_eq!(status, 200, "{path}: {page}");
        let row = |item: &Value| {
            let provisioned = item["space"]["total_provisioned"].as_u64().unwrap();
            (item["name"].as_str().unwrap().to_owned(), provisioned / GIB)
        };
        page["items"].as_array().unwrap().iter().map(row).collect()
    }

    async fn reported(&self, path: &str) -> String {
        let (status, refused) = self.ask("GET", &format!("/api/2.26/{path}"), None).await;
        assert_eq!(status, 400, "{path}: {refused}");
        refused["errors"][0]["message"].as_str().unwrap().to_owned()
    }

    /// Host x sees volume a by itself. Its host group g, with y, sees b and c.
    async fn connected() -> Self {
        let world = Self::new();
        world.made("volumes?names=a,b,c,d", Some(json!({"provisioned": GIB}))).await;
        world.made("hosts?names=x,y,z", None).await;
        world.made("host-groups?names=g,none", None).await;
        world.made("host-groups/hosts?group_names=g&member_names=x,y", None).await;
        world.made("connections?host_names=x&volume_names=a", None).await;
        world.made("connections?host_group_names=g&volume_names=b,c", None).await;
        world
    }
}

fn rows(rows: &[(&str, u64)]) -> Vec<(String, u64)> {
    rows.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
}

#[tokio::test]
async fn hosts_and_host_groups_have_the_space_of_their_volumes() {
    let world = World::connected().await;
    let hosts = rows(&[("x", 3), ("y", 2), ("z", 0)]);
    assert_eq!(world.spaces("hosts/space").await, hosts);
    assert_eq!(world.spaces("host-groups/space").await, rows(&[("g", 2), ("none", 0)]));
    // A host group shows it itself, as published clients read it there.
    assert_eq!(world.spaces("host-groups").await, rows(&[("g", 2), ("none", 0)]));
    for (query, found) in [
        ("names=Y,x", vec![hosts[1].clone(), hosts[0].clone()]),
        ("filter=name='x'", vec![hosts[0].clone()]),
        ("filter=name='y'%20or%20space.total_provisioned=0", hosts[1..].to_vec()),
        ("sort=name-&limit=1", vec![hosts[2].clone()]),
        ("sort=space.total_provisioned-&limit=2", hosts[..2].to_vec()),
        ("limit=1&offset=1", vec![hosts[1].clone()]),
    ] {
        assert_eq!(world.spaces(&format!("hosts/space?{query}")).await, found, "{query}");
    }
    let path = "/api/2.26/hosts/space?limit=0&filter=name!='x'";
    let (_, page) = world.ask("GET", path, None).await;
    assert_eq!(page["total_item_count"], 2);
    // The store of these tests counts 4096 bytes as written to each volume, and has no figures.
    let (_, page) = world.ask("GET", "/api/2.26/hosts/space?names=x,z", None).await;
    let (space, nothing) = (&page["items"][0]["space"], &page["items"][1]["space"]);
    assert_eq!((&space["virtual"], &space["unique"]), (&json!(3 * 4096), &Value::Null));
    assert_eq!((&nothing["virtual"], &nothing["unique"]), (&json!(0), &json!(0)));
    assert_eq!(page["items"][0]["time"], Value::Null);
    let (_, page) = world.ask("GET", "/api/2.26/hosts/space?total_only=true", None).await;
    assert!(page["total"][0]["space"].is_null(), "{page}");
    assert_eq!(world.reported("hosts/space?names=x,none").await, "Host does not exist.");
    assert_eq!(world.reported("host-groups/space?names=x").await, "Host group does not exist.");
}

#[tokio::test]
async fn protection_groups_have_the_space_of_their_volumes() {
    let world = World::connected().await;
    world.made("protection-groups?names=p,q,r", None).await;
    world.made("protection-groups/volumes?group_names=p&member_names=a,d", None).await;
    world.made("protection-groups/hosts?group_names=q&member_names=x,y", None).await;
    world.made("protection-groups/host-groups?group_names=r&member_names=g", None).await;
    let all = rows(&[("p", 2), ("q", 3), ("r", 2)]);
    assert_eq!(world.spaces("protection-groups/space").await, all);
    let (_, page) = world.ask("GET", "/api/2.26/protection-groups?names=q", None).await;
    let id = page["items"][0]["id"].as_str().unwrap();
    assert_eq!(world.spaces(&format!("protection-groups/space?ids={id}")).await, all[1..2]);
    let (_, page) = world.ask("GET", "/api/2.26/protection-groups/space?names=Q", None).await;
    assert_eq!(page["items"][0]["id"], id);
    let end = Some(json!({"destroyed": true}));
    world.ask("PATCH", "/api/2.26/protection-groups?names=p", end).await;
    assert_eq!(world.spaces("protection-groups/space?destroyed=false").await, all[1..]);
    assert_eq!(world.spaces("protection-groups/space?destroyed=true").await, all[..1]);
    let reported = world.reported("protection-groups/space?names=q&destroyed=true").await;
    assert!(reported.contains("does not exist"), "{reported}");
}

/// The sizes of samples, of which a volume has all that it has written for itself.
fn own(size_bytes: u64, unique_bytes: u64) -> ::history::VolumeFigures {
    ::history::VolumeFigures {
        size_bytes,
        mapped_bytes: 3 * unique_bytes,
        unique_bytes,
        share_bytes: unique_bytes,
        snapshots_bytes: 7,
    }
}

impl World {
    /// Records a sample of these volumes.
    fn record_space(&self, time_ms: u64, volumes: &[(&str, ::history::VolumeFigures)]) {
        let id = |name: &str| self.array.volume(name).unwrap().id.0;
        let volumes = volumes.iter().map(|(name, figures)| (id(name), *figures)).collect();
        let sample = ::history::SpaceSample { time_ms, volumes: Arc::new(volumes) };
        self.history.record_space(sample).unwrap();
    }

    /// The names, times, and unique bytes of a list of spaces.
    async fn samples(&self, path: &str) -> Vec<(String, u64, Option<u64>)> {
        let (status, page) = self.ask("GET", &format!("/api/2.26/{path}"), None).await;
        assert_eq!(status, 200, "{path}: {page}");
        let row = |item: &Value| {
            let name = item["name"].as_str().unwrap().to_owned();
            (name, item["time"].as_u64().unwrap(), item["space"]["unique"].as_u64())
        };
        page["items"].as_array().unwrap().iter().map(row).collect()
    }
}

#[tokio::test]
async fn space_is_listed_over_time() {
    let world = World::connected().await;
    world.record_space(1100, &[("a", own(GIB, 1000)), ("b", own(GIB, 20)), ("c", own(GIB, 3))]);
    let row = |name: &str, unique| (name.to_owned(), 0, Some(unique));
    let volumes = [row("a", 1000), row("b", 20), row("c", 3)];
    for query in ["start_time=0", "resolution=300000", "end_time=1235", "start_time=0&limit=9"] {
        // The sample lacks the fourth, which was created later.
        assert_eq!(world.samples(&format!("volumes/space?{query}")).await, volumes, "{query}");
    }
    for (path, found) in [
        ("volumes/space?names=C,a", vec![volumes[2].clone(), volumes[0].clone()]),
        ("volumes/space?filter=space.unique%3E3&sort=name-", vec![row("b", 20), row("a", 1000)]),
        ("hosts/space?names=X,y", vec![row("x", 1023), row("y", 23)]),
        ("hosts/space?limit=2", vec![row("x", 1023), row("y", 23)]),
        ("host-groups/space?names=g", vec![row("g", 23)]),
    ] {
        let path = format!("{path}&start_time=0");
        assert_eq!(world.samples(&path).await, found, "{path}");
    }
    let (_, page) = world.ask("GET", "/api/2.26/hosts/space?names=y&resolution=300000", None).await;
    let space = &page["items"][0]["space"];
    assert_eq!((&space["total_provisioned"], &space["virtual"]), (&json!(2 * GIB), &json!(69)));
    assert_eq!((&space["data_reduction"], &space["snapshots"]), (&json!(3.0), &json!(14)));
    // Volumes that share data: how much is unique to all of them is unknown.
    let shares = ::history::VolumeFigures { share_bytes: 30, ..own(GIB, 20) };
    world.record_space(1234, &[("a", own(GIB, 1000)), ("b", shares), ("c", own(GIB, 3))]);
    let unknown = vec![("y".to_owned(), 0, None)];
    assert_eq!(world.samples("hosts/space?names=y&start_time=0").await, unknown);
    // A member that the sample lacks.
    world.made("connections?host_names=y&volume_names=d", None).await;
    assert_eq!(world.samples("hosts/space?names=y&start_time=0").await, []);
    for refused in ["resolution=30000", "resolution=1000", "start_time=9&end_time=9"] {
        let why = world.reported(&format!("volumes/space?{refused}")).await;
        assert!(why.contains("resolution of space") || why.contains("not after"), "{why}");
    }
    let why = world.reported("volumes/space?names=nobody&start_time=0").await;
    assert!(why.contains("does not exist"), "{why}");
}

#[tokio::test]
async fn space_over_time_is_that_of_containers_and_of_the_array_too() {
    let world = World::connected().await;
    for (list, member, from, to) in
        [("volume-groups", "volume_group", "a", "vg"), ("pods", "pod", "b", "p")]
    {
        world.made(&format!("{list}?names={to}"), None).await;
        let path = format!("/api/2.26/volumes?names={from}");
        let (status, told) = world.ask("PATCH", &path, Some(json!({member: {"name": to}}))).await;
        assert_eq!(status, 200, "{told}");
    }
    world.record_space(1100, &[("vg/a", own(GIB, 1000)), ("p::b", own(GIB, 20))]);
    for (list, name, unique) in [("volume-groups", "vg", 1000), ("pods", "p", 20)] {
        let found = world.samples(&format!("{list}/space?start_time=0")).await;
        assert_eq!(found, [(name.to_owned(), 0, Some(unique))], "{list}");
        assert_eq!(world.spaces(&format!("{list}/space")).await, rows(&[(name, 1)]));
        let (_, page) = world.ask("GET", &format!("/api/2.26/{list}/space"), None).await;
        assert_eq!(page["items"][0]["time"], Value::Null, "there was no pass");
    }
    let gauges = ::history::GAUGES.map(|_| ::history::Gauge::once(GIB));
    let capacity = Some(::history::Capacity(gauges));
    let tick =
        ::history::Tick { now_ms: 1100, covered_ms: 1000, capacity, ..::history::Tick::default() };
    world.history.record(tick).unwrap();
    world.history.save().unwrap();
    for query in ["start_time=0", "resolution=30000", "resolution=1000&start_time=0"] {
        let path = format!("/api/2.26/arrays/space?{query}");
        let (_, page) = world.ask("GET", &path, None).await;
        let item = &page["items"][0];
        assert_eq!((&item["capacity"], &item["space"]["system"]), (&json!(GIB), &json!(GIB)));
        assert_eq!(item["space"]["total_reduction"], 1.0, "{query}: {page}");
    }
    assert!(world.reported("arrays/space?names=other&start_time=0").await.contains("not exist"));
}
