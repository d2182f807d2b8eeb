//! How a verb verifies its array: by the certificate in the run file, by a fingerprint, or by a
//! certificate authority.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::args::Fingerprint;
use super::certificate::{fingerprint, provider, read_certificates};
use super::failure::Failure;

/// How a verb verifies its array.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Not at all: plain HTTP, on this machine only.
    Plain,
    /// By exactly this certificate, whatever names it contains.
    Fingerprint(Fingerprint),
    /// By a certificate for the requested name, from an authority of this file.
    Authorities(PathBuf),
}

impl Trust {
    /// The TLS settings for this; `None` for no TLS.
    pub fn client(&self) -> Result<Option<Arc<ClientConfig>>, Failure> {
        let refuse = |error: Error| Failure::Machine(format!("can't speak TLS: {error}"));
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(refuse)?;
        let config = match self {
            Self::Plain => return Ok(None),
            Self::Fingerprint(expected) => builder
                .dangerous()
                .with_custom_certificate_verifier(pinned(*expected))
                .with_no_client_auth(),
            Self::Authorities(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in read_certificates(path)? {
                    roots.add(certificate).map_err(|error| {
                        Failure::Usage(format!("can't trust {}: {error}", path.display()))
                    })?;
                }
                if roots.is_empty() {
                    let text = format!("{} holds no certificate", path.display());
                    return Err(Failure::Usage(text));
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        Ok(Some(Arc::new(config)))
    }
}

/// A verifier of one certificate.
pub fn pinned(expected: Fingerprint) -> Arc<dyn ServerCertVerifier> {
    Arc::new(Pinned { expected, provider: provider() })
}

/// Verifies one certificate. Names and dates in it do not matter: it must be this one.
#[derive(Debug)]
struct Pinned {
    expected: Fingerprint,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = fingerprint(end_entity);
        if found == self.expected {
            return Ok(ServerCertVerified::assertion());
        }
        Err(Error::General(format!("its certificate is another: fingerprint {found}")))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
