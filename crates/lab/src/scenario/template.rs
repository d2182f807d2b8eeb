//! Machines with data, and the verification of their copies.

use super::ScenarioError;
use crate::datastore::{BLOCK_BYTES, BlockState};
use crate::disk::{Place, Provisioning, VirtualDisk};
use crate::engine::some_at_a_time;
use crate::guest::datastore_block;
use crate::vm::{DiskPlan, Vm};

/// Writes in flight while a template is filled.
const FILL_IN_FLIGHT: usize = 16;
/// Reads in flight while a copy is verified.
const VERIFY_IN_FLIGHT: usize = 8;
/// Data is in runs of this many blocks, with gaps in between.
const RUN_BLOCKS: u64 = 32;

/// A machine whose first disk has reproducible content.
#[derive(Debug)]
pub struct Template {
    /// The machine.
    pub vm: Vm,
    /// The seed of its disk's content.
    pub seed: u64,
    /// The blocks of a datastore that were written.
    pub blocks: Vec<u64>,
}

impl Template {
    /// Creates a machine with one disk of `bytes`, of which `data_bytes` are written.
    ///
    /// # Errors
    /// Those of the datastore and of the device.
    pub async fn make(
        place: &Place,
        name: &str,
        disk: DiskPlan,
        data_bytes: u64,
        seed: u64,
    ) -> Result<Self, ScenarioError> {
        let vm = Vm::create(place, name, &[disk]).await?;
        let base = vm.disks()[0].base();
        let blocks = spread(base.blocks(), data_bytes / BLOCK_BYTES);
        base.fill(blocks.iter().copied(), FILL_IN_FLIGHT, |block| datastore_block(seed, block))
            .await?;
        Ok(Self { vm, seed, blocks })
    }

    /// Returns the bytes of data on its disk.
    pub fn data_bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    /// Returns how many bytes from the beginning of its disk are all data.
    pub fn first_run_bytes(&self) -> u64 {
        let run = (0..).zip(&self.blocks).take_while(|(at, block)| at == *block).count();
        run as u64 * BLOCK_BYTES
    }

    /// Reads the whole disk of a copy, and compares it; returns the compared bytes.
    ///
    /// # Errors
    /// If it differs anywhere, or has more or less data.
    pub async fn verify(&self, copy: &Vm) -> Result<u64, ScenarioError> {
        verify_disk(&copy.disks()[0].base(), self.seed, &self.blocks).await
    }
}

/// Returns `wanted` of `all` blocks, distributed in runs.
fn spread(all: u64, wanted: u64) -> Vec<u64> {
    let wanted = wanted.min(all);
    let (gaps, runs) = (all - wanted, wanted.div_ceil(RUN_BLOCKS).max(1));
    let blocks = (0..wanted).map(|index| index + gaps * (index / RUN_BLOCKS) / runs);
    blocks.collect()
}

/// Reads a whole disk and compares it: the given blocks have the content of [`datastore_block`]
/// with the seed, all others zeros. Returns the compared bytes, without unallocated zeros.
///
/// # Errors
/// If it differs anywhere.
pub async fn verify_disk(
    disk: &VirtualDisk,
    seed: u64,
    blocks: &[u64],
) -> Result<u64, ScenarioError> {
    verify_from(disk, seed, blocks, 0).await
}

/// Verifies as [`verify_disk`], for the blocks from `first` on.
pub(super) async fn verify_from(
    disk: &VirtualDisk,
    seed: u64,
    blocks: &[u64],
    first: u64,
) -> Result<u64, ScenarioError> {
    let blocks = &blocks[blocks.partition_point(|block| *block < first)..];
    let held = disk.file().extents(first, disk.blocks() - first).await?;
    let mut present = Vec::new();
    for extent in held {
        if let BlockState::Present(_) = extent.state {
            present.extend(extent.first_block..extent.first_block + extent.count);
        }
    }
    if let Some(missing) = blocks.iter().find(|block| present.binary_search(block).is_err()) {
        return Err(wrong(disk, *missing, "is missing"));
    }
    let reads = present.iter().map(|block| async move {
        let held = disk.read(block * BLOCK_BYTES, BLOCK_BYTES).await?;
        let is_right = match blocks.binary_search(block) {
            Ok(_) => held == datastore_block(seed, *block),
            Err(_) => held.iter().all(|byte| *byte == 0),
        };
        if is_right { Ok(()) } else { Err(wrong(disk, *block, "differs from what was written")) }
    });
    some_at_a_time(VERIFY_IN_FLIGHT, reads).await?;
    Ok(present.len() as u64 * BLOCK_BYTES)
}

fn wrong(disk: &VirtualDisk, block: u64, what: &str) -> ScenarioError {
    ScenarioError::Wrong(format!("disk {}: block {block} {what}", disk.name()))
}

/// Returns the plan of a disk of this kind and size.
pub fn disk(bytes: u64, provisioning: Provisioning) -> DiskPlan {
    DiskPlan { bytes, provisioning }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn data_is_spread_in_the_requested_amount() {
        for (all, wanted) in [(800, 400), (100, 99), (7, 3), (64, 33), (4, 4), (10, 0)] {
            let blocks = spread(all, wanted);
            assert_eq!(blocks.len() as u64, wanted, "{all} {wanted}");
            assert!(blocks.is_sorted_by(|a, b| a < b), "{all} {wanted}");
            assert!(blocks.iter().all(|block| *block < all), "{all} {wanted}");
        }
    }
}
