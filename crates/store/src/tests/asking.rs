//! What a front end calls never reads the device itself: it returns the reads to perform.

use std::sync::atomic::AtomicBool;

use super::memory::evict_all;
use super::*;
use crate::{Commit, Durability, Outcome, ReadOperation, Sink, Started, Token};

/// A disk that counts reads made inside a call of a front end into the store.
struct Watched {
    below: Arc<MemoryDisk>,
    inside: AtomicBool,
    read_inside: AtomicU64,
}

impl sys::Disk for Watched {
    fn len_bytes(&self) -> u64 {
        self.below.len_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        let inside = self.inside.load(Ordering::Relaxed);
        self.read_inside.fetch_add(u64::from(inside), Ordering::Relaxed);
        self.below.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        self.below.write(offset_bytes, frames)
    }

    fn flush(&self) -> io::Result<()> {
        self.below.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.below.flush_failures()
    }
}

#[derive(Default)]
struct Answers(Mutex<Vec<Outcome>>);

impl Sink for Answers {
    fn complete(&self, _: u64, outcome: Outcome) {
        self.0.lock().push(outcome);
    }

    fn commit_wanted(&self) {}
}

/// A front end with one request at a time. Memory is emptied before each of its steps.
struct Front {
    disk: Arc<Watched>,
    store: Store,
    answers: Arc<Answers>,
    token: Token,
    /// Device reads that the store asked it for, and the most at once.
    reads: u64,
    at_once: usize,
}

impl Front {
    /// A volume of 8 MiB whose metadata is on the device only.
    fn new(durability: Durability) -> (Self, VolumeId) {
        let below = MemoryDisk::new(512 << 20);
        let disk = Arc::new(Watched {
            below,
            inside: AtomicBool::new(false),
            read_inside: AtomicU64::new(0),
        });
        Store::create(&*disk, &[5; 64]).unwrap();
        let options = OpenOptions { durability, memory_bytes: 0, ..OpenOptions::default() };
        let store = Store::open(disk.clone(), options).unwrap();
        let id = volume(&store, 8 * MIB);
        (0..4).for_each(|at| write(&store, id, at * MIB, &distinct(MIB, at + 1)).unwrap());
        store.checkpoint().unwrap();
        let answers = Arc::<Answers>::default();
        let token = Token { sink: store.register_sink(answers.clone()), id: 1 };
        (Self { disk, store, answers, token, reads: 0, at_once: 0 }, id)
    }

    fn inside<T>(&self, call: impl FnOnce(&Store) -> T) -> T {
        evict_all(&self.store);
        self.disk.inside.store(true, Ordering::Relaxed);
        let result = call(&self.store);
        self.disk.inside.store(false, Ordering::Relaxed);
        result
    }

    fn perform(&mut self, operation: &mut ReadOperation) {
        self.reads += operation.reads.len() as u64;
        self.at_once = self.at_once.max(operation.reads.len());
        self.store.perform(operation);
    }

    fn commit(&self, commit: Commit) {
        let disk = &self.store.world.medium.disk;
        let result = disk.append_as(commit.place, &commit.frames, commit.persist);
        self.inside(|store| store.finish_commit(commit, result));
    }

    fn execute(&mut self, request: VolumeRequest) -> Result<VolumeReply, VolumeError> {
        let token = self.token;
        let mut started = self.inside(|store| store.start(request, token));
        for _ in 0..1000 {
            started = match started {
                Started::Done(reply) => return reply,
                Started::Read(mut operation) => {
                    self.perform(&mut operation);
                    self.inside(|store| store.resume(operation, token))
                }
                Started::Queued => {
                    while let Some(commit) = self.inside(|store| store.take_commit()) {
                        self.commit(commit);
                    }
                    match self.answers.0.lock().pop() {
                        Some(Outcome::Reply(reply)) => return reply,
                        Some(Outcome::Again(operation)) => Started::Read(operation),
                        None => Started::Queued,
                    }
                }
            };
        }
        panic!("a request does not end");
    }

    fn read_inside(&self) -> u64 {
        self.disk.read_inside.load(Ordering::Relaxed)
    }
}

fn frames(byte: u8, blocks: usize) -> DataOut {
    DataOut::from_bytes(&vec![byte; blocks * 4096], 0)
}

#[test]
fn reads_request_missing_metadata() {
    let (mut front, volume) = Front::new(Durability::Commit);
    let range = SectorRange::new(0, MIB);
    let reply = front.execute(VolumeRequest::Read { volume, range }).unwrap();
    let VolumeReply::Data(data) = reply else { panic!("{reply:?}") };
    assert!(data.to_vec() == distinct(MIB, 1), "wrong data");
    let whole = SectorRange::new(0, 8 * MIB);
    front.execute(VolumeRequest::Extents { volume, range: whole, limit: 9 }).unwrap();
    assert_eq!(front.read_inside(), 0, "a front end waited for the device");
    assert!(front.reads > 8, "all metadata was in memory");
    assert_sound(&front.store);
}

#[test]
fn metadata_of_one_request_is_read_in_parallel() {
    let (mut front, volume) = Front::new(Durability::Commit);
    // The rows of the chunks of two leaves span several pages.
    let range = SectorRange::new(MIB / 2, 2 * MIB);
    front.execute(VolumeRequest::Read { volume, range }).unwrap();
    assert!(front.at_once >= 4, "{} reads at once", front.at_once);
}

/// All requests a host can make, over mapped, shared and unmapped ranges.
fn requests(volume: VolumeId, source: VolumeId) -> Vec<VolumeRequest> {
    let range = SectorRange::new;
    let write = |start, blocks: u64, byte| VolumeRequest::Write {
        volume,
        range: range(start, blocks * 8),
        data: frames(byte, blocks as usize),
        fua: false,
    };
    let copy = |from, to, count| VolumeRequest::Copy {
        segments: vec![CopySegment {
            source,
            source_start: Sector(from),
            destination: volume,
            destination_start: Sector(to),
            count: SectorCount(count),
        }],
    };
    let small = |start| VolumeRequest::Write {
        volume,
        range: range(start, 3),
        data: DataOut::from_bytes(&[7; 3 * 512], 1 << 9),
        fua: false,
    };
    let pattern = FrameMut::from_bytes(&distinct(8, 77)).freeze();
    let fill = |start, count| VolumeRequest::Fill {
        volume,
        range: range(start, count),
        pattern: pattern.clone(),
        fua: false,
    };
    vec![
        write(0, 1, 1),
        write(MIB - 16, 5, 2),
        small(2 * MIB + 1),
        VolumeRequest::CompareAndWrite {
            volume,
            range: range(3 * MIB + 8, 1),
            expected: DataOut::from_bytes(&distinct(MIB, 4)[8 * 512..9 * 512], 0),
            data: DataOut::from_bytes(&[9; 512], 0),
            fua: false,
            sender: None,
        },
        VolumeRequest::Zero { volume, range: range(MIB + 8, MIB), fua: false },
        fill(2 * MIB + 24, 2 * MIB),
        VolumeRequest::Unmap { volume, ranges: vec![range(8, 64), range(3 * MIB, MIB)] },
        copy(0, 4 * MIB, 2 * MIB),
        copy(MIB, 6 * MIB + 8, MIB),
        copy(3, 5 * MIB + 1, MIB / 2),
        write(7 * MIB, 256, 3),
        VolumeRequest::Flush { volume },
    ]
}

fn no_change_waits(durability: Durability) {
    let (mut front, source) = Front::new(durability);
    // A clone, so that each change meets shared blocks.
    let clone = front.store.allocate_volume_id();
    let change = VolumeChange::Clone { source, id: clone, snapshot: false };
    front.store.change(Change { volumes: vec![change], ..Change::default() }).unwrap();
    front.store.checkpoint().unwrap();
    for volume in [source, clone] {
        for (index, request) in requests(volume, source).into_iter().enumerate() {
            let said = format!("{durability:?}, request {index} to volume {volume}: {request:?}");
            let reply = front.execute(request);
            assert!(reply.is_ok(), "{said}: {reply:?}");
            assert_eq!(front.read_inside(), 0, "{said} has waited for the device");
            if index % 3 == 2 {
                front.store.checkpoint().unwrap();
            }
        }
    }
    while front.store.housekeep() {}
    assert_sound(&front.store);
}

#[test]
fn no_change_blocks_a_front_end_for_metadata() {
    no_change_waits(Durability::Commit);
    no_change_waits(Durability::Flush);
}

/// The first of two segments splits an entry of the second one's source, so the second sets parts
/// of leaves that it seemed to replace as a whole.
#[test]
fn a_copy_from_next_to_its_own_target_does_not_block() {
    let (mut front, source) = Front::new(Durability::Commit);
    let clone = front.store.allocate_volume_id();
    let change = VolumeChange::Clone { source, id: clone, snapshot: false };
    front.store.change(Change { volumes: vec![change], ..Change::default() }).unwrap();
    front.store.checkpoint().unwrap();
    let segment = |from, destination, to, count| CopySegment {
        source,
        source_start: Sector(from),
        destination,
        destination_start: Sector(to),
        count: SectorCount(count),
    };
    let segments =
        vec![segment(0, source, 5 * MIB + 8, 8), segment(5 * MIB + MIB / 4, clone, 0, 2 * MIB)];
    front.execute(VolumeRequest::Copy { segments }).unwrap();
    assert_eq!(front.read_inside(), 0, "it has waited for the device");
    assert_eq!(read(&front.store, clone, 0, 2 * MIB), vec![0; 2 << 20]);
    assert_eq!(read(&front.store, source, 5 * MIB + 8, 8), read(&front.store, source, 0, 8));
    assert_sound(&front.store);
}

/// A copy to lower addresses references a leaf of its source as it is and then sets some blocks of
/// that leaf: the estimate must include copying the leaf and all its references.
#[test]
fn a_copy_requests_all_of_a_leaf_that_it_references_and_changes() {
    for durability in [Durability::Commit, Durability::Flush] {
        let (mut front, volume) = Front::new(durability);
        let blocks = MIB / 8 + 100;
        let segments = vec![segment(volume, MIB, volume, 0, blocks * 8)];
        front.execute(VolumeRequest::Copy { segments }).unwrap();
        assert_eq!(front.read_inside(), 0, "{durability:?}");
        let mut expected: Vec<u8> = (1..4).flat_map(|at| distinct(MIB, at + 1)).collect();
        expected.truncate(blocks as usize * 4096);
        assert!(read(&front.store, volume, 0, blocks * 8) == expected);
        let rest = &distinct(MIB, 2)[100 * 4096..];
        assert!(read(&front.store, volume, blocks * 8, MIB - 800) == rest);
        assert_sound(&front.store);
    }
}
