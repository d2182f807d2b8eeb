//! Command descriptor blocks, and access to their fields.

/// The longest stored CDB. No supported disk command is longer than 16 bytes; longer ones (opcode
/// 7Fh) are refused by their first byte.
pub const CDB_BYTES_MAX: usize = 32;

/// A command descriptor block (SPC-4, 4.2). Missing bytes read as zero.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Cdb {
    bytes: [u8; CDB_BYTES_MAX],
    len: u8,
}

impl Cdb {
    /// Creates the CDB with these bytes; those after the 32nd are dropped.
    pub fn new(bytes: &[u8]) -> Self {
        let len = bytes.len().min(CDB_BYTES_MAX);
        let mut own = [0; CDB_BYTES_MAX];
        own[..len].copy_from_slice(&bytes[..len]);
        Self { bytes: own, len: len as u8 }
    }

    /// Returns the bytes that were sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns byte 0, the operation code.
    pub fn opcode(&self) -> u8 {
        self.bytes[0]
    }

    /// Returns the service action of commands that have it in byte 1 (SPC-4, 4.2.5.2).
    pub(crate) fn service_action(&self) -> u8 {
        self.bytes[1] & 0x1f
    }

    /// Returns a byte. `at` is a constant of the command's layout, below 32.
    pub(crate) fn u8(&self, at: usize) -> u8 {
        self.bytes[at]
    }

    /// Returns one bit of a byte.
    pub(crate) fn bit(&self, at: usize, bit: u8) -> bool {
        self.bytes[at] & (1 << bit) != 0
    }

    /// Reads a big-endian field of two bytes.
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.bytes[at], self.bytes[at + 1]])
    }

    /// Reads a big-endian field of four bytes.
    pub(crate) fn u32(&self, at: usize) -> u32 {
        let b = &self.bytes;
        u32::from_be_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
    }

    /// Reads a big-endian field of eight bytes.
    pub(crate) fn u64(&self, at: usize) -> u64 {
        u64::from(self.u32(at)) << 32 | u64::from(self.u32(at + 4))
    }

    /// Returns the CONTROL byte, whose position depends on the group of the opcode (SAM-5, 5.2).
    pub(crate) fn control(&self) -> u8 {
        match self.bytes[0] >> 5 {
            0 => self.bytes[5],
            1 | 2 => self.bytes[9],
            4 => self.bytes[15],
            5 => self.bytes[11],
            _ => 0,
        }
    }
}

impl std::fmt::Debug for Cdb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Cdb(")?;
        for byte in self.bytes() {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// Returns the offset within its 4 KiB block of the first byte that a write puts on a 512e volume;
/// 0 for other commands. Data received at that offset need not be moved before it is written
/// ([`block::DataOut`]).
pub fn data_out_phase(cdb: &[u8]) -> usize {
    let low = match cdb.first() {
        Some(0x0a) => cdb.get(3),
        Some(0x2a | 0x2e | 0xaa | 0xae) => cdb.get(5),
        Some(0x8a | 0x8b | 0x8e | 0x89 | 0x9c) => cdb.get(9),
        _ => None,
    };
    low.map_or(0, |&byte| usize::from(byte & 7) * block::SECTOR_BYTES as usize)
}
