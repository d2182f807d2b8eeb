//! What scrubbing has found, and what was done about it.

use std::collections::BTreeMap;

use block::{SectorRange, VolumeId};
use format::page::{REFS_PER_DIRECTORY, ROWS_PER_PAGE};
use format::{ChunkId, NodeId};

use crate::chunks::table_name::TableName;

/// Findings beyond this number are only counted.
const FINDINGS_MAX: usize = 4096;
/// Ranges of volumes beyond this number, of all findings together, are only counted.
const RANGES_MAX: usize = 16_384;

/// The damaged object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum What {
    /// A copy of the superblock: 0 or 1.
    Superblock(u8),
    /// A copy of the device's label: 0 or 1.
    Label(u8),
    /// A stream: 0 the key-value space if it is not in leaves, 1 pending nodes, 2 the segment table
    /// if it is not in pages.
    Stream(u8),
    /// A page of a table.
    Page {
        /// The table.
        table: TableName,
        /// 0: rows; otherwise a directory, this many levels above them.
        level: u8,
        /// Its number among the pages of its level.
        number: u64,
    },
    /// A record of the log that recovery would read, by its LSN.
    Record(u64),
    /// A leaf of the key-value space, by its number.
    Leaf(u64),
    /// A node of a map, by its id.
    Node(u64),
    /// The content of a block, by its chunk's id.
    Chunk(u64),
    /// What was found damaged at an opening and the log had to change: its blocks are lost.
    Lost,
}

/// What was done about a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Repair {
    /// Nothing is possible: its content is nowhere else. Overwriting or unmapping the blocks ends
    /// it.
    Impossible,
    /// The next checkpoint rewrites it.
    Underway,
    /// It was rewritten at another location.
    Done,
}

/// Blocks of a volume that can't be read because of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    /// The volume or snapshot.
    pub volume: VolumeId,
    /// The sectors: whole blocks of 4 KiB.
    pub range: SectorRange,
}

/// A damaged object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it is.
    pub what: What,
    /// Its location, in bytes from the start of the pool.
    pub offset_bytes: u64,
    /// When it was first found, in seconds since 1970, by the caller's clock.
    pub found_s: u64,
    /// What was done.
    pub repair: Repair,
    /// The blocks that can't be read because of it, in order.
    pub ranges: Vec<DamagedRange>,
    /// The number of further ranges, because a list of millions is useless.
    pub ranges_more: u64,
    /// The last pass that saw it.
    pub(super) pass: u64,
}

/// All damage, as the last passes found it.
#[derive(Clone, Debug, Default)]
pub struct DamageList {
    /// The findings.
    pub findings: Vec<Finding>,
    /// The number of further findings.
    pub findings_more: u64,
    /// Parts of dropped maps that can't be freed, because what they refer to can't be read.
    pub stuck_nodes: u64,
}

/// The findings of this pass, and those of the last that it did not reach yet.
#[derive(Debug, Default)]
pub(crate) struct Findings {
    by_what: BTreeMap<What, Finding>,
    more: u64,
    range_count: usize,
}

impl Findings {
    /// Adds damage; returns whether it is new.
    pub(crate) fn add(&mut self, found: Finding) -> bool {
        if let Some(known) = self.by_what.get_mut(&found.what) {
            let known_since = known.found_s;
            let again = known.repair == Repair::Done && found.repair != Repair::Done;
            *known = Finding {
                found_s: if again { found.found_s } else { known_since },
                ranges: std::mem::take(&mut known.ranges),
                ranges_more: known.ranges_more,
                ..found
            };
            return again;
        }
        if self.by_what.len() >= FINDINGS_MAX {
            self.more += 1;
        } else {
            self.by_what.insert(found.what, found);
        }
        true
    }

    pub(crate) fn get(&self, what: What) -> Option<&Finding> {
        self.by_what.get(&what)
    }

    /// Records that something was rewritten.
    pub(crate) fn repaired(&mut self, what: What) {
        if let Some(finding) = self.by_what.get_mut(&what) {
            finding.repair = Repair::Done;
        }
    }

    /// Records that a checkpoint has written what was being repaired; returns how much that is.
    pub(crate) fn written(&mut self) -> u64 {
        let under_way = |finding: &&mut Finding| finding.repair == Repair::Underway;
        let written = self.by_what.values_mut().filter(under_way);
        written.map(|finding| finding.repair = Repair::Done).count() as u64
    }

    /// Restarts the counts of what is not listed for a new pass.
    pub(crate) fn begin(&mut self) {
        self.more = 0;
    }

    /// Removes all ranges of volumes, to be reported again.
    pub(crate) fn forget_names(&mut self) {
        for finding in self.by_what.values_mut() {
            finding.ranges.clear();
            finding.ranges_more = 0;
        }
        self.range_count = 0;
    }

    /// Adds blocks of a volume that can't be read because of a finding.
    pub(crate) fn name(&mut self, what: What, damaged: DamagedRange) {
        let Some(finding) = self.by_what.get_mut(&what) else { return };
        if let Some(last) = finding.ranges.last_mut()
            && last.volume == damaged.volume
            && last.range.start.0 + last.range.count.0 == damaged.range.start.0
        {
            last.range.count.0 += damaged.range.count.0;
        } else if self.range_count >= RANGES_MAX {
            finding.ranges_more += 1;
        } else {
            finding.ranges.push(damaged);
            self.range_count += 1;
        }
    }

    /// Records that further blocks, which are not searched, can't be read because of a finding.
    pub(crate) fn name_no_more(&mut self, what: What) {
        if let Some(finding) = self.by_what.get_mut(&what) {
            finding.ranges_more += 1;
        }
    }

    /// Ends a pass: removes findings that it has not seen again.
    pub(crate) fn end(&mut self, pass: u64) {
        self.by_what.retain(|_, finding| finding.pass == pass);
    }

    /// Returns the damage because of which a chunk can't be read, if it was found.
    pub(crate) fn of_chunk(&self, id: ChunkId) -> Option<What> {
        self.lasting(What::Chunk(id.0)).or_else(|| self.page_above(TableName::Chunks, id.0))
    }

    /// Returns the damage because of which a node can't be read, if it was found.
    pub(crate) fn of_node(&self, id: NodeId) -> Option<What> {
        self.lasting(What::Node(id.0)).or_else(|| self.page_above(TableName::Nodes, id.0))
    }

    /// Returns whether there is damage on which blocks of volumes may depend.
    pub(crate) fn concern_volumes(&self) -> bool {
        self.by_what.values().any(|finding| {
            finding.repair != Repair::Done
                && match finding.what {
                    What::Page { table: TableName::Leaves | TableName::Segments, .. }
                    | What::Leaf(_) => false,
                    What::Chunk(_) | What::Node(_) | What::Page { .. } | What::Lost => true,
                    What::Superblock(_) | What::Label(_) | What::Stream(_) | What::Record(_) => {
                        false
                    }
                }
        })
    }

    /// Returns how many findings are listed, how many are not, and how many of them were not
    /// repaired.
    pub(crate) fn counts(&self) -> (u64, u64) {
        let lasting = self.by_what.values().filter(|finding| finding.repair != Repair::Done);
        (self.by_what.len() as u64 + self.more, lasting.count() as u64 + self.more)
    }

    pub(crate) fn list(&self) -> (Vec<Finding>, u64) {
        (self.by_what.values().cloned().collect(), self.more)
    }

    fn lasting(&self, what: What) -> Option<What> {
        self.get(what).filter(|finding| finding.repair != Repair::Done).map(|_| what)
    }

    fn page_above(&self, table: TableName, row: u64) -> Option<What> {
        let mut number = row / ROWS_PER_PAGE;
        for level in 0..=format::page::TABLE_HEIGHT_MAX {
            let found = self.lasting(What::Page { table, level, number });
            if found.is_some() {
                return found;
            }
            number /= REFS_PER_DIRECTORY;
        }
        None
    }
}
