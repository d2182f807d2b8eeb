//! Scrubbing, and damage with the names of the volumes concerned.

use block::{SECTOR_BYTES, SectorRange, VolumeId};
use store::{DamageList, Repair, ScrubStatus, TableName, What};

use crate::array::Array;
use crate::error::Error;

/// A finding of damage, with one range of blocks that can't be read because of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Damage {
    /// The kind of the damaged item: `data`, `map`, `table`, `log`, `stream` or `superblock`.
    pub kind: &'static str,
    /// The item, in the terms of `holdfast inspect`.
    pub what: String,
    /// Where it was found, in bytes from the start of the pool.
    pub offset_bytes: u64,
    /// When it was first found, in seconds since 1970.
    pub found_s: u64,
    /// Whether it was repaired.
    pub repair: Repair,
    /// The blocks that can't be read.
    pub blocks: Option<DamagedBlocks>,
    /// The number of further unreadable ranges, which are not listed.
    pub ranges_more: u64,
}

/// Blocks that can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedBlocks {
    /// The volume or snapshot; `None` for the array's own volume of ROD tokens, and for one that
    /// was destroyed since.
    pub volume: Option<String>,
    /// Its id.
    pub volume_id: VolumeId,
    /// The first logical block.
    pub first_lba: u64,
    /// The number of blocks.
    pub count: u64,
}

/// All damage that was found.
#[derive(Clone, Debug, Default)]
pub struct DamageReport {
    /// The findings.
    pub damages: Vec<Damage>,
    /// The number of further findings.
    pub findings_more: u64,
    /// Parts of dropped volumes whose space can't be freed.
    pub stuck_nodes: u64,
}

impl Array {
    /// Begins a scrubbing pass in the background. The time is in seconds since 1970.
    ///
    /// # Errors
    /// `scrub_running` if one is running.
    pub fn start_scrub(&self, now_s: u64) -> Result<ScrubStatus, Error> {
        if !self.backing().scrub_start(now_s) {
            return Err(Error::ScrubRunning);
        }
        Ok(self.backing().scrub_status())
    }

    /// Stops the running pass of scrubbing, if any; its findings stay listed.
    pub fn stop_scrub(&self) -> ScrubStatus {
        self.backing().scrub_stop();
        self.backing().scrub_status()
    }

    /// Returns the state of scrubbing.
    pub fn scrub(&self) -> ScrubStatus {
        self.backing().scrub_status()
    }

    /// Returns the damage that the last passes found, including what was repaired since.
    pub fn damage(&self) -> DamageReport {
        let DamageList { findings, findings_more, stuck_nodes } = self.backing().damage();
        let mut damages = Vec::new();
        for finding in findings {
            let (kind, what) = named(finding.what);
            let damage = Damage {
                kind,
                what,
                offset_bytes: finding.offset_bytes,
                found_s: finding.found_s,
                repair: finding.repair,
                blocks: None,
                ranges_more: finding.ranges_more,
            };
            if let What::Page { table: TableName::Volumes, .. } = finding.what {
                // The store has lost the volume's record; the array knows its name.
                let lost = self.lost_volumes().into_iter();
                damages.extend(lost.map(|(id, range)| {
                    let blocks = Some(self.damaged_blocks(id, range));
                    Damage { blocks, ..damage.clone() }
                }));
            }
            if finding.ranges.is_empty() {
                damages.push(damage);
                continue;
            }
            for (index, range) in finding.ranges.iter().enumerate() {
                let blocks = Some(self.damaged_blocks(range.volume, range.range));
                let ranges_more = if index == 0 { damage.ranges_more } else { 0 };
                damages.push(Damage { blocks, ranges_more, ..damage.clone() });
            }
        }
        DamageReport { damages, findings_more, stuck_nodes }
    }

    /// Returns the volumes and snapshots whose records the store can't read, each with its whole
    /// range.
    fn lost_volumes(&self) -> Vec<(VolumeId, SectorRange)> {
        let state = self.read();
        let volumes = state.volumes().iter().map(|(id, volume)| (*id, volume.record.size));
        let snapshots = state.snapshots().iter().map(|(id, snapshot)| (*id, snapshot.size));
        let lost = volumes.chain(snapshots).filter(|(id, _)| self.backing().is_lost(*id));
        lost.map(|(id, size)| (id, SectorRange::new(0, size.0))).collect()
    }

    pub(crate) fn damaged_blocks(&self, volume_id: VolumeId, range: SectorRange) -> DamagedBlocks {
        let state = self.read();
        // A snapshot has the logical blocks of its volume.
        let snapshot = state.snapshots().get(&volume_id);
        let source = snapshot.map_or(volume_id, |snapshot| snapshot.source);
        let volume = state.volumes().get(&source);
        let sectors = volume.map_or(1, |volume| volume.record.logical_block.bytes() / SECTOR_BYTES);
        DamagedBlocks {
            volume: volume.map(|volume| match snapshot {
                Some(snapshot) => state.snapshot_name(snapshot, volume),
                None => volume.record.name.to_string(),
            }),
            volume_id,
            first_lba: range.start.0 / sectors,
            count: range.count.0 / sectors,
        }
    }
}

/// Returns the kind of a finding, and which of them it is.
fn named(what: What) -> (&'static str, String) {
    match what {
        What::Superblock(copy) => ("superblock", format!("copy {copy}")),
        What::Label(copy) => ("label", format!("copy {copy}")),
        What::Stream(0) => ("stream", "configuration".into()),
        What::Stream(1) => ("stream", "pending".into()),
        What::Stream(_) => ("stream", "segments".into()),
        What::Page { table, level, number } => {
            let table = match table {
                TableName::Chunks => "chunk",
                TableName::Nodes => "node",
                TableName::Volumes => "volume",
                TableName::Leaves => "configuration",
                TableName::Segments => "segment",
            };
            let part = if level == 0 { "rows".into() } else { format!("directory {level}") };
            ("table", format!("{table} {part} {number}"))
        }
        What::Leaf(number) => ("configuration", format!("leaf {number}")),
        What::Record(lsn) => ("log", format!("record {lsn}")),
        What::Node(id) => ("map", format!("node {id}")),
        What::Chunk(id) => ("data", format!("chunk {id}")),
        What::Lost => ("data", "lost at an opening".into()),
    }
}
