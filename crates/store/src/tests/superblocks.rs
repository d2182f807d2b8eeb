//! Superblocks that can't be written, and power that fails while another one is.

use format::superblock::{SUPERBLOCK_OFFSETS_BYTES, SUPERBLOCK_STAND_IN_OFFSET_BYTES};

use super::*;

/// A device that tears writes of one block; it keeps what each would leave if power failed then.
struct Torn {
    disk: Arc<MemoryDisk>,
    left: Mutex<Vec<Arc<MemoryDisk>>>,
}

impl sys::Disk for Torn {
    fn len_bytes(&self) -> u64 {
        self.disk.len_bytes()
    }

    fn grow(&self, len_bytes: u64) -> std::io::Result<()> {
        self.disk.grow(len_bytes)
    }

    fn read(&self, offset_bytes: u64, frames: &mut [FrameMut]) -> std::io::Result<()> {
        self.disk.read(offset_bytes, frames)
    }

    fn write(&self, offset_bytes: u64, frames: &[Frame]) -> std::io::Result<()> {
        if let [frame] = frames {
            let left = self.disk.copy();
            let block = offset_bytes / 4096;
            let mut torn = left.block(block).into_mut();
            torn[..512].copy_from_slice(&frame[..512]);
            torn[4000..].fill(0x55);
            left.overwrite(block, torn.freeze());
            self.left.lock().push(left);
        }
        self.disk.write(offset_bytes, frames)
    }

    fn flush(&self) -> std::io::Result<()> {
        self.disk.flush()
    }

    fn flush_failures(&self) -> u64 {
        self.disk.flush_failures()
    }
}

fn opened(disk: &Arc<MemoryDisk>, id: VolumeId, blocks: u64) {
    let store = Store::open(disk.clone(), OpenOptions::default()).unwrap();
    for block in 0..blocks {
        assert!(read(&store, id, block * 8, 8) == distinct(8, block + 1), "block {block}");
    }
    assert_sound(&store);
}

fn stand_in(disk: &MemoryDisk) -> Frame {
    disk.block(SUPERBLOCK_STAND_IN_OFFSET_BYTES / 4096)
}

/// One superblock can't be written, and the attempt tears it. Power fails in any write of the other
/// one, or of its stand-in, at checkpoints and at openings.
#[test]
fn power_may_fail_while_the_only_superblock_is_overwritten() {
    for place in SUPERBLOCK_OFFSETS_BYTES {
        let (disk, store) = pool(1 << 30);
        let id = volume(&store, MIB);
        store.checkpoint().unwrap();
        drop(store);
        disk.overwrite(place / 4096, FrameMut::from_bytes(&[0x77; 4096]).freeze());
        disk.refuse_writes_to([place / 4096]);
        let torn = Arc::new(Torn { disk: disk.clone(), left: Mutex::default() });
        for round in 0..3 {
            let store = Store::open(torn.clone(), OpenOptions::default()).unwrap();
            for block in round * 2..round * 2 + 2 {
                torn.left.lock().drain(..).for_each(|left| opened(&left, id, block));
                write(&store, id, block * 8, &distinct(8, block + 1)).unwrap();
                torn.left.lock().clear();
                store.checkpoint().unwrap();
                let left = std::mem::take(&mut *torn.left.lock());
                assert!(left.len() >= 2, "a superblock and its replacement");
                left.iter().for_each(|left| opened(left, id, block + 1));
            }
        }
        // When the device accepts it again, there is no stand-in.
        assert!(stand_in(&disk)[..8] == *b"HOLDFAST");
        disk.refuse_writes_to([]);
        let store = Store::open(torn, OpenOptions::default()).unwrap();
        store.checkpoint().unwrap();
        assert!(stand_in(&disk)[..] == [0; 4096]);
        opened(&disk, id, 6);
    }
}

/// From some write on the device refuses all writes, and tears each of them: acknowledged writes
/// are still there.
#[test]
fn a_device_that_refuses_all_writes_keeps_one_superblock() {
    for writes in 0..20 {
        let (disk, store) = pool(1 << 30);
        let id = volume(&store, MIB);
        write(&store, id, 0, &distinct(8, 1)).unwrap();
        disk.fail_after(writes);
        let checkpointed = store.checkpoint().is_ok();
        assert_eq!(checkpointed, writes >= 3, "what it captured, twice, and one superblock");
        let left = disk.copy();
        for refused in disk.refused() {
            left.overwrite(refused, FrameMut::from_bytes(&[0x33; 4096]).freeze());
        }
        opened(&left, id, 1);
    }
}

/// A device may have held another pool whose stand-in is still there; creating a pool removes it.
#[test]
fn a_stand_in_of_another_pool_is_ignored() {
    let other = MemoryDisk::new(1 << 30);
    Store::create(&*other, &[8; 64]).unwrap();
    for _ in 0..20 {
        drop(Store::open(other.clone(), OpenOptions::default()).unwrap());
    }
    let newer = other.block(SUPERBLOCK_OFFSETS_BYTES[0] / 4096);
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, MIB);
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    drop(store);
    disk.overwrite(SUPERBLOCK_STAND_IN_OFFSET_BYTES / 4096, newer);
    opened(&disk, id, 1);
    Store::create(&*disk, &[9; 64]).unwrap();
    assert!(stand_in(&disk)[..] == [0; 4096]);
}
