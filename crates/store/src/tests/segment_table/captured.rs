//! The segment table, captured and given back at random.

use format::page::PageRef;
use format::{SegmentRow, Superblock};

use super::*;
use crate::checkpoint::images::write_images;
use crate::checkpoint::load::load_checkpoint;
use crate::checkpoint::segment_table::{capture, visit};
use crate::checkpoint::slices::Captured;
use crate::chunks::medium::Medium;
use crate::chunks::memory::Budgets;
use crate::log::checkpointer::Checkpointer;

/// Rows and pages, changed at random.
struct Bench {
    disk: Arc<MemoryDisk>,
    store: Store,
    superblock: Superblock,
    rng: u64,
    lsn: u64,
}

const BENCH_SEGMENTS: u32 = 20_000;

impl Bench {
    fn new(seed: u64) -> Self {
        let (disk, store) = pool_of_small(u64::from(BENCH_SEGMENTS));
        let superblock = store.checkpointing.lock().superblock().clone();
        Self { disk, store, superblock, rng: seed, lsn: 10 }
    }

    fn random(&mut self, below: u64) -> u64 {
        self.rng = self.rng.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.rng >> 33) % below
    }

    /// Frees all segments below a directory, except those with metadata.
    fn free_many(&mut self) {
        let first = 8192 * self.random(3) as u32;
        let segments = &mut self.store.writer.lock().state.segments;
        for segment in first.max(1)..(first + 8192).min(BENCH_SEGMENTS) {
            let row = segments.row(segment);
            if row.state == SegmentState::Log {
                segments.sub_live(Place { segment, offset_units: 0 }, row.live_units).unwrap();
                segments.free_dead_one(segment);
            }
        }
    }

    /// Changes some rows: close together, or anywhere.
    fn change(&mut self) {
        if self.random(8) == 0 {
            self.free_many();
        }
        let near = self.random(2) == 0;
        let first = self.random(u64::from(BENCH_SEGMENTS) - 400) as u32 + 1;
        for _ in 0..self.random(30) {
            let range = if near { 300 } else { u64::from(BENCH_SEGMENTS) - 1 };
            let segment = (if near { first } else { 1 }) + self.random(range) as u32;
            let (units, dies) = (64 * self.random(8) as u32, self.random(3) == 0);
            self.lsn += 1;
            let segments = &mut self.store.writer.lock().state.segments;
            let row = segments.row(segment);
            let place = Place { segment, offset_units: 0 };
            match row.state {
                SegmentState::Free => segments.reopen(segment, SegmentState::Log, (self.lsn, 0)),
                SegmentState::Log if dies => {
                    segments.sub_live(place, row.live_units).unwrap();
                    segments.free_dead_one(segment);
                }
                SegmentState::Log if row.live_units < 512 => {
                    segments.add_live(place, units).unwrap();
                }
                _ => {}
            }
        }
    }

    fn rows(&self) -> Vec<SegmentRow> {
        self.store.writer.lock().state.segments.rows().map(|(_, row)| row).collect()
    }

    /// Captures the table, and writes it or gives it back.
    fn capture(&mut self, is_written: bool) {
        let before = self.rows();
        let store = &self.store;
        let (world, checkpointer) = (&store.world, store.checkpointing.lock());
        let mut writer = store.writer.lock();
        let writer = &mut *writer;
        world.memory.begin_capture();
        let most = writer.segment_table_blocks(world, 0, 0);
        let mut captured = Captured::default();
        let segments = &mut writer.state.segments;
        // The open segments are full.
        let mut placer = captured.placer(world, segments, self.lsn, &checkpointer);
        placer.segment = 0;
        let root = capture(world, &mut placer, &mut captured).unwrap();
        let placed: BTreeSet<_> = captured.images.iter().map(|(place, _)| *place).collect();
        assert_eq!(placed.len(), captured.images.len(), "two pages are in one place");
        assert!(placed.len() as u64 <= most, "{} of {most} pages", placed.len());
        captured.opened.append(&mut placer.opened);
        captured.open = Some((placer.segment, placer.block));
        assert_eq!(segments.take_changed_pages(), [0; 0], "rows change when all is captured");
        if !is_written {
            captured.give_back(world, writer, &checkpointer, None).unwrap();
            let after: Vec<_> = writer.state.segments.rows().map(|(_, row)| row).collect();
            // Pages that are no longer needed were released.
            let live = |rows: &[SegmentRow]| -> Vec<_> {
                let of = rows.iter().filter(|row| row.state == SegmentState::Log);
                of.map(|row| row.live_units).collect()
            };
            assert_eq!(live(&after), live(&before));
            return;
        }
        let written = write_images(&world.medium, &captured.images, &mut 0, &mut |_| {}).unwrap();
        assert_eq!(written, 2 * 4096 * placed.len() as u64);
        world.memory.end_capture();
        self.superblock.segment_table = root;
        // No reader uses the old pages.
        let segments = &mut writer.state.segments;
        segments.dead(&BTreeSet::from([0])).into_iter().for_each(|dead| {
            if segments.row(dead).state == SegmentState::Metadata {
                segments.free_dead_one(dead);
            }
        });
        // Those freed after the capture.
        drop(segments.rows());
    }

    /// Returns the rows that a reader finds, after checking that each location of pages is counted.
    fn stored(&self) -> Vec<SegmentRow> {
        let (disk, tuning) = (self.store.world.medium.disk.clone(), Tuning::SMALL);
        let medium = Medium::new(disk, &self.superblock, tuning);
        let mut checkpointer = Checkpointer::new(self.superblock.clone());
        let budgets = Budgets::of_metadata(1 << 20);
        let (world, state) = load_checkpoint(medium, budgets, &mut checkpointer).unwrap();
        let mut counted = vec![0; BENCH_SEGMENTS as usize];
        let mut pages: Vec<PageRef> = Vec::new();
        visit(&world, &mut |_, page| pages.push(page)).unwrap();
        pages.iter().for_each(|page| counted[page.place.segment as usize] += 64);
        let rows: Vec<_> = state.segments.rows().map(|(_, row)| row).collect();
        for (row, counted) in rows.iter().zip(counted) {
            assert!(row.state != SegmentState::Metadata || row.live_units == counted, "{row:?}");
        }
        rows
    }
}

/// Rows and pages agree after any sequence of changes.
#[test]
fn the_captured_table_is_read_back() {
    for seed in 1..=6 {
        let mut bench = Bench::new(seed);
        for step in 0..40 {
            bench.change();
            if bench.random(3) == 0 {
                bench.capture(false);
                if bench.random(2) == 0 {
                    bench.change();
                }
            }
            if bench.random(2) == 0 {
                bench.capture(true);
                let stored = bench.stored();
                for (segment, (row, stored)) in bench.rows().iter().zip(stored).enumerate() {
                    // Dead segments were freed.
                    let is_freed = stored.state == SegmentState::Metadata && stored.live_units == 0;
                    let is_same = *row == stored || is_freed && *row == SegmentRow::default();
                    assert!(
                        is_same,
                        "seed {seed}, step {step}, segment {segment}: {row:?}, {stored:?}"
                    );
                }
            }
        }
        drop(bench.disk);
    }
}
