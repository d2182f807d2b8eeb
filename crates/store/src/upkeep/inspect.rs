//! Inspecting a pool that is not in use: superblocks, log, a volume's map, and the check of all
//! invariants. Reads only, and reports problems instead of stopping at them.

use std::fmt;

use block::{BlockRange, SECTOR_BYTES, VolumeId};
use format::{FormatError, Label, MapEntry, Superblock};
use segments::Shared;

use crate::map::walk::walk;
use crate::{CheckOptions, CheckReport, DamagedRange, LostBlocks, OpenOptions, Store, StoreError};

/// What to inspect.
#[derive(Clone, Copy, Debug, Default)]
pub struct InspectOptions {
    /// Also the map of this volume.
    pub volume: Option<VolumeId>,
    /// Whether to read all data and compare it with its fingerprints.
    pub data: bool,
}

/// A copy of the superblock.
#[derive(Clone, Debug, serde::Serialize)]
pub struct SuperblockReport {
    /// Whether it is valid.
    pub valid: bool,
    /// Its sequence number, if it is.
    pub sequence: u64,
    /// Its epoch.
    pub epoch: u64,
    /// Its version of the format.
    pub format_version: u32,
    /// The names of the pool's features beyond that version.
    pub features: Vec<&'static str>,
    /// What is wrong with it, if anything.
    pub problem: Option<String>,
}

impl SuperblockReport {
    fn of(copy: &Result<Superblock, FormatError>) -> Self {
        match copy {
            Ok(found) => Self {
                valid: true,
                sequence: found.sequence,
                epoch: found.epoch,
                format_version: found.version.number(),
                features: found.features.names(),
                problem: None,
            },
            Err(error) => Self {
                valid: false,
                sequence: 0,
                epoch: 0,
                format_version: 0,
                features: Vec::new(),
                problem: Some(error.to_string()),
            },
        }
    }
}

/// A copy of a device's label.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LabelReport {
    /// The id of the device, in hexadecimal; none if the copy is not valid.
    pub device_id: Option<String>,
    /// Its number in the pool.
    pub number: u16,
    /// The number of devices of the pool.
    pub devices: u64,
    /// The epoch in which it was written.
    pub epoch: u64,
    /// What is wrong with it, if anything.
    pub problem: Option<String>,
}

impl LabelReport {
    fn of(copy: &Result<Label, FormatError>) -> Self {
        let (label, problem) = match copy {
            Ok(label) => (Some(label), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Self {
            device_id: label.map(|label| label.device.to_string()),
            number: label.map_or(0, |label| label.number),
            devices: label.map_or(0, |label| label.members.len() as u64),
            epoch: label.map_or(0, |label| label.epoch),
            problem,
        }
    }
}

/// Returns the labels, if the pool has some according to the newest superblock.
fn labels(disk: &Shared, copies: &[Result<Superblock, FormatError>]) -> Vec<LabelReport> {
    let newest = copies.iter().flatten().max_by_key(|copy| copy.sequence);
    match newest.is_some_and(|superblock| superblock.features.has_labels()) {
        true => disk.labels().iter().map(LabelReport::of).collect(),
        false => Vec::new(),
    }
}

/// A run of blocks of a volume.
#[derive(Clone, Debug, serde::Serialize)]
pub struct MapRun {
    /// The first block.
    pub block: u64,
    /// The number of blocks.
    pub count: u64,
    /// Their content: `hole`, `zero`, `pattern`, `data` with the first chunk's id, or
    /// `repeated data` with that of the one chunk.
    pub kind: String,
}

/// Blocks of a volume that can't be read.
#[derive(Clone, Debug, serde::Serialize)]
pub struct LostRange {
    /// The volume or snapshot.
    pub volume: u64,
    /// The first byte.
    pub offset_bytes: u64,
    /// The number of bytes.
    pub length_bytes: u64,
}

/// The result of an inspection.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct InspectReport {
    /// The pool's id, in hexadecimal.
    pub pool_id: String,
    /// Its size.
    pub capacity_bytes: u64,
    /// The size of a segment.
    pub segment_bytes: u64,
    /// Both copies of the superblock.
    pub superblocks: Vec<SuperblockReport>,
    /// Both copies of the device's label, if it should have one.
    pub labels: Vec<LabelReport>,
    /// Bytes of log that were replayed.
    pub log_bytes: u64,
    /// The LSN of the next record.
    pub next_lsn: u64,
    /// Stored bytes of data.
    pub data_bytes: u64,
    /// Bytes of segments in use.
    pub allocated_bytes: u64,
    /// Volumes: id, size in bytes, mapped bytes.
    pub volumes: Vec<(u64, u64, u64)>,
    /// Snapshots, in the same form.
    pub snapshots: Vec<(u64, u64, u64)>,
    /// The requested map.
    pub map: Vec<MapRun>,
    /// Ranges of ids (first and last) whose rows can't be read, which may be volumes and snapshots.
    pub lost_volumes: Vec<(u64, u64)>,
    /// The blocks of volumes and snapshots that can't be read.
    pub lost: Vec<LostRange>,
    /// The number of further ranges of such blocks.
    pub lost_more: u64,
    /// What was checked.
    pub check: CheckReport,
    /// What is wrong, a line each; empty if everything is right.
    pub findings: Vec<String>,
}

/// The maximum number of runs of a map that are reported.
const MAP_RUNS_MAX: usize = 100_000;

/// Inspects the pool on `disk`, without writing.
pub fn inspect(
    disk: impl Into<Shared>,
    options: InspectOptions,
) -> Result<InspectReport, StoreError> {
    let disk = disk.into();
    let copies = disk.root_copies();
    let superblocks = copies.iter().map(SuperblockReport::of).collect();
    let labels = labels(&disk, &copies);
    let loaded = Store::load(disk, OpenOptions { memory_bytes: 0, ..OpenOptions::default() });
    let store = match loaded {
        Ok(store) => store,
        Err(StoreError::Damaged(text)) => {
            let superblock = copies.iter().flatten().max_by_key(|copy| copy.sequence);
            return Ok(of_unopenable(superblock, superblocks, labels, text));
        }
        Err(error) => return Err(error),
    };
    let mut check = store.check(CheckOptions { data: options.data })?;
    // Lost blocks are searched only if anything is wrong.
    let lost = match check.findings.is_empty() {
        true => LostBlocks::default(),
        false => store.lost_blocks(options.data),
    };
    let mut lost_volumes: Vec<(u64, u64)> =
        store.world.lost_volumes.read().iter().map(|(_, ids)| (ids.start, ids.end - 1)).collect();
    lost_volumes.extend(store.world.lost_rows.read().iter().map(|id| (*id, *id)));
    let status = store.pool_status();
    let (next_lsn, segment_bytes) =
        (store.writer.lock().log.position().lsn, store.world.medium.geometry().segment_bytes());
    Ok(InspectReport {
        pool_id: store.pool_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        capacity_bytes: store.checkpointing.lock().superblock().capacity_bytes,
        segment_bytes,
        superblocks,
        labels,
        log_bytes: status.log_bytes,
        next_lsn,
        data_bytes: status.data_bytes,
        allocated_bytes: status.allocated_bytes,
        volumes: volumes(&store, false),
        snapshots: volumes(&store, true),
        map: match options.volume.map(|id| map_of(&store, id)).transpose() {
            Ok(map) => map.unwrap_or_default(),
            Err(StoreError::Damaged(text)) => {
                check.findings.push(text);
                Vec::new()
            }
            Err(error) => return Err(error),
        },
        lost_volumes,
        lost: lost.ranges.iter().map(lost_range).collect(),
        lost_more: lost.ranges_more,
        findings: check.findings.clone(),
        check,
    })
}

/// Reports what is known of a pool that does not open.
fn of_unopenable(
    superblock: Option<&Superblock>,
    superblocks: Vec<SuperblockReport>,
    labels: Vec<LabelReport>,
    text: String,
) -> InspectReport {
    let known = superblock.map(|superblock| InspectReport {
        pool_id: superblock.pool_id.iter().map(|byte| format!("{byte:02x}")).collect(),
        capacity_bytes: superblock.capacity_bytes,
        segment_bytes: superblock.geometry.segment_bytes(),
        next_lsn: superblock.log.lsn,
        ..InspectReport::default()
    });
    let finding =
        format!("the pool does not open; `holdfast salvage` recovers what can be read: {text}");
    let findings = vec![finding];
    InspectReport { superblocks, labels, findings, ..known.unwrap_or_default() }
}

fn lost_range(lost: &DamagedRange) -> LostRange {
    LostRange {
        volume: lost.volume.0,
        offset_bytes: lost.range.start.0 * SECTOR_BYTES,
        length_bytes: lost.range.count.0 * SECTOR_BYTES,
    }
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
                None => {
                    let with = if copy.features.is_empty() { "" } else { " with " };
                    writeln!(
                        f,
                        "superblock  {index}: format {}{with}{}, sequence {}, epoch {}",
                        copy.format_version,
                        copy.features.join(", "),
                        copy.sequence,
                        copy.epoch
                    )?;
                }
                Some(problem) => writeln!(f, "superblock  {index}: {problem}")?,
            }
        }
        for (index, copy) in self.labels.iter().enumerate() {
            let LabelReport { device_id, number, devices, epoch, problem } = copy;
            match device_id {
                Some(id) => writeln!(
                    f,
                    "label       {index}: device {number} of {devices}, {id}, epoch {epoch}"
                )?,
                None => writeln!(f, "label       {index}: {}", problem.as_deref().unwrap_or(""))?,
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
        for (first, last) in &self.lost_volumes {
            writeln!(f, "lost        the rows of volumes {first} to {last}, if they exist")?;
        }
        for LostRange { volume, offset_bytes, length_bytes } in &self.lost {
            writeln!(f, "lost        volume {volume}: {length_bytes} bytes at {offset_bytes}")?;
        }
        if self.lost_more > 0 {
            writeln!(f, "lost        and {} more ranges", self.lost_more)?;
        }
        for run in &self.map {
            writeln!(f, "map         block {} + {}: {}", run.block, run.count, run.kind)?;
        }
        let CheckReport { volumes, nodes, chunks, chunks_read, records, .. } = &self.check;
        writeln!(
            f,
            "checked     {volumes} volumes, {nodes} nodes, {chunks} chunks ({chunks_read} read), \
             {records} records"
        )?;
        for finding in &self.findings {
            writeln!(f, "finding     {finding}")?;
        }
        write!(f, "{} findings", self.findings.len())
    }
}
