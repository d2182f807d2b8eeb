//! The certificate of the management interface, and its key: that in the pool, or else that in
//! files. Both are read when the array starts, and again when they change, so that a renewed
//! certificate needs no restart.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use array::StoredCertificate;
use parking_lot::{Mutex, RwLock};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sys::attendant::Attendant;
use trust::Fingerprint;

use super::{ends_ms, read_certificates, text};
use crate::Error;

/// The longest time until a renewed certificate is used. A small file is read at this interval.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// Returns the certificate in the pool; the same allocation until it changes.
type Pool = Box<dyn Fn() -> Option<Arc<StoredCertificate>> + Send + Sync>;

/// The reaction to a check.
#[derive(Default)]
struct Looking {
    /// Called with the fingerprint of each new certificate.
    is_renewed: Option<Box<dyn FnMut(Fingerprint) + Send>>,
    /// The last logged error.
    reported: Option<String>,
}

/// A certificate and its key, as last read.
pub struct Credentials {
    certificate: PathBuf,
    key: PathBuf,
    /// Those in the files.
    shown: RwLock<Arc<CertifiedKey>>,
    pool: RwLock<Option<Pool>>,
    /// Those in the pool, which are used if they exist: as stored, and ready for use.
    of_pool: RwLock<Option<(Arc<StoredCertificate>, Arc<CertifiedKey>)>>,
    looking: Mutex<Looking>,
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Credentials")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

impl Credentials {
    /// Reads both.
    ///
    /// # Errors
    /// If one can't be read, or they do not match.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let shown = RwLock::new(pair(read_certificates(certificate)?, certificate, key)?);
        let credentials = Self {
            certificate: certificate.to_owned(),
            key: key.to_owned(),
            shown,
            pool: RwLock::default(),
            of_pool: RwLock::default(),
            looking: Mutex::default(),
        };
        if credentials.ends_ms().is_none() {
            tracing::warn!("can't read when {} ends", certificate.display());
        }
        Ok(credentials)
    }

    /// Returns the file of the certificate.
    pub fn path(&self) -> &Path {
        &self.certificate
    }

    /// Uses the certificate of the pool, whenever it has one.
    pub fn follow(
        &self,
        pool: impl Fn() -> Option<Arc<StoredCertificate>> + Send + Sync + 'static,
    ) {
        *self.pool.write() = Some(Box::new(pool));
        self.refresh();
    }

    /// Returns the current certificate, with its key.
    fn in_force(&self) -> Arc<CertifiedKey> {
        let of_pool = self.of_pool.read().as_ref().map(|(_, both)| both.clone());
        of_pool.unwrap_or_else(|| self.shown.read().clone())
    }

    /// Returns the name of the current certificate in messages: its file, or that of the pool.
    pub fn place(&self) -> String {
        match self.of_pool.read().is_some() {
            true => format!("certificate {} of the pool", array::MANAGEMENT_CERTIFICATE),
            false => self.certificate.display().to_string(),
        }
    }

    /// Returns the fingerprint of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.in_force().cert[0])
    }

    /// Returns when the certificate ends, in milliseconds since 1970; `None` if that can't be
    /// parsed.
    pub fn ends_ms(&self) -> Option<u64> {
        ends_ms(&self.in_force().cert[0])
    }

    /// Reads the files again. Returns whether they contain another certificate, which is then used.
    ///
    /// # Errors
    /// Those of [`Credentials::load`]: the old ones stay in use.
    fn renew(&self) -> Result<bool, Error> {
        let chain = read_certificates(&self.certificate)?;
        if chain == self.shown.read().cert {
            return Ok(false);
        }
        *self.shown.write() = pair(chain, &self.certificate, &self.key)?;
        Ok(true)
    }

    /// Reads the certificate of the pool again, if it has changed.
    fn follow_pool(&self) -> Result<(), String> {
        let stored = self.pool.read().as_ref().and_then(|pool| pool());
        let is_same = match (&stored, &*self.of_pool.read()) {
            (Some(stored), Some((old, _))) => Arc::ptr_eq(stored, old),
            (None, None) => true,
            _ => false,
        };
        if is_same {
            return Ok(());
        }
        // A certificate that was replaced is not used any more, even if the new one is damaged.
        *self.of_pool.write() = None;
        let Some(stored) = stored else { return Ok(()) };
        let chain = text::chain(&stored.certificate, &stored.intermediate)?;
        let both = text::with_key(chain, stored.key.expose())?;
        *self.of_pool.write() = Some((stored, Arc::new(both)));
        Ok(())
    }

    /// Looks for another certificate, in the pool and in the files, and uses it from the next
    /// handshake on. The two files seldom change at the same moment: until both have, they do not
    /// match, and the old ones stay in use.
    pub(super) fn refresh(&self) {
        let looking = &mut *self.looking.lock();
        let before = self.fingerprint();
        let of_files = self.renew().err().map(|error| error.to_string());
        let trouble = self.follow_pool().err().or(of_files);
        let fingerprint = self.fingerprint();
        if fingerprint != before {
            tracing::info!("{} is used: its fingerprint is {fingerprint}", self.place());
            if let Some(is_renewed) = &mut looking.is_renewed {
                is_renewed(fingerprint);
            }
        }
        if let Some(text) = trouble.as_ref().filter(|text| looking.reported.as_ref() != Some(text))
        {
            tracing::warn!("a new certificate of management is not used: {text}");
        }
        looking.reported = trouble;
    }
}

impl ResolvesServerCert for Credentials {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.in_force())
    }
}

/// Checks a chain of at least one certificate, and the key of the first.
fn pair(
    chain: Vec<CertificateDer<'static>>,
    certificate: &Path,
    key: &Path,
) -> Result<Arc<CertifiedKey>, Error> {
    let refuse = |path: &Path, error: &dyn Display| {
        Error::Machine(format!("can't use {}: {error}", path.display()))
    };
    if chain.is_empty() {
        return Err(refuse(certificate, &"it contains no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| refuse(key, &error))?;
    let both = CertifiedKey::from_der(chain, secret, &trust::provider());
    both.map(Arc::new).map_err(|error| refuse(certificate, &error))
}

/// Watches for a renewed certificate until it is dropped.
pub struct Renewer {
    _thread: Attendant,
}

impl Renewer {
    /// Keeps the certificate up to date; calls `is_renewed` with the fingerprint of each new one.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        credentials: Arc<Credentials>,
        is_renewed: impl FnMut(Fingerprint) + Send + 'static,
    ) -> io::Result<Self> {
        credentials.looking.lock().is_renewed = Some(Box::new(is_renewed));
        let thread = Attendant::start("certificate", Arc::default(), move |_| {
            credentials.refresh();
            LOOK_INTERVAL
        })?;
        Ok(Self { _thread: thread })
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::certificate;

    #[test]
    fn new_files_are_used_once_they_match() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        let loopback = "127.0.0.1".parse().unwrap();
        certificate::make(&path("a.pem"), &path("a.key"), loopback).unwrap();
        certificate::make(&path("b.pem"), &path("b.key"), loopback).unwrap();
        let credentials = Credentials::load(&path("a.pem"), &path("a.key")).unwrap();
        let (first, ends) = (credentials.fingerprint(), credentials.ends_ms());
        assert!(ends.is_some() && !credentials.renew().unwrap());
        // Missing, empty, or without its key: the first one stays in use.
        fs::remove_file(path("a.pem")).unwrap();
        assert!(credentials.renew().is_err());
        for half in ["b.key", "b.pem"] {
            fs::copy(path(half), path("a.pem")).unwrap();
            assert!(credentials.renew().is_err(), "{half}");
        }
        assert_eq!(credentials.fingerprint(), first);
        fs::copy(path("b.key"), path("a.key")).unwrap();
        assert!(credentials.renew().unwrap() && !credentials.renew().unwrap());
        let second = Credentials::load(&path("b.pem"), &path("b.key")).unwrap().fingerprint();
        assert!(credentials.fingerprint() == second && second != first);
    }
    #[test]
    fn the_pools_certificate_is_used_as_long_as_it_exists() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        certificate::make(&path("a.pem"), &path("a.key"), "127.0.0.1".parse().unwrap()).unwrap();
        let credentials = Credentials::load(&path("a.pem"), &path("a.key")).unwrap();
        let of_files = credentials.fingerprint();
        let stored = |key: &str| {
            let subject = api::CertificateSubject::default();
            let now_ms = sys::wall::now_ms();
            let (certificate, own) =
                text::make(&subject, vec!["a".into()], 9, None, now_ms).unwrap();
            Arc::new(StoredCertificate {
                name: array::CertificateName::new("management").unwrap(),
                certificate,
                intermediate: String::new(),
                key: array::KeptPassword::new(if key.is_empty() { &own } else { key }),
                is_self_signed: true,
            })
        };
        let (first, second, damaged) = (stored(""), stored(""), stored("horse"));
        let pool = Arc::new(Mutex::new(Some(first.clone())));
        let reported = Arc::new(Mutex::new(Vec::new()));
        let telling = reported.clone();
        let renewed = move |fingerprint| telling.lock().push(fingerprint);
        credentials.looking.lock().is_renewed = Some(Box::new(renewed));
        let followed = pool.clone();
        credentials.follow(move || followed.lock().clone());
        let of = |one: &StoredCertificate| {
            Fingerprint::of(&text::certificates(&one.certificate).unwrap()[0])
        };
        assert_eq!(credentials.fingerprint(), of(&first));
        assert!(credentials.place().contains("pool"));
        let days = (credentials.ends_ms().unwrap() - sys::wall::now_ms()) / 86_400_000;
        assert!((8..=9).contains(&days), "{days}");
        for (next, shown) in [
            (Some(second.clone()), of(&second)),
            (None, of_files),
            (Some(first.clone()), of(&first)),
            (Some(damaged), of_files),
        ] {
            *pool.lock() = next;
            credentials.refresh();
            credentials.refresh();
            assert_eq!(credentials.fingerprint(), shown);
        }
        let wanted = [of(&first), of(&second), of_files, of(&first), of_files];
        assert_eq!(*reported.lock(), wanted, "each once");
    }
}
