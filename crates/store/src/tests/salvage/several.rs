//! Salvage from pools on several devices.

use segments::DeviceSet;

use super::super::mirrors::devices;
use super::rich::rich_on;
use super::*;

type Disks = [Arc<MemoryDisk>];

fn open(disks: &Disks, options: SalvageOptions) -> Result<Salvage, SalvageError> {
    let set = DeviceSet::open_to_salvage(devices(disks)).unwrap();
    Salvage::open(Arc::new(set), options)
}

/// Returns the remaining ones of these disks.
fn without(disks: &Disks, lost: &[usize]) -> Vec<Arc<MemoryDisk>> {
    let left = disks.iter().enumerate().filter(|(at, _)| !lost.contains(at));
    left.map(|(_, disk)| disk.clone()).collect()
}

#[test]
fn everything_is_salvaged_from_the_minimum_number_of_devices() {
    for (count, lost) in [(2, &[0][..]), (3, &[0, 2]), (4, &[]), (4, &[1, 2]), (6, &[0, 5])] {
        let pool = rich_on(count);
        for disk in &pool.disk {
            disk.fail_after(0);
        }
        let salvage = open(&without(&pool.disk, lost), WHOLE).unwrap();
        assert!(salvage.losses().is_empty(), "{count} without {lost:?}: {:?}", salvage.losses());
        assert_eq!(compare_all(&salvage, &pool.content), Lost::new());
        assert_eq!(salvage.volumes().len(), pool.content.len());
        assert!(salvage.followed() > 0);
    }
}

/// Blocks that the other devices still have are read; the rest is reported as lost, and never
/// returned as something else.
#[test]
fn with_three_devices_lost_salvage_reports_remaining_and_lost_data() {
    let pool = rich_on(6);
    let blocks: usize = pool.content.values().map(|content| content.len() / 4096).sum();
    let mut had = 0;
    for first in 0..6 {
        let lost = [first, (first + 1) % 6, (first + 3) % 6];
        let left = without(&pool.disk, &lost);
        assert!(DeviceSet::open(devices(&left), true).is_err());
        let (salvage, content) = match open(&left, WHOLE) {
            Ok(salvage) => (salvage, &pool.content),
            Err(SalvageError::LogIsCut(cut)) => (open(&left, CUT).unwrap(), pool.before(cut.lsn)),
            Err(other) => panic!("{other}"),
        };
        let lost_blocks = compare_all(&salvage, content).len();
        assert!(lost_blocks > 0, "without {lost:?} nothing is lost");
        had += blocks.saturating_sub(lost_blocks);
    }
    assert!(had > blocks, "{had} blocks of six times {blocks} were had");
}

/// A block that a device has wrong is reconstructed from the others, and stays wrong.
#[test]
fn salvage_reconstructs_wrong_blocks_and_repairs_nothing() {
    let pool = rich_on(5);
    let liar = pool.disk[2].clone();
    liar.scramble();
    let before = liar.copy();
    let salvage = open(&pool.disk, WHOLE).unwrap();
    assert_eq!(compare_all(&salvage, &pool.content), Lost::new());
    assert!(liar.same_as(&before));
}
