//! `connections`: which hosts see which volumes, and at which LUNs.

mod pages;

use std::collections::HashSet;

use array::{CONNECTIONS_SHOWN_MAX, ConnectionInfo, Looked, SharedConnectionInfo};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::members::Only;
use super::query::NAMES_MAX;
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, Listing, MaybeNamed, Query, Refusals,
    Refused, Selection, Worth, answer, volumes,
};
use crate::{Interface, Shared};

use pages::{has_hosts, key, one, page};

/// The maximum pairs of a volume and a host, or a host group, that one request looks up.
const PAIRS_SHOWN_MAX: usize = 10_000;
/// The maximum number of rows in the response to a request that connects.
const CONNECTIONS_ANSWERED_MAX: usize = 5_000;

/// A volume that a host may reach.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestConnection {
    /// The host; `{}` if the host group is empty.
    pub host: MaybeNamed,
    /// The host group through which it is connected, unless it is connected to the host alone.
    pub host_group: MaybeNamed,
    /// The LUN under which the host sees it.
    pub lun: u16,
    /// The namespace of NVMe under which the host sees it: `null`.
    pub nsid: Option<u32>,
    /// The volume.
    pub volume: ConnectedVolume,
}

/// A volume that is connected.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConnectedVolume {
    /// The volume's name.
    pub name: String,
    /// Its id.
    pub id: Option<String>,
}

/// A connection of a host, its own or its group's, or of a group without hosts.
#[derive(Clone, Debug)]
struct Row {
    host: Option<String>,
    host_group: Option<String>,
    lun: u16,
    volume: String,
}

impl From<ConnectionInfo> for Row {
    fn from(connection: ConnectionInfo) -> Self {
        let ConnectionInfo { volume, host, host_group, lun } = connection;
        Self { host: Some(host), host_group, lun, volume }
    }
}

impl Row {
    /// Returns the connection of a group without hosts.
    fn without_host(connection: SharedConnectionInfo) -> Self {
        let SharedConnectionInfo { volume, host_group, lun } = connection;
        Self { host: None, host_group: Some(host_group), lun, volume }
    }

    /// Returns a group's connection as each of these hosts sees it; a single row without hosts.
    fn shared(hosts: &[String], connection: SharedConnectionInfo) -> impl Iterator<Item = Self> {
        let alone = hosts.is_empty().then(|| Self::without_host(connection.clone()));
        let SharedConnectionInfo { volume, host_group, lun } = connection;
        let row = move |host: &String| Self {
            host: Some(host.clone()),
            host_group: Some(host_group.clone()),
            lun,
            volume: volume.clone(),
        };
        hosts.iter().map(row).chain(alone)
    }
}

/// Rows, up to the limit of a list.
#[derive(Default)]
struct Rows(Vec<Row>);

impl Rows {
    fn extend(&mut self, rows: impl IntoIterator<Item = Row>) -> Result<(), Refused> {
        for row in rows {
            if self.0.len() == CONNECTIONS_SHOWN_MAX {
                let text = format!(
                    "There are more than {CONNECTIONS_SHOWN_MAX} connections. Name fewer hosts or \
                     volumes, or read all of them page by page."
                );
                return Err(Refused::bad("", text));
            }
            self.0.push(row);
        }
        Ok(())
    }
}

impl RestConnection {
    fn new(interface: &Interface, ids: Ids, row: Row) -> Self {
        let volume = interface.array.volume_id(&row.volume);
        Self {
            host: MaybeNamed { name: row.host },
            host_group: MaybeNamed { name: row.host_group },
            lun: row.lun,
            nsid: None,
            volume: ConnectedVolume {
                id: volume.map(|id| ids.id(Kind::Volume, id.0)),
                name: row.volume,
            },
        }
    }
}

impl Listed for RestConnection {
    fn key(&self) -> String {
        key(self.host.name.as_deref(), self.host_group.name.as_deref(), self.lun)
    }
}

/// Which hosts and volumes, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct PairParams {
    /// The names of hosts, comma-separated.
    host_names: Option<String>,
    /// The names of host groups, comma-separated: what is connected to all of their hosts.
    host_group_names: Option<String>,
    /// The names of volumes, comma-separated.
    volume_names: Option<String>,
    /// The ids of volumes, comma-separated, instead.
    volume_ids: Option<String>,
}

/// The hosts, host groups and volumes of a request.
#[derive(Debug)]
struct Pairs {
    hosts: Vec<String>,
    groups: Vec<String>,
    volumes: Selection,
}

impl Pairs {
    fn take(query: &mut Query) -> Result<Self, Refused> {
        Ok(Self {
            hosts: query.list("host_names")?,
            groups: query.list("host_group_names")?,
            volumes: Selection::take_named(query, "volume_names", "volume_ids")?,
        })
    }

    /// Refuses pairs with a side that is missing or given twice.
    fn required(query: &mut Query) -> Result<Self, Refused> {
        let pairs = Self::take(query)?;
        if pairs.hosts.is_empty() == pairs.groups.is_empty() || pairs.volumes.is_empty() {
            let text = "`volume_names` is required, and one of `host_names` and \
                        `host_group_names`.";
            return Err(Refused::bad("host_names", text));
        }
        Ok(pairs)
    }

    /// Drops duplicate names: clients take them from the rows of a list, where a volume connected
    /// to a host group appears once for each of its hosts.
    fn distinct(mut self) -> Self {
        for names in [&mut self.volumes.names, &mut self.hosts, &mut self.groups] {
            let mut seen = HashSet::new();
            names.retain(|name| seen.insert(name.to_ascii_lowercase()));
        }
        self
    }

    /// Returns each volume with each host, or host group: (volume, host).
    fn all(&self, interface: &Interface) -> Result<Vec<(String, String)>, Refused> {
        let volumes = self.volumes.names(|id| volumes::name_of(interface, id))?;
        // One of the two is empty.
        let hosts = || self.hosts.iter().chain(&self.groups);
        if hosts().count() * volumes.len() > NAMES_MAX {
            let text = format!("At most {NAMES_MAX} connections can be changed at once.");
            return Err(Refused::bad("volume_names", text));
        }
        let of_host = |host: &String| {
            let pair = |volume: &String| (volume.clone(), host.clone());
            volumes.iter().map(pair).collect::<Vec<_>>()
        };
        Ok(hosts().flat_map(of_host).collect())
    }

    /// Returns the connections of these hosts, host groups and volumes.
    fn connections(&self, interface: &Interface) -> Result<Vec<Row>, Refused> {
        let array = &interface.array;
        let volumes = self.volumes.names(|id| volumes::name_of(interface, id))?;
        if volumes.len().max(1) * (self.hosts.len() + self.groups.len()).max(1) > PAIRS_SHOWN_MAX {
            let text = format!("At most {PAIRS_SHOWN_MAX} pairs can be listed at once.");
            return Err(Refused::bad("volume_names", text));
        }
        let volumes: Vec<Option<&str>> = match volumes.is_empty() {
            true => vec![None],
            false => volumes.iter().map(|name| Some(name.as_str())).collect(),
        };
        if !self.groups.is_empty() {
            return self.of_groups(interface, &volumes);
        }
        let mut found = Rows::default();
        for volume in volumes {
            for host in &self.hosts {
                found.extend(array.connections(volume, Some(host))?.into_iter().map(Row::from))?;
            }
            if self.hosts.is_empty() {
                found.extend(array.connections(volume, None)?.into_iter().map(Row::from))?;
                for shared in array.shared_connections(volume, None)? {
                    if !has_hosts(interface, &shared.host_group) {
                        found.extend([Row::without_host(shared)])?;
                    }
                }
            }
        }
        Ok(found.0)
    }

    /// Returns the connections of these groups, as seen by the named hosts, or by all.
    fn of_groups(
        &self,
        interface: &Interface,
        volumes: &[Option<&str>],
    ) -> Result<Vec<Row>, Refused> {
        let only = Only::of(&self.hosts);
        let mut groups = Vec::new();
        for group in &self.groups {
            let mut info = interface.array.host_group(group)?;
            let is_alone = info.hosts.is_empty();
            info.hosts.retain(|host| only.has(host));
            // If none of the named hosts is in the group, there is nothing to show.
            if !info.hosts.is_empty() || (is_alone && self.hosts.is_empty()) {
                groups.push((group, info.hosts));
            }
        }
        let mut found = Rows::default();
        for volume in volumes {
            for (group, hosts) in &groups {
                for shared in interface.array.shared_connections(*volume, Some(group))? {
                    found.extend(Row::shared(hosts, shared))?;
                }
            }
        }
        Ok(found.0)
    }
}

/// Lists all connections, or those of some hosts and volumes.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/connections",
    tag = "connections",
    params(PairParams, ListParams),
    responses((status = 200, body = ItemsOf<RestConnection>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let (pairs, listing) = (Pairs::take(&mut query)?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let ids = Ids::of(&interface.array);
        let show = |row| RestConnection::new(interface, ids, row);
        let is_some = !pairs.hosts.is_empty() || !pairs.groups.is_empty();
        if is_some || !pairs.volumes.is_empty() {
            let found: Vec<_> = pairs.connections(interface)?.into_iter().map(show).collect();
            return listing.all(&found);
        }
        let piece = |after: Option<&str>, limit, is_worth: Worth<'_>| {
            let rows = page(interface, after, limit);
            let next = rows.last().filter(|_| rows.len() == limit).map(Row::key);
            let worthy = rows.into_iter().filter(|row| is_worth(row));
            Ok(Looked { items: worthy.map(show).collect(), next })
        };
        listing.glanced(piece, |key| one(interface, key).map(show))
    })
    .await
}

/// How volumes are connected.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionPost {
    /// 1 to 16383; by default the lowest free one for a host, and the next one from 254 down for a
    /// host group, of those that were not released within the last four hours.
    pub lun: Option<u16>,
}

/// Connects each of the volumes to each of the hosts, or to each of the host groups; all or none.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/connections",
    tag = "connections",
    params(PairParams),
    request_body = ConnectionPost,
    responses((status = 200, body = ItemsOf<RestConnection>), Refusals)
)]
pub(super) async fn connect(
    State(interface): Shared,
    mut query: Query,
    Body(asked): Body<ConnectionPost>,
) -> Answer {
    let pairs = Pairs::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        let (array, all) = (&interface.array, pairs.all(interface)?);
        let rows: Vec<Row> = if pairs.groups.is_empty() {
            array.connect_all(&all, asked.lun)?.into_iter().map(Row::from).collect()
        } else {
            let mut rows = Rows::default();
            for made in array.connect_host_groups(&all, asked.lun)? {
                let group = array.host_group(&made.host_group);
                let hosts = group.map(|group| group.hosts).unwrap_or_default();
                // All of them are connected; those that do not fit here are in the list.
                let room = CONNECTIONS_ANSWERED_MAX - rows.0.len();
                rows.extend(Row::shared(&hosts, made).take(room))?;
            }
            rows.0
        };
        let ids = Ids::of(array);
        Items::of(rows.into_iter().map(|row| RestConnection::new(interface, ids, row)))
    })
    .await
}

/// Disconnects each of the volumes from each of the hosts, or host groups; all or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/connections",
    tag = "connections",
    params(PairParams),
    responses((status = 200, body = ItemsOf<RestConnection>), Refusals)
)]
pub(super) async fn disconnect(State(interface): Shared, mut query: Query) -> Answer {
    let pairs = Pairs::required(&mut query)?.distinct();
    query.end()?;
    answer(interface, move |interface| {
        let all = pairs.all(interface)?;
        match pairs.groups.is_empty() {
            true => interface.array.disconnect_all(&all)?,
            false => interface.array.disconnect_host_groups(&all)?,
        }
        Items::of::<RestConnection>([])
    })
    .await
}
