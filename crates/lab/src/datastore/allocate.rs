//! The allocation of blocks: taken from clusters and given back, each cluster under its lock.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;

use futures::lock::Mutex;
use futures::{StreamExt, stream};

use super::cluster::Cluster;
use super::error::DatastoreError;
use super::layout::{CLUSTER_BYTES, Layout, Pool};
use super::lock_record::HOSTS_MAX;
use super::mount::Core;
use super::sector::{SECTOR_BYTES, damaged};

/// How often to search for another run after others were quicker.
const PLANS_MAX: u32 = 4;
/// How many clusters one operation changes at a time, each under its own lock: in any order,
/// because allocated blocks are not yet referred to, and released ones no longer are.
const CLUSTERS_IN_FLIGHT: usize = 8;

/// Where a host allocates next.
pub(super) struct Cursor {
    cluster: Cell<u32>,
    /// In that cluster: after the last block that was taken.
    next: Cell<u32>,
    /// Clusters that had nothing left when they were last read.
    full: RefCell<Vec<bool>>,
    /// The tasks of a host take turns at a cluster.
    turns: Vec<Mutex<()>>,
}

impl Cursor {
    /// Hosts begin as far from each other as possible: 0, 1/2, 1/4, 3/4, 1/8 of the datastore and
    /// so on.
    pub(super) fn new(layout: &Layout, pool: Pool, slot: u32) -> Self {
        let clusters = layout.clusters(pool);
        let bits = HOSTS_MAX.trailing_zeros();
        let turned = u64::from(slot.reverse_bits() >> (32 - bits));
        let first = turned * u64::from(clusters) / u64::from(HOSTS_MAX);
        Self {
            cluster: Cell::new(first as u32),
            next: Cell::new(0),
            full: RefCell::new(vec![false; clusters as usize]),
            turns: (0..clusters).map(|_| Mutex::new(())).collect(),
        }
    }

    fn note(&self, cluster: u32, free: u32) {
        if let Some(full) = self.full.borrow_mut().get_mut(cluster as usize) {
            *full = free == 0;
        }
    }

    fn is_full(&self, cluster: u32) -> bool {
        self.full.borrow().get(cluster as usize).copied().unwrap_or(true)
    }
}

/// Contiguous blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Core {
    /// Takes blocks sequentially from the host's current position, as thin disks do.
    pub(super) async fn take_blocks(
        &self,
        pool: Pool,
        count: u32,
    ) -> Result<Vec<u32>, DatastoreError> {
        match self.try_take_blocks(pool, count).await {
            // The blocks that this host was still to unmap make room.
            Err(DatastoreError::Full) if pool == Pool::Data && self.skip_pending().await? => {
                self.try_take_blocks(pool, count).await
            }
            end => end,
        }
    }

    async fn try_take_blocks(&self, pool: Pool, count: u32) -> Result<Vec<u32>, DatastoreError> {
        let mut taken = Vec::new();
        let end = self.take_into(pool, count, &mut taken).await;
        self.all_or_none(pool, count, taken, end).await
    }

    /// Takes blocks in as long runs as possible: in one, if there is one that long.
    pub(super) async fn take_contiguous(&self, count: u32) -> Result<Vec<u32>, DatastoreError> {
        match self.try_take_contiguous(count).await {
            Err(DatastoreError::Full) if self.skip_pending().await? => {
                self.try_take_contiguous(count).await
            }
            end => end,
        }
    }

    async fn try_take_contiguous(&self, count: u32) -> Result<Vec<u32>, DatastoreError> {
        let mut taken = Vec::new();
        let end = self.take_runs(count, &mut taken).await;
        self.all_or_none(Pool::Data, count, taken, end).await
    }

    /// Gives back what could not be obtained completely.
    async fn all_or_none(
        &self,
        pool: Pool,
        count: u32,
        taken: Vec<u32>,
        end: Result<(), DatastoreError>,
    ) -> Result<Vec<u32>, DatastoreError> {
        match end {
            Ok(()) if taken.len() as u32 == count => Ok(taken),
            end => {
                let returned = self.give_back(pool, taken).await;
                end?;
                returned?;
                Err(DatastoreError::Full)
            }
        }
    }

    /// Adds to `taken` until there are `count`, or no more are available.
    async fn take_into(
        &self,
        pool: Pool,
        count: u32,
        taken: &mut Vec<u32>,
    ) -> Result<(), DatastoreError> {
        let cursor = self.cursor(pool);
        let clusters = self.layout.clusters(pool);
        let start = cursor.cluster.get();
        // Finally the full ones as well: others may have given something back there.
        for looks_full in [false, true] {
            for cluster in (0..clusters).map(|offset| (start + offset) % clusters) {
                let missing = count as usize - taken.len();
                if missing == 0 {
                    return Ok(());
                }
                if cursor.is_full(cluster) != looks_full {
                    continue;
                }
                let is_here = cluster == cursor.cluster.get();
                let next = if is_here { cursor.next.get() } else { 0 };
                let blocks = self
                    .change_cluster(pool, cluster, |bits| bits.take_next(next, missing))
                    .await?;
                if let Some(last) = blocks.last() {
                    cursor.cluster.set(cluster);
                    cursor.next.set(last + 1);
                }
                let first = cluster * self.layout.cluster_blocks;
                taken.extend(blocks.iter().map(|block| first + block));
            }
        }
        Ok(())
    }

    async fn take_runs(&self, count: u32, taken: &mut Vec<u32>) -> Result<(), DatastoreError> {
        for _ in 0..PLANS_MAX {
            let missing = count - taken.len() as u32;
            let clusters = self.read_clusters(Pool::Data).await?;
            let here = self.data.cluster.get() * self.layout.cluster_blocks;
            for run in choose_runs(&free_runs(&clusters), missing, here) {
                self.take_run(run, taken).await?;
            }
            if taken.len() as u32 == count {
                break;
            }
        }
        let left = count - taken.len() as u32;
        if left > 0 {
            self.take_into(Pool::Data, count, taken).await?;
        }
        taken.sort_unstable();
        Ok(())
    }

    /// Takes what is still free of a run.
    async fn take_run(&self, run: Run, taken: &mut Vec<u32>) -> Result<(), DatastoreError> {
        let size = self.layout.cluster_blocks;
        let end = run.first + run.count;
        let parts = (run.first / size..end.div_ceil(size)).map(|cluster| async move {
            let start = cluster * size;
            let wanted = run.first.max(start) - start..end.min(start + size) - start;
            let take = |bits: &mut Cluster| -> Vec<u32> {
                wanted.filter(|block| bits.take(*block)).map(|block| start + block).collect()
            };
            self.change_cluster(Pool::Data, cluster, take).await
        });
        let mut ends = stream::iter(parts).buffer_unordered(CLUSTERS_IN_FLIGHT);
        let mut result = Ok(());
        // All of them run to completion, so that it is known which blocks are taken.
        while let Some(end) = ends.next().await {
            match end {
                Ok(blocks) => taken.extend(blocks),
                Err(error) => result = Err(error),
            }
        }
        result
    }

    /// Frees blocks to which no file refers any longer.
    pub(super) async fn give_back(
        &self,
        pool: Pool,
        blocks: Vec<u32>,
    ) -> Result<(), DatastoreError> {
        let size = self.layout.cluster_blocks;
        let mut by_cluster: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        for block in blocks {
            by_cluster.entry(block / size).or_default().push(block % size);
        }
        let parts = by_cluster.into_iter().map(|(cluster, blocks)| async move {
            let free =
                |bits: &mut Cluster| blocks.iter().filter(|block| bits.give_back(**block)).count();
            if self.change_cluster(pool, cluster, free).await? != blocks.len() {
                let place = Cluster::place(&self.layout, pool, cluster);
                return Err(damaged(place, "a file refers to blocks that are free"));
            }
            Ok(())
        });
        let mut ends = stream::iter(parts).buffer_unordered(CLUSTERS_IN_FLIGHT);
        let mut result = Ok(());
        while let Some(end) = ends.next().await {
            result = result.and(end);
        }
        result
    }

    /// Changes a cluster under its lock.
    async fn change_cluster<T>(
        &self,
        pool: Pool,
        index: u32,
        change: impl FnOnce(&mut Cluster) -> T,
    ) -> Result<T, DatastoreError> {
        let guard = self.layout.cluster_guard(pool, index);
        let cursor = self.cursor(pool);
        let Some(turn) = cursor.turns.get(index as usize) else {
            return Err(damaged(guard.lock, "the cluster does not exist"));
        };
        let _turn = turn.lock().await;
        let work = async |mut sector: Vec<u8>| {
            let before = Cluster::decode(&self.layout, pool, index, &sector)?;
            let mut after = before.clone();
            let value = change(&mut after);
            if after != before {
                sector = after.encode(&self.layout).to_vec();
                self.disk.write(guard.content(), &sector).await?;
            }
            cursor.note(index, after.free());
            Ok((value, sector))
        };
        self.under_lock(guard, work).await
    }

    /// Returns all clusters as they are on disk, each at some time.
    pub(super) async fn read_clusters(&self, pool: Pool) -> Result<Vec<Cluster>, DatastoreError> {
        let count = self.layout.clusters(pool);
        let bytes = u64::from(count) * CLUSTER_BYTES;
        let all = self.disk.read(self.layout.cluster(pool, 0), bytes).await?;
        let sectors = all.chunks_exact(CLUSTER_BYTES as usize).zip(0..);
        sectors
            .map(|(pair, index)| {
                let bits = &pair[SECTOR_BYTES as usize..];
                let cluster = Cluster::decode(&self.layout, pool, index, bits)?;
                self.views.saw(self.layout.cluster_guard(pool, index), pair);
                self.cursor(pool).note(index, cluster.free());
                Ok(cluster)
            })
            .collect()
    }
}

/// Returns runs of free blocks, across the boundaries of clusters.
fn free_runs(clusters: &[Cluster]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut number = 0;
    for cluster in clusters {
        for block in 0..cluster.blocks() {
            if !cluster.is_taken(block) {
                match runs.last_mut() {
                    Some(run) if run.first + run.count == number => run.count += 1,
                    _ => runs.push(Run { first: number, count: 1 }),
                }
            }
            number += 1;
        }
    }
    runs
}

/// Returns the first run from `here` on that is long enough, otherwise the longest ones.
fn choose_runs(runs: &[Run], count: u32, here: u32) -> Vec<Run> {
    let from_here = runs.iter().filter_map(|run| {
        let first = run.first.max(here);
        let end = run.first + run.count;
        (first < end && end - first >= count).then_some(Run { first, count })
    });
    let anywhere = runs.iter().filter(|run| run.count >= count);
    let whole = from_here.chain(anywhere.map(|run| Run { count, ..*run })).next();
    if let Some(run) = whole {
        return vec![run];
    }
    let mut longest = runs.to_vec();
    longest.sort_by_key(|run| (std::cmp::Reverse(run.count), run.first));
    let mut left = count;
    longest.retain_mut(|run| {
        run.count = run.count.min(left);
        left -= run.count;
        run.count > 0
    });
    longest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_found_and_chosen() {
        let layout = Layout::plan([0; 16], "l", 64 << 20).unwrap();
        let mut clusters: Vec<Cluster> =
            (0..2).map(|index| Cluster::empty(&layout, Pool::Data, index)).collect();
        let size = clusters[0].blocks();
        clusters[0].take(3);
        clusters[1].take(5);
        let run = |first, count| Run { first, count };
        let runs = free_runs(&clusters);
        assert_eq!(runs, [run(0, 3), run(4, size - 4 + 5), run(size + 6, size - 6)]);
        assert_eq!(choose_runs(&runs, 3, 0), [run(0, 3)]);
        assert_eq!(choose_runs(&runs, 3, 1), [run(4, 3)]);
        assert_eq!(choose_runs(&runs, 2, 7), [run(7, 2)]);
        assert_eq!(choose_runs(&runs, 3, 2 * size - 1), [run(0, 3)]);
        let most = size + 1;
        assert_eq!(choose_runs(&runs, most + 4, 0), [run(4, most), run(size + 6, 4)]);
        assert_eq!(choose_runs(&runs, 1000, 0).len(), 3);
    }
}
