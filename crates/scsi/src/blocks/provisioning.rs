//! GET LBA STATUS (SBC-3, 5.3).
//!
//! Extents are requested from the volume repeatedly, until the response is full or the command has
//! used its number of requests: each request does a bounded amount of work for any range, so one
//! response may cover all of an empty volume. The host requests the rest with its next command,
//! which SBC-3 allows.

use block::request::limits::EXTENTS_MAX;
use block::{LbaExtent, LbaState, SectorRange, VolumeId, VolumeReply, VolumeRequest};

use crate::device::Context;
use crate::limits::blocks;
use crate::sense::Sense;
use crate::step::{Command, Continue, Outcome, Response, Resumed, Step, request};

/// The most descriptors in one response, 1 MiB: more would occupy the thread for longer than others
/// may have to wait. Its memory is reserved like that for a read.
pub(crate) const DESCRIPTORS_MAX: usize = EXTENTS_MAX - 2;
/// The most requests of one command.
pub(crate) const REQUESTS_MAX: u32 = 64;
/// The most logical blocks in one descriptor: as many as 32 bits can express, in whole MiB, so that
/// the next one begins at an address that hosts may unmap.
const DESCRIPTOR_BLOCKS_MAX: u64 = u32::MAX as u64 & !0x7ff;

const HEADER_BYTES: usize = 8;
const DESCRIPTOR_BYTES: usize = 16;

/// A GET LBA STATUS in progress.
#[derive(Debug)]
pub(crate) struct LbaStatus {
    volume: VolumeId,
    block_sectors: u64,
    /// The range not reported yet.
    left: SectorRange,
    /// The reported part: consecutive extents in different states.
    found: Vec<LbaExtent>,
    /// The number of descriptors that fit into the response.
    descriptors: usize,
    requests_left: u32,
    allocation_length: usize,
}

impl LbaStatus {
    /// Returns the next request; `None` if the response is complete, or long enough.
    fn next(&mut self) -> Option<VolumeRequest> {
        let count = |extent: &LbaExtent| {
            (extent.range.count.0 / self.block_sectors).div_ceil(DESCRIPTOR_BLOCKS_MAX)
        };
        let told: u64 = self.found.iter().map(count).sum();
        // The last extent may continue: its end is known when another one has begun.
        if told > self.descriptors as u64 || self.left.is_empty() || self.requests_left == 0 {
            return None;
        }
        self.requests_left -= 1;
        // One more than fits, and one that continues the last.
        let limit = self.descriptors.saturating_sub(self.found.len()) + 2;
        Some(VolumeRequest::Extents { volume: self.volume, range: self.left, limit })
    }

    /// Adds the extents found for [`LbaStatus::next`]: consecutive, from the start of its range.
    fn take(&mut self, extents: Vec<LbaExtent>) -> Result<(), Sense> {
        if extents.is_empty() {
            return Err(Sense::INTERNAL_FAILURE); // the same request would be repeated forever
        }
        for extent in extents {
            if extent.range.is_empty() || extent.range.start != self.left.start {
                return Err(Sense::INTERNAL_FAILURE);
            }
            self.left.take_front(extent.range.count.0);
            match self.found.last_mut().filter(|last| last.state == extent.state) {
                Some(last) => last.range.count.0 += extent.range.count.0,
                None => self.found.push(extent),
            }
        }
        Ok(())
    }

    /// Returns the response.
    fn answer(&self) -> Response {
        let data = lba_status_data(&self.found, self.block_sectors, self.descriptors);
        Response::parameters(&data, self.allocation_length)
    }
}

impl Continue for LbaStatus {
    fn resume(
        mut self: Box<Self>,
        at: &Resumed<'_>,
        result: Result<VolumeReply, Sense>,
    ) -> Outcome {
        let VolumeReply::Extents(extents) = result? else { return Err(Sense::INTERNAL_FAILURE) };
        self.take(extents)?;
        Ok(match self.next() {
            Some(request) => at.request(self, request),
            None => Step::Done(self.answer()),
        })
    }
}

pub(crate) fn get_lba_status(context: &Context<'_>, command: Command) -> Outcome {
    let (volume, cdb) = (context.volume()?, &command.cdb);
    let (lba, allocation_length) = (cdb.u64(2), cdb.u32(10) as usize);
    if lba >= blocks(volume) {
        return Err(Sense::OUT_OF_RANGE);
    }
    let start = lba * volume.logical_block.sectors();
    let room = allocation_length.saturating_sub(HEADER_BYTES) / DESCRIPTOR_BYTES;
    let mut status = LbaStatus {
        volume: volume.id,
        block_sectors: volume.logical_block.sectors(),
        left: SectorRange::new(start, volume.size.0.saturating_sub(start)),
        found: Vec::new(),
        descriptors: room.clamp(1, DESCRIPTORS_MAX),
        requests_left: REQUESTS_MAX,
        allocation_length,
    };
    match status.next() {
        Some(first) => Ok(request(volume, None, status, first)),
        None => Ok(Step::Done(status.answer())),
    }
}

/// Returns the parameter data (SBC-3, 5.3.2). An extent that exceeds a descriptor's 32 bits takes
/// several.
fn lba_status_data(extents: &[LbaExtent], block_sectors: u64, descriptors: usize) -> Vec<u8> {
    let mut out = vec![0; HEADER_BYTES];
    for extent in extents {
        let status = match extent.state {
            LbaState::Mapped => 0,
            LbaState::Deallocated => 1,
        };
        let mut lba = extent.range.start.0 / block_sectors;
        let mut left = extent.range.count.0 / block_sectors;
        while left > 0 && out.len() < HEADER_BYTES + DESCRIPTOR_BYTES * descriptors {
            let count = left.min(DESCRIPTOR_BLOCKS_MAX);
            out.extend(lba.to_be_bytes());
            out.extend((count as u32).to_be_bytes());
            out.extend([status, 0, 0, 0]);
            lba += count;
            left -= count;
        }
    }
    let length = (out.len() - 4) as u32;
    out[..4].copy_from_slice(&length.to_be_bytes());
    out
}
