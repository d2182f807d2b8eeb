//! How a client of the management interface verifies its array.
//!
//! An array creates its own certificate at its first start, which no authority has signed: a client
//! recognises it by its fingerprint, or has the certificate. An array with a certificate of an
//! authority is verified like any server.

mod fingerprint;

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

pub use fingerprint::Fingerprint;

/// Returns the algorithms of TLS.
pub fn provider() -> Arc<CryptoProvider> {
    Arc::new(rustls::crypto::ring::default_provider())
}

/// Trusts exactly the certificate with this fingerprint, whatever its names and dates.
///
/// # Errors
/// If the provider has no algorithms for a version of TLS.
pub fn pinned(fingerprint: Fingerprint) -> Result<ClientConfig, Error> {
    client(Known::Fingerprint(fingerprint))
}

/// Trusts exactly these certificates, whatever their names, and any certificate for the requested
/// name that one of them has signed.
///
/// # Errors
/// If there are none, or one of them is invalid.
pub fn certificates(own: Vec<CertificateDer<'static>>) -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in &own {
        roots.add(certificate.clone())?;
    }
    client(Known::Certificates { own, authorities: authorities(roots)? })
}

/// Trusts certificates for the requested name from the authorities that this machine trusts.
///
/// # Errors
/// If it trusts none.
pub fn of_machine() -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    client(Known::Certificates { own: Vec::new(), authorities: authorities(roots)? })
}

fn authorities(roots: RootCertStore) -> Result<Arc<WebPkiServerVerifier>, Error> {
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider())
        .build()
        .map_err(|error| Error::General(error.to_string()))
}

fn client(known: Known) -> Result<ClientConfig, Error> {
    let provider = provider();
    Ok(ClientConfig::builder_with_provider(provider.clone())
        .with_safe_default_protocol_versions()?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(Verifier { known, provider }))
        .with_no_client_auth())
}

/// How an array is recognised.
#[derive(Debug)]
enum Known {
    Fingerprint(Fingerprint),
    Certificates { own: Vec<CertificateDer<'static>>, authorities: Arc<WebPkiServerVerifier> },
}

#[derive(Debug)]
struct Verifier {
    known: Known,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.known {
            Known::Fingerprint(expected) => {
                let found = Fingerprint::of(end_entity);
                if found == *expected {
                    return Ok(ServerCertVerified::assertion());
                }
                let text = format!("its certificate is another: fingerprint {found}");
                Err(Error::General(text))
            }
            Known::Certificates { own, .. } if own.contains(end_entity) => {
                Ok(ServerCertVerified::assertion())
            }
            Known::Certificates { authorities, .. } => authorities.verify_server_cert(
                end_entity,
                intermediates,
                server_name,
                ocsp_response,
                now,
            ),
        }
    }

    // The signature proves that the server has the key of its certificate; without it anybody could
    // show the certificate.
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

#[cfg(test)]
mod tests {
    use std::io::{self, Read, Write};

    use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
    use rustls::pki_types::PrivatePkcs8KeyDer;
    use rustls::version::{TLS12, TLS13};
    use rustls::{ClientConnection, ServerConfig, ServerConnection, SupportedProtocolVersion};

    use super::*;

    struct Server {
        certificate: CertificateDer<'static>,
        config: Arc<ServerConfig>,
    }

    fn server(certificate: CertificateDer<'static>, key: &KeyPair) -> Server {
        server_with(certificate, key, rustls::ALL_VERSIONS)
    }

    fn server_with(
        certificate: CertificateDer<'static>,
        key: &KeyPair,
        versions: &[&'static SupportedProtocolVersion],
    ) -> Server {
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let config = ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(versions)
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.clone()], key.into())
            .unwrap();
        Server { certificate, config: Arc::new(config) }
    }

    /// Returns a server with its own certificate for a name.
    fn self_signed(name: &str) -> Server {
        let key = KeyPair::generate().unwrap();
        let made = CertificateParams::new([name.to_owned()]).unwrap().self_signed(&key).unwrap();
        server(made.der().clone(), &key)
    }

    /// Bytes in transit from one end to the other.
    #[derive(Default)]
    struct Pipe(io::Cursor<Vec<u8>>);

    impl Pipe {
        fn carry(
            &mut self,
            write: impl FnOnce(&mut dyn Write) -> io::Result<usize>,
            read: impl FnOnce(&mut dyn Read) -> io::Result<usize>,
        ) {
            self.0 = io::Cursor::new(Vec::new());
            write(self.0.get_mut()).unwrap();
            read(&mut self.0).unwrap();
        }
    }

    /// Performs the whole handshake without a socket.
    fn handshake(client: ClientConfig, server: &Server, name: &str) -> Result<(), Error> {
        let name = ServerName::try_from(name.to_owned()).unwrap();
        let mut client = ClientConnection::new(Arc::new(client), name).unwrap();
        let mut server = ServerConnection::new(server.config.clone()).unwrap();
        let mut pipe = Pipe::default();
        for _ in 0..8 {
            pipe.carry(|to| client.write_tls(to), |from| server.read_tls(from));
            server.process_new_packets()?;
            pipe.carry(|to| server.write_tls(to), |from| client.read_tls(from));
            client.process_new_packets()?;
            if !client.is_handshaking() && !server.is_handshaking() {
                return Ok(());
            }
        }
        panic!("the handshake does not end");
    }

    #[test]
    fn an_array_s_own_certificate_is_trusted_for_any_name_and_no_other_is() {
        let (array, other) = (self_signed("array.example"), self_signed("array.example"));
        let trusting = || certificates(vec![array.certificate.clone()]).unwrap();
        handshake(trusting(), &array, "192.0.2.1").unwrap();
        handshake(trusting(), &array, "array.example").unwrap();
        assert!(handshake(trusting(), &other, "array.example").is_err());
        let pin = || pinned(Fingerprint::of(&array.certificate)).unwrap();
        handshake(pin(), &array, "other.example").unwrap();
        let error = handshake(pin(), &other, "array.example").unwrap_err().to_string();
        assert!(error.contains("its certificate is another"), "{error}");
    }

    #[test]
    fn an_authority_is_trusted_for_the_names_that_it_signed() {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(["array.example".to_owned()]).unwrap();
        let signed = signed.signed_by(&key, &authority).unwrap();
        let array = server(signed.der().clone(), &key);
        let trusting = || certificates(vec![authority.der().clone()]).unwrap();
        handshake(trusting(), &array, "array.example").unwrap();
        assert!(handshake(trusting(), &array, "other.example").is_err());
        assert!(handshake(trusting(), &self_signed("array.example"), "array.example").is_err());
    }

    #[test]
    fn each_version_of_tls_will_do() {
        for version in [&TLS12, &TLS13] {
            let key = KeyPair::generate().unwrap();
            let made = CertificateParams::new(["a.example".to_owned()]).unwrap();
            let made = made.self_signed(&key).unwrap();
            let array = server_with(made.der().clone(), &key, &[version]);
            let pin = pinned(Fingerprint::of(&array.certificate)).unwrap();
            handshake(pin, &array, "a.example").unwrap();
        }
    }

    /// Anybody who has seen a certificate can show it.
    #[test]
    fn a_certificate_without_its_key_is_not_trusted() {
        let array = self_signed("array.example");
        let thief = ServerConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth();
        let key = KeyPair::generate().unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        let signing = provider().key_provider.load_private_key(key.into()).unwrap();
        let shown = rustls::sign::CertifiedKey::new(vec![array.certificate.clone()], signing);
        let resolver = rustls::sign::SingleCertAndKey::from(shown);
        let thief = thief.with_cert_resolver(Arc::new(resolver));
        let thief = Server { certificate: array.certificate.clone(), config: Arc::new(thief) };
        let pin = pinned(Fingerprint::of(&array.certificate)).unwrap();
        assert!(handshake(pin, &thief, "array.example").is_err());
        let trusting = certificates(vec![array.certificate.clone()]).unwrap();
        assert!(handshake(trusting, &thief, "array.example").is_err());
    }

    #[test]
    fn what_is_no_certificate_is_refused() {
        assert!(certificates(Vec::new()).is_err());
        assert!(certificates(vec![CertificateDer::from(vec![1, 2, 3])]).is_err());
    }
}
