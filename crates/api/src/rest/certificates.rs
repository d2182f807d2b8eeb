//! `certificates`: those that the pool stores, with their keys, which are never returned. The one
//! named `management` is the server's; without it, the server has the one in its files.

use array::{CertificateName, MANAGEMENT_CERTIFICATE, StoredCertificate};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::certificate_posts::{Asked, CertificatePost};
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, NameParams, Query, Refusals, Refused, answer,
};
use crate::{CertificateFacts, CertificateSubject, Certificates, Interface, Shared};

/// The states of certificates.
pub(super) const SELF_SIGNED: &str = "self-signed";
pub(super) const IMPORTED: &str = "imported";

/// A certificate.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestCertificate {
    /// The name by which the certificate is managed.
    pub name: String,
    /// `self-signed` or `imported`.
    pub status: String,
    /// The certificate, as PEM.
    pub certificate: String,
    /// Its intermediate certificates, as PEM.
    pub intermediate_certificate: String,
    /// `pool`, or `files`: the server's own, as long as the pool has none for it.
    pub source: String,
    /// The common name of its subject.
    pub common_name: String,
    /// The country of its subject (ISO 3166-1 alpha-2).
    pub country: String,
    /// The email address of its subject.
    pub email: String,
    /// The locality of its subject.
    pub locality: String,
    /// The organization of its subject.
    pub organization: String,
    /// The organizational unit of its subject.
    pub organizational_unit: String,
    /// The state or province of its subject.
    pub state: String,
    /// Its subject alternative names: DNS names and IP addresses.
    pub subject_alternative_names: Vec<String>,
    /// The distinguished name of its issuer.
    pub issued_by: String,
    /// The distinguished name of its subject.
    pub issued_to: String,
    /// `rsa`, `ec` or `ed25519`.
    pub key_algorithm: String,
    /// The size of its key, in bits.
    pub key_size: u32,
    /// The start of its validity, in milliseconds since 1970.
    pub valid_from: u64,
    /// The end of its validity, in milliseconds since 1970.
    pub valid_to: u64,
}

/// A certificate signing request.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSigningRequest {
    /// The request (PKCS #10), as PEM.
    pub certificate_signing_request: String,
}

listed_by_name!(RestCertificate);

impl Listed for RestSigningRequest {
    fn key(&self) -> String {
        String::new()
    }
}

impl RestCertificate {
    fn new(name: &str, status: &str, certificate: String, facts: CertificateFacts) -> Self {
        let CertificateFacts { subject, issued_to, issued_by, .. } = facts;
        Self {
            name: name.into(),
            status: status.into(),
            certificate,
            intermediate_certificate: String::new(),
            source: String::new(),
            common_name: subject.common_name,
            country: subject.country,
            email: subject.email,
            locality: subject.locality,
            organization: subject.organization,
            organizational_unit: subject.organizational_unit,
            state: subject.state,
            subject_alternative_names: subject.alternative_names,
            issued_by,
            issued_to,
            key_algorithm: facts.key_algorithm,
            key_size: facts.key_size,
            valid_from: facts.valid_from_ms,
            valid_to: facts.valid_to_ms,
        }
    }
}

/// Returns the source of certificates.
pub(super) fn maker(interface: &Interface) -> Result<&dyn Certificates, Refused> {
    interface.watch.certificates().ok_or_else(|| Refused::unsupported("", "Certificates here"))
}

/// Returns a certificate of the pool.
fn stored(interface: &Interface, one: &StoredCertificate) -> RestCertificate {
    let facts = interface.watch.certificates().map(|maker| maker.describe(&one.certificate));
    let facts = facts.and_then(Result::ok).unwrap_or_default();
    let status = if one.is_self_signed { SELF_SIGNED } else { IMPORTED };
    let certificate = one.certificate.clone();
    let mut shown = RestCertificate::new(one.name.as_str(), status, certificate, facts);
    shown.intermediate_certificate = one.intermediate.clone();
    shown.source = "pool".into();
    shown
}

/// Returns the certificate of management in its files, unless one in the pool is in force.
fn in_files(interface: &Interface) -> Option<RestCertificate> {
    if interface.array.certificate(MANAGEMENT_CERTIFICATE).is_some() {
        return None;
    }
    let maker = interface.watch.certificates()?;
    let certificate = maker.in_files()?;
    let facts = maker.describe(&certificate).unwrap_or_default();
    let status = if facts.issued_by == facts.issued_to { SELF_SIGNED } else { IMPORTED };
    let mut shown = RestCertificate::new(MANAGEMENT_CERTIFICATE, status, certificate, facts);
    shown.source = "files".into();
    Some(shown)
}

fn all(interface: &Interface) -> Vec<RestCertificate> {
    let mut all: Vec<_> =
        interface.array.certificates().iter().map(|one| stored(interface, one)).collect();
    all.extend(in_files(interface));
    all.sort_by_key(|one| one.name.to_ascii_lowercase());
    all
}

/// Lists certificates. `management` is the one of this server.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/certificates",
    tag = "certificates",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestCertificate>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, all).await
}

/// Stores a certificate, puts it in force if it is that of management, and returns it.
fn put(interface: &Interface, one: StoredCertificate, is_new: bool) -> Result<Items, Refused> {
    let shown = stored(interface, &one);
    let named = shown.name.clone();
    let result = interface.array.put_certificates(vec![one], is_new);
    result.map_err(|error| Refused::about(&named, &error))?;
    maker(interface)?.changed();
    Items::of([shown])
}

/// Takes the name of the one certificate of a request.
fn only_name(query: &mut Query) -> Result<String, Refused> {
    let mut names = query.required("names")?;
    match (names.pop(), names.is_empty()) {
        (Some(name), true) => Ok(name),
        _ => Err(Refused::bad("names", "Name one certificate.")),
    }
}

/// Creates a self-signed certificate, or imports one with its key. `management` takes effect at
/// once.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/certificates",
    tag = "certificates",
    params(NameParams),
    request_body = CertificatePost,
    responses((status = 200, body = ItemsOf<RestCertificate>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<CertificatePost>,
) -> Answer {
    let name = only_name(&mut query)?;
    query.end()?;
    let is_import = asked.is_import()?;
    answer(interface, move |interface| {
        let name = CertificateName::new(&name)?;
        let one = match is_import {
            true => asked.imported(maker(interface)?, name, None)?,
            false => asked.made(interface, name, CertificateSubject::default(), None)?,
        };
        put(interface, one, true)
    })
    .await
}

/// Renews a self-signed certificate, with changes, or imports one. `management` takes effect at
/// once; if the pool has none, it gets one.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/certificates",
    tag = "certificates",
    params(
        NameParams,
        ("generate_new_key" = Option<bool>, Query, description = "Whether a self-signed \
            certificate gets a new key; otherwise it keeps its own."),
    ),
    request_body = CertificatePost,
    responses((status = 200, body = ItemsOf<RestCertificate>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<CertificatePost>,
) -> Answer {
    let name = only_name(&mut query)?;
    let is_new_key = query.flag("generate_new_key")?.unwrap_or(false);
    query.end()?;
    let is_import = asked.is_import()?;
    answer(interface, move |interface| {
        let maker = maker(interface)?;
        let old = interface.array.certificate(&name);
        if old.is_none() && !all(interface).iter().any(|one| one.name == name) {
            return Err(Refused::missing(&name));
        }
        let name =
            old.as_ref().map_or_else(|| CertificateName::new(&name), |old| Ok(old.name.clone()))?;
        let one = match is_import {
            true => asked.imported(maker, name, old.as_deref())?,
            false => {
                let text =
                    old.as_ref().map(|old| old.certificate.clone()).or_else(|| maker.in_files());
                let facts = text.and_then(|text| maker.describe(&text).ok()).unwrap_or_default();
                let key = old.as_ref().filter(|_| !is_new_key).map(|old| old.key.expose());
                asked.made(interface, name, facts.subject, key)?
            }
        };
        put(interface, one, false)
    })
    .await
}

/// Removes certificates from the pool. Without `management`, the server has the one in its files
/// again.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/certificates",
    tag = "certificates",
    params(NameParams),
    responses((status = 200, description = "Removed."), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, mut query: Query) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    answer(interface, move |interface| {
        let is_missing = |name: &&String| interface.array.certificate(name).is_none();
        if let Some(name) = names.iter().find(is_missing) {
            if *name == MANAGEMENT_CERTIFICATE && in_files(interface).is_some() {
                let text = "The pool has no certificate of management: the one in files is used.";
                return Err(Refused::bad(name, text));
            }
            return Err(Refused::missing(name));
        }
        interface.array.delete_certificates(&names)?;
        maker(interface)?.changed();
        Items::of::<RestCertificate>([])
    })
    .await
}

/// The certificate that a request is for.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SigningCertificate {
    /// The name by which the certificate is managed.
    pub name: Option<String>,
}

/// The subject of a signing request. Omitted fields are those of the certificate.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SigningRequestPost {
    /// The certificate, whose key the request is for.
    pub certificate: Option<SigningCertificate>,
    /// The common name: up to 64 characters.
    pub common_name: Option<String>,
    /// The country: two letters (ISO 3166-1 alpha-2).
    pub country: Option<String>,
    /// The email address.
    pub email: Option<String>,
    /// The locality.
    pub locality: Option<String>,
    /// The organization.
    pub organization: Option<String>,
    /// The organizational unit.
    pub organizational_unit: Option<String>,
    /// The state or province.
    pub state: Option<String>,
    /// Subject alternative names: up to 32 DNS names and IP addresses.
    pub subject_alternative_names: Option<Vec<String>>,
}

/// Creates a signing request for the key of a certificate in the pool. Import the signed
/// certificate by PATCH, without a key.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/certificates/certificate-signing-requests",
    tag = "certificates",
    request_body = SigningRequestPost,
    responses((status = 200, body = ItemsOf<RestSigningRequest>), Refusals)
)]
pub(super) async fn sign(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<SigningRequestPost>,
) -> Answer {
    query.end()?;
    answer(interface, move |interface| {
        let name = asked.certificate.and_then(|one| one.name);
        let name = name.ok_or_else(|| Refused::bad("certificate", "Name a certificate."))?;
        let Some(one) = interface.array.certificate(&name) else {
            let is_there = all(interface).iter().any(|one| one.name == name);
            return Err(match is_there {
                false => Refused::missing(&name),
                true => Refused::bad(
                    &name,
                    "The key of this certificate is in a file, and stays there. PATCH the \
                     certificate first: the array creates one with a key in the pool.",
                ),
            });
        };
        let maker = maker(interface)?;
        let facts = maker.describe(&one.certificate).unwrap_or_default();
        let texts = [
            asked.common_name,
            asked.country,
            asked.email,
            asked.locality,
            asked.organization,
            asked.organizational_unit,
            asked.state,
        ];
        let changed = Asked { texts, alternative_names: asked.subject_alternative_names };
        let made = maker.request(&changed.on(facts.subject)?, one.key.expose());
        let request = made.map_err(|why| Refused::bad(&name, why))?;
        Items::of([RestSigningRequest { certificate_signing_request: request }])
    })
    .await
}
