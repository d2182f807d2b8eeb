//! A channel reads what is emptied next while something else is moved.

use std::collections::BTreeMap;

use segments::{Local, Segments, Shared};

use super::fetching::{Channelled, Counted};
use super::reclaim::{Stamps, number};
use super::*;
use crate::{Next, ReadAhead, StoreError};

/// Overwrites a pool until `moved_bytes` were moved, with occasional turns of maintenance, and
/// checks its content in the end. Returns how these turns issued reads; writes that wait for space
/// issue others.
fn age(
    moved_bytes: u64,
    fails: bool,
    mut turn: impl FnMut(&Store) -> Result<Next, StoreError>,
) -> Counted {
    let disk = MemoryDisk::new(512 << 20);
    Store::create(&*disk, &[5; 64]).unwrap();
    let counted = Arc::new(Counted { fails, ..Counted::default() });
    let below = Arc::new(Local::over(disk));
    let segments: Arc<dyn Segments> = Arc::new(Channelled { below, counted: counted.clone() });
    let store = Store::open(Shared::from(segments), OpenOptions::default()).unwrap();
    let blocks = (256 << 20) / 4096;
    let id = volume(&store, blocks * 8);
    let mut stamps = Stamps::new();
    let mut model: BTreeMap<u64, u64> = stamps.fill(&store, id, (blocks, 64));
    counted.together.lock().clear();
    let (mut state, mut alone) = (9, 0);
    while store.written().moved_bytes < moved_bytes {
        for _ in 0..64 {
            let block = number(&mut state, blocks);
            stamps.write(&store, id, block..block + 1, &mut model).unwrap();
        }
        let before = counted.alone.load(Ordering::Relaxed);
        while turn(&store).unwrap() == Next::AtOnce {}
        alone += counted.alone.load(Ordering::Relaxed) - before;
    }
    let together = std::mem::take(&mut *counted.together.lock());
    stamps.assert_holds(&store, id, &model);
    assert_sound(&store);
    Counted { alone: alone.into(), together: Mutex::new(together), fails, ..Counted::default() }
}

/// Reads of whole segments, in pieces of 1 MiB.
fn pieces(reads: &Counted) -> usize {
    reads.together.lock().iter().flatten().filter(|blocks| **blocks > 1).count()
}

/// Reclaim waited for each piece of the segments it empties: half of its time, while hosts waited
/// for it.
#[test]
fn reclaim_reads_ahead() {
    let mut ahead = ReadAhead::default();
    let reads = age(64 << 20, false, |store| store.maintain_with(&mut ahead));
    let (alone, pieces) = (reads.alone.load(Ordering::Relaxed), pieces(&reads));
    assert!(pieces >= 64 && alone < 16, "{pieces} pieces, and {alone} reads that were waited for");
}

/// Reclaim reads by itself what a channel fails to read.
#[test]
fn reclaim_repeats_failed_reads_of_a_channel() {
    let mut ahead = ReadAhead::default();
    let reads = age(32 << 20, true, |store| store.maintain_with(&mut ahead));
    assert!(pieces(&reads) > 0 && reads.alone.load(Ordering::Relaxed) > 16);
}

/// A turn may run on another thread, which has its own reads, or none.
#[test]
fn another_thread_repeats_reads_that_one_has_begun() {
    let mut all = [ReadAhead::default(), ReadAhead::none(), ReadAhead::default()];
    let mut turns = 0;
    age(64 << 20, false, |store| {
        turns += 1;
        store.maintain_with(&mut all[turns % 3])
    });
}
