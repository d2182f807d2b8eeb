//! The certificate of the management interface, and its key: read when the array starts, and again
//! when the files change, so that a renewed certificate needs no restart.

use std::fmt::Display;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::RwLock;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use sys::attendant::Attendant;
use trust::Fingerprint;

use super::{ends_ms, read_certificates};
use crate::Error;

/// The longest time until a renewed certificate is used. A small file is read at this interval.
const LOOK_INTERVAL: Duration = Duration::from_secs(2);

/// A certificate and its key, as last read from their files.
#[derive(Debug)]
pub struct Credentials {
    certificate: PathBuf,
    key: PathBuf,
    shown: RwLock<Arc<CertifiedKey>>,
}

impl Credentials {
    /// Reads both.
    ///
    /// # Errors
    /// If one can't be read, or they do not match.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Error> {
        let shown = RwLock::new(pair(read_certificates(certificate)?, certificate, key)?);
        let credentials = Self { certificate: certificate.to_owned(), key: key.to_owned(), shown };
        if credentials.ends_ms().is_none() {
            tracing::warn!("can't read when {} ends", certificate.display());
        }
        Ok(credentials)
    }

    /// Returns the file of the certificate.
    pub fn path(&self) -> &Path {
        &self.certificate
    }

    /// Returns the fingerprint of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.shown.read().cert[0])
    }

    /// Returns when the certificate ends, in milliseconds since 1970; `None` if that can't be
    /// parsed.
    pub fn ends_ms(&self) -> Option<u64> {
        ends_ms(&self.shown.read().cert[0])
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
}

impl ResolvesServerCert for Credentials {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.shown.read().clone())
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
        return Err(refuse(certificate, &"it holds no certificate"));
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
        mut is_renewed: impl FnMut(Fingerprint) + Send + 'static,
    ) -> io::Result<Self> {
        let mut told = None;
        let thread = Attendant::start("certificate", Arc::default(), move |_| {
            look(&credentials, &mut is_renewed, &mut told);
            LOOK_INTERVAL
        })?;
        Ok(Self { _thread: thread })
    }
}

/// Checks the files. `told`: the last logged error. The two files seldom change at the same moment:
/// until both have, they do not match, and the old ones stay in use.
fn look(
    credentials: &Credentials,
    is_renewed: &mut impl FnMut(Fingerprint),
    told: &mut Option<String>,
) {
    let path = credentials.path().display();
    let trouble = match credentials.renew() {
        Ok(false) => None,
        Ok(true) => {
            let fingerprint = credentials.fingerprint();
            tracing::info!("{path} was renewed: its fingerprint is {fingerprint}");
            is_renewed(fingerprint);
            None
        }
        Err(error) => Some(error.to_string()),
    };
    if let Some(trouble) = trouble.as_ref().filter(|trouble| told.as_ref() != Some(trouble)) {
        tracing::warn!("the certificate of management stays as it was: {trouble}");
    }
    *told = trouble;
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::certificate;

    #[test]
    fn others_in_the_files_are_shown_once_they_fit() {
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
}
