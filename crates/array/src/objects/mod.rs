//! The objects as they are stored, each with the rules that it obeys by itself, and how many there
//! may be. What they are in relation to each other is the business of [`crate::state`].

pub mod alerts;
pub mod audit;
pub(crate) mod connections;
pub(crate) mod groups;
pub(crate) mod host_groups;
pub(crate) mod hosts;
pub mod lab_reports;
pub(crate) mod ports;
pub mod settings;
pub(crate) mod snapshots;
pub mod tags;
pub(crate) mod time;
pub mod users;
pub(crate) mod volumes;
