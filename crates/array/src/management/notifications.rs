//! Configuring the receivers of alerts. A change takes effect as soon as it is durable: senders
//! read [`Array::notifications`] each time.

use std::collections::BTreeSet;
use std::sync::Arc;

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::notifications::{
    Notifications, Relay, RelayChange, SYSLOG_SERVERS_MAX, SyslogServer, WATCHERS_MAX, Watcher,
};
use crate::record;
use crate::state::State;
use crate::values::name::SyslogServerName;
use crate::values::receivers::{MailAddress, SyslogUri};
use crate::values::text::shown;

/// The name of a [`Watcher`] in errors.
const WATCHER: &str = "Alert watcher";
/// The name of a [`SyslogServer`] in errors.
const SERVER: &str = "Syslog server";

impl Array {
    /// Returns the receivers of alerts. It is the same allocation until something changes.
    pub fn notifications(&self) -> Arc<Notifications> {
        self.read().notifications.clone()
    }

    /// Changes the mail relay.
    ///
    /// # Errors
    /// `invalid_relay`, and those of the store.
    pub fn change_relay(&self, change: RelayChange) -> Result<Relay, Error> {
        let changed = self.change_notifications(|all| {
            all.relay = all.relay.changed(change)?;
            Ok(())
        })?;
        Ok(changed.relay.clone())
    }

    /// Adds alert watchers: all of them or none.
    ///
    /// # Errors
    /// `invalid_address`, `receiver_exists`, `limit_reached`, and those of the store.
    pub fn create_watchers(&self, names: &[String], is_enabled: bool) -> Result<(), Error> {
        let addresses = names.iter().map(|name| MailAddress::new(name));
        let addresses = addresses.collect::<Result<Vec<_>, _>>()?;
        self.change_notifications(|all| {
            for address in addresses {
                let (key, name) = (address.key(), address.as_str().to_owned());
                let watcher = Watcher { address, is_enabled };
                if all.watchers.insert(key, watcher).is_some() {
                    return Err(Error::ReceiverExists { what: WATCHER, name });
                }
            }
            match all.watchers.len() > WATCHERS_MAX {
                true => Err(Error::Limit { what: "alert watchers", limit: WATCHERS_MAX }),
                false => Ok(()),
            }
        })
        .map(drop)
    }

    /// Enables or disables mail to watchers.
    ///
    /// # Errors
    /// `no_such_receiver`, and those of the store.
    pub fn enable_watchers(&self, names: &[String], is_enabled: bool) -> Result<(), Error> {
        self.change_notifications(|all| {
            for name in names {
                let watcher = all.watchers.get_mut(&name.to_ascii_lowercase());
                watcher.ok_or_else(|| missing(WATCHER, name))?.is_enabled = is_enabled;
            }
            Ok(())
        })
        .map(drop)
    }

    /// Removes watchers.
    ///
    /// # Errors
    /// `no_such_receiver`, and those of the store.
    pub fn delete_watchers(&self, names: &[String]) -> Result<(), Error> {
        self.change_notifications(|all| {
            for key in keys(names) {
                all.watchers.remove(&key).ok_or_else(|| missing(WATCHER, &key))?;
            }
            Ok(())
        })
        .map(drop)
    }

    /// Adds syslog servers, each with this URI: all of them or none.
    ///
    /// # Errors
    /// `invalid_name`, `receiver_exists`, `limit_reached`, and those of the store.
    pub fn create_syslog_servers(&self, names: &[String], uri: &SyslogUri) -> Result<(), Error> {
        let names = names.iter().map(|name| SyslogServerName::new(name));
        let names = names.collect::<Result<Vec<_>, _>>()?;
        self.change_notifications(|all| {
            for name in names {
                let (key, shown) = (name.key(), name.to_string());
                let server = SyslogServer { name, uri: uri.clone() };
                if all.servers.insert(key, server).is_some() {
                    return Err(Error::ReceiverExists { what: SERVER, name: shown });
                }
            }
            match all.servers.len() > SYSLOG_SERVERS_MAX {
                true => Err(Error::Limit { what: "syslog servers", limit: SYSLOG_SERVERS_MAX }),
                false => Ok(()),
            }
        })
        .map(drop)
    }

    /// Gives syslog servers another URI.
    ///
    /// # Errors
    /// `no_such_receiver`, and those of the store.
    pub fn move_syslog_servers(&self, names: &[String], uri: &SyslogUri) -> Result<(), Error> {
        self.change_notifications(|all| {
            for name in names {
                let server = all.servers.get_mut(&name.to_ascii_lowercase());
                server.ok_or_else(|| missing(SERVER, name))?.uri = uri.clone();
            }
            Ok(())
        })
        .map(drop)
    }

    /// Removes syslog servers.
    ///
    /// # Errors
    /// `no_such_receiver`, and those of the store.
    pub fn delete_syslog_servers(&self, names: &[String]) -> Result<(), Error> {
        self.change_notifications(|all| {
            for key in keys(names) {
                all.servers.remove(&key).ok_or_else(|| missing(SERVER, &key))?;
            }
            Ok(())
        })
        .map(drop)
    }

    /// Commits a change to a copy of the receivers. If nothing changes, nothing is written.
    pub(super) fn change_notifications(
        &self,
        change: impl FnOnce(&mut Notifications) -> Result<(), Error>,
    ) -> Result<Arc<Notifications>, Error> {
        let plan = |state: &State| {
            let mut all = Notifications::clone(&state.notifications);
            change(&mut all)?;
            let mut commit = Change::default();
            if all == *state.notifications {
                return Ok((commit, state.notifications.clone()));
            }
            let row = (record::notifications_key(), Some(record::notifications(&all)?));
            commit.config.push(row);
            Ok((commit, Arc::new(all)))
        };
        self.change(plan, |state, all| {
            state.notifications = all.clone();
            all
        })
    }
}

/// Returns the names in lower case, without duplicates.
pub(super) fn keys(names: &[String]) -> BTreeSet<String> {
    names.iter().map(|name| name.to_ascii_lowercase()).collect()
}

pub(super) fn missing(what: &'static str, name: &str) -> Error {
    Error::NoSuchReceiver { what, name: shown(name) }
}
