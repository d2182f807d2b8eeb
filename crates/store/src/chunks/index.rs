//! The index of deduplication: where a fingerprint was seen. A hint in a fixed amount of memory.
//!
//! What it says is looked up in the chunk table and compared byte for byte before it is believed;
//! what it has forgotten costs space, until the background pass finds it. So it is neither durable
//! nor locked: a bucket is a cache line of eight words, each a tag of 16 bits and a chunk id.
//!
//! A full bucket keeps the entries of the highest *rank*: the number of zeros at the end of the
//! tag. That samples: a pool of 64 times what the index can name keeps about one fingerprint in 64,
//! the same ones for every copy of the data. A hit then brings in the fingerprints that were
//! written around it (`dedup`), because what comes twice comes in the same order. Those go into a
//! second index, whose full buckets keep what came last: a sample of them would be the very entries
//! that the first one has.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use format::{ChunkId, Fingerprint};

/// Entries in a bucket: a cache line.
const BUCKET: usize = 8;
const TAG_SHIFT: u32 = 48;
const ID_MASK: u64 = (1 << TAG_SHIFT) - 1;
/// The smallest index: 64 KiB.
const BYTES_MIN: u64 = 64 << 10;

/// A cache line of entries, 0: none.
#[repr(align(64))]
#[derive(Default)]
struct Bucket([AtomicU64; BUCKET]);

/// What a full bucket keeps.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keeps {
    /// A sample of all that was ever put in.
    Sample,
    /// What was put in last.
    Newest,
}

/// Where fingerprints were seen.
pub(crate) struct Index {
    buckets: Vec<Bucket>,
    keeps: Keeps,
    /// Something had to go: not all that is stored is found any more.
    lossy: AtomicBool,
}

/// Where a fingerprint goes: bucket, and tag in the place that it has in an entry.
fn address(fingerprint: Fingerprint, buckets: usize) -> (usize, u64) {
    let [low, high] = halves(fingerprint);
    let bucket = ((u128::from(low) * buckets as u128) >> 64) as usize;
    (bucket, high << TAG_SHIFT)
}

fn halves(fingerprint: Fingerprint) -> [u64; 2] {
    let all = u128::from_le_bytes(fingerprint.0);
    [all as u64, (all >> 64) as u64]
}

/// How long an entry is kept where others want its place.
fn rank(entry: u64) -> (u32, u64) {
    ((entry >> TAG_SHIFT).trailing_zeros(), entry & ID_MASK)
}

/// Puts an entry in front of those of a bucket, in place of an older one with its tag. They stand
/// in the order of their age (but where threads meet), and the oldest falls out.
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
    /// An empty index of about `bytes`, for what was of use lately.
    pub(crate) fn new(bytes: u64) -> Self {
        Self::keeping(bytes, Keeps::Newest)
    }

    /// An empty index of about `bytes`, for all that is stored.
    pub(crate) fn sampling(bytes: u64) -> Self {
        Self::keeping(bytes, Keeps::Sample)
    }

    fn keeping(bytes: u64, keeps: Keeps) -> Self {
        let count = (bytes.max(BYTES_MIN) / size_of::<Bucket>() as u64) as usize;
        let mut buckets = Vec::new();
        buckets.resize_with(count, Bucket::default);
        Self { buckets, keeps, lossy: AtomicBool::new(false) }
    }

    /// Forgets all.
    #[cfg(test)]
    pub(crate) fn clear(&self) {
        let slots = self.buckets.iter().flat_map(|bucket| &bucket.0);
        slots.for_each(|slot| slot.store(0, Ordering::Relaxed));
    }

    /// Whether it had to forget something.
    pub(crate) fn is_lossy(&self) -> bool {
        self.lossy.load(Ordering::Relaxed)
    }

    /// The chunks that may have this fingerprint: none mostly, one where there is one.
    pub(crate) fn find(&self, fingerprint: Fingerprint) -> impl Iterator<Item = ChunkId> + '_ {
        let (bucket, tag) = address(fingerprint, self.buckets.len());
        self.buckets[bucket].0.iter().filter_map(move |slot| {
            let entry = slot.load(Ordering::Relaxed);
            (entry != 0 && entry & !ID_MASK == tag).then_some(ChunkId(entry & ID_MASK))
        })
    }

    /// A chunk has this fingerprint.
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

    /// The chunk is gone.
    pub(crate) fn remove(&self, fingerprint: Fingerprint, chunk: ChunkId) {
        let (bucket, tag) = address(fingerprint, self.buckets.len());
        let entry = tag | chunk.0;
        // First a look: an exchange waits for the memory of what was removed before it.
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
    fn what_is_put_in_is_found_until_it_is_taken_out() {
        let index = Index::sampling(1 << 20);
        (1..=10_000).for_each(|id| index.insert(sum(id), ChunkId(id)));
        assert!(!index.is_lossy());
        for id in 1..=10_000 {
            assert!(index.find(sum(id)).any(|found| found == ChunkId(id)));
        }
        let strangers = (20_000..30_000).flat_map(|id| index.find(sum(id)));
        assert!(strangers.count() < 10, "a tag of 16 bits tells nearly all");
        (1..=10_000).for_each(|id| index.remove(sum(id), ChunkId(id)));
        assert_eq!((1..=10_000).flat_map(|id| index.find(sum(id))).count(), 0);
    }

    /// What was brought in around a hit is there for the blocks behind it, however much was before.
    #[test]
    fn an_index_of_the_newest_finds_what_was_put_in_last() {
        let index = Index::new(BYTES_MIN);
        let room = BYTES_MIN / 8;
        (1..=32 * room).for_each(|id| index.insert(sum(id), ChunkId(id)));
        let found = |id: u64| index.find(sum(id)).any(|found| found == ChunkId(id));
        let newest = 31 * room + room / 2 + 1..=32 * room;
        let kept = newest.filter(|id| found(*id)).count() as u64;
        assert!(kept > room / 2 * 95 / 100, "{kept} of the last {}", room / 2);
        assert_eq!((1..=16 * room).filter(|id| found(*id)).count(), 0);
    }

    /// Whatever comes later, the same fingerprints stay: a second copy meets them again.
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
