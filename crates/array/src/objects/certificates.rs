//! Certificates that the pool stores, each with its key.

use crate::error::Error;
use crate::values::name::CertificateName;
use crate::values::password::KeptPassword;

/// The maximum number of certificates.
pub const CERTIFICATES_MAX: usize = 8;
/// The maximum length of a certificate, of its intermediate certificates, and of its key, each in
/// bytes of PEM: together they fit one record.
pub const CERTIFICATE_PEM_BYTES_MAX: usize = 16 << 10;
/// The name of the certificate that management uses.
pub const MANAGEMENT_CERTIFICATE: &str = "management";

/// A certificate with its key, which `Debug` does not show. Whoever stores it has checked that they
/// match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredCertificate {
    /// The name by which the certificate is managed; not part of the certificate.
    pub name: CertificateName,
    /// The certificate, as PEM.
    pub certificate: String,
    /// The certificates between it and an authority, as PEM, in order; may be empty.
    pub intermediate: String,
    /// Its key, as PEM.
    pub key: KeptPassword,
    /// Whether the array made it; otherwise it was imported.
    pub is_self_signed: bool,
}

impl StoredCertificate {
    /// Checks the lengths.
    pub(crate) fn check(&self) -> Result<(), Error> {
        for (what, text) in [
            ("certificate", self.certificate.as_str()),
            ("list of intermediate certificates", &self.intermediate),
            ("key", self.key.expose()),
        ] {
            if text.len() > CERTIFICATE_PEM_BYTES_MAX {
                let most = CERTIFICATE_PEM_BYTES_MAX / 1024;
                let text = format!("A {what} has up to {most} KiB of PEM.");
                return Err(Error::invalid("invalid_certificate", text));
            }
        }
        Ok(())
    }
}
