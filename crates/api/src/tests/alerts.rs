//! Alerts over both paths, sessions and the check of a host.

use array::{AlertCode, Condition, Seen, Severity};

use super::*;

fn condition(code: AlertCode, component: &str, severity: Severity) -> Seen {
    let (actual, expected) = ("1 portal".to_owned(), "2 portals".to_owned());
    let component = component.to_owned();
    Seen::Holds(Condition { code, component, severity, actual, expected })
}

fn world() -> World {
    let world = World::new();
    let seen = [
        condition(AlertCode::HostOnePath, "esx1", Severity::Warning),
        condition(AlertCode::PoolFull, "pool", Severity::Critical),
    ];
    world.array.watch_alerts(&seen, 1000);
    world
}

#[tokio::test]
async fn rest_lists_alerts_and_takes_flags() {
    let world = world();
    let (status, open) = world.ask("GET", "/api/2.26/alerts?filter=state='open'", None).await;
    assert_eq!((status, open["items"].as_array().unwrap().len()), (200, 2));
    // The most severe was opened first.
    let (grave, other) = (&open["items"][0], &open["items"][1]);
    assert_eq!((&grave["severity"], &grave["name"]), (&json!("critical"), &json!("1")));
    assert_eq!(other["component_name"], "esx1");
    assert_eq!((&other["component_type"], &other["code"]), (&json!("host"), &json!(401)));
    assert_eq!(other["knowledge_base_url"], "docs/alerts.md#host-one-path");
    assert_eq!((&other["created"], &other["closed"]), (&json!(1000), &json!(null)));
    assert!(other["description"].as_str().unwrap().contains("host check"));
    let id = other["id"].as_str().unwrap().to_owned();
    let path = format!("/api/2.0/alerts?ids={id}");
    let (status, patched) = world.ask("PATCH", &path, Some(json!({"flagged": false}))).await;
    assert_eq!((status, &patched["items"][0]["flagged"]), (200, &json!(false)));
    for (query, count) in
        [("flagged=true", 1), ("flagged=false", 1), ("names=2,1", 2), ("filter=code%3E200", 1)]
    {
        let (status, found) = world.ask("GET", &format!("/api/2.1/alerts?{query}"), None).await;
        assert_eq!((status, found["items"].as_array().unwrap().len()), (200, count), "{query}");
    }
    for (method, query, body) in [
        ("GET", "names=3", None),
        ("GET", "names=01", None),
        ("GET", "names=x", None),
        ("GET", "ids=x", None),
        ("PATCH", "", Some(json!({"flagged": true}))),
        ("PATCH", "names=1", Some(json!({"state": "closed"}))),
        ("PATCH", "names=1,9", Some(json!({"flagged": false}))),
    ] {
        let path = format!("/api/2.26/alerts?{query}");
        assert_eq!(world.ask(method, &path, body).await.0, 400, "{method} {query}");
    }
    assert!(world.array.alert(1).unwrap().flagged, "all of them or none");
}

#[tokio::test]
async fn alerts_are_closed_and_filtered() {
    let world = world();
    let (status, closed) = world.ask("POST", "/v1/alerts/2/close", None).await;
    assert_eq!(
        (status, &closed["state"], &closed["closed_ms"]),
        (200, &json!("closed"), &json!(1234))
    );
    assert_eq!(closed["name"], "host-one-path");
    for (query, names) in [
        ("?filter=state!='closed'", vec!["1"]),
        ("", vec!["1", "2"]),
        ("?filter=severity=('warning','critical')", vec!["1", "2"]),
        ("?filter=state!='closed'+and+severity=('critical')", vec!["1"]),
    ] {
        let (status, found) = world.ask("GET", &format!("/api/2.26/alerts{query}"), None).await;
        let found = found["items"].as_array().unwrap().iter();
        let found: Vec<&str> = found.map(|alert| alert["name"].as_str().unwrap()).collect();
        assert_eq!((status, found), (200, names), "{query}");
    }
    for (number, refused) in [("9", 404), ("x", 400)] {
        let path = format!("/v1/alerts/{number}/close");
        assert_eq!(world.ask("POST", &path, None).await.0, refused, "{number}");
    }
}

#[tokio::test]
async fn metrics_count_open_alerts() {
    let world = world();
    world.array.close_alerts(&[2], 2000).unwrap();
    let request = Request::builder()
        .uri("/metrics")
        .header("authorization", format!("Bearer {}", world.token))
        .body(Body::empty());
    let response = world.router.clone().oneshot(request.unwrap()).await.unwrap();
    let text = response.into_body().collect().await.unwrap().to_bytes();
    let text = String::from_utf8(text.to_vec()).unwrap();
    for (severity, count) in [("info", 0), ("warning", 0), ("critical", 1)] {
        let line = format!("holdfast_alerts_open{{severity=\"{severity}\"}} {count}");
        assert!(text.lines().any(|found| found == line), "{line} in\n{text}");
    }
}

#[tokio::test]
async fn a_host_is_checked_by_its_sessions() {
    let world = World::new();
    world.host("h", "iqn.2026-11.com.example:h").await;
    let (status, check) = world.ask("GET", "/v1/hosts/H/check", None).await;
    assert_eq!((status, &check["host"]), (200, &json!("h")));
    let rows = check["rows"].as_array().unwrap();
    let verdict = |name: &str| {
        rows.iter().find(|row| row["check"] == name).unwrap()["verdict"].as_str().unwrap()
    };
    assert_eq!((verdict("multipath"), verdict("round_robin")), ("good", "good"));
    assert_eq!((verdict("reclaim"), verdict("offloads_on")), ("unseen", "unseen"));
    assert_eq!(world.ask("GET", "/v1/hosts/other/check", None).await.0, 404);
    let (_, sessions) = world.ask("GET", "/v1/host-sessions", None).await;
    assert_eq!(sessions["sessions"][1]["host"], "h");
    let (status, tests) = world.ask("POST", "/v1/notifications/test", None).await;
    assert_eq!((status, &tests["tests"][0]["error"]), (200, &json!("it is off")));
}
