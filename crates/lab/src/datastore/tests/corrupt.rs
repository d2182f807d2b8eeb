//! Reading a disk with any content ends in an error, never in a panic.

use super::world::World;
use crate::datastore::{
    AllocateAs, BLOCK_BYTES, Datastore, DatastoreError, Mode, MountOptions, Placement, fsck,
};
use crate::random::Random;

const BYTES: u64 = 40 << 20;

/// A datastore with two files.
fn filled() -> World {
    let mut world = World::new(BYTES, 5);
    let medium = world.host(true);
    world.run(async move {
        Datastore::format(&medium, "to be damaged").await.unwrap();
        let options = MountOptions::of_host("one");
        let store = Datastore::mount(&medium, options).await.unwrap();
        for name in ["a", "b"] {
            let file = store.create(name, 9 * BLOCK_BYTES).await.unwrap();
            file.allocate(1, 5, AllocateAs::Present, Placement::AsItComes).await.unwrap();
            file.close().await.unwrap();
        }
        store.unmount().await.unwrap();
        assert!(fsck(&medium).await.unwrap().is_clean());
    });
    world
}

/// Does all that a host can do with it; returns whether anything failed.
fn use_it(world: &mut World) -> bool {
    let medium = world.host(true);
    world.run(async move {
        let work = async {
            let options = MountOptions::of_host("two");
            let store = Datastore::mount(&medium, options).await?;
            store.list().await?;
            store.free_blocks().await?;
            for name in ["a", "b"] {
                let file = store.open(name, Mode::Exclusive).await?;
                file.extents(0, file.size_blocks()).await?;
                file.allocate(0, 3, AllocateAs::ToBeZeroed, Placement::Contiguous).await?;
                file.release(0, file.size_blocks()).await?;
                file.close().await?;
                store.delete(name).await?;
            }
            store.create("c", 0).await?.close().await?;
            store.unmount().await
        };
        let end: Result<(), DatastoreError> = work.await;
        let report = fsck(&medium).await;
        report.is_err() || end.is_err() || report.is_ok_and(|report| report.is_damaged())
    })
}

#[test]
fn a_damaged_sector_is_detected() {
    let pristine = filled().disk.sectors.borrow().clone();
    let mut numbers: Vec<u64> = pristine.keys().copied().collect();
    numbers.sort_unstable();
    let mut random = Random::new(9);
    for _ in 0..150 {
        let mut world = World::new(BYTES, random.next_u64());
        let mut damaged = pristine.clone();
        let number = numbers[random.below(numbers.len() as u64) as usize];
        let sector = damaged.get_mut(&number).unwrap();
        match random.below(3) {
            0 => random.fill(sector),
            1 => *sector = [0; 512],
            _ => sector[random.below(512) as usize] ^= 1 << random.below(8),
        }
        *world.disk.sectors.borrow_mut() = damaged;
        let medium = world.host(true);
        let report = world.run(async move { fsck(&medium).await });
        assert!(report.map_or(true, |report| report.is_damaged()), "sector {number}");
        use_it(&mut world);
    }
}

#[test]
fn invalid_content_with_a_valid_checksum_is_rejected() {
    // Sectors with valid checksums and locations, but invalid content.
    let pristine = filled().disk.sectors.borrow().clone();
    let mut numbers: Vec<u64> = pristine.keys().copied().collect();
    numbers.sort_unstable();
    let mut random = Random::new(10);
    let mut failed = 0;
    for _ in 0..300 {
        let mut world = World::new(BYTES, random.next_u64());
        let mut damaged = pristine.clone();
        // The descriptors of the two files and what is before them matter most.
        let reach = if random.percent(60) { 90 } else { numbers.len() as u64 };
        let number = numbers[random.below(reach.min(numbers.len() as u64)) as usize];
        let sector = damaged.get_mut(&number).unwrap();
        for _ in 0..1 + random.below(4) {
            let at = 16 + random.below(160) as usize;
            sector[at] = random.next_u64() as u8;
        }
        sector[4..8].fill(0);
        let checksum = crc32c::crc32c(&sector[..]);
        sector[4..8].copy_from_slice(&checksum.to_le_bytes());
        *world.disk.sectors.borrow_mut() = damaged;
        failed += u32::from(use_it(&mut world));
    }
    assert!(failed > 30, "{failed}");
}

#[test]
fn a_disk_of_noise_is_not_a_datastore() {
    let mut world = World::new(BYTES, 1);
    let medium = world.host(true);
    world.run(async move {
        let end = Datastore::mount(&medium, MountOptions::of_host("one")).await;
        assert!(matches!(end, Err(DatastoreError::Damaged { offset_bytes: 0, .. })));
        assert!(matches!(fsck(&medium).await, Err(DatastoreError::Damaged { .. })));
    });
}
