//! The record of the receivers of alerts: one for all, because there are few.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode};
use super::snmp::SnmpManagerRow;
use crate::error::Error;
use crate::objects::notifications::{
    Encryption, Notifications, Relay, RelayPassword, SYSLOG_SERVERS_MAX, SyslogServer,
    WATCHERS_MAX, Watcher,
};
use crate::objects::snmp::SNMP_MANAGERS_MAX;
use crate::values::name::SyslogServerName;
use crate::values::receivers::{MailAddress, SyslogUri};

#[derive(Serialize, Deserialize)]
pub(super) struct NotificationsRow {
    v: u8,
    #[serde(default)]
    relay: RelayRow,
    #[serde(default)]
    watchers: Vec<WatcherRow>,
    #[serde(default)]
    syslog_servers: Vec<SyslogServerRow>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    snmp_managers: Vec<SnmpManagerRow>,
    #[serde(default)]
    snmp_boots: u32,
}

/// The form of the record. Empty fields are omitted.
#[derive(Default, Serialize, Deserialize)]
#[serde(default)]
struct RelayRow {
    #[serde(skip_serializing_if = "String::is_empty")]
    host: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    sender_domain: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    sender_username: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    user: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    password: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    encryption: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    subject_prefix: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    body_prefix: String,
}

#[derive(Serialize, Deserialize)]
struct WatcherRow {
    address: String,
    enabled: bool,
}

#[derive(Serialize, Deserialize)]
struct SyslogServerRow {
    name: String,
    uri: String,
}

pub(crate) fn notifications_key() -> Vec<u8> {
    b"N".to_vec()
}

pub(crate) fn notifications(all: &Notifications) -> Result<Vec<u8>, Error> {
    let Relay { host, sender_domain, sender_username, user, .. } = all.relay.clone();
    let Relay { password, encryption, subject_prefix, body_prefix, .. } = all.relay.clone();
    let (password, encryption) = (password.expose().to_owned(), encryption.name().to_owned());
    let watcher = |watcher: &Watcher| WatcherRow {
        address: watcher.address.as_str().to_owned(),
        enabled: watcher.is_enabled,
    };
    let server = |server: &SyslogServer| SyslogServerRow {
        name: server.name.to_string(),
        uri: server.uri.to_string(),
    };
    encode(&NotificationsRow {
        v: VERSION,
        relay: RelayRow {
            host,
            sender_domain,
            sender_username,
            user,
            password,
            encryption,
            subject_prefix,
            body_prefix,
        },
        watchers: all.watchers().map(watcher).collect(),
        syslog_servers: all.servers().map(server).collect(),
        snmp_managers: all.managers().map(SnmpManagerRow::from).collect(),
        snmp_boots: all.snmp_boots,
    })
}

pub(super) fn decode_notifications(
    key: &[u8],
    row: NotificationsRow,
) -> Result<Notifications, Error> {
    let RelayRow { host, sender_domain, sender_username, user, .. } = row.relay;
    let relay = Relay {
        host,
        sender_domain,
        sender_username,
        user,
        password: RelayPassword::new(&row.relay.password),
        encryption: Encryption::parse(&row.relay.encryption)?,
        subject_prefix: row.relay.subject_prefix,
        body_prefix: row.relay.body_prefix,
    };
    relay.check()?;
    let watcher = |row: WatcherRow| {
        let address = MailAddress::new(&row.address)?;
        Ok((address.key(), Watcher { address, is_enabled: row.enabled }))
    };
    let server = |row: SyslogServerRow| {
        let name = SyslogServerName::new(&row.name)?;
        Ok((name.key(), SyslogServer { name, uri: SyslogUri::new(&row.uri)? }))
    };
    let (watcher_count, server_count) = (row.watchers.len(), row.syslog_servers.len());
    let watchers = row.watchers.into_iter().map(watcher);
    let watchers = watchers.collect::<Result<BTreeMap<_, _>, Error>>()?;
    let servers = row.syslog_servers.into_iter().map(server);
    let servers = servers.collect::<Result<BTreeMap<_, _>, Error>>()?;
    let manager_count = row.snmp_managers.len();
    let managers = row.snmp_managers.into_iter().map(|row| {
        let manager = row.manager()?;
        Ok((manager.name.key(), manager))
    });
    let managers = managers.collect::<Result<BTreeMap<_, _>, Error>>()?;
    let found = (watchers.len(), servers.len(), managers.len());
    let is_whole = found == (watcher_count, server_count, manager_count);
    let is_bounded = watcher_count <= WATCHERS_MAX
        && server_count <= SYSLOG_SERVERS_MAX
        && manager_count <= SNMP_MANAGERS_MAX;
    if !is_whole || !is_bounded {
        return Err(damaged(key, "too many receivers, or a duplicate"));
    }
    Ok(Notifications { relay, watchers, servers, managers, snmp_boots: row.snmp_boots })
}
