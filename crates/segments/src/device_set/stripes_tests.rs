//! Pools in stripes on in-memory disks, some of which fail, return wrong data, or are replaced.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use block::{Frame, FrameMut};
use format::{Features, Geometry, Place, Superblock};
use proptest::prelude::*;
use sys::Persist;

use super::stripes_checked::{check, open, read};
use super::tests::{Plain, devices, segments_of, states};
use super::{Device, DeviceSet};
use crate::devices::DeviceState::{In, Out};
use crate::devices::Lacking;
use crate::segments::Segments;

/// Rows of a segment.
pub(super) const ROWS: u32 = 16;
/// Segments of the log, of which the last is empty at first, and of metadata.
pub(super) const LOG: [u32; 6] = [1, 2, 3, 4, 9, 11];
pub(super) const METADATA: [u32; 4] = [5, 6, 7, 10];

pub(super) fn geometry(k: u8) -> Geometry {
    Geometry { part_bytes: 64 << 10, segment_count: 16, columns: k }
}

pub(super) fn root(k: u8, sequence: u64) -> Superblock {
    let incompatible = Features::KNOWN.incompatible | Features::STRIPES;
    let features = Features { incompatible, ..Features::KNOWN };
    let geometry = geometry(k);
    let first = Superblock::of_new_pool([7; 16], [9; 32], geometry.pool_bytes(), geometry);
    Superblock { sequence, features, ..first }
}

/// What was written, by segment and block.
pub(super) type Written = BTreeMap<(u32, u32), Frame>;

pub(super) struct Pool {
    pub(super) k: u8,
    pub(super) disks: Vec<Arc<Plain>>,
    pub(super) pool: DeviceSet,
    pub(super) written: Written,
    /// The next row of each segment of the log.
    rows: BTreeMap<u32, u32>,
    next: u64,
}

impl Pool {
    pub(super) fn new(k: u8) -> Self {
        let disks: Vec<_> = (0..k + 2).map(|_| Plain::new()).collect();
        let wiped = [Place::of_block(1, 0)];
        DeviceSet::make(&devices(&disks), &root(k, 1), &wiped, [3; 16]).unwrap();
        Self::of(k, disks)
    }

    pub(super) fn of(k: u8, disks: Vec<Arc<Plain>>) -> Self {
        let pool = open(k, &disks, false).unwrap();
        pool.fence(1).unwrap();
        Self { k, disks, pool, written: Written::new(), rows: BTreeMap::new(), next: 0 }
    }

    fn frame(&mut self) -> Frame {
        self.next = self.next.wrapping_add(1);
        let mut state = self.next.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut frame = FrameMut::stale();
        for word in frame.as_chunks_mut::<8>().0 {
            state = state.rotate_left(5) ^ state.wrapping_mul(0x2545_f491_4f6c_dd1d);
            *word = state.to_le_bytes();
        }
        frame.freeze()
    }

    /// Returns the number of data columns of a segment.
    pub(super) fn columns(&self, segment: u32) -> u8 {
        self.pool.columns(segment).unwrap_or(self.k)
    }

    /// Appends a record of `rows` rows, if there is room.
    pub(super) fn record(&mut self, segment: u32, rows: u32, persist: Persist) -> io::Result<()> {
        let row = self.rows.get(&segment).copied().unwrap_or(0);
        let rows = rows.min(ROWS - row);
        let blocks = rows * u32::from(self.columns(segment));
        let frames: Vec<Frame> = (0..blocks).map(|_| self.frame()).collect();
        if rows == 0 {
            return Ok(());
        }
        self.pool.append_as(Place::of_block(segment, row), &frames, persist)?;
        self.rows.insert(segment, row + rows);
        for (at, frame) in (0..).zip(frames) {
            let block = at / rows * ROWS + row + at % rows;
            self.written.insert((segment, block), frame);
        }
        Ok(())
    }

    /// Writes a run of metadata.
    pub(super) fn metadata(&mut self, segment: u32, at: u32, blocks: u32) -> io::Result<()> {
        let geometry = geometry(self.columns(segment));
        let at = at % geometry.metadata_blocks();
        let blocks = blocks.min(ROWS - at % ROWS);
        let block = geometry.first_metadata_block() + at;
        let frames: Vec<Frame> = (0..blocks).map(|_| self.frame()).collect();
        self.pool.append(Place::of_block(segment, block), &frames)?;
        self.written.extend((block..).zip(frames).map(|(block, frame)| ((segment, block), frame)));
        Ok(())
    }

    /// Writes some of everything.
    pub(super) fn fill(&mut self) {
        for (at, segment) in (0..).zip(LOG).take(5) {
            for rows in [1, 3, 2, 5] {
                self.record(segment, (rows + at) % 5 + 1, Persist::Itself).unwrap();
            }
        }
        for segment in METADATA {
            for at in 0..8 {
                self.metadata(segment, at * 7 + segment, at % 3 + 1).unwrap();
            }
        }
    }

    pub(super) fn check(&self) {
        check(&self.written, self.k, &self.pool);
    }

    /// Replaces a device that is out by a blank one. Returns which devices then lack something.
    pub(super) fn come(&mut self, number: usize) -> Vec<(Lacking, u64)> {
        self.disks[number] = Plain::new();
        let device = Device::over(self.disks[number].clone(), "new".into());
        self.next += 1;
        let entropy = [self.next as u8; 16];
        assert_eq!(self.pool.replace(number as u16, device, entropy).unwrap(), number as u16);
        self.pool.lacking()
    }

    /// The same, and gives it all it lacks.
    pub(super) fn replace(&mut self, number: usize) {
        self.come(number);
        self.catch_up(number as u16);
    }

    pub(super) fn catch_up(&self, number: u16) {
        for (is_metadata, segments) in [(false, &LOG[..]), (true, &METADATA[..])] {
            for segment in segments {
                for rows in [0..5, 5..ROWS] {
                    let who = Lacking::Device(number);
                    self.pool.rebuild(who, *segment, is_metadata, rows).unwrap();
                }
            }
        }
        self.pool.given(Lacking::Device(number)).unwrap();
    }
}

/// Returns all pairs of `n` devices.
fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |a| (a + 1..n).map(move |b| (a, b)))
}

#[test]
fn everything_is_readable_with_any_two_devices_lost() {
    for k in 2..=6 {
        let mut pool = Pool::new(k);
        pool.fill();
        pool.check();
        for (a, b) in pairs(pool.disks.len()) {
            for lost in [a, b] {
                pool.disks[lost].go();
            }
            pool.check();
            for lost in [a, b] {
                pool.disks[lost].come_back();
            }
            // The same without these devices.
            let left = pool.disks.iter().enumerate().filter(|(at, _)| *at != a && *at != b);
            let left: Vec<_> = left.map(|(_, disk)| disk.clone()).collect();
            check(&pool.written, k, &open(k, &left, true).unwrap());
        }
        assert!(pool.pool.devices().iter().all(|device| device.state == In));
    }
}

/// The layout by its definition, as in the format's document.
#[test]
fn the_layout_follows_the_format() {
    for k in 2..=16u8 {
        let mut pool = Pool::new(k);
        pool.fill();
        let (k, n) = (u32::from(k), u32::from(k) + 2);
        let on = |position: u32, segment: u32, row: u32| {
            let at = (16 << 20) + u64::from(segment - 1) * (64 << 10) + u64::from(row) * 4096;
            pool.disks[(position % n) as usize].block(at)
        };
        for ((segment, block), frame) in &pool.written {
            let (segment, block) = (*segment, *block);
            if let Some(block) = block.checked_sub(k * ROWS) {
                for copy in 0..3 {
                    let position = segment + 3 * (block / ROWS) + copy;
                    assert!(on(position, segment, block % ROWS) == *frame);
                }
                continue;
            }
            let row = block % ROWS;
            assert!(on(segment + block / ROWS, segment, row) == *frame);
            let data: Vec<[Frame; 1]> =
                (0..k).map(|column| [on(segment + column, segment, row)]).collect();
            let data: Vec<&[Frame]> = data.iter().map(|frame| &frame[..]).collect();
            let code = parity::code(parity::Stripe::new(k as usize, 2).unwrap()).unwrap();
            let parity: Vec<Frame> = code.encode(&data).unwrap().into_iter().flatten().collect();
            assert!(on(segment + k, segment, row) == parity[0]);
            assert!(on(segment + k + 1, segment, row) == parity[1]);
        }
    }
}

#[test]
fn a_source_with_wrong_data_is_identified() {
    for k in 2..=5 {
        let mut pool = Pool::new(k);
        pool.fill();
        let n = pool.disks.len();
        assert_eq!(pool.pool.copies(), n as u32);
        for segment in [LOG[1], METADATA[2]] {
            let of_segment = pool.written.iter().filter(|(at, _)| at.0 == segment);
            for ((_, block), expected) in of_segment.step_by(7) {
                let place = Place::of_block(segment, *block);
                let at = pool.pool.locate(place);
                for (a, b) in pairs(n) {
                    let before = [a, b].map(|lying| pool.disks[lying].block(at));
                    pool.disks[a].put(at, 0x5a);
                    pool.disks[b].put(at, 0xa5);
                    let mut found = (0..n as u32).map(|copy| {
                        let mut frames = [FrameMut::stale()];
                        let read = pool.pool.read_copy(place, copy, &mut frames);
                        read.is_ok_and(|()| frames[0][..] == expected[..])
                    });
                    // If both are other devices, the block's own is right.
                    assert!(found.any(|is_right| is_right), "{k}, {place:?}, {a} and {b} lie");
                    for (lying, before) in [a, b].into_iter().zip(before) {
                        pool.disks[lying].blocks.lock().unwrap().insert(at, before);
                    }
                }
            }
        }
    }
}

#[test]
fn copies_are_repaired_in_place() {
    let mut pool = Pool::new(4);
    pool.fill();
    let log = Place::of_block(LOG[0], ROWS + 1);
    let metadata = pool.written.keys().find(|at| at.0 == METADATA[0]).copied().unwrap();
    let metadata = Place::of_block(metadata.0, metadata.1);
    let before: Vec<_> = pool.disks.iter().map(|disk| segments_of(disk)).collect();
    for (place, stored) in [(log, 1), (metadata, 3)] {
        let right = read(&pool.pool, place, 1).unwrap();
        let at = pool.pool.locate(place);
        // The device with each copy is the one whose block it reads.
        for copy in 0..stored {
            let mut frames = [FrameMut::stale()];
            let is_of = |disk: &Arc<Plain>| {
                let before = disk.block(at);
                disk.put(at, 0x77);
                pool.pool.read_copy(place, copy, &mut frames).unwrap();
                disk.blocks.lock().unwrap().insert(at, before);
                frames[0][0] == 0x77
            };
            let number = pool.disks.iter().position(is_of).unwrap();
            pool.disks[number].put(at, 0x77);
            pool.pool.mend(place, copy, &right).unwrap();
        }
        let unsupported = pool.pool.mend(place, stored, &right).unwrap_err().kind();
        assert!(matches!(unsupported, io::ErrorKind::Unsupported | io::ErrorKind::NotFound));
    }
    for (disk, before) in pool.disks.iter().zip(before) {
        assert!(segments_of(disk) == before);
    }
    assert_eq!(pool.pool.devices().iter().map(|device| device.mended).sum::<u64>(), 4);
    pool.pool.take_out(0, "told so").unwrap();
    for (segment, block) in pool.written.keys().filter(|at| LOG.contains(&at.0)).step_by(9) {
        let place = Place::of_block(*segment, *block);
        let read = |copy: &u32| pool.pool.read_copy(place, *copy, &mut [FrameMut::stale()]).is_ok();
        // The block itself, or from all others; or, without it, in each other way.
        assert!(matches!((0..6).filter(read).count(), 2 | 5));
        let read = |copy| pool.pool.read_copy(place, copy, &mut [FrameMut::stale()]);
        assert!(read(6).is_err());
    }
}

#[derive(Clone, Debug)]
enum Step {
    Record { segment: usize, rows: u32 },
    Metadata { segment: usize, at: u32, blocks: u32 },
    Fail(usize),
    TakeBack,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..LOG.len(), 1..5u32).prop_map(|(segment, rows)| Step::Record { segment, rows }),
        4 => (0..METADATA.len(), 0..99u32, 1..4u32)
            .prop_map(|(segment, at, blocks)| Step::Metadata { segment, at, blocks }),
        2 => (0..18usize).prop_map(Step::Fail),
        2 => Just(Step::TakeBack),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]

    /// Devices fail while the pool is written, and come back with what they had then.
    #[test]
    fn acknowledged_data_is_always_read(k in 2..=6u8, steps in steps()) {
        let mut pool = Pool::new(k);
        let n = pool.disks.len();
        for step in steps {
            match step {
                Step::Record { segment, rows } => {
                    pool.record(LOG[segment], rows, Persist::Itself).unwrap();
                }
                Step::Metadata { segment, at, blocks } => {
                    pool.metadata(METADATA[segment], at, blocks).unwrap();
                }
                Step::Fail(device) => {
                    let are_gone = states(&pool.pool).iter().filter(|state| **state != In).count();
                    let number = device % n;
                    if are_gone < 2 && states(&pool.pool)[number] == In {
                        pool.disks[number].go();
                        // It is detected here at the latest.
                        pool.pool.append_as(Place::NONE, &[], Persist::All).unwrap();
                        prop_assert_eq!(states(&pool.pool)[number], Out);
                    }
                }
                Step::TakeBack => {
                    for number in 0..n {
                        if states(&pool.pool)[number] != In {
                            pool.disks[number].come_back();
                            pool.pool.take_back(number as u16).unwrap();
                            pool.catch_up(number as u16);
                        }
                    }
                }
                Step::Reopen => {
                    let again = open(k, &pool.disks, false).unwrap();
                    let are_in = |pool: &DeviceSet| -> Vec<bool> {
                        states(pool).iter().map(|state| *state == In).collect()
                    };
                    prop_assert_eq!(are_in(&again), are_in(&pool.pool));
                    check(&pool.written, k, &again);
                }
            }
        }
        pool.check();
        let are_in = states(&pool.pool).iter().filter(|state| **state == In).count();
        for (a, b) in pairs(n).take(if are_in == n { usize::MAX } else { 0 }) {
            pool.disks[a].go();
            pool.disks[b].go();
            pool.check();
            pool.disks[a].come_back();
            pool.disks[b].come_back();
        }
    }
}
