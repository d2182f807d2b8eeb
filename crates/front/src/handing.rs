//! Handing a connection over to another process in a planned switch: the state that is passed with
//! its socket.

use std::sync::Arc;

pub use target::Untold;

use super::command_set::Nexus;
use super::transport;

/// A connection that a front end has released to continue in another process.
pub struct Handed {
    /// What its protocol knows of it.
    pub connection: transport::Handed,
    /// The I_T nexus, whose pending notifications are handed over too ([`crate::Shared::untold`]).
    pub nexus: Arc<Nexus>,
}
