//! GET LBA STATUS of volumes in which every second block is mapped.

use super::bounded::{largest_world, run};
use super::world::cdb_16;
use crate::blocks::provisioning::DESCRIPTORS_MAX;
use crate::step::Status;

#[test]
fn get_lba_status_returns_up_to_the_allocation_length() {
    let mut world = largest_world();
    for descriptors in [1, 2, 4097, 10_000, 60_000] {
        let cdb = cdb_16(0x9e, 0x12, 0, 8 + 16 * descriptors);
        let (response, _) = run(&mut world, 0, &cdb, &[]);
        assert_eq!(response.status, Status::Good);
        let data = response.data_in.to_vec();
        assert_eq!(data.len(), 8 + 16 * descriptors as usize);
        assert_eq!(data[..4], (data.len() as u32 - 4).to_be_bytes());
        let last = u64::from(descriptors - 1) * 8;
        assert_eq!(data[data.len() - 16..data.len() - 8], last.to_be_bytes());
    }
    // However long the allocation length is, the command requests this many at most.
    let (response, _) = run(&mut world, 0, &cdb_16(0x9e, 0x12, 0, u32::MAX), &[]);
    let told = response.data_in.len();
    assert!((8 + 16 * 60_000..=8 + 16 * DESCRIPTORS_MAX).contains(&told), "{told}");
}
