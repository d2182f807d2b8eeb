//! The servers that the array queries on its management network: what verbs set is kept when it is
//! killed.

use super::*;

#[test]
fn name_servers_are_set_kept_and_cleared() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    assert!(world.text(&["array", "show"]).contains("none: the system's"));
    let set =
        ["array", "set", "--name-servers", "192.0.2.53, 192.0.2.54:5353", "--domain", "a.example"];
    let reported = world.text(&set);
    assert!(
        reported.contains("192.0.2.53, 192.0.2.54:5353") && reported.contains("a.example"),
        "{reported}"
    );
    let error = world.refusal(1, &["array", "set", "--name-servers", "ns.example.com"]);
    assert!(error.contains("ADDRESS:PORT"), "{error}");
    array.kill();
    let array = world.serve(&[]);
    let settings = world.json(&["array", "show"]);
    assert_eq!(settings["name_servers"], json!(["192.0.2.53", "192.0.2.54:5353"]));
    world.text(&["array", "set", "--name-servers", "none", "--domain", "none"]);
    let settings = world.json(&["array", "show"]);
    assert_eq!((&settings["name_servers"], &settings["domain"]), (&json!([]), &json!("")));
    array.stop();
}

#[test]
fn time_servers_are_set_asked_and_kept() {
    let world = World::new();
    world.make_pool();
    let array = world.serve(&[]);
    assert!(world.text(&["array", "ntp-test"]).contains("No time server is set"));
    // It receives queries and never responds.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let server = silent.local_addr().unwrap().to_string();
    world.text(&["array", "set", "--ntp-servers", &server, "--banner", "Keep\nout"]);
    assert!(world.text(&["array", "show"]).contains("Keep\\nout"));
    let tested = world.output(&["array", "ntp-test"]);
    let reported = String::from_utf8(tested.stdout).unwrap();
    assert_eq!((tested.status.code(), reported.contains(&server)), (Some(1), true), "{reported}");
    let error = String::from_utf8(tested.stderr).unwrap();
    assert!(error.contains("1 time servers do not answer"), "{error}");
    array.kill();
    let array = world.serve(&[]);
    let kept = world.json(&["array", "show"]);
    assert_eq!((&kept["ntp_servers"], &kept["banner"]), (&json!([server]), &json!("Keep\nout")));
    assert_eq!(world.json(&["array", "set", "--banner", "none"])["banner"], "");
    array.stop();
}
