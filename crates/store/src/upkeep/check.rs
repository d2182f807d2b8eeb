//! The check of all invariants: every count is recomputed from the maps, and compared.

use std::collections::HashMap;

use format::geometry::UNITS_PER_BLOCK;
use format::log::LogPosition;
use format::row::REFERENCES_STUCK;
use format::{ChunkId, ChunkRow, LeafRow, MapEntry, NodeId, NodeRow, Place, SegmentState};

use crate::checkpoint::segment_table;
use crate::chunks::groups::GroupReader;
use crate::chunks::table::LostPage;
use crate::chunks::verify::{Stored, read_chunk};
use crate::key_space::leaves::Leaves;
use crate::log::log_reader::LogReader;
use crate::log::replay::next_of_log;
use crate::nodes::counts::Counts;
use crate::upkeep::Store;
use crate::world::{State, World};
use crate::{NODE_UNITS, StoreError};

/// What is checked.
#[derive(Clone, Copy, Debug, Default)]
pub struct CheckOptions {
    /// Whether to read every chunk and compare it with its fingerprint.
    pub data: bool,
}

/// The result of a check.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct CheckReport {
    /// What is wrong, a line each; empty if everything is right.
    pub findings: Vec<String>,
    /// The number of volumes.
    pub volumes: u64,
    /// The number of nodes.
    pub nodes: u64,
    /// The number of chunks.
    pub chunks: u64,
    /// The number of records of the log.
    pub records: u64,
    /// The number of chunks that were read and compared.
    pub chunks_read: u64,
}

/// Findings beyond this number are only counted: a damaged pool has more than anyone reads.
const FINDINGS_MAX: usize = 1000;

struct Checker<'a> {
    world: &'a World,
    report: CheckReport,
    chunk_references: HashMap<ChunkId, u64>,
    node_references: HashMap<NodeId, u64>,
    node_counts: HashMap<NodeId, Counts>,
    live_units: HashMap<u32, u64>,
    /// Blocks that a recovery has given up.
    lost_blocks: u64,
    /// Where log and checkpoints continue: from there on nothing in these segments is live.
    open: [(u32, u32); 3],
}

impl Store {
    /// Recounts everything, and compares. Holds the writer's lock all the time: for a pool that is
    /// not in use.
    pub fn check(&self, options: CheckOptions) -> Result<CheckReport, StoreError> {
        let (streams, metadata, begin) = {
            let checkpointer = self.checkpointing.lock();
            let superblock = checkpointer.superblock();
            let metadata = (superblock.metadata_segment, superblock.metadata_block);
            (checkpointer.streams.clone(), metadata, superblock.log)
        };
        let writer = self.writer.lock();
        let log = writer.log.end();
        let mut checker = Checker {
            world: &self.world,
            report: CheckReport::default(),
            chunk_references: HashMap::new(),
            node_references: HashMap::new(),
            node_counts: HashMap::new(),
            live_units: HashMap::new(),
            lost_blocks: 0,
            open: [metadata, (log.segment, log.block), (log.next_segment, 0)],
        };
        checker.maps(&writer.state);
        checker.node_rows(&writer.state)?;
        checker.chunk_rows(&writer.state, options)?;
        for (place, units) in streams.iter().flatten() {
            checker.add_live(*place, *units);
        }
        checker.leaves(&writer.state);
        checker.segment_table(&writer.state);
        checker.segments(&writer.state);
        checker.log(begin, writer.log.position().lsn);
        checker.space(&writer.state)?;
        Ok(checker.report)
    }
}

/// Returns whether a count is wrong, given the number of references; `waits`: none is allowed. A
/// saturated count only says that there may be many.
fn is_miscounted(counted: u32, named: u64, waits: bool) -> bool {
    counted != REFERENCES_STUCK && (u64::from(counted) != named || named == 0 && !waits)
}

impl Checker<'_> {
    fn find(&mut self, finding: String) {
        if self.report.findings.len() < FINDINGS_MAX {
            self.report.findings.push(finding);
        }
    }

    /// Reports unreadable pages of rows, which explain other findings about their rows.
    fn lost_rows(&mut self, of: &str, pages: Vec<LostPage>) {
        for LostPage { rows, error, .. } in pages {
            let last = rows.end - 1;
            self.find(format!("the rows of {of} {} to {last} can't be read: {error}", rows.start));
        }
    }

    fn add_live(&mut self, place: Place, units: u32) {
        if place.is_none() {
            return;
        }
        *self.live_units.entry(place.segment).or_default() += u64::from(units);
        let at = self.world.medium.geometry_of(place.segment).written_as(place);
        if self.open.iter().any(|(segment, next)| *segment == place.segment && at >= *next) {
            let Place { segment, offset_units } = place;
            self.find(format!(
                "segment {segment} has live bytes at {offset_units}, where the log continues"
            ));
        }
    }

    /// Walks all maps, and the parts that wait to be freed.
    fn maps(&mut self, state: &State) {
        let mut volumes: Vec<_> = self.world.volumes.read().values().cloned().collect();
        volumes.sort_unstable_by_key(|volume| volume.id);
        let mut provisioned = 0;
        for volume in volumes {
            let Some(map) = *volume.map.read() else { continue };
            self.report.volumes += 1;
            provisioned += crate::map::volumes::provisioned(&map);
            self.entry(map.root, map.level);
            if volume.id.0 >= state.next_volume {
                self.find(format!("volume {} has an id that was never allocated", volume.id));
            }
            if self.world.span_blocks(map.level) < map.size_blocks {
                self.find(format!("the map of volume {} is too low for its size", volume.id));
            }
        }
        if self.lost_blocks > 0 {
            let blocks = self.lost_blocks;
            self.find(format!("{blocks} blocks were lost when a damaged pool was opened"));
        }
        for &id in state.pending.iter().chain(&state.stuck) {
            match self.world.nodes.row(&self.world.medium, id) {
                Ok(row) => drop(self.children(id, row.level)),
                Err(error) => self.find(error.to_string()),
            }
        }
        if provisioned != state.provisioned_blocks {
            let counted = state.provisioned_blocks;
            self.find(format!("{provisioned} blocks are provisioned, but {counted} are counted"));
        }
    }

    /// Counts a reference by an entry; returns what is below it.
    fn entry(&mut self, entry: MapEntry, level: u8) -> Counts {
        match entry {
            MapEntry::Chunk(ChunkId::LOST) => {
                self.lost_blocks += self.world.span_blocks(level);
                Counts::alike(entry, self.world.span_blocks(level))
            }
            MapEntry::Chunk(id) => {
                *self.chunk_references.entry(id).or_default() += 1;
                Counts::alike(entry, self.world.span_blocks(level))
            }
            MapEntry::Node(id) => {
                *self.node_references.entry(id).or_default() += 1;
                match self.node_counts.get(&id) {
                    Some(counts) => *counts,
                    None => self.children(id, level),
                }
            }
            alike => Counts::alike(alike, self.world.span_blocks(level)),
        }
    }

    /// Visits a node for the first time.
    fn children(&mut self, id: NodeId, level: u8) -> Counts {
        let node = match self.world.nodes.get(&self.world.medium, id, level) {
            Ok(node) => node,
            Err(error) => {
                self.find(error.to_string());
                return Counts::default();
            }
        };
        let mut counts = Counts::default();
        for child in node.entries() {
            counts += self.entry(child, level - 1);
        }
        self.node_counts.insert(id, counts);
        counts
    }

    fn node_rows(&mut self, state: &State) -> Result<(), StoreError> {
        let world = self.world;
        let mut rows = Vec::new();
        let mut pages = Vec::new();
        let lost = world.nodes.table.visit(
            &world.medium,
            &mut |page| pages.push(page.place),
            &mut |id, raw| rows.push((NodeId(id), NodeRow::decode(raw))),
        );
        self.lost_rows("nodes", lost);
        let lost = world.volume_table.visit(
            &world.medium,
            &mut |page| pages.push(page.place),
            &mut |_, _| {},
        );
        self.lost_rows("volumes", lost);
        pages.into_iter().for_each(|place| self.add_live(place, UNITS_PER_BLOCK));
        for (id, row) in rows {
            self.report.nodes += 1;
            let Some(row) = row else {
                self.find(format!("the row of node {} is invalid", id.0));
                continue;
            };
            if id.0 >= state.next_node {
                self.find(format!("node {} has an id that was never allocated", id.0));
            }
            self.add_live(row.place, NODE_UNITS);
            let named = self.node_references.remove(&id).unwrap_or(0);
            if is_miscounted(row.reference_count, named, state.pending.contains(&id)) {
                let counted = row.reference_count;
                self.find(format!("node {} has {named} references, but counts {counted}", id.0));
            }
            let counts = self.node_counts.get(&id).copied().unwrap_or_default();
            if (counts.mapped, counts.data) != (row.mapped_blocks, row.data_blocks) {
                self.find(format!("node {} has wrong counts of blocks: {counts:?}, {row:?}", id.0));
            }
        }
        for (id, named) in std::mem::take(&mut self.node_references) {
            self.find(format!("node {} has {named} references, but no row", id.0));
        }
        Ok(())
    }

    fn chunk_rows(&mut self, state: &State, options: CheckOptions) -> Result<(), StoreError> {
        let world = self.world;
        let mut rows = Vec::new();
        let mut pages = Vec::new();
        let lost = world.chunks.visit(
            &world.medium,
            &mut |page| pages.push(page.place),
            &mut |id, raw| rows.push((ChunkId(id), ChunkRow::decode(raw))),
        );
        self.lost_rows("chunks", lost);
        pages.into_iter().for_each(|place| self.add_live(place, UNITS_PER_BLOCK));
        let mut reader = GroupReader::default();
        for (_, row) in &rows {
            if let Some(original) = row.as_ref().and_then(|row| row.original) {
                *self.chunk_references.entry(original).or_default() += 1;
            }
        }
        for (id, row) in rows {
            self.report.chunks += 1;
            let Some(row) = row else {
                self.find(format!("the row of chunk {} is invalid", id.0));
                continue;
            };
            self.add_live(row.place, row.share_units());
            let named = self.chunk_references.remove(&id).unwrap_or(0);
            let staged = state
                .staged
                .range(..=id.0)
                .next_back()
                .is_some_and(|(first, count)| id.0 < first + u64::from(*count));
            if is_miscounted(row.reference_count, named, staged) {
                let counted = row.reference_count;
                self.find(format!("chunk {} has {named} references, but counts {counted}", id.0));
            }
            if id.0 >= state.next_chunk {
                self.find(format!("chunk {} has an id that was never allocated", id.0));
            }
            if options.data && !row.place.is_none() {
                self.read_chunk(&mut reader, id, &row);
            }
        }
        for (id, named) in std::mem::take(&mut self.chunk_references) {
            self.find(format!("chunk {} has {named} references, but no row", id.0));
        }
        Ok(())
    }

    fn read_chunk(&mut self, reader: &mut GroupReader, id: ChunkId, row: &ChunkRow) {
        self.report.chunks_read += 1;
        if read_chunk(&self.world.medium, reader, &Stored { id, row: *row }).is_err() {
            let offset = self.world.medium.geometry_of(row.place.segment).offset_bytes(row.place);
            self.find(format!("chunk {} at byte {offset} differs from what was written", id.0));
        }
    }

    /// Checks space, if everything else is right: what is damaged can't be counted.
    fn space(&mut self, state: &State) -> Result<(), StoreError> {
        if !self.report.findings.is_empty() {
            return Ok(());
        }
        match crate::upkeep::accounting::findings(self.world, state) {
            Ok(findings) => self.report.findings = findings,
            Err(StoreError::Damaged(text)) => self.find(text),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Reads the records that recovery would, from the checkpoint's position to the log's end, and
    /// compares all of their payload with its fingerprints.
    fn log(&mut self, begin: LogPosition, end_lsn: u64) {
        let mut reader = LogReader::new(&self.world.medium);
        let mut at = begin;
        while at.lsn < end_lsn {
            let found = next_of_log(&mut reader, &at).ok().flatten();
            let Some((found, is_intact)) = found else {
                let LogPosition { segment, block, lsn, .. } = at;
                self.find(format!(
                    "record {lsn} of the log, at block {block} of segment {segment}, can't be read"
                ));
                return;
            };
            self.report.records += 1;
            if !is_intact {
                let LogPosition { segment, block, lsn, .. } = found.at;
                self.find(format!(
                    "the payload of record {lsn} of the log, at block {block} of segment \
                     {segment}, is not what was written"
                ));
            }
            at = found.behind();
        }
    }

    fn leaves(&mut self, state: &State) {
        let world = self.world;
        let (mut rows, mut pages) = (Vec::new(), Vec::new());
        let lost = world.leaves.visit(
            &world.medium,
            &mut |page| pages.push(page.place),
            &mut |number, raw| rows.push((number, LeafRow::decode(raw))),
        );
        self.lost_rows("leaves", lost);
        pages.into_iter().for_each(|place| self.add_live(place, UNITS_PER_BLOCK));
        let leaves = state.config.leaves();
        for (place, units) in leaves.into_iter().flat_map(Leaves::places) {
            self.add_live(place, units);
        }
        let stored: Vec<(u64, Place)> = leaves.map(Leaves::firsts).unwrap_or_default();
        let of_row = |(number, row): (u64, Option<LeafRow>)| Some((number, row?.first.page.place));
        if rows.into_iter().map(of_row).collect::<Option<Vec<_>>>() != Some(stored) {
            self.find("the rows of leaves differ from what was captured".into());
        }
        self.report.findings.extend(state.config.finding());
    }

    fn segment_table(&mut self, state: &State) {
        let (world, mut pages) = (self.world, Vec::new());
        let visited = segment_table::visit(world, &mut |key, page| pages.push((key, page)));
        if let Err(error) = visited {
            self.find(format!("a directory of the segment table can't be read: {error}"));
        }
        for ((level, number), page) in pages {
            self.add_live(page.place, UNITS_PER_BLOCK);
            let name = format!("page {number} of level {level} of the segment table");
            match world.medium.read_page(page) {
                Err(error) => self.find(format!("{name} can't be read: {error}")),
                Ok(read) if level == 0 && !state.segments.is_page(number, &read.content[..]) => {
                    self.find(format!("{name} differs from what was captured"));
                }
                Ok(_) => {}
            }
        }
    }

    fn segments(&mut self, state: &State) {
        let rows: Vec<_> = state.segments.rows().collect();
        for (segment, row) in rows {
            let counted = self.live_units.remove(&segment).unwrap_or(0);
            if counted != u64::from(row.live_units) {
                let noted = row.live_units;
                self.find(format!(
                    "segment {segment} has {counted} live units, but counts {noted}"
                ));
            }
            if row.state == SegmentState::Free && counted > 0 {
                self.find(format!("segment {segment} is free, but {counted} units are live"));
            }
        }
    }
}
