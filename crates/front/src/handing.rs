//! A connection that goes on in another process, which takes the pool over as planned: what goes
//! there with its socket.

use std::sync::Arc;

pub use target::Untold;

use super::command_set::Nexus;
use super::transport;

/// A connection that a front end has let go of, and that goes on in another process.
pub struct Handed {
    /// What its protocol knows of it.
    pub connection: transport::Handed,
    /// Who talks to whom: what its host is to be told goes on too ([`crate::Shared::untold`]).
    pub nexus: Arc<Nexus>,
}
