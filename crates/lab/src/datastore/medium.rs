//! The medium of a datastore: a host's device, or memory in tests.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use super::auto_reclaim::NoAutoReclaim;
use crate::engine::{LocalFuture, Task};
use crate::host::{Device, EsxVersion, HostError, Primitive, Swap};

/// How a host locks at present.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Locking {
    /// COMPARE AND WRITE is used, not RESERVE and RELEASE (`VMFS3.HardwareAcceleratedLocking`, and
    /// the device has not refused it recently).
    pub by_ats: bool,
    /// Also for heartbeats (`VMFS3.useATSForHBOnVMFS5`).
    pub heartbeat_by_ats: bool,
}

/// The medium of a datastore, as one host sees it. Offsets and lengths are multiples of 512 bytes.
/// A read or write of 512 bytes is atomic, a longer one may be torn between its sectors; once a
/// write is acknowledged, every other host reads it.
pub trait Medium {
    /// Reads `bytes` from `offset_bytes` on. Like all others, returns [`HostError::Reserved`] at
    /// once while another host has the device reserved, or if the own reservation was lost with its
    /// path: its holder must find that out before writing on the strength of it.
    fn read(&self, offset_bytes: u64, bytes: u64) -> LocalFuture<'_, Result<Vec<u8>, HostError>>;

    /// Writes at `offset_bytes`.
    fn write<'a>(
        &'a self,
        offset_bytes: u64,
        bytes: &'a [u8],
    ) -> LocalFuture<'a, Result<(), HostError>>;

    /// COMPARE AND WRITE of a sector.
    fn compare_and_write<'a>(
        &'a self,
        offset_bytes: u64,
        expected: &'a [u8],
        new: &'a [u8],
    ) -> LocalFuture<'a, Result<Swap, HostError>>;

    /// RESERVE of the whole device. [`HostError::Reserved`] while another host has it.
    fn reserve(&self) -> LocalFuture<'_, Result<(), HostError>>;

    /// RELEASE.
    fn release(&self) -> LocalFuture<'_, Result<(), HostError>>;

    /// UNMAP of ranges (first byte, bytes).
    fn unmap<'a>(&'a self, ranges: &'a [(u64, u64)]) -> LocalFuture<'a, Result<(), HostError>>;

    /// Returns the bytes of the device.
    fn bytes(&self) -> u64;

    /// Returns the bytes of a logical block: 512 for a datastore.
    fn sector_bytes(&self) -> u64;

    /// Returns how the host locks at present.
    fn locking(&self) -> Locking;

    /// Announces that a lock will be exchanged by reservation: an implementation that counts
    /// offloads records it if COMPARE AND WRITE was to be used, and is refused.
    fn locks_by_hand(&self) {}

    /// Returns how many blocks per second, of those that files no longer use, the host unmaps
    /// automatically at present.
    ///
    /// # Errors
    /// Why it does not.
    fn auto_reclaim(&self) -> Result<NonZeroU32, NoAutoReclaim>;

    /// Returns the time of the host's clock.
    fn now(&self) -> Instant;

    /// Waits for a time by that clock.
    fn sleep(&self, time: Duration) -> LocalFuture<'static, ()>;

    /// Runs a future in the background.
    fn spawn(&self, future: LocalFuture<'static, ()>) -> Task<()>;
}

impl Medium for Device {
    fn read(&self, offset_bytes: u64, bytes: u64) -> LocalFuture<'_, Result<Vec<u8>, HostError>> {
        Box::pin(self.read_unreserved(offset_bytes, bytes))
    }

    fn write<'a>(
        &'a self,
        offset_bytes: u64,
        bytes: &'a [u8],
    ) -> LocalFuture<'a, Result<(), HostError>> {
        Box::pin(self.write_unreserved(offset_bytes, bytes))
    }

    fn compare_and_write<'a>(
        &'a self,
        offset_bytes: u64,
        expected: &'a [u8],
        new: &'a [u8],
    ) -> LocalFuture<'a, Result<Swap, HostError>> {
        Box::pin(Self::compare_and_write(self, offset_bytes, expected, new))
    }

    fn reserve(&self) -> LocalFuture<'_, Result<(), HostError>> {
        Box::pin(Self::reserve(self))
    }

    fn release(&self) -> LocalFuture<'_, Result<(), HostError>> {
        Box::pin(Self::release(self))
    }

    fn unmap<'a>(&'a self, ranges: &'a [(u64, u64)]) -> LocalFuture<'a, Result<(), HostError>> {
        Box::pin(Self::unmap(self, ranges))
    }

    fn bytes(&self) -> u64 {
        Self::bytes(self)
    }

    fn sector_bytes(&self) -> u64 {
        self.block_bytes()
    }

    fn locking(&self) -> Locking {
        let by_ats = self.may_offload(Primitive::Locking);
        Locking { by_ats, heartbeat_by_ats: by_ats && self.host().settings().ats_heartbeat }
    }

    fn locks_by_hand(&self) {
        // Not if it is by reservation for another reason: a heartbeat with that setting.
        if self.supports(Primitive::Locking) == Some(false) {
            self.did_by_hand(Primitive::Locking, self.block_bytes());
        }
    }

    fn auto_reclaim(&self) -> Result<NonZeroU32, NoAutoReclaim> {
        let settings = self.host().settings();
        if settings.version < EsxVersion::V6_5 {
            return Err(NoAutoReclaim::Version);
        }
        let rate = NonZeroU32::new(settings.reclaim_blocks_per_s).ok_or(NoAutoReclaim::Priority)?;
        NoAutoReclaim::check_granularity(self.unmap_granularity_bytes())?;
        if self.may_offload(Primitive::Delete) { Ok(rate) } else { Err(NoAutoReclaim::Refused) }
    }

    fn now(&self) -> Instant {
        Instant::now()
    }

    fn sleep(&self, time: Duration) -> LocalFuture<'static, ()> {
        let reactor = self.host().reactor().clone();
        Box::pin(async move { reactor.sleep(time).await })
    }

    fn spawn(&self, future: LocalFuture<'static, ()>) -> Task<()> {
        self.host().reactor().spawn(future)
    }
}
