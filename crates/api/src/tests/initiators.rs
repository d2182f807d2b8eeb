//! Who came to log in, and belongs to no host.

use super::*;

#[tokio::test]
async fn initiators_that_were_refused_or_have_no_host_are_listed() {
    let world = World::new();
    let listed = async || {
        let (status, found) = world.ask("GET", "/v1/initiators", None).await;
        assert_eq!(status, 200);
        found["initiators"].as_array().unwrap().clone()
    };
    // What can be no name of an initiator is not listed, whoever said it.
    let found = listed().await;
    assert_eq!(found.len(), 2);
    let refused = json!({"count": 3, "time_ms": 9, "address": "192.0.2.7", "why": "it is no host",
        "status": 514});
    let name = "iqn.2026-11.com.example:new";
    let wanted = json!({"name": name, "host": null, "sessions": 0, "refused": refused});
    assert_eq!(found[1], wanted);
    // One is logged in, and its host was deleted meanwhile.
    assert_eq!((&found[0]["host"], &found[0]["sessions"]), (&json!(null), &json!(2)));
    world.host("esx", "iqn.2026-11.com.example:h").await;
    // It was refused before it had a host.
    assert_eq!(listed().await[0]["host"], "esx");
}
