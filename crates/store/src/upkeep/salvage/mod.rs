//! Salvage: getting the content of volumes out of a pool, also of one that does not open.
//!
//! Recovery needs all that it names to be right, because the array goes on from there. Salvage only
//! reads. It takes a superblock, the tables that this one names, and the log behind, and goes
//! around what can't be read:
//!
//! * what the log says stays beside the maps of the checkpoint ([`held`]), which are not changed:
//!   no reference is counted, so that nothing that is lost keeps anything else from being found,
//! * a chunk is looked for at every place that it was ever said to be at ([`chunks`]), and is right
//!   only if its fingerprint says so,
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

/// What to salvage from.
#[derive(Clone, Copy, Debug)]
pub struct SalvageOptions {
    /// This copy of the superblock; else the newest that is right.
    pub superblock: Option<usize>,
    /// Where a record in the middle of the log can't be read: take what stands before it.
    pub cut_log: bool,
    /// Bytes of memory for metadata.
    pub memory_bytes: u64,
    /// As the pool was made with.
    pub tuning: Tuning,
}

impl Default for SalvageOptions {
    fn default() -> Self {
        Self { superblock: None, cut_log: false, memory_bytes: 256 << 20, tuning: Tuning::DEFAULT }
    }
}

/// A record of the log that can't be read, and was flushed, or may have been. What was answered
/// from there on can't be followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct LogCut {
    /// Its LSN.
    pub lsn: u64,
    /// Where it has to be.
    pub segment: u32,
    /// The row of the segment.
    pub block: u32,
    /// The last record that was found after it: at least those from `lsn` to this one are lost.
    /// `None` if none was found and the place can't be read: then the log may have ended there.
    pub last_lsn: Option<u64>,
    /// How many records behind the checkpoint stand before it, and were followed.
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
                "and records up to {last_lsn} at least were written behind it: all that was \
                 answered from record {lsn} on is lost"
            ),
            None => write!(
                f,
                "if there is one: the log may end here, or all that was answered from record \
                 {lsn} on is lost"
            ),
        }?;
        write!(
            f,
            "; the checkpoint and the {followed} records behind it that stand before the damage \
             can be read"
        )
    }
}

/// Why nothing can be salvaged.
#[derive(Debug, thiserror::Error)]
pub enum SalvageError {
    /// There is no superblock to begin with.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Nobody has said that the log may be cut ([`SalvageOptions::cut_log`]).
    #[error("{0}")]
    LogIsCut(LogCut),
}

/// Why a block is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum LossReason {
    /// The row of its volume can't be read.
    Volume,
    /// A node of its volume's map, or the row of that, can't be read.
    Map,
    /// The row of its chunk can't be read.
    ChunkRow,
    /// Its bytes can't be read, or are not those that were written.
    Data,
}

impl LossReason {
    /// What to call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Volume => "volume",
            Self::Map => "map",
            Self::ChunkRow => "chunk-row",
            Self::Data => "data",
        }
    }
}

/// A part of a volume, in the order of its blocks. What is not told is zeros.
#[derive(Debug)]
pub enum Salvaged<'a> {
    /// Blocks in a row, from this one on.
    Data(u64, &'a [Frame]),
    /// Blocks that can't be had.
    Lost(BlockRange, LossReason),
}

/// A volume or a snapshot that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SalvageVolume {
    /// Its id.
    pub id: VolumeId,
    /// Its size; `None` where its row is lost and the log does not tell.
    pub size_blocks: Option<u64>,
    /// Whether it is a snapshot.
    pub snapshot: bool,
}

/// The top of a map that nothing names any more, as the checkpoint has it: of a volume whose row is
/// lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OrphanMap {
    /// The node.
    pub node: u64,
    /// How many blocks are mapped below it.
    pub mapped_blocks: u64,
    /// How many blocks it may have.
    pub span_blocks: u64,
    level: u8,
}

/// A pool that is looked at, and not changed.
pub struct Salvage {
    world: World,
    superblock: Superblock,
    config: BTreeMap<Vec<u8>, Vec<u8>>,
    volumes: Volumes,
    chunks: Chunks,
    notes: Vec<String>,
    losses: Vec<String>,
    cut: Option<LogCut>,
    /// The records that were followed.
    followed: u64,
}

impl Salvage {
    /// Looks at the pool on these devices.
    ///
    /// # Errors
    /// Where no superblock can be used, or the log is damaged and must not be cut.
    pub fn open(devices: impl Into<Shared>, options: SalvageOptions) -> Result<Self, SalvageError> {
        let devices = devices.into();
        let (mut notes, mut losses) = (Vec::new(), Vec::new());
        let superblock = choose(devices.root_copies(), options.superblock, &mut notes)?;
        devices.lay_out(superblock.geometry);
        let (has, needs) = (devices.len_bytes(), superblock.capacity_bytes);
        if has < needs {
            losses.push(format!("the device has {has} bytes, and the pool {needs}"));
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

    /// Lets go of all that was read of maps and tables.
    #[cfg(test)]
    pub(crate) fn forget(&mut self) {
        let Medium { disk, tuning, .. } = &self.world.medium;
        let medium = Medium::new(disk.clone(), &self.superblock, *tuning);
        self.world = world(medium, &self.superblock, 0);
    }

    /// The pool's own name.
    pub fn pool_id(&self) -> [u8; 16] {
        self.superblock.pool_id
    }

    /// The sequence of the superblock that was taken.
    pub fn sequence(&self) -> u64 {
        self.superblock.sequence
    }

    /// How many records behind the checkpoint were followed.
    pub fn followed(&self) -> u64 {
        self.followed
    }

    /// What was noticed on the way and has cost nothing that is known of, a line each.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// What is lost besides blocks of volumes, and what the cut of the log has cost, a line each.
    pub fn losses(&self) -> &[String] {
        &self.losses
    }

    /// Where the log was cut.
    pub fn cut(&self) -> Option<LogCut> {
        self.cut
    }

    /// The key-value space, as far as it was read.
    pub fn config(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.config.iter().map(|(key, value)| (&key[..], &value[..]))
    }

    /// The volumes and snapshots that were found, in the order of their ids.
    pub fn volumes(&self) -> Vec<SalvageVolume> {
        self.volumes.list()
    }

    /// Ids whose rows can't be read: any of them may have been a volume, also those that
    /// [`Salvage::volumes`] lists because the log names them.
    pub fn lost_ids(&self) -> &[Range<u64>] {
        self.volumes.lost_ids()
    }

    /// Whether the row of this volume can't be read, and nothing says that it has ended.
    pub fn is_lost(&self, id: VolumeId) -> bool {
        self.volumes.is_lost(id)
    }
}

fn world(medium: Medium, superblock: &Superblock, memory_bytes: u64) -> World {
    World::new(medium, Budgets::of_metadata(memory_bytes), TableName::roots(superblock))
}

/// The superblock to salvage from.
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
