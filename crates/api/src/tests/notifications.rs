//! Receivers of alerts, over REST.

use super::*;

pub(super) fn items(page: &Value) -> &Vec<Value> {
    page["items"].as_array().unwrap_or_else(|| panic!("{page}"))
}

pub(super) fn why(refused: &Value) -> &str {
    refused["errors"][0]["message"].as_str().unwrap()
}

const SMTP: &str = "/api/2.26/smtp-servers";

#[tokio::test]
async fn a_mail_relay_is_set_shown_without_its_password_and_cleared() {
    let world = World::new();
    let nothing = json!({
        "name": "smtp", "body_prefix": "", "encryption_mode": "", "relay_host": "",
        "sender_domain": "", "sender_username": "", "subject_prefix": "", "user_name": "",
        "context": {"name": world.array.name()},
    });
    assert_eq!(items(&world.ask("GET", SMTP, None).await.1), std::slice::from_ref(&nothing));
    let asked = json!({
        "relay_host": "192.0.2.1:2525", "sender_domain": "example.com", "sender_username": "array",
        "user_name": "u", "password": "horse battery", "encryption_mode": "starttls",
        "subject_prefix": "[lab]", "body_prefix": "From the lab:",
    });
    let (status, set) = world.ask("PATCH", SMTP, Some(asked.clone())).await;
    assert_eq!(status, 200, "{set}");
    let (_, shown) = world.ask("GET", &format!("{SMTP}?names=smtp"), None).await;
    assert_eq!(items(&shown), items(&set));
    for (field, value) in asked.as_object().unwrap() {
        match field.as_str() {
            "password" => assert_eq!(shown["items"][0].get(field), None),
            _ => assert_eq!(&shown["items"][0][field], value),
        }
    }
    for (asked, part) in [
        (json!({"encryption_mode": ""}), "not sent without encryption"),
        (json!({"encryption_mode": "ssl"}), "starttls, tls"),
        (json!({"relay_host": "other.example.com"}), "give the password again"),
        (json!({"relay_host": "a b", "password": "x"}), "HOST:PORT"),
        (json!({"sender_domain": "None"}), "give a sender domain"),
        (json!({"sender_username": "a@b"}), "before the @"),
        (json!({"password": ""}), "go together"),
        (json!({"user_name": "v"}), "give the password again"),
        (json!({"body_prefix": "x".repeat(257)}), "0 to 256 characters"),
        (json!({"port": 25}), "`port` is not supported"),
    ] {
        let (status, refused) = world.ask("PATCH", SMTP, Some(asked.clone())).await;
        assert_eq!(status, 400, "{asked}");
        assert!(why(&refused).contains(part), "{asked}: {refused}");
        assert!(!refused.to_string().contains("horse"));
    }
    assert_eq!(items(&world.ask("GET", SMTP, None).await.1), items(&set));
    // The audit log has the fact, and no secret.
    let (_, log) = world.ask("GET", "/v1/audit", None).await;
    assert!(log.to_string().contains("relay_host=192.0.2.1:2525"));
    assert!(!log.to_string().contains("horse"));
    // As one client clears it.
    let cleared = json!({
        "sender_domain": "None", "user_name": "", "password": "", "relay_host": "",
        "encryption_mode": "", "sender_username": "", "subject_prefix": "", "body_prefix": "",
    });
    assert_eq!(items(&world.ask("PATCH", SMTP, Some(cleared)).await.1), &[nothing]);
}

const WATCHERS: &str = "/api/2.26/alert-watchers";

#[tokio::test]
async fn watchers_are_added_switched_tested_and_removed() {
    let world = World::new();
    assert_eq!(items(&world.ask("GET", WATCHERS, None).await.1).len(), 0);
    let anna = format!("{WATCHERS}?names=anna@example.com");
    let (status, made) = world.ask("POST", &anna, Some(json!({}))).await;
    assert_eq!((status, &made["items"][0]["enabled"]), (200, &json!(true)));
    let (status, refused) = world.ask("POST", &anna, None).await;
    assert_eq!(
        (status, &refused["errors"][0]),
        (
            400,
            &json!({"context": "anna@example.com",
                "message": "Alert watcher already exists: anna@example.com."})
        )
    );
    let otto = format!("{WATCHERS}?names=otto%40example.com");
    let (_, made) = world.ask("POST", &otto, Some(json!({"enabled": false}))).await;
    assert_eq!(made["items"][0]["enabled"], false);
    let (_, page) = world.ask("GET", &format!("{WATCHERS}?filter=enabled"), None).await;
    assert_eq!((items(&page).len(), &page["items"][0]["name"]), (1, &json!("anna@example.com")));
    let (_, page) = world.ask("GET", &format!("{WATCHERS}/test"), None).await;
    let rows = items(&page);
    assert_eq!((&rows[0]["success"], &rows[0]["result_details"]), (&json!(true), &json!("")));
    assert_eq!((&rows[1]["success"], &rows[1]["enabled"]), (&json!(false), &json!(false)));
    let patch = json!({"enabled": true});
    let (status, changed) = world.ask("PATCH", &otto, Some(patch)).await;
    assert_eq!((status, &changed["items"][0]["enabled"]), (200, &json!(true)));
    let (_, page) =
        world.ask("GET", &format!("{WATCHERS}/test?names=otto@example.com"), None).await;
    let row = &items(&page)[0];
    assert_eq!(row["resource"]["name"], "otto@example.com");
    assert!(row["result_details"].as_str().unwrap().contains("no relay"), "{row}");
    for (method, query, body) in [
        ("GET", "names=x@y.z", None),
        ("GET", "ids=1", None),
        ("POST", "names=x", None),
        ("POST", "", None),
        ("PATCH", "names=anna@example.com", Some(json!({}))),
        ("PATCH", "names=anna@example.com,x@y.z", Some(json!({"enabled": false}))),
        ("DELETE", "names=anna@example.com,x@y.z", None),
    ] {
        let path = format!("{WATCHERS}?{query}");
        assert_eq!(world.ask(method, &path, body).await.0, 400, "{method} {query}");
    }
    assert_eq!(world.ask("GET", &format!("{WATCHERS}/test?names=x@y.z"), None).await.0, 400);
    assert_eq!(world.ask("DELETE", &anna, None).await.0, 200);
    let (_, page) = world.ask("GET", WATCHERS, None).await;
    assert_eq!((items(&page).len(), &page["items"][0]["name"]), (1, &json!("otto@example.com")));
    // A test has something sent, and so it is in the audit log.
    let (_, log) = world.ask("GET", "/v1/audit?text=/test", None).await;
    assert_eq!((&log["total"], &log["entries"][0]["method"]), (&json!(3), &json!("GET")), "{log}");
}

const SERVERS: &str = "/api/2.42/syslog-servers";

#[tokio::test]
async fn syslog_servers_are_added_moved_and_removed() {
    let world = World::new();
    assert_eq!(items(&world.ask("GET", SERVERS, None).await.1).len(), 0);
    let log = format!("{SERVERS}?names=log1");
    assert_eq!(world.ask("GET", &log, None).await.0, 400, "how a client sees that it is not there");
    let asked = json!({"name": "log1", "uri": "udp://log.example.com"});
    let (status, made) = world.ask("POST", &log, Some(asked.clone())).await;
    assert_eq!((status, &made["items"][0]["uri"]), (200, &json!("udp://log.example.com")));
    assert_eq!(made["items"][0]["services"], json!(["management"]));
    let (status, refused) = world.ask("POST", &log, Some(asked)).await;
    assert_eq!((status, why(&refused)), (400, "Syslog server already exists: log1."));
    let uri = json!({"uri": "tls://log.example.com:6514"});
    let (status, moved) = world.ask("PATCH", &log, Some(uri.clone())).await;
    assert_eq!((status, &moved["items"][0]["uri"]), (200, &uri["uri"]));
    assert_eq!(items(&world.ask("GET", &log, None).await.1), items(&moved));
    for (method, query, body) in [
        ("POST", "names=log2", json!({})),
        ("POST", "names=log2", json!({"uri": "http://example.com"})),
        ("POST", "names=log2", json!({"uri": "udp://log", "name": "log3"})),
        ("POST", "names=log2", json!({"uri": "udp://log", "services": ["data-audit"]})),
        ("POST", "names=a%20b", json!({"uri": "udp://log"})),
        ("PATCH", "names=log2", json!({"uri": "udp://log"})),
        ("PATCH", "", json!({"uri": "udp://log"})),
        ("DELETE", "names=log2", json!({})),
    ] {
        let path = format!("{SERVERS}?{query}");
        assert_eq!(world.ask(method, &path, Some(body)).await.0, 400, "{method} {query}");
    }
    let (_, page) = world.ask("GET", &format!("{SERVERS}/test"), None).await;
    assert_eq!(page["items"][0]["destination"], "tls://log.example.com:6514");
    assert_eq!(world.ask("DELETE", &log, None).await.0, 200);
    assert_eq!(items(&world.ask("GET", SERVERS, None).await.1).len(), 0);
}

#[tokio::test]
async fn snmp_managers_are_added_changed_and_removed_and_secrets_are_never_shown() {
    let world = World::new();
    let managers = "/api/2.42/snmp-managers";
    let v2c = json!({"host": "snmp.example.com", "version": "v2c", "notification": "trap",
        "v2c": {"community": "horse"}});
    let (status, made) = world.ask("POST", &format!("{managers}?names=one"), Some(v2c)).await;
    assert_eq!((status, &made["items"][0]["v2c"]), (200, &json!({"community": "****"})));
    let v3 = json!({"host": "127.0.0.1:1162", "version": "v3", "notification": "inform",
        "v3": {"user": "array", "auth_protocol": "SHA", "auth_passphrase": "correct horse",
            "privacy_protocol": "AES", "privacy_passphrase": "battery horse"}});
    let (status, made) = world.ask("POST", &format!("{managers}?names=two"), Some(v3)).await;
    assert_eq!((status, &made["items"][0]["notification"]), (200, &json!("inform")), "{made}");
    let (_, all) = world.ask("GET", managers, None).await;
    assert_eq!(items(&all).len(), 2);
    assert!(!all.to_string().contains("horse"), "{all}");
    for (method, query, body) in [
        ("POST", "names=one", json!({"host": "a", "version": "v2c", "v2c": {"community": "c"}})),
        ("POST", "names=three", json!({"host": "a", "version": "v1", "v2c": {"community": "c"}})),
        ("POST", "names=three", json!({"host": "a", "version": "v2c"})),
        ("POST", "", json!({"host": "a", "version": "v2c", "v2c": {"community": "c"}})),
        ("PATCH", "names=one", json!({"host": "elsewhere"})),
        ("PATCH", "names=one", json!({"version": "v3"})),
        ("PATCH", "names=one", json!({"notification": "horse"})),
        ("PATCH", "names=two", json!({"v3": {"privacy_protocol": "DES"}})),
        ("PATCH", "names=two", json!({"v3": {"auth_protocol": "horse"}})),
        ("PATCH", "names=two", json!({"v3": {"auth_protocol": ""}})),
        ("PATCH", "names=two", json!({"v3": {"auth_passphrase": "short"}})),
        ("PATCH", "names=three", json!({"host": "a"})),
        ("DELETE", "names=three", json!({})),
    ] {
        let path = format!("{managers}?{query}");
        let (status, refused) = world.ask(method, &path, Some(body)).await;
        assert_eq!(status, 400, "{method} {query}: {refused}");
    }
    let plain = json!({"v3": {"privacy_protocol": "", "auth_protocol": ""}});
    let (_, plain) = world.ask("PATCH", &format!("{managers}?names=two"), Some(plain)).await;
    assert_eq!(plain["items"][0]["v3"], json!({"user": "array"}));
    let (_, agents) = world.ask("GET", "/api/2.42/snmp-agents", None).await;
    let id = agents["items"][0]["engine_id"].as_str().unwrap();
    assert!(id.starts_with("80001F8805") && id.len() == 42, "{id}");
    assert_eq!(world.ask("PATCH", "/api/2.42/snmp-agents", Some(json!({}))).await.0, 400);
    let (status, tested) = world.ask("GET", &format!("{managers}/test?names=one"), None).await;
    assert_eq!((status, items(&tested).len()), (200, 1));
    let (status, _) = world.ask("DELETE", &format!("{managers}?names=one,two"), None).await;
    assert_eq!(status, 200);
    let (_, log) = world.ask("GET", "/v1/audit", None).await;
    assert!(!log.to_string().contains("horse"), "{log}");
}
