//! Commands that wait for their response and parse it.

use crate::cdb::{Cdb, CopySegment, Naa, copy_parameters, unmap_parameters};
use crate::session::Session;
use crate::types::{Completion, Data, Error, Status};

/// The parameter data of READ CAPACITY (16) (SBC-4, 5.21.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity {
    /// The number of logical blocks.
    pub blocks: u64,
    /// Bytes in a logical block.
    pub block_bytes: u32,
    /// Whether the unit is thinly provisioned (LBPME).
    pub thin: bool,
}

impl Capacity {
    /// Size in bytes.
    pub fn bytes(&self) -> u64 {
        self.blocks.saturating_mul(u64::from(self.block_bytes))
    }
}

/// One descriptor of GET LBA STATUS (SBC-4, 5.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbaStatus {
    /// First logical block.
    pub lba: u64,
    /// The number of blocks.
    pub blocks: u32,
    /// 0 mapped, 1 deallocated, 2 anchored.
    pub provisioning: u8,
}

impl Session {
    /// TEST UNIT READY.
    pub fn test_unit_ready(&mut self) -> Result<Status, Error> {
        Ok(self.execute(Cdb::test_unit_ready(), Data::None)?.status)
    }

    /// INQUIRY, standard or a VPD page. Returns the bytes received.
    pub fn inquiry(&mut self, page: Option<u8>) -> Result<Vec<u8>, Error> {
        let answer = self.execute(Cdb::inquiry(page, 1024), Data::In(vec![0; 1024]))?;
        good("INQUIRY", answer)
    }

    /// Returns the unit's NAA type 6 designator, from VPD page 83h; `None` if it has none.
    pub fn naa(&mut self) -> Result<Option<Naa>, Error> {
        let page = self.inquiry(Some(0x83))?;
        Ok(find_naa(page.get(4..).unwrap_or_default()))
    }

    /// READ CAPACITY (16).
    pub fn capacity(&mut self) -> Result<Capacity, Error> {
        let answer = self.execute(Cdb::read_capacity_16(32), Data::In(vec![0; 32]))?;
        let bytes = good("READ CAPACITY (16)", answer)?;
        let last = be64(&bytes, 0).ok_or(Error::Answer("READ CAPACITY (16)"))?;
        let block_bytes = be32(&bytes, 8).ok_or(Error::Answer("READ CAPACITY (16)"))?;
        if block_bytes == 0 {
            return Err(Error::Answer("READ CAPACITY (16)"));
        }
        let thin = bytes.get(14).is_some_and(|flags| flags & 0x80 != 0);
        Ok(Capacity { blocks: last.saturating_add(1), block_bytes, thin })
    }

    /// REPORT LUNS. Returns the numbers of units with peripheral or flat addressing (SAM-5, 4.7.7);
    /// others are omitted.
    pub fn report_luns(&mut self) -> Result<Vec<u16>, Error> {
        let answer = self.execute(Cdb::report_luns(16384), Data::In(vec![0; 16384]))?;
        let bytes = good("REPORT LUNS", answer)?;
        let length = be32(&bytes, 0).ok_or(Error::Answer("REPORT LUNS"))? as usize;
        let list = bytes.get(8..).unwrap_or_default();
        let list = &list[..length.min(list.len())];
        Ok(list.chunks_exact(8).filter_map(flat_lun).collect())
    }

    /// GET LBA STATUS from `lba` on. Returns as many descriptors as the target returns at once.
    pub fn lba_status(&mut self, lba: u64) -> Result<Vec<LbaStatus>, Error> {
        let answer = self.execute(Cdb::get_lba_status(lba, 4096), Data::In(vec![0; 4096]))?;
        let bytes = good("GET LBA STATUS", answer)?;
        let length = be32(&bytes, 0).ok_or(Error::Answer("GET LBA STATUS"))? as usize;
        let end = length.saturating_add(4).min(bytes.len());
        let list = bytes.get(8..end).unwrap_or_default();
        Ok(list
            .chunks_exact(16)
            .filter_map(|entry| {
                let provisioning = entry.get(12)? & 0x0F;
                Some(LbaStatus { lba: be64(entry, 0)?, blocks: be32(entry, 8)?, provisioning })
            })
            .collect())
    }

    /// Reads `blocks` logical blocks of `block_bytes` with READ (16).
    pub fn read(&mut self, lba: u64, blocks: u32, block_bytes: u32) -> Result<Vec<u8>, Error> {
        let length = blocks as usize * block_bytes as usize;
        good("READ (16)", self.execute(Cdb::read_16(lba, blocks), Data::In(vec![0; length]))?)
    }

    /// Writes whole logical blocks of `block_bytes` with WRITE (16).
    pub fn write(&mut self, lba: u64, data: Vec<u8>, block_bytes: u32) -> Result<(), Error> {
        let blocks = u32::try_from(data.len() / block_bytes.max(1) as usize)
            .map_err(|_| Error::Argument("a write is shorter than 2^32 blocks"))?;
        good("WRITE (16)", self.execute(Cdb::write_16(lba, blocks), Data::Out(data))?)?;
        Ok(())
    }

    /// COMPARE AND WRITE. The status shows the result: GOOD, or MISCOMPARE sense.
    pub fn compare_and_write(
        &mut self,
        lba: u64,
        blocks: u8,
        expected: &[u8],
        data: &[u8],
    ) -> Result<Status, Error> {
        let both = [expected, data].concat();
        Ok(self.execute(Cdb::compare_and_write(lba, blocks), Data::Out(both))?.status)
    }

    /// WRITE SAME (16) of one logical block.
    pub fn write_same(
        &mut self,
        lba: u64,
        blocks: u32,
        block: Vec<u8>,
        unmap: bool,
    ) -> Result<Status, Error> {
        let cdb = Cdb::write_same_16(lba, blocks, unmap);
        Ok(self.execute(cdb, Data::Out(block))?.status)
    }

    /// UNMAP of ranges (first block, number of blocks).
    pub fn unmap(&mut self, ranges: &[(u64, u32)]) -> Result<Status, Error> {
        let list = unmap_parameters(ranges);
        let length = u16::try_from(list.len())
            .map_err(|_| Error::Argument("UNMAP takes less than 4096 ranges"))?;
        Ok(self.execute(Cdb::unmap(length), Data::Out(list))?.status)
    }

    /// EXTENDED COPY (LID1) of segments among `devices`.
    pub fn extended_copy(
        &mut self,
        devices: &[Naa],
        segments: &[CopySegment],
        block_bytes: u32,
    ) -> Result<Status, Error> {
        let list = copy_parameters(devices, segments, block_bytes);
        let cdb = Cdb::extended_copy(list.len() as u32);
        Ok(self.execute(cdb, Data::Out(list))?.status)
    }
}

/// Returns the bytes received, if the command succeeded.
fn good(command: &'static str, completion: Completion) -> Result<Vec<u8>, Error> {
    if completion.status != Status::Good {
        return Err(Error::Command { command, status: completion.status });
    }
    let mut bytes = completion.buffer;
    bytes.truncate(bytes.len().saturating_sub(completion.residual));
    Ok(bytes)
}

/// Returns the first NAA designator of type 6 that names the logical unit, among the designators of
/// VPD page 83h, which follow its four-byte header (SPC-4, 7.8.6.1).
pub fn find_naa(mut list: &[u8]) -> Option<Naa> {
    while let (Some(kind), Some(length)) = (list.get(1), list.get(3)) {
        let end = 4 + usize::from(*length);
        let designator = list.get(4..end)?;
        let of_unit = kind & 0x30 == 0;
        if of_unit && kind & 0x0F == 3 && designator.first().is_some_and(|b| b >> 4 == 6) {
            return designator.try_into().ok();
        }
        list = list.get(end..)?;
    }
    None
}

/// Returns the single-level LUN of an 8-byte entry; `None` for other methods or levels.
pub(crate) fn flat_lun(entry: &[u8]) -> Option<u16> {
    let high = *entry.first()?;
    let low = *entry.get(1)?;
    match high >> 6 {
        0 if high == 0 => Some(u16::from(low)),
        1 => Some(u16::from_be_bytes([high & 0x3F, low])),
        _ => None,
    }
}

fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn be64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_be_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}
