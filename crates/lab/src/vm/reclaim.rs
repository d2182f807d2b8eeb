//! Manual reclaim: `esxcli storage vmfs unmap` (000 and 002, "Dead space reclamation").
//!
//! The host allocates free blocks to a temporary file, unmaps them there, so that they can't be
//! used meanwhile, and frees them; some at a time, until it has processed all free space.

use crate::datastore::{AllocateAs, BLOCK_BYTES, BlockState, File, Placement};
use crate::disk::{DiskError, Place};
use crate::host::EsxVersion;

/// ESXi's default: the number of blocks of an iteration.
pub const BLOCKS_DEFAULT: u64 = 200;
/// A fuller datastore is reclaimed by the default number of blocks, regardless of the requested one
/// (000: from 5.5 patch 3 on).
const FULL_PERMILLE: u64 = 750;
/// The maximum size of a balloon file of ESXi before 5.5 (002, "devices over 2 TB").
const BALLOON_BLOCKS_MAX: u64 = (2 << 40) / BLOCK_BYTES;
/// The temporary file.
const FILE: &str = ".asyncUnmapFile";
/// The same before 5.5.
const BALLOON: &str = ".vmfsBalloon";

/// How a datastore is reclaimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimPlan {
    /// So many blocks per iteration; the default is used for more than 1% of the free space, and
    /// for any number if the datastore is 75% full (000, 002: from 5.5 patch 3 on).
    Blocks(u64),
    /// As before those rules: any number is accepted (5.5 before patch 3).
    BlocksUnchecked(u64),
    /// 5.0 and 5.1: this percentage of the free space in one balloon file (`vmkfstools -y`).
    Percent(u64),
}

/// What was reclaimed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reclaimed {
    /// Bytes that were unmapped.
    pub bytes: u64,
    /// The number of iterations.
    pub iterations: u64,
    /// Blocks of each except the last.
    pub blocks_each: u64,
}

impl ReclaimPlan {
    /// ESXi's default.
    pub const DEFAULT: Self = Self::Blocks(BLOCKS_DEFAULT);

    /// Checks whether an ESXi version supports it: 5.0 and 5.1 only have percentages, and from 5.5
    /// on there are none (000, 002).
    fn check(self, version: EsxVersion, blocks: u64) -> Result<(), DiskError> {
        let is_percent = matches!(self, Self::Percent(_));
        Err(DiskError::NoReclaim(match (version == EsxVersion::V5_0, is_percent) {
            (true, false) => "ESXi before 5.5 reclaims a percentage, not blocks",
            (false, true) => "ESXi from 5.5 on reclaims blocks, not a percentage",
            (true, true) if blocks > BALLOON_BLOCKS_MAX => {
                "ESXi before 5.5 creates no balloon file of over 2 TB: use a smaller percentage"
            }
            _ => return Ok(()),
        }))
    }

    /// Returns the blocks of an iteration, and how many are unmapped in total.
    fn blocks(self, free: u64, capacity: u64) -> (u64, u64) {
        let is_full = (capacity - free) * 1000 >= capacity * FULL_PERMILLE;
        match self {
            Self::Blocks(wanted) if is_full || wanted > free / 100 => (BLOCKS_DEFAULT, free),
            Self::Blocks(wanted) | Self::BlocksUnchecked(wanted) => (wanted.max(1), free),
            Self::Percent(percent) => {
                let blocks = free * percent.min(100) / 100;
                (blocks.max(1), blocks)
            }
        }
    }
}

/// Reclaims a datastore's free space, as the host's version of ESXi does.
///
/// # Errors
/// A plan that this version does not have. Those of the datastore and of the device; the temporary
/// file is deleted nevertheless.
pub async fn reclaim(place: &Place, plan: ReclaimPlan) -> Result<Reclaimed, DiskError> {
    let datastore = &place.datastore;
    let free = datastore.free_blocks().await?;
    let (each, all) = plan.blocks(free, datastore.capacity_blocks());
    let version = place.device.host().settings().version;
    plan.check(version, all)?;
    let name = if version == EsxVersion::V5_0 { BALLOON } else { FILE };
    let file = datastore.create(name, all * BLOCK_BYTES).await?;
    let mut reclaimed = Reclaimed { blocks_each: each, ..Reclaimed::default() };
    let mut first = 0;
    let end = loop {
        if first >= all {
            break Ok(());
        }
        let count = each.min(all - first);
        match unmap_some(place, &file, first, count).await {
            Ok(bytes) => reclaimed.bytes += bytes,
            Err(error) => break Err(error),
        }
        reclaimed.iterations += 1;
        first += count;
    };
    file.close().await?;
    // They are unmapped: nothing is left for the background to do.
    datastore.detach(name).await?.give_back().await?;
    end.map(|()| reclaimed)
}

async fn unmap_some(place: &Place, file: &File, first: u64, count: u64) -> Result<u64, DiskError> {
    let extents = file.allocate(first, count, AllocateAs::ToBeZeroed, Placement::AsItComes).await?;
    let ranges: Vec<(u64, u64)> = extents
        .iter()
        .filter_map(|extent| match extent.state {
            BlockState::ToBeZeroed(offset) => Some((offset, extent.count * BLOCK_BYTES)),
            _ => None,
        })
        .collect();
    place.device.unmap(&ranges).await?;
    Ok(ranges.iter().map(|(_, bytes)| bytes).sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_than_a_hundredth_of_the_free_space_uses_the_default() {
        assert_eq!(ReclaimPlan::Blocks(10_485).blocks(1_048_576, 1_100_000), (10_485, 1_048_576));
        assert_eq!(ReclaimPlan::Blocks(10_486).blocks(1_048_576, 1_100_000), (200, 1_048_576));
        assert_eq!(ReclaimPlan::BlocksUnchecked(60_000).blocks(100_000, 110_000).0, 60_000);
    }

    #[test]
    fn a_full_datastore_uses_the_default() {
        assert_eq!(ReclaimPlan::Blocks(100).blocks(250_000, 1_000_000), (200, 250_000));
        assert_eq!(ReclaimPlan::Blocks(100).blocks(250_001, 1_000_000), (100, 250_001));
    }

    #[test]
    fn the_default_is_always_allowed() {
        for (free, capacity) in [(1000, 1_000_000), (1000, 1100), (150, 200)] {
            assert_eq!(ReclaimPlan::DEFAULT.blocks(free, capacity), (200, free));
        }
    }

    #[test]
    fn each_version_has_its_own_method() {
        use EsxVersion::{V5, V5_0, V6, V6_5};
        let is_known = |plan: ReclaimPlan, version| plan.check(version, 1000).is_ok();
        for version in [V5, V6, V6_5] {
            assert!(is_known(ReclaimPlan::DEFAULT, version));
            assert!(is_known(ReclaimPlan::BlocksUnchecked(60_000), version));
            assert!(!is_known(ReclaimPlan::Percent(99), version));
        }
        assert!(is_known(ReclaimPlan::Percent(99), V5_0));
        assert!(!is_known(ReclaimPlan::DEFAULT, V5_0));
        assert!(!is_known(ReclaimPlan::BlocksUnchecked(200), V5_0));
    }

    #[test]
    fn a_balloon_is_limited_to_2_tb() {
        let (plan, most) = (ReclaimPlan::Percent(99), 2 << 20);
        assert!(plan.check(EsxVersion::V5_0, most).is_ok());
        assert!(plan.check(EsxVersion::V5_0, most + 1).is_err());
        assert!(ReclaimPlan::DEFAULT.check(EsxVersion::V6, most + 1).is_ok());
    }

    #[test]
    fn a_percentage_is_one_balloon() {
        assert_eq!(ReclaimPlan::Percent(60).blocks(1000, 2000), (600, 600));
    }
}
