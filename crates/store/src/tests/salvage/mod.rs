//! Salvage: what it recovers from a pool with a damaged block, compared with a model of all that
//! the pool ever held.

mod classes;
mod random;
mod rich;
mod several;

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::{LossReason, Salvage, SalvageError, SalvageOptions, Salvaged};
use rich::{Content, Rich, rich};

const CUT: SalvageOptions = SalvageOptions {
    superblock: None,
    cut_log: true,
    memory_bytes: 1 << 20,
    tuning: crate::Tuning::DEFAULT,
};
const WHOLE: SalvageOptions = SalvageOptions { cut_log: false, ..CUT };

/// The lost blocks of volumes, and why.
type Lost = BTreeMap<(VolumeId, u64), LossReason>;

/// Reads a whole volume, and compares what salvage returns with its content.
fn compare(salvage: &Salvage, id: VolumeId, expected: &[u8], lost: &mut Lost) {
    let blocks = expected.len() as u64 / 4096;
    let mut told = BTreeSet::new();
    let mut sink = |part: Salvaged<'_>| {
        match part {
            Salvaged::Data(block, frames) => {
                for (block, frame) in (block..).zip(frames) {
                    assert!(told.insert(block), "block {block} of {id} is reported twice");
                    let zeros = [0; 4096];
                    let want = expected.get(block as usize * 4096..).unwrap_or(&[]);
                    let want = want.get(..4096).unwrap_or(&zeros);
                    assert!(frame[..] == *want, "block {block} of {id} is wrong");
                }
            }
            Salvaged::Lost(range, reason) => {
                for block in range.start.0..range.end().0.min(blocks) {
                    assert!(told.insert(block), "block {block} of {id} is reported twice");
                    lost.insert((id, block), reason);
                }
            }
        }
        Ok(())
    };
    salvage.read(id, Some(blocks), &mut sink).unwrap();
    for block in 0..blocks {
        let zeros = expected[block as usize * 4096..][..4096].iter().all(|byte| *byte == 0);
        assert!(zeros || told.contains(&block), "block {block} of {id} was left out");
    }
}

/// Compares all volumes; missing ones must be reported as lost.
fn compare_all(salvage: &Salvage, content: &Content) -> Lost {
    let mut lost = Lost::new();
    let found: BTreeSet<VolumeId> = salvage.volumes().iter().map(|volume| volume.id).collect();
    for (id, expected) in content {
        if found.contains(id) {
            compare(salvage, *id, expected, &mut lost);
        } else {
            assert!(salvage.is_lost(*id), "{id} is not reported as lost");
            let blocks = 0..expected.len() as u64 / 4096;
            lost.extend(blocks.map(|block| ((*id, block), LossReason::Volume)));
        }
    }
    let ghosts: Vec<_> = found.iter().filter(|id| !content.contains_key(id)).collect();
    assert!(ghosts.iter().all(|id| salvage.is_lost(**id)), "{ghosts:?}");
    lost
}

/// Salvages the pool; returns the lost blocks, and where the log was cut.
fn salvage(pool: &Rich, disk: &Arc<MemoryDisk>) -> (Lost, Option<crate::LogCut>) {
    let (salvage, cut) = match Salvage::open(disk.clone(), WHOLE) {
        Ok(salvage) => (salvage, None),
        Err(SalvageError::LogIsCut(cut)) => (Salvage::open(disk.clone(), CUT).unwrap(), Some(cut)),
        Err(other) => panic!("{other}"),
    };
    assert_eq!(salvage.cut(), cut);
    let content = cut.map_or(&pool.content, |cut| pool.before(cut.lsn));
    (compare_all(&salvage, content), cut)
}

#[test]
fn everything_in_a_sound_pool_is_salvaged_with_either_superblock() {
    let pool = rich();
    for superblock in [None, Some(0), Some(1)] {
        let options = SalvageOptions { superblock, ..WHOLE };
        let salvage = Salvage::open(pool.disk.copy(), options).unwrap();
        assert_eq!((salvage.notes(), salvage.losses()), (&[][..], &[][..]));
        assert_eq!(compare_all(&salvage, &pool.content), Lost::new());
        assert_eq!(salvage.volumes().len(), pool.content.len());
        assert!(salvage.orphans().is_empty() && salvage.followed() > 0);
        let value = salvage.config().find(|(key, _)| *key == b"key").unwrap().1;
        assert!(value == [7; 9000]);
        let sizes = salvage.volumes().into_iter().map(|volume| volume.size_blocks.unwrap());
        assert!(sizes.zip(&pool.sizes).all(|(size, (_, expected))| size == *expected));
    }
}

/// It writes no byte, and requests no flush.
#[test]
fn salvage_writes_nothing() {
    let pool = rich();
    let disk = pool.disk.copy();
    disk.fail_after(0);
    let (lost, cut) = salvage(&pool, &disk);
    assert!(lost.is_empty() && cut.is_none());
    assert!(disk.same_as(&pool.disk));
}

#[test]
fn a_disk_without_a_pool_is_refused() {
    let disk = MemoryDisk::new(1 << 30);
    let refused = Salvage::open(disk, CUT).err().unwrap();
    assert!(matches!(refused, SalvageError::Store(crate::StoreError::NotAPool(_))), "{refused}");
}

/// A volume of 64 TiB costs only its content.
#[test]
fn salvage_of_a_thin_volume_reports_only_its_content() {
    let (disk, store) = pool(1 << 30);
    let id = volume(&store, 64 << 31);
    let end = (64 << 31) - 8;
    write(&store, id, 0, &distinct(8, 1)).unwrap();
    write(&store, id, end, &distinct(8, 2)).unwrap();
    store.checkpoint().unwrap();
    write(&store, id, 1 << 34, &distinct(8, 3)).unwrap();
    drop(store);
    let salvage = Salvage::open(disk, WHOLE).unwrap();
    let mut told = Vec::new();
    let mut sink = |part: Salvaged<'_>| {
        let Salvaged::Data(block, frames) = part else { panic!("{part:?}") };
        told.push((block, frames.len()));
        Ok(())
    };
    salvage.read(id, None, &mut sink).unwrap();
    assert_eq!(told, [(0, 1), (1 << 31, 1), (end / 8, 1)]);
}
