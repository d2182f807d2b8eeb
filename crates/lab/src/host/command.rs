//! The commands that a host sends to a device.

use std::time::Instant;

use libiscsi::{
    Cdb, Completion, CopySegment, Data, Status, copy_parameters, find_naa, unmap_parameters,
};

use super::acceleration::Primitive;
use super::counters::Class;
use super::device::{CONFLICT_RETRIES_MAX, Device, Limits};
use super::{Host, HostError};

/// The source and destination of a copy's segment, in bytes of the two devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Where reading starts.
    pub source: u64,
    /// Where writing starts.
    pub destination: u64,
    /// The length.
    pub bytes: u64,
}

/// The result of a COMPARE AND WRITE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// It matched, and the new data was written.
    Done,
    /// It did not match; nothing was written.
    Miscompare,
}

impl Device {
    /// Identifies a unit: INQUIRY, READ CAPACITY, the limits, the parameters of copies.
    pub(super) async fn claim(host: &Host, lun: u16) -> Result<Self, HostError> {
        let device = Self::new(host, lun, Limits::default());
        let inquiry = device.ask("INQUIRY", Cdb::inquiry(None, 1024), 1024).await?;
        let text = |range: std::ops::Range<usize>| {
            let bytes = inquiry.get(range).map(String::from_utf8_lossy).unwrap_or_default();
            bytes.trim().to_owned()
        };
        let capacity = device.ask("READ CAPACITY (16)", Cdb::read_capacity_16(32), 32).await?;
        let mut limits = Limits {
            vendor: text(8..16),
            product: text(16..32),
            revision: text(32..36),
            // TPGS: implicit, explicit, or both.
            has_groups: inquiry.get(5).is_some_and(|byte| byte & 0x30 != 0),
            ..Limits::default()
        };
        limits.blocks = be64(&capacity, 0).map_or(0, |last| last.saturating_add(1));
        limits.block_bytes = be32(&capacity, 8).unwrap_or(0);
        if limits.block_bytes == 0 || limits.blocks == 0 {
            return Err(HostError::Answer("READ CAPACITY (16)"));
        }
        let page = device.ask("INQUIRY", Cdb::inquiry(Some(0x83), 1024), 1024).await?;
        limits.naa = page.get(4..).and_then(find_naa).unwrap_or_default();
        if let Ok(page) = device.ask("INQUIRY", Cdb::inquiry(Some(0xB0), 1024), 1024).await {
            limits.unmap_blocks = be32(&page, 20).unwrap_or(0);
            limits.unmap_ranges = be32(&page, 24).unwrap_or(0);
            limits.unmap_granularity_blocks = be32(&page, 28).unwrap_or(0);
            limits.write_same_blocks = be64(&page, 36).unwrap_or(0);
        }
        let parameters = Cdb::copy_operating_parameters(1024);
        if let Ok(answer) = device.ask("RECEIVE COPY RESULTS", parameters, 1024).await {
            limits.copy_segment_count = u64::from(be32(&answer, 8).unwrap_or(0) & 0xFFFF);
            limits.copy_segment_bytes = u64::from(be32(&answer, 16).unwrap_or(0));
        }
        let known = Self::new(host, lun, limits);
        // The commands to get here count, too.
        known.0.counters.swap(&device.0.counters);
        // If one does not respond, the query is repeated with the first command.
        if known.0.limits.has_groups && host.paths().len() > 1 {
            let _ = known.look_at_ways().await;
        }
        Ok(known)
    }

    async fn ask(&self, name: &'static str, cdb: Cdb, length: usize) -> Result<Vec<u8>, HostError> {
        let end = self.execute(Class::Other, cdb, || Data::In(vec![0; length]), 0).await?;
        Ok(good(name, end)?.buffer)
    }

    /// Returns the longest segment that the array accepts in one copy, as it reports.
    pub fn copy_segment_bytes(&self) -> u64 {
        self.0.limits.copy_segment_bytes
    }

    /// Returns how many segments the array accepts in one copy; 0 if it does not report it.
    pub fn copy_segment_count(&self) -> u64 {
        self.0.limits.copy_segment_count
    }

    /// Returns whether ESXi would let the array copy between these two: the products are the same.
    pub fn may_copy_to(&self, other: &Self) -> bool {
        self.0.limits.product == other.0.limits.product && self.0.limits.naa[0] >> 4 == 6
    }

    /// Returns how many bytes one WRITE SAME may zero, as the array reports.
    pub fn write_same_bytes_max(&self) -> u64 {
        let blocks = match self.0.limits.write_same_blocks {
            0 => u64::from(u32::MAX),
            blocks => blocks.min(u64::from(u32::MAX)),
        };
        blocks * self.block_bytes()
    }

    /// Returns the optimal granularity of UNMAP, in bytes; 0 if the array does not report it.
    pub fn unmap_granularity_bytes(&self) -> u64 {
        u64::from(self.0.limits.unmap_granularity_blocks) * self.block_bytes()
    }

    fn lba(&self, offset: u64) -> u64 {
        offset / self.block_bytes()
    }

    fn count(&self, bytes: u64) -> Result<u32, HostError> {
        let blocks = bytes / self.block_bytes();
        match u32::try_from(blocks) {
            Ok(count) if bytes.is_multiple_of(self.block_bytes()) => Ok(count),
            _ => Err(HostError::Argument(format!("{bytes} bytes are not whole logical blocks"))),
        }
    }

    /// Reads `bytes` from `offset` on.
    ///
    /// # Errors
    /// Those of the host.
    pub async fn read(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, HostError> {
        self.read_with(CONFLICT_RETRIES_MAX, offset, bytes).await
    }

    /// Does the same, but returns at once if another host has the unit reserved, or the own
    /// reservation is lost.
    ///
    /// # Errors
    /// Those of the host; [`HostError::Reserved`].
    pub async fn read_unreserved(&self, offset: u64, bytes: u64) -> Result<Vec<u8>, HostError> {
        self.read_with(0, offset, bytes).await
    }

    async fn read_with(&self, most: u32, offset: u64, bytes: u64) -> Result<Vec<u8>, HostError> {
        let cdb = Cdb::read_16(self.lba(offset), self.count(bytes)?);
        let data = || Data::In(vec![0; bytes as usize]);
        let end = self.execute_with(most, Class::Read, cdb, data, bytes).await?;
        let end = good("READ", end)?;
        if end.residual != 0 { Err(HostError::Answer("READ")) } else { Ok(end.buffer) }
    }

    /// Writes at `offset`.
    ///
    /// # Errors
    /// Those of the host.
    pub async fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), HostError> {
        self.write_with(CONFLICT_RETRIES_MAX, offset, bytes).await
    }

    /// Does the same, but returns at once if another host has the unit reserved, or the own
    /// reservation is lost.
    ///
    /// # Errors
    /// Those of the host; [`HostError::Reserved`].
    pub async fn write_unreserved(&self, offset: u64, bytes: &[u8]) -> Result<(), HostError> {
        self.write_with(0, offset, bytes).await
    }

    async fn write_with(&self, most: u32, offset: u64, bytes: &[u8]) -> Result<(), HostError> {
        let length = bytes.len() as u64;
        let cdb = Cdb::write_16(self.lba(offset), self.count(length)?);
        let data = || Data::Out(bytes.to_vec());
        let end = self.execute_with(most, Class::Write, cdb, data, length).await?;
        good("WRITE", end).map(drop)
    }

    /// COMPARE AND WRITE of the given data. If a path is lost while the command is in flight its
    /// result is unknown: it is repeated, and may miscompare with what it has written itself.
    ///
    /// # Errors
    /// Those of the host; a miscompare is not an error.
    pub async fn compare_and_write(
        &self,
        offset: u64,
        expected: &[u8],
        new: &[u8],
    ) -> Result<Swap, HostError> {
        let bytes = new.len() as u64;
        let blocks = u8::try_from(self.count(bytes)?).map_err(|_| {
            HostError::Argument("COMPARE AND WRITE accepts at most 255 blocks".into())
        })?;
        let cdb = Cdb::compare_and_write(self.lba(offset), blocks);
        let data = || Data::Out([expected, new].concat());
        let end = self.execute(Class::Ats, cdb, data, bytes).await?;
        let result = match &end.status {
            Status::CheckCondition(sense) if sense.key == 0x0E => {
                self.0.counters.borrow_mut().miscompares += 1;
                Ok(Swap::Miscompare)
            }
            _ => good("COMPARE AND WRITE", end).map(|_| Swap::Done),
        };
        self.learn(Primitive::Locking, bytes, &result);
        result
    }

    /// RESERVE (6) of the whole unit, on one path, which all commands use until
    /// [`Device::release`]. Only one task of a host at a time, because the array can't distinguish
    /// them.
    ///
    /// # Errors
    /// [`HostError::Reserved`] while another host has it.
    pub async fn reserve(&self) -> Result<(), HostError> {
        self.stay_on_path().await?;
        let end = self.execute(Class::Reserve, Cdb::reserve_6(), || Data::None, 0).await;
        let result = end.and_then(|end| good("RESERVE", end).map(drop));
        if result.is_err() {
            self.leave_path();
        }
        result
    }

    /// RELEASE (6).
    ///
    /// # Errors
    /// [`HostError::Reserved`] if it was lost with its path, so that there is nothing to release.
    pub async fn release(&self) -> Result<(), HostError> {
        let end = self.execute(Class::Reserve, Cdb::release_6(), || Data::None, 0).await;
        self.leave_path();
        end.and_then(|end| good("RELEASE", end).map(drop))
    }

    /// WRITE SAME of zeros, in one command.
    ///
    /// # Errors
    /// [`HostError::Unsupported`] if the array does not support that, or not so much at once.
    pub async fn write_same_zeros(&self, offset: u64, bytes: u64) -> Result<(), HostError> {
        let cdb = Cdb::write_same_16(self.lba(offset), self.count(bytes)?, false);
        let data = || Data::Out(vec![0; self.block_bytes() as usize]);
        let end = self.execute(Class::Zero, cdb, data, bytes).await?;
        let result = good("WRITE SAME", end).map(drop);
        self.learn(Primitive::Init, bytes, &result);
        result
    }

    /// UNMAP of ranges (first byte, bytes), in as many commands as the array's limits require.
    ///
    /// # Errors
    /// [`HostError::Unsupported`] if the array does not support that.
    pub async fn unmap(&self, ranges: &[(u64, u64)]) -> Result<(), HostError> {
        let limits = &self.0.limits;
        let most = u64::from(if limits.unmap_blocks == 0 { u32::MAX } else { limits.unmap_blocks });
        let per_command = (limits.unmap_ranges.clamp(1, 4000)) as usize;
        let mut list = Vec::new();
        let mut blocks_here = 0;
        for (offset, bytes) in ranges {
            let (mut lba, mut left) = (self.lba(*offset), bytes / self.block_bytes());
            while left > 0 {
                let count = left.min(most - blocks_here);
                list.push((lba, count as u32));
                (lba, left, blocks_here) = (lba + count, left - count, blocks_here + count);
                if blocks_here == most || list.len() == per_command {
                    self.unmap_list(&std::mem::take(&mut list)).await?;
                    blocks_here = 0;
                }
            }
        }
        if list.is_empty() { Ok(()) } else { self.unmap_list(&list).await }
    }

    async fn unmap_list(&self, list: &[(u64, u32)]) -> Result<(), HostError> {
        let parameters = unmap_parameters(list);
        let bytes = list.iter().map(|(_, blocks)| u64::from(*blocks)).sum::<u64>();
        let bytes = bytes * self.block_bytes();
        let cdb = Cdb::unmap(parameters.len() as u16);
        let data = || Data::Out(parameters.clone());
        let end = self.execute(Class::Delete, cdb, data, bytes).await?;
        let result = good("UNMAP", end).map(drop);
        self.learn(Primitive::Delete, bytes, &result);
        result
    }

    /// EXTENDED COPY from `source` to this device, in one command.
    ///
    /// # Errors
    /// [`HostError::Unsupported`] if the array does not support that.
    pub async fn copy_from(&self, source: &Self, extents: &[Extent]) -> Result<(), HostError> {
        let started = Instant::now();
        let mut segments = Vec::new();
        for extent in extents {
            let blocks = u16::try_from(self.count(extent.bytes)?)
                .map_err(|_| HostError::Argument("a segment has at most 65535 blocks".into()))?;
            segments.push(CopySegment {
                source: 0,
                destination: 1,
                blocks,
                source_lba: source.lba(extent.source),
                destination_lba: self.lba(extent.destination),
            });
        }
        let devices = [source.0.limits.naa, self.0.limits.naa];
        let list = copy_parameters(&devices, &segments, self.block_bytes() as u32);
        let bytes = extents.iter().map(|extent| extent.bytes).sum();
        let cdb = Cdb::extended_copy(list.len() as u32);
        let end = self.execute(Class::Clone, cdb, || Data::Out(list.clone()), bytes).await?;
        let result = good("EXTENDED COPY", end).map(drop);
        self.learn(Primitive::Move, bytes, &result);
        if result.is_ok() {
            let latency = started.elapsed();
            self.0.counters.borrow_mut().add_clone_written(bytes, latency);
            source.0.counters.borrow_mut().add_clone_read(bytes, latency);
        }
        result
    }
}

fn good(command: &'static str, end: Completion) -> Result<Completion, HostError> {
    match end.status {
        Status::Good => Ok(end),
        status => Err(HostError::of(command, status)),
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
