//! The certificate of the management interface: from the configuration, or created at the first
//! start and kept, with its key, next to the pool.

mod credentials;
mod keeper;
mod text;

use std::fs;
use std::io;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use api::CertificateSubject;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::ParsedCertificate;
use time::OffsetDateTime;
use x509_cert::der::Decode;

pub use credentials::{Credentials, Renewer};
pub use keeper::Keeper;

use crate::{Error, private};

/// The certificate, next to the pool. It is not secret: administrators of other machines may copy
/// it and trust it.
const CERTIFICATE_FILE: &str = "api-certificate.pem";
/// Its key, which only its owner may read.
const KEY_FILE: &str = "api-key.pem";
/// How long a certificate created here is valid. It is self-signed and replaced by hand, so it must
/// not expire by surprise.
const LIFETIME_DAYS: u32 = 3650;
/// The only application protocol.
const HTTP_1_1: &[u8] = b"http/1.1";

/// The TLS identity of the server.
pub struct ServerIdentity {
    /// The TLS settings: 1.2 or 1.3.
    pub tls: Arc<ServerConfig>,
    /// Its certificate.
    pub credentials: Arc<Credentials>,
}

/// Returns when a certificate ends, in milliseconds since 1970.
pub fn ends_ms(certificate: &CertificateDer<'_>) -> Option<u64> {
    let parsed = x509_cert::Certificate::from_der(certificate).ok()?;
    let ends = parsed.tbs_certificate().validity().not_after.to_unix_duration();
    u64::try_from(ends.as_millis()).ok()
}

/// Returns the identity kept in a directory, or a new one; if that fails, because nothing can be
/// written there, the same in `otherwise`: a full filesystem must not keep the array from starting.
/// `api` is the address of management.
///
/// # Errors
/// If both fail: the error of the first one.
pub fn kept(
    directory: Result<&Path, Error>,
    otherwise: &Path,
    api: IpAddr,
) -> Result<ServerIdentity, Error> {
    directory.and_then(|directory| kept_in(directory, api)).or_else(|error| {
        tracing::warn!("{error}; the certificate is kept in {} meanwhile", otherwise.display());
        private::make_directory(otherwise).map_err(|_| error)?;
        kept_in(otherwise, api)
    })
}

/// Returns the identity kept in a directory, or a new one.
fn kept_in(directory: &Path, api: IpAddr) -> Result<ServerIdentity, Error> {
    let (certificate, key) = (directory.join(CERTIFICATE_FILE), directory.join(KEY_FILE));
    if !certificate.exists() || !key.exists() {
        make(&certificate, &key, api)?;
        tracing::info!("a certificate was created: {}", certificate.display());
    }
    let identity = load(&certificate, &key)?;
    check_names(&certificate, api)?;
    Ok(identity)
}

/// Loads a certificate, with its chain, and its key from two PEM files.
///
/// # Errors
/// If one can't be read, or they do not match.
pub fn load(certificate: &Path, key: &Path) -> Result<ServerIdentity, Error> {
    let credentials = Arc::new(Credentials::load(certificate, key)?);
    let mut tls = ServerConfig::builder_with_provider(trust::provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Machine(format!("can't speak TLS: {error}")))?
        .with_no_client_auth()
        .with_cert_resolver(credentials.clone());
    tls.alpn_protocols = vec![HTTP_1_1.to_vec()];
    Ok(ServerIdentity { tls: Arc::new(tls), credentials })
}

/// Reads all certificates of a file.
///
/// # Errors
/// If it can't be read, or contains something else.
pub fn read_certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bytes = fs::read(path).map_err(|error| Error::of_file("read", path, &error))?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    found.map_err(|error| Error::Machine(format!("can't use {}: {error}", path.display())))
}

/// Creates a self-signed certificate. The key is written first: a certificate without a key would
/// look complete.
///
/// # Errors
/// If they can't be created or written.
pub fn make(certificate: &Path, key: &Path, api: IpAddr) -> Result<(), Error> {
    let common_name = "Holdfast array".into();
    let subject = CertificateSubject { common_name, ..CertificateSubject::default() };
    let made = text::make(&subject, names(api), LIFETIME_DAYS, None, sys::wall::now_ms());
    let made = made.map_err(|error| {
        Error::Machine(format!("can't create a certificate for management: {error}"))
    })?;
    let write = |path: &Path, text: &str, mode| {
        private::write(path, text.as_bytes(), mode)
            .map_err(|error| Error::of_file("write", path, &error))
    };
    match fs::remove_file(certificate) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            return Err(Error::of_file("replace", certificate, &error));
        }
        _ => {}
    }
    write(key, &made.1, private::SECRET)?;
    write(certificate, &made.0, private::PUBLIC)
}

/// Returns the names by which the array may be reached.
fn names(api: IpAddr) -> Vec<String> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".into(), "::1".into()];
    let uname = rustix::system::uname();
    let host = uname.nodename().to_str().ok();
    names.extend(host.filter(|host| ServerName::try_from(*host).is_ok()).map(str::to_owned));
    if !api.is_unspecified() {
        names.push(api.to_string());
    }
    let mut seen = std::collections::HashSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names
}

/// Returns the time of creation: now, limited so that the end can be written with a four-digit
/// year.
fn made_at(now_ms: u64) -> Result<OffsetDateTime, time::error::ComponentRange> {
    // The beginning of 9985.
    const LATEST: u64 = 252_929_952_000;
    OffsetDateTime::from_unix_timestamp((now_ms / 1000).min(LATEST) as i64)
}

/// Logs if a certificate created for one address is used for another: clients that check names
/// would refuse it.
fn check_names(certificate: &Path, api: IpAddr) -> Result<(), Error> {
    let chain = read_certificates(certificate)?;
    let parsed = chain.first().map(ParsedCertificate::try_from);
    let Some(Ok(parsed)) = parsed else { return Ok(()) };
    let name = ServerName::IpAddress(api.into());
    if !api.is_unspecified() && rustls::client::verify_server_name(&parsed, &name).is_err() {
        tracing::warn!(
            "{} does not name {api}: remove it and restart to create another one",
            certificate.display()
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use trust::Fingerprint;

    use super::*;

    const LOOPBACK: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn a_certificate_is_created_once_and_its_key_is_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name| directory.path().join(name);
        let of = |api: &str| kept_in(directory.path(), api.parse().unwrap()).unwrap();
        let first = of("192.0.2.1");
        let now_ms = u64::try_from(OffsetDateTime::now_utc().unix_timestamp()).unwrap() * 1000;
        let days = (first.credentials.ends_ms().unwrap() - now_ms) / 86_400_000;
        assert!((3649..=3650).contains(&days), "{days}");
        let mode = |name| fs::metadata(path(name)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(KEY_FILE), mode(CERTIFICATE_FILE)), (0o600, 0o644));
        assert_eq!(of("127.0.0.1").credentials.fingerprint(), first.credentials.fingerprint());
        let chain = read_certificates(&path(CERTIFICATE_FILE)).unwrap();
        let found = (chain.len(), Fingerprint::of(&chain[0]));
        assert_eq!(found, (1, first.credentials.fingerprint()));
        let parsed = ParsedCertificate::try_from(&chain[0]).unwrap();
        for (name, is_named) in [
            ("localhost", true),
            ("127.0.0.1", true),
            ("::1", true),
            ("192.0.2.1", true),
            ("a", false),
        ] {
            let name = ServerName::try_from(name).unwrap();
            let named = rustls::client::verify_server_name(&parsed, &name).is_ok();
            assert_eq!(named, is_named, "{name:?}");
        }
        // One without the other is useless: both are created again.
        fs::remove_file(path(KEY_FILE)).unwrap();
        let second = of("127.0.0.1");
        assert_ne!(second.credentials.fingerprint(), first.credentials.fingerprint());
        assert_eq!(of("127.0.0.1").credentials.fingerprint(), second.credentials.fingerprint());
    }

    #[test]
    fn a_certificate_has_dates_with_any_clock() {
        for now_ms in [0, 1_800_000_000_000, 253_402_300_800_000, u64::MAX] {
            let end = made_at(now_ms).unwrap() + time::Duration::days(LIFETIME_DAYS.into());
            assert!((1970..=9999).contains(&end.year()), "{now_ms}: {end}");
        }
    }

    /// As on a full filesystem, where nothing can be written.
    #[test]
    fn a_certificate_that_cant_be_stored_in_one_place_is_stored_in_the_other() {
        let directory = tempfile::tempdir().unwrap();
        let (full, other) = (directory.path().join("full"), directory.path().join("other"));
        fs::create_dir_all(full.join(KEY_FILE).join("in the way")).unwrap();
        let of = || kept(Ok(&full), &other, LOOPBACK).unwrap().credentials.fingerprint();
        let first = of();
        assert_eq!(of(), first, "it was not kept");
        let refused = || Err(Error::Machine("there is none".into()));
        assert_eq!(kept(refused(), &other, LOOPBACK).unwrap().credentials.fingerprint(), first);
        // If both places fail, the error is that of the first.
        let beneath_a_file = other.join(KEY_FILE).join("directory");
        let why = kept(refused(), &beneath_a_file, LOOPBACK).map(drop).unwrap_err();
        assert_eq!(why.to_string(), "there is none");
    }

    #[test]
    fn a_configured_key_must_match_its_certificate() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        make(&path("a.pem"), &path("a.key"), LOOPBACK).unwrap();
        make(&path("b.pem"), &path("b.key"), LOOPBACK).unwrap();
        fs::write(path("empty"), "").unwrap();
        assert!(load(&path("a.pem"), &path("a.key")).is_ok());
        for (certificate, key) in
            [("a.pem", "b.key"), ("a.pem", "a.pem"), ("empty", "a.key"), ("none", "a.key")]
        {
            let failure = load(&path(certificate), &path(key)).map(drop).unwrap_err();
            assert!(matches!(failure, Error::Machine(_)), "{certificate} {key}");
        }
    }
}
