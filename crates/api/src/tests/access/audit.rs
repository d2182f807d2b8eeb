//! Filters of the audit log.

use super::*;

#[tokio::test]
async fn the_audit_log_is_filtered_by_user_action_and_text() {
    let world = World::new();
    let token = world.user("anna", "storage_admin").await;
    for name in ["a", "b", "a"] {
        let new = json!({"name": name, "size_bytes": 4096});
        world.status(Sent::new("POST", "/v1/volumes").token(&token).body(new)).await;
    }
    let gone = Sent::new("DELETE", "/v1/tokens/anna/t").from("2001:db8::7");
    let gone = gone.token(&world.token);
    assert_eq!(world.status(gone).await, 204);
    for (filter, numbers, more, total) in [
        ("", vec![6, 5, 4, 3, 2, 1], false, 6),
        ("?user=anna", vec![5, 4, 3], false, 3),
        ("?user=anna&limit=2", vec![5, 4], true, 3),
        ("?user=anna&limit=2&before=5", vec![4, 3], false, 3),
        ("?user=ann", vec![], false, 0),
        ("?action=delete", vec![6], false, 1),
        ("?action=POST&user=admin", vec![2, 1], false, 2),
        ("?action=delete&user=anna", vec![], false, 0),
        ("?text=NAME%3Da", vec![5, 3], false, 2),
        ("?text=/tokens/", vec![6], false, 1),
        ("?text=volume_exists", vec![5], false, 1),
        ("?text=db8::7", vec![6], false, 1),
        ("?text=volume_exists&action=DELETE", vec![], false, 0),
    ] {
        let (status, log) = world.ask("GET", &format!("/v1/audit{filter}"), None).await;
        let entries = log["entries"].as_array().unwrap();
        let found: Vec<u64> = entries.iter().map(|it| it["number"].as_u64().unwrap()).collect();
        assert_eq!((status, found), (200, numbers), "{filter}: {log}");
        assert_eq!((&log["more"], &log["total"]), (&json!(more), &json!(total)), "{filter}");
    }
    let long = format!("text={}", "x".repeat(257));
    for (filter, code) in [
        ("action=GET", "invalid_action"),
        (&long, "filter_too_long"),
        (&long.replace("text", "user"), "filter_too_long"),
    ] {
        let (status, refused) = world.ask("GET", &format!("/v1/audit?{filter}"), None).await;
        assert_eq!((status, &refused["code"]), (400, &json!(code)), "{filter}");
    }
    assert_eq!(world.ask("GET", &format!("/v1/audit?{}", &long[..261]), None).await.0, 200);
}
