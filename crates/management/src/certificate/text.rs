//! Certificates as PEM: creating, checking and parsing them.

use std::fmt::Display;

use api::{CertificateFacts, CertificateSubject};
use rcgen::string::Ia5String;
use rcgen::{
    CertificateParams, DistinguishedName, DnType, DnValue, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    SerialNumber,
};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use time::Duration;
use x509_cert::Certificate;
use x509_cert::der::Decode;
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::name::Name;

use super::made_at;

/// The object identifiers of a subject's parts (X.520, and PKCS #9 for mail).
const COMMON_NAME: &str = "2.5.4.3";
const COUNTRY: &str = "2.5.4.6";
const EMAIL: &str = "1.2.840.113549.1.9.1";
const LOCALITY: &str = "2.5.4.7";
const ORGANIZATION: &str = "2.5.4.10";
const ORGANIZATIONAL_UNIT: &str = "2.5.4.11";
const STATE: &str = "2.5.4.8";
/// The same of mail, as rcgen takes it.
const EMAIL_ARCS: [u64; 7] = [1, 2, 840, 113_549, 1, 9, 1];
/// The most certificates of a chain.
const CHAIN_MAX: usize = 10;

fn because(what: &str) -> impl Fn(&dyn Display) -> String + '_ {
    move |error| format!("{what}: {error}")
}

/// Reads all certificates of a text.
pub(super) fn certificates(text: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
    let found = found.map_err(|error| because("It is not PEM")(&error))?;
    match found.len() {
        0 => Err("It contains no certificate (PEM, -----BEGIN CERTIFICATE-----).".into()),
        1..=CHAIN_MAX => Ok(found),
        count => Err(format!("A chain has up to {CHAIN_MAX} certificates; this one has {count}.")),
    }
}

/// Reads a certificate and those between it and an authority, which may be empty.
pub(super) fn chain(
    certificate: &str,
    intermediate: &str,
) -> Result<Vec<CertificateDer<'static>>, String> {
    let mut chain = certificates(certificate)?;
    if !intermediate.trim().is_empty() {
        let more = certificates(intermediate);
        chain.extend(more.map_err(|error| because("The intermediate certificates")(&error))?);
    }
    Ok(chain)
}

/// Returns a chain with the key of its first certificate, if they match.
pub(super) fn with_key(
    chain: Vec<CertificateDer<'static>>,
    key: &str,
) -> Result<CertifiedKey, String> {
    // In the label (PKCS #8) or in a header (Proc-Type).
    if key.contains("ENCRYPTED") {
        return Err("The key is encrypted: decrypt it first (openssl pkey).".into());
    }
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes());
    // The text of the error could contain a part of the key.
    let key = key.map_err(|_| "The key is not a private key in PEM.".to_owned())?;
    CertifiedKey::from_der(chain, key, &trust::provider()).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            "The key is not that of the certificate: give the matching key.".to_owned()
        }
        other => because("The certificate and its key can't be used")(&other),
    })
}

/// Checks a certificate to import.
pub(super) fn check(
    certificate: &str,
    intermediate: &str,
    key: &str,
    now_ms: u64,
) -> Result<(), String> {
    let chain = chain(certificate, intermediate)?;
    for (nth, one) in chain.iter().enumerate() {
        let facts =
            facts(one).map_err(|error| format!("Certificate {} of the chain: {error}", nth + 1))?;
        if facts.valid_to_ms <= now_ms {
            let whose = facts.issued_to;
            return Err(format!("The certificate of {whose} has expired: give a valid one."));
        }
    }
    with_key(chain, key).map(drop)
}

/// Returns the contents of the first certificate of a text.
pub(super) fn describe(text: &str) -> Result<CertificateFacts, String> {
    facts(&certificates(text)?[0])
}

fn facts(certificate: &CertificateDer<'_>) -> Result<CertificateFacts, String> {
    let parsed = Certificate::from_der(certificate);
    let parsed = parsed.map_err(|error| because("it can't be parsed")(&error))?;
    let body = parsed.tbs_certificate();
    let ms = |time: x509_cert::time::Time| {
        u64::try_from(time.to_unix_duration().as_millis()).unwrap_or(u64::MAX)
    };
    let subject = body.subject();
    let names = body.get_extension::<SubjectAltName>().ok().flatten();
    let names = names.into_iter().flat_map(|(_, SubjectAltName(names))| names);
    let (key_algorithm, key_size) = key_of(&parsed);
    Ok(CertificateFacts {
        subject: CertificateSubject {
            common_name: part(subject, COMMON_NAME),
            country: part(subject, COUNTRY),
            email: part(subject, EMAIL),
            locality: part(subject, LOCALITY),
            organization: part(subject, ORGANIZATION),
            organizational_unit: part(subject, ORGANIZATIONAL_UNIT),
            state: part(subject, STATE),
            alternative_names: names.filter_map(alternative_name).collect(),
        },
        issued_to: subject.to_string(),
        issued_by: body.issuer().to_string(),
        valid_from_ms: ms(body.validity().not_before),
        valid_to_ms: ms(body.validity().not_after),
        key_algorithm: key_algorithm.into(),
        key_size,
    })
}

fn part(name: &Name, identifier: &str) -> String {
    let found = name.iter().find(|one| one.oid.to_string() == identifier);
    found.map_or_else(String::new, |one| String::from_utf8_lossy(one.value.value()).into_owned())
}

fn alternative_name(name: GeneralName) -> Option<String> {
    match name {
        GeneralName::DnsName(name) => Some(name.to_string()),
        GeneralName::IpAddress(bytes) => match bytes.as_bytes() {
            four if four.len() == 4 => {
                Some(std::net::Ipv4Addr::from(<[u8; 4]>::try_from(four).ok()?).to_string())
            }
            bytes => Some(std::net::Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_string()),
        },
        _ => None,
    }
}

/// Returns the algorithm of a certificate's key, and its size in bits.
fn key_of(certificate: &Certificate) -> (&'static str, u32) {
    let key = certificate.tbs_certificate().subject_public_key_info();
    let len_bytes = key.subject_public_key.raw_bytes().len();
    key_size(&key.algorithm.oid.to_string(), u32::try_from(len_bytes).unwrap_or(u32::MAX))
}

/// Returns an algorithm by its object identifier, and the size in bits of a key of it that is
/// encoded in this many bytes: any number, as a certificate may contain anything.
fn key_size(identifier: &str, len_bytes: u32) -> (&'static str, u32) {
    match identifier {
        // The modulus with its lengths and the exponent: 12 to 14 bytes more.
        "1.2.840.113549.1.1.1" => {
            let modulus_bits = len_bytes.saturating_sub(14).saturating_mul(8);
            ("rsa", modulus_bits.checked_next_multiple_of(64).unwrap_or(u32::MAX))
        }
        // Two coordinates after one byte.
        "1.2.840.10045.2.1" if len_bytes == 133 => ("ec", 521),
        "1.2.840.10045.2.1" => ("ec", (len_bytes.saturating_sub(1) / 2).saturating_mul(8)),
        "1.3.101.112" => ("ed25519", 256),
        _ => ("", 0),
    }
}

/// Returns the parameters of a certificate or of a request for one. `names`: those by which the
/// array is reached in any case.
fn parameters(
    subject: &CertificateSubject,
    names: Vec<String>,
) -> Result<CertificateParams, String> {
    let mut all = subject.alternative_names.clone();
    let common = &subject.common_name;
    if rustls::pki_types::ServerName::try_from(common.as_str()).is_ok() || common.starts_with("*.")
    {
        all.push(common.clone());
    }
    all.extend(names);
    let mut seen = std::collections::HashSet::new();
    all.retain(|name| seen.insert(name.to_ascii_lowercase()));
    let params = CertificateParams::new(all);
    let mut params = params.map_err(|error| because("A name of the server is wrong")(&error))?;
    let mut name = DistinguishedName::new();
    for (kind, text) in [
        (DnType::CountryName, &subject.country),
        (DnType::StateOrProvinceName, &subject.state),
        (DnType::LocalityName, &subject.locality),
        (DnType::OrganizationName, &subject.organization),
        (DnType::OrganizationalUnitName, &subject.organizational_unit),
        (DnType::CommonName, common),
    ] {
        if !text.is_empty() {
            name.push(kind, text.as_str());
        }
    }
    if !subject.email.is_empty() {
        let text = Ia5String::try_from(subject.email.as_str());
        let text = text.map_err(|error| because("The email address is wrong")(&error))?;
        name.push(DnType::CustomDnType(EMAIL_ARCS.to_vec()), DnValue::Ia5String(text));
    }
    params.distinguished_name = name;
    Ok(params)
}

/// Reads a key, as rcgen takes it.
fn key_pair(key: &str) -> Result<KeyPair, String> {
    // The text of the error could contain a part of the key.
    KeyPair::from_pem(key).map_err(|_| {
        "This key can't sign here: create a new one (`generate_new_key=true`).".to_owned()
    })
}

/// Returns a self-signed certificate (ECDSA, P-256, unless there is a key) and its key.
pub(super) fn make(
    subject: &CertificateSubject,
    names: Vec<String>,
    days: u32,
    key: Option<&str>,
    now_ms: u64,
) -> Result<(String, String), String> {
    let failed = because("The certificate can't be created");
    let pair = match key {
        Some(key) => key_pair(key)?,
        None => {
            KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).map_err(|error| failed(&error))?
        }
    };
    let mut params = parameters(subject, names)?;
    params.serial_number = Some(serial().map_err(|error| failed(&error))?);
    params.is_ca = IsCa::ExplicitNoCa;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let now = made_at(now_ms).map_err(|error| failed(&error))?;
    // To a client whose clock is slow, it would not be valid yet.
    params.not_before = now - Duration::days(1);
    let ends = now.checked_add(Duration::days(i64::from(days)));
    params.not_after = ends.filter(|end| end.year() <= 9999).unwrap_or(now);
    let made = params.self_signed(&pair).map_err(|error| failed(&error))?;
    let key = key.map_or_else(|| pair.serialize_pem(), str::to_owned);
    Ok((made.pem(), key))
}

/// Returns a positive serial number of full length.
pub(super) fn serial() -> Result<SerialNumber, Box<dyn std::error::Error>> {
    let mut serial = [0; 16];
    sys::entropy(&mut serial)?;
    serial[0] = serial[0] & 0x7f | 0x40;
    Ok(SerialNumber::from_slice(&serial))
}

/// Returns a request to sign a certificate for a key.
pub(super) fn request(subject: &CertificateSubject, key: &str) -> Result<String, String> {
    let failed = because("The request can't be created");
    let pair = key_pair(key)?;
    let mut params = parameters(subject, Vec::new())?;
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let made = params.serialize_request(&pair).map_err(|error| failed(&error))?;
    made.pem().map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_MS: u64 = 1_800_000_000_000;

    fn subject() -> CertificateSubject {
        CertificateSubject {
            common_name: "array.example.com".into(),
            country: "US".into(),
            email: "otto@example.com".into(),
            locality: "Miami".into(),
            organization: "Acme Inc".into(),
            organizational_unit: "DevOps".into(),
            state: "FL".into(),
            alternative_names: vec!["192.0.2.1".into(), "2001:db8::1".into()],
        }
    }

    fn made(key: Option<&str>) -> (String, String) {
        make(&subject(), vec!["localhost".into()], 30, key, NOW_MS).unwrap()
    }

    #[test]
    fn a_certificate_has_the_requested_contents() {
        let (certificate, key) = made(None);
        let facts = describe(&certificate).unwrap();
        let names = ["192.0.2.1", "2001:db8::1", "array.example.com", "localhost"];
        assert_eq!(facts.subject.alternative_names, names);
        let without_names = |mut subject: CertificateSubject| {
            subject.alternative_names.clear();
            subject
        };
        assert_eq!(without_names(facts.subject), without_names(subject()));
        assert_eq!((facts.key_algorithm.as_str(), facts.key_size), ("ec", 256));
        assert_eq!(facts.issued_by, facts.issued_to);
        assert!(facts.issued_to.contains("CN=array.example.com"), "{}", facts.issued_to);
        assert_eq!(facts.valid_to_ms, NOW_MS + 30 * 86_400_000);
        check(&certificate, "", &key, NOW_MS).unwrap();
        // The same key again, in another certificate.
        let (again, kept) = made(Some(&key));
        assert!(again != certificate && kept == key);
        check(&again, "", &key, NOW_MS).unwrap();
    }

    #[test]
    fn an_import_is_refused_with_the_reason_and_without_the_key() {
        let ((certificate, key), (other, other_key)) = (made(None), made(None));
        let ended = NOW_MS + 31 * 86_400_000;
        let encrypted =
            "-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIIB\n-----END ENCRYPTED PRIVATE KEY-----\n";
        let junk = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
        let chain = other.repeat(CHAIN_MAX + 1);
        for (certificate, intermediate, key, now_ms, why) in [
            (certificate.as_str(), "", other_key.as_str(), NOW_MS, "not that of the certificate"),
            (&certificate, "", encrypted, NOW_MS, "encrypted"),
            (&certificate, "", "horse", NOW_MS, "not a private key"),
            (&certificate, "", &certificate, NOW_MS, "not a private key"),
            ("", "", &key, NOW_MS, "no certificate"),
            (&key, "", &key, NOW_MS, "no certificate"),
            (junk, "", &key, NOW_MS, "can't be parsed"),
            (&certificate, junk, &key, NOW_MS, "Certificate 2 of the chain"),
            (&certificate, "horse", &key, NOW_MS, "intermediate"),
            (&certificate, &chain, &key, NOW_MS, "has 11"),
            (&certificate, "", &key, ended, "has expired"),
        ] {
            let refused = check(certificate, intermediate, key, now_ms).unwrap_err();
            assert!(refused.contains(why), "{why}: {refused}");
            assert!(!refused.contains("horse") && !refused.contains('\n'), "{refused}");
        }
        check(&certificate, &other, &key, NOW_MS).unwrap();
    }

    /// Found by reading: an elliptic curve key of no bytes was a subtraction below zero.
    #[test]
    fn the_size_of_a_key_is_computed_for_any_length() {
        let (rsa, ec) = ("1.2.840.113549.1.1.1", "1.2.840.10045.2.1");
        for (identifier, len_bytes, size) in [
            (rsa, 270, ("rsa", 2048)),
            (rsa, 526, ("rsa", 4096)),
            (ec, 65, ("ec", 256)),
            (ec, 97, ("ec", 384)),
            (ec, 133, ("ec", 521)),
            (ec, 0, ("ec", 0)),
            (rsa, 0, ("rsa", 0)),
        ] {
            assert_eq!(key_size(identifier, len_bytes), size, "{identifier} {len_bytes}");
        }
        for identifier in [rsa, ec, "1.3.101.112", "1.2.3"] {
            key_size(identifier, u32::MAX);
        }
    }

    #[test]
    fn a_request_is_for_the_key() {
        let (_, key) = made(None);
        let request = request(&subject(), &key).unwrap();
        assert!(request.starts_with("-----BEGIN CERTIFICATE REQUEST-----"), "{request}");
        assert!(super::request(&subject(), "horse").unwrap_err().contains("can't sign"));
        let wrong = CertificateSubject { email: "für@example.com".into(), ..subject() };
        assert!(super::request(&wrong, &key).unwrap_err().contains("email address"));
    }
}
