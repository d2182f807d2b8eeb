//! The root, and the location of everything.

use std::collections::BTreeSet;
use std::sync::Mutex;

use block::FRAME_BYTES;
use format::DeviceId;
use format::label::LABEL_OFFSETS_BYTES;
use format::superblock::{SUPERBLOCK_OFFSETS_BYTES, SUPERBLOCK_STAND_IN_OFFSET_BYTES};

use super::*;

const GEOMETRY: Geometry = Geometry { part_bytes: 1 << 20, segment_count: 16, columns: 1 };

/// An in-memory disk that refuses to write some blocks, and writes half of each.
#[derive(Default)]
struct Refusing {
    blocks: Mutex<std::collections::BTreeMap<u64, Frame>>,
    bad: Mutex<BTreeSet<u64>>,
}

impl Refusing {
    fn block(&self, offset_bytes: u64) -> Frame {
        self.blocks.lock().unwrap().get(&offset_bytes).cloned().unwrap_or_else(Frame::zeros)
    }

    fn refuse(&self, offsets: impl IntoIterator<Item = u64>) {
        *self.bad.lock().unwrap() = offsets.into_iter().collect();
    }

    fn spoil(&self, offset_bytes: u64) {
        let torn = FrameMut::from_bytes(&[0x77; FRAME_BYTES]).freeze();
        self.blocks.lock().unwrap().insert(offset_bytes, torn);
    }
}

impl Disk for Refusing {
    fn len_bytes(&self) -> u64 {
        GEOMETRY.pool_bytes()
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> io::Result<()> {
        for (at, frame) in (offset_bytes..).step_by(FRAME_BYTES).zip(frames) {
            frame.copy_from_slice(&self.block(at)[..]);
        }
        Ok(())
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> io::Result<()> {
        for (at, frame) in (offset_bytes..).step_by(FRAME_BYTES).zip(frames) {
            if self.bad.lock().unwrap().contains(&at) {
                self.spoil(at);
                return Err(io::Error::other("a bad place"));
            }
            self.blocks.lock().unwrap().insert(at, frame.clone());
        }
        Ok(())
    }

    fn flush(&self) -> io::Result<()> {
        Ok(())
    }

    fn flush_failures(&self) -> u64 {
        0
    }
}

fn superblock(sequence: u64) -> Superblock {
    let first = Superblock::of_new_pool([7; 16], [9; 32], GEOMETRY.pool_bytes(), GEOMETRY);
    Superblock { sequence, epoch: sequence, ..first }
}

fn made() -> (Arc<Refusing>, Local) {
    let disk = Arc::<Refusing>::default();
    Local::make(&*disk, &superblock(1), &[Place::of_block(1, 0)]).unwrap();
    let local = Local::over(disk.clone());
    assert_eq!(local.read_root().unwrap(), Superblock { epoch: 1, ..superblock(2) });
    local.lay_out(GEOMETRY);
    (disk, local)
}

#[test]
fn appended_data_is_read_at_its_place() {
    let (disk, local) = made();
    let place = Place::of_block(3, 7);
    let frames = [1, 2].map(|byte| FrameMut::from_bytes(&[byte; FRAME_BYTES]).freeze());
    local.append(place, &frames).unwrap();
    let mut read = [FrameMut::stale()];
    local.read(place.plus_blocks(1), &mut read).unwrap();
    assert_eq!(read[0][..], frames[1][..]);
    assert!(disk.block(GEOMETRY.offset_bytes(place)) == frames[0]);
    assert_eq!(local.locate(place), GEOMETRY.offset_bytes(place));
}

/// Other offsets belong to other segments.
#[test]
fn requests_beyond_a_segment_panic() {
    let (_disk, local) = made();
    let panics = |call: &dyn Fn(&Local)| {
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| call(&local))).is_err()
    };
    let last = Place::of_block(2, 255);
    assert!(!panics(&|local| local.append(last, &[Frame::zeros()]).unwrap()));
    assert!(panics(&|local| local.append(last, &[Frame::zeros(), Frame::zeros()]).unwrap()));
    assert!(panics(&|local| local.read(Place::NONE, &mut [FrameMut::stale()]).unwrap()));
    let two = || [(); 2].map(|()| FrameMut::stale());
    assert!(panics(&|local| local.read_patiently(last, &mut two()).unwrap()));
}

#[test]
fn the_root_is_replaced_only_by_a_caller_that_has_read_it() {
    let (_disk, local) = made();
    local.swap_root(2, &superblock(3)).unwrap();
    let error = local.swap_root(2, &superblock(4)).unwrap_err();
    assert!(matches!(error, RootError::Overtaken { expected: 2, found: 3 }), "{error}");
    assert_eq!(local.read_root().unwrap(), superblock(3));
    // Nor can an earlier one replace it.
    let earlier = std::panic::AssertUnwindSafe(|| local.swap_root(3, &superblock(3)));
    assert!(std::panic::catch_unwind(earlier).is_err());
}

#[test]
fn a_root_that_was_not_read_is_not_replaced() {
    let (disk, _) = made();
    let other = Local::over(disk);
    assert!(matches!(other.swap_root(2, &superblock(3)), Err(RootError::None(_))));
}

/// One copy can't be written: at any time one of the others is whole, and its stand-in never counts
/// as the newest once the copy is whole again.
#[test]
fn one_copy_is_valid_at_any_time() {
    for bad in SUPERBLOCK_OFFSETS_BYTES {
        let (disk, local) = made();
        disk.refuse([bad]);
        let mut newest = 2;
        for sequence in 3..9 {
            let swapped = local.swap_root(newest, &superblock(sequence)).is_ok();
            assert_eq!(swapped, SUPERBLOCK_OFFSETS_BYTES[sequence as usize % 2] != bad);
            if swapped {
                newest = sequence;
                // If torn, it leaves its stand-in.
                let good = SUPERBLOCK_OFFSETS_BYTES[sequence as usize % 2];
                let whole = disk.block(good);
                disk.spoil(good);
                let found = Local::over(disk.clone()).read_root();
                assert!(sequence < 5 || found.unwrap().sequence == sequence, "{sequence}");
                disk.blocks.lock().unwrap().insert(good, whole);
            }
            assert_eq!(Local::over(disk.clone()).read_root().unwrap().sequence.max(2), newest);
        }
        let stands_in = || disk.block(SUPERBLOCK_STAND_IN_OFFSET_BYTES)[..8] == *b"HOLDFAST";
        assert!(stands_in());
        local.settle_root();
        assert!(stands_in(), "as long as one is bad");
        disk.refuse([]);
        for sequence in [newest + 1, newest + 2] {
            local.swap_root(sequence - 1, &superblock(sequence)).unwrap();
        }
        local.settle_root();
        assert!(!stands_in());
        assert_eq!(local.root_copies().len(), 2);
    }
}

#[test]
fn a_bad_copy_is_repaired_in_place() {
    let (disk, local) = made();
    local.swap_root(2, &superblock(3)).unwrap();
    for (copy, root) in [(1, superblock(3)), (0, superblock(4))] {
        disk.spoil(SUPERBLOCK_OFFSETS_BYTES[copy]);
        local.mend_root(copy, &root).unwrap();
        assert!(local.root_copies().iter().all(Result::is_ok));
        assert_eq!(local.read_root().unwrap(), root);
    }
    assert!(local.mend_root(0, &superblock(6)).is_err(), "root 5 was never written");
}

#[test]
fn a_root_larger_than_its_device_is_refused() {
    let (disk, local) = made();
    let larger = Superblock { capacity_bytes: disk.len_bytes() + 4096, ..superblock(3) };
    local.swap_root(2, &larger).unwrap();
    let other = Local::over(disk.clone());
    assert!(matches!(other.read_root(), Err(RootError::Short { .. })));
    assert!(matches!(Local::over(Arc::<Refusing>::default()).read_root(), Err(RootError::None(_))));
}

#[test]
fn an_epoch_is_fenced_and_never_decreases() {
    let dir = tempfile::tempdir().unwrap();
    let file = FileDisk::create(&dir.path().join("disk"), GEOMETRY.pool_bytes()).unwrap();
    let local = Local::new(Arc::new(file));
    assert_eq!(local.fence(4).unwrap(), Fence::Lock);
    // It is opened once more, and fails there, before the new epoch is written.
    assert_eq!(local.fence(4).unwrap(), Fence::Lock);
    let (_disk, memory) = made();
    assert_eq!(memory.fence(1).unwrap(), Fence::Memory);
    let back = std::panic::AssertUnwindSafe(|| local.fence(3));
    assert!(std::panic::catch_unwind(back).is_err());
    // As the fence says, no other process can open it meanwhile.
    let again = FileDisk::open(&dir.path().join("disk"));
    assert_eq!(again.unwrap_err().kind(), io::ErrorKind::WouldBlock);
}

#[test]
fn a_device_grows_before_its_new_segments_are_used() {
    let dir = tempfile::tempdir().unwrap();
    let file = FileDisk::create(&dir.path().join("disk"), GEOMETRY.pool_bytes()).unwrap();
    let local = Local::new(Arc::new(file));
    local.lay_out(GEOMETRY);
    let grown = Geometry { segment_count: 17, ..GEOMETRY };
    local.grow(grown.pool_bytes()).unwrap();
    local.grow(GEOMETRY.pool_bytes()).unwrap();
    assert_eq!(local.len_bytes(), grown.pool_bytes());
    local.lay_out(grown);
    local.append(Place::of_block(16, 255), &[Frame::zeros()]).unwrap();
    assert!(Local::over(Arc::<Refusing>::default()).channel(1).is_err());
}

fn labels(disk: &Refusing) -> [Result<Label, FormatError>; 2] {
    crate::labels::read(disk)
}

fn root_without_labels() -> Superblock {
    let mut root = superblock(1);
    root.features.compatible = 0;
    root
}

#[test]
fn a_device_label_identifies_its_pool() {
    let (disk, local) = made();
    let label = Label::of_only(&superblock(1));
    assert_eq!(label.members.len(), 1);
    assert_eq!(labels(&disk), [Ok(label.clone()), Ok(label)]);
    assert_eq!(local.labels(), labels(&disk));
    assert_eq!(local.mend_labels(&superblock(2)), []);
}

/// For each copy, and for both: a bad one is rewritten as it was.
#[test]
fn a_bad_label_is_repaired_and_does_not_prevent_opening() {
    let [first, second] = LABEL_OFFSETS_BYTES;
    for bad in [vec![first], vec![second], vec![first, second]] {
        let (disk, local) = made();
        bad.iter().for_each(|at| disk.spoil(*at));
        local.read_root().unwrap();
        disk.refuse(bad.iter().copied());
        let refused = local.mend_labels(&superblock(2));
        assert_eq!(refused.iter().map(|bad| bad.offset_bytes).collect::<Vec<_>>(), bad);
        assert!(refused.iter().all(|bad| !bad.mended));
        disk.refuse([]);
        let mended = local.mend_labels(&superblock(2));
        assert!(mended.len() == bad.len() && mended.iter().all(|bad| bad.mended));
        let found = labels(&disk);
        assert!(found[0].is_ok() && found[0] == found[1], "{found:?}");
        assert_eq!(local.mend_labels(&superblock(2)), []);
    }
}

fn put_label(disk: &Refusing, offset_bytes: u64, label: &Label) {
    let frame = FrameMut::from_bytes(&label.encode()).freeze();
    disk.blocks.lock().unwrap().insert(offset_bytes, frame);
}

#[test]
fn a_device_of_another_pool_or_of_several_is_refused() {
    let only = Label::of_only(&superblock(1));
    let stranger = Label { pool_id: [8; 16], ..only.clone() };
    let other = format::label::Member {
        device: DeviceId([1; 16]),
        bytes: 1 << 30,
        number: 1,
        state: format::label::MemberState::In,
    };
    let one_of_two = Label { members: vec![only.members[0], other], ..only.clone() };
    let replaced = Label::of_only(&Superblock { pool_id: [6; 16], ..superblock(1) });
    let replaced = Label { pool_id: [7; 16], ..replaced };
    for label in [stranger, one_of_two, replaced] {
        let (disk, local) = made();
        put_label(&disk, LABEL_OFFSETS_BYTES[1], &label);
        local.read_root().unwrap();
        put_label(&disk, LABEL_OFFSETS_BYTES[0], &label);
        let error = local.read_root().unwrap_err();
        assert!(matches!(error, RootError::OtherDevice { .. }), "{error}");
        disk.spoil(LABEL_OFFSETS_BYTES[1]);
        assert!(local.read_root().is_err());
    }
}

/// Its owner runs a newer program, on a pool that older ones may use.
#[test]
fn labels_of_a_later_version_stay() {
    let (disk, local) = made();
    let mut bytes = Label::of_only(&superblock(1)).encode();
    bytes[8] = 9;
    let sum = format::checksum::superblock_sum(&bytes[..4064]);
    bytes[4064..].copy_from_slice(&sum);
    let frame = FrameMut::from_bytes(&bytes).freeze();
    for at in LABEL_OFFSETS_BYTES {
        disk.blocks.lock().unwrap().insert(at, frame.clone());
    }
    local.read_root().unwrap();
    assert_eq!(local.mend_labels(&superblock(2)), []);
    assert!(LABEL_OFFSETS_BYTES.iter().all(|at| disk.block(*at) == frame));
}

/// A label may be left from the pool that the device held before.
#[test]
fn labels_are_ignored_in_a_pool_without_them() {
    let disk = Arc::<Refusing>::default();
    let stranger = Label::of_only(&Superblock { pool_id: [8; 16], ..superblock(1) });
    put_label(&disk, LABEL_OFFSETS_BYTES[0], &stranger);
    Local::make(&*disk, &root_without_labels(), &[]).unwrap();
    let local = Local::over(disk.clone());
    let root = local.read_root().unwrap();
    assert_eq!(local.mend_labels(&root), []);
    assert_eq!(labels(&disk)[0], Ok(stranger));
    // It gets labels before a root says so.
    assert_eq!(local.mend_labels(&superblock(3)).len(), 2);
    assert_eq!(labels(&disk)[0], Ok(Label::of_only(&superblock(3))));
}
