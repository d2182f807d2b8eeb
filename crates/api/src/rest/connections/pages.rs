//! The list of all connections, page by page.

use serde_json::Value;

use super::Row;
use crate::Interface;
use crate::rest::list::Glance;

/// The number of host groups that are read at once.
const GROUPS_AT_ONCE: usize = 100;

/// Returns the key of a connection in the list. Those without a host come last; no host has an
/// empty name.
pub(super) fn key(host: Option<&str>, host_group: Option<&str>, lun: u16) -> String {
    match host {
        Some(host) => format!("{host}/{lun:05}"),
        None => format!("/{}/{lun:05}", host_group.unwrap_or_default()),
    }
}

/// The host or, for a group without hosts, the host group of a key, and the LUN.
enum Key<'a> {
    Host(&'a str, u16),
    Group(&'a str, u16),
}

impl<'a> Key<'a> {
    fn parse(key: &'a str) -> Option<Self> {
        let (name, lun) = key.rsplit_once('/')?;
        let lun = lun.parse().ok()?;
        Some(name.strip_prefix('/').map_or(Self::Host(name, lun), |name| Self::Group(name, lun)))
    }
}

impl Row {
    /// Returns the key of the connection.
    pub(super) fn key(&self) -> String {
        key(self.host.as_deref(), self.host_group.as_deref(), self.lun)
    }
}

/// Without the id of the volume.
impl Glance for Row {
    fn key(&self) -> String {
        self.key()
    }

    fn field(&self, path: &[&str]) -> Option<Value> {
        match path {
            ["lun"] => Some(self.lun.into()),
            ["host", "name"] => Some(self.host.clone().into()),
            ["host_group", "name"] => Some(self.host_group.clone().into()),
            ["volume", "name"] => Some(self.volume.as_str().into()),
            ["lun" | "host" | "host_group" | "volume", ..] => None,
            // Connections do not have this field, or have `null` there.
            _ => Some(Value::Null),
        }
    }
}

/// Returns whether a host group has hosts. A deleted group has neither hosts nor connections.
pub(super) fn has_hosts(interface: &Interface, group: &str) -> bool {
    interface.array.host_group(group).is_ok_and(|group| !group.hosts.is_empty())
}

/// Returns up to `limit` connections after the one with this key: those of all hosts, then those of
/// groups without hosts.
pub(super) fn page(interface: &Interface, after: Option<&str>, limit: usize) -> Vec<Row> {
    let (mut found, mut last) = (Vec::new(), None);
    let of_hosts =
        |begun| interface.array.connections_after(begun, limit).into_iter().map(Row::from);
    match after.and_then(Key::parse) {
        None => found.extend(of_hosts(None)),
        Some(Key::Host(host, lun)) => found.extend(of_hosts(Some((host, lun)))),
        Some(Key::Group(group, lun)) => {
            of_group_without_hosts(interface, group, Some(lun), limit, &mut found);
            last = Some(group.to_owned());
        }
    }
    while found.len() < limit {
        let groups = interface.array.host_groups(last.as_deref(), GROUPS_AT_ONCE);
        let Some(end) = groups.last() else { break };
        last = Some(end.name.clone());
        for group in groups.iter().filter(|group| group.hosts.is_empty()) {
            if found.len() < limit {
                of_group_without_hosts(interface, &group.name, None, limit, &mut found);
            }
        }
    }
    found
}

/// Adds a group's connections after a LUN, until there are `limit`. A group deleted meanwhile has
/// no connections.
fn of_group_without_hosts(
    interface: &Interface,
    group: &str,
    after: Option<u16>,
    limit: usize,
    found: &mut Vec<Row>,
) {
    if has_hosts(interface, group) {
        return;
    }
    let shared = interface.array.shared_connections(None, Some(group)).unwrap_or_default();
    let room = limit.saturating_sub(found.len());
    let behind = shared.into_iter().filter(|one| after.is_none_or(|lun| one.lun > lun));
    found.extend(behind.take(room).map(Row::without_host));
}

/// Returns the connection with this key, if it is still there.
pub(super) fn one(interface: &Interface, key: &str) -> Option<Row> {
    match Key::parse(key)? {
        Key::Host(host, lun) => interface.array.connection_at(host, lun).map(Row::from),
        Key::Group(group, lun) => {
            let mut found = Vec::new();
            of_group_without_hosts(interface, group, lun.checked_sub(1), 1, &mut found);
            found.pop().filter(|row| row.lun == lun)
        }
    }
}
