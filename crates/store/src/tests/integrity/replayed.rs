//! A log that has to change what is damaged: only what depends on the damage is lost.

use super::*;

/// Volumes, their content at the checkpoint, and what the log has done since.
struct Logged {
    disk: Arc<MemoryDisk>,
    /// Each volume, and its content.
    content: Vec<(VolumeId, Vec<u8>)>,
    /// Blocks that the log does not touch, and no other volume shares.
    quiet: VolumeId,
}

const SIZE_BYTES: usize = 8 << 20;

impl Logged {
    fn volume(&mut self, store: &Store) -> VolumeId {
        let id = volume(store, 8 * MIB);
        self.content.push((id, vec![0; SIZE_BYTES]));
        id
    }

    fn content(&mut self, id: VolumeId) -> &mut Vec<u8> {
        let found = self.content.iter_mut().find(|(known, _)| *known == id);
        &mut found.expect("it was made").1
    }

    fn write(&mut self, store: &Store, id: VolumeId, block: usize, bytes: &[u8]) {
        write(store, id, block as u64 * 8, bytes).unwrap();
        self.content(id)[block * 4096..][..bytes.len()].copy_from_slice(bytes);
    }

    fn copy(&mut self, store: &Store, from: (VolumeId, usize), to: (VolumeId, usize), n: usize) {
        let at = |block: usize| block as u64 * 8;
        let segments = vec![segment(from.0, at(from.1), to.0, at(to.1), at(n))];
        store.execute(VolumeRequest::Copy { segments }).unwrap();
        let bytes = self.content(from.0)[from.1 * 4096..][..n * 4096].to_vec();
        self.content(to.0)[to.1 * 4096..][..n * 4096].copy_from_slice(&bytes);
    }

    fn zero(&mut self, store: &Store, id: VolumeId, block: usize, count: usize) {
        let range = SectorRange::new(block as u64 * 8, count as u64 * 8);
        store.execute(VolumeRequest::Unmap { volume: id, ranges: vec![range] }).unwrap();
        self.content(id)[block * 4096..][..count * 4096].fill(0);
    }

    fn same_as(&mut self, source: VolumeId, id: VolumeId) {
        let bytes = self.content(source).clone();
        match self.content.iter_mut().find(|(known, _)| *known == id) {
            Some((_, content)) => *content = bytes,
            None => self.content.push((id, bytes)),
        }
    }

    /// Returns the unreadable blocks; all others are right.
    fn lost(&self, store: &Store) -> Vec<(VolumeId, u64)> {
        let mut lost = Vec::new();
        for (id, content) in &self.content {
            for block in 0..SIZE_BYTES as u64 / 4096 {
                let range = SectorRange::new(block * 8, 8);
                match store.execute(VolumeRequest::Read { volume: *id, range }) {
                    Ok(VolumeReply::Data(data)) => {
                        let want = &content[block as usize * 4096..][..4096];
                        assert!(data.to_vec() == want, "block {block} of {id} is wrong");
                    }
                    Err(VolumeError::Medium { .. }) => lost.push((*id, block)),
                    other => panic!("{other:?}"),
                }
            }
        }
        lost
    }
}

fn make_logged() -> Logged {
    let (disk, store) = pool(1 << 30);
    let mut pool = Logged { disk, content: Vec::new(), quiet: VolumeId(0) };
    let [a, b, quiet] = [0; 3].map(|_| pool.volume(&store));
    pool.quiet = quiet;
    for at in 0..8 {
        pool.write(&store, a, at * 256, &distinct(1600, at as u64 + 1));
        pool.write(&store, b, at * 256, &distinct(800, at as u64 + 51));
    }
    pool.copy(&store, (a, 512), (b, 512), 256);
    // Rows and nodes of their own, far from the others'.
    store.checkpoint().unwrap();
    store.writer.lock().state.next_chunk = 300 * 128;
    store.writer.lock().state.next_node = 256;
    (0..8).for_each(|at| pool.write(&store, quiet, at * 256, &distinct(800, at as u64 + 101)));
    store.writer.lock().state.next_chunk = 320 * 128;
    store.checkpoint().unwrap();
    store.checkpoint().unwrap();
    // The log: parts of leaves, whole leaves, copies of both kinds, and whole volumes.
    pool.write(&store, a, 10, &distinct(80, 201));
    pool.write(&store, a, 520, &distinct(80, 202));
    pool.write(&store, b, 250, &distinct(160, 203));
    pool.copy(&store, (a, 256), (b, 1024), 256);
    pool.copy(&store, (a, 777), (b, 1300), 100);
    pool.zero(&store, a, 1100, 30);
    pool.zero(&store, a, 1792, 256);
    pool.write(&store, a, 1536, &distinct(8, 2));
    let [clone, overwritten, new] = [0; 3].map(|_| store.allocate_volume_id());
    for change in [
        VolumeChange::Clone { source: a, id: clone, snapshot: false },
        VolumeChange::Create { id: overwritten, size: SectorCount(16 * MIB) },
        VolumeChange::Overwrite { source: b, destination: overwritten },
        VolumeChange::Create { id: new, size: SectorCount(8 * MIB) },
    ] {
        store.change(Change { volumes: vec![change], ..Change::default() }).unwrap();
    }
    pool.same_as(a, clone);
    pool.same_as(b, overwritten);
    pool.content.push((new, vec![0; SIZE_BYTES]));
    pool.write(&store, clone, 5, &distinct(8, 204));
    pool.write(&store, new, 700, &distinct(400, 205));
    pool.copy(&store, (clone, 0), (new, 0), 256);
    pool.write(&store, a, 300, &distinct(8, 206));
    drop(store);
    pool
}

/// A pool does not open without these.
fn is_of_segments(class: &str) -> bool {
    matches!(class, "directory of segments" | "segment rows")
}

/// Damages each page and each node that the log builds on. The pool opens; each block is right or
/// lost; what does not depend on the damage is right; scrub and inspect name what reads lose; and
/// all of that stays so after a checkpoint, after another opening, and once the bytes are readable
/// again.
#[test]
fn replay_over_any_damaged_page_or_node_loses_only_its_dependents() {
    let probe = make_logged();
    let count = classes(&Store::load(probe.disk.clone(), COLD).unwrap()).len();
    let (mut lossy, mut healed) = (std::collections::BTreeSet::new(), 0);
    for index in 0..count {
        let mut pool = make_logged();
        let store = Store::load(pool.disk.clone(), COLD).unwrap();
        let (class, what, at, bits) = classes(&store)[index];
        drop(store);
        if matches!(class, "superblock" | "label" | "stream" | "chunk") || is_of_segments(class) {
            continue;
        }
        let bit = (index as u64).wrapping_mul(0x85eb_ca6b) % bits;
        flip(&pool.disk, at, bit);
        let store = Store::open(pool.disk.clone(), COLD)
            .unwrap_or_else(|error| panic!("{class} {what:?}: {error}"));
        let lost = pool.lost(&store);
        if !lost.is_empty() {
            lossy.insert(class);
        }
        let is_quiet_hit = matches!(class, "volume rows" | "directory")
            || matches!(what, What::Node(id) if id >= 256);
        if !is_quiet_hit {
            assert!(lost.iter().all(|(id, _)| *id != pool.quiet), "{class} {what:?}");
        }
        if class == "leaf" {
            // The leaf, where it is shared or was copied to, and no more.
            assert!(lost.len() <= 5 * 256, "{class} {what:?}: {}", lost.len());
        }
        if matches!(class, "leaf" | "inner node") && index % 2 == 0 {
            // What the log has changed can be rewritten, block by block. Elsewhere the damaged node
            // is still in place.
            let mut left = Vec::new();
            for &(id, block) in &lost {
                let bytes = pool.content(id)[block as usize * 4096..][..4096].to_vec();
                match write(&store, id, block * 8, &bytes) {
                    Ok(_) => healed += 1,
                    Err(VolumeError::Medium { .. }) => left.push((id, block)),
                    Err(other) => panic!("{class} {what:?}: {other}"),
                }
            }
            assert!(pool.lost(&store) == left, "{class} {what:?}");
            store.checkpoint().unwrap();
            continue;
        }
        store.checkpoint().unwrap();
        while store.housekeep() {}
        store.checkpoint().unwrap();
        assert!(pool.lost(&store) == lost, "{class} {what:?}: after a checkpoint");
        drop(store);
        flip(&pool.disk, at, bit);
        let store = Store::open(pool.disk.clone(), COLD).unwrap();
        let now = pool.lost(&store);
        assert!(now.iter().all(|block| lost.contains(block)), "{class} {what:?}: more is lost");
    }
    assert!(healed > 500, "{healed}");
    assert_eq!(
        lossy.into_iter().collect::<Vec<_>>(),
        ["chunk rows", "directory", "inner node", "leaf", "node rows", "volume rows"]
    );
}
