//! Receivers of alerts: what is accepted, refused and kept.

use super::*;
use crate::objects::notifications::{SYSLOG_SERVERS_MAX, WATCHERS_MAX};

fn names(of: &[&str]) -> Vec<String> {
    of.iter().map(ToString::to_string).collect()
}

fn relay(host: &str, domain: &str) -> RelayChange {
    let (host, sender_domain) = (Some(host.into()), Some(domain.into()));
    RelayChange { host, sender_domain, ..RelayChange::default() }
}

#[test]
fn a_relay_is_set_checked_and_kept_with_its_password() {
    let (store, array) = new_array();
    assert_eq!(array.notifications().relay, Relay::default());
    assert!(!store.kept.lock().0.contains_key(b"N".as_slice()), "nothing is stored yet");
    let code = |change: RelayChange| array.change_relay(change).unwrap_err().code();
    assert_eq!(code(relay("mail.example.com", "")), "invalid_relay");
    assert_eq!(code(relay("mail example", "example.com")), "invalid_relay");
    assert_eq!(code(relay("mail", "a b")), "invalid_relay");
    array.change_relay(relay("mail.example.com:2525", "example.com")).unwrap();
    assert_eq!(array.notifications().relay.place(), Some(("mail.example.com".into(), 2525)));
    let login = |user: &str, password: &str, encryption| RelayChange {
        user: Some(user.into()),
        password: Some(RelayPassword::new(password)),
        encryption: Some(encryption),
        ..RelayChange::default()
    };
    assert_eq!(code(login("array", "horse", Encryption::None)), "invalid_relay", "in the clear");
    assert_eq!(code(login("array", "", Encryption::Tls)), "invalid_relay");
    assert_eq!(code(login("", "horse", Encryption::Tls)), "invalid_relay");
    let set = array.change_relay(login("array", "horse", Encryption::StartTls)).unwrap();
    assert!(!format!("{set:?}").contains("horse"));
    // The password is not sent to another relay unless it is given again.
    assert_eq!(code(relay("other.example.com", "example.com")), "invalid_relay");
    let none = RelayChange { encryption: Some(Encryption::None), ..RelayChange::default() };
    assert_eq!(code(none), "invalid_relay");
    let prefix = "x".repeat(65);
    let prefix = RelayChange { subject_prefix: Some(prefix), ..RelayChange::default() };
    assert_eq!(code(prefix), "invalid_relay");
    let array = Array::open(store.clone(), false).unwrap();
    let kept = array.notifications();
    assert_eq!((&kept.relay, kept.relay.password.expose()), (&set, "horse"));
    // Removing the user removes the password.
    let user = RelayChange { user: Some(String::new()), ..RelayChange::default() };
    assert_eq!(array.change_relay(user).unwrap().password.expose(), "");
    let stored = store.kept.lock().0[b"N".as_slice()].clone();
    assert!(!String::from_utf8(stored).unwrap().contains("horse"));
}

#[test]
fn watchers_and_servers_are_added_changed_removed_and_kept() {
    let (store, array) = new_array();
    array.create_watchers(&names(&["Anna@example.com", "otto@example.com"]), true).unwrap();
    let uri = SyslogUri::new("udp://log.example.com:514").unwrap();
    array.create_syslog_servers(&names(&["log1"]), &uri).unwrap();
    // All of them or none, ignoring case.
    for (refused, code) in [
        (array.create_watchers(&names(&["x@y.z", "anna@EXAMPLE.com"]), true), "receiver_exists"),
        (array.create_watchers(&names(&["x@y.z", "x"]), true), "invalid_address"),
        (array.enable_watchers(&names(&["otto@example.com", "x@y.z"]), false), "no_such_receiver"),
        (array.delete_watchers(&names(&["otto@example.com", "x@y.z"])), "no_such_receiver"),
        (array.create_syslog_servers(&names(&["log2", "LOG1"]), &uri), "receiver_exists"),
        (array.create_syslog_servers(&names(&["a b"]), &uri), "invalid_name"),
        (array.move_syslog_servers(&names(&["log2"]), &uri), "no_such_receiver"),
        (array.delete_syslog_servers(&names(&["log2"])), "no_such_receiver"),
    ] {
        assert_eq!(refused.unwrap_err().code(), code);
    }
    let before = array.notifications();
    array.enable_watchers(&names(&["anna@example.com"]), true).unwrap();
    array.move_syslog_servers(&names(&["LOG1"]), &uri).unwrap();
    assert!(Arc::ptr_eq(&before, &array.notifications()), "nothing has changed");
    array.enable_watchers(&names(&["anna@example.com"]), false).unwrap();
    let tls = SyslogUri::new("tls://log.example.com").unwrap();
    array.move_syslog_servers(&names(&["LOG1"]), &tls).unwrap();
    array.delete_watchers(&names(&["OTTO@example.com", "otto@example.com"])).unwrap();
    let array = Array::open(store, false).unwrap();
    let kept = array.notifications();
    let watchers: Vec<_> = kept.watchers().map(|w| (w.address.as_str(), w.is_enabled)).collect();
    assert_eq!(watchers, [("Anna@example.com", false)]);
    let servers: Vec<_> = kept.servers().map(|s| (s.name.as_str(), s.uri.as_str())).collect();
    assert_eq!(servers, [("log1", "tls://log.example.com")]);
    array.delete_syslog_servers(&names(&["log1"])).unwrap();
    assert_eq!(array.notifications().servers().count(), 0);
}

#[test]
fn receivers_are_limited() {
    let (_, array) = new_array();
    let many: Vec<_> = (0..=WATCHERS_MAX).map(|n| format!("w{n}@example.com")).collect();
    assert_eq!(array.create_watchers(&many, true).unwrap_err().code(), "limit_reached");
    array.create_watchers(&many[1..], true).unwrap();
    let uri = SyslogUri::new("udp://log").unwrap();
    let many: Vec<_> = (0..=SYSLOG_SERVERS_MAX).map(|n| format!("log{n}")).collect();
    assert_eq!(array.create_syslog_servers(&many, &uri).unwrap_err().code(), "limit_reached");
    array.create_syslog_servers(&many[1..], &uri).unwrap();
}

#[test]
fn a_record_that_contradicts_itself_is_refused() {
    for row in [
        r#"{"v":1,"relay":{"host":"mail"}}"#,
        r#"{"v":1,"relay":{"encryption":"rot13"}}"#,
        r#"{"v":1,"watchers":[{"address":"a@b","enabled":true},{"address":"A@b","enabled":true}]}"#,
        r#"{"v":1,"syslog_servers":[{"name":"a","uri":"ftp://b"}]}"#,
        r#"{"v":2}"#,
    ] {
        let store = Arc::new(MemoryStore::default());
        store.kept.lock().0.insert(b"N".to_vec(), row.into());
        assert!(Array::open(store, false).is_err(), "{row}");
    }
    // Fields of later versions are ignored.
    let store = Arc::new(MemoryStore::default());
    store.kept.lock().0.insert(b"N".to_vec(), br#"{"v":1,"later":7}"#.to_vec());
    assert_eq!(*Array::open(store, false).unwrap().notifications(), Notifications::default());
}

#[test]
fn snmp_managers_are_set_checked_changed_and_kept_with_their_secrets() {
    let (store, array) = new_array();
    let v2c = |host: &str, community: &str| SnmpManagerChange {
        host: Some(host.into()),
        version: Some("v2c".into()),
        community: Some(KeptPassword::new(community)),
        ..SnmpManagerChange::default()
    };
    let v3 = |auth: &str, privacy: &str| SnmpManagerChange {
        host: Some("snmp.example.com:1162".into()),
        version: Some("v3".into()),
        user: Some("array".into()),
        auth: Some((!auth.is_empty()).then_some(SnmpAuth::Sha)),
        auth_passphrase: Some(KeptPassword::new(auth)),
        privacy: Some(!privacy.is_empty()),
        privacy_passphrase: Some(KeptPassword::new(privacy)),
        ..SnmpManagerChange::default()
    };
    let code = |name: &str, set: SnmpManagerChange| {
        array.create_snmp_managers(&names(&[name]), &set).unwrap_err().code()
    };
    assert_eq!(code("a b", v2c("snmp", "horse")), "invalid_name");
    for wrong in [
        v2c("snmp example", "horse"),
        v2c("snmp", ""),
        v2c("snmp", &"x".repeat(33)),
        v3("short", ""),
        v3("", "battery staple"),
        SnmpManagerChange { version: None, ..v2c("snmp", "horse") },
        SnmpManagerChange { user: Some(String::new()), ..v3("", "") },
    ] {
        assert_eq!(code("one", wrong), "invalid_snmp_manager");
    }
    array.create_snmp_managers(&names(&["one"]), &v2c("snmp", "horse")).unwrap();
    array.create_snmp_managers(&names(&["two"]), &v3("correct horse", "battery staple")).unwrap();
    assert_eq!(code("ONE", v2c("snmp", "horse")), "receiver_exists");
    let change = |name: &str, change: SnmpManagerChange| {
        array.change_snmp_managers(&names(&[name]), &change)
    };
    // A community is not sent to another manager unless it is given again; version 3 sends no
    // secrets.
    let moved = || SnmpManagerChange { host: Some("other".into()), ..Default::default() };
    assert_eq!(change("one", moved()).unwrap_err().code(), "invalid_snmp_manager");
    change("one", v2c("other", "horse")).unwrap();
    change("two", moved()).unwrap();
    let other = SnmpManagerChange { version: Some("v2c".into()), ..Default::default() };
    assert_eq!(change("two", other).unwrap_err().code(), "invalid_snmp_manager");
    change("two", SnmpManagerChange { is_inform: Some(true), ..Default::default() }).unwrap();
    assert!(!format!("{:?}", array.notifications()).contains("horse"));
    assert_eq!((array.next_snmp_boots().unwrap(), array.next_snmp_boots().unwrap()), (1, 2));
    let again = Array::open(store.clone(), false).unwrap();
    assert_eq!(*again.notifications(), *array.notifications());
    assert_eq!(again.next_snmp_boots().unwrap(), 3);
    let kept = again.notifications();
    let [one, two] = kept.managers().collect::<Vec<_>>()[..] else { panic!("{kept:?}") };
    assert_eq!((one.place(), one.is_inform), (Some(("other".into(), 162)), false));
    assert_eq!((two.security.version(), two.is_inform), ("v3", true));
    let id = again.snmp_engine_id();
    assert_eq!((&id[..5], id.len()), (&[0x80, 0, 0x1f, 0x88, 5][..], 21));
    again.delete_snmp_managers(&names(&["one", "TWO"])).unwrap();
    let gone = again.delete_snmp_managers(&names(&["one"])).unwrap_err();
    assert_eq!(gone.code(), "no_such_receiver");
    let stored = store.kept.lock().0[b"N".as_slice()].clone();
    assert!(!String::from_utf8(stored).unwrap().contains("horse"));
}
