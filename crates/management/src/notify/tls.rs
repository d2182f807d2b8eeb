//! TLS to destinations: trusted authorities.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, RootCertStore};

/// The reason why TLS can't be used.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of authorities can't be used.
    #[error("can't use {path}: {why}")]
    Authorities {
        /// The file.
        path: PathBuf,
        /// The reason.
        why: String,
    },
    /// The machine has none.
    #[error("this machine trusts no authorities: give those of the destination in ca_file")]
    NoAuthorities,
    /// An error of TLS itself.
    #[error("can't speak TLS: {0}")]
    Tls(#[from] rustls::Error),
}

/// Returns a TLS configuration that trusts the authorities of a file, or those that the machine
/// trusts.
///
/// # Errors
/// If there are none.
pub fn client_config(ca_file: Option<&Path>) -> Result<Arc<ClientConfig>, TlsError> {
    let mut roots = RootCertStore::empty();
    match ca_file {
        Some(path) => {
            let refuse = |why: String| TlsError::Authorities { path: path.to_owned(), why };
            for certificate in authorities(path).map_err(|error| refuse(error.to_string()))? {
                roots.add(certificate).map_err(|error| refuse(error.to_string()))?;
            }
        }
        // Unusable ones are skipped.
        None => {
            let found = rustls_native_certs::load_native_certs();
            roots.add_parsable_certificates(found.certs);
        }
    }
    if roots.is_empty() {
        return Err(TlsError::NoAuthorities);
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    Ok(Arc::new(builder?.with_root_certificates(roots).with_no_client_auth()))
}

/// Reads all certificates of a file.
pub(super) fn authorities(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let bytes = std::fs::read(path)?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    let found = found.map_err(io::Error::other)?;
    if found.is_empty() {
        return Err(io::Error::other("it contains no certificate"));
    }
    Ok(found)
}
