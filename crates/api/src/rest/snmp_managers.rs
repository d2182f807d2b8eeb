//! `snmp-managers`: the recipients of alerts by SNMP, and `snmp-agents`: the engine id of the
//! array. The pool stores them, and secrets are never shown. The array only sends; it answers no
//! SNMP requests.

use std::sync::Arc;

use array::{Array, KeptPassword, SnmpAuth, SnmpManager, SnmpManagerChange, SnmpSecurity};
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::arrays::{listed_by_name, short};
use super::receivers::{RestTestResult, Tested, named, removed, tested};
use super::{
    Answer, Body, HIDDEN, ItemsOf, ListParams, Listed, NameParams, Query, Refusals, Refused, answer,
};
use crate::{Interface, Shared, snmp_destination};

/// An SNMP manager.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSnmpManager {
    /// The name of the manager.
    pub name: String,
    /// `HOST`, or `HOST:PORT`.
    pub host: String,
    /// `trap`, or `inform`, which it confirms.
    pub notification: String,
    /// `v2c` or `v3`.
    pub version: String,
    /// Of version 2c.
    pub v2c: RestSnmpV2c,
    /// Of version 3.
    pub v3: RestSnmpV3,
}

/// The parameters of version 2c.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RestSnmpV2c {
    /// The community: 1 to 32 characters; `****` where it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub community: Option<String>,
}

/// The parameters of version 3.
#[derive(Clone, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RestSnmpV3 {
    /// The user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// `SHA`, `MD5`, or empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_protocol: Option<String>,
    /// 8 to 63 characters; `****` where it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth_passphrase: Option<String>,
    /// `AES`, or empty for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy_protocol: Option<String>,
    /// 8 to 63 characters; `****` where it is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub privacy_passphrase: Option<String>,
}

impl std::fmt::Debug for RestSnmpV3 {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RestSnmpV3(…)")
    }
}

listed_by_name!(RestSnmpManager, RestSnmpAgent);

impl From<&SnmpManager> for RestSnmpManager {
    fn from(manager: &SnmpManager) -> Self {
        let (mut v2c, mut v3) = (RestSnmpV2c::default(), RestSnmpV3::default());
        match &manager.security {
            SnmpSecurity::V2c { .. } => v2c.community = Some(HIDDEN.into()),
            SnmpSecurity::V3 { user, auth, privacy } => {
                v3.user = Some(user.clone());
                v3.auth_protocol = auth.as_ref().map(|(how, _)| how.name().into());
                v3.auth_passphrase = auth.as_ref().map(|_| HIDDEN.into());
                v3.privacy_protocol = privacy.as_ref().map(|_| AES.into());
                v3.privacy_passphrase = privacy.as_ref().map(|_| HIDDEN.into());
            }
        }
        Self {
            name: manager.name.to_string(),
            host: manager.host.clone(),
            notification: if manager.is_inform { "inform" } else { "trap" }.into(),
            version: manager.security.version().into(),
            v2c,
            v3,
        }
    }
}

/// The only supported encryption of messages.
const AES: &str = "AES";

fn all(interface: &Interface) -> Vec<RestSnmpManager> {
    interface.array.notifications().managers().map(RestSnmpManager::from).collect()
}

/// Lists the SNMP managers.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/snmp-managers",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestSnmpManager>), Refusals)
)]
pub(super) async fn list(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, all).await
}

/// The settings of a manager.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SnmpManagerPost {
    /// Its name, if it is given here as well: the same as in the query.
    pub name: Option<String>,
    /// `HOST` or `HOST:PORT`; without a port, 162.
    pub host: Option<String>,
    /// `trap`, or `inform`, which it confirms.
    pub notification: Option<String>,
    /// `v2c` or `v3`; it can't be changed.
    pub version: Option<String>,
    /// Of version 2c.
    pub v2c: Option<RestSnmpV2c>,
    /// Of version 3.
    pub v3: Option<RestSnmpV3>,
}

impl SnmpManagerPost {
    fn change(self, names: &[String]) -> Result<SnmpManagerChange, Refused> {
        let is_other = |name: &String| names != std::slice::from_ref(name);
        if self.name.as_ref().is_some_and(is_other) {
            return Err(Refused::unsupported("name", "Another name for an SNMP manager"));
        }
        let is_inform = match self.notification.as_deref() {
            None => None,
            Some("trap") => Some(false),
            Some("inform") => Some(true),
            Some(_) => return Err(Refused::bad("notification", "Give `trap` or `inform`.")),
        };
        let v3 = self.v3.unwrap_or_default();
        let secret = |text: Option<String>| text.as_deref().map(KeptPassword::new);
        let auth = match v3.auth_protocol.as_deref() {
            None => None,
            Some("") => Some(None),
            Some(name) => Some(Some(SnmpAuth::parse(name)?)),
        };
        let privacy = match v3.privacy_protocol.as_deref() {
            None => None,
            Some("") => Some(false),
            Some(AES) => Some(true),
            Some(_) => {
                return Err(Refused::unsupported(
                    "privacy_protocol",
                    "Encryption of SNMP other than AES",
                ));
            }
        };
        Ok(SnmpManagerChange {
            host: self.host,
            is_inform,
            version: self.version,
            community: secret(self.v2c.and_then(|v2c| v2c.community)),
            user: v3.user,
            auth,
            auth_passphrase: secret(v3.auth_passphrase),
            privacy,
            privacy_passphrase: secret(v3.privacy_passphrase),
        })
    }
}

/// Adds or changes managers, and returns them.
async fn set(
    interface: Arc<Interface>,
    mut query: Query,
    asked: SnmpManagerPost,
    change: fn(&Array, &[String], &SnmpManagerChange) -> Result<(), array::Error>,
) -> Answer {
    let names = query.required("names")?;
    query.end()?;
    let asked = asked.change(&names)?;
    answer(interface, move |interface| {
        change(&interface.array, &names, &asked)?;
        named(&all(interface), &names)
    })
    .await
}

/// Adds a manager.
#[utoipa::path(
    post,
    path = "/api/2.{minor}/snmp-managers",
    tag = "notifications",
    params(NameParams),
    request_body = SnmpManagerPost,
    responses((status = 200, body = ItemsOf<RestSnmpManager>), Refusals)
)]
pub(super) async fn create(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<SnmpManagerPost>,
) -> Answer {
    set(interface, query, asked, Array::create_snmp_managers).await
}

/// Changes managers. Omitted fields do not change.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/snmp-managers",
    tag = "notifications",
    params(NameParams),
    request_body = SnmpManagerPost,
    responses((status = 200, body = ItemsOf<RestSnmpManager>), Refusals)
)]
pub(super) async fn change(
    State(interface): Shared,
    query: Query,
    Body(asked): Body<SnmpManagerPost>,
) -> Answer {
    set(interface, query, asked, Array::change_snmp_managers).await
}

/// Removes managers.
#[utoipa::path(
    delete,
    path = "/api/2.{minor}/snmp-managers",
    tag = "notifications",
    params(NameParams),
    responses((status = 200, description = "Removed."), Refusals)
)]
pub(super) async fn delete(State(interface): Shared, query: Query) -> Answer {
    removed(interface, query, |array, names| array.delete_snmp_managers(names)).await
}

/// Sends a test notification to all managers, or to some, and returns the results. Only
/// for array admins, because it sends messages.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/snmp-managers/test",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestTestResult>), Refusals)
)]
pub(super) async fn try_out(State(interface): Shared, query: Query) -> Answer {
    tested(interface, query, |interface| {
        let tested = |manager: &SnmpManager| Tested {
            name: manager.name.to_string(),
            notified_as: snmp_destination(manager.name.as_str()),
            destination: manager.host.clone(),
            is_enabled: true,
        };
        interface.array.notifications().managers().map(tested).collect()
    })
    .await
}

/// The array as a sender of SNMP. It answers no requests.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct RestSnmpAgent {
    /// `localhost`.
    pub name: String,
    /// The engine id (`SnmpEngineID`, RFC 3411), in hexadecimal digits.
    pub engine_id: String,
    /// `v2c`, which gives nobody access.
    pub version: String,
    /// Nothing.
    pub v2c: RestSnmpV2c,
    /// Nothing.
    pub v3: RestSnmpV3,
}

/// Shows the id of the array as an engine of SNMP.
#[utoipa::path(
    get,
    path = "/api/2.{minor}/snmp-agents",
    tag = "notifications",
    params(NameParams, ListParams),
    responses((status = 200, body = ItemsOf<RestSnmpAgent>), Refusals)
)]
pub(super) async fn list_agents(State(interface): Shared, query: Query) -> Answer {
    short(interface, query, |interface| {
        let id = interface.array.snmp_engine_id();
        vec![RestSnmpAgent {
            name: "localhost".into(),
            engine_id: id.iter().map(|byte| format!("{byte:02X}")).collect(),
            version: "v2c".into(),
            v2c: RestSnmpV2c::default(),
            v3: RestSnmpV3::default(),
        }]
    })
    .await
}

/// Makes the array answer SNMP requests: refused, as it is not supported.
#[utoipa::path(
    patch,
    path = "/api/2.{minor}/snmp-agents",
    tag = "notifications",
    responses(Refusals)
)]
pub(super) async fn change_agents() -> Answer {
    Err(Refused::unsupported("", "An SNMP agent"))
}
