//! The interface to certificates: parsing and keys are left to the management server.

/// The subject of a certificate. An empty text is not part of it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateSubject {
    /// The name by which clients reach the server.
    pub common_name: String,
    /// The country: two letters (ISO 3166-1 alpha-2).
    pub country: String,
    /// The email address.
    pub email: String,
    /// The locality.
    pub locality: String,
    /// The organization.
    pub organization: String,
    /// The organizational unit.
    pub organizational_unit: String,
    /// The state or province.
    pub state: String,
    /// Subject alternative names: DNS names and IP addresses.
    pub alternative_names: Vec<String>,
}

/// The contents of a certificate.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CertificateFacts {
    /// Its subject.
    pub subject: CertificateSubject,
    /// The distinguished name of its subject.
    pub issued_to: String,
    /// The distinguished name of its issuer.
    pub issued_by: String,
    /// The start of its validity, in milliseconds since 1970.
    pub valid_from_ms: u64,
    /// The end of its validity, in milliseconds since 1970.
    pub valid_to_ms: u64,
    /// `rsa`, `ec` or `ed25519`; empty if unknown.
    pub key_algorithm: String,
    /// The size of the key, in bits; 0 if unknown.
    pub key_size: u32,
}

/// Creates and checks certificates, and has the one of management. All are PEM. Errors are reasons
/// for people, in one line.
pub trait Certificates: Send + Sync {
    /// Returns the certificate of management in its files, with its chain; `None` if there is none,
    /// or if it can't be read.
    fn in_files(&self) -> Option<String>;

    /// Parses the first certificate of a PEM text.
    fn describe(&self, certificate: &str) -> Result<CertificateFacts, String>;

    /// Returns a self-signed certificate and its key: `key`, or a new one.
    fn make(
        &self,
        subject: &CertificateSubject,
        days: u32,
        key: Option<&str>,
    ) -> Result<(String, String), String>;

    /// Checks a certificate to import: that all parse, that none has ended, and that the key is
    /// that of the certificate.
    fn check(&self, certificate: &str, intermediate: &str, key: &str) -> Result<(), String>;

    /// Returns a request to an authority to sign a certificate for a key.
    fn request(&self, subject: &CertificateSubject, key: &str) -> Result<String, String>;

    /// Makes the management certificate in the pool, or its absence, take effect.
    fn changed(&self);
}
