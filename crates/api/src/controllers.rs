//! `/v1/controllers`: the one or two controllers of the array, and which of them has the pool.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Facts, Interface, Pool, Refusal, Shared, access};

/// The controllers of the array.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Controllers {
    /// All of them, by name: one or two.
    pub controllers: Vec<Controller>,
}

/// A controller: a program that serves the pool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Controller {
    /// `CT0` or `CT1`.
    pub name: String,
    /// `primary`: it has the pool, and answers this request. `secondary`: it forwards what its
    /// hosts send, and takes over when the other one ends.
    #[schema(value_type = crate::words::ControllerMode)]
    pub mode: String,
    /// `ready`; `not ready`: it does not run, or the other one has not heard from it for a while;
    /// `stopped`: it is kept down until a request to start it.
    #[serde(default)]
    #[schema(value_type = crate::words::ControllerStatus, required = true)]
    pub status: String,
    /// The version of its program; empty if it is not known.
    pub version: String,
    /// Since when it has had this mode without a break, in milliseconds since 1970; 0 if it is not
    /// ready.
    pub started_ms: u64,
    /// Its process; 0 if it is not ready.
    #[serde(default)]
    #[schema(required = true)]
    pub pid: u32,
    /// The portals at which hosts reach it, as `ADDR:PORT`.
    pub portals: Vec<String>,
}

/// What the controller with the pool knows about the other one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherController {
    /// The id of its process.
    pub pid: u32,
    /// The version of its program.
    pub version: String,
    /// The start of its current uninterrupted presence, in milliseconds since 1970.
    pub since_ms: u64,
}

impl Controller {
    /// Returns all controllers, by name.
    pub(crate) fn all(interface: &Interface) -> Vec<Self> {
        let facts = &interface.facts;
        let (own, elsewhere) = facts.portals.split_at(facts.own_portals());
        let own = Self {
            name: facts.controller().into(),
            mode: "primary".into(),
            status: READY.into(),
            version: facts.version.clone(),
            started_ms: facts.started_ms,
            pid: facts.pid,
            portals: own.to_vec(),
        };
        if elsewhere.is_empty() {
            return vec![own];
        }
        let other = interface.watch.other_controller();
        let status = match other {
            Some(_) => READY,
            None if interface.watch.is_other_stopped() => STOPPED,
            None => NOT_THERE,
        };
        let OtherController { pid, version, since_ms } = other.unwrap_or_default();
        let other = Self {
            name: facts.other_controller().into(),
            mode: "secondary".into(),
            status: status.into(),
            version,
            started_ms: since_ms,
            pid,
            portals: elsewhere.to_vec(),
        };
        let mut all = vec![own, other];
        all.sort_by(|one, other| one.name.cmp(&other.name));
        all
    }
}

/// The status of a running controller.
pub(crate) const READY: &str = "ready";
/// The status of a controller that is not running, as clients of REST 2.x know it.
pub(crate) const NOT_THERE: &str = "not ready";
/// The status of a controller that is kept stopped.
pub(crate) const STOPPED: &str = "stopped";
/// The code of a request that is not possible now.
const NOT_READY: &str = "not_ready";
const UNKNOWN: &str = "no_such_controller";
const CT0: &str = "CT0";
const CT1: &str = "CT1";

impl Facts {
    /// Returns the name of the controller with the pool.
    pub(crate) fn controller(&self) -> &'static str {
        if self.is_second { CT1 } else { CT0 }
    }

    fn other_controller(&self) -> &'static str {
        if self.is_second { CT0 } else { CT1 }
    }

    fn own_portals(&self) -> usize {
        self.portals.len().saturating_sub(self.elsewhere)
    }

    /// Returns the names of the ports, in their order: `CT0.ETH0` and so on, counted per
    /// controller.
    pub(crate) fn port_names(&self) -> impl Iterator<Item = String> {
        let own = self.own_portals();
        (0..self.portals.len()).map(move |at| match at.checked_sub(own) {
            None => format!("{}.ETH{at}", self.controller()),
            Some(at) => format!("{}.ETH{at}", self.other_controller()),
        })
    }

    /// Returns the numbers of the ports of each controller, by its name, if there are two.
    pub(crate) fn ports_of_both(&self) -> BTreeMap<&'static str, BTreeSet<u16>> {
        if self.elsewhere == 0 {
            return BTreeMap::new();
        }
        let (own, elsewhere) = self.port_ids.split_at(self.own_portals().min(self.port_ids.len()));
        let of = |ids: &[u16]| ids.iter().copied().collect();
        [(self.controller(), of(own)), (self.other_controller(), of(elsewhere))].into()
    }

    /// Returns the portals with their names, in the order of controllers and numbers.
    pub(crate) fn named_portals(&self) -> Vec<(String, &str)> {
        let mut named: Vec<_> =
            self.port_names().zip(self.portals.iter().map(String::as_str)).collect();
        if self.is_second {
            named.rotate_left(self.own_portals());
        }
        named
    }
}

/// Lists the controllers of the array.
#[utoipa::path(get, path = "/v1/controllers", responses(
    (status = 200, body = Controllers),
    (status = 401, body = Refusal),
))]
pub(crate) async fn list(State(interface): Shared) -> Json<Controllers> {
    Json(Controllers { controllers: Controller::all(&interface) })
}

/// Switches the pool to the other controller. The response is sent before that; then this interface
/// ends, and that of the other controller begins.
#[utoipa::path(post, path = "/v1/controllers/switch", responses(
    (status = 200, body = Controllers),
    (status = 401, body = Refusal),
    (status = 403, body = Refusal),
    (status = 409, body = Refusal),
))]
pub(crate) async fn switch(State(interface): Shared) -> Result<Json<Controllers>, ApiError> {
    let watch = interface.watch.clone();
    let reported = entered(interface, |interface| {
        if interface.facts.elsewhere == 0 {
            return Err(Refused::no(
                "The array has only one controller: there is none to switch to.",
            ));
        }
        if interface.watch.other_controller().is_none() {
            let name = interface.facts.other_controller();
            let why = match interface.watch.is_other_stopped() {
                true => "was stopped: start it first",
                false => "is not ready: start it, or look at its log",
            };
            return Err(Refused::no(format!("{name} {why}.")));
        }
        Ok(())
    });
    let reported = reported.await?;
    watch.switch();
    Ok(reported)
}

/// Ends the controller that does not have the pool, and keeps it down until it is started again:
/// for maintenance. The response is sent before it has ended.
#[utoipa::path(post, path = "/v1/controllers/{name}/stop", params(("name" = String, Path)),
    responses(
        (status = 200, body = Controllers),
        (status = 401, body = Refusal),
        (status = 403, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn stop(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Controllers>, ApiError> {
    let Path(name) = name?;
    entered(interface, move |interface| {
        let own = interface.facts.controller();
        if interface.facts.elsewhere == 0 {
            return Err(Refused::no(
                "The array has only one controller, which can't be stopped alone.",
            ));
        }
        if !interface.is_other(&name)? {
            let why = match interface.watch.other_controller() {
                Some(_) => "has the pool: switch first (holdfast controller switch)",
                None => "is the only one that is running: it can't be stopped",
            };
            return Err(Refused::no(format!("{own} {why}.")));
        }
        interface.watch.keep_other_down(true).map_err(Refused::NotReady)
    })
    .await
}

/// Starts a stopped controller. The response is sent before it is ready.
#[utoipa::path(post, path = "/v1/controllers/{name}/start", params(("name" = String, Path)),
    responses(
        (status = 200, body = Controllers),
        (status = 401, body = Refusal),
        (status = 403, body = Refusal),
        (status = 404, body = Refusal),
        (status = 409, body = Refusal),
    )
)]
pub(crate) async fn start(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<Controllers>, ApiError> {
    let Path(name) = name?;
    entered(interface, move |interface| match interface.is_other(&name)? {
        true => interface.watch.keep_other_down(false).map_err(Refused::NotReady),
        // It is this controller, which is running.
        false => Ok(()),
    })
    .await
}

impl Interface {
    /// Returns whether this is the name of the other controller, in any case; if not, it is the own
    /// one.
    fn is_other(&self, name: &str) -> Result<bool, Refused> {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        let is_other = self.facts.elsewhere > 0 && is(self.facts.other_controller());
        if is_other || is(self.facts.controller()) { Ok(is_other) } else { Err(Refused::Unknown) }
    }
}

/// Upgrades the pool to the latest version of the format while it is in use. Earlier versions of
/// Holdfast refuse it from then on, so both controllers must run this one. Does nothing if the
/// pool already has that version.
#[utoipa::path(post, path = "/v1/pool/upgrade", responses(
    (status = 200, body = Pool),
    (status = 401, body = Refusal),
    (status = 409, body = Refusal),
    (status = 500, body = Refusal),
    (status = 503, body = Refusal),
))]
pub(crate) async fn upgrade_pool(State(interface): Shared) -> Result<Json<Pool>, ApiError> {
    done(interface, |interface| {
        let other = interface.watch.other_controller();
        let differs = |other: &OtherController| other.version != interface.facts.version;
        if let Some(other) = other.filter(differs) {
            return Err(Refused::NotReady(format!(
                "{} runs version {}, which could not take over the upgraded pool: restart it with \
                 version {} first.",
                interface.facts.other_controller(),
                other.version,
                interface.facts.version,
            )));
        }
        Ok(interface.array.upgrade_pool()?.into())
    })
    .await
}

/// Checks a user's request to the controllers, and enters it into the audit log before anything
/// ends, so that the controller that then has the pool shows who sent it.
async fn entered(
    interface: Arc<Interface>,
    look: impl FnOnce(&Interface) -> Result<(), Refused> + Send + 'static,
) -> Result<Json<Controllers>, ApiError> {
    let work = move |interface: &Interface| {
        look(interface)?;
        Ok(Controllers { controllers: Controller::all(interface) })
    };
    done(interface, work).await
}

async fn done<T: Send + 'static>(
    interface: Arc<Interface>,
    work: impl FnOnce(&Interface) -> Result<T, Refused> + Send + 'static,
) -> Result<Json<T>, ApiError> {
    match access::run(interface, work, Refused::code).await {
        Some(reported) => reported.map(Json).map_err(ApiError::from),
        None => Err(ApiError::broken()),
    }
}

/// Why a controller is not switched, stopped or started, or the pool of both not upgraded.
enum Refused {
    /// No controller has this name.
    Unknown,
    /// It is not possible in the current state: the reason, and what to do.
    NotReady(String),
    /// The array refuses it.
    Array(array::Error),
}

impl Refused {
    fn no(text: impl Into<String>) -> Self {
        Self::NotReady(text.into())
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unknown => UNKNOWN,
            Self::NotReady(_) => NOT_READY,
            Self::Array(error) => error.code(),
        }
    }
}

impl From<array::Error> for Refused {
    fn from(error: array::Error) -> Self {
        Self::Array(error)
    }
}

impl From<Refused> for ApiError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Unknown => {
                Self::new(StatusCode::NOT_FOUND, UNKNOWN, "There is no controller with this name.")
            }
            Refused::NotReady(text) => Self::new(StatusCode::CONFLICT, NOT_READY, text),
            Refused::Array(error) => error.into(),
        }
    }
}
