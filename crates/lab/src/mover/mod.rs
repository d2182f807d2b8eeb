//! The data mover: copies disks by EXTENDED COPY if possible, otherwise by reads and writes.
//!
//! A copy is divided into transfers as 002 describes them: up to `MaxHWTransferSize` each, or up to
//! the array's own values in several segments; thin disks by 1 MB extents in 5.x. The host does a
//! transfer that the array refuses itself, in mid-operation, and so the next ones until the offload
//! is worth another try.

mod transfer;

use std::cell::Cell;
use std::rc::Rc;

use async_lock::Semaphore;

use crate::datastore::{AllocateAs, BLOCK_BYTES, BlockState, Placement};
use crate::disk::{DiskError, Provisioning, VirtualDisk, zero_all};
use crate::engine::some_at_a_time;
use crate::host::{Device, Extent, Host, HostError, Primitive};
pub use transfer::{CopyLimits, Transfer, transfers};

/// The size of one READ or WRITE of a software copy. The papers do not state ESXi's; a larger one
/// favors the host.
const BY_HAND_BYTES: u64 = 1 << 20;

/// Copies disks for a host. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Mover(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    host: Host,
    slots: Semaphore,
    in_flight: usize,
    moved: Cell<Moved>,
}

/// How much was moved, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    /// By EXTENDED COPY.
    pub offloaded_bytes: u64,
    /// By reads and writes.
    pub by_hand_bytes: u64,
    /// Transfers that the array has refused, or that failed.
    pub refusals: u64,
}

impl Mover {
    /// Creates a mover with the host's limit of copies in flight.
    pub fn new(host: &Host) -> Self {
        let in_flight = host.settings().copies_in_flight.max(1);
        let slots = Semaphore::new(in_flight);
        Self(Rc::new(Inner { host: host.clone(), slots, in_flight, moved: Cell::default() }))
    }

    /// Returns what it has moved.
    pub fn moved(&self) -> Moved {
        self.0.moved.get()
    }

    /// Copies everything written of `source` to `destination`, which was created for it
    /// ([`VirtualDisk::create_unzeroed`]) and is at least as large.
    ///
    /// # Errors
    /// Those of the datastore and of the devices.
    pub async fn copy(
        &self,
        source: &VirtualDisk,
        destination: &VirtualDisk,
    ) -> Result<(), DiskError> {
        self.copy_blocks(source, destination, 0, source.blocks()).await?;
        if destination.provisioning() == Provisioning::EagerZeroedThick {
            self.zero_rest(destination).await?;
        }
        Ok(())
    }

    /// Copies what was written of some blocks, for which the destination allocates space. They are
    /// marked as written there when all of them are.
    ///
    /// # Errors
    /// As those of [`Mover::copy`].
    pub async fn copy_blocks(
        &self,
        source: &VirtualDisk,
        destination: &VirtualDisk,
        first_block: u64,
        count: u64,
    ) -> Result<(), DiskError> {
        let end = first_block + count;
        // A guest may unmap what is copied.
        let _held = source.hold(first_block..end).await;
        let (mut extents, mut copied) = (Vec::new(), Vec::new());
        let mut present = source.file().extents(first_block, count).await?;
        present.retain(|extent| matches!(extent.state, BlockState::Present(_)));
        // All at once, and contiguous, however scattered it is in the source.
        let ranges: Vec<_> = present.iter().map(|of| (of.first_block, of.count)).collect();
        let (how, place) = (AllocateAs::ToBeZeroed, Placement::AsItComes);
        destination.file().allocate_all(&ranges, how, place).await?;
        for extent in present {
            let BlockState::Present(from) = extent.state else { continue };
            for there in destination.file().extents(extent.first_block, extent.count).await? {
                let (BlockState::Present(to) | BlockState::ToBeZeroed(to)) = there.state else {
                    continue;
                };
                let skip = (there.first_block - extent.first_block) * BLOCK_BYTES;
                let bytes = there.count * BLOCK_BYTES;
                extents.push(Extent { source: from + skip, destination: to, bytes });
                copied.push((there.first_block, there.count.min(end - there.first_block)));
            }
        }
        let is_thin = [source, destination].iter().any(|d| d.provisioning() == Provisioning::Thin);
        self.copy_extents(source, destination, &extents, is_thin).await?;
        Ok(destination.file().mark_present_in(&copied).await?)
    }

    async fn copy_extents(
        &self,
        source: &VirtualDisk,
        destination: &VirtualDisk,
        extents: &[Extent],
        is_thin: bool,
    ) -> Result<(), DiskError> {
        let (from, to) = (&source.place().device, &destination.place().device);
        let limits = CopyLimits {
            segment_bytes: to.copy_segment_bytes(),
            segment_count: to.copy_segment_count(),
        };
        let parts = transfers(&self.0.host.settings(), limits, extents, is_thin);
        let transfers = parts.into_iter().map(|transfer| self.transfer(from, to, transfer));
        Ok(some_at_a_time(self.0.in_flight, transfers).await?)
    }

    async fn transfer(
        &self,
        from: &Device,
        to: &Device,
        transfer: Transfer,
    ) -> Result<(), HostError> {
        let _slot = self.0.slots.acquire().await;
        let mut moved = Moved::default();
        if from.may_copy_to(to) && to.may_offload(Primitive::Move) {
            match to.copy_from(from, &transfer.extents).await {
                Ok(()) => {
                    moved.offloaded_bytes = transfer.bytes();
                    self.note(moved);
                    return Ok(());
                }
                Err(error) if error.is_done_by_hand(Primitive::Move) => moved.refusals = 1,
                Err(error) => return Err(error),
            }
        }
        for extent in &transfer.extents {
            copy_by_hand(from, to, *extent).await?;
        }
        moved.by_hand_bytes = transfer.bytes();
        to.did_by_hand(Primitive::Move, moved.by_hand_bytes);
        self.note(moved);
        Ok(())
    }

    fn note(&self, more: Moved) {
        let moved = self.0.moved.get();
        self.0.moved.set(Moved {
            offloaded_bytes: moved.offloaded_bytes + more.offloaded_bytes,
            by_hand_bytes: moved.by_hand_bytes + more.by_hand_bytes,
            refusals: moved.refusals + more.refusals,
        });
    }

    /// Zeroes what was never written in the source, as the kind of the disk requires.
    async fn zero_rest(&self, disk: &VirtualDisk) -> Result<(), DiskError> {
        let extents = disk.file().extents(0, disk.blocks()).await?;
        let rest: Vec<_> = extents
            .iter()
            .filter_map(|extent| match extent.state {
                BlockState::ToBeZeroed(offset) => Some((offset, extent.count * BLOCK_BYTES)),
                _ => None,
            })
            .collect();
        if rest.is_empty() {
            return Ok(());
        }
        zero_all(&disk.place().device, rest).await?;
        Ok(disk.file().mark_present(0, disk.blocks()).await?)
    }
}

async fn copy_by_hand(from: &Device, to: &Device, extent: Extent) -> Result<(), HostError> {
    let mut done = 0;
    while done < extent.bytes {
        let bytes = BY_HAND_BYTES.min(extent.bytes - done);
        let data = from.read(extent.source + done, bytes).await?;
        to.write(extent.destination + done, &data).await?;
        done += bytes;
    }
    Ok(())
}
