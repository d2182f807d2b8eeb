//! What all sectors of a datastore's metadata have in common. A device writes a sector completely
//! or not at all, so each is self-describing.
//!
//! | bytes | what |
//! |---|---|
//! | 0..4 | magic: the kind of sector, and its version |
//! | 4..8 | CRC-32C of the sector, with zeros here |
//! | 8..16 | its offset on the device, in bytes, to detect misdirected writes |
//! | 16..512 | depends on the kind |
//!
//! Everything is little endian.

use super::error::DatastoreError;

/// Bytes in a sector: a logical block. ESXi uses no others (512e).
pub(super) const SECTOR_BYTES: u64 = 512;

/// A sector.
pub(super) type Sector = [u8; SECTOR_BYTES as usize];

/// The kinds; the last digit of each magic is the version of its layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Superblock,
    Lock,
    Heartbeat,
    Directory,
    Descriptor,
    Slots,
    Cluster,
    Pointers,
}

impl Kind {
    fn magic(self) -> &'static [u8; 4] {
        match self {
            Self::Superblock => b"HDS1",
            Self::Lock => b"HDL2",
            Self::Heartbeat => b"HDH1",
            Self::Directory => b"HDD1",
            Self::Descriptor => b"HDF1",
            Self::Slots => b"HDI2",
            Self::Cluster => b"HDC1",
            Self::Pointers => b"HDP1",
        }
    }
}

/// A sector being encoded.
pub(super) struct Put(Sector);

impl Put {
    pub(super) fn new() -> Self {
        Self([0; SECTOR_BYTES as usize])
    }

    pub(super) fn bytes(&mut self, at: usize, bytes: &[u8]) -> &mut Self {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    pub(super) fn u8(&mut self, at: usize, value: u8) -> &mut Self {
        self.bytes(at, &[value])
    }

    pub(super) fn u32(&mut self, at: usize, value: u32) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }

    pub(super) fn u64(&mut self, at: usize, value: u64) -> &mut Self {
        self.bytes(at, &value.to_le_bytes())
    }

    /// Returns the sector, for its location.
    pub(super) fn seal(&mut self, kind: Kind, offset_bytes: u64) -> Sector {
        self.bytes(0, kind.magic()).u32(4, 0).u64(8, offset_bytes);
        let checksum = crc32c::crc32c(&self.0);
        self.u32(4, checksum);
        self.0
    }
}

/// A sector that was read, with a valid header.
pub(super) struct Take<'a> {
    sector: &'a Sector,
    offset_bytes: u64,
}

impl<'a> Take<'a> {
    /// Checks length, magic, location and checksum.
    pub(super) fn open(
        kind: Kind,
        offset_bytes: u64,
        bytes: &'a [u8],
    ) -> Result<Self, DatastoreError> {
        let Ok(sector) = <&Sector>::try_from(bytes) else {
            return Err(damaged(offset_bytes, format!("{} bytes", bytes.len())));
        };
        let take = Self { sector, offset_bytes };
        if &sector[..4] != kind.magic() {
            return Err(take.damaged(format!("it is not a {kind:?}")));
        }
        if take.u64(8) != offset_bytes {
            return Err(take.damaged(format!("it belongs to byte {}", take.u64(8))));
        }
        let mut bare = *sector;
        bare[4..8].fill(0);
        if crc32c::crc32c(&bare) != take.u32(4) {
            return Err(take.damaged("the checksum is wrong"));
        }
        Ok(take)
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> DatastoreError {
        damaged(self.offset_bytes, what)
    }

    /// Returns `length` bytes; offsets are constants, and within the sector.
    pub(super) fn bytes(&self, at: usize, length: usize) -> &'a [u8] {
        &self.sector[at..at + length]
    }

    pub(super) fn u8(&self, at: usize) -> u8 {
        self.sector[at]
    }

    pub(super) fn u32(&self, at: usize) -> u32 {
        let mut bytes = [0; 4];
        bytes.copy_from_slice(self.bytes(at, 4));
        u32::from_le_bytes(bytes)
    }

    pub(super) fn u64(&self, at: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes.copy_from_slice(self.bytes(at, 8));
        u64::from_le_bytes(bytes)
    }
}

/// Returns an error about a location.
pub(super) fn damaged(offset_bytes: u64, what: impl Into<String>) -> DatastoreError {
    DatastoreError::Damaged { offset_bytes, what: what.into() }
}

/// Reads a short text at an offset, ended by zeros.
pub(super) fn text_of(take: &Take<'_>, at: usize, room: usize) -> Result<String, DatastoreError> {
    let bytes = take.bytes(at, room);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(room);
    match std::str::from_utf8(&bytes[..end]) {
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(take.damaged("a name is not UTF-8")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sector_proves_kind_place_and_content() {
        let sector = Put::new().u32(16, 7).seal(Kind::Lock, 4096);
        let take = Take::open(Kind::Lock, 4096, &sector).unwrap();
        assert_eq!(take.u32(16), 7);
        assert!(Take::open(Kind::Cluster, 4096, &sector).is_err());
        assert!(Take::open(Kind::Lock, 8192, &sector).is_err());
        assert!(Take::open(Kind::Lock, 4096, &sector[..511]).is_err());
        assert!(Take::open(Kind::Lock, 4096, &[0; 512]).is_err());
        for bit in 0..512 * 8 {
            let mut turned = sector;
            turned[bit / 8] ^= 1 << (bit % 8);
            assert!(Take::open(Kind::Lock, 4096, &turned).is_err(), "bit {bit}");
        }
    }
}
