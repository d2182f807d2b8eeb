//! Scrubbing, and the damage that it found.

use array::{Damage, DamageReport, Repair, ScrubStatus};
use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{ApiError, Interface, PAGE_MAX, Refusal, Shared, blocking};

/// The state of scrubbing: reading every durable byte, and comparing it with its checksum.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct Scrub {
    /// Whether a pass is in progress.
    pub running: bool,
    /// Passes begun since the start.
    pub pass: u64,
    /// When the last pass began, in milliseconds since 1970; 0 if none has since the start.
    pub started_ms: u64,
    /// When the last complete pass ended, in milliseconds since 1970; 0 if none has yet.
    pub completed_ms: u64,
    /// Bytes that the pass has read.
    pub done_bytes: u64,
    /// Bytes that it will read, approximately.
    pub total_bytes: u64,
    /// Bytes read by all passes since the start.
    pub scrubbed_bytes: u64,
    /// How often damage was found since the start.
    pub findings: u64,
    /// How often damage was repaired since the start.
    pub repairs: u64,
    /// How many items are still damaged.
    pub damaged: u64,
}

impl From<ScrubStatus> for Scrub {
    fn from(status: ScrubStatus) -> Self {
        Self {
            running: status.running,
            pass: status.pass,
            started_ms: status.started_s * 1000,
            completed_ms: status.completed_s * 1000,
            done_bytes: status.blocks_done * block::BLOCK_BYTES,
            total_bytes: status.blocks_total * block::BLOCK_BYTES,
            scrubbed_bytes: status.blocks_scrubbed * block::BLOCK_BYTES,
            findings: status.findings,
            repairs: status.repairs,
            damaged: status.damaged,
        }
    }
}

/// Something that is or was damaged: one entry for each range of blocks that can't be read.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct DamageEntry {
    /// `data`, `map`, `table`, `log`, `stream`, `label` or `superblock`.
    pub kind: String,
    /// Which item of that kind.
    #[schema(example = "chunk 4711")]
    pub what: String,
    /// The volume or snapshot whose blocks can't be read; `null` if no host's block depends on it,
    /// or if the volume has no name (any more).
    #[schema(required = true)]
    pub volume: Option<String>,
    /// Its id, if blocks of a volume depend on it.
    #[schema(required = true)]
    pub volume_id: Option<u64>,
    /// The first logical block that can't be read.
    #[schema(required = true)]
    pub first_lba: Option<u64>,
    /// How many blocks can't be read from there on.
    pub blocks: u64,
    /// How many more ranges can't be read because of it, and are not listed.
    pub ranges_more: u64,
    /// Where it was found, in bytes from the start of the pool.
    pub offset_bytes: u64,
    /// When it was first found, in milliseconds since 1970.
    pub found_ms: u64,
    /// Whether it was rewritten, so that nothing was lost. It is listed until the next pass ends.
    pub repaired: bool,
}

impl From<Damage> for DamageEntry {
    fn from(damage: Damage) -> Self {
        let blocks = damage.blocks.as_ref();
        Self {
            kind: damage.kind.into(),
            what: damage.what,
            volume: blocks.and_then(|blocks| blocks.volume.clone()),
            volume_id: blocks.map(|blocks| blocks.volume_id.0),
            first_lba: blocks.map(|blocks| blocks.first_lba),
            blocks: blocks.map_or(0, |blocks| blocks.count),
            ranges_more: damage.ranges_more,
            offset_bytes: damage.offset_bytes,
            found_ms: damage.found_s * 1000,
            repaired: damage.repair == Repair::Done,
        }
    }
}

/// The damage that the last passes of scrubbing found.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
pub struct DamageList {
    /// The entries.
    pub damage: Vec<DamageEntry>,
    /// The number of further findings, which are not listed.
    pub more: u64,
    /// Parts of dropped volumes whose space can't be freed, because they can't be read.
    pub unfreeable: u64,
}

impl From<DamageReport> for DamageList {
    fn from(report: DamageReport) -> Self {
        let listed = report.damages.len().min(PAGE_MAX);
        let more = report.findings_more + (report.damages.len() - listed) as u64;
        let damage = report.damages.into_iter().take(listed).map(DamageEntry::from).collect();
        Self { damage, more, unfreeable: report.stuck_nodes }
    }
}

fn now_s(interface: &Interface) -> u64 {
    (interface.now_ms)() / 1000
}

/// Shows the state of scrubbing.
#[utoipa::path(get, path = "/v1/pool/scrub", responses(
    (status = 200, body = Scrub),
    (status = 401, body = Refusal),
))]
pub(crate) async fn scrub(State(interface): Shared) -> Result<Json<Scrub>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.scrub().into()))).await
}

/// Begins a scrubbing pass in the background.
#[utoipa::path(post, path = "/v1/pool/scrub", responses(
    (status = 200, body = Scrub),
    (status = 401, body = Refusal),
    (status = 409, body = Refusal),
))]
pub(crate) async fn start_scrub(State(interface): Shared) -> Result<Json<Scrub>, ApiError> {
    let start = |interface: &Interface| interface.array.start_scrub(now_s(interface));
    blocking(interface, move |interface| Ok(Json(start(interface)?.into()))).await
}

/// Stops the running pass, if any; its findings stay listed.
#[utoipa::path(delete, path = "/v1/pool/scrub", responses(
    (status = 200, body = Scrub),
    (status = 401, body = Refusal),
))]
pub(crate) async fn stop_scrub(State(interface): Shared) -> Result<Json<Scrub>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.stop_scrub().into()))).await
}

/// Lists the damage: which blocks of which volumes and snapshots can't be read.
#[utoipa::path(get, path = "/v1/pool/damage", responses(
    (status = 200, body = DamageList),
    (status = 401, body = Refusal),
))]
pub(crate) async fn damage(State(interface): Shared) -> Result<Json<DamageList>, ApiError> {
    blocking(interface, |interface| Ok(Json(interface.array.damage().into()))).await
}
