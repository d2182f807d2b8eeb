//! Data-Out PDUs and R2Ts (RFC 7143, 11.7 and 11.8).
//!
//! Data-Out: 20..24 Target Transfer Tag (FFFFFFFFh: unsolicited), 36..40 DataSN, 40..44 Buffer
//! Offset. A task's data arrives in order, because DataPDUInOrder and DataSequenceInOrder are
//! always Yes.

use super::{Connection, Plan, StatSn};
use crate::pdu::{Bhs, NO_TAG, RejectReason, build};
use crate::receive::Sink;
use crate::task::{DataFault, Task, TaskState, transfer_tag};
use crate::transmit::OutData;

/// The length from which receiving data separately from preceding bytes pays off.
const BULK_BYTES: u32 = 32_768;

impl Connection {
    pub(super) fn begin_data_out(&mut self, bhs: Bhs) {
        self.receive.bulk = bhs.data_bytes() as u32 >= BULK_BYTES;
        let (burst, first) = (self.params.burst_bytes, self.params.first_burst_bytes);
        // Data of a task that was aborted or completed meanwhile is not an error.
        let Some(task) = self.tasks.get_mut(&bhs.task_tag()) else {
            return self.take(bhs, Plan::Ignore, Sink::Discard);
        };
        if task.state == TaskState::Delivered || task.aborted {
            return self.take(bhs, Plan::Ignore, Sink::Discard);
        }
        let serial = task.serial;
        let fault = task.incoming.fault.or_else(|| check(task, &bhs, burst, first).err());
        task.incoming.fault = fault;
        let sink = if fault.is_none() && bhs.data_bytes() > 0 {
            let at = task.incoming.received as usize;
            Sink::Data(std::mem::take(&mut task.incoming.data), at)
        } else {
            Sink::Discard
        };
        self.take(bhs, Plan::DataOut(serial), sink);
    }

    pub(super) fn finish_data_out(
        &mut self,
        bhs: &Bhs,
        serial: u32,
        sink: Sink,
        bytes: usize,
        right: bool,
    ) {
        let tag = bhs.task_tag();
        let (burst, first) = (self.params.burst_bytes, self.params.first_burst_bytes);
        let Some(task) = self.tasks.get_mut(&tag).filter(|task| task.serial == serial) else {
            return;
        };
        let incoming = &mut task.incoming;
        let placed = matches!(sink, Sink::Data(..));
        if placed {
            self.clock.data_came(bytes);
        }
        if let Sink::Data(data, _) = sink {
            incoming.data = data;
        }
        if placed && right {
            incoming.received += bytes as u32;
        }
        if !right {
            incoming.fault = incoming.fault.or(Some(DataFault::Crc));
        }
        incoming.data_sn = incoming.data_sn.wrapping_add(1);
        let unsolicited = bhs.u32(20) == NO_TAG;
        let end = sequence_end(task, unsolicited, burst, first);
        let incoming = &mut task.incoming;
        let full = incoming.fault.is_none() && incoming.received == end;
        if bhs.is_final() || full {
            if !unsolicited && !full {
                incoming.fault = incoming.fault.or(Some(DataFault::Amount));
            }
            end_sequence(task, unsolicited);
        }
        if !right {
            self.reject(bhs, RejectReason::DataDigest);
        }
        self.proceed(tag);
    }

    /// Drops the data of a task. Data that is partly received is discarded too: from now on it
    /// takes no memory from the share.
    pub(super) fn drop_data(&mut self, serial: u32) {
        self.receive.discard(|plan| matches!(plan, Plan::DataOut(of) if *of == serial));
    }

    /// Solicits data, as far as the number of R2Ts and memory allow.
    pub(super) fn solicit(&mut self, tag: u32) {
        if !self.grow(tag) {
            if let Some(task) = self.tasks.get(&tag) {
                let entry = (tag, task.serial);
                if !self.starved.contains(&entry) {
                    self.starved.push_back(entry);
                }
            }
            return;
        }
        let burst = self.params.burst_bytes;
        let outstanding_max = u32::from(self.params.outstanding_r2t);
        loop {
            let Some(task) = self.tasks.get_mut(&tag) else { return };
            let incoming = &mut task.incoming;
            let (start, end) = incoming.solicited(incoming.asked, burst);
            if start == end || incoming.asked - incoming.answered >= outstanding_max {
                return;
            }
            let sn = incoming.asked;
            incoming.asked += 1;
            incoming.asked_at = self.clock.now();
            self.clock.expect_data();
            let ttt = transfer_tag(task.serial, sn);
            if end - start >= BULK_BYTES {
                self.receive.bulk = true;
            }
            let bhs = build::r2t(tag, task.lun, ttt, sn, start, end - start);
            self.send(bhs, OutData::None, StatSn::Current);
        }
    }

    /// Continues tasks that waited for memory.
    pub(super) fn feed_starved(&mut self) {
        if self.starved.is_empty() {
            return;
        }
        while let Some((tag, serial)) = self.starved.front().copied() {
            let there = self.tasks.get(&tag).is_some_and(|task| task.serial == serial);
            if there && !self.grow(tag) {
                return;
            }
            self.starved.pop_front();
            if there {
                self.solicit(tag);
            }
        }
        if let Some(share) = self.share() {
            share.forget(self.id);
        }
    }
}

/// Checks whether this PDU is the next of the task's current sequence.
fn check(task: &Task, bhs: &Bhs, burst: u32, first: u32) -> Result<(), DataFault> {
    let incoming = &task.incoming;
    let ttt = bhs.u32(20);
    let unsolicited = ttt == NO_TAG;
    let expected = if unsolicited {
        incoming.unsolicited
    } else {
        !incoming.unsolicited
            && incoming.answered < incoming.asked
            && ttt == transfer_tag(task.serial, incoming.answered)
    };
    if !expected {
        return Err(DataFault::Unexpected);
    }
    // A gap means that a PDU was lost (RFC 7143, 7.9).
    if bhs.u32(36) != incoming.data_sn || bhs.u32(40) != incoming.received {
        return Err(DataFault::Crc);
    }
    let end = u64::from(incoming.received) + bhs.data_bytes() as u64;
    let most = sequence_end(task, unsolicited, burst, first) as usize;
    let room = if bhs.data_bytes() == 0 { most } else { most.min(incoming.data.len()) };
    if end > room as u64 { Err(DataFault::Amount) } else { Ok(()) }
}

/// Returns where the current sequence ends.
fn sequence_end(task: &Task, unsolicited: bool, burst: u32, first: u32) -> u32 {
    if unsolicited {
        first.min(task.incoming.wanted)
    } else {
        task.incoming.solicited(task.incoming.answered, burst).1
    }
}

fn end_sequence(task: &mut Task, unsolicited: bool) {
    let incoming = &mut task.incoming;
    incoming.data_sn = 0;
    if unsolicited {
        incoming.unsolicited = false;
        incoming.unsolicited_end = incoming.received;
    } else if incoming.answered < incoming.asked {
        incoming.answered += 1;
    }
}
