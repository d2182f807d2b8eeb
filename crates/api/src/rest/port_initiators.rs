//! `ports/initiators`: the initiators that are or were logged in, and the ports of the array.

use std::collections::BTreeSet;

use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::hardware::{RestPort, numbered_ports};
use super::{
    Answer, ItemsOf, ListParams, Listed, Listing, NameParams, Query, Refusals, Refused, answer,
};
use crate::{HostSession, Interface, Shared};

/// An initiator at a port of the array.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestPortInitiator {
    /// The initiator.
    pub initiator: RestInitiator,
    /// The port at which it is or was logged in.
    pub target: RestPort,
}

/// An initiator.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestInitiator {
    /// Its iSCSI name.
    #[schema(required = true)]
    pub iqn: Option<String>,
    /// Its NVMe name: `null`.
    #[schema(required = true)]
    pub nqn: Option<String>,
    /// The address from which it is logged in, or was last, as `ADDRESS:PORT`.
    #[schema(required = true)]
    pub portal: Option<String>,
    /// Its Fibre Channel name: `null`.
    #[schema(required = true)]
    pub wwn: Option<String>,
}

impl Listed for RestPortInitiator {
    fn key(&self) -> String {
        let iqn = self.initiator.iqn.as_deref().unwrap_or_default();
        let portal = self.initiator.portal.as_deref().unwrap_or_default();
        format!("{iqn}\n{}\n{portal}", self.target.name)
    }
}

/// Lists initiators that are logged in, or were since the array was started: at each port, from
/// where. `names` are those of ports.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/ports/initiators",
    tag = "hardware",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestPortInitiator>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, mut query: Query) -> Answer {
    let (names, listing) = (query.list("names")?, Listing::take(&mut query)?);
    query.end()?;
    answer(interface, move |interface| {
        let mut ports = numbered_ports(interface);
        let is_there =
            |name: &&String| ports.iter().any(|(_, port)| port.name.eq_ignore_ascii_case(name));
        if let Some(missing) = names.iter().find(|name| !is_there(name)) {
            return Err(Refused::missing(missing));
        }
        let is_named = |port: &RestPort| names.iter().any(|it| it.eq_ignore_ascii_case(&port.name));
        ports.retain(|(_, port)| names.is_empty() || is_named(port));
        let mut found: Vec<_> =
            sessions(interface).into_iter().filter_map(|session| shown(session, &ports)).collect();
        found.sort_by_cached_key(Listed::key);
        listing.all(&found)
    })
    .await
}

/// Returns the current sessions; and for initiators that have none at a port, the last one there.
fn sessions(interface: &Interface) -> Vec<HostSession> {
    let mut sessions = interface.watch.sessions();
    let place = |session: &HostSession| (session.initiator.clone(), session.portal);
    let current: BTreeSet<_> = sessions.iter().map(place).collect();
    let ended = interface.watch.ended_sessions().into_iter().map(|(_, session)| session);
    sessions.extend(ended.filter(|session| !current.contains(&place(session))));
    sessions
}

fn shown(session: HostSession, ports: &[(u16, RestPort)]) -> Option<RestPortInitiator> {
    let (_, target) = ports.iter().find(|(id, _)| *id == session.portal)?;
    let portal = Some(session.peer).filter(|peer| !peer.is_empty());
    let initiator = RestInitiator { iqn: Some(session.initiator), nqn: None, portal, wwn: None };
    Some(RestPortInitiator { initiator, target: target.clone() })
}
