//! Certificates in the pool. That of the name [`MANAGEMENT_CERTIFICATE`] is the one of management.

use std::sync::Arc;

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::certificates::{CERTIFICATES_MAX, StoredCertificate};
use crate::record;
use crate::state::State;

#[cfg(doc)]
use crate::objects::certificates::MANAGEMENT_CERTIFICATE;

impl Array {
    /// Returns all certificates, in the order of their names.
    pub fn certificates(&self) -> Vec<Arc<StoredCertificate>> {
        self.read().certificates.values().cloned().collect()
    }

    /// Returns a certificate. It is the same allocation until it changes.
    pub fn certificate(&self, name: &str) -> Option<Arc<StoredCertificate>> {
        self.read().certificates.get(&name.to_ascii_lowercase()).cloned()
    }

    /// Stores certificates, new ones or in place of those with the same name; durable when it
    /// returns. `are_new`: refuses to replace one.
    ///
    /// # Errors
    /// `certificate_exists`, `invalid_certificate`, `limit_reached`, and those of the store.
    pub fn put_certificates(
        &self,
        all: Vec<StoredCertificate>,
        are_new: bool,
    ) -> Result<(), Error> {
        let plan = |state: &State| {
            let mut certificates = state.certificates.clone();
            let mut change = Change::default();
            for one in all {
                one.check()?;
                change.config.push(record::certificate_row(&one)?);
                let name = one.name.to_string();
                if certificates.insert(one.name.key(), Arc::new(one)).is_some() && are_new {
                    let text = format!("Certificate {name} already exists.");
                    return Err(Error::invalid("certificate_exists", text));
                }
            }
            if certificates.len() > CERTIFICATES_MAX {
                return Err(Error::Limit { what: "certificates", limit: CERTIFICATES_MAX });
            }
            Ok((change, certificates))
        };
        self.change(plan, |state, certificates| state.certificates = certificates)
    }

    /// Removes certificates.
    ///
    /// # Errors
    /// `no_such_certificate`, and those of the store.
    pub fn delete_certificates(&self, names: &[String]) -> Result<(), Error> {
        let plan = |state: &State| {
            let mut certificates = state.certificates.clone();
            let mut change = Change::default();
            for name in names {
                let one = certificates.remove(&name.to_ascii_lowercase()).ok_or_else(|| {
                    let text = "There is no such certificate in the pool.";
                    Error::invalid("no_such_certificate", text)
                })?;
                change.config.push(record::no_certificate_row(&one));
            }
            Ok((change, certificates))
        };
        self.change(plan, |state, certificates| state.certificates = certificates)
    }
}
