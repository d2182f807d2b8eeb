//! A disk as a guest has it: the same one whatever the host does under it. Snapshots send its
//! writes elsewhere, a Storage vMotion mirrors them.

use std::cell::{Cell, RefCell};
use std::ops::Range;
use std::rc::Rc;

use event_listener::Event;

use super::GUEST_BLOCK_BYTES;
use super::delta::Delta;
use super::gate::Gate;
use crate::datastore::BLOCK_BYTES;
use crate::disk::{DiskError, Place, Provisioning, VirtualDisk};
use crate::mover::Mover;

/// Blocks of the datastore that a Storage vMotion copies at a time: writes to these wait.
const WINDOW_BLOCKS: u64 = 64;
/// How often what was written during a consolidation is copied as well before the guest waits.
const CONSOLIDATE_PASSES: usize = 3;

/// A guest's disk. Cheap to clone.
#[derive(Clone, Debug)]
pub struct GuestDisk(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    base: RefCell<VirtualDisk>,
    delta: RefCell<Option<Rc<Delta>>>,
    mirror: RefCell<Option<Mirror>>,
    /// Requests hold it shared; whoever changes what is under them holds it alone.
    gate: Gate,
    window_moved: Event,
    snapshots: Cell<u64>,
}

/// A Storage vMotion under way.
#[derive(Clone, Debug)]
struct Mirror {
    destination: VirtualDisk,
    /// Blocks that are being copied: what is in front of them is written to both sides.
    window: Range<u64>,
}

impl GuestDisk {
    /// A disk without snapshots.
    pub fn new(base: VirtualDisk) -> Self {
        Self(Rc::new(Inner {
            base: RefCell::new(base),
            delta: RefCell::default(),
            mirror: RefCell::default(),
            gate: Gate::default(),
            window_moved: Event::new(),
            snapshots: Cell::new(0),
        }))
    }

    /// The disk under it, without what a snapshot has sent elsewhere.
    pub fn base(&self) -> VirtualDisk {
        self.0.base.borrow().clone()
    }

    /// Its size in bytes.
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
        let _io = self.0.gate.pass().await;
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
            let io = self.0.gate.pass().await;
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

    /// Takes a snapshot: from here on writes go to a file of their own.
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
        let _alone = self.0.gate.close().await;
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
            let _alone = self.0.gate.close().await;
            delta.consolidate(&base).await?;
            *self.0.delta.borrow_mut() = None;
        }
        delta.delete().await
    }

    /// Moves the disk to another datastore while it is used; the old file is deleted.
    ///
    /// # Errors
    /// Those of the datastores and of the devices; the disk stays where it was then.
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
        let _alone = self.0.gate.close().await;
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
                // Whoever writes now ends first, under the window as it was.
                let _alone = self.0.gate.close().await;
                let mirror = Mirror { destination: destination.clone(), window: window.clone() };
                *self.0.mirror.borrow_mut() = Some(mirror);
                self.0.window_moved.notify(usize::MAX);
            }
            mover.copy_blocks(source, destination, window.start, window.end - start).await?;
            start = window.end;
        }
        let _alone = self.0.gate.close().await;
        let mirror = Mirror { destination: destination.clone(), window: blocks..blocks };
        *self.0.mirror.borrow_mut() = Some(mirror);
        self.0.window_moved.notify(usize::MAX);
        Ok(())
    }
}

/// Whether a request is made of whole blocks of a guest.
pub(super) fn is_aligned(offset: u64, bytes: u64) -> bool {
    (offset | bytes).is_multiple_of(GUEST_BLOCK_BYTES as u64)
}
