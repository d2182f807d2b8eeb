//! Random requests, and their expected results.

use block::{CopySegment, DataOut, FrameMut, Sector, SectorCount, SectorRange, VolumeRequest};

use crate::content::{
    Tag, bytes_of, packed_tag, pattern_tag, push_sector, repeated_tag, unique_tag,
};
use crate::model::{Effect, State};
use crate::rng::Rng;

/// Sectors in a MiB.
pub const MIB: u64 = 2048;

/// Some sectors of a slot's volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The slot of the volume.
    pub slot: usize,
    /// The sectors.
    pub range: SectorRange,
}

/// The expected response.
#[derive(Clone, Debug)]
pub enum Expected {
    /// These bytes.
    Data(Vec<Tag>),
    /// `Done`, with these effects.
    Done(Vec<Effect>),
    /// `Done`, and everything acknowledged before is durable.
    Flushed,
    /// A miscompare at this byte.
    Miscompare(usize),
}

/// A request, what it touches, and the expected result.
#[derive(Debug)]
pub struct Generated {
    /// A few words for the trace.
    pub label: String,
    /// The request.
    pub request: VolumeRequest,
    /// What it reads.
    pub reads: Vec<Region>,
    /// What it changes.
    pub writes: Vec<Region>,
    /// The expected result.
    pub expected: Expected,
    /// Whether it must be durable when it is acknowledged, with any durability.
    pub fua: bool,
}

/// The probability of each kind of request.
#[derive(Clone, Copy, Debug)]
pub struct Mix {
    /// Weights of read, write, compare and write, zero, fill, unmap, copy, flush.
    pub weights: [u64; 8],
    /// The longest write, in sectors.
    pub write_sectors_max: u64,
    /// Where ranges begin and end.
    pub shape: Shape,
}

/// Where ranges begin and end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Anywhere, at blocks, or at MiBs, which a leaf of a map spans.
    Usual,
    /// Anywhere, at blocks, or at what nodes of four entries span, and a block before or after
    /// that.
    Small,
}

impl Shape {
    /// Returns a range of up to `count_max` sectors.
    fn range(self, size: u64, count_max: u64, rng: &mut Rng) -> SectorRange {
        match self {
            Self::Usual => any_range(size, count_max, rng),
            Self::Small => small_range(size, count_max, rng),
        }
    }
}

/// The number of blocks that are written again and again.
const BLOCKS_REPEATED: u64 = 12;

/// Generates requests.
pub struct Generator {
    /// The probability of each kind.
    pub mix: Mix,
    next_tag: u64,
}

impl Generator {
    /// Creates a generator.
    pub fn new(mix: Mix) -> Self {
        Self { mix, next_tag: 0 }
    }

    fn tag(&mut self) -> Tag {
        self.next_tag += 1;
        unique_tag(self.next_tag)
    }

    fn packed_tag(&mut self) -> Tag {
        self.next_tag += 1;
        packed_tag(self.next_tag)
    }

    /// Returns the new content of some sectors: noise, zeros, a pattern, something compressible, or
    /// the old content.
    fn tags(&mut self, count: u64, rng: &mut Rng) -> Vec<Tag> {
        match rng.below(12) {
            0 => vec![0; count as usize],
            1 => vec![pattern_tag(rng.draw() as u32); count as usize],
            2 => (0..count).map(|_| self.packed_tag()).collect(),
            3 | 4 => {
                let (first, step) = (rng.below(BLOCKS_REPEATED), rng.below(3));
                let block = |at: u64| (first + at / 8 * step) % BLOCKS_REPEATED;
                (0..count).map(|at| repeated_tag(block(at), at % 8)).collect()
            }
            5 => (0..count)
                .map(|at| if at / 8 % 3 == 1 { self.tag() } else { self.packed_tag() })
                .collect(),
            _ => (0..count).map(|_| self.tag()).collect(),
        }
    }

    /// Returns a request to volumes with the content `now`.
    pub fn request(&mut self, now: &State, rng: &mut Rng) -> Generated {
        let slot = rng.below(now.live as u64) as usize;
        let mut made = match rng.weighted(&self.mix.weights) {
            0 => self.read(now, slot, rng),
            1 => self.write(now, slot, rng),
            2 => self.compare_and_write(now, slot, rng),
            3 => self.zero(now, slot, rng),
            4 => self.fill(now, slot, rng),
            5 => self.unmap(now, slot, rng),
            6 => self.copy(now, slot, rng),
            _ => Generated {
                label: format!("flush {slot}"),
                request: VolumeRequest::Flush { volume: now.volumes[slot].id },
                // It touches no sector, but the volume must exist.
                reads: vec![Region { slot, range: SectorRange::new(0, 0) }],
                writes: Vec::new(),
                expected: Expected::Flushed,
                fua: true,
            },
        };
        made.fua &= matches!(made.expected, Expected::Done(_) | Expected::Flushed);
        made
    }

    fn read(&self, now: &State, slot: usize, rng: &mut Rng) -> Generated {
        let range = self.mix.shape.range(size(now, slot), 1024, rng);
        Generated {
            label: format!("read {slot} {range:?}"),
            request: VolumeRequest::Read { volume: now.volumes[slot].id, range },
            reads: vec![Region { slot, range }],
            writes: Vec::new(),
            expected: Expected::Data(held(now, slot, range)),
            fua: false,
        }
    }

    fn write(&mut self, now: &State, slot: usize, rng: &mut Rng) -> Generated {
        let mut range = self.mix.shape.range(size(now, slot), self.mix.write_sectors_max, rng);
        if self.mix.write_sectors_max > 2 * MIB && rng.chance(70) {
            range.count.0 = self.mix.write_sectors_max.min(size(now, slot) - range.start.0);
        }
        let tags = self.tags(range.count.0, rng);
        let fua = rng.chance(15);
        let volume = now.volumes[slot].id;
        let request = VolumeRequest::Write { volume, range, data: data(range, &tags), fua };
        changing(format!("write {slot} {range:?} fua {fua}"), request, slot, range, tags, fua)
    }

    fn compare_and_write(&mut self, now: &State, slot: usize, rng: &mut Rng) -> Generated {
        let range = self.mix.shape.range(size(now, slot), 16, rng);
        let volume = now.volumes[slot].id;
        let mut compared = bytes_of(&held(now, slot, range));
        let wrong = rng.chance(25).then(|| rng.below(compared.len() as u64) as usize);
        if let Some(at) = wrong {
            compared[at] ^= 0x10;
        }
        let tags = self.tags(range.count.0, rng);
        let fua = rng.chance(15);
        let expected = DataOut::from_bytes(&compared, range.start.offset_in_block_bytes());
        let data = data(range, &tags);
        let sender = None;
        let request = VolumeRequest::CompareAndWrite { volume, range, expected, data, fua, sender };
        let label = format!("compare {slot} {range:?} wrong {wrong:?} fua {fua}");
        let mut made = changing(label, request, slot, range, tags, fua);
        if let Some(at) = wrong {
            made.expected = Expected::Miscompare(at);
        }
        made
    }

    fn zero(&self, now: &State, slot: usize, rng: &mut Rng) -> Generated {
        let range = self.mix.shape.range(size(now, slot), 2 * MIB, rng);
        let fua = rng.chance(15);
        let request = VolumeRequest::Zero { volume: now.volumes[slot].id, range, fua };
        let tags = vec![0; range.count.0 as usize];
        changing(format!("zero {slot} {range:?} fua {fua}"), request, slot, range, tags, fua)
    }

    fn fill(&mut self, now: &State, slot: usize, rng: &mut Rng) -> Generated {
        let range = self.mix.shape.range(size(now, slot), 2 * MIB, rng);
        let block: Vec<Tag> = if rng.chance(30) {
            vec![pattern_tag(rng.draw() as u32); 8]
        } else {
            (0..8).map(|_| self.tag()).collect()
        };
        let tags =
            (0..range.count.0).map(|at| block[((range.start.0 + at) % 8) as usize]).collect();
        let mut bytes = Vec::new();
        block.iter().for_each(|&tag| push_sector(tag, &mut bytes));
        let fua = rng.chance(15);
        let pattern = FrameMut::from_bytes(&bytes).freeze();
        let request = VolumeRequest::Fill { volume: now.volumes[slot].id, range, pattern, fua };
        changing(format!("fill {slot} {range:?} fua {fua}"), request, slot, range, tags, fua)
    }

    fn unmap(&self, now: &State, slot: usize, rng: &mut Rng) -> Generated {
        let mut ranges: Vec<SectorRange> = Vec::new();
        for _ in 0..rng.between(1, 4) {
            let range = self.mix.shape.range(size(now, slot), 2 * MIB, rng);
            if !ranges.iter().any(|other| other.overlaps(range)) {
                ranges.push(range);
            }
        }
        let effect = |range: &SectorRange| Effect::Sectors {
            slot,
            start: range.start.0,
            tags: vec![0; range.count.0 as usize],
        };
        Generated {
            label: format!("unmap {slot} {ranges:?}"),
            writes: ranges.iter().map(|&range| Region { slot, range }).collect(),
            expected: Expected::Done(ranges.iter().map(effect).collect()),
            request: VolumeRequest::Unmap { volume: now.volumes[slot].id, ranges },
            reads: Vec::new(),
            fua: false,
        }
    }

    /// Returns a copy of one or two segments, which do not overlap each other's sectors.
    fn copy(&self, now: &State, slot: usize, rng: &mut Rng) -> Generated {
        let mut made = Generated {
            label: String::from("copy"),
            request: VolumeRequest::Copy { segments: Vec::new() },
            reads: Vec::new(),
            writes: Vec::new(),
            expected: Expected::Done(Vec::new()),
            fua: false,
        };
        let mut segments = Vec::new();
        let mut effects = Vec::new();
        // Copies may also be from snapshots.
        let all = now.volumes.len() as u64;
        let slot = if rng.chance(25) { rng.below(all) as usize } else { slot };
        for _ in 0..rng.between(1, 2) {
            let to_slot = rng.below(now.live as u64) as usize;
            let from = self.mix.shape.range(size(now, slot), 2 * MIB, rng);
            let mut to = self.mix.shape.range(size(now, to_slot), 2 * MIB, rng);
            if rng.chance(60) {
                to.start.0 = to.start.0 / 8 * 8 + from.start.0 % 8;
            }
            if self.mix.shape == Shape::Small && slot == to_slot && rng.chance(40) {
                // Onto itself, shifted by some blocks.
                let shift = rng.below(5) * 8;
                to.start.0 = (from.start.0 + shift).min(size(now, slot) - 1);
            }
            // Only copies with equal offsets in their blocks may be long: others move data.
            let limit = if to.start.0 % 8 == from.start.0 % 8 { 2 * MIB } else { 500 };
            let room = size(now, to_slot).saturating_sub(to.start.0);
            let count = from.count.0.min(to.count.0).min(room).min(limit);
            let source = Region { slot, range: SectorRange::new(from.start.0, count) };
            let target = Region { slot: to_slot, range: SectorRange::new(to.start.0, count) };
            let clash = made.writes.iter().any(|done| touch(done, &source) || touch(done, &target))
                || made.reads.iter().any(|done| touch(done, &target));
            if count == 0 || clash {
                continue;
            }
            made.label += &format!(" {slot} {:?} to {to_slot} {:?}", source.range, target.range);
            let tags = held(now, slot, source.range);
            effects.push(Effect::Sectors { slot: to_slot, start: to.start.0, tags });
            segments.push(CopySegment {
                source: now.volumes[slot].id,
                source_start: Sector(from.start.0),
                destination: now.volumes[to_slot].id,
                destination_start: Sector(to.start.0),
                count: SectorCount(count),
            });
            made.reads.push(source);
            made.writes.push(target);
        }
        made.request = VolumeRequest::Copy { segments };
        made.expected = Expected::Done(effects);
        made
    }
}

/// Returns whether only each block of a request is all or nothing: for a write, and for a copy that
/// may take several commits.
pub fn is_by_block(request: &VolumeRequest, tuning: &store::Tuning) -> bool {
    match request {
        VolumeRequest::Write { .. } => true,
        request => may_split(request, tuning),
    }
}

/// Returns whether a request may take several commits: if it is refused, some may have been done.
pub fn may_split(request: &VolumeRequest, tuning: &store::Tuning) -> bool {
    match request {
        VolumeRequest::Copy { segments } => {
            tuning.may_split(segments.iter().map(|segment| segment.count.0.div_ceil(8)))
        }
        _ => false,
    }
}

/// Returns whether two regions share a sector.
pub fn touch(a: &Region, b: &Region) -> bool {
    a.slot == b.slot && a.range.overlaps(b.range)
}

fn size(now: &State, slot: usize) -> u64 {
    now.volumes[slot].tags.len() as u64
}

fn held(now: &State, slot: usize, range: SectorRange) -> Vec<Tag> {
    let start = range.start.0 as usize;
    now.volumes[slot].tags[start..start + range.count.0 as usize].to_vec()
}

fn data(range: SectorRange, tags: &[Tag]) -> DataOut {
    DataOut::from_bytes(&bytes_of(tags), range.start.offset_in_block_bytes())
}

fn changing(
    label: String,
    request: VolumeRequest,
    slot: usize,
    range: SectorRange,
    tags: Vec<Tag>,
    fua: bool,
) -> Generated {
    let expected = Expected::Done(vec![Effect::Sectors { slot, start: range.start.0, tags }]);
    let writes = vec![Region { slot, range }];
    Generated { label, request, reads: Vec::new(), writes, expected, fua }
}

/// Returns a range of up to `count_max` sectors: aligned to nothing, to blocks, or to MiBs.
fn any_range(size: u64, count_max: u64, rng: &mut Rng) -> SectorRange {
    let (start, count) = match rng.below(5) {
        0 | 1 => (rng.below(size), rng.between(1, 40)),
        2 | 3 => (rng.below(size / 8) * 8, rng.between(1, 64) * 8),
        _ => (rng.below(size.div_ceil(MIB)) * MIB, rng.between(1, 2) * MIB),
    };
    SectorRange::new(start, count.min(count_max).min(size - start))
}

/// Returns a range of up to `count_max` sectors: aligned to nothing, to blocks, or to what a node
/// of four entries spans, then perhaps a block too long or too short, at either end.
fn small_range(size: u64, count_max: u64, rng: &mut Rng) -> SectorRange {
    let (start, end) = match rng.below(6) {
        0 | 1 => {
            let start = rng.below(size);
            (start, start + rng.between(1, 40))
        }
        2 => {
            let start = rng.below(size / 8) * 8;
            (start, start + rng.between(1, 16) * 8)
        }
        _ => {
            let span = 32 << (2 * rng.below(4));
            let start = rng.below(size.div_ceil(span)) * span;
            let end = start + rng.between(1, 4) * span;
            let off = |at: u64, rng: &mut Rng| match rng.below(5) {
                0 => at + 8,
                1 => at.saturating_sub(8),
                _ => at,
            };
            (off(start, rng).min(size - 1), off(end, rng))
        }
    };
    let count = end.saturating_sub(start).clamp(1, count_max);
    SectorRange::new(start, count.min(size - start))
}
