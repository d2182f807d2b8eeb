//! The management of a running array, as seen from its network: where it listens, what it serves
//! there, and who is notified of what.
//!
//! * [`http`]: the server of the interface, with the [`web`] page before it; its [`certificate`],
//! * [`alerts`]: looking for what is wrong, [`health`]: what devices say of their own health,
//! * [`notify`]: telling others, as the configuration and the pool have it,
//! * [`history`]: what was done, and how long it took, for a year,
//! * [`place`]: where something listens, [`private`]: files that only their owner may read,
//!   [`Error`]: why not.
//!
//! What the interface says is the crate `api`'s; what objects there are `array`'s. How an array
//! serves hosts is not known here: whoever runs it brings what can be seen of that
//! ([`alerts::Observed`]).

pub mod alerts;
pub mod certificate;
mod error;
pub mod health;
pub mod history;
pub mod http;
pub mod notify;
pub mod place;
pub mod private;
pub mod web;

pub use error::Error;
