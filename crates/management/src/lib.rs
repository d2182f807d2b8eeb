//! The management of a running array, as seen from its network: where it listens, what it serves
//! there, and notifications.
//!
//! * [`http`]: the HTTPS server of the management interface and of the [`web`] page; its
//!   [`certificate`],
//! * [`alerts`]: detects problems, [`health`]: the health that devices report,
//! * [`notify`]: notifications, as configured in the configuration file and in the pool,
//! * [`history`]: activity and latencies over a year,
//! * [`place`]: where management listens, [`private`]: files that only their owner may read,
//!   [`Error`]: errors.
//!
//! The crate `api` implements the interface, and `array` the objects. This crate does not know how
//! an array serves hosts: its caller provides what can be observed of that ([`alerts::Observed`]).

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
