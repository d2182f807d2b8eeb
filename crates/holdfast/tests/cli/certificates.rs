//! The certificate of management: in files, and in the pool.

use super::*;

const PATH: &str = "/api/2.26/certificates?names=management";

fn change(world: &World, body: &Value) -> Value {
    let changed = world.json(&["api", "PATCH", PATH, "--data", &body.to_string()]);
    changed["items"][0].clone()
}

/// Returns whether the server has a certificate now, as a client elsewhere sees it.
fn has(world: &World, address: &str, token: &str, certificate: &Value) -> bool {
    let path = world.directory.path().join("ca.pem");
    std::fs::write(&path, certificate.as_str().unwrap()).unwrap();
    let path = path.to_str().unwrap();
    let asked = ["status", "--api", address, "--token-file", token, "--ca", path];
    world.output(&asked).status.success()
}

#[test]
fn the_certificate_in_the_pool_takes_effect_at_once_and_is_kept() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    let token = world.directory.path().join("token");
    let made = world.json(&["token", "create", "test"]);
    std::fs::write(&token, made["token"].as_str().unwrap()).unwrap();
    let token = token.to_str().unwrap();
    let of_files = world.json(&["api", "GET", PATH])["items"][0].clone();
    assert_eq!(of_files["source"], "files");
    let address = array.reported["api"].as_str().unwrap().to_owned();
    assert!(has(&world, &address, token, &of_files["certificate"]));
    // Self-signed. The verb after it finds the array by the new fingerprint.
    let own = change(&world, &json!({"organization": "Acme Inc", "country": "US"}));
    assert_eq!((&own["source"], &own["organization"]), (&json!("pool"), &json!("Acme Inc")));
    assert_eq!((&own["key_algorithm"], &own["key_size"]), (&json!("ec"), &json!(256)));
    world.text(&["status"]);
    assert!(has(&world, &address, token, &own["certificate"]));
    assert!(!has(&world, &address, token, &of_files["certificate"]));
    // Imported, with a key that does not match, and with the one that does.
    let path = |name: &str| world.directory.path().join(name);
    let loopback = [127, 0, 0, 1].into();
    management::certificate::make(&path("a.pem"), &path("a.key"), loopback).unwrap();
    let read = |name: &str| std::fs::read_to_string(path(name)).unwrap();
    let import = json!({"status": "imported", "certificate": read("a.pem")});
    let refused = world.refusal(1, &["api", "PATCH", PATH, "--data", &import.to_string()]);
    assert!(refused.contains("not that of the certificate"), "{refused}");
    let import = json!({"status": "imported", "certificate": read("a.pem"), "key": read("a.key")});
    let imported = change(&world, &import);
    assert_eq!((&imported["status"], imported.get("key")), (&json!("imported"), None));
    assert!(has(&world, &address, token, &json!(read("a.pem"))));
    array.kill();
    let array = world.serve(&[]);
    let address = array.reported["api"].as_str().unwrap().to_owned();
    assert!(has(&world, &address, token, &json!(read("a.pem"))));
    world.text(&["api", "DELETE", PATH]);
    world.text(&["status"]);
    assert!(has(&world, &address, token, &of_files["certificate"]));
    array.stop();
}
