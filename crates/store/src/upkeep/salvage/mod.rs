//! Salvage: getting the content of volumes out of a pool, even one that does not open.
//!
//! Recovery needs everything that it refers to to be right, because the array continues from there.
//! Salvage only reads. It takes a superblock, the tables that this one refers to, and the log after
//! it, and works around what can't be read:
//!
//! * the content of the log is kept separate from the maps of the checkpoint ([`held`]), which are
//!   not changed: no reference is counted, so lost data does not prevent finding the rest,
//! * a chunk is searched at every location that it ever had ([`chunks`]), and accepted only if its
//!   fingerprint matches,
//! * what is below an unreadable page or node is reported as lost, block by block ([`read`]).
//!
//! Nothing is ever written: the devices are behind [`medium::ReadOnly`].

mod chunks;
mod extents;
mod held;
mod log;
mod medium;
mod orphans;
mod read;
mod tables;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use block::{BlockRange, Frame, VolumeId};
use format::{FormatError, Superblock};
use segments::{Segments, Shared};

use crate::chunks::medium::Medium;
use crate::chunks::memory::Budgets;
use crate::chunks::table_name::TableName;
use crate::log::plausible;
use crate::world::World;
use crate::{StoreError, Tuning};

pub use read::SalvageSink;

use chunks::Chunks;
use held::Volumes;
use medium::ReadOnly;

/// The options for salvage.
#[derive(Clone, Copy, Debug)]
pub struct SalvageOptions {
    /// The copy of the superblock; otherwise the newest valid one.
    pub superblock: Option<usize>,
    /// Whether to accept a log cut short before an unreadable record that is followed by others.
    pub cut_log: bool,
    /// Bytes of memory for metadata.
    pub memory_bytes: u64,
    /// The sizes with which the pool was created.
    pub tuning: Tuning,
}

impl Default for SalvageOptions {
    fn default() -> Self {
        Self { superblock: None, cut_log: false, memory_bytes: 256 << 20, tuning: Tuning::DEFAULT }
    }
}

/// A record of the log that can't be read, and was or may have been flushed. What was acknowledged
/// from there on can't be recovered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LogCut {
    /// Its LSN.
    pub lsn: u64,
    /// Its location.
    pub segment: u32,
    /// The row of the segment.
    pub block: u32,
    /// The last record found after it: at least those from `lsn` to this one are lost. `None` if
    /// none was found and the location can't be read: then the log may have ended there.
    pub last_lsn: Option<u64>,
    /// How many records after the checkpoint precede it, and were followed.
    pub followed: u64,
}

impl fmt::Display for LogCut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { lsn, segment, block, last_lsn, followed } = self;
        write!(
            f,
            "record {lsn} of the log can't be read, at block {block} of segment {segment}, "
        )?;
        match last_lsn {
            Some(last_lsn) => write!(
                f,
                "and records up to {last_lsn} at least follow it: all changes acknowledged from \
                 record {lsn} on are lost"
            ),
            None => write!(
                f,
                "if it exists: either the log ends here, or all changes acknowledged from record \
                 {lsn} on are lost"
            ),
        }?;
        write!(
            f,
            "; the checkpoint and the {followed} records between it and the damage can be read"
        )
    }
}

/// Why nothing can be salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// There is no superblock.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Cutting the log was not allowed ([`SalvageOptions::cut_log`]).
    #[error("{0}")]
    LogIsCut(LogCut),
}

/// Why a block is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// The row of its volume can't be read.
    Volume,
    /// A node of its volume's map, or its row, can't be read.
    Map,
    /// The row of its chunk can't be read.
    ChunkRow,
    /// Its bytes can't be read, or are not those that were written.
    Data,
}

impl LossReason {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Map => "map",
            Self::ChunkRow => "chunk-row",
            Self::Data => "data",
        }
    }
}

/// A part of a volume, in the order of its blocks. What is not reported is zeros.
#[derive(Debug)]
pub enum Salvaged<'a> {
    /// Contiguous blocks, from this one on.
    Data(u64, &'a [Frame]),
    /// Blocks that can't be read.
    Lost(BlockRange, LossReason),
}

/// A volume or a snapshot that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SalvageVolume {
    /// Its id.
    pub id: VolumeId,
    /// Its size; `None` if its row is lost and the log does not say.
    pub size_blocks: Option<u64>,
    /// Whether it is a snapshot.
    pub snapshot: bool,
}

/// The root of an unreferenced map of the checkpoint: of a volume whose row is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanMap {
    /// The node.
    pub node: u64,
    /// The number of mapped blocks below it.
    pub mapped_blocks: u64,
    /// The number of blocks that it may have.
    pub span_blocks: u64,
    level: u8,
}

/// A pool that is read, and not changed.
pub struct Salvage {
    world: World,
    superblock: Superblock,
    config: BTreeMap<Vec<u8>, Vec<u8>>,
    volumes: Volumes,
    chunks: Chunks,
    notes: Vec<String>,
    losses: Vec<String>,
    cut: Option<LogCut>,
    /// The number of records that were followed.
    followed: u64,
}

impl Salvage {
    /// Opens the pool on these devices for salvage.
    ///
    /// # Errors
    /// If no superblock is usable, or the log is damaged and must not be cut.
    pub fn open(devices: impl Into<Shared>, options: SalvageOptions) -> Result<Self, SalvageError> {
        let devices = devices.into();
        let (mut notes, mut losses) = (Vec::new(), Vec::new());
        let superblock = choose(devices.root_copies(), options.superblock, &mut notes)?;
        devices.lay_out(superblock.geometry);
        let (has, needs) = (devices.len_bytes(), superblock.capacity_bytes);
        if has < needs {
            losses.push(format!("the device has {has} bytes, but the pool needs {needs}"));
        }
        let disk = Shared::from(Arc::new(ReadOnly(devices)) as Arc<dyn Segments>);
        let medium = Medium::new(disk, &superblock, options.tuning);
        let world = world(medium, &superblock, options.memory_bytes);
        let config = tables::config(&world.medium, &superblock, &mut losses);
        let volumes = tables::volumes(&world.medium, &superblock, &mut losses);
        let mut salvage = Self {
            world,
            config,
            volumes,
            chunks: Chunks::default(),
            notes,
            losses,
            cut: None,
            followed: 0,
            superblock,
        };
        salvage.cut = salvage.follow_log();
        match salvage.cut {
            Some(cut) if !options.cut_log => Err(SalvageError::LogIsCut(cut)),
            _ => Ok(salvage),
        }
    }

    /// Drops everything that was read of maps and tables.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        let Medium { disk, tuning, .. } = &self.world.medium;
        let medium = Medium::new(disk.clone(), &self.superblock, *tuning);
        self.world = world(medium, &self.superblock, 0);
    }

    /// Returns the pool's id.
    pub fn pool_id(&self) -> [u8; 16] {
        self.superblock.pool_id
    }

    /// Returns the sequence number of the superblock that is used.
    pub fn sequence(&self) -> u64 {
        self.superblock.sequence
    }

    /// Returns how many records after the checkpoint were followed.
    pub fn followed(&self) -> u64 {
        self.followed
    }

    /// Returns problems that have caused no known loss, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Returns what is lost apart from blocks of volumes, and by cutting the log, a line each.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Returns where the log was cut.
    pub fn cut(&self) -> Option<LogCut> {
        self.cut
    }

    /// Returns the key-value space, as far as it was read.
    pub fn config(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.config.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// Returns the volumes and snapshots that were found, in the order of their ids.
    pub fn volumes(&self) -> Vec<SalvageVolume> {
        self.volumes.list()
    }

    /// Returns ids whose rows can't be read: any of them may have been a volume, including those
    /// that [`Salvage::volumes`] lists because the log refers to them.
    pub fn lost_ids(&self) -> &[Range<u64>] {
        self.volumes.lost_ids()
    }

    /// Returns whether the row of this volume can't be read, and nothing says that it was
    /// destroyed.
    pub fn is_lost(&self, id: VolumeId) -> bool {
        self.volumes.is_lost(id)
    }
}

fn world(medium: Medium, superblock: &Superblock, memory_bytes: u64) -> World {
    World::new(medium, Budgets::of_metadata(memory_bytes), TableName::roots(superblock))
}

/// Returns the superblock to use.
fn choose(
    copies: Vec<Result<Superblock, FormatError>>,
    asked: Option<usize>,
    notes: &mut Vec<String>,
) -> Result<Superblock, StoreError> {
    let usable = |found: Result<Superblock, FormatError>| -> Result<Superblock, String> {
        let superblock = found.map_err(|error| error.to_string())?;
        plausible::check_superblock(&superblock).map_err(|error| error.to_string())?;
        Ok(superblock)
    };
    let mut newest: Option<Superblock> = None;
    let mut reasons = Vec::new();
    for (copy, found) in copies.into_iter().enumerate() {
        match usable(found) {
            Err(why) => reasons.push(format!("superblock {copy} can't be used: {why}")),
            Ok(_) if asked.is_some_and(|asked| asked != copy) => {}
            Ok(found) => {
                if newest.as_ref().is_none_or(|newest| newest.sequence < found.sequence) {
                    newest = Some(found);
                }
            }
        }
    }
    let Some(newest) = newest else { return Err(StoreError::NotAPool(reasons.join("; "))) };
    notes.extend(reasons);
    Ok(newest)
}

fn blocks(start: u64, count: u64) -> BlockRange {
    BlockRange::new(start, count)
}
