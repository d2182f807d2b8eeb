//! `/v1/host-sessions`: which hosts are logged in, at which portals, with which parameters.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Interface, Refusal, Shared, blocking};

/// A session of a host.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostSession {
    /// The iSCSI name of the initiator.
    pub initiator: String,
    /// Its host; `null` if the host was deleted meanwhile.
    #[schema(required = true)]
    pub host: Option<String>,
    /// The initiator's part of the session's name, in hex.
    pub isid: String,
    /// The number of the array's portal, from 1.
    pub portal: u16,
    /// Its address.
    pub portal_address: String,
    /// The address of the host.
    pub peer: String,
    /// The negotiated parameters.
    pub terms: SessionTerms,
    /// Commands received over it.
    pub commands: u64,
    /// The most commands that were in flight on one of its connections.
    pub queue_most: u64,
}

/// The parameters negotiated at login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct SessionTerms {
    /// Whether headers carry a CRC-32C.
    pub header_digest: bool,
    /// Whether data carries one.
    pub data_digest: bool,
    /// Whether the target must ask for all data with R2T (InitialR2T).
    pub initial_r2t: bool,
    /// Whether data may come with its command (ImmediateData).
    pub immediate_data: bool,
    /// MaxBurstLength, in bytes.
    pub burst_bytes: u32,
    /// FirstBurstLength, in bytes.
    pub first_burst_bytes: u32,
    /// The most data in one PDU to the host, in bytes.
    pub send_segment_bytes: u32,
    /// The most commands in flight in the session.
    pub commands: u32,
}

/// All sessions that carry commands.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct HostSessions {
    /// In the order of initiators and portals.
    pub sessions: Vec<HostSession>,
}

/// Returns the sessions, with the names of their hosts.
pub(crate) fn named(interface: &Interface) -> Vec<HostSession> {
    let mut sessions = interface.watch.sessions();
    for session in &mut sessions {
        session.host = interface.array.initiator(&session.initiator).map(|found| found.host);
        let mut portals = interface.facts.port_ids.iter().zip(&interface.facts.portals);
        let address = portals.find(|(id, _)| **id == session.portal).map(|(_, address)| address);
        session.portal_address = address.cloned().unwrap_or_default();
    }
    sessions
}

/// Lists the sessions of hosts.
#[utoipa::path(get, path = "/v1/host-sessions", responses(
    (status = 200, body = HostSessions),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(State(interface): Shared) -> Result<Json<HostSessions>, ApiError> {
    blocking(interface, |interface| Ok(Json(HostSessions { sessions: named(interface) }))).await
}
