//! Certificates over REST, with a mock that only records requests.

use super::notifications::items;
use super::*;

const PATH: &str = "/api/2.26/certificates";

/// A mock whose certificates are lists of the requested values.
pub(super) struct Scribe;

impl Certificates for Scribe {
    fn in_files(&self) -> Option<String> {
        Some("in a file".into())
    }

    fn describe(&self, certificate: &str) -> Result<CertificateFacts, String> {
        let mut facts = CertificateFacts { key_size: 256, ..CertificateFacts::default() };
        let mut parts = certificate.split('|');
        facts.subject.common_name = parts.next().unwrap_or_default().into();
        facts.subject.country = parts.next().unwrap_or_default().into();
        Ok(facts)
    }

    fn make(
        &self,
        subject: &CertificateSubject,
        days: u32,
        key: Option<&str>,
    ) -> Result<(String, String), String> {
        let key = key.map_or_else(|| format!("secret-{days}"), str::to_owned);
        Ok((format!("{}|{}|{days}", subject.common_name, subject.country), key))
    }

    fn check(&self, certificate: &str, _: &str, key: &str) -> Result<(), String> {
        let is_right = certificate.ends_with(key);
        if is_right { Ok(()) } else { Err("The key is not that of the certificate.".into()) }
    }

    fn request(&self, subject: &CertificateSubject, key: &str) -> Result<String, String> {
        Ok(format!("{}|{}|{}", subject.common_name, subject.country, key.len()))
    }

    fn changed(&self) {}
}

async fn ask(world: &World, method: &str, query: &str, body: Value) -> (u16, Value) {
    world.ask(method, &format!("{PATH}{query}"), Some(body)).await
}

#[tokio::test]
async fn certificates_are_made_changed_signed_and_removed() {
    let world = World::new();
    let (_, all) = world.ask("GET", PATH, None).await;
    assert_eq!(items(&all).len(), 1);
    assert_eq!(
        (&all["items"][0]["name"], &all["items"][0]["source"]),
        (&json!("management"), &json!("files"))
    );
    // As a published client makes, changes and removes one.
    let new = json!({"common_name": "a", "country": "us", "key_size": 4096, "days": 30,
        "status": "self-signed"});
    let (status, made) = ask(&world, "POST", "?names=foo", new.clone()).await;
    assert_eq!((status, &made["items"][0]["certificate"]), (200, &json!("a|US|30")));
    assert!(!made.to_string().contains("secret"), "{made}");
    let (status, again) = ask(&world, "POST", "?names=foo", new).await;
    assert_eq!(
        (status, &again["errors"][0]["message"]),
        (400, &json!("Certificate foo already exists."))
    );
    let (_, changed) = ask(&world, "PATCH", "?names=foo", json!({"common_name": "b"})).await;
    assert_eq!(changed["items"][0]["certificate"], "b|US|3650");
    assert_eq!(world.array.certificate("foo").unwrap().key.expose(), "secret-30");
    let query = "?names=foo&generate_new_key=true";
    ask(&world, "PATCH", query, json!({"days": 9})).await;
    assert_eq!(world.array.certificate("foo").unwrap().key.expose(), "secret-9");
    let request = json!({"certificate": {"name": "foo"}, "country": "DE"});
    let (status, signed) = ask(&world, "POST", "/certificate-signing-requests", request).await;
    assert_eq!(
        (status, &signed["items"][0]["certificate_signing_request"]),
        (200, &json!("b|DE|8"))
    );
    // The answer of the authority is for the key that is there.
    let (status, imported) =
        ask(&world, "PATCH", "?names=foo", json!({"certificate": "x secret-9"})).await;
    assert_eq!((status, &imported["items"][0]["status"]), (200, &json!("imported")));
    assert_eq!(world.ask("DELETE", &format!("{PATH}?names=foo"), None).await.0, 200);
    let (status, gone) = world.ask("GET", &format!("{PATH}?names=foo"), None).await;
    assert_eq!((status, &gone["errors"][0]["message"]), (400, &json!("foo does not exist.")));
}

#[tokio::test]
async fn management_has_the_certificate_of_the_pool_if_there_is_one() {
    let world = World::new();
    let management = format!("{PATH}?names=management");
    let (status, refused) = world.ask("DELETE", &management, None).await;
    assert!(status == 400 && refused.to_string().contains("in files is used"), "{refused}");
    let request = json!({"certificate": {"name": "management"}});
    let (status, refused) = ask(&world, "POST", "/certificate-signing-requests", request).await;
    assert!(status == 400 && refused.to_string().contains("stays there"), "{refused}");
    let (status, changed) =
        ask(&world, "PATCH", "?names=management", json!({"country": "DE"})).await;
    assert_eq!((status, &changed["items"][0]["source"]), (200, &json!("pool")));
    assert_eq!(changed["items"][0]["certificate"], "in a file|DE|3650");
    let (_, all) = world.ask("GET", PATH, None).await;
    assert_eq!((items(&all).len(), &all["items"][0]["source"]), (1, &json!("pool")));
    assert_eq!(world.ask("DELETE", &management, None).await.0, 200);
    assert_eq!(world.ask("GET", &management, None).await.1["items"][0]["source"], "files");
    let (_, log) = world.ask("GET", "/v1/audit?text=certificates", None).await;
    assert!(log["entries"].as_array().unwrap().len() >= 2, "{log}");
}

#[tokio::test]
async fn invalid_certificates_are_refused() {
    let world = World::new();
    let pem = "x horse";
    for (query, body, why) in [
        ("?names=foo", json!({"key_algorithm": "rsa"}), "not supported"),
        ("?names=foo", json!({"key_size": 512}), "It is 256"),
        ("?names=foo", json!({"days": 0}), "36500 days"),
        ("?names=foo", json!({"country": "Germany"}), "2 characters"),
        ("?names=foo", json!({"country": "1x"}), "two letters"),
        ("?names=foo", json!({"organization": "a\nb"}), "control characters"),
        ("?names=foo", json!({"common_name": "x".repeat(65)}), "64 characters"),
        ("?names=foo", json!({"subject_alternative_names": vec!["a"; 33]}), "up to 32"),
        ("?names=foo", json!({"status": "other"}), "self-signed"),
        ("?names=foo", json!({"status": "imported"}), "Give the certificate"),
        ("?names=foo", json!({"certificate": pem}), "Give the key"),
        ("?names=foo", json!({"certificate": pem, "key": "cow"}), "not that of"),
        ("?names=foo", json!({"certificate": pem, "passphrase": "x"}), "no key"),
        ("?names=foo", json!({"status": "self-signed", "key": "horse"}), "created by the array"),
        ("?names=a,b", json!({}), "Name one"),
        ("?names=a%20b", json!({}), "A-Z"),
        ("", json!({}), "names"),
    ] {
        let (status, refused) = ask(&world, "POST", query, body.clone()).await;
        let text = refused.to_string();
        assert!(status == 400 && text.contains(why), "{body}: {text}");
        assert!(!text.contains("horse") && !text.contains("cow"), "{text}");
    }
    let (status, refused) = ask(&world, "PATCH", "?names=foo", json!({})).await;
    assert!(status == 400 && refused.to_string().contains("does not exist"), "{refused}");
    assert!(world.array.certificates().is_empty());
}
