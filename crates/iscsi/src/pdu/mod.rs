//! The wire format (RFC 7143, 11): the 48 bytes of the basic header segment, opcodes and flags.
//!
//! Fields common to all requests; all numbers are big-endian:
//!
//! | bytes | field |
//! |---|---|
//! | 0 | `.I` immediate 40h, opcode 3Fh |
//! | 1 | F (final) 80h, flags of the opcode |
//! | 4 | TotalAHSLength, in words of 4 bytes |
//! | 5..8 | DataSegmentLength, in bytes, without padding |
//! | 8..16 | LUN, or fields of the opcode |
//! | 16..20 | Initiator Task Tag |
//! | 20..24 | Target Transfer Tag, Expected Data Transfer Length, Referenced Task Tag |
//! | 24..28 | CmdSN |
//! | 28..32 | ExpStatSN |
//! | 32..48 | fields of the opcode |
//!
//! Fields common to all responses: 24..28 StatSN, 28..32 ExpCmdSN, 32..36 MaxCmdSN.

pub(crate) mod build;

/// Bytes in the basic header segment.
pub(crate) const BHS_BYTES: usize = 48;
/// The reserved tag, which identifies no task and no transfer.
pub(crate) const NO_TAG: u32 = 0xffff_ffff;
/// F: the last PDU of a sequence.
pub(crate) const FINAL: u8 = 0x80;

/// Opcodes (RFC 7143, 11.2.1.2). Those below 20h come from initiators.
pub(crate) mod opcode {
    pub(crate) const NOP_OUT: u8 = 0x00;
    pub(crate) const COMMAND: u8 = 0x01;
    pub(crate) const MANAGEMENT: u8 = 0x02;
    pub(crate) const LOGIN: u8 = 0x03;
    pub(crate) const TEXT: u8 = 0x04;
    pub(crate) const DATA_OUT: u8 = 0x05;
    pub(crate) const LOGOUT: u8 = 0x06;
    pub(crate) const SNACK: u8 = 0x10;
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

/// Why a PDU is rejected (RFC 7143, 11.17.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum RejectReason {
    DataDigest = 0x02,
    Snack = 0x03,
    Protocol = 0x04,
    NotSupported = 0x05,
    TooManyImmediate = 0x06,
    TaskInProgress = 0x07,
    InvalidField = 0x09,
    LongOperation = 0x0a,
}

/// A basic header segment.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bhs(pub(crate) [u8; BHS_BYTES]);

impl Bhs {
    /// Creates a response with this opcode and these flags.
    pub(crate) fn answer(opcode: u8, flags: u8) -> Self {
        let mut bytes = [0; BHS_BYTES];
        bytes[0] = opcode;
        bytes[1] = flags;
        Self(bytes)
    }

    /// Returns the opcode.
    pub(crate) fn opcode(&self) -> u8 {
        self.0[0] & 0x3f
    }

    /// Returns the I bit: immediate delivery.
    pub(crate) fn immediate(&self) -> bool {
        self.0[0] & 0x40 != 0
    }

    /// Returns the F bit.
    pub(crate) fn is_final(&self) -> bool {
        self.0[1] & FINAL != 0
    }

    /// Returns the flags, including F.
    pub(crate) fn flags(&self) -> u8 {
        self.0[1]
    }

    /// Returns the length of the additional header segments, in bytes.
    pub(crate) fn ahs_bytes(&self) -> usize {
        usize::from(self.0[4]) * 4
    }

    /// Returns the length of the data segment, in bytes, without padding.
    pub(crate) fn data_bytes(&self) -> usize {
        usize::from(self.0[5]) << 16 | usize::from(self.0[6]) << 8 | usize::from(self.0[7])
    }

    /// Returns the 8 bytes of the LUN.
    pub(crate) fn lun(&self) -> [u8; 8] {
        self.array(8)
    }

    /// Returns the initiator task tag.
    pub(crate) fn task_tag(&self) -> u32 {
        self.u32(16)
    }

    /// Returns CmdSN.
    pub(crate) fn cmd_sn(&self) -> u32 {
        self.u32(24)
    }

    /// Returns the bytes at a fixed offset.
    pub(crate) fn array<const N: usize>(&self, at: usize) -> [u8; N] {
        let mut out = [0; N];
        out.copy_from_slice(&self.0[at..at + N]);
        out
    }

    /// Returns a number at a fixed offset.
    pub(crate) fn u16(&self, at: usize) -> u16 {
        u16::from_be_bytes(self.array(at))
    }

    /// Returns a number at a fixed offset.
    pub(crate) fn u32(&self, at: usize) -> u32 {
        u32::from_be_bytes(self.array(at))
    }

    /// Sets bytes at a fixed offset.
    pub(crate) fn put(&mut self, at: usize, bytes: &[u8]) {
        self.0[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Sets a number at a fixed offset.
    pub(crate) fn put_u32(&mut self, at: usize, value: u32) {
        self.put(at, &value.to_be_bytes());
    }

    /// Sets DataSegmentLength.
    pub(crate) fn put_data_bytes(&mut self, bytes: usize) {
        let [_, high, middle, low] = (bytes as u32).to_be_bytes();
        self.put(5, &[high, middle, low]);
    }
}

/// Returns how many bytes of padding follow `bytes` (RFC 7143, 11.1).
pub(crate) fn padding(bytes: usize) -> usize {
    bytes.wrapping_neg() & 3
}
