//! The directory service: what is accepted, refused and kept.

use super::*;

fn uris(texts: &[&str]) -> Option<Vec<DirectoryUri>> {
    Some(texts.iter().map(|text| DirectoryUri::new(text).unwrap()).collect())
}

fn whole() -> DirectoryChange {
    DirectoryChange {
        is_enabled: Some(true),
        uris: uris(&["ldaps://ds.example.com", "ldap://[2001:db8::1]:1389"]),
        base_dn: Some("dc=example,dc=com".into()),
        bind_user: Some("cn=array,dc=example,dc=com".into()),
        bind_password: Some(KeptPassword::new("horse")),
        groups: vec![(Role::ReadOnly, Some("ops".into()), Some("ou=groups".into()))],
        ..DirectoryChange::default()
    }
}

#[test]
fn uris_have_a_scheme_a_host_and_a_port() {
    for (text, host, port, is_tls, is_loopback) in [
        ("ldaps://ds.example.com", "ds.example.com", 636, true, false),
        ("LDAP://ds.example.com/", "ds.example.com", 389, false, false),
        ("ldap://127.0.0.9:1389", "127.0.0.9", 1389, false, true),
        ("ldaps://[::1]:1636", "::1", 1636, true, true),
        ("ldap://localhost", "localhost", 389, false, true),
    ] {
        let uri = DirectoryUri::new(text).unwrap();
        let found = (uri.host(), uri.port(), uri.is_tls(), uri.is_loopback());
        assert_eq!((uri.to_string(), found), (text.into(), (host, port, is_tls, is_loopback)));
    }
    for bad in ["", "ds.example.com", "ldapi://ds", "ldap://", "ldap://a b", "ldaps://ds/dc=x"] {
        assert_eq!(DirectoryUri::new(bad).unwrap_err().code(), "invalid_directory", "{bad:?}");
    }
}

#[test]
fn a_directory_is_set_checked_and_kept_with_its_password() {
    let (store, array) = new_array();
    assert_eq!(*array.directory(), Directory::default());
    array.change_directory(DirectoryChange::default()).unwrap();
    assert!(!store.kept.lock().0.contains_key(b"D".as_slice()), "nothing is stored yet");
    let code = |change: DirectoryChange| array.change_directory(change).unwrap_err().code();
    for wrong in [
        DirectoryChange { uris: Some(Vec::new()), ..whole() },
        DirectoryChange { base_dn: Some(String::new()), ..whole() },
        DirectoryChange { base_dn: Some("x".repeat(256)), ..whole() },
        DirectoryChange { bind_user: Some(String::new()), ..whole() },
        DirectoryChange { bind_password: Some(KeptPassword::default()), ..whole() },
        DirectoryChange { user_login: Some("uid)(x".into()), ..whole() },
        DirectoryChange { user_class: Some("a b".into()), ..whole() },
        DirectoryChange { ca_certificate: Some("horse".into()), ..whole() },
        DirectoryChange {
            uris: uris(&["ldap://a", "ldap://b", "ldap://c", "ldap://d"]),
            ..whole()
        },
    ] {
        assert_eq!(code(wrong), "invalid_directory");
    }
    let set = array.change_directory(whole()).unwrap();
    assert!(!format!("{set:?}").contains("horse"));
    assert_eq!(set.group(Role::ReadOnly).base, "ou=groups");
    assert_eq!(set.roles().map(|(role, _)| role).collect::<Vec<_>>(), [Role::ReadOnly]);
    let again = Array::open(store.clone(), false).unwrap();
    assert_eq!((&*again.directory(), again.directory().bind_password.expose()), (&*set, "horse"));
    // The same settings again are no change, and end no login.
    assert_eq!(array.change_directory(whole()).unwrap().revision(), set.revision());
    // The password is not sent to another server unless it is given again.
    let moved = DirectoryChange { uris: uris(&["ldap://other"]), ..DirectoryChange::default() };
    assert_eq!(code(moved.clone()), "invalid_directory");
    let bind_password = Some(KeptPassword::new("battery"));
    let moved = array.change_directory(DirectoryChange { bind_password, ..moved }).unwrap();
    assert!(moved.revision() > set.revision());
    // Removing the user removes the password, and removing the group of a role removes its base.
    let none = DirectoryChange {
        is_enabled: Some(false),
        bind_user: Some(String::new()),
        groups: vec![(Role::ReadOnly, Some(String::new()), None)],
        ..DirectoryChange::default()
    };
    let none = array.change_directory(none).unwrap();
    assert!(none.bind_password.is_empty() && none.roles().next().is_none());
    assert_eq!(*none.group(Role::ReadOnly), DirectoryGroup::default());
    let stored = String::from_utf8(store.kept.lock().0[b"D".as_slice()].clone()).unwrap();
    assert!(!stored.contains("battery") && !stored.contains("ops"), "{stored}");
    assert_eq!(*Array::open(store, false).unwrap().directory(), *none);
}
