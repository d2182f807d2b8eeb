//! How names are looked up: REST 2.x and `/v1` set the same.

use super::notifications::{items, why};
use super::*;

const DNS: &str = "/api/2.42/dns";

#[tokio::test]
async fn name_servers_are_made_changed_cleared_and_in_the_audit_log() {
    let world = World::new();
    let management = format!("{DNS}?names=management");
    assert_eq!(items(&world.ask("GET", DNS, None).await.1).len(), 0);
    let both = json!({"domain": "example.com", "nameservers": ["192.0.2.1", "192.0.2.2:5353"]});
    let (status, made) = world.ask("POST", &management, Some(both.clone())).await;
    let row = &made["items"][0];
    assert_eq!(
        (status, &row["domain"], &row["nameservers"]),
        (200, &both["domain"], &both["nameservers"])
    );
    assert_eq!((&row["services"], &row["source"]), (&json!(["management"]), &json!({})));
    assert_eq!(items(&world.ask("GET", &management, None).await.1), items(&made));
    let (status, refused) = world.ask("POST", &management, Some(both)).await;
    assert_eq!((status, why(&refused)), (400, "DNS configuration already exists."));
    // As one client changes it.
    let patch = json!({"nameservers": ["192.0.2.3"], "source": {}});
    let (status, changed) = world.ask("PATCH", &management, Some(patch)).await;
    let row = &changed["items"][0];
    assert_eq!((status, &row["domain"]), (200, &json!("example.com")));
    assert_eq!(row["nameservers"], json!(["192.0.2.3"]));
    let (_, settings) = world.ask("GET", "/v1/settings", None).await;
    assert_eq!(settings["name_servers"], row["nameservers"]);
    for (method, query, body) in [
        ("POST", "names=files", json!({"nameservers": ["192.0.2.1"]})),
        ("POST", "names=management", json!({"services": ["file"]})),
        ("POST", "", json!({"nameservers": ["192.0.2.1"]})),
        ("PATCH", "names=files", json!({"nameservers": ["192.0.2.1"]})),
        ("PATCH", "", json!({"nameservers": ["ns.example.com"]})),
        ("PATCH", "", json!({"nameservers": ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"]})),
        ("PATCH", "", json!({"nameservers": []})),
        ("PATCH", "", json!({"domain": "a b"})),
        ("PATCH", "", json!({"source": {"name": "ct0.eth0"}})),
        ("PATCH", "", json!({"name": "other"})),
        ("DELETE", "names=files", json!({})),
    ] {
        let path = format!("{DNS}?{query}");
        assert_eq!(world.ask(method, &path, Some(body)).await.0, 400, "{method} {query}");
    }
    let cleared = json!({"domain": "", "nameservers": []});
    let (status, none) = world.ask("PATCH", &management, Some(cleared)).await;
    assert_eq!((status, items(&none).len()), (200, 0));
    let (_, log) = world.ask("GET", "/v1/audit?text=nameservers=192.0.2.3", None).await;
    assert_eq!(log["entries"][0]["path"], DNS, "{log}");
}

#[tokio::test]
async fn settings_have_name_servers_and_deleting_removes_them() {
    let world = World::new();
    let change = json!({"name_servers": ["[2001:db8::1]:5353"], "domain": "example.com"});
    let (status, settings) = world.ask("PATCH", "/v1/settings", Some(change.clone())).await;
    assert_eq!((status, &settings["name_servers"]), (200, &change["name_servers"]));
    assert_eq!(
        world.ask("GET", DNS, None).await.1["items"][0]["nameservers"],
        change["name_servers"]
    );
    let (status, refused) =
        world.ask("PATCH", "/v1/settings", Some(json!({"name_servers": ["a"]}))).await;
    assert_eq!((status, &refused["code"]), (400, &json!("invalid_dns")));
    assert_eq!(world.ask("DELETE", &format!("{DNS}?names=management"), None).await.0, 200);
    let (_, settings) = world.ask("GET", "/v1/settings", None).await;
    assert_eq!((&settings["name_servers"], &settings["domain"]), (&json!([]), &json!("")));
}
