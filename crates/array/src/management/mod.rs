//! What administrators manage in addition to storage: users, alerts and their receivers, settings,
//! tags.
//!
//! One array admin always remains. Only the hash of an API token is stored. An alert never waits
//! for the store.

mod alerts;
mod certificates;
mod directory;
mod notifications;
mod settings;
mod snmp;
mod tags;
mod users;
