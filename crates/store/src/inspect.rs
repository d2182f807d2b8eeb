//! Looking at a pool that is not in use: superblocks, log, a volume's map, and the check of all
//! invariants. Reads only, and says what it finds instead of stopping at it.

use std::fmt;
use std::sync::Arc;

use block::{BlockRange, VolumeId};
use format::MapEntry;

use crate::recovery::read_superblocks;
use crate::walk::walk;
use crate::{CheckOptions, CheckReport, OpenOptions, Store, StoreError};

/// What to look at.
#[derive(Clone, Copy, Debug, Default)]
pub struct InspectOptions {
    /// Also the map of this volume.
    pub volume: Option<VolumeId>,
    /// Also read all data and compare it with its fingerprints.
    pub data: bool,
}

/// A copy of the superblock.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SuperblockReport {
    /// Whether it is whole.
    pub valid: bool,
    /// Its sequence, if it is.
    pub sequence: u64,
    /// Its epoch.
    pub epoch: u64,
    /// What is wrong with it, if something is.
    pub problem: Option<String>,
}

/// A run of blocks of a volume.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MapRun {
    /// The first block.
    pub block: u64,
    /// How many.
    pub count: u64,
    /// What they are: `hole`, `zero`, `pattern`, `data` with the first chunk's id, or `repeated
    /// data` with that of the one chunk.
    pub kind: String,
}

/// What was seen.
#[derive(Clone, Debug, serde::Serialize)]
pub struct InspectReport {
    /// The pool's name, in hexadecimal.
    pub pool_id: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// The size of a segment.
    pub segment_bytes: u64,
    /// Both copies of the superblock.
    pub superblocks: Vec<SuperblockReport>,
    /// Bytes of log that were replayed.
    pub log_bytes: u64,
    /// The LSN of the next record.
    pub next_lsn: u64,
    /// Bytes of data that are stored.
    pub data_bytes: u64,
    /// Bytes of segments in use.
    pub allocated_bytes: u64,
    /// Volumes: id, size in bytes, mapped bytes.
    pub volumes: Vec<(u64, u64, u64)>,
    /// Snapshots, likewise.
    pub snapshots: Vec<(u64, u64, u64)>,
    /// The map that was asked for.
    pub map: Vec<MapRun>,
    /// How much was checked.
    pub check: CheckReport,
    /// What is wrong, a line each; empty if all is well.
    pub findings: Vec<String>,
}

/// The most runs of a map that are told.
const MAP_RUNS_MAX: usize = 100_000;

/// Looks at the pool on `disk`, without writing.
pub fn inspect(
    disk: Arc<dyn sys::Disk>,
    options: InspectOptions,
) -> Result<InspectReport, StoreError> {
    let copies = read_superblocks(&*disk)?;
    let superblocks = copies
        .iter()
        .map(|copy| match copy {
            Ok(found) => SuperblockReport {
                valid: true,
                sequence: found.sequence,
                epoch: found.epoch,
                problem: None,
            },
            Err(error) => SuperblockReport {
                valid: false,
                sequence: 0,
                epoch: 0,
                problem: Some(error.to_string()),
            },
        })
        .collect();
    let store = Store::load(disk, OpenOptions { memory_bytes: 0, ..OpenOptions::default() })?;
    let check = store.check(CheckOptions { data: options.data })?;
    let status = store.pool_status();
    let (next_lsn, segment_bytes) =
        (store.writer.lock().position.lsn, store.world.medium.geometry().segment_bytes);
    Ok(InspectReport {
        pool_id: store.pool_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        capacity_bytes: store.checkpointing.lock().superblock().capacity_bytes,
        segment_bytes,
        superblocks,
        log_bytes: status.log_bytes,
        next_lsn,
        data_bytes: status.data_bytes,
        allocated_bytes: status.allocated_bytes,
        volumes: volumes(&store, false),
        snapshots: volumes(&store, true),
        map: options.volume.map_or(Ok(Vec::new()), |id| map_of(&store, id))?,
        findings: check.findings.clone(),
        check,
    })
}

fn volumes(store: &Store, snapshots: bool) -> Vec<(u64, u64, u64)> {
    let mut ids: Vec<VolumeId> = store.world.volumes.read().keys().copied().collect();
    ids.sort_unstable();
    ids.into_iter()
        .filter_map(|id| store.volume_status(id))
        .filter(|status| status.snapshot == snapshots)
        .map(|status| (status.id.0, status.size.bytes().unwrap_or(0), status.mapped_bytes))
        .collect()
}

fn map_of(store: &Store, id: VolumeId) -> Result<Vec<MapRun>, StoreError> {
    let missing = StoreError::Volume(block::VolumeError::NoSuchVolume(id));
    let Some(volume) = store.world.volume(id) else { return Err(missing) };
    let Some(map) = *volume.map.read() else { return Err(missing) };
    let mut runs: Vec<MapRun> = Vec::new();
    let mut last_chunk = None;
    walk(&store.world, &map, BlockRange::new(0, map.size_blocks), &mut |run| {
        let chunk = match run.entry {
            MapEntry::Chunk(id) => Some(id.0),
            _ => None,
        };
        let repeats = chunk.is_some() && run.count > 1;
        let follows = chunk.is_some() && last_chunk.map(|last: u64| last + 1) == chunk && !repeats;
        last_chunk = chunk.filter(|_| !repeats);
        let kind = match run.entry {
            MapEntry::Hole => "hole".to_string(),
            MapEntry::Zero => "zero".to_string(),
            MapEntry::Pattern(bits) => format!("pattern {bits:08x}"),
            MapEntry::Chunk(id) if repeats => format!("repeated data {}", id.0),
            MapEntry::Chunk(id) => format!("data {}", id.0),
            MapEntry::Node(id) => format!("node {}", id.0),
        };
        let room = runs.len() < MAP_RUNS_MAX;
        match runs.last_mut() {
            Some(last) if follows || (repeats || chunk.is_none()) && last.kind == kind => {
                last.count += run.count;
            }
            _ if room => {
                runs.push(MapRun { block: run.start, count: run.count, kind });
            }
            _ => {}
        }
        Ok(())
    })?;
    Ok(runs)
}

impl fmt::Display for InspectReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pool        {}", self.pool_id)?;
        writeln!(
            f,
            "capacity    {} bytes in segments of {}",
            self.capacity_bytes, self.segment_bytes
        )?;
        for (index, copy) in self.superblocks.iter().enumerate() {
            match &copy.problem {
                None => writeln!(
                    f,
                    "superblock  {index}: sequence {}, epoch {}",
                    copy.sequence, copy.epoch
                )?,
                Some(problem) => writeln!(f, "superblock  {index}: {problem}")?,
            }
        }
        writeln!(f, "log         {} bytes replayed, next LSN {}", self.log_bytes, self.next_lsn)?;
        writeln!(
            f,
            "space       {} bytes of data, {} bytes of segments in use",
            self.data_bytes, self.allocated_bytes
        )?;
        for (id, size, mapped) in &self.volumes {
            writeln!(f, "volume      {id}: {size} bytes, {mapped} mapped")?;
        }
        for (id, size, mapped) in &self.snapshots {
            writeln!(f, "snapshot    {id}: {size} bytes, {mapped} mapped")?;
        }
        for run in &self.map {
            writeln!(f, "map         block {} + {}: {}", run.block, run.count, run.kind)?;
        }
        let CheckReport { volumes, nodes, chunks, chunks_read, .. } = &self.check;
        writeln!(
            f,
            "checked     {volumes} volumes, {nodes} nodes, {chunks} chunks ({chunks_read} read)"
        )?;
        for finding in &self.findings {
            writeln!(f, "finding     {finding}")?;
        }
        write!(f, "{} findings", self.findings.len())
    }
}
