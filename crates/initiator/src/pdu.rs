//! The wire format (RFC 7143, 11): the 48 bytes of the basic header segment.
//!
//! Written independently of the target's crate, so that an error in one of them is found.
//!
//! | bytes | field |
//! |---|---|
//! | 0 | I (immediate) 40h, opcode 3Fh |
//! | 1 | F (final) 80h, flags of the opcode |
//! | 2..4 | fields of the opcode: response, status |
//! | 4 | TotalAHSLength, in words of 4 bytes |
//! | 5..8 | DataSegmentLength, in bytes, without padding |
//! | 8..16 | LUN, or fields of the opcode |
//! | 16..20 | Initiator Task Tag |
//! | 20..24 | Target Transfer Tag, Expected Data Transfer Length, Referenced Task Tag |
//! | 24..28 | CmdSN of a request, StatSN of a response |
//! | 28..32 | ExpStatSN of a request, ExpCmdSN of a response |
//! | 32..36 | MaxCmdSN of a response |
//! | 36..48 | fields of the opcode |

/// Bytes in the basic header segment.
pub(crate) const BHS_BYTES: usize = 48;
/// The reserved tag, which identifies nothing.
pub(crate) const NO_TAG: u32 = 0xffff_ffff;
/// F: the last PDU of a sequence.
pub(crate) const FINAL: u8 = 0x80;
/// I: immediate delivery.
pub(crate) const IMMEDIATE: u8 = 0x40;

/// Opcodes (RFC 7143, 11.2.1.2).
pub(crate) mod opcode {
    pub(crate) const NOP_OUT: u8 = 0x00;
    pub(crate) const COMMAND: u8 = 0x01;
    pub(crate) const MANAGEMENT: u8 = 0x02;
    pub(crate) const LOGIN: u8 = 0x03;
    pub(crate) const TEXT: u8 = 0x04;
    pub(crate) const DATA_OUT: u8 = 0x05;
    pub(crate) const LOGOUT: u8 = 0x06;
    pub(crate) const NOP_IN: u8 = 0x20;
    pub(crate) const RESPONSE: u8 = 0x21;
    pub(crate) const MANAGEMENT_RESPONSE: u8 = 0x22;
    pub(crate) const LOGIN_RESPONSE: u8 = 0x23;
    pub(crate) const TEXT_RESPONSE: u8 = 0x24;
    pub(crate) const DATA_IN: u8 = 0x25;
    pub(crate) const LOGOUT_RESPONSE: u8 = 0x26;
    pub(crate) const R2T: u8 = 0x31;
    pub(crate) const ASYNC: u8 = 0x32;
    pub(crate) const REJECT: u8 = 0x3f;
}

/// A basic header segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bhs(pub(crate) [u8; BHS_BYTES]);

impl Bhs {
    /// Creates a header with this opcode (including I) and these flags.
    pub(crate) fn new(opcode: u8, flags: u8) -> Self {
        let mut bytes = [0; BHS_BYTES];
        bytes[0] = opcode;
        bytes[1] = flags;
        Self(bytes)
    }

    pub(crate) fn opcode(&self) -> u8 {
        self.0[0] & 0x3f
    }

    pub(crate) fn flags(&self) -> u8 {
        self.0[1]
    }

    pub(crate) fn is_final(&self) -> bool {
        self.0[1] & FINAL != 0
    }

    /// Returns TotalAHSLength, in bytes.
    pub(crate) fn ahs_bytes(&self) -> usize {
        usize::from(self.0[4]) * 4
    }

    /// Returns DataSegmentLength, in bytes.
    pub(crate) fn data_bytes(&self) -> usize {
        usize::from(self.0[5]) << 16 | usize::from(self.0[6]) << 8 | usize::from(self.0[7])
    }

    pub(crate) fn put_data_bytes(&mut self, bytes: usize) {
        let [_, high, middle, low] = (bytes as u32).to_be_bytes();
        self.put(5, &[high, middle, low]);
    }

    /// Returns the initiator task tag.
    pub(crate) fn itt(&self) -> u32 {
        self.u32(16)
    }

    /// Returns the target transfer tag.
    pub(crate) fn ttt(&self) -> u32 {
        self.u32(20)
    }

    /// Returns StatSN of a response.
    pub(crate) fn stat_sn(&self) -> u32 {
        self.u32(24)
    }

    /// Returns the bytes at a fixed offset.
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0[at..at + N]);
        out
    }

    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    /// Sets bytes at a fixed offset.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_be_bytes());
    }
}

/// Returns how many bytes of padding follow `bytes` (RFC 7143, 11.1).
pub(crate) fn padding(bytes: usize) -> usize {
    bytes.wrapping_neg() & 3
}

/// Returns the CRC32C digest of bytes, in wire order (RFC 7143, 13.1).
pub(crate) fn digest(bytes: &[u8]) -> [u8; 4] {
    crc32c::crc32c(bytes).to_le_bytes()
}
