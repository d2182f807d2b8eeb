//! `connections`: which host sees which volume, and as what.

use array::ConnectionInfo;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::ids::{Ids, Kind};
use super::query::NAMES_MAX;
use super::{
    Answer, Body, Items, ItemsOf, ListParams, Listed, Listing, MaybeNamed, Named, Query, Refusals,
    Refused, Selection, answer, volumes,
};
use crate::{Interface, Shared};

/// A volume that a host may reach.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestConnection {
    /// The host.
    pub host: Named,
    /// The host group that it is connected to, if it is not the host alone.
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

impl RestConnection {
    fn new(interface: &Interface, ids: Ids, connection: ConnectionInfo) -> Self {
        let volume = interface.array.volume(&connection.volume).ok();
        Self {
            host: Named { name: connection.host },
            host_group: MaybeNamed::default(),
            lun: connection.lun,
            nsid: None,
            volume: ConnectedVolume {
                id: volume.map(|volume| ids.id(Kind::Volume, volume.id.0)),
                name: connection.volume,
            },
        }
    }
}

impl Listed for RestConnection {
    fn key(&self) -> String {
        format!("{}/{:05}", self.host.name, self.lun)
    }
}

/// Which hosts and volumes, for the description.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
#[allow(dead_code, reason = "only its description is used")]
struct PairParams {
    /// The names of hosts, comma-separated.
    host_names: Option<String>,
    /// The names of volumes, comma-separated.
    volume_names: Option<String>,
    /// The ids of volumes, comma-separated, instead.
    volume_ids: Option<String>,
}

/// Which hosts and volumes.
#[derive(Debug)]
struct Pairs {
    hosts: Vec<String>,
    volumes: Selection,
}

impl Pairs {
    fn take(query: &mut Query) -> Result<Self, Refused> {
        Ok(Self {
            hosts: query.list("host_names")?,
            volumes: Selection::take_named(query, "volume_names", "volume_ids")?,
        })
    }

    /// Refuses pairs of which one side is missing.
    fn required(query: &mut Query) -> Result<Self, Refused> {
        let pairs = Self::take(query)?;
        if pairs.hosts.is_empty() || pairs.volumes.is_empty() {
            let text = "Both `host_names` and `volume_names` are required.";
            return Err(Refused::bad("host_names", text));
        }
        Ok(pairs)
    }

    /// Each volume with each host: (volume, host).
    fn all(&self, interface: &Interface) -> Result<Vec<(String, String)>, Refused> {
        let volumes = self.volumes.names(|id| volumes::name_of(interface, id))?;
        if self.hosts.len() * volumes.len() > NAMES_MAX {
            let text = format!("At most {NAMES_MAX} connections can be changed at once.");
            return Err(Refused::bad("volume_names", text));
        }
        let of_host = |host: &String| {
            let pair = |volume: &String| (volume.clone(), host.clone());
            volumes.iter().map(pair).collect::<Vec<_>>()
        };
        Ok(self.hosts.iter().flat_map(of_host).collect())
    }

    /// The connections of these hosts and volumes; of all where none are named.
    fn connections(&self, interface: &Interface) -> Result<Vec<ConnectionInfo>, Refused> {
        let array = &interface.array;
        let volumes = self.volumes.names(|id| volumes::name_of(interface, id))?;
        let mut found = Vec::new();
        for volume in volumes.iter().filter(|_| self.hosts.is_empty()) {
            found.extend(array.connections(Some(volume), None)?);
        }
        for host in &self.hosts {
            if volumes.is_empty() {
                found.extend(array.connections(None, Some(host))?);
            }
            for volume in &volumes {
                found.extend(array.connections(Some(volume), Some(host))?);
            }
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
        let show = |connection| RestConnection::new(interface, ids, connection);
        if !pairs.hosts.is_empty() || !pairs.volumes.is_empty() {
            let found: Vec<_> = pairs.connections(interface)?.into_iter().map(show).collect();
            return listing.all(&found);
        }
        listing.pieces(|after, limit| {
            Ok(page(interface, after, limit)?.into_iter().map(show).collect())
        })
    })
    .await
}

/// Up to `limit` connections of all hosts, behind the one whose key this is.
fn page(
    interface: &Interface,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ConnectionInfo>, Refused> {
    let begun = after.and_then(|key| key.split_once('/'));
    let lun_of = |text: &str| text.parse::<u16>().ok();
    let begun = begun.and_then(|(host, lun)| Some((host, lun_of(lun)?)));
    let mut found = Vec::new();
    let mut add = |host: &str, behind: Option<u16>| {
        // A host that has gone meanwhile has no connections.
        let own = interface.array.connections(None, Some(host)).unwrap_or_default();
        let own = own.into_iter().filter(|one| behind.is_none_or(|lun| one.lun > lun));
        let room = limit - found.len();
        found.extend(own.take(room));
        found.len() == limit
    };
    let mut last = None;
    if let Some((host, lun)) = begun {
        if add(host, Some(lun)) {
            return Ok(found);
        }
        last = Some(host.to_owned());
    }
    loop {
        let hosts = interface.array.hosts(last.as_deref(), 100);
        let Some(end) = hosts.last() else { return Ok(found) };
        last = Some(end.name.clone());
        for host in hosts.iter().filter(|host| host.connection_count > 0) {
            if add(&host.name, None) {
                return Ok(found);
            }
        }
    }
}

/// How volumes are to be connected.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ConnectionPost {
    /// 1 to 16383; without it, for each the lowest that is free.
    pub lun: Option<u16>,
}

/// Connects each of the volumes to each of the hosts, or none.
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
        let made = interface.array.connect_all(&pairs.all(interface)?, asked.lun)?;
        let ids = Ids::of(&interface.array);
        Items::of(made.into_iter().map(|made| RestConnection::new(interface, ids, made)))
    })
    .await
}

/// Takes each of the volumes away from each of the hosts, or none.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/connections",
    tag = "connections",
    params(PairParams),
    responses((status = 200, body = ItemsOf<RestConnection>), Refusals)
)]
pub(super) async fn disconnect(State(interface): Shared, mut query: Query) -> Answer {
    let pairs = Pairs::required(&mut query)?;
    query.end()?;
    answer(interface, move |interface| {
        interface.array.disconnect_all(&pairs.all(interface)?)?;
        Items::of::<RestConnection>([])
    })
    .await
}
