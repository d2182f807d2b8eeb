//! Users, their tokens, and the audit log.

use crate::audit::{AUDIT_ENTRIES_MAX, AUDIT_TEXT_BYTES_MAX};
use crate::users::{TOKENS_PER_USER_MAX, USERS_MAX};

use super::*;

fn user(name: &str) -> UserName {
    UserName::new(name).unwrap()
}

fn token(name: &str, secret: &str, expires_ms: Option<u64>) -> NewToken {
    let hash = TokenHash::of(secret.as_bytes());
    NewToken { name: TokenName::new(name).unwrap(), hash, created_ms: 10, expires_ms }
}

fn who(array: &Array, secret: &str, now_ms: u64) -> Option<(String, Role)> {
    array.authenticate(&TokenHash::of(secret.as_bytes()), now_ms)
}

fn code<T: std::fmt::Debug>(result: Result<T, Error>) -> &'static str {
    result.unwrap_err().code()
}

#[test]
fn the_built_in_admin_always_exists() {
    let (store, array) = new_array();
    let admin = array.user("Admin").unwrap();
    assert!(admin.is_built_in && admin.role == Role::ArrayAdmin && admin.tokens.is_empty());
    assert!(store.kept.lock().0.keys().all(|key| key[0] != b'u'), "it is stored for nothing");
    assert_eq!(code(array.delete_user("ADMIN")), "built_in_user");
    assert_eq!(code(array.change_user("admin", Role::ReadOnly)), "built_in_user");
    assert_eq!(code(array.create_user(user("ADMIN"), Role::ReadOnly, 1)), "user_exists");
    array.change_user("admin", Role::ArrayAdmin).unwrap();
    array.create_token("admin", token("mine", "secret", None)).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!(who(&array, "secret", 20), Some(("admin".into(), Role::ArrayAdmin)));
    assert!(array.user("admin").unwrap().is_built_in);
}

#[test]
fn tokens_are_valid_until_expiry_or_withdrawal_and_are_not_stored() {
    let (store, array) = new_array();
    array.create_user(user("anna"), Role::StorageAdmin, 5).unwrap();
    let made = array.create_token("anna", token("laptop", "open sesame", Some(100))).unwrap();
    assert_eq!((made.user.as_str(), made.name.as_str()), ("anna", "laptop"));
    assert_eq!((made.expires_ms, made.last_used_ms), (Some(100), None));
    array.create_token("anna", token("ci", "friend", None)).unwrap();
    let taken = array.create_token("ANNA", token("Laptop", "other", None));
    assert_eq!(code(taken), "token_exists");
    // Two users would have the same secret.
    assert_eq!(code(array.create_token("admin", token("x", "friend", None))), "token_exists");
    assert_eq!(code(array.create_token("anna", token("x", "y", Some(10)))), "invalid_expiry");
    assert_eq!(code(array.create_token("otto", token("x", "y", None))), "no_such_user");
    assert_eq!(who(&array, "open sesame", 99), Some(("anna".into(), Role::StorageAdmin)));
    assert_eq!(who(&array, "open sesame", 100), None);
    assert_eq!(who(&array, "open sesam", 99), None);
    assert_eq!(array.user("anna").unwrap().tokens[0].last_used_ms, Some(99));
    for (_, value) in store.kept.lock().0.iter() {
        let text = String::from_utf8_lossy(value);
        assert!(!text.contains("sesame") && !text.contains("friend"), "{text}");
    }
    let again = Array::open(store.clone(), false).unwrap();
    array.change_user("anna", Role::ReadOnly).unwrap();
    assert_eq!(array.user("anna").unwrap().tokens[0].last_used_ms, Some(99), "it was forgotten");
    assert_eq!(who(&array, "friend", 1 << 50), Some(("anna".into(), Role::ReadOnly)));
    assert_eq!(who(&again, "friend", 50), Some(("anna".into(), Role::StorageAdmin)));
    assert_eq!(code(array.delete_token("anna", "none")), "no_such_token");
    array.delete_token("anna", "LAPTOP").unwrap();
    assert_eq!(who(&array, "open sesame", 50), None);
    array.delete_user("anna").unwrap();
    assert_eq!(code(array.delete_user("anna")), "no_such_user");
    assert_eq!(who(&array, "friend", 50), None);
    let again = Array::open(store, false).unwrap();
    assert_eq!(again.users(None, 10).len(), 1);
    assert_eq!(who(&again, "friend", 50), None);
}

#[test]
fn users_and_tokens_are_bounded_and_listed_by_name() {
    let (_, array) = new_array();
    for n in 1..USERS_MAX {
        array.create_user(user(&format!("u{n:03}")), Role::ReadOnly, 1).unwrap();
    }
    assert_eq!(code(array.create_user(user("more"), Role::ReadOnly, 1)), "limit_reached");
    for n in 0..TOKENS_PER_USER_MAX {
        array.create_token("u001", token(&format!("t{n}"), &n.to_string(), None)).unwrap();
    }
    assert_eq!(code(array.create_token("u001", token("more", "m", None))), "limit_reached");
    let names = |after, limit| -> Vec<String> {
        array.users(after, limit).into_iter().map(|user| user.name).collect()
    };
    assert_eq!(names(None, 2), ["admin", "u001"]);
    assert_eq!(names(Some("U001"), 2), ["u002", "u003"]);
}

#[test]
fn a_refused_change_of_a_user_has_no_effect() {
    let (store, array) = new_array();
    array.create_user(user("anna"), Role::ReadOnly, 5).unwrap();
    array.create_token("anna", token("a", "friend", None)).unwrap();
    let before = array.users(None, 10);
    store.refuses.store(true, Ordering::Relaxed);
    assert_eq!(code(array.create_user(user("otto"), Role::ReadOnly, 5)), "pool_full");
    assert_eq!(code(array.delete_user("anna")), "pool_full");
    assert_eq!(code(array.delete_token("anna", "a")), "pool_full");
    assert_eq!(code(array.change_user("anna", Role::ArrayAdmin)), "pool_full");
    // A request without a change needs no space.
    array.change_user("anna", Role::ReadOnly).unwrap();
    assert_eq!(array.users(None, 10), before);
    assert!(who(&array, "friend", 50).is_some());
}

/// In a pool so full that it refuses additions, entries of the log and released LUNs kept whatever
/// would have freed space from being done.
#[test]
fn what_ends_adds_nothing_to_the_configuration_of_a_full_pool() {
    let (store, array) = new_array();
    for name in ["a", "b"] {
        array.create_volume(new_volume(name, 4096)).unwrap();
    }
    array.create_host(new_host("x", &["iqn.2026-11.com.example:x"])).unwrap();
    array.connect("a", "x", None).unwrap();
    store.refuses_additions.store(true, Ordering::Relaxed);
    let refused = array.create_host(new_host("y", &["iqn.2026-11.com.example:y"]));
    assert_eq!(refused.unwrap_err().code(), "pool_full");
    done(&array, deed("/disconnect"), || array.disconnect("a", "x")).unwrap();
    done(&array, deed("/destroy"), || array.destroy_volume("a", 3)).unwrap();
    done(&array, deed("/recover"), || array.recover_volume("a")).unwrap();
    done(&array, deed("/destroy"), || array.destroy_volume("a", 4)).unwrap();
    done(&array, deed("/eradicate"), || array.eradicate_volume("a")).unwrap();
    done(&array, deed("/refusal"), || array.eradicate_volume("b")).unwrap_err();
    done(&array, deed("/delete"), || array.delete_host("x")).unwrap();
    assert_eq!(array.audit_log(None, 100).len(), 7);
}

fn deed(path: &str) -> Deed {
    Deed {
        time_ms: 1000,
        user: "anna".into(),
        role: Role::StorageAdmin,
        origin: "192.0.2.7".into(),
        method: "POST".into(),
        path: path.into(),
        names: "a".into(),
    }
}

fn done<T>(array: &Array, deed: Deed, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
    array.attributed(deed, work, Error::code)
}

#[test]
fn a_change_and_its_entry_are_one_commit() {
    let (store, array) = new_array();
    let commits = || store.changes.lock().clone();
    done(&array, deed("/v1/volumes"), || array.create_volume(new_volume("a", 4096))).unwrap();
    let made = commits().pop().unwrap();
    let kinds: Vec<u8> = made.iter().map(|key| key[0]).collect();
    assert!(kinds.contains(&b'v') && kinds.contains(&b'a'), "{kinds:?}");
    let count = commits().len();
    // A change without attribution has no entry.
    array.create_volume(new_volume("b", 4096)).unwrap();
    // Two commits for one deed make one entry.
    let twice = done(&array, deed("/v1/volumes/a"), || {
        array.destroy_volume("a", 5)?;
        array.eradicate_volume("a")
    });
    twice.unwrap();
    assert_eq!(commits().len(), count + 3);
    // A refusal, and work that needs no commit, get a commit of their own.
    let refused = done(&array, deed("/v1/volumes/a"), || array.destroy_volume("a", 5));
    assert_eq!(code(refused), "no_such_volume");
    done(&array, deed("/v1/pool/scrub"), || Ok(())).unwrap();
    let reported = |array: &Array| -> Vec<(u64, String, String)> {
        let log = array.audit_log(None, 10).into_iter();
        log.map(|entry| (entry.number, entry.deed.path.clone(), entry.outcome.clone())).collect()
    };
    let row = |n, path: &str, outcome: &str| (n, path.to_owned(), outcome.to_owned());
    let expected = [
        row(4, "/v1/pool/scrub", "done"),
        row(3, "/v1/volumes/a", "no_such_volume"),
        row(2, "/v1/volumes/a", "done"),
        row(1, "/v1/volumes", "done"),
    ];
    assert_eq!(reported(&array), expected);
    assert_eq!(array.audit_log(Some(3), 1)[0].number, 2);
    let again = Array::open(store, false).unwrap();
    assert_eq!(reported(&again), expected);
    assert_eq!(again.audit_log(None, 10), array.audit_log(None, 10));
}

#[test]
fn work_before_a_refusal_is_in_the_audit_log() {
    let (store, array) = new_array();
    array.create_volume(new_volume("a", 4096)).unwrap();
    let refused = done(&array, deed("/x"), || {
        array.destroy_volume("a", 5)?;
        array.destroy_volume("a", 5)
    });
    assert_eq!(code(refused), "volume_destroyed");
    let log = array.audit_log(None, 10);
    let outcomes: Vec<_> = log.iter().map(|entry| entry.outcome.as_str()).collect();
    assert_eq!(outcomes, ["volume_destroyed", "done"]);
    // A change that the store refuses has no entry, nor does the next change contain it.
    store.refuses.store(true, Ordering::Relaxed);
    let refused = done(&array, deed("/y"), || array.create_volume(new_volume("b", 4096)));
    assert_eq!(code(refused), "pool_full");
    assert_eq!(code(done(&array, deed("/y"), || Ok(()))), "pool_full");
    store.refuses.store(false, Ordering::Relaxed);
    array.create_volume(new_volume("b", 4096)).unwrap();
    assert_eq!(array.audit_log(None, 10), log);
}

#[test]
fn the_log_is_a_ring_of_short_entries() {
    let (store, array) = new_array();
    let long = "\"\\\n\u{1f600}é".repeat(1000);
    let mut deed = deed(&long);
    deed.names = long;
    for _ in 0..AUDIT_ENTRIES_MAX + 3 {
        done(&array, deed.clone(), || Ok(())).unwrap();
    }
    let log = array.audit_log(None, usize::MAX);
    assert_eq!((log.len(), log[0].number), (AUDIT_ENTRIES_MAX, AUDIT_ENTRIES_MAX as u64 + 3));
    assert_eq!(log.last().unwrap().number, 4);
    assert!(log.iter().all(|entry| entry.deed.names.len() <= AUDIT_TEXT_BYTES_MAX));
    let kept = store.kept.lock().0.clone();
    let rows: Vec<_> = kept.iter().filter(|(key, _)| key[0] == b'a').collect();
    assert_eq!(rows.len(), AUDIT_ENTRIES_MAX);
    assert!(rows.iter().all(|(_, value)| value.len() < 1024));
    assert_eq!(Array::open(store, false).unwrap().audit_log(None, usize::MAX), log);
}

#[test]
fn damaged_records_of_users_are_refused() {
    let hash = "ab".repeat(32);
    let row = |name: &str, role: &str, hash: &str| {
        format!(
            "{{\"v\":1,\"name\":\"{name}\",\"role\":\"{role}\",\"tokens\":\
             [{{\"name\":\"t\",\"sha256\":\"{hash}\",\"created_ms\":1}}]}}"
        )
    };
    let open = |rows: &[(&[u8], String)]| {
        let store = Arc::new(MemoryStore::default());
        let rows = rows.iter().map(|(key, value)| (key.to_vec(), value.clone().into_bytes()));
        store.kept.lock().0.extend(rows);
        Array::open(store, false)
    };
    assert!(open(&[(b"uanna", row("Anna", "readonly", &hash))]).is_ok());
    for rows in [
        &[(&b"uanna"[..], row("otto", "readonly", &hash))][..],
        &[(b"uanna", row("anna", "root", &hash))],
        &[(b"uanna", row("anna", "readonly", "abc"))],
        &[(b"uanna", row("anna", "readonly", &"+1".repeat(32)))],
        &[(b"uadmin", row("admin", "readonly", &hash))],
        &[(b"uanna", row("anna", "readonly", &hash)), (b"uotto", row("otto", "readonly", &hash))],
    ] {
        assert_eq!(open(rows).unwrap_err().code(), "damaged", "{rows:?}");
    }
}

/// Returns the hash of a password with this salt.
fn hash(salt: &str) -> PasswordHash {
    PasswordHash::new(&format!("$argon2id$v=19$m=19456,t=2,p=1${salt}$aGFzaA")).unwrap()
}

fn set(password: Option<PasswordHash>) -> UserUpdate {
    UserUpdate { role: None, password: Some(password) }
}

#[test]
fn a_password_is_kept_changed_and_removed() {
    let (store, array) = new_array();
    let anna = UserName::new("Anna").unwrap();
    let made = array.create_user_with(anna, Role::ReadOnly, Some(hash("c2FsdA")), 5).unwrap();
    assert!(made.has_password && !format!("{:?}", hash("c2FsdA")).contains("argon2"));
    assert!(!array.user("admin").unwrap().has_password);
    assert_eq!(array.password_of("anna"), Some(hash("c2FsdA")));
    assert_eq!((array.password_of("admin"), array.password_of("none")), (None, None));
    let who = |array: &Array, salt: &str| array.has_password(&hash(salt).credential());
    assert_eq!(who(&array, "c2FsdA"), Some(("Anna".into(), Role::ReadOnly)));
    array.update_user("anna", set(Some(hash("b3RoZXI")))).unwrap();
    let array = Array::open(store.clone(), false).unwrap();
    assert_eq!((who(&array, "c2FsdA"), who(&array, "b3RoZXI").is_some()), (None, true));
    let both = UserUpdate { role: Some(Role::StorageAdmin), password: Some(Some(hash("dGhpcmQ"))) };
    let changed = array.update_user("ANNA", both).unwrap();
    assert_eq!((changed.role, changed.has_password), (Role::StorageAdmin, true));
    assert_eq!(who(&array, "dGhpcmQ"), Some(("Anna".into(), Role::StorageAdmin)));
    // Omitted fields do not change; the built-in user keeps its role, and may have a password.
    array.change_user("anna", Role::ReadOnly).unwrap();
    assert!(array.user("anna").unwrap().has_password);
    let role = UserUpdate { role: Some(Role::ReadOnly), password: Some(Some(hash("YWRtaW4"))) };
    assert_eq!(array.update_user("admin", role).unwrap_err().code(), "built_in_user");
    array.update_user("admin", set(Some(hash("YWRtaW4")))).unwrap();
    assert_eq!(array.update_user("none", set(None)).unwrap_err().code(), "no_such_user");
    array.update_user("anna", set(None)).unwrap();
    let array = Array::open(store, false).unwrap();
    assert_eq!((array.password_of("anna"), who(&array, "dGhpcmQ")), (None, None));
    assert_eq!(who(&array, "YWRtaW4"), Some(("admin".into(), Role::ArrayAdmin)));
    array.update_user("anna", set(Some(hash("c2FsdA")))).unwrap();
    array.delete_user("anna").unwrap();
    assert_eq!(who(&array, "c2FsdA"), None);
}

#[test]
fn only_argon2id_hashes_are_accepted_and_old_records_have_none() {
    let long = format!("$argon2id${}", "x".repeat(256));
    for bad in ["", "horse", "$argon2i$v=19$m=8,t=1,p=1$c2FsdA$aGFzaA", "$argon2id$ä", &long] {
        assert_eq!(PasswordHash::new(bad), None, "{bad}");
    }
    let row =
        |more: &str| format!(r#"{{"v":1,"name":"anna","role":"readonly","tokens":[]{more}}}"#);
    for (more, has) in [("", Some(false)), (r#","password":"horse""#, None)] {
        let store = Arc::new(MemoryStore::default());
        store.kept.lock().0.insert(b"uanna".to_vec(), row(more).into());
        let found = Array::open(store, false).map(|array| array.user("anna").unwrap().has_password);
        assert_eq!(found.ok(), has, "{more}");
    }
}
