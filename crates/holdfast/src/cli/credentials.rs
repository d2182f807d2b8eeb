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

use super::args::Fingerprint;
use super::certificate::{ends_ms, fingerprint, read_certificates};
use super::discover::{Registered, RunFile};
use super::failure::Failure;
use crate::serve::Attendant;

/// How long it takes at most until a renewed certificate is used. A small file is read this often.
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
    /// If one can't be read, or they do not belong together.
    pub fn load(certificate: &Path, key: &Path) -> Result<Self, Failure> {
        let shown = RwLock::new(pair(read_certificates(certificate)?, certificate, key)?);
        let credentials = Self { certificate: certificate.to_owned(), key: key.to_owned(), shown };
        if credentials.ends_ms().is_none() {
            tracing::warn!("can't read when {} ends", certificate.display());
        }
        Ok(credentials)
    }

    /// The file of the certificate.
    pub fn path(&self) -> &Path {
        &self.certificate
    }

    /// The fingerprint of the certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        fingerprint(&self.shown.read().cert[0])
    }

    /// When the certificate ends, in milliseconds since 1970; `None` if that can't be read.
    pub fn ends_ms(&self) -> Option<u64> {
        ends_ms(&self.shown.read().cert[0])
    }

    /// Reads the files again, and returns whether they hold another certificate, which is then
    /// used.
    ///
    /// # Errors
    /// Those of [`Credentials::load`]: the old ones stay.
    fn renew(&self) -> Result<bool, Failure> {
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

/// A chain of at least one certificate, with the key of the first.
fn pair(
    chain: Vec<CertificateDer<'static>>,
    certificate: &Path,
    key: &Path,
) -> Result<Arc<CertifiedKey>, Failure> {
    let refuse = |path: &Path, error: &dyn Display| {
        Failure::Machine(format!("can't use {}: {error}", path.display()))
    };
    if chain.is_empty() {
        return Err(refuse(certificate, &"it holds no certificate"));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| refuse(key, &error))?;
    let both = CertifiedKey::from_der(chain, secret, &trust::provider());
    both.map(Arc::new).map_err(|error| refuse(certificate, &error))
}

/// Watches for a renewed certificate until it is dropped, which also removes the run files. The
/// order of the fields matters for dropping: the thread writes the run files.
pub struct Renewer {
    _thread: Option<Attendant>,
    _registered: Arc<Registered>,
}

impl Renewer {
    /// Keeps the certificate, and the run files' data about it, up to date. Without credentials
    /// there is nothing to renew.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        credentials: Option<Arc<Credentials>>,
        registered: Registered,
        run: RunFile,
    ) -> io::Result<Self> {
        let registered = Arc::new(registered);
        let watch = |credentials: Arc<Credentials>| {
            let (registered, mut run, mut told) = (registered.clone(), run, None);
            Attendant::start("certificate", Arc::default(), move |_| {
                look(&credentials, &registered, &mut run, &mut told);
                LOOK_INTERVAL
            })
        };
        Ok(Self { _thread: credentials.map(watch).transpose()?, _registered: registered })
    }
}

/// `told`: the error that was last logged. The two files seldom change at the same moment: until
/// both have, they do not match, and the old ones stay in use.
fn look(
    credentials: &Credentials,
    registered: &Registered,
    run: &mut RunFile,
    told: &mut Option<String>,
) {
    let path = credentials.path().display();
    let trouble = match credentials.renew() {
        Ok(false) => None,
        Ok(true) => {
            let fingerprint = credentials.fingerprint().to_string();
            tracing::info!("{path} was renewed: its fingerprint is {fingerprint}");
            run.fingerprint = Some(fingerprint);
            registered.write_again(run);
            None
        }
        Err(failure) => Some(failure.to_string()),
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
    use crate::cli::certificate;

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
        // Gone, empty, or without its key: the first one stays.
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
