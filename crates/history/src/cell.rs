//! The bytes of a step. Numbers of fixed width are little endian, all others LEB128.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | CRC32C of the length of the ring's steps (4 bytes), and of 8.. with the array |
//! | 4..8 | CRC32C of the objects |
//! | 8..16 | when the step begins, in milliseconds since 1970 |
//! | 16..18 | bytes of the array |
//! | 18..20 | bytes of the objects |
//! | 20..22 | 1: objects were left out |
//! | 22..24 | version: 2; 1 has no histograms, and is read |
//! | 24.. | the array: milliseconds covered; activity; sum, count and most of each gauge |
//! | behind | objects by kind and id: kind (0 host, 1 volume, 2 port), id, activity |
//!
//! An activity is a byte with a bit for each class that is not all 0, and eight numbers of each; of
//! reads and writes, then a number with a bit for each bucket of their histogram that is not 0, and
//! what is in each of these.
//! The array has a checksum of its own, so that its series is read without the objects.

use std::collections::BTreeMap;

use crate::latency::{BUCKETS, Buckets, Latencies, MEASURED};
use crate::layout::CELL_BYTES;
use crate::numbers::{self, LONG_BYTES_MAX, NUMBER_BYTES_MAX, put};
use crate::{Activity, CLASSES, Capacity, ClassSums, GAUGES, Gauge, Object, Ring, Step};

/// The bytes before the array.
const HEAD_BYTES: usize = 24;
/// The maximum size of the beginning of a cell that contains the array: reading this much suffices
/// for it.
pub(crate) const ARRAY_BYTES_MAX: usize = 2048;
const VERSION: u16 = 2;
/// The version without histograms.
const VERSION_PLAIN: u16 = 1;
const LEFT_OUT: u16 = 1;

const _: () = {
    let histograms = MEASURED * (1 + BUCKETS) * NUMBER_BYTES_MAX;
    let activity = 1 + CLASSES.len() * 8 * NUMBER_BYTES_MAX + histograms;
    let gauges = GAUGES.len() * (LONG_BYTES_MAX + 2 * NUMBER_BYTES_MAX);
    assert!(HEAD_BYTES + NUMBER_BYTES_MAX + activity + gauges <= ARRAY_BYTES_MAX);
    assert!(CLASSES.len() <= 8 && BUCKETS <= 64 && CELL_BYTES <= u16::MAX as usize);
};

/// Encodes the cell of a step. Objects that do not fit are left out, the least busy first.
pub(crate) fn encode(ring: &Ring, step: &Step) -> Vec<u8> {
    let mut array = Vec::with_capacity(ARRAY_BYTES_MAX);
    put(&mut array, step.covered_ms.into());
    put_activity(&mut array, &step.array);
    for gauge in &step.capacity.0 {
        put(&mut array, gauge.sum);
        put(&mut array, gauge.count.into());
        put(&mut array, gauge.max.into());
    }
    let (objects, all) = put_objects(step, CELL_BYTES - HEAD_BYTES - array.len());
    let flags = if step.left_out || !all { LEFT_OUT } else { 0 };
    let mut cell = vec![0; 8];
    cell.extend(step.start_ms.to_le_bytes());
    cell.extend((array.len() as u16).to_le_bytes());
    cell.extend((objects.len() as u16).to_le_bytes());
    cell.extend(flags.to_le_bytes());
    cell.extend(VERSION.to_le_bytes());
    cell.extend(array);
    let of_array = checksum(ring, &cell[8..]);
    cell[..4].copy_from_slice(&of_array.to_le_bytes());
    cell[4..8].copy_from_slice(&crc32c::crc32c(&objects).to_le_bytes());
    cell.extend(objects);
    cell
}

/// Encodes as many objects as fit; returns whether these are all.
fn put_objects(step: &Step, room: usize) -> (Vec<u8>, bool) {
    let mut busiest: Vec<_> = step.objects.iter().collect();
    // Ports and hosts are few, and more useful than a single volume; among equals the older one
    // stays.
    busiest.sort_by_key(|(object, activity)| {
        let rank = match object {
            Object::Port(_) => 0,
            Object::Host(_) => 1,
            Object::Volume(_) => 2,
        };
        (rank, std::cmp::Reverse(activity.commands()), **object)
    });
    let (mut chosen, mut used) = (BTreeMap::new(), 0);
    for (object, activity) in busiest {
        let mut bytes = Vec::new();
        let (kind, id) = match object {
            Object::Host(id) => (0, *id),
            Object::Volume(id) => (1, *id),
            Object::Port(id) => (2, *id),
        };
        bytes.push(kind);
        put(&mut bytes, id.into());
        put_activity(&mut bytes, activity);
        // Ports and hosts may take half of the room.
        let most = if kind == 1 { room } else { room / 2 };
        if used + bytes.len() <= most {
            used += bytes.len();
            chosen.insert(*object, bytes);
        }
    }
    let all = chosen.len() == step.objects.len();
    (chosen.into_values().flatten().collect(), all)
}

/// Decodes the step in a cell, with its objects; `None` if the cell does not contain the step that
/// begins then.
pub(crate) fn decode(ring: &Ring, start_ms: u64, cell: &[u8]) -> Option<Step> {
    let (mut step, objects) = decode_head(ring, start_ms, cell)?;
    let bytes = cell.get(objects.at..objects.at + objects.len)?;
    if crc32c::crc32c(bytes) != objects.checksum {
        return None;
    }
    let mut left = Reader { left: bytes, ..objects.reader };
    while !left.left.is_empty() {
        let (kind, id) = (left.byte()?, left.number()?);
        let object = match kind {
            0 => Object::Host(id),
            1 => Object::Volume(id),
            2 => Object::Port(id),
            _ => return None,
        };
        let activity = left.activity()?;
        step.objects.insert(object, activity);
    }
    Some(step)
}

/// Decodes the step in a cell without its objects: the first [`ARRAY_BYTES_MAX`] bytes suffice.
pub(crate) fn decode_array(ring: &Ring, start_ms: u64, cell: &[u8]) -> Option<Step> {
    decode_head(ring, start_ms, cell).map(|(step, _)| step)
}

/// The bytes of the objects, and their checksum.
struct Objects<'a> {
    at: usize,
    len: usize,
    checksum: u32,
    /// Their reader.
    reader: Reader<'a>,
}

fn decode_head<'a>(ring: &Ring, start_ms: u64, cell: &'a [u8]) -> Option<(Step, Objects<'a>)> {
    let short = |at: usize| Some(u16::from_le_bytes(cell.get(at..at + 2)?.try_into().ok()?));
    let word = |at: usize| Some(u32::from_le_bytes(cell.get(at..at + 4)?.try_into().ok()?));
    let found_ms = u64::from_le_bytes(cell.get(8..16)?.try_into().ok()?);
    let (array_len, len) = (usize::from(short(16)?), usize::from(short(18)?));
    let at = HEAD_BYTES + array_len;
    let array = cell.get(HEAD_BYTES..at)?;
    let is_good = word(0)? == checksum(ring, &cell[8..at]);
    let version = short(22)?;
    if !is_good || found_ms != start_ms || ![VERSION_PLAIN, VERSION].contains(&version) {
        return None;
    }
    let left_out = short(20)? & LEFT_OUT != 0;
    let mut step = Step { start_ms, left_out, closed: left_out, ..Step::default() };
    let mut left = Reader { left: array, has_histograms: version == VERSION };
    step.covered_ms = left.number()?;
    step.array = left.activity()?;
    step.capacity = left.capacity()?;
    Some((step, Objects { at, len, checksum: word(4)?, reader: left }))
}

/// Returns a checksum that depends on the ring, so that a cell of one ring is invalid in another.
fn checksum(ring: &Ring, bytes: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&ring.step_ms.to_le_bytes()), bytes)
}

fn put_activity(bytes: &mut Vec<u8>, activity: &Activity) {
    let is_used = |class: &ClassSums| *class != ClassSums::default();
    let used = activity.0.iter().enumerate().filter(|(_, class)| is_used(class));
    bytes.push(used.clone().fold(0, |mask, (at, _)| mask | 1 << at));
    for (at, class) in used {
        for number in [
            class.ok,
            class.failed,
            class.bytes,
            class.ok_latency_us,
            class.failed_latency_us,
            class.per_s_max,
            class.bytes_per_s_max,
            class.latency_us_max,
        ] {
            put(bytes, number.into());
        }
        let Latencies(histograms) = &activity.1;
        if let Some(buckets) = histograms.get(at) {
            put_buckets(bytes, buckets);
        }
    }
}

fn put_buckets(bytes: &mut Vec<u8>, buckets: &Buckets) {
    let used = buckets.iter().enumerate().filter(|(_, count)| **count > 0);
    put(bytes, used.clone().fold(0, |mask, (at, _)| mask | 1 << at));
    for (_, count) in used {
        put(bytes, u128::from(*count));
    }
}

/// The bytes not read yet.
#[derive(Clone, Copy)]
struct Reader<'a> {
    left: &'a [u8],
    /// Whether activities have histograms: those of version 1 do not.
    has_histograms: bool,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        numbers::byte(&mut self.left)
    }

    fn long(&mut self) -> Option<u128> {
        numbers::long(&mut self.left)
    }

    fn number(&mut self) -> Option<u64> {
        numbers::number(&mut self.left)
    }

    fn activity(&mut self) -> Option<Activity> {
        let (mask, mut activity) = (self.byte()?, Activity::default());
        if mask >> CLASSES.len() != 0 {
            return None;
        }
        for (at, class) in activity.0.iter_mut().enumerate() {
            if mask & 1 << at != 0 {
                *class = ClassSums {
                    ok: self.number()?,
                    failed: self.number()?,
                    bytes: self.number()?,
                    ok_latency_us: self.number()?,
                    failed_latency_us: self.number()?,
                    per_s_max: self.number()?,
                    bytes_per_s_max: self.number()?,
                    latency_us_max: self.number()?,
                };
                if let Some(buckets) = activity.1.0.get_mut(at).filter(|_| self.has_histograms) {
                    *buckets = self.buckets()?;
                }
            }
        }
        Some(activity)
    }

    fn buckets(&mut self) -> Option<Buckets> {
        let (mask, mut buckets) = (self.number()?, Buckets::default());
        if mask >> BUCKETS != 0 {
            return None;
        }
        for (at, count) in buckets.iter_mut().enumerate() {
            if mask & 1 << at != 0 {
                *count = self.number()?;
            }
        }
        Some(buckets)
    }

    fn capacity(&mut self) -> Option<Capacity> {
        let mut capacity = Capacity::default();
        for gauge in &mut capacity.0 {
            *gauge = Gauge { sum: self.long()?, count: self.number()?, max: self.number()? };
        }
        Some(capacity)
    }
}
