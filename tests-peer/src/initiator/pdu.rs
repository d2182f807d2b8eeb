//! PDUs of RFC 7143, as far as an initiator needs them.
//!
//! Basic header segment: 0 opcode (40h: immediate), 1 flags, 4 length of additional headers in
//! words, 5..8 length of the data segment, 8..16 LUN, 16..20 Initiator Task Tag; the rest depends
//! on the opcode.

/// Bytes in a basic header segment.
pub const HEADER: usize = 48;
/// The reserved tag.
pub const NO_TAG: u32 = 0xffff_ffff;

/// Opcodes (11.2.1.2).
pub mod opcode {
    pub const NOP_OUT: u8 = 0x00;
    pub const SCSI_COMMAND: u8 = 0x01;
    pub const TASK_MANAGEMENT: u8 = 0x02;
    pub const LOGIN: u8 = 0x03;
    pub const TEXT: u8 = 0x04;
    pub const DATA_OUT: u8 = 0x05;
    pub const NOP_IN: u8 = 0x20;
    pub const SCSI_RESPONSE: u8 = 0x21;
    pub const TASK_MANAGEMENT_RESPONSE: u8 = 0x22;
    pub const LOGIN_RESPONSE: u8 = 0x23;
    pub const DATA_IN: u8 = 0x25;
    pub const R2T: u8 = 0x31;
    /// The flag of requests that need no place in the window.
    pub const IMMEDIATE: u8 = 0x40;
}

/// A PDU without digests or additional headers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pdu {
    /// The basic header segment; the length of the data segment is set when it is sent.
    pub header: [u8; HEADER],
    /// The data segment, without padding.
    pub data: Vec<u8>,
}

impl Pdu {
    /// Creates one with an opcode and flags, and all else 0.
    pub fn new(opcode: u8, flags: u8) -> Self {
        let mut header = [0; HEADER];
        header[0] = opcode;
        header[1] = flags;
        Self { header, data: Vec::new() }
    }

    /// Sets a 32-bit field.
    pub fn with(mut self, at: usize, value: u32) -> Self {
        self.header[at..at + 4].copy_from_slice(&value.to_be_bytes());
        self
    }

    /// Sets some bytes of the header.
    pub fn with_bytes(mut self, at: usize, bytes: &[u8]) -> Self {
        self.header[at..at + bytes.len()].copy_from_slice(bytes);
        self
    }

    /// Sets the data segment.
    pub fn with_data(mut self, data: &[u8]) -> Self {
        self.data = data.to_vec();
        self
    }

    /// Returns the opcode, without the immediate bit.
    pub fn opcode(&self) -> u8 {
        self.header[0] & 0x3f
    }

    /// Returns a 32-bit field.
    pub fn field(&self, at: usize) -> u32 {
        u32::from_be_bytes([0, 1, 2, 3].map(|offset| self.header[at + offset]))
    }

    /// Returns the Initiator Task Tag.
    pub fn tag(&self) -> u32 {
        self.field(16)
    }

    /// Returns it as sent over the wire.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.header.to_vec();
        bytes[5..8].copy_from_slice(&(self.data.len() as u32).to_be_bytes()[1..]);
        bytes.extend_from_slice(&self.data);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    /// Takes one from received bytes, if it is complete; otherwise returns how many bytes it needs.
    pub fn take(received: &mut Vec<u8>) -> Result<Self, usize> {
        let Some(header) = received.first_chunk::<HEADER>().copied() else { return Err(HEADER) };
        let additional = usize::from(header[4]) * 4;
        let length = u32::from_be_bytes([0, header[5], header[6], header[7]]) as usize;
        let begin = HEADER + additional;
        let end = (begin + length).next_multiple_of(4);
        if received.len() < end {
            return Err(end);
        }
        let data = received[begin..begin + length].to_vec();
        received.drain(..end);
        Ok(Self { header, data })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pdu_round_trips() {
        let pdu = Pdu::new(opcode::LOGIN, 0x87).with(16, 7).with_data(b"key=value\0");
        let mut wire = pdu.bytes();
        assert_eq!(wire.len(), 60);
        assert_eq!(wire[..8], [3, 0x87, 0, 0, 0, 0, 0, 10]);
        let mut part = wire[..59].to_vec();
        assert_eq!(Pdu::take(&mut part), Err(60));
        wire.push(0xff);
        let taken = Pdu::take(&mut wire).unwrap();
        assert_eq!((taken.tag(), &taken.data), (7, &pdu.data));
        assert_eq!(wire, [0xff]);
    }
}
