//! The records of certificates. Their keys begin like those of releases: earlier versions drop
//! them, and then the array uses the certificate in its files.

use serde::{Deserialize, Serialize};

use super::row::{Row, VERSION, encode, parse};
use crate::error::Error;
use crate::objects::certificates::StoredCertificate;
use crate::values::name::CertificateName;
use crate::values::password::KeptPassword;

#[derive(Serialize, Deserialize)]
struct CertificateRow {
    v: u8,
    name: String,
    certificate: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    intermediate: String,
    key: String,
    self_signed: bool,
}

fn certificate_key(name: &CertificateName) -> Vec<u8> {
    [b"L\0c", name.key().as_bytes()].concat()
}

/// Returns the record of a certificate.
pub(crate) fn certificate_row(one: &StoredCertificate) -> Result<Row, Error> {
    let value = encode(&CertificateRow {
        v: VERSION,
        name: one.name.to_string(),
        certificate: one.certificate.clone(),
        intermediate: one.intermediate.clone(),
        key: one.key.expose().to_owned(),
        self_signed: one.is_self_signed,
    })?;
    Ok((certificate_key(&one.name), Some(value)))
}

/// Returns the removal of the record.
pub(crate) fn no_certificate_row(one: &StoredCertificate) -> Row {
    (certificate_key(&one.name), None)
}

pub(super) fn decode_certificate(key: &[u8], value: &[u8]) -> Result<StoredCertificate, Error> {
    let row: CertificateRow = parse(key, value)?;
    Ok(StoredCertificate {
        name: CertificateName::new(&row.name)?,
        certificate: row.certificate,
        intermediate: row.intermediate,
        key: KeptPassword::new(&row.key),
        is_self_signed: row.self_signed,
    })
}
