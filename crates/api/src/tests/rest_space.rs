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
