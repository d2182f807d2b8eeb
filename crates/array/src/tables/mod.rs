//! The objects in memory, with what is derived from them.
//!
//! A table contains the objects of one kind, or one object with the data for look-ups, and does not
//! depend on other tables. [`crate::state`] keeps them consistent with each other.

pub(crate) mod agenda;
pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod containers;
pub(crate) mod host_groups;
pub(crate) mod host_states;
pub(crate) mod hosts;
pub(crate) mod moments;
pub(crate) mod releases;
pub(crate) mod tags;
pub(crate) mod time;
pub(crate) mod tokens;
pub(crate) mod users;
pub(crate) mod volumes;
