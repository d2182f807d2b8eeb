//! Data-In, R2T and Data-Out (RFC 7143, 11.7 and 11.8).
//!
//! Data-In: flags F 80h, A 40h, O 04h, U 02h, S 01h; 3 status, 20 TTT, 36 DataSN, 40 Buffer
//! Offset, 44 Residual Count. Data-Out: 20 TTT, 36 DataSN, 40 Buffer Offset. R2T: 8 LUN, 20 TTT,
//! 36 R2TSN, 40 Buffer Offset, 44 Desired Data Transfer Length.

use crate::initiator::{Initiator, check_shape};
use crate::pdu::{Bhs, FINAL, NO_TAG, opcode};
use crate::task::{Pending, Task, is_good};
use crate::violation::Violation;

const ACKNOWLEDGE: u8 = 0x40;
const STATUS: u8 = 0x01;

impl Initiator {
    pub(crate) fn data_in(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let itt = bhs.itt();
        let has_status = bhs.flags() & STATUS != 0;
        check_data_in_fields(bhs)?;
        let burst = self.terms.burst_bytes;
        let task = self.command_asked(bhs)?;
        let order = |name, got, expected, clause| match got == expected {
            true => Ok(()),
            false => Err(Violation::Order { itt, name, got, expected, clause }),
        };
        order("DataSN", bhs.u32(36), task.data_pdus, "11.7.5")?;
        order("Data-In offset", bhs.u32(40), task.data_in.len() as u32, "13.18 and 13.19")?;
        let most = |bytes: u64, most: u32, what, clause| match bytes <= u64::from(most) {
            true => Ok(()),
            false => Err(Violation::TooMuch { itt, bytes, most: most.into(), what, clause }),
        };
        let end = task.data_in.len() as u64 + data.len() as u64;
        most(end, task.expected_in, "announced data", "11.4.5")?;
        let sequence = u64::from(task.sequence_bytes) + data.len() as u64;
        most(sequence, burst, "a sequence", "13.13")?;
        task.data_in.extend_from_slice(data);
        task.data_pdus += 1;
        task.sequence_bytes = if bhs.is_final() { 0 } else { sequence as u32 };
        if has_status {
            return self.finish(bhs, Vec::new());
        }
        Ok(())
    }

    pub(crate) fn r2t(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        check_shape(bhs, false)?;
        let itt = bhs.itt();
        let (burst, most) = (self.terms.burst_bytes, usize::from(self.terms.outstanding_r2t));
        let taken = self.outgoing.taken();
        let task = self.command_asked(bhs)?;
        check_r2t(itt, bhs, task, burst)?;
        // The target can have received no more than was taken.
        while task.outstanding.front().is_some_and(|end| *end <= taken) {
            task.outstanding.pop_front();
        }
        if task.outstanding.len() >= most {
            let (bytes, most) = (task.outstanding.len() as u64 + 1, most as u64);
            let what = "outstanding R2Ts";
            return Err(Violation::TooMuch { itt, bytes, most, what, clause: "13.17" });
        }
        task.r2ts += 1;
        let end = task.sent + bhs.u32(44) as usize;
        if let Some(Pending::Command(mut task)) = self.pending.remove(&itt) {
            self.send_data(itt, &mut task, bhs.ttt(), end);
            task.outstanding.push_back(self.outgoing.end());
            self.pending.insert(itt, Pending::Command(task));
        }
        Ok(())
    }

    /// Returns the command that a PDU belongs to.
    pub(crate) fn command_asked(&mut self, bhs: &Bhs) -> Result<&mut Task, Violation> {
        let (opcode, itt) = (bhs.opcode(), bhs.itt());
        let exp_cmd_sn = bhs.u32(28);
        let Pending::Command(task) = self.asked(bhs)? else {
            return Err(Violation::NeverAsked { opcode, itt });
        };
        if !task.immediate && !crate::window::before(task.cmd_sn, exp_cmd_sn) {
            let what = "ExpCmdSN does not cover the command of the PDU";
            return Err(Violation::field(opcode, what, "4.2.2.1"));
        }
        Ok(task)
    }

    /// Queues a sequence of data, from what was sent up to `end`.
    pub(crate) fn send_data(&mut self, itt: u32, task: &mut Task, ttt: u32, end: usize) {
        let segment = self.terms.send_segment_bytes as usize;
        let mut sn = 0;
        while task.sent < end {
            let bytes = segment.min(end - task.sent);
            let is_last = task.sent + bytes == end;
            let mut bhs = Bhs::new(opcode::DATA_OUT, if is_last { FINAL } else { 0 });
            // In unsolicited data the LUN is reserved (11.7.4).
            if ttt != NO_TAG {
                bhs.put(8, &task.lun);
            }
            bhs.put_u32(16, itt);
            bhs.put_u32(20, ttt);
            bhs.put_u32(28, self.exp_stat_sn);
            bhs.put_u32(36, sn);
            bhs.put_u32(40, task.sent as u32);
            let data = &task.out[task.sent..task.sent + bytes];
            self.outgoing.push(&self.terms, bhs, &[], data);
            task.sent += bytes;
            sn += 1;
        }
    }
}

fn check_data_in_fields(bhs: &Bhs) -> Result<(), Violation> {
    let flags = bhs.flags();
    let wrong = |what| Err(Violation::field(opcode::DATA_IN, what, "11.7"));
    let has_status = flags & STATUS != 0;
    if has_status && !bhs.is_final() {
        return wrong("S without F");
    }
    if !has_status && flags & 0x06 != 0 {
        return wrong("O or U without S");
    }
    if has_status && !is_good(bhs.0[3]) {
        return wrong("a status that requires sense data");
    }
    if flags & ACKNOWLEDGE != 0 || bhs.ttt() != NO_TAG {
        return wrong("it requests acknowledgement at error recovery level 0");
    }
    Ok(())
}

/// Checks that R2Ts solicit announced data that was not sent, once and in order
/// (DataSequenceInOrder=Yes).
fn check_r2t(itt: u32, bhs: &Bhs, task: &Task, burst: u32) -> Result<(), Violation> {
    let (offset, bytes) = (bhs.u32(40), bhs.u32(44));
    if bhs.ttt() == NO_TAG {
        return Err(Violation::field(opcode::R2T, "it has no Target Transfer Tag", "11.8.5"));
    }
    if bhs.array::<8>(8) != task.lun {
        return Err(Violation::field(opcode::R2T, "another LUN than the command's", "11.8"));
    }
    let order = |name, got, expected, clause| match got == expected {
        true => Ok(()),
        false => Err(Violation::Order { itt, name, got, expected, clause }),
    };
    let end = u64::from(offset) + u64::from(bytes);
    let most = |bytes: u64, most: u64, what, clause| match bytes <= most {
        true => Ok(()),
        false => Err(Violation::TooMuch { itt, bytes, most, what, clause }),
    };
    order("R2TSN", bhs.u32(36), task.r2ts, "11.8.2")?;
    most(end, task.out.len() as u64, "announced data, solicited by R2T", "11.8.4")?;
    order("R2T offset", offset, task.sent as u32, "13.19")?;
    most(bytes.into(), burst.into(), "a sequence, solicited by R2T", "13.13")?;
    if bytes == 0 {
        return Err(Violation::field(opcode::R2T, "it solicits no data", "11.8.4"));
    }
    Ok(())
}
