//! Settings of the directory service: REST 2.x and `/v1` set the same.

use super::notifications::{items, why};
use super::*;

const SERVICES: &str = "/api/2.42/directory-services";
const CERTIFICATE: &str = "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n";

#[tokio::test]
async fn a_directory_service_is_set_over_both_paths_and_its_password_is_never_shown() {
    let world = World::new();
    let (_, empty) = world.ask("GET", SERVICES, None).await;
    let row = &items(&empty)[0];
    assert_eq!(
        (&row["name"], &row["enabled"], &row["uris"]),
        (&json!("management"), &json!(false), &json!([]))
    );
    assert!(row.get("bind_password").is_none() && row.get("ca_certificate").is_none());
    // As one client sets it.
    let patch = json!({
        "uris": ["ldaps://ds.example.com"], "base_dn": "dc=x", "bind_user": "cn=array,dc=x",
        "bind_password": "horse", "enabled": true, "services": ["management"],
        "management": {"user_login_attribute": "uid", "user_object_class": "person"},
        "check_peer": true, "ca_certificate": CERTIFICATE,
    });
    let named = format!("{SERVICES}?names=management&context_names=");
    let (status, set) = world.ask("PATCH", &named, Some(patch.clone())).await;
    assert_eq!((status, &set["items"][0]["bind_password"]), (200, &json!("****")), "{set}");
    assert_eq!(set["items"][0]["management"], patch["management"]);
    let (_, shown) = world.ask("GET", "/v1/directory", None).await;
    assert_eq!((&shown["has_bind_password"], &shown["user_login"]), (&json!(true), &json!("uid")));
    assert_eq!(shown["ca_certificate"], CERTIFICATE);
    for (path, body) in [
        (SERVICES, json!({"uris": ["ldapi://ds"]})),
        (SERVICES, json!({"uris": ["ldaps://other.example.com"]})),
        (SERVICES, json!({"services": ["data"]})),
        (SERVICES, json!({"name": "other"})),
        (SERVICES, json!({"base_dn": ""})),
        (SERVICES, json!({"ca_certificate": "horse"})),
        (SERVICES, json!({"unknown": true})),
        ("/v1/directory", json!({"uris": ["ldaps://other.example.com"]})),
        ("/v1/directory", json!({"roles": [{"role": "ops_admin", "group": "ops"}]})),
        ("/v1/directory", json!({"bind_password": ""})),
    ] {
        let (status, refused) = world.ask("PATCH", path, Some(body)).await;
        assert!(status == 400 && !refused.to_string().contains("horse"), "{refused}");
    }
    let data = format!("{SERVICES}?names=data");
    assert_eq!(world.ask("PATCH", &data, Some(json!({"enabled": false}))).await.0, 400);
    // As one client removes it.
    let none = json!({
        "uris": [""], "base_dn": "", "bind_user": "", "bind_password": "", "enabled": false,
        "services": ["management"],
        "management": {"user_login_attribute": "", "user_object_class": ""},
    });
    let (status, gone) = world.ask("PATCH", &named, Some(none)).await;
    assert_eq!((status, &gone["items"][0]["uris"]), (200, &json!([])));
    let (_, log) = world.ask("GET", "/v1/audit", None).await;
    let log = log.to_string();
    assert!(log.contains("uris=ldaps://ds.example.com") && log.contains("bind_user=cn=array"));
    assert!(!log.contains("horse"), "{log}");
}

#[tokio::test]
async fn roles_have_groups() {
    let world = World::new();
    let roles = format!("{SERVICES}/roles");
    let (_, all) = world.ask("GET", &roles, None).await;
    let names: Vec<_> = items(&all).iter().map(|row| row["role"]["name"].clone()).collect();
    assert_eq!(names, ["array_admin", "readonly", "storage_admin"]);
    assert!(items(&all).iter().all(|row| row.get("group").is_none()));
    let one = format!("{roles}?names=readonly");
    let group = json!({"group": "ops", "group_base": "ou=groups"});
    let (status, set) = world.ask("PATCH", &one, Some(group)).await;
    let row = &items(&set)[0];
    assert_eq!(
        (status, &row["group"], &row["group_base"]),
        (200, &json!("ops"), &json!("ou=groups"))
    );
    assert_eq!(row["management_access_policies"], json!([{"name": "readonly"}]));
    let (_, shown) = world.ask("GET", "/v1/directory", None).await;
    let expected = json!([{"role": "readonly", "group": "ops", "group_base": "ou=groups"}]);
    assert_eq!(shown["roles"], expected);
    for (method, query, body) in [
        ("PATCH", "names=ops_admin", json!({"group": "ops"})),
        ("PATCH", "names=readonly", json!({"role": {"name": "array_admin"}, "group": "ops"})),
        ("PATCH", "names=readonly", json!({})),
        ("PATCH", "", json!({"group": "ops"})),
        ("POST", "names=other", json!({"group": "ops", "role": {"name": "readonly"}})),
        ("DELETE", "names=readonly", json!({})),
    ] {
        let path = format!("{roles}?{query}");
        let (status, refused) = world.ask(method, &path, Some(body)).await;
        assert_eq!(status, 400, "{method} {query}: {refused}");
    }
    let (_, missing) = world.ask("GET", &format!("{roles}?names=observers"), None).await;
    assert_eq!(why(&missing), "observers does not exist.");
    let gone = json!({"group": "", "group_base": ""});
    let (_, gone) = world.ask("PATCH", &one, Some(gone)).await;
    assert!(items(&gone)[0].get("group").is_none());
}

#[tokio::test]
async fn servers_are_tested_over_both_paths() {
    let world = World::new();
    let (status, tested) = world.ask("POST", "/v1/directory/test", None).await;
    assert_eq!(status, 200);
    assert_eq!(
        tested["servers"][1],
        json!({"uri": "ldaps://b", "found": null, "error": "it is silent"})
    );
    let (_, tested) = world.ask("GET", &format!("{SERVICES}/test?names=management"), None).await;
    let reported: Vec<_> = items(&tested)
        .iter()
        .map(|row| (row["success"].clone(), row["result_details"].clone()))
        .collect();
    let expected = [(json!(true), json!("It answers.")), (json!(false), json!("it is silent"))];
    assert_eq!(reported, expected);
    let (status, _) = world.ask("GET", &format!("{SERVICES}/test?names=data"), None).await;
    assert_eq!(status, 400);
}
