//! How a verb verifies its array: by the certificate in the run file, by a fingerprint, or by
//! certificates that it is given.

use std::path::PathBuf;
use std::sync::Arc;

use ::trust::Fingerprint;
use management::certificate::read_certificates;
use rustls::ClientConfig;

use super::failure::Failure;

/// How a verb verifies its array.
#[derive(Clone, Debug)]
pub enum Trust {
    /// Not at all: plain HTTP, on this machine only.
    Plain,
    /// By exactly this certificate, regardless of its names.
    Fingerprint(Fingerprint),
    /// By a certificate in this file: the array's own, or that of an authority, for the requested
    /// name.
    Certificates(PathBuf),
}

impl Trust {
    /// Returns the TLS settings; `None` for no TLS.
    pub fn client(&self) -> Result<Option<Arc<ClientConfig>>, Failure> {
        let config = match self {
            Self::Plain => return Ok(None),
            Self::Fingerprint(expected) => trust::pinned(*expected)
                .map_err(|error| Failure::Machine(format!("can't speak TLS: {error}")))?,
            Self::Certificates(path) => {
                trust::certificates(read_certificates(path)?).map_err(|error| {
                    Failure::Usage(format!("can't trust {}: {error}", path.display()))
                })?
            }
        };
        Ok(Some(Arc::new(config)))
    }
}
