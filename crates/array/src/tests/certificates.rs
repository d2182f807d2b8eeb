//! Certificates in the pool.

use super::*;

fn certificate(name: &str, text: &str) -> StoredCertificate {
    StoredCertificate {
        name: CertificateName::new(name).unwrap(),
        certificate: text.into(),
        intermediate: String::new(),
        key: KeptPassword::new("correct horse"),
        is_self_signed: true,
    }
}

#[test]
fn certificates_are_stored_replaced_and_removed_with_their_keys() {
    let (store, array) = new_array();
    array.put_certificates(vec![certificate("Management", "one")], true).unwrap();
    let first = array.certificate(MANAGEMENT_CERTIFICATE).unwrap();
    assert!(Arc::ptr_eq(&first, &array.certificate("MANAGEMENT").unwrap()));
    assert!(!format!("{first:?}").contains("horse"));
    let code = |one, is_new| array.put_certificates(vec![one], is_new).unwrap_err().code();
    assert_eq!(code(certificate("management", "two"), true), "certificate_exists");
    let long = "x".repeat(CERTIFICATE_PEM_BYTES_MAX + 1);
    assert_eq!(code(certificate("management", &long), false), "invalid_certificate");
    array.put_certificates(vec![certificate("management", "two")], false).unwrap();
    // The longest ones fit a record.
    let longest = &long[1..];
    let longest = StoredCertificate {
        intermediate: longest.into(),
        key: KeptPassword::new(longest),
        ..certificate("long", longest)
    };
    array.put_certificates(vec![longest.clone()], true).unwrap();
    let most = store.kept.lock().0.values().map(Vec::len).max().unwrap();
    assert!(most < 64 << 10, "{most}");
    let array = Array::open(store.clone(), false).unwrap();
    let names: Vec<_> = array.certificates().iter().map(|one| one.name.to_string()).collect();
    assert_eq!(names, ["long", "management"]);
    assert_eq!(*array.certificate("long").unwrap(), longest);
    assert_eq!(array.certificate("management").unwrap().certificate, "two");
    for n in 2..CERTIFICATES_MAX {
        array.put_certificates(vec![certificate(&format!("c{n}"), "x")], true).unwrap();
    }
    let refused = array.put_certificates(vec![certificate("more", "x")], true).unwrap_err();
    assert_eq!(refused.code(), "limit_reached");
    let names = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<_>>();
    let refused = array.delete_certificates(&names(&["long", "none"])).unwrap_err();
    assert_eq!(refused.code(), "no_such_certificate");
    array.delete_certificates(&names(&["LONG", "management"])).unwrap();
    let array = Array::open(store.clone(), false).unwrap();
    assert!(array.certificate("management").is_none());
    // Earlier versions drop keys with this beginning, whatever the value is.
    let kept = store.kept.lock();
    let count = kept.0.keys().filter(|key| key.starts_with(b"L\0c")).count();
    assert_eq!(count, CERTIFICATES_MAX - 2);
}
