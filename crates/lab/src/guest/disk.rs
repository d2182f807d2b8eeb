//! A disk as a guest sees it: always the same, regardless of what the host does with it. Snapshots
//! redirect its writes, a Storage vMotion mirrors them.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use event_listener::Event;

use super::GUEST_BLOCK_BYTES;
use super::delta::Delta;
use crate::datastore::BLOCK_BYTES;
use crate::disk::{DiskError, InUse, Place, Provisioning, VirtualDisk};
use crate::mover::Mover;

/// Blocks of the datastore that a Storage vMotion copies at a time: writes to these wait.
const WINDOW_BLOCKS: u64 = 64;
/// The gate of a disk is for all of it.
const WHOLE: Range<u64> = 0..u64::MAX;
/// How often to copy what was written during a consolidation before the guest must wait.
const CONSOLIDATE_PASSES: usize = 3;

/// A guest's disk. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GuestDisk(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    base: RefCell<VirtualDisk>,
    delta: RefCell<Option<Rc<Delta>>>,
    mirror: RefCell<Option<Mirror>>,
    /// Requests hold it shared; a task that replaces the disk under them holds it exclusively.
    gate: InUse,
    window_moved: Event,
    snapshots: Cell<u64>,
}

/// A Storage vMotion in progress.
#[derive(Clone, Debug)]
struct Mirror {
    destination: VirtualDisk,
    /// The blocks being copied: blocks before them are written to both sides.
    window: Range<u64>,
}

impl GuestDisk {
    /// Creates a disk without snapshots.
    pub fn new(base: VirtualDisk) -> Self {
        Self(Rc::new(Inner {
            base: RefCell::new(base),
            delta: RefCell::default(),
            mirror: RefCell::default(),
            gate: InUse::default(),
            window_moved: Event::new(),
            snapshots: Cell::new(0),
        }))
    }

    /// Returns the disk under it, without what a snapshot has redirected.
    pub fn base(&self) -> VirtualDisk {
        self.0.base.borrow().clone()
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.base.borrow().bytes()
    }

    fn delta(&self) -> Option<Rc<Delta>> {
        self.0.delta.borrow().clone()
    }

    /// Reads; whole blocks of 4 KiB.
    ///
    /// # Errors
    /// Those of the disk.
    pub async fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, DiskError> {
        let _io = self.0.gate.start(WHOLE).await;
        let base = self.base();
        match self.delta() {
            Some(delta) => delta.read(&base, offset, bytes).await,
            None => base.read(offset, bytes).await,
        }
    }

    /// Writes; whole blocks of 4 KiB.
    ///
    /// # Errors
    /// Those of the disk.
    pub async fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        loop {
            let io = self.0.gate.start(WHOLE).await;
            let mirror = self.0.mirror.borrow().clone();
            let Some(mirror) = mirror else {
                return match self.delta() {
                    Some(delta) => delta.write(offset, data).await,
                    None => self.base().write(offset, data).await,
                };
            };
            let first = offset / BLOCK_BYTES;
            let end = (offset + data.len() as u64).div_ceil(BLOCK_BYTES);
            if first >= mirror.window.end {
                return self.base().write(offset, data).await;
            }
            if end <= mirror.window.start {
                self.base().write(offset, data).await?;
                return mirror.destination.write(offset, data).await;
            }
            let moved = self.0.window_moved.listen();
            drop(io);
            moved.await;
        }
    }

    /// UNMAP: returns what the guest no longer needs, as far as [`VirtualDisk::unmap`] does;
    /// returns the bytes removed from the disk. Does nothing while there is a snapshot: below,
    /// others may need it, and in SEsparse files no ESXi before 6.7 reclaims (vSphere Storage 6.7,
    /// "Space Reclamation for VMFS6 Virtual Machines").
    ///
    /// During a Storage vMotion it is done on both sides, like a write, and exclusively: if a write
    /// to the same location were in flight, the sides might do the two in different orders. What is
    /// already on both sides stays if the other side is not thin: a guest must not read it again
    /// after it has read zeros.
    ///
    /// # Errors
    /// As [`VirtualDisk::unmap`].
    pub async fn unmap(&self, offset: u64, bytes: u64) -> Result<u64, DiskError> {
        {
            let _io = self.0.gate.start(WHOLE).await;
            if self.delta().is_some() {
                return Ok(0);
            }
            let base = self.base();
            if self.0.mirror.borrow().is_none() {
                return base.unmap(offset, bytes).await;
            }
        }
        self.unmap_mirrored(offset, bytes).await
    }

    /// Unmaps what is outside of the window at once, and the rest when it has moved on.
    async fn unmap_mirrored(&self, offset: u64, bytes: u64) -> Result<u64, DiskError> {
        let blocks = self.base().whole_blocks(offset, bytes)?;
        let mut left = vec![blocks];
        let mut released_bytes = 0;
        loop {
            let moved = {
                let _alone = self.0.gate.claim(WHOLE).await;
                let mirror = self.0.mirror.borrow().clone();
                for blocks in std::mem::take(&mut left) {
                    let Some(mirror) = &mirror else {
                        released_bytes += unmap_blocks(&self.base(), blocks).await?;
                        continue;
                    };
                    let [done, now, later] = parts(&blocks, &mirror.window);
                    if mirror.destination.provisioning() == Provisioning::Thin {
                        released_bytes += unmap_blocks(&self.base(), done.clone()).await?;
                        unmap_blocks(&mirror.destination, done).await?;
                    }
                    released_bytes += unmap_blocks(&self.base(), later).await?;
                    if !now.is_empty() {
                        left.push(now);
                    }
                }
                if left.is_empty() {
                    return Ok(released_bytes);
                }
                self.0.window_moved.listen()
            };
            moved.await;
        }
    }

    /// Takes a snapshot: from here on writes go to a separate file.
    ///
    /// # Errors
    /// Those of the datastore; also if there is a snapshot already.
    pub async fn take_snapshot(&self) -> Result<(), DiskError> {
        let base = self.base();
        let number = self.0.snapshots.get() + 1;
        self.0.snapshots.set(number);
        let name = format!("{}-{number:06}", base.name());
        let file =
            VirtualDisk::create(base.place(), &name, base.bytes(), Provisioning::Thin).await?;
        let _alone = self.0.gate.claim(WHOLE).await;
        *self.0.delta.borrow_mut() = Some(Rc::new(Delta::new(file)));
        Ok(())
    }

    /// Removes the snapshot: what was written since is written to the disk itself.
    ///
    /// # Errors
    /// Those of the datastore and of the device.
    pub async fn remove_snapshot(&self) -> Result<(), DiskError> {
        let Some(delta) = self.delta() else { return Ok(()) };
        let base = self.base();
        for _ in 0..CONSOLIDATE_PASSES {
            delta.consolidate(&base).await?;
        }
        {
            let _alone = self.0.gate.claim(WHOLE).await;
            delta.consolidate(&base).await?;
            *self.0.delta.borrow_mut() = None;
        }
        delta.delete().await
    }

    /// Moves the disk to another datastore while it is in use; the old file is deleted.
    ///
    /// # Errors
    /// Those of the datastores and of the devices; the disk then stays where it was.
    pub async fn migrate(
        &self,
        mover: &Mover,
        place: &Place,
        provisioning: Provisioning,
    ) -> Result<(), DiskError> {
        let source = self.base();
        let (name, bytes) = (source.name(), source.bytes());
        let destination = VirtualDisk::create_unzeroed(place, &name, bytes, provisioning).await?;
        let end = self.copy_mirrored(mover, &source, &destination).await;
        let _alone = self.0.gate.claim(WHOLE).await;
        *self.0.mirror.borrow_mut() = None;
        self.0.window_moved.notify(usize::MAX);
        end?;
        *self.0.base.borrow_mut() = destination;
        source.close().await?;
        source.place().datastore.delete(&name).await?;
        Ok(())
    }

    async fn copy_mirrored(
        &self,
        mover: &Mover,
        source: &VirtualDisk,
        destination: &VirtualDisk,
    ) -> Result<(), DiskError> {
        let blocks = source.blocks();
        let mut start = 0;
        while start < blocks {
            let window = start..blocks.min(start + WINDOW_BLOCKS);
            {
                // Writes in progress end first, under the old window.
                let _alone = self.0.gate.claim(WHOLE).await;
                let mirror = Mirror { destination: destination.clone(), window: window.clone() };
                *self.0.mirror.borrow_mut() = Some(mirror);
                self.0.window_moved.notify(usize::MAX);
            }
            mover.copy_blocks(source, destination, window.start, window.end - start).await?;
            start = window.end;
        }
        let _alone = self.0.gate.claim(WHOLE).await;
        let mirror = Mirror { destination: destination.clone(), window: blocks..blocks };
        *self.0.mirror.borrow_mut() = Some(mirror);
        self.0.window_moved.notify(usize::MAX);
        Ok(())
    }
}

/// Splits blocks into those before a window, in it, and after it.
fn parts(blocks: &Range<u64>, window: &Range<u64>) -> [Range<u64>; 3] {
    let cut = |range: Range<u64>| blocks.start.max(range.start)..blocks.end.min(range.end);
    [cut(0..window.start), cut(window.clone()), cut(window.end..u64::MAX)]
}

async fn unmap_blocks(disk: &VirtualDisk, blocks: Range<u64>) -> Result<u64, DiskError> {
    if blocks.is_empty() {
        return Ok(0);
    }
    let offset = blocks.start * BLOCK_BYTES;
    disk.unmap(offset, (blocks.end * BLOCK_BYTES).min(disk.bytes()) - offset).await
}

/// Returns whether a request consists of whole blocks of a guest.
pub(super) fn is_aligned(offset: u64, bytes: u64) -> bool {
    (offset | bytes).is_multiple_of(GUEST_BLOCK_BYTES as u64)
}

#[cfg(test)]
mod tests {
    use super::parts;

    #[test]
    fn blocks_are_before_a_window_in_it_or_after_it() {
        let counts = |blocks, window| parts(&blocks, &window).map(|part| part.count());
        assert_eq!(counts(0..10, 4..6), [4, 2, 4]);
        assert_eq!(counts(0..4, 4..6), [4, 0, 0]);
        assert_eq!(counts(6..9, 4..6), [0, 0, 3]);
        assert_eq!(counts(5..7, 4..6), [0, 1, 1]);
        assert_eq!(counts(2..7, 9..9), [5, 0, 0]);
    }
}
