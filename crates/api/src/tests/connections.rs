//! REST 2.x: filters and orders of all connections.

use super::*;

impl World {
    /// Returns a list of connections, each as its host, host group, LUN and volume.
    async fn connections(&self, question: &str) -> Vec<String> {
        let path = format!("/api/2.26/connections?{question}");
        let (status, page) = self.ask("GET", &path, None).await;
        assert_eq!(status, 200, "{question}: {page}");
        let row = |item: &Value| {
            let name = |field: &str| item[field]["name"].as_str().unwrap_or("-").to_owned();
            let (host, group, volume) = (name("host"), name("host_group"), name("volume"));
            format!("{host} {group} {} {volume}", item["lun"])
        };
        page["items"].as_array().unwrap().iter().map(row).collect()
    }
}

fn filtered(filter: &str) -> String {
    form_urlencoded::Serializer::new(String::new()).append_pair("filter", filter).finish()
}

/// A glance agrees with the created item: a condition on the volume's
/// id, which every connection has, asks for all of them to be created.
#[tokio::test]
async fn connections_are_filtered_and_sorted_from_a_glance_as_if_created() {
    let world = World::new();
    for (method, path) in [
        ("POST", "volumes?names=a,b,c"),
        ("POST", "hosts?names=W,x,y,z"),
        ("POST", "host-groups?names=g,empty"),
        ("POST", "host-groups/hosts?group_names=g&member_names=x,y"),
        ("POST", "connections?host_group_names=g&volume_names=a"),
        ("POST", "connections?host_group_names=empty&volume_names=b,c"),
        ("POST", "connections?host_names=x,W&volume_names=b"),
    ] {
        let body = path.starts_with("volumes").then(|| json!({"provisioned": 4096}));
        let (status, made) = world.ask(method, &format!("/api/2.26/{path}"), body).await;
        assert_eq!(status, 200, "{path}: {made}");
    }
    let all = ["W - 1 b", "x - 1 b", "x g 254 a", "y g 254 a", "- empty 253 c", "- empty 254 b"];
    assert_eq!(world.connections("").await, all);
    for (filter, count) in [
        ("lun>0", 6),
        ("lun=254", 3),
        ("host.name='x'", 2),
        ("not(host.name='x')", 4),
        ("host.name=null", 2),
        ("host_group.name='g'", 2),
        ("not(host_group.name)", 2),
        ("host_group", 6),
        ("contains(volume.name,'b')", 3),
        ("nsid=null", 6),
        ("nsid", 0),
        ("name='x'", 0),
        ("volume.name.deep=null", 6),
    ] {
        for order in ["", "&sort=lun", "&sort=volume.name-,host.name", "&sort=host_group.name-"] {
            for page in ["", "&limit=2", "&limit=2&offset=1"] {
                let rest = format!("{order}{page}");
                let reported = world.connections(&format!("{}{rest}", filtered(filter))).await;
                let made = filtered(&format!("({filter}) and volume.id!='none'"));
                let made = world.connections(&format!("{made}{rest}")).await;
                assert_eq!(reported, made, "{filter}{rest}");
                assert!(!page.is_empty() || reported.len() == count, "{filter}: {reported:?}");
            }
        }
    }
}
