//! `/v1/initiators`: initiators that logged in without belonging to a host, or were refused.
//! A client that creates hosts can offer these names.

use std::collections::BTreeMap;

use array::InitiatorName;
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Interface, Refusal, Shared, blocking};

/// The last login of an initiator that was refused.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RefusedLogin {
    /// How often it was refused since the array was started.
    pub count: u64,
    /// The time of the last refusal, in milliseconds since 1970.
    pub time_ms: u64,
    /// The address from which it tried.
    pub address: String,
    /// Why it was refused, for people.
    pub why: String,
    /// Status class and detail of the response (RFC 7143, 11.13.5): 0x0201 it failed CHAP, 0x0202
    /// it belongs to no host or must use CHAP, 0x0203 it named another target.
    pub status: u16,
}

/// An initiator that tried to log in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Initiator {
    /// Its iSCSI name, as in its login.
    pub name: String,
    /// Its host; `null` if it belongs to none.
    #[schema(required = true)]
    pub host: Option<String>,
    /// The number of its sessions now. An initiator without a host has sessions from before its
    /// host was deleted.
    pub sessions: u64,
    /// The last refused login since the array was started, if any.
    #[schema(required = true)]
    pub refused: Option<RefusedLogin>,
}

/// Initiators without a host, and those that were refused.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct Initiators {
    /// In the order of their names.
    pub initiators: Vec<Initiator>,
}

/// Returns all initiators without a host, and the refused ones. Leaves out names that are invalid
/// for a host: anyone may send anything in a login.
fn strangers(interface: &Interface) -> Vec<Initiator> {
    let mut found: BTreeMap<String, Initiator> = BTreeMap::new();
    for session in interface.watch.sessions() {
        found.entry(session.initiator).or_default().sessions += 1;
    }
    for (name, refused) in interface.watch.refused_logins() {
        found.entry(name).or_default().refused = Some(refused);
    }
    let named = found.into_iter().filter(|(name, _)| InitiatorName::new(name).is_ok());
    let all = named.map(|(name, initiator)| {
        let host = interface.array.initiator(&name).map(|found| found.host);
        Initiator { name, host, ..initiator }
    });
    all.filter(|initiator| initiator.host.is_none() || initiator.refused.is_some()).collect()
}

/// Lists initiators that are logged in without a host, or were refused: of the latter, the last
/// 256.
#[utoipa::path(get, path = "/v1/initiators", responses(
    (status = 200, body = Initiators),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(State(interface): Shared) -> Result<Json<Initiators>, ApiError> {
    blocking(interface, |interface| Ok(Json(Initiators { initiators: strangers(interface) }))).await
}
