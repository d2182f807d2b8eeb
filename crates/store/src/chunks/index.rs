//! The deduplication index: where a fingerprint was seen. A hint in a fixed amount of memory.
//!
//! Its results are looked up in the chunk table and compared byte for byte before use; what it has
//! forgotten costs space until the background pass finds it. So it is neither durable nor locked: a
//! bucket is a cache line of eight words, each a tag of 16 bits and a chunk id.
//!
//! A full bucket keeps the entries of the highest *rank*: the number of zeros at the end of the
//! tag. That is sampling: in a pool with 64 times what the index can hold it keeps about one
//! fingerprint in 64, the same ones for every copy of the data. A hit then loads the fingerprints
//! that were written near it (`recent`), because repeated data repeats in the same order. Those go
//! into a second index, whose full buckets keep the newest entries: a sample of them would be the
//! very entries that the first index has.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use format::{ChunkId, Fingerprint};

/// The number of entries in a bucket: a cache line.
const BUCKET: usize = 8;
const TAG_SHIFT: u32 = 48;
const ID_MASK: u64 = (1 << TAG_SHIFT) - 1;
/// The smallest index: 64 KiB.
const BYTES_MIN: u64 = 64 << 10;

/// A cache line of entries; 0: none.
#[repr(align(64))]
#[derive(Default)]
struct Bucket([AtomicU64; BUCKET]);

/// What a full bucket keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// A sample of everything ever added.
    Sample,
    /// The newest entries.
    Newest,
}

/// An index of fingerprints.
pub(crate) struct Index {
    buckets: Vec<Bucket>,
    keeps: Keeps,
    /// An entry was dropped: not everything stored can still be found.
    lossy: AtomicBool,
}

/// Returns where a fingerprint goes: its bucket, and its tag at its position in an entry.
fn address(fingerprint: Fingerprint, buckets: usize) -> (usize, u64) {
    let [low, high] = halves(fingerprint);
    let bucket = ((u128::from(low) * buckets as u128) >> 64) as usize;
    (bucket, high << TAG_SHIFT)
}

fn halves(fingerprint: Fingerprint) -> [u64; 2] {
    let all = u128::from_le_bytes(fingerprint.0);
    [all as u64, (all >> 64) as u64]
}

/// Returns the priority of an entry in a full bucket.
fn rank(entry: u64) -> (u32, u64) {
    ((entry >> TAG_SHIFT).trailing_zeros(), entry & ID_MASK)
}

/// Puts an entry before the others of a bucket, replacing an older one with its tag. They are in
/// order of age (except where threads race), and the oldest is dropped.
fn push(slots: &[AtomicU64], new: u64) {
    let mut entry = new;
    for slot in slots {
        let older = slot.load(Ordering::Relaxed);
        slot.store(entry, Ordering::Relaxed);
        if older == 0 || older & !ID_MASK == new & !ID_MASK {
            return;
        }
        entry = older;
    }
}

impl Index {
    /// Creates an empty index of about `bytes`, for recent fingerprints.
    pub(crate) fn new(bytes: u64) -> Self {
        Self::keeping(bytes, Keeps::Newest)
    }

    /// Creates an empty index of about `bytes`, for everything stored.
    pub(crate) fn sampling(bytes: u64) -> Self {
        Self::keeping(bytes, Keeps::Sample)
    }

    fn keeping(bytes: u64, keeps: Keeps) -> Self {
        let count = (bytes.max(BYTES_MIN) / size_of::<Bucket>() as u64) as usize;
        let mut buckets = Vec::new();
        buckets.resize_with(count, Bucket::default);
        Self { buckets, keeps, lossy: AtomicBool::new(false) }
    }

    /// Removes all entries.
    #[cfg(test)]
    pub(crate) fn clear(&self) {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        slots.for_each(|slot| slot.store(0, Ordering::Relaxed));
    }

    /// Returns whether it had to drop entries.
    pub(crate) fn is_lossy(&self) -> bool {
        self.lossy.load(Ordering::Relaxed)
    }

    /// Returns the chunks that may have this fingerprint: usually none, or one if it exists.
    pub(crate) fn find(&self, fingerprint: Fingerprint) -> impl Iterator<Item = ChunkId> + '_ {
        let (bucket, tag) = address(fingerprint, self.buckets.len());
        self.buckets[bucket].0.iter().filter_map(move |slot| {
            let entry = slot.load(Ordering::Relaxed);
            (entry != 0 && entry & !ID_MASK == tag).then_some(ChunkId(entry & ID_MASK))
        })
    }

    /// Adds the fingerprint of a chunk.
    pub(crate) fn insert(&self, fingerprint: Fingerprint, chunk: ChunkId) {
        if chunk.0 > ID_MASK {
            return;
        }
        let (bucket, tag) = address(fingerprint, self.buckets.len());
        let new = tag | chunk.0;
        let slots = &self.buckets[bucket].0;
        if self.keeps == Keeps::Newest {
            return push(slots, new);
        }
        let mut least: Option<(&AtomicU64, (u32, u64))> = None;
        for slot in slots {
            let entry = slot.load(Ordering::Relaxed);
            if entry == 0 || entry & !ID_MASK == tag {
                slot.store(new, Ordering::Relaxed);
                return;
            }
            if least.is_none_or(|(_, low)| rank(entry) < low) {
                least = Some((slot, rank(entry)));
            }
        }
        self.lossy.store(true, Ordering::Relaxed);
        if let Some((slot, low)) = least
            && rank(new) >= low
        {
            slot.store(new, Ordering::Relaxed);
        }
    }

    /// Removes a chunk that is gone.
    pub(crate) fn remove(&self, fingerprint: Fingerprint, chunk: ChunkId) {
        let (bucket, tag) = address(fingerprint, self.buckets.len());
        let entry = tag | chunk.0;
        // Reads first: an atomic exchange would wait for the memory of what was removed before it.
        let found = self.buckets[bucket].0.iter().filter(|s| s.load(Ordering::Relaxed) == entry);
        for slot in found {
            let _ = slot.compare_exchange(entry, 0, Ordering::Relaxed, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(seed: u64) -> Fingerprint {
        let keys = format::Keys::derive(&[3; 32]);
        keys.fingerprint(&seed.to_le_bytes())
    }

    #[test]
    fn added_chunks_are_found_until_removed() {
        let index = Index::sampling(1 << 20);
        (1..=10_000).for_each(|id| index.insert(sum(id), ChunkId(id)));
        assert!(!index.is_lossy());
        for id in 1..=10_000 {
            assert!(index.find(sum(id)).any(|found| found == ChunkId(id)));
        }
        let strangers = (20_000..30_000).flat_map(|id| index.find(sum(id)));
        assert!(strangers.count() < 10, "a tag of 16 bits excludes nearly all others");
        (1..=10_000).for_each(|id| index.remove(sum(id), ChunkId(id)));
        assert_eq!((1..=10_000).flat_map(|id| index.find(sum(id))).count(), 0);
    }

    /// Entries loaded around a hit stay available for the following blocks, regardless of earlier
    /// additions.
    #[test]
    fn an_index_of_the_newest_finds_the_last_additions() {
        let index = Index::new(BYTES_MIN);
        let room = BYTES_MIN / 8;
        (1..=32 * room).for_each(|id| index.insert(sum(id), ChunkId(id)));
        let found = |id: u64| index.find(sum(id)).any(|found| found == ChunkId(id));
        let newest = 31 * room + room / 2 + 1..=32 * room;
        let kept = newest.filter(|id| found(*id)).count() as u64;
        assert!(kept > room / 2 * 95 / 100, "{kept} of the last {}", room / 2);
        assert_eq!((1..=16 * room).filter(|id| found(*id)).count(), 0);
    }

    /// The same fingerprints stay regardless of later additions: a second copy finds them again.
    #[test]
    fn a_full_index_keeps_a_sample_of_all() {
        let index = Index::sampling(BYTES_MIN);
        let room = BYTES_MIN / 8;
        let all = 32 * room;
        (1..=all).for_each(|id| index.insert(sum(id), ChunkId(id)));
        assert!(index.is_lossy());
        let found = |id: u64| index.find(sum(id)).any(|found| found == ChunkId(id));
        for part in (1..=all).collect::<Vec<_>>().chunks(all as usize / 8) {
            let kept = part.iter().filter(|id| found(**id)).count() as u64;
            assert!(kept > room / 16, "{kept} of the {room} places for this eighth");
        }
    }
}
