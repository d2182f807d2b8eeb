//! `/v1/hosts/{name}/check`: how a host uses the array, compared with best practice.
//!
//! Every verdict is based on what the array itself has observed since its start. If it has observed
//! nothing about a practice, the verdict says so.

mod rows;
mod timers;

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use block::Offload;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::counters::{CommandCounters, PathCounters};
use crate::{ApiError, HostSession, Interface, Refusal, Shared, blocking, sessions};

/// The verdict on a practice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is as it should be.
    Good,
    /// It could be better.
    Improve,
    /// The array has seen no evidence of it yet, or can't.
    Unseen,
}

/// One practice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostCheckRow {
    /// The name of the check. It does not change.
    #[schema(example = "multipath")]
    pub check: String,
    /// The verdict.
    pub verdict: Verdict,
    /// What the array observed.
    pub seen: String,
    /// The best practice.
    pub best: String,
    /// How to set it on ESXi.
    pub esxi: String,
    /// How to set it on Linux.
    pub linux: String,
    /// How to set it on Windows; empty if unknown.
    #[serde(default)]
    #[schema(required = true)]
    pub windows: String,
    /// Whether the array can't see it, because hosts do not report it: check the host itself.
    #[serde(default)]
    #[schema(required = true)]
    pub unreported: bool,
}

/// How a host uses the array.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HostCheck {
    /// The host.
    pub host: String,
    /// The number of practices that are as they should be.
    pub good: usize,
    /// The number that could be better.
    pub improve: usize,
    /// The number that were not observed.
    pub unseen: usize,
    /// All practices.
    pub rows: Vec<HostCheckRow>,
}

/// Sessions that end within this time belong together: a host leaves its portals one after another.
const TOGETHER_MS: u64 = 30_000;

/// The array's observations of a host.
#[derive(Clone, Debug, Default)]
struct Evidence {
    /// The number of portals of the array.
    portals: usize,
    /// The portals of each controller, by its name; empty if there is only one controller.
    controllers: BTreeMap<&'static str, BTreeSet<u16>>,
    /// The current sessions and those that ended just before; if there are none, the last ones.
    sessions: Vec<HostSession>,
    /// Whether the host no longer has a session.
    has_left: bool,
    paths: Vec<PathCounters>,
    /// The number of volumes connected to the host.
    volumes: usize,
    /// The offloads that are off for some of these volumes.
    off: BTreeSet<&'static str>,
}

impl Evidence {
    fn of(interface: &Interface, host: &str) -> Result<Self, array::Error> {
        let host = interface.array.host(host)?;
        let mut sessions = sessions::named(interface);
        sessions.retain(|session| session.host.as_deref() == Some(host.name.as_str()));
        let ended = interface.watch.ended_sessions().into_iter();
        let ended: Vec<_> =
            ended.filter(|(_, it)| host.initiators.contains(&it.initiator)).collect();
        let (sessions, has_left) = known_sessions(sessions, ended, (interface.now_ms)());
        let mut paths = interface.telemetry.counters().paths;
        paths.retain(|path| host.initiators.contains(&path.initiator));
        let map = host.initiators.first().map(|initiator| interface.array.lun_map(initiator));
        let luns = map.iter().flat_map(|map| map.luns.values());
        let off = luns.flat_map(|volume| volume.offloads.off()).map(Offload::name);
        Ok(Self {
            portals: interface.facts.portals.len(),
            controllers: interface.facts.ports_of_both(),
            sessions,
            has_left,
            paths,
            volumes: host.connection_count,
            off: off.collect(),
        })
    }

    /// Returns the host's commands of a class, to all volumes.
    fn commands(&self, class: &str) -> CommandCounters {
        let of_class = self.paths.iter().filter_map(|path| path.commands.get(class));
        of_class.fold(CommandCounters::default(), |mut sum, part| {
            sum.add(part);
            sum
        })
    }

    fn check(&self, host: String) -> HostCheck {
        let rows = rows::all(self);
        let count = |verdict| rows.iter().filter(|row| row.verdict == verdict).count();
        HostCheck {
            host,
            good: count(Verdict::Good),
            improve: count(Verdict::Improve),
            unseen: count(Verdict::Unseen),
            rows,
        }
    }
}

/// Returns the sessions by which a host is judged, and whether it has left: the current ones and
/// those that ended just before; without current ones, those that ended last.
fn known_sessions(
    live: Vec<HostSession>,
    ended: Vec<(u64, HostSession)>,
    now_ms: u64,
) -> (Vec<HostSession>, bool) {
    let last_ms = ended.iter().map(|(ended_ms, _)| *ended_ms).max().unwrap_or(0);
    let is_recent = now_ms.saturating_sub(last_ms) < TOGETHER_MS;
    let has_left = live.is_empty() && !is_recent && !ended.is_empty();
    let since_ms = if has_left { last_ms } else { now_ms.max(last_ms) };
    let counts = |ended_ms: u64| since_ms.saturating_sub(ended_ms) < TOGETHER_MS;
    let ended = ended.into_iter().filter(|(ended_ms, _)| counts(*ended_ms));
    (live.into_iter().chain(ended.map(|(_, session)| session)).collect(), has_left)
}

/// Compares how a host uses the array with best practice.
#[utoipa::path(get, path = "/v1/hosts/{name}/check", params(("name" = String, Path)), responses(
    (status = 200, body = HostCheck),
    (status = 401, body = Refusal),
    (status = 404, body = Refusal),
))]
pub(crate) async fn check(
    State(interface): Shared,
    name: Result<Path<String>, PathRejection>,
) -> Result<Json<HostCheck>, ApiError> {
    let Path(name) = name?;
    blocking(interface, move |interface| {
        let host = interface.array.host(&name)?.name;
        Ok(Json(Evidence::of(interface, &host)?.check(host)))
    })
    .await
}

#[cfg(test)]
mod tests;
