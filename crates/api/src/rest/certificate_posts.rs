//! Requests that create or import a certificate.

use array::{CertificateName, KeptPassword, StoredCertificate};
use serde::Deserialize;
use utoipa::ToSchema;

use super::Refused;
use super::certificates::{IMPORTED, SELF_SIGNED, maker};
use crate::{CertificateSubject, Certificates, Interface};

/// The default validity of a self-signed certificate, in days.
const DAYS: u32 = 3650;
/// The maximum validity.
const DAYS_MAX: u32 = 36_500;
/// The key sizes that clients request.
const KEY_SIZES: [u32; 5] = [256, 1024, 2048, 3072, 4096];

/// A certificate to create or to import. `Debug` is left out on purpose.
#[derive(Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CertificatePost {
    /// `self-signed`: the array creates it. `imported`: `certificate` and `key` are given.
    pub status: Option<String>,
    /// The common name: up to 64 characters; by default, the name of the array.
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
    /// The validity in days: 1 to 36,500; the default is 3,650.
    pub days: Option<u32>,
    /// The size of an RSA key. New keys are of the elliptic curve P-256 (256 bits), as strong as
    /// RSA with 3,072 bits, whatever this says.
    pub key_size: Option<u32>,
    /// `ec`: the only algorithm of new keys.
    pub key_algorithm: Option<String>,
    /// The certificate to import, as PEM: up to 16 KiB.
    pub certificate: Option<String>,
    /// Its intermediate certificates, as PEM: up to 16 KiB.
    pub intermediate_certificate: Option<String>,
    /// The key of the certificate, as PEM without encryption. Without it, the certificate must be
    /// for the key that is there: the answer to a signing request.
    pub key: Option<String>,
    /// The passphrase of the key. An encrypted key is refused: decrypt it before.
    pub passphrase: Option<String>,
}

/// The longest texts of a subject (RFC 5280, appendix A.1), in characters.
const NAME_CHARS_MAX: usize = 64;
const PLACE_CHARS_MAX: usize = 128;
const ALTERNATIVE_NAMES_MAX: usize = 32;

/// The requested changes of a [`CertificateSubject`].
#[derive(Default)]
pub(super) struct Asked {
    /// The common name and the others, in the order of the fields there.
    pub(super) texts: [Option<String>; 7],
    pub(super) alternative_names: Option<Vec<String>>,
}

impl Asked {
    /// Returns the subject after the change.
    pub(super) fn on(self, mut subject: CertificateSubject) -> Result<CertificateSubject, Refused> {
        let fields: [(&str, &mut String, usize); 7] = [
            ("common_name", &mut subject.common_name, NAME_CHARS_MAX),
            ("country", &mut subject.country, 2),
            ("email", &mut subject.email, PLACE_CHARS_MAX),
            ("locality", &mut subject.locality, PLACE_CHARS_MAX),
            ("organization", &mut subject.organization, NAME_CHARS_MAX),
            ("organizational_unit", &mut subject.organizational_unit, NAME_CHARS_MAX),
            ("state", &mut subject.state, PLACE_CHARS_MAX),
        ];
        for ((field, value, most), text) in fields.into_iter().zip(self.texts) {
            let Some(text) = text else { continue };
            if text.chars().count() > most || text.chars().any(char::is_control) {
                let text = format!("It has up to {most} characters, and no control characters.");
                return Err(Refused::bad(field, text));
            }
            *value = text;
        }
        let country = &subject.country;
        let is_code = country.len() == 2 && country.bytes().all(|b| b.is_ascii_alphabetic());
        if !country.is_empty() && !is_code {
            return Err(Refused::bad("country", "A country is a code of two letters."));
        }
        subject.country.make_ascii_uppercase();
        if let Some(names) = self.alternative_names {
            if names.len() > ALTERNATIVE_NAMES_MAX {
                let text = format!("There are up to {ALTERNATIVE_NAMES_MAX} alternative names.");
                return Err(Refused::bad("subject_alternative_names", text));
            }
            subject.alternative_names = names;
        }
        Ok(subject)
    }
}

impl CertificatePost {
    /// Returns whether a certificate is to be imported.
    pub(super) fn is_import(&self) -> Result<bool, Refused> {
        if self.key_algorithm.as_deref().is_some_and(|name| !name.eq_ignore_ascii_case("ec")) {
            return Err(Refused::unsupported("key_algorithm", "New keys other than `ec`"));
        }
        if self.key_size.is_some_and(|bits| !KEY_SIZES.contains(&bits)) {
            return Err(Refused::bad("key_size", "It is 256, 1024, 2048, 3072 or 4096."));
        }
        if self.passphrase.as_deref().is_some_and(|text| !text.is_empty()) && self.key.is_none() {
            return Err(Refused::bad("passphrase", "There is no key to decrypt with it."));
        }
        match self.status.as_deref() {
            None => Ok(self.certificate.is_some()),
            Some(SELF_SIGNED) => Ok(false),
            Some(IMPORTED) => Ok(true),
            Some(_) => Err(Refused::bad("status", "Give `self-signed` or `imported`.")),
        }
    }

    fn asked(&mut self) -> Asked {
        let texts = [
            self.common_name.take(),
            self.country.take(),
            self.email.take(),
            self.locality.take(),
            self.organization.take(),
            self.organizational_unit.take(),
            self.state.take(),
        ];
        Asked { texts, alternative_names: self.subject_alternative_names.take() }
    }

    fn days(&self) -> Result<u32, Refused> {
        let days = self.days.unwrap_or(DAYS);
        match (1..=DAYS_MAX).contains(&days) {
            true => Ok(days),
            false => Err(Refused::bad("days", format!("Give 1 to {DAYS_MAX} days."))),
        }
    }

    /// Returns the imported certificate; `old` is the one that it replaces.
    pub(super) fn imported(
        self,
        maker: &dyn Certificates,
        name: CertificateName,
        old: Option<&StoredCertificate>,
    ) -> Result<StoredCertificate, Refused> {
        let certificate = self.certificate.filter(|text| !text.is_empty());
        let certificate =
            certificate.ok_or_else(|| Refused::bad("certificate", "Give the certificate."))?;
        let intermediate = self.intermediate_certificate.unwrap_or_default();
        let given = self.key.filter(|key| !key.is_empty()).map(|key| KeptPassword::new(&key));
        let key = given.or_else(|| old.map(|old| old.key.clone())).ok_or_else(|| {
            Refused::bad("key", "Give the key: the pool has none for this certificate.")
        })?;
        let checked = maker.check(&certificate, &intermediate, key.expose());
        checked.map_err(|why| Refused::bad("certificate", why))?;
        Ok(StoredCertificate { name, certificate, intermediate, key, is_self_signed: false })
    }

    /// Returns the certificate that the array creates; `key` is reused.
    pub(super) fn made(
        mut self,
        interface: &Interface,
        name: CertificateName,
        subject: CertificateSubject,
        key: Option<&str>,
    ) -> Result<StoredCertificate, Refused> {
        if self.certificate.is_some() || self.key.is_some() {
            let text = "A self-signed certificate is created by the array: omit this.";
            return Err(Refused::bad("certificate", text));
        }
        let days = self.days()?;
        let mut subject = self.asked().on(subject)?;
        if subject.common_name.is_empty() {
            subject.common_name = interface.array.name();
        }
        let made = maker(interface)?.make(&subject, days, key);
        let (certificate, key) = made.map_err(|why| Refused::bad("certificate", why))?;
        let key = KeptPassword::new(&key);
        let intermediate = String::new();
        Ok(StoredCertificate { name, certificate, intermediate, key, is_self_signed: true })
    }
}
