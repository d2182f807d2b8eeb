//! What administrators manage besides storage: users, alerts and who is told of them,
//! settings, tags.
//!
//! One array admin always remains. Of an API token only the hash is kept. An alert never waits for
//! the store.

mod alerts;
mod directory;
mod notifications;
mod settings;
mod snmp;
mod tags;
mod users;
