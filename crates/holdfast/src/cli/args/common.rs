//! The options of every verb.

use std::path::PathBuf;

use clap::Args;
use management::place::ApiPlace;
use trust::Fingerprint;

use crate::cli::output::Form;

/// The options of every verb.
#[derive(Debug, Args)]
pub struct Common {
    #[command(flatten)]
    pub form: Form,
    /// The pool: its directory or device; also selects the running array. `serve` takes this
    /// option several times, for a pool on several devices.
    #[arg(long, global = true, value_name = "DIR-OR-DEVICE", env = "HOLDFAST_POOL")]
    pub pool: Vec<PathBuf>,
    /// The management address: where `serve` listens, or where the array is. The prefix `http://`
    /// turns off encryption: on this machine only.
    #[arg(long, global = true, value_name = "HOST:PORT", env = "HOLDFAST_API")]
    pub api: Option<ApiPlace>,
    /// A file with the token for `--api`: the array's run file, or the token alone.
    #[arg(long, global = true, value_name = "FILE", env = "HOLDFAST_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) by which the array at `--api` is verified: its own, or an authority's.
    /// Not with --fingerprint.
    #[arg(long, global = true, value_name = "FILE", env = "HOLDFAST_CA")]
    pub ca: Option<PathBuf>,
    /// The SHA-256 of the certificate that the array at `--api` must have, as `serve` prints it.
    #[arg(long, global = true, value_name = "HEX", env = "HOLDFAST_FINGERPRINT")]
    pub fingerprint: Option<Fingerprint>,
}

impl Common {
    /// Returns the first place given with `--pool`.
    pub fn pool(&self) -> Option<&PathBuf> {
        self.pool.first()
    }
}
