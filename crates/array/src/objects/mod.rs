//! The objects as they are stored, and their maximum numbers.
//!
//! An object obeys the rules that concern it alone, and refers to others by their ids. The
//! relations between objects are the concern of [`crate::state`].

pub mod alerts;
pub mod audit;
pub(crate) mod certificates;
pub(crate) mod connections;
pub(crate) mod containers;
pub(crate) mod directory;
pub(crate) mod groups;
pub(crate) mod host_groups;
pub(crate) mod hosts;
pub mod notifications;
pub(crate) mod ports;
pub(crate) mod releases;
pub mod settings;
pub(crate) mod snapshots;
pub mod snmp;
pub mod tags;
pub(crate) mod time;
pub mod users;
pub(crate) mod volumes;
