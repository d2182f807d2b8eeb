//! Mutual authentication of the two ends of a link over the network, by Ed25519 keys that both
//! derive from one secret. They are presented as raw public keys (RFC 7250); there is no
//! certificate, no name and no date. Each controller has its own key, so that neither can
//! impersonate the other.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use hkdf::Hkdf;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer,
    UnixTime,
};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::sign::CertifiedKey;
use rustls::version::TLS13;
use rustls::{
    CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct, DistinguishedName,
    Error, PeerIncompatible, ServerConfig, ServerConnection, SignatureScheme,
};
use sha2::Sha256;

use super::super::Controller;

const SECRET_BYTES: usize = 32;
/// The purpose of the derived keys, with the version of the link.
const SALT: &[u8] = b"holdfast link 1";
/// PKCS #8 of an Ed25519 key (RFC 8410), up to its 32 bytes.
const PKCS8: [u8; 16] = [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// The protocol above TLS (ALPN).
const PROTOCOL: &[u8] = b"holdfast-link";

/// The shared secret of both controllers. It is never displayed.
pub struct Secret([u8; SECRET_BYTES]);

impl Secret {
    /// Creates a secret of these bytes, which must be random.
    pub fn of(bytes: [u8; SECRET_BYTES]) -> Self {
        Self(bytes)
    }

    /// Parses the content of its file: 64 hex digits, and nothing else but white space around them.
    /// A secret chosen by people could be guessed.
    pub fn parse(text: &str) -> Option<Self> {
        let (digits, rest) = text.trim().as_bytes().as_chunks::<2>();
        let nibble = |digit: &u8| char::from(*digit).to_digit(16);
        let byte = |[high, low]: &[u8; 2]| u8::try_from(nibble(high)? << 4 | nibble(low)?).ok();
        let bytes: Vec<u8> = digits.iter().map(byte).collect::<Option<_>>()?;
        Some(Self(bytes.try_into().ok().filter(|_| rest.is_empty())?))
    }

    /// Returns the content of its file.
    pub fn to_text(&self) -> String {
        let digits: String = self.0.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{digits}\n")
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The TLS configuration of both ends.
pub(super) struct Keys {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
}

impl Keys {
    /// Derives the keys of one of two controllers that have these portals: controllers with
    /// different portals, or of another array, don't accept each other.
    pub(super) fn new(
        secret: &Secret,
        own: Controller,
        portals: &[(Controller, SocketAddr)],
    ) -> Result<Self, Error> {
        let provider = trust::provider();
        let load = |controller| -> Result<CertifiedKey, Error> {
            let der = PrivatePkcs8KeyDer::from(derived(secret, controller, portals));
            let key = provider.key_provider.load_private_key(PrivateKeyDer::Pkcs8(der))?;
            let public = key.public_key().ok_or(Error::General("no public key".into()))?;
            Ok(CertifiedKey::new(vec![CertificateDer::from(public.to_vec())], key))
        };
        let (key, other) = (Arc::new(load(own)?), load(own.other())?);
        let proven = Arc::new(Proven {
            expected: other.cert.first().map(|it| it.to_vec()).unwrap_or_default(),
            algorithms: provider.signature_verification_algorithms,
        });
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&[&TLS13])?
            .with_client_cert_verifier(proven.clone())
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(key.clone())));
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![PROTOCOL.to_vec()];
        let mut client = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&TLS13])?
            .dangerous()
            .with_custom_certificate_verifier(proven)
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(key)));
        client.resumption = Resumption::disabled();
        client.enable_sni = false;
        client.alpn_protocols = vec![PROTOCOL.to_vec()];
        Ok(Self { server: Arc::new(server), client: Arc::new(client) })
    }

    /// Returns the TLS state of the end that connects.
    pub(super) fn dial(&self, peer: IpAddr) -> Result<ClientConnection, Error> {
        ClientConnection::new(self.client.clone(), ServerName::IpAddress(peer.into()))
    }

    /// Returns the TLS state of the end that listens.
    pub(super) fn accept(&self) -> Result<ServerConnection, Error> {
        ServerConnection::new(self.server.clone())
    }
}

/// Derives the private key of a controller.
fn derived(
    secret: &Secret,
    controller: Controller,
    portals: &[(Controller, SocketAddr)],
) -> Vec<u8> {
    let mut portals: Vec<String> =
        portals.iter().map(|(of, address)| format!("{}={address}", of.name())).collect();
    portals.sort();
    let use_for = format!("{} {}", controller.name(), portals.join(","));
    let mut key = [0; 32];
    Hkdf::<Sha256>::new(Some(SALT), &secret.0)
        .expand(use_for.as_bytes(), &mut key)
        .unwrap_or_else(|_| unreachable!("HKDF gives up to 255 times its hash"));
    [&PKCS8[..], &key].concat()
}

/// Verifies that the other end has the key of the other controller.
#[derive(Debug)]
struct Proven {
    /// The public key.
    expected: Vec<u8>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Proven {
    fn check(&self, shown: &CertificateDer<'_>) -> Result<(), Error> {
        if shown.as_ref() == self.expected {
            return Ok(());
        }
        Err(Error::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
    }

    fn check_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let key = SubjectPublicKeyInfoDer::from(shown.as_ref());
        verify_tls13_signature_with_raw_key(message, &key, signed, &self.algorithms)
    }
}

/// TLS 1.2 is not supported.
fn not_spoken() -> Result<HandshakeSignatureValid, Error> {
    Err(PeerIncompatible::ServerDoesNotSupportTls12Or13.into())
}

impl ServerCertVerifier for Proven {
    fn verify_server_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(shown).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        not_spoken()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Proven {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        shown: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(shown).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        not_spoken()
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        shown: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.check_signature(message, shown, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
