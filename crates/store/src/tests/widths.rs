//! Pools in stripes whose segments become narrower when a device is lost, and wider when one is
//! added.

use segments::{Device, Lacking, Segments};
use std::time::Duration;

use super::mirrors::{Pool, make, open};
use super::reduction::prose;
use super::*;
use crate::Next;

/// More turns of maintenance than any of these tests needs.
const TURNS_MAX: usize = 20_000;
/// Segments that are open for writing.
const OPEN: usize = 3;

impl Pool {
    /// Runs maintenance until no segment is left to be rewritten, except the two segments of the
    /// log and that of checkpoints, which leave narrow ones over time.
    fn lay_all(&self) {
        for _ in 0..TURNS_MAX {
            let to_lay = self.mirrors.to_lay_anew().unwrap_or_default();
            let lacks = !self.mirrors.lacking().is_empty();
            if to_lay.lacking.is_empty() && to_lay.narrow.len() <= OPEN && !lacks {
                return;
            }
            self.store.maintain().unwrap();
        }
        panic!("left: {:?}, {:?}", self.mirrors.to_lay_anew(), self.used());
    }

    fn used(&self) -> Vec<u32> {
        self.mirrors.devices().iter().map(|device| device.parts.unwrap().used).collect()
    }

    /// A device fails and does not return.
    fn lose(&self, disk: usize) {
        self.mirrors.take_out(disk as u16, "a test").unwrap();
        self.mirrors.set_lost_after(Duration::ZERO);
    }

    /// Returns the pool with only these disks, as they are now.
    fn with_only(&self, left: &[usize]) -> Pool {
        open(left.iter().map(|at| self.disks[*at].copy()).collect())
    }
}

/// A host's data, as far as it was acknowledged.
struct Data {
    id: VolumeId,
    bytes: Vec<u8>,
    seed: u64,
}

impl Data {
    fn of(pool: &Pool) -> Self {
        Self { id: volume(&pool.store, 512 * MIB), bytes: Vec::new(), seed: 0 }
    }

    /// Writes `parts` parts of all sizes, some of them compressible.
    fn grow(&mut self, pool: &Pool, parts: u64) {
        for at in 0..parts {
            let sectors = [8, 8, 24, 200, 520, 2048][at as usize % 6];
            self.seed += 1;
            let part = match at % 2 {
                0 => prose(sectors, self.seed),
                _ => distinct(sectors, self.seed),
            };
            write(&pool.store, self.id, self.bytes.len() as u64 / 512, &part).unwrap();
            self.bytes.extend(part);
        }
    }

    fn check(&self, pool: &Pool) {
        for (at, part) in (0..).zip(self.bytes.chunks(1 << 20)) {
            let found = read(&pool.store, self.id, at * 2048, part.len() as u64 / 512);
            assert!(found == part, "MiB {at}");
        }
    }
}

/// Asserts that all data is present when any two of these disks are lost.
fn survives_two(pool: &Pool, data: &Data, disks: &[usize]) {
    for a in 0..disks.len() {
        for b in a + 1..disks.len() {
            let left = disks.iter().enumerate().filter(|(at, _)| *at != a && *at != b);
            let left = pool.with_only(&left.map(|(_, disk)| *disk).collect::<Vec<_>>());
            data.check(&left);
            assert_sound(&left.store);
        }
    }
}

#[test]
fn without_spare_space_redundancy_is_restored_in_narrower_segments() {
    let pool = make(6);
    let mut data = Data::of(&pool);
    data.grow(&pool, 100);
    pool.store.checkpoint().unwrap();
    data.grow(&pool, 20);
    let before = pool.store.pool_status().capacity_bytes;
    pool.lose(2);
    data.grow(&pool, 5);
    pool.lay_all();
    assert_eq!(pool.used()[2], 0, "{:?}", pool.used());
    assert_eq!(pool.store.pool_status().capacity_bytes, before / 4 * 3);
    data.check(&pool);
    survives_two(&pool, &data, &[0, 1, 3, 4, 5]);
    assert_eq!(pool.scrub(), []);
    // It accepts writes, and opens in this state.
    data.grow(&pool, 30);
    pool.store.checkpoint().unwrap();
    let pool = pool.with_only(&[0, 1, 3, 4, 5]);
    data.check(&pool);
    assert_eq!(pool.store.pool_status().capacity_bytes, before / 4 * 3);
    assert_sound(&pool.store);
}

#[test]
fn adding_a_device_makes_segments_wider() {
    let mut pool = make(5);
    let mut data = Data::of(&pool);
    data.grow(&pool, 100);
    pool.store.checkpoint().unwrap();
    data.grow(&pool, 20);
    let before = pool.store.pool_status().capacity_bytes;
    let disk = MemoryDisk::new(1 << 30);
    pool.mirrors.add(Device::over(disk.clone(), "new".into()), [9; 16]).unwrap();
    pool.disks.push(disk);
    assert_eq!(pool.mirrors.lacking(), [(Lacking::Device(5), 1)]);
    pool.lay_all();
    let segment_bytes = before / 3 / 63;
    let gained = pool.store.pool_status().capacity_bytes - before;
    assert!((60..=63).contains(&(gained / segment_bytes)), "{gained} of {segment_bytes}");
    data.check(&pool);
    data.grow(&pool, 30);
    survives_two(&pool, &data, &[0, 1, 2, 3, 4, 5]);
    let pool = pool.reopened();
    data.check(&pool);
    assert_sound(&pool.store);
    assert_eq!(pool.scrub(), []);
}

/// Again and again a device is lost and replaced by one of another size, while hosts write.
#[test]
fn devices_of_other_sizes_replace_lost_ones() {
    let mut pool = make(6);
    let mut data = Data::of(&pool);
    for round in 0..4_u8 {
        data.grow(&pool, 12);
        let lost = usize::from(round) % 6;
        pool.lose(lost);
        data.grow(&pool, 12);
        pool.lay_all();
        data.check(&pool);
        let disk = MemoryDisk::new((700 + 200 * u64::from(round)) << 20);
        let device = Device::over(disk.clone(), format!("new {round}"));
        pool.mirrors.replace(lost as u16, device, [round + 10; 16]).unwrap();
        pool.disks[lost] = disk;
        data.grow(&pool, 6);
        pool.lay_all();
        pool.store.checkpoint().unwrap();
        data.check(&pool);
    }
    survives_two(&pool, &data, &[0, 1, 2, 3, 4, 5]);
    let pool = pool.reopened();
    data.check(&pool);
    assert_eq!(pool.scrub(), []);
}

/// Blocks that are dead by then, or in the log only, are no reason to wait forever.
#[test]
fn an_idle_pool_becomes_fully_redundant() {
    let pool = make(5);
    let mut data = Data::of(&pool);
    data.grow(&pool, 2);
    pool.lose(4);
    pool.lay_all();
    while pool.store.maintain().unwrap() != Next::Nothing {}
    data.check(&pool);
    survives_two(&pool, &data, &[0, 1, 2, 3]);
}
