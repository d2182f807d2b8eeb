//! Virtual disks: files of a datastore that are thin, zeroedthick or eagerzeroedthick.
//!
//! Blocks that a guest has not written read as zeros, regardless of what they contained before. So
//! a block is zeroed when it is created (eagerzeroedthick), or before the first write to it, which
//! is then recorded in the file's pointers (000 and 002, "Block Zero"): that is the cost of a first
//! write.

mod first_write;
mod in_use;
mod unmap;
mod zero;

use std::ops::Range;
use std::rc::Rc;

use serde::Serialize;

use crate::datastore::{
    AllocateAs, BLOCK_BYTES, BlockState, Datastore, DatastoreError, File, FileExtent, Mode,
    Placement,
};
use crate::engine::some_at_a_time;
use crate::host::{Device, HostError};
use first_write::BlockLocks;
pub(crate) use in_use::InUse;
use in_use::Use;
pub use zero::{zero, zero_all};

/// What goes wrong with a disk: the datastore or the device.
#[derive(Debug, thiserror::Error)]
pub enum DiskError {
    /// The datastore.
    #[error(transparent)]
    Datastore(#[from] DatastoreError),
    /// The device under it.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A kind of reclaim that this ESXi version does not have.
    #[error("{0}")]
    NoReclaim(&'static str),
    /// The data read is not the data that was written.
    #[error("disk {disk}: the data from byte {offset} on differs from what was written")]
    Differs {
        /// The name of the disk.
        disk: String,
        /// The offset of the first difference.
        offset: u64,
    },
    /// A read or a write beyond its end.
    #[error("bytes {offset} to {end} exceed the disk of {disk_bytes} bytes")]
    OutOfRange {
        /// The first byte.
        offset: u64,
        /// The end of the request.
        end: u64,
        /// The disk's size.
        disk_bytes: u64,
    },
}

/// How the blocks of a disk are provided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Provisioning {
    /// A block is allocated and zeroed before the first write to it.
    Thin,
    /// All are allocated when the disk is made; each is zeroed before the first write to it.
    ZeroedThick,
    /// All are allocated and zeroed when the disk is made.
    EagerZeroedThick,
}

/// A datastore mounted by a host. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Place {
    /// The unit of the datastore.
    pub device: Device,
    /// The datastore.
    pub datastore: Datastore,
}

/// A virtual disk that a host has open. Cheap to clone.
#[derive(Clone, Debug)]
pub struct VirtualDisk(Rc<Inner>);

#[derive(Debug)]
struct Inner {
    place: Place,
    file: File,
    provisioning: Provisioning,
    first_writes: BlockLocks,
    in_use: InUse,
}

/// A part of a request, and its location.
#[derive(Clone, Copy, Debug)]
struct Piece {
    /// The offset in the request.
    at: usize,
    bytes: usize,
    block: u64,
    /// The offset on the device; none: it was not written yet.
    device_offset: Option<u64>,
}

impl VirtualDisk {
    /// Creates a disk, as its kind requires.
    ///
    /// # Errors
    /// Those of the datastore and of the device.
    pub async fn create(
        place: &Place,
        name: &str,
        bytes: u64,
        provisioning: Provisioning,
    ) -> Result<Self, DiskError> {
        let disk = Self::create_unzeroed(place, name, bytes, provisioning).await?;
        if provisioning == Provisioning::EagerZeroedThick {
            let file = &disk.0.file;
            let blocks = disk.blocks();
            let extents = file.extents(0, blocks).await?;
            let ranges = extents.iter().filter_map(|extent| match extent.state {
                BlockState::ToBeZeroed(offset) => Some((offset, extent.count * BLOCK_BYTES)),
                _ => None,
            });
            zero_all(&place.device, ranges).await?;
            file.mark_present(0, blocks).await?;
        }
        Ok(disk)
    }

    /// Creates a disk of any kind without zeroing: for callers that fill it.
    ///
    /// # Errors
    /// Those of the datastore.
    pub async fn create_unzeroed(
        place: &Place,
        name: &str,
        bytes: u64,
        provisioning: Provisioning,
    ) -> Result<Self, DiskError> {
        let file = place.datastore.create(name, bytes).await?;
        let disk = Self::of(place, file, provisioning);
        if provisioning != Provisioning::Thin {
            let blocks = disk.blocks();
            disk.0.file.allocate(0, blocks, AllocateAs::ToBeZeroed, Placement::Contiguous).await?;
        }
        Ok(disk)
    }

    /// Opens an existing disk.
    ///
    /// # Errors
    /// Those of the datastore; also if another host has it open.
    pub async fn open(
        place: &Place,
        name: &str,
        mode: Mode,
        provisioning: Provisioning,
    ) -> Result<Self, DiskError> {
        let file = place.datastore.open(name, mode).await?;
        Ok(Self::of(place, file, provisioning))
    }

    fn of(place: &Place, file: File, provisioning: Provisioning) -> Self {
        let (place, first_writes) = (place.clone(), BlockLocks::default());
        let in_use = InUse::default();
        Self(Rc::new(Inner { place, file, provisioning, first_writes, in_use }))
    }

    /// Releases its lock.
    ///
    /// # Errors
    /// Those of the datastore.
    pub async fn close(&self) -> Result<(), DiskError> {
        Ok(self.0.file.close().await?)
    }

    /// Returns its name in the datastore.
    pub fn name(&self) -> String {
        self.0.file.name().to_owned()
    }

    /// Returns its datastore.
    pub fn place(&self) -> &Place {
        &self.0.place
    }

    /// Returns its file.
    pub fn file(&self) -> &File {
        &self.0.file
    }

    /// Returns its kind.
    pub fn provisioning(&self) -> Provisioning {
        self.0.provisioning
    }

    /// Returns its size in bytes.
    pub fn bytes(&self) -> u64 {
        self.0.file.size_bytes()
    }

    /// Returns its size in blocks of the datastore.
    pub fn blocks(&self) -> u64 {
        self.bytes().div_ceil(BLOCK_BYTES)
    }

    /// Returns what was written, and its location, in order.
    ///
    /// # Errors
    /// Those of the datastore.
    pub async fn present(&self) -> Result<Vec<(FileExtent, u64)>, DiskError> {
        let extents = self.0.file.extents(0, self.blocks()).await?;
        let present = extents.into_iter().filter_map(|extent| match extent.state {
            BlockState::Present(offset) => Some((extent, offset)),
            _ => None,
        });
        Ok(present.collect())
    }

    /// Keeps blocks of the datastore from being released until the result is dropped: for callers
    /// that look up their locations, and read or write there.
    pub(crate) async fn hold(&self, blocks: Range<u64>) -> Use<'_> {
        self.0.in_use.start(blocks).await
    }

    async fn hold_bytes(&self, offset: u64, bytes: u64) -> Use<'_> {
        let end = offset.saturating_add(bytes).div_ceil(BLOCK_BYTES);
        self.hold(offset / BLOCK_BYTES..end).await
    }

    /// Reads like a guest.
    ///
    /// # Errors
    /// Those of the device, and beyond the disk's end.
    pub async fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, DiskError> {
        let _held = self.hold_bytes(offset, bytes).await;
        let pieces = self.pieces(offset, bytes).await?;
        let device = &self.0.place.device;
        if let [Piece { device_offset: Some(at), .. }] = pieces[..] {
            return Ok(device.read(at, bytes).await?);
        }
        let mut result = vec![0; bytes as usize];
        for piece in pieces {
            if let Some(at) = piece.device_offset {
                let held = device.read(at, piece.bytes as u64).await?;
                result[piece.at..piece.at + piece.bytes].copy_from_slice(&held);
            }
        }
        Ok(result)
    }

    /// Writes like a guest: a block that was not written before is zeroed first.
    ///
    /// # Errors
    /// Those of the datastore and of the device, and beyond the disk's end.
    pub async fn write(&self, offset: u64, data: &[u8]) -> Result<(), DiskError> {
        let _held = self.hold_bytes(offset, data.len() as u64).await;
        let pieces = self.pieces(offset, data.len() as u64).await?;
        for piece in pieces {
            let part = &data[piece.at..piece.at + piece.bytes];
            let at = match piece.device_offset {
                Some(at) => at,
                None => {
                    let block_start = self.begin_block(piece.block).await?;
                    block_start + (offset + piece.at as u64) % BLOCK_BYTES
                }
            };
            self.0.place.device.write(at, part).await?;
        }
        Ok(())
    }

    /// Writes whole ranges with what `content` generates for each block of a datastore, several
    /// writes in parallel: to fill a disk before anything is measured.
    ///
    /// # Errors
    /// Those of [`VirtualDisk::write`].
    pub async fn fill(
        &self,
        blocks: impl IntoIterator<Item = u64>,
        in_flight: usize,
        content: impl Fn(u64) -> Vec<u8>,
    ) -> Result<(), DiskError> {
        let content = &content;
        let writes = blocks.into_iter().map(|block| async move {
            let data = content(block);
            self.write(block * BLOCK_BYTES, &data).await
        });
        some_at_a_time(in_flight, writes).await
    }

    /// Returns the locations of a request's bytes: adjacent ones on the device merged, but each
    /// block that must still be zeroed separately.
    async fn pieces(&self, offset: u64, bytes: u64) -> Result<Vec<Piece>, DiskError> {
        let end = offset.saturating_add(bytes);
        if end > self.bytes() {
            return Err(DiskError::OutOfRange { offset, end, disk_bytes: self.bytes() });
        }
        if bytes == 0 {
            return Ok(Vec::new());
        }
        let (first, last) = (offset / BLOCK_BYTES, (end - 1) / BLOCK_BYTES);
        let extents = self.0.file.extents(first, last - first + 1).await?;
        let mut pieces = Vec::new();
        for extent in extents {
            let start = extent.first_block * BLOCK_BYTES;
            if let BlockState::Present(device_offset) = extent.state {
                let from = offset.max(start);
                let to = end.min(start + extent.count * BLOCK_BYTES);
                pieces.push(Piece {
                    at: (from - offset) as usize,
                    bytes: (to - from) as usize,
                    block: extent.first_block,
                    device_offset: Some(device_offset + (from - start)),
                });
                continue;
            }
            for block in extent.first_block..extent.first_block + extent.count {
                let from = offset.max(block * BLOCK_BYTES);
                let to = end.min((block + 1) * BLOCK_BYTES);
                let (at, bytes) = ((from - offset) as usize, (to - from) as usize);
                pieces.push(Piece { at, bytes, block, device_offset: None });
            }
        }
        Ok(pieces)
    }
}
