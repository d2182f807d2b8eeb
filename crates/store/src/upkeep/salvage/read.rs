//! Reading volumes sequentially.

use std::io;

use block::{BlockRange, Frame, VolumeId};
use format::{ChunkId, MapEntry, VolumeRow};

use super::extents::{Extent, Value};
use super::{LossReason, OrphanMap, Salvage, Salvaged, blocks};
use crate::chunks::groups::GroupReader;
use crate::fetch::uniform_frame;
use crate::world::World;

/// How many blocks are delivered at once.
const BATCH_BLOCKS: usize = 256;

/// Receives the parts of a volume.
pub type SalvageSink<'a> = dyn FnMut(Salvaged<'_>) -> io::Result<()> + 'a;

impl Salvage {
    /// Reads a volume, and delivers its parts in order. `size_blocks` counts if its row is lost and
    /// the log does not say how large it is.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn read(
        &self,
        id: VolumeId,
        size_blocks: Option<u64>,
        sink: &mut SalvageSink<'_>,
    ) -> io::Result<()> {
        let size_blocks = self.volumes.size_blocks(id, size_blocks);
        self.read_range(id, blocks(0, size_blocks), sink)
    }

    /// Reads a part of a volume.
    pub(crate) fn read_range(
        &self,
        id: VolumeId,
        range: BlockRange,
        sink: &mut SalvageSink<'_>,
    ) -> io::Result<()> {
        let mut out = Out::new(self, sink);
        for extent in self.volumes.extents(id, range.start.0, range.count.0) {
            out.extent(extent)?;
        }
        out.finish()
    }

    /// Reads what is below an unreferenced node, as [`Salvage::read`] does.
    ///
    /// # Errors
    /// Those of `sink`.
    pub fn read_orphan(&self, orphan: &OrphanMap, sink: &mut SalvageSink<'_>) -> io::Result<()> {
        let mut out = Out::new(self, sink);
        let root = MapEntry::Node(format::NodeId(orphan.node));
        let range = blocks(0, orphan.span_blocks);
        let walk = Walk { world: &self.world, range };
        walk.below(root, orphan.level, 0, &mut |start, count, found| {
            out.found(start, count, found)
        })?;
        out.finish()
    }
}

/// What a walk finds.
#[derive(Clone, Copy)]
enum Seen {
    Entry(MapEntry),
    Lost,
}

/// A walk over a map of the checkpoint that skips what can't be read.
struct Walk<'a> {
    world: &'a World,
    range: BlockRange,
}

impl Walk<'_> {
    fn below(
        &self,
        entry: MapEntry,
        level: u8,
        base: u64,
        visit: &mut dyn FnMut(u64, u64, Seen) -> io::Result<()>,
    ) -> io::Result<()> {
        let start = self.range.start.0.max(base);
        let end = self.range.end().0.min(base + self.world.span_blocks(level));
        if start >= end {
            return Ok(());
        }
        let MapEntry::Node(id) = entry else {
            return visit(start, end - start, Seen::Entry(entry));
        };
        let Ok(node) = self.world.nodes.get(&self.world.medium, id, level) else {
            return visit(start, end - start, Seen::Lost);
        };
        let span = self.world.span_blocks(level - 1);
        for index in (start - base) / span..=(end - 1 - base) / span {
            self.below(node.get(index as usize), level - 1, base + index * span, visit)?;
        }
        Ok(())
    }
}

/// Collects what is delivered into few pieces.
struct Out<'a, 'b> {
    salvage: &'a Salvage,
    sink: &'a mut SalvageSink<'b>,
    reader: GroupReader,
    /// Consecutive blocks whose chunks are to be read.
    start: u64,
    ids: Vec<ChunkId>,
    lost: Option<(BlockRange, LossReason)>,
}

impl<'a, 'b> Out<'a, 'b> {
    fn new(salvage: &'a Salvage, sink: &'a mut SalvageSink<'b>) -> Self {
        let reader = GroupReader::default();
        Self { salvage, sink, reader, start: 0, ids: Vec::new(), lost: None }
    }

    fn extent(&mut self, extent: Extent) -> io::Result<()> {
        let Extent { start, count, value } = extent;
        match value {
            Value::Same(entry) => self.found(start, count, Seen::Entry(entry)),
            Value::Run(first) => (0..count).try_for_each(|at| {
                let chunk = MapEntry::Chunk(ChunkId(first.0 + at));
                self.found(start + at, 1, Seen::Entry(chunk))
            }),
            Value::Map { map, start: from } => self.map(start, count, map, from),
            Value::Unknown => self.lose(start, count, LossReason::Volume),
        }
    }

    /// Delivers blocks of a checkpoint's map, from block `from` on.
    fn map(&mut self, start: u64, count: u64, map: usize, from: u64) -> io::Result<()> {
        let salvage = self.salvage;
        let Some(&VolumeRow { root, level, size_blocks, .. }) = salvage.volumes.maps().get(map)
        else {
            return self.lose(start, count, LossReason::Volume);
        };
        // The volume may have grown since: the new part is holes.
        let end = (from + count).min(size_blocks);
        if from >= end {
            return Ok(());
        }
        let walk = Walk { world: &salvage.world, range: blocks(from, end - from) };
        walk.below(root, level, 0, &mut |at, count, seen| {
            self.found(start + (at - from), count, seen)
        })
    }

    fn found(&mut self, start: u64, count: u64, seen: Seen) -> io::Result<()> {
        match seen {
            Seen::Lost => self.lose(start, count, LossReason::Map),
            Seen::Entry(MapEntry::Hole | MapEntry::Zero) => Ok(()),
            Seen::Entry(MapEntry::Chunk(id)) if count == 1 => {
                if self.start + self.ids.len() as u64 != start || self.ids.len() == BATCH_BLOCKS {
                    self.read_batch()?;
                    self.start = start;
                }
                self.ids.push(id);
                Ok(())
            }
            Seen::Entry(MapEntry::Chunk(id)) => {
                self.read_batch()?;
                let chunks = &self.salvage.chunks;
                let mut read = chunks.read(&self.salvage.world, &mut self.reader, &[id]);
                match read.pop() {
                    Some(Ok(frame)) => self.repeat(start, count, &frame),
                    Some(Err(reason)) => self.lose(start, count, reason),
                    None => self.lose(start, count, LossReason::Data),
                }
            }
            Seen::Entry(entry @ MapEntry::Pattern(_)) => {
                self.read_batch()?;
                self.repeat(start, count, &uniform_frame(entry))
            }
            // Only a walk follows nodes.
            Seen::Entry(MapEntry::Node(_)) => self.lose(start, count, LossReason::Map),
        }
    }

    fn repeat(&mut self, start: u64, count: u64, frame: &Frame) -> io::Result<()> {
        let frames = vec![frame.clone(); BATCH_BLOCKS.min(count as usize)];
        let mut done = 0;
        while done < count {
            let now = (count - done).min(frames.len() as u64);
            (self.sink)(Salvaged::Data(start + done, &frames[..now as usize]))?;
            done += now;
        }
        Ok(())
    }

    /// Reads the collected chunks, and delivers the result for each.
    fn read_batch(&mut self) -> io::Result<()> {
        let ids = std::mem::take(&mut self.ids);
        if ids.is_empty() {
            return Ok(());
        }
        let read = self.salvage.chunks.read(&self.salvage.world, &mut self.reader, &ids);
        let mut good: Vec<Frame> = Vec::new();
        for (block, one) in (self.start..).zip(read) {
            match one {
                Ok(frame) => good.push(frame),
                Err(reason) => {
                    self.tell(block, &mut good)?;
                    self.lost_one(block, 1, reason)?;
                }
            }
        }
        self.tell(self.start + ids.len() as u64, &mut good)
    }

    /// Delivers the blocks before `end`.
    fn tell(&mut self, end: u64, good: &mut Vec<Frame>) -> io::Result<()> {
        if !good.is_empty() {
            (self.sink)(Salvaged::Data(end - good.len() as u64, good))?;
            good.clear();
        }
        Ok(())
    }

    fn lose(&mut self, start: u64, count: u64, reason: LossReason) -> io::Result<()> {
        self.read_batch()?;
        self.lost_one(start, count, reason)
    }

    /// Adjacent blocks that are lost for the same reason are reported as one range.
    fn lost_one(&mut self, start: u64, count: u64, reason: LossReason) -> io::Result<()> {
        if let Some((range, why)) = &mut self.lost
            && *why == reason
            && range.end().0 == start
        {
            range.count.0 += count;
            return Ok(());
        }
        match self.lost.replace((blocks(start, count), reason)) {
            Some((range, why)) => (self.sink)(Salvaged::Lost(range, why)),
            None => Ok(()),
        }
    }

    fn finish(mut self) -> io::Result<()> {
        self.read_batch()?;
        match self.lost {
            Some((range, why)) => (self.sink)(Salvaged::Lost(range, why)),
            None => Ok(()),
        }
    }
}
