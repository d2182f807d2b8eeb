//! Builds responses, field by field. The caller sets StatSN, ExpCmdSN and MaxCmdSN.

use super::{Bhs, FINAL, NO_TAG, RejectReason, opcode};

/// The residual of a command (RFC 7143, 11.4.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residual {
    None,
    Underflow(u32),
    Overflow(u32),
}

impl Residual {
    /// Returns the residual if `expected` bytes were announced and `wanted` were to be transferred.
    pub(crate) fn of(expected: u32, wanted: u64) -> Self {
        let expected = u64::from(expected);
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        match wanted.cmp(&expected) {
            std::cmp::Ordering::Equal => Self::None,
            std::cmp::Ordering::Less => Self::Underflow(narrow(expected - wanted)),
            std::cmp::Ordering::Greater => Self::Overflow(narrow(wanted - expected)),
        }
    }

    fn flag(self) -> u8 {
        match self {
            Self::None => 0,
            Self::Underflow(_) => 0x02,
            Self::Overflow(_) => 0x04,
        }
    }

    fn count(self) -> u32 {
        match self {
            Self::None => 0,
            Self::Underflow(bytes) | Self::Overflow(bytes) => bytes,
        }
    }
}

/// SCSI Response (11.4): 2 response (00h: completed at target), 3 status, 36 ExpDataSN,
/// 44 residual count. Flags: O 04h, U 02h.
pub(crate) fn response(tag: u32, status: u8, residual: Residual, data_pdus: u32) -> Bhs {
    let mut bhs = Bhs::answer(opcode::RESPONSE, FINAL | residual.flag());
    bhs.0[3] = status;
    bhs.put_u32(16, tag);
    bhs.put_u32(36, data_pdus);
    bhs.put_u32(44, residual.count());
    bhs
}

/// SCSI Data-In (11.7): 20 TTT, 36 DataSN, 40 Buffer Offset. Flags: F 80h, S 01h with status.
pub(crate) fn data_in(tag: u32, data_sn: u32, offset: u32, last_of_burst: bool) -> Bhs {
    let mut bhs = Bhs::answer(opcode::DATA_IN, if last_of_burst { FINAL } else { 0 });
    bhs.put_u32(16, tag);
    bhs.put_u32(20, NO_TAG);
    bhs.put_u32(36, data_sn);
    bhs.put_u32(40, offset);
    bhs
}

/// Adds the status to the last Data-In (phase collapse).
pub(crate) fn collapse(bhs: &mut Bhs, status: u8, residual: Residual) {
    bhs.0[1] |= FINAL | 0x01 | residual.flag();
    bhs.0[3] = status;
    bhs.put_u32(44, residual.count());
}

/// Ready To Transfer (11.8): 8 LUN, 20 TTT, 36 R2TSN, 40 Buffer Offset, 44 desired length.
pub(crate) fn r2t(tag: u32, lun: [u8; 8], ttt: u32, sn: u32, offset: u32, bytes: u32) -> Bhs {
    let mut bhs = Bhs::answer(opcode::R2T, FINAL);
    bhs.put(8, &lun);
    bhs.put_u32(16, tag);
    bhs.put_u32(20, ttt);
    bhs.put_u32(36, sn);
    bhs.put_u32(40, offset);
    bhs.put_u32(44, bytes);
    bhs
}

/// NOP-In (11.19): 8 LUN, 16 ITT, 20 TTT. One of both is [`NO_TAG`].
pub(crate) fn nop_in(lun: [u8; 8], tag: u32, ttt: u32) -> Bhs {
    let mut bhs = Bhs::answer(opcode::NOP_IN, FINAL);
    bhs.put(8, &lun);
    bhs.put_u32(16, tag);
    bhs.put_u32(20, ttt);
    bhs
}

/// Task Management Function Response (11.6): 2 response.
pub(crate) fn management(tag: u32, response: u8) -> Bhs {
    let mut bhs = Bhs::answer(opcode::MANAGEMENT_RESPONSE, FINAL);
    bhs.0[2] = response;
    bhs.put_u32(16, tag);
    bhs
}

/// Logout Response (11.15): 2 response, 40 Time2Wait, 42 Time2Retain (both 0: nothing is kept).
pub(crate) fn logout(tag: u32, response: u8) -> Bhs {
    let mut bhs = Bhs::answer(opcode::LOGOUT_RESPONSE, FINAL);
    bhs.0[2] = response;
    bhs.put_u32(16, tag);
    bhs
}

/// Text Response (11.11): 8 LUN, 16 ITT, 20 TTT ([`NO_TAG`] ends the exchange). Flags: F, C 40h.
pub(crate) fn text(tag: u32, ttt: u32, flags: u8) -> Bhs {
    let mut bhs = Bhs::answer(opcode::TEXT_RESPONSE, flags);
    bhs.put_u32(16, tag);
    bhs.put_u32(20, ttt);
    bhs
}

/// Reject (11.17): 2 reason, 16 FFFFFFFFh. Its data is the header of what is rejected.
pub(crate) fn reject(reason: RejectReason) -> Bhs {
    let mut bhs = Bhs::answer(opcode::REJECT, FINAL);
    bhs.0[2] = reason as u8;
    bhs.put_u32(16, NO_TAG);
    bhs
}

/// Asynchronous Message (11.9) that requests a logout: 36 event 1, 42 Parameter3, the seconds.
pub(crate) fn logout_wanted(seconds: u16) -> Bhs {
    let mut bhs = Bhs::answer(opcode::ASYNC, FINAL);
    bhs.put_u32(16, NO_TAG);
    bhs.0[36] = 1;
    bhs.put(42, &seconds.to_be_bytes());
    bhs
}
