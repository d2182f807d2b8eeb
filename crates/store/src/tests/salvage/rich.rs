//! A pool with content of all kinds, and its content at each moment.

use super::super::mirrors::{self, Pool};
use super::super::reduction::{optimize, prose};
use super::*;

/// The content of volumes, up to the end of their written part.
pub(super) type Content = BTreeMap<VolumeId, Arc<Vec<u8>>>;

pub(super) struct Rich<D = Arc<MemoryDisk>> {
    /// The disk it is on.
    pub(super) disk: D,
    pub(super) content: Content,
    /// In blocks.
    pub(super) sizes: BTreeMap<VolumeId, u64>,
    /// The volumes' content when the record with this LSN was the next one, since the checkpoint.
    history: Vec<(u64, Content)>,
}

impl<D> Rich<D> {
    /// Returns the volumes' content before a record was written.
    pub(super) fn before(&self, lsn: u64) -> &Content {
        let found = self.history.iter().rev().find(|(next, _)| *next <= lsn);
        &found.expect("a record after the checkpoint").1
    }

    /// Returns the LSN of the last record.
    pub(super) fn last_lsn(&self) -> u64 {
        self.history.last().map_or(0, |(next, _)| next - 1)
    }

    /// Returns the content at the checkpoint.
    pub(super) fn at_checkpoint(&self) -> &Content {
        &self.history[0].1
    }
}

struct Maker {
    store: Store,
    content: Content,
    sizes: BTreeMap<VolumeId, u64>,
    history: Vec<(u64, Content)>,
}

impl Maker {
    fn volume(&mut self, size_blocks: u64, kept_blocks: usize) -> VolumeId {
        let id = volume(&self.store, size_blocks * 8);
        self.content.insert(id, Arc::new(vec![0; kept_blocks * 4096]));
        self.sizes.insert(id, size_blocks);
        self.note();
        id
    }

    fn note(&mut self) {
        let next = self.store.writer.lock().log.position().lsn;
        self.history.push((next, self.content.clone()));
    }

    fn model(&mut self, id: VolumeId) -> &mut Vec<u8> {
        Arc::make_mut(self.content.get_mut(&id).unwrap())
    }

    fn write(&mut self, id: VolumeId, block: u64, bytes: &[u8]) {
        write(&self.store, id, block * 8, bytes).unwrap();
        self.model(id)[block as usize * 4096..][..bytes.len()].copy_from_slice(bytes);
        self.note();
    }

    fn copy(&mut self, (from, at): (VolumeId, u64), (to, start): (VolumeId, u64), count: u64) {
        let segments = vec![segment(from, at * 8, to, start * 8, count * 8)];
        self.store.execute(VolumeRequest::Copy { segments }).unwrap();
        let bytes = self.content[&from][at as usize * 4096..][..count as usize * 4096].to_vec();
        self.model(to)[start as usize * 4096..][..bytes.len()].copy_from_slice(&bytes);
        self.note();
    }

    fn unmap(&mut self, id: VolumeId, block: u64, count: u64) {
        let ranges = vec![SectorRange::new(block * 8, count * 8)];
        self.store.execute(VolumeRequest::Unmap { volume: id, ranges }).unwrap();
        self.model(id)[block as usize * 4096..][..count as usize * 4096].fill(0);
        self.note();
    }

    fn fill(&mut self, id: VolumeId, block: u64, count: u64, bytes: &[u8]) {
        let pattern = FrameMut::from_bytes(bytes).freeze();
        let range = SectorRange::new(block * 8, count * 8);
        self.store.execute(VolumeRequest::Fill { volume: id, range, pattern, fua: false }).unwrap();
        for at in block..block + count {
            self.model(id)[at as usize * 4096..][..4096].copy_from_slice(bytes);
        }
        self.note();
    }

    fn clone_of(&mut self, source: VolumeId, snapshot: bool) -> VolumeId {
        let id = self.store.allocate_volume_id();
        self.change(VolumeChange::Clone { source, id, snapshot });
        self.content.insert(id, self.content[&source].clone());
        self.sizes.insert(id, self.sizes[&source]);
        self.note();
        id
    }

    fn change(&self, change: VolumeChange) {
        self.store.change(Change { volumes: vec![change], ..Change::default() }).unwrap();
    }

    fn destroy(&mut self, id: VolumeId) {
        self.change(VolumeChange::Destroy { id });
        self.content.remove(&id);
        self.sizes.remove(&id);
        self.note();
    }

    fn resize(&mut self, id: VolumeId, size_blocks: u64) {
        self.change(VolumeChange::Resize { id, size: SectorCount(size_blocks * 8) });
        if let Some(gone) = self.model(id).get_mut(size_blocks as usize * 4096..) {
            gone.fill(0);
        }
        self.sizes.insert(id, size_blocks);
        self.note();
    }

    fn overwrite(&mut self, source: VolumeId, destination: VolumeId) {
        self.change(VolumeChange::Overwrite { source, destination });
        self.content.insert(destination, self.content[&source].clone());
        self.sizes.insert(destination, self.sizes[&source]);
        self.note();
    }

    fn config(&mut self, key: &[u8], value: Vec<u8>) {
        let config = vec![(key.to_vec(), Some(value))];
        self.store.change(Change { config, ..Change::default() }).unwrap();
        self.note();
    }
}

/// Makes volumes with data, compressed groups, aliases, zeros, patterns and holes; snapshots,
/// clones; and a log with entries of all kinds after the checkpoint, whose last record changes no
/// volume.
pub(super) fn rich() -> Rich {
    let (disk, store) = pool(256 << 20);
    fill(disk, store)
}

/// Makes the same on `count` disks.
pub(super) fn rich_on(count: usize) -> Rich<Vec<Arc<MemoryDisk>>> {
    let Pool { disks, mirrors, store } = mirrors::make(count);
    drop(mirrors);
    fill(disks, store)
}

fn fill<D>(disk: D, store: Store) -> Rich<D> {
    let (content, sizes, history) = Default::default();
    let mut maker = Maker { store, content, sizes, history };
    let one = maker.volume(320, 320);
    let thin = maker.volume(80_000, 400);
    let twin = maker.volume(100, 100);
    let ends = maker.volume(64, 64);
    maker.config(b"key", vec![7; 9000]);
    maker.write(one, 0, &distinct(8 * 100, 1));
    maker.write(one, 100, &prose(8 * 60, 2));
    maker.write(one, 170, &[5; 40_960]);
    maker.write(one, 190, &[0; 40_960]);
    maker.write(ends, 0, &distinct(8 * 20, 3));
    // The same again, unnoticed until the pass that makes aliases.
    maker.store.world.index.clear();
    maker.write(twin, 20, &distinct(8 * 40, 1));
    optimize(&maker.store, 1 << 20);
    assert!(maker.store.optimize_status().aliased_chunks > 0);
    maker.copy((one, 0), (thin, 0), 256);
    maker.copy((one, 50), (thin, 261), 80);
    let snapshot = maker.clone_of(one, true);
    maker.write(one, 10, &distinct(8 * 12, 4));
    let clone = maker.clone_of(snapshot, false);
    maker.write(clone, 280, &distinct(8 * 30, 5));
    maker.store.checkpoint().unwrap();
    maker.store.checkpoint().unwrap();
    maker.history.clear();
    maker.note();
    // The following is in the log only.
    maker.write(one, 20, &distinct(8 * 25, 6));
    maker.write(thin, 350, &prose(8 * 30, 7));
    maker.copy((thin, 3), (one, 203), 60);
    maker.fill(clone, 40, 60, &distinct(8, 8));
    maker.fill(clone, 120, 20, &[9; 4096]);
    maker.unmap(twin, 30, 10);
    let late = maker.clone_of(one, true);
    maker.write(one, 0, &distinct(8 * 5, 10));
    maker.resize(twin, 40);
    maker.resize(twin, 100);
    maker.destroy(ends);
    let newest = maker.volume(60, 60);
    maker.write(newest, 20, &distinct(8 * 30, 11));
    maker.overwrite(late, clone);
    maker.write(clone, 300, &distinct(8 * 2, 12));
    maker.copy((one, 0), (one, 5), 150);
    maker.write(newest, 0, &distinct(8 * 3, 13));
    maker.config(b"last", vec![1; 100]);
    // The records written after the last one when no other follows.
    (0..2).for_each(|_| maker.store.note_rest());
    maker.note();
    let Maker { store, content, sizes, history } = maker;
    drop(store);
    Rich { disk, content, sizes, history }
}
