//! The certificates of the pool, for the management interface.

use std::sync::Arc;

use api::{CertificateFacts, CertificateSubject, Certificates};

use super::{Credentials, text};

/// Creates and checks certificates, and makes the one of management take effect.
pub struct Keeper {
    /// The certificate of the server; `None` if management is not encrypted.
    credentials: Option<Arc<Credentials>>,
    /// The names by which the array is reached.
    names: Vec<String>,
}

impl Keeper {
    /// Returns a keeper. `api` is the address of management.
    pub fn new(credentials: Option<Arc<Credentials>>, api: std::net::IpAddr) -> Self {
        Self { credentials, names: super::names(api) }
    }
}

impl Certificates for Keeper {
    fn in_files(&self) -> Option<String> {
        let path = self.credentials.as_ref()?.path();
        std::fs::read_to_string(path)
            .inspect_err(|error| tracing::warn!("can't read {}: {error}", path.display()))
            .ok()
    }

    fn describe(&self, certificate: &str) -> Result<CertificateFacts, String> {
        text::describe(certificate)
    }

    fn make(
        &self,
        subject: &CertificateSubject,
        days: u32,
        key: Option<&str>,
    ) -> Result<(String, String), String> {
        text::make(subject, self.names.clone(), days, key, sys::wall::now_ms())
    }

    fn check(&self, certificate: &str, intermediate: &str, key: &str) -> Result<(), String> {
        text::check(certificate, intermediate, key, sys::wall::now_ms())
    }

    fn request(&self, subject: &CertificateSubject, key: &str) -> Result<String, String> {
        text::request(subject, key)
    }

    fn changed(&self) {
        if let Some(credentials) = &self.credentials {
            credentials.refresh();
        }
    }
}
