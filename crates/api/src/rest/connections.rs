//! `connections`: which host sees which volume, and as what.

use std::collections::HashSet;

use array::{ConnectionInfo, SharedConnectionInfo};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::query::NAMES_MAX;
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, Listing, MaybeNamed, Query, Refusals,
    Refused, Selection, answer, volumes,
};
use crate::{Interface, Shared};

/// A volume that a host may reach.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestConnection {
    /// The host; none where the host group has none.
    pub host: MaybeNamed,
    /// The host group by which it is connected, if it is not the host alone.
    pub host_group: MaybeNamed,
    /// The LUN under which the host sees it.
    pub lun: u16,
    /// The namespace of NVMe under which the host sees it: none.
    pub nsid: Option<u32>,
    /// The volume.
    pub volume: ConnectedVolume,
}

/// A volume that is connected.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct ConnectedVolume {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: Option<String>,
}

/// A connection of a host, by itself or by its group, or of a group without hosts.
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
    /// A group's connection as its hosts see it; one row where it has none.
    fn shared(interface: &Interface, connection: SharedConnectionInfo) -> Vec<Self> {
        let SharedConnectionInfo { volume, host_group, lun } = connection;
        let hosts = interface.array.host_group(&host_group).map(|group| group.hosts);
        let mut hosts: Vec<_> = hosts.unwrap_or_default().into_iter().map(Some).collect();
        if hosts.is_empty() {
            hosts.push(None);
        }
        let row =
            |host| Self { host, host_group: Some(host_group.clone()), lun, volume: volume.clone() };
        hosts.into_iter().map(row).collect()
    }
}

impl RestConnection {
    fn new(interface: &Interface, ids: Ids, row: Row) -> Self {
        let volume = interface.array.volume(&row.volume).ok();
        Self {
            host: MaybeNamed { name: row.host },
            host_group: MaybeNamed { name: row.host_group },
            lun: row.lun,
            nsid: None,
            volume: ConnectedVolume {
                id: volume.map(|volume| ids.id(Kind::Volume, volume.id.0)),
                name: row.volume,
            },
        }
    }
}

impl Listed for RestConnection {
    fn key(&self) -> String {
        // Those without a host come last; no name of a host is empty.
        match (&self.host.name, &self.host_group.name) {
            (Some(host), _) => format!("{host}/{:05}", self.lun),
            (None, group) => format!("/{}/{:05}", group.as_deref().unwrap_or_default(), self.lun),
        }
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

/// Which hosts and volumes.
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

    /// Refuses pairs of which one side is missing, or there are two.
    fn required(query: &mut Query) -> Result<Self, Refused> {
        let pairs = Self::take(query)?;
        if pairs.hosts.is_empty() == pairs.groups.is_empty() || pairs.volumes.is_empty() {
            let text = "`volume_names` is required, and one of `host_names` and \
                        `host_group_names`.";
            return Err(Refused::bad("host_names", text));
        }
        Ok(pairs)
    }

    /// Each name once: clients take them from the rows of a list, in which a volume that a host
    /// group sees stands for each of its hosts.
    fn distinct(mut self) -> Self {
        for names in [&mut self.volumes.names, &mut self.hosts, &mut self.groups] {
            let mut seen = HashSet::new();
            names.retain(|name| seen.insert(name.to_ascii_lowercase()));
        }
        self
    }

    /// Each volume with each host, or host group: (volume, host).
    fn all(&self, interface: &Interface) -> Result<Vec<(String, String)>, Refused> {
        let volumes = self.volumes.names(|id| volumes::name_of(interface, id))?;
        // One of them is empty.
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

    /// The connections of these hosts, host groups and volumes.
    fn connections(&self, interface: &Interface) -> Result<Vec<Row>, Refused> {
        let array = &interface.array;
        let volumes = self.volumes.names(|id| volumes::name_of(interface, id))?;
        let volumes: Vec<Option<&str>> = match volumes.is_empty() {
            true => vec![None],
            false => volumes.iter().map(|name| Some(name.as_str())).collect(),
        };
        let mut found = Vec::new();
        for volume in volumes {
            if !self.groups.is_empty() {
                found.extend(self.of_groups(interface, volume)?);
                continue;
            }
            for host in &self.hosts {
                found.extend(array.connections(volume, Some(host))?.into_iter().map(Row::from));
            }
            if self.hosts.is_empty() {
                found.extend(array.connections(volume, None)?.into_iter().map(Row::from));
                let shared = array.shared_connections(volume, None)?.into_iter();
                let rows = shared.flat_map(|one| Row::shared(interface, one));
                found.extend(rows.filter(|row| row.host.is_none()));
            }
        }
        Ok(found)
    }

    /// What is connected to these groups, as the hosts see it that are named, or all.
    fn of_groups(&self, interface: &Interface, volume: Option<&str>) -> Result<Vec<Row>, Refused> {
        let is_wanted = |row: &Row| {
            let is_it =
                |name: &String| row.host.as_ref().is_some_and(|h| h.eq_ignore_ascii_case(name));
            self.hosts.is_empty() || self.hosts.iter().any(is_it)
        };
        let mut found = Vec::new();
        for group in &self.groups {
            let shared = interface.array.shared_connections(volume, Some(group))?;
            let rows = shared.into_iter().flat_map(|one| Row::shared(interface, one));
            found.extend(rows.filter(is_wanted));
        }
        Ok(found)
    }
}

/// All connections, or those of some hosts and volumes.
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
        listing.pieces(|after, limit| {
            Ok(page(interface, after, limit)?.into_iter().map(show).collect())
        })
    })
    .await
}

/// Up to `limit` connections of all hosts, and then of groups without hosts, behind the one whose
/// key this is.
fn page(interface: &Interface, after: Option<&str>, limit: usize) -> Result<Vec<Row>, Refused> {
    let rows_after = after.filter(|key| key.starts_with('/'));
    let mut found = match rows_after {
        None => hosts_page(interface, after, limit),
        Some(_) => Vec::new(),
    };
    if found.len() < limit {
        let room = limit - found.len();
        let shared = interface.array.shared_connections(None, None)?.into_iter();
        let rows = shared.flat_map(|one| Row::shared(interface, one));
        let rows = rows.filter(|row| row.host.is_none());
        let key = |row: &Row| {
            format!("/{}/{:05}", row.host_group.as_deref().unwrap_or_default(), row.lun)
        };
        let mut rows: Vec<_> = rows.map(|row| (key(&row), row)).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        let behind =
            rows.into_iter().filter(|(key, _)| rows_after.is_none_or(|a| key.as_str() > a));
        found.extend(behind.take(room).map(|(_, row)| row));
    }
    Ok(found)
}

fn hosts_page(interface: &Interface, after: Option<&str>, limit: usize) -> Vec<Row> {
    let begun = after.and_then(|key| key.split_once('/'));
    let lun_of = |text: &str| text.parse::<u16>().ok();
    let begun = begun.and_then(|(host, lun)| Some((host, lun_of(lun)?)));
    let mut found = Vec::new();
    let mut add = |host: &str, behind: Option<u16>| {
        // A host that has gone meanwhile has no connections.
        let own = interface.array.connections(None, Some(host)).unwrap_or_default();
        let own = own.into_iter().filter(|one| behind.is_none_or(|lun| one.lun > lun));
        let room = limit - found.len();
        found.extend(own.take(room).map(Row::from));
        found.len() == limit
    };
    let mut last = None;
    if let Some((host, lun)) = begun {
        if add(host, Some(lun)) {
            return found;
        }
        last = Some(host.to_owned());
    }
    loop {
        let hosts = interface.array.hosts(last.as_deref(), 100);
        let Some(end) = hosts.last() else { return found };
        last = Some(end.name.clone());
        for host in hosts.iter().filter(|host| host.connection_count > 0) {
            if add(&host.name, None) {
                return found;
            }
        }
    }
}

/// How volumes are to be connected.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionPost {
    /// 1 to 16383; without it, for each of a host the lowest that is free, of a host group the next
    /// one from 254 down.
    pub lun: Option<u16>,
}

/// Connects each of the volumes to each of the hosts, or to each of the host groups, or none.
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
            let made = array.connect_host_groups(&all, asked.lun)?;
            made.into_iter().flat_map(|one| Row::shared(interface, one)).collect()
        };
        let ids = Ids::of(array);
        Items::of(rows.into_iter().map(|row| RestConnection::new(interface, ids, row)))
    })
    .await
}

/// Takes each of the volumes away from each of the hosts, or host groups, or none.
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
