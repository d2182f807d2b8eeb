//! Verification of the array.

use std::path::Path;

use rustls::ClientConfig;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;

/// Returns the TLS configuration: trusts the certificates of this file (PEM), or those that the
/// machine trusts.
///
/// # Errors
/// If the file can't be read or contains no certificate.
pub fn client(ca: Option<&Path>) -> Result<ClientConfig, String> {
    let Some(path) = ca else {
        return ::trust::of_machine().map_err(|error| format!("can't trust any array: {error}"));
    };
    let bad = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let found = CertificateDer::pem_file_iter(path).map_err(|error| bad(&error))?;
    let own = found.collect::<Result<Vec<_>, _>>().map_err(|error| bad(&error))?;
    ::trust::certificates(own).map_err(|error| bad(&error))
}
