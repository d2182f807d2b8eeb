//! A cluster: some blocks that are allocated under one lock, so that hosts that allocate from
//! different clusters do not contend.
//!
//! The lock is the sector before this one:
//!
//! | bytes | what |
//! |---|---|
//! | 16 | the use of its blocks: 0 data, 1 pointers |
//! | 20..24 | its number among clusters of its kind |
//! | 24..28 | the number of blocks in it |
//! | 28..32 | how many of those are free |
//! | 32..288 | a bit for each block, set if it is taken |

use super::error::DatastoreError;
use super::layout::{CLUSTER_BLOCKS_MAX, Layout, Pool};
use super::sector::{Kind, Put, SECTOR_BYTES, Sector, Take};

const BITS_AT: usize = 32;
const BITS_BYTES: usize = CLUSTER_BLOCKS_MAX as usize / 8;

/// The content of a cluster. Blocks are numbered within it here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cluster {
    pool: Pool,
    index: u32,
    blocks: u32,
    bits: [u8; BITS_BYTES],
}

impl Cluster {
    /// Returns its content when formatted.
    pub(super) fn empty(layout: &Layout, pool: Pool, index: u32) -> Self {
        let blocks = layout.blocks_in(pool, index);
        Self { pool, index, blocks, bits: [0; BITS_BYTES] }
    }

    /// Returns the offset of its sector.
    pub(super) fn place(layout: &Layout, pool: Pool, index: u32) -> u64 {
        layout.cluster(pool, index) + SECTOR_BYTES
    }

    pub(super) fn encode(&self, layout: &Layout) -> Sector {
        let mut put = Put::new();
        put.u8(16, (self.pool == Pool::Pointer).into()).u32(20, self.index).u32(24, self.blocks);
        put.u32(28, self.free()).bytes(BITS_AT, &self.bits);
        put.seal(Kind::Cluster, Self::place(layout, self.pool, self.index))
    }

    pub(super) fn decode(
        layout: &Layout,
        pool: Pool,
        index: u32,
        bytes: &[u8],
    ) -> Result<Self, DatastoreError> {
        let take = Take::open(Kind::Cluster, Self::place(layout, pool, index), bytes)?;
        let mut cluster = Self::empty(layout, pool, index);
        let is_it = take.u8(16) == u8::from(pool == Pool::Pointer)
            && take.u32(20) == index
            && take.u32(24) == cluster.blocks;
        if !is_it {
            return Err(take.damaged("it belongs to another cluster"));
        }
        cluster.bits.copy_from_slice(take.bytes(BITS_AT, BITS_BYTES));
        let taken: u32 = cluster.bits.iter().map(|byte| byte.count_ones()).sum();
        let within = (0..cluster.blocks).filter(|block| cluster.is_taken(*block)).count() as u32;
        if taken != within {
            return Err(take.damaged("its bitmap goes beyond its blocks"));
        }
        if take.u32(28) != cluster.blocks - taken {
            let what = format!("{} are free, not {}", cluster.blocks - taken, take.u32(28));
            return Err(take.damaged(what));
        }
        Ok(cluster)
    }

    pub(super) fn blocks(&self) -> u32 {
        self.blocks
    }

    pub(super) fn free(&self) -> u32 {
        self.blocks - self.bits.iter().map(|byte| byte.count_ones()).sum::<u32>()
    }

    pub(super) fn is_taken(&self, block: u32) -> bool {
        let byte = self.bits.get(block as usize / 8).copied().unwrap_or(0xFF);
        byte & (1 << (block % 8)) != 0
    }

    /// Takes a block; returns whether it was free.
    pub(super) fn take(&mut self, block: u32) -> bool {
        if block >= self.blocks || self.is_taken(block) {
            return false;
        }
        self.bits[block as usize / 8] |= 1 << (block % 8);
        true
    }

    /// Frees a block; returns whether it was taken.
    pub(super) fn give_back(&mut self, block: u32) -> bool {
        if block >= self.blocks || !self.is_taken(block) {
            return false;
        }
        self.bits[block as usize / 8] &= !(1 << (block % 8));
        true
    }

    /// Takes up to `count` of the free blocks, from `first` on with wrap-around, in this order.
    pub(super) fn take_next(&mut self, first: u32, count: usize) -> Vec<u32> {
        let blocks = self.blocks.max(1);
        let around = (0..self.blocks).map(|offset| (first % blocks + offset) % blocks);
        let free: Vec<u32> = around.filter(|block| !self.is_taken(*block)).take(count).collect();
        free.into_iter().filter(|block| self.take(*block)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_survives_the_disk_and_counts() {
        let layout = Layout::plan([0; 16], "l", 100 << 20).unwrap();
        let last = layout.clusters(Pool::Data) - 1;
        let mut cluster = Cluster::empty(&layout, Pool::Data, last);
        let blocks = cluster.blocks();
        assert!(blocks > 2);
        assert_eq!(cluster.take_next(blocks - 1, 2), [blocks - 1, 0]);
        assert!(!cluster.take(0) && !cluster.take(blocks) && !cluster.give_back(blocks));
        assert_eq!(cluster.free(), blocks - 2);
        let sector = cluster.encode(&layout);
        assert_eq!(Cluster::decode(&layout, Pool::Data, last, &sector).unwrap(), cluster);
        assert!(Cluster::decode(&layout, Pool::Data, 0, &sector).is_err());
        assert!(cluster.give_back(0) && !cluster.give_back(0));
        assert_eq!(cluster.take_next(0, usize::MAX).len() as u32, blocks - 1);
        assert_eq!(cluster.free(), 0);
    }

    #[test]
    fn bitmaps_and_counts_must_agree() {
        let layout = Layout::plan([0; 16], "l", 100 << 20).unwrap();
        let place = Cluster::place(&layout, Pool::Pointer, 0);
        let blocks = layout.blocks_in(Pool::Pointer, 0);
        let sector = |free, bits: &[u8]| {
            let mut put = Put::new();
            put.u8(16, 1).u32(24, blocks).u32(28, free).bytes(BITS_AT, bits);
            put.seal(Kind::Cluster, place)
        };
        let decode = |sector: Sector| Cluster::decode(&layout, Pool::Pointer, 0, &sector);
        assert!(decode(sector(blocks - 1, &[1])).is_ok());
        assert!(decode(sector(blocks, &[1])).is_err());
        assert!(decode(sector(blocks, &[0; 255])).is_ok());
        let mut beyond = [0; 256];
        beyond[255] = 0x80;
        assert!(decode(sector(blocks - 1, &beyond)).is_err());
    }
}
