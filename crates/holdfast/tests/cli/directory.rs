//! The directory service: what verbs set is kept when the array is killed.

use super::*;

#[test]
fn a_directory_service_is_set_tested_kept_and_cleared() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    assert!(world.text(&["directory", "test"]).contains("No server is set"));
    let secret = world.directory.path().join("password");
    std::fs::write(&secret, "horse\n").unwrap();
    let secret = secret.to_str().unwrap();
    // It accepts connections and never responds.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let uri = format!("ldap://{}", silent.local_addr().unwrap());
    let set = ["directory", "set", "--enabled", "on", "--uri", &uri, "--base-dn", "dc=x"];
    let bind = ["--bind-user", "cn=array,dc=x", "--bind-password-file", secret];
    let reported = world.text(&[&set[..], &bind[..]].concat());
    assert!(
        reported.contains("cn=array,dc=x, with a password") && !reported.contains("horse"),
        "{reported}"
    );
    let role = ["directory", "role", "readonly", "--group", "ops", "--base", "ou=groups"];
    assert!(world.text(&role).contains("readonly: ops below ou=groups"));
    let error = world.refusal(1, &["directory", "set", "--uri", "ldaps://other.example.com"]);
    assert!(error.contains("give the password of the user again"), "{error}");
    let error = world.refusal(1, &["directory", "role", "nobody", "--group", "ops"]);
    assert!(error.contains("is not a role"), "{error}");
    let tested = world.output(&["directory", "test"]);
    let reported = String::from_utf8(tested.stdout).unwrap();
    assert_eq!((tested.status.code(), reported.contains(&uri)), (Some(1), true), "{reported}");
    assert!(reported.contains("it does not answer in time"), "{reported}");
    array.kill();
    let array = world.serve(&[]);
    let kept = world.json(&["directory", "show"]);
    assert_eq!((&kept["uris"], &kept["has_bind_password"]), (&json!([uri]), &json!(true)));
    assert!(!kept.to_string().contains("horse"));
    world.text(&["directory", "role", "readonly", "--none"]);
    let none = ["--enabled", "off", "--uri", "none", "--base-dn", "none", "--bind-user", "none"];
    world.text(&[&["directory", "set"][..], &none[..]].concat());
    let kept = world.json(&["directory", "show"]);
    assert_eq!((&kept["has_bind_password"], &kept["roles"]), (&json!(false), &json!([])));
    array.stop();
}
