//! The records of volumes.

use block::{LogicalBlockSize, Offload, Offloads, VolumeId, VolumeLimits};
use serde::{Deserialize, Serialize};

use super::row::{VERSION, damaged, encode, key};
use crate::error::Error;
use crate::objects::volumes::{SourceRecord, VolumeRecord};
use crate::values::identity::{CompanyId, Serial};
use crate::values::limits;
use crate::values::name::VolumeName;

#[derive(Serialize, Deserialize)]
pub(super) struct VolumeRow {
    v: u8,
    name: String,
    size_sectors: u64,
    block_bytes: u64,
    company_id: u32,
    created_ms: u64,
    /// As in the settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    offloads_off: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradicate_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bandwidth_limit: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    iops_limit: Option<u64>,
    /// The object that it was made from: id, and name at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source: Option<(u64, String)>,
}

pub(crate) fn volume_key(id: VolumeId) -> Vec<u8> {
    key(b'v', &[id.0])
}

pub(crate) fn volume(volume: &VolumeRecord) -> Result<Vec<u8>, Error> {
    encode(&VolumeRow {
        v: VERSION,
        name: volume.name.to_string(),
        size_sectors: volume.size.0,
        block_bytes: volume.logical_block.bytes(),
        company_id: volume.company_id.get(),
        created_ms: volume.created_ms,
        offloads_off: off(volume.offloads),
        eradicate_ms: volume.eradicate_ms,
        bandwidth_limit: volume.limits.bandwidth_bytes_per_s,
        iops_limit: volume.limits.iops,
        source: volume.source.as_ref().map(|source| (source.id.0, source.name.clone())),
    })
}

/// Returns the names of the offloads that are off, as in records.
pub(super) fn off(offloads: Offloads) -> Vec<String> {
    offloads.off().map(|offload| offload.name().to_owned()).collect()
}

/// Returns the offloads, from the names of those that are off.
pub(super) fn decode_off(key: &[u8], names: &[String]) -> Result<Offloads, Error> {
    names.iter().try_fold(Offloads::ALL, |on, name| match Offload::named(name) {
        Some(offload) => Ok(on.with(offload, false)),
        None => Err(damaged(key, "unknown offload")),
    })
}

pub(super) fn decode_volume(
    key: &[u8],
    id: VolumeId,
    row: &VolumeRow,
    pool_id: &[u8; 16],
) -> Result<VolumeRecord, Error> {
    let logical_block = match row.block_bytes {
        512 => LogicalBlockSize::B512,
        4096 => LogicalBlockSize::B4096,
        other => return Err(damaged(key, &format!("a logical block of {other} bytes"))),
    };
    let serial = Serial::new(pool_id, id).ok_or_else(|| damaged(key, "the id is too big"))?;
    let limits = VolumeLimits { bandwidth_bytes_per_s: row.bandwidth_limit, iops: row.iops_limit };
    limits::check(limits)?;
    let source = row.source.as_ref();
    Ok(VolumeRecord {
        id,
        name: VolumeName::new(&row.name)?,
        size: block::SectorCount(row.size_sectors),
        logical_block,
        company_id: CompanyId::new(row.company_id)?,
        serial,
        created_ms: row.created_ms,
        offloads: decode_off(key, &row.offloads_off)?,
        eradicate_ms: row.eradicate_ms,
        limits,
        source: source.map(|(id, name)| SourceRecord { id: VolumeId(*id), name: name.clone() }),
    })
}
