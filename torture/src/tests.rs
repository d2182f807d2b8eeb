//! Each fault works as described, through a real mount.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use block::{Frame, FrameMut};
use fuser::Errno;
use sys::{Buffers, Disk, FileDisk, Persist, Ring};
use tempfile::TempDir;

use crate::faults::{Faults, Refusal};
use crate::mount::Mounted;

const LEN_BYTES: u64 = 4 << 20;
const BLOCK: usize = 4096;

/// A device over a file, which is open.
struct World {
    // Closed before unmounting.
    file: File,
    mounted: Mounted,
    path: PathBuf,
    _directory: TempDir,
}

impl World {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pool.data");
        drop(FileDisk::create(&path, LEN_BYTES).unwrap());
        let mounted = Mounted::over(&path).unwrap();
        let file = File::options().read(true).write(true).open(&path).unwrap();
        Self { file, mounted, path, _directory: directory }
    }

    fn set(&self, faults: Faults) {
        self.mounted.device().set(faults);
    }

    fn write(&self, number: u64, byte: u8) -> io::Result<()> {
        self.file.write_all_at(&[byte; BLOCK], number * BLOCK as u64)
    }

    fn read(&self, number: u64) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; BLOCK];
        self.file.read_exact_at(&mut bytes, number * BLOCK as u64)?;
        Ok(bytes)
    }

    /// Returns the byte that fills a block.
    fn byte(&self, number: u64) -> u8 {
        let bytes = self.read(number).unwrap();
        assert!(bytes.iter().all(|byte| *byte == bytes[0]));
        bytes[0]
    }
}

fn code(result: io::Result<impl Sized>) -> Option<i32> {
    result.err().and_then(|error| error.raw_os_error())
}

fn is(errno: Errno) -> Option<i32> {
    Some(errno.code())
}

fn frame(byte: u8) -> Frame {
    FrameMut::from_bytes(&[byte; BLOCK]).freeze()
}

/// Writes and reads by a ring. Returns whether that uses io_uring.
fn by_ring(disk: &Arc<FileDisk>, number: u64, byte: u8, persist: Persist) -> bool {
    let mut ring = Ring::new(disk.clone(), 8);
    let mut ended = Vec::new();
    let mut end = |ring: &mut Ring| {
        ring.submit().unwrap();
        while ring.in_flight() > 0 {
            ring.wait().unwrap();
            ring.complete(&mut ended).unwrap();
        }
        let completion = ended.pop().unwrap();
        completion.result.unwrap();
        completion.buffers
    };
    ring.write(1, number * BLOCK as u64, vec![frame(byte)], persist).unwrap();
    end(&mut ring);
    ring.read(2, number * BLOCK as u64, vec![FrameMut::stale()]).unwrap();
    let Buffers::Read(read) = end(&mut ring) else { panic!("it was a read") };
    assert!(read[0].iter().all(|read| *read == byte));
    ring.poll_fd().is_some()
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn all_calls_of_holdfast_on_a_file_work() {
    let world = World::new();
    let disk = Arc::new(FileDisk::open(&world.path).unwrap());
    assert!(disk.notices().is_empty(), "it bypasses the page cache: {:?}", disk.notices());
    assert_eq!(disk.len_bytes(), LEN_BYTES);
    let lock = rustix::fs::FlockOperation::NonBlockingLockExclusive;
    let locked = rustix::fs::flock(&world.file, lock);
    assert_eq!(locked, Err(rustix::io::Errno::WOULDBLOCK), "the disk has locked it");
    assert!(by_ring(&disk, 3, 7, Persist::Nothing), "it uses io_uring");
    assert!(disk.discard(3 * BLOCK as u64, BLOCK as u64).unwrap());
    assert_eq!(world.byte(3), 0, "a hole was punched");
    disk.grow(2 * LEN_BYTES).unwrap();
    disk.write_durable(2 * LEN_BYTES - BLOCK as u64, &[frame(9)]).unwrap();
    assert_eq!(world.file.metadata().unwrap().len(), 2 * LEN_BYTES);
    let long = vec![5; 3 << 20];
    world.file.write_all_at(&long, 1000).unwrap();
    let mut read = vec![0; long.len()];
    world.file.read_exact_at(&mut read, 1000).unwrap();
    assert!(read == long, "longer than one call, and not in whole blocks");
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn unflushed_writes_are_lost_and_fua_writes_are_kept() {
    let world = World::new();
    let disk = Arc::new(FileDisk::open(&world.path).unwrap());
    let device = world.mounted.device();
    (0..5).for_each(|number| world.write(number, 1).unwrap());
    world.file.sync_data().unwrap();
    world.write(0, 2).unwrap();
    by_ring(&disk, 1, 2, Persist::Itself);
    by_ring(&disk, 2, 2, Persist::Nothing);
    disk.write_durable(3 * BLOCK as u64, &[frame(2)]).unwrap();
    assert_eq!([0, 1, 2, 3, 4].map(|number| world.byte(number)), [2, 2, 2, 2, 1]);
    let lost = device.counts().lost_blocks;
    device.lose_unflushed();
    assert_eq!([0, 1, 2, 3, 4].map(|number| world.byte(number)), [1, 2, 1, 2, 1]);
    assert_eq!(device.counts().lost_blocks - lost, 2);
    by_ring(&disk, 4, 3, Persist::All);
    device.lose_unflushed();
    assert_eq!(world.byte(4), 3);
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn a_cache_that_is_full_is_written_back() {
    let world = World::new();
    let disk = FileDisk::open(&world.path).unwrap();
    disk.grow(48 << 20).unwrap();
    for number in 0..9000 {
        world.write(number, 1).unwrap();
    }
    world.mounted.device().lose_unflushed();
    let lost = world.mounted.device().counts().lost_blocks;
    assert!((8000..9000).contains(&lost), "{lost}");
    assert_eq!([world.byte(0), world.byte(8999)], [1, 0]);
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn a_device_that_is_torn_out_fails_all_calls_until_it_is_back() {
    let world = World::new();
    let device = world.mounted.device();
    world.write(0, 1).unwrap();
    world.file.sync_data().unwrap();
    world.write(0, 2).unwrap();
    device.tear_out();
    assert_eq!(code(world.read(0)), is(Errno::ENODEV));
    assert_eq!(code(world.write(0, 3)), is(Errno::ENODEV));
    assert_eq!(code(world.file.sync_data()), is(Errno::ENODEV));
    assert_eq!(code(File::open(&world.path)), is(Errno::ENODEV));
    assert!(!world.path.exists());
    device.bring_back();
    assert_eq!(world.byte(0), 1);
    assert!(File::open(&world.path).is_ok());
    assert!(device.counts().gone >= 3);
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn a_device_can_return_with_an_earlier_state() {
    let world = World::new();
    let device = world.mounted.device();
    world.write(0, 1).unwrap();
    world.file.sync_data().unwrap();
    device.tear_out();
    device.remember().unwrap();
    device.bring_back();
    (0..2).for_each(|number| world.write(number, 2).unwrap());
    world.file.sync_data().unwrap();
    device.tear_out();
    assert!(device.set_back().unwrap());
    device.bring_back();
    assert_eq!([world.byte(0), world.byte(1)], [1, 0]);
    assert!(!device.set_back().unwrap(), "it no longer remembers a state");
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn calls_fail_some_times_or_always() {
    let world = World::new();
    let refused = is(Errno::EIO);
    world.set(Faults { reads: Refusal::Times(2), ..Faults::default() });
    let reads: Vec<_> = (0..3).map(|_| code(world.read(0))).collect();
    assert_eq!(reads, [refused, refused, None]);
    world.set(Faults { writes: Refusal::Always, ..Faults::default() });
    for _ in 0..3 {
        assert_eq!(code(world.write(0, 1)), refused);
    }
    world.set(Faults::default());
    assert_eq!(world.byte(0), 0, "nothing was written");

    world.write(0, 1).unwrap();
    world.set(Faults { flushes: Refusal::Times(1), ..Faults::default() });
    assert_eq!(code(world.file.sync_data()), refused);
    world.file.sync_data().unwrap();
    assert_eq!(world.byte(0), 0, "the data it should have kept is gone");
    assert_eq!(world.mounted.device().counts().refused, 2 + 3 + 1);
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn a_full_device_refuses_writes() {
    let world = World::new();
    world.write(0, 1).unwrap();
    world.set(Faults { is_full: true, ..Faults::default() });
    assert_eq!(code(world.write(0, 2)), is(Errno::ENOSPC));
    assert_eq!(world.byte(0), 1);
    world.file.sync_data().unwrap();
    world.set(Faults::default());
    world.write(0, 2).unwrap();
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn a_lying_device_flips_one_bit_in_each_read() {
    let world = World::new();
    world.write(0, 0).unwrap();
    world.set(Faults { lies: true, ..Faults::default() });
    let bits = |bytes: Vec<u8>| bytes.iter().map(|byte| byte.count_ones()).sum::<u32>();
    let reads: Vec<Vec<u8>> = (0..4).map(|_| world.read(0).unwrap()).collect();
    assert!(reads.windows(2).any(|two| two[0] != two[1]), "not always the same");
    assert!(reads.into_iter().all(|read| bits(read) == 1));
    world.set(Faults::default());
    assert_eq!(bits(world.read(0).unwrap()), 0);
    assert_eq!(world.mounted.device().counts().lies, 4);
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn a_slow_device_delays_only_its_own_callers() {
    let (slow, other) = (World::new(), World::new());
    let delay = Duration::from_millis(200);
    slow.set(Faults { delay, ..Faults::default() });
    let begin = Instant::now();
    thread::scope(|scope| {
        for number in 0..4 {
            let slow = &slow;
            scope.spawn(move || slow.read(number).unwrap());
        }
        other.write(0, 1).unwrap();
        assert!(begin.elapsed() < delay, "another device is not delayed");
    });
    assert!(begin.elapsed() >= delay);
    assert!(begin.elapsed() < 3 * delay, "they are delayed in parallel");
    for call in [World::write_any, World::sync] {
        let begin = Instant::now();
        call(&slow);
        assert!(begin.elapsed() >= delay);
    }
    assert_eq!(slow.mounted.device().counts().delayed, 6);
}

#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn calls_hang_until_the_fault_ends_or_the_device_is_gone() {
    let world = World::new();
    for ends_gone in [false, true] {
        world.set(Faults { hangs: true, ..Faults::default() });
        thread::scope(|scope| {
            let read = scope.spawn(|| code(world.read(0)));
            thread::sleep(Duration::from_millis(300));
            assert!(!read.is_finished(), "it hangs");
            match ends_gone {
                true => world.mounted.device().tear_out(),
                false => world.set(Faults::default()),
            }
            let expected = if ends_gone { is(Errno::ENODEV) } else { None };
            assert_eq!(read.join().unwrap(), expected);
        });
    }
    assert_eq!(world.mounted.device().counts().hung, 2);
}

impl World {
    fn write_any(&self) {
        self.write(1, 1).unwrap();
    }

    fn sync(&self) {
        self.file.sync_data().unwrap();
    }
}

/// As in a front end: many requests at once to a slow device.
#[test]
#[ignore = "mounts: cargo test -p torture -- --ignored, where there is /dev/fuse"]
fn submitting_to_a_ring_does_not_block() {
    let world = World::new();
    let disk = Arc::new(FileDisk::open(&world.path).unwrap());
    let delay = Duration::from_millis(400);
    world.set(Faults { delay, ..Faults::default() });
    let mut ring = Ring::new(disk, 64);
    let begin = Instant::now();
    for number in 0..16 {
        ring.read(number, number * BLOCK as u64, vec![FrameMut::stale()]).unwrap();
        let frames = vec![frame(1)];
        ring.write(100 + number, (100 + number) * BLOCK as u64, frames, Persist::Itself).unwrap();
        ring.submit().unwrap();
    }
    assert!(begin.elapsed() < delay / 2, "they are in flight");
    let mut ended = Vec::new();
    while ring.in_flight() > 0 {
        ring.wait().unwrap();
        ring.complete(&mut ended).unwrap();
    }
    assert_eq!(ended.len(), 32);
    assert!(ended.iter().all(|completion| completion.result.is_ok()));
    assert!((delay..4 * delay).contains(&begin.elapsed()), "{:?}", begin.elapsed());
}
