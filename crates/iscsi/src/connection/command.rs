//! SCSI commands, from the header to the layer above (RFC 7143, 11.3).
//!
//! Flags: F 80h, R 40h, W 20h, ATTR 07h. 20..24 Expected Data Transfer Length, 32..48 CDB.

use std::sync::Arc;

use block::{DataOut, FRAME_BYTES, LunMap};

use super::{Connection, Held, Plan};
use crate::event::{Cdb, Command, Event, TaskAttribute};
use crate::pdu::{Bhs, NO_TAG, RejectReason};
use crate::receive::Sink;
use crate::session::{Admission, Place};
use crate::task::{Collect, DataFault, Task, TaskState};
use crate::task_set::Queued;

const READ: u8 = 0x40;
const WRITE: u8 = 0x20;

impl Connection {
    pub(super) fn begin_command(&mut self, bhs: Bhs, ahs: Option<&[u8]>) {
        if self.nexus().is_none_or(|nexus| nexus.discovery) {
            return self.protocol_error(&bhs);
        }
        let task = Some(Queued::new(bhs.lun(), attribute(bhs.flags())));
        let Some(immediate) = self.immediate_place(&bhs, task) else {
            return self.refuse(bhs, RejectReason::TooManyImmediate);
        };
        let (admission, place) = self.admit(&bhs, task);
        let place = if bhs.immediate() { immediate } else { place };
        if admission == Admission::Dropped {
            return self.take(bhs, Plan::Ignore, Sink::Discard);
        }
        match self.new_task(&bhs, ahs, admission, place) {
            // Without data there is nothing to wait for.
            Ok(task) if bhs.data_bytes() == 0 => {
                self.finish_command(&bhs, task, admission, Sink::Discard, 0, true);
                self.release_held();
            }
            Ok(mut task) => {
                let sink = match task.incoming.fault {
                    None => Sink::Data(std::mem::take(&mut task.incoming.data), 0),
                    Some(_) => Sink::Discard,
                };
                self.take(bhs, Plan::Command(task, admission), sink);
            }
            Err(reason) => {
                self.refuse(bhs, reason);
                self.closed |= reason == RejectReason::Protocol;
                self.tell_wakes();
            }
        }
    }

    /// Creates the task of a command, with space for its data.
    fn new_task(
        &mut self,
        bhs: &Bhs,
        ahs: Option<&[u8]>,
        admission: Admission,
        place: Place,
    ) -> Result<Task, RejectReason> {
        let flags = bhs.flags();
        let expected = bhs.u32(20);
        let expected_out = if flags & WRITE != 0 { expected } else { 0 };
        let expected_in = if flags & (READ | WRITE) == READ { expected } else { 0 };
        if bhs.task_tag() == NO_TAG {
            return Err(RejectReason::Protocol);
        }
        if self.tasks.contains_key(&bhs.task_tag()) {
            return Err(RejectReason::TaskInProgress);
        }
        let unsolicited = expected_out > 0 && !bhs.is_final();
        self.check_unsolicited(bhs.data_bytes() as u32, expected_out, unsolicited)?;
        let cdb = Cdb { fixed: bhs.array(32), extended: extended_cdb(bhs, ahs)? };
        self.next_serial = self.next_serial.wrapping_add(1);
        let mut task = Task {
            serial: self.next_serial,
            lun: bhs.lun(),
            cdb,
            attribute: attribute(flags),
            immediate: bhs.immediate(),
            place,
            expected_out,
            expected_in,
            transfer_out: None,
            state: TaskState::Held,
            aborted: false,
            incoming: Collect { unsolicited, asked_at: self.clock.now(), ..Collect::default() },
        };
        if expected_out > 0 {
            self.make_room(&mut task, bhs.data_bytes(), admission);
        }
        if task.incoming.unsolicited {
            self.clock.expect_data();
        }
        Ok(task)
    }

    fn check_unsolicited(
        &self,
        data_bytes: u32,
        expected_out: u32,
        more: bool,
    ) -> Result<(), RejectReason> {
        let immediate_data = data_bytes == 0
            || self.params.immediate_data
                && data_bytes <= expected_out.min(self.params.first_burst_bytes);
        if immediate_data && !(more && self.params.initial_r2t) {
            Ok(())
        } else {
            Err(RejectReason::Protocol)
        }
    }

    /// Allocates space for all the data if there is memory for it, otherwise for its unsolicited
    /// part. If there is none for that either, the command ends with TASK SET FULL.
    fn make_room(&mut self, task: &mut Task, data_bytes: usize, admission: Admission) {
        let config = self.target.config();
        let unasked = match task.incoming.unsolicited {
            true => task.expected_out.min(self.params.first_burst_bytes),
            false => data_bytes as u32,
        };
        // Data that arrives together with the login may be parsed before the LUN map is known.
        let takes = |luns: &Arc<LunMap>| (config.data_out_bytes)(luns, task.lun, task.cdb.bytes());
        task.transfer_out = self.luns.as_ref().and_then(takes);
        let transfer = task.transfer_out.map_or(u32::MAX, |bytes| bytes.min(1 << 31) as u32);
        // Unsolicited data arrives, whether the command takes it or not.
        let useful = task.expected_out.min(transfer.max(unasked));
        let wanted = useful.min(config.limits.data_out_bytes_per_command);
        let phase = (config.data_out_phase)(task.cdb.bytes()) % FRAME_BYTES;
        let (all, first) = (wanted as usize, wanted.min(unasked) as usize);
        let try_take = |bytes| self.share()?.try_take(bytes, self.id);
        let now = admission == Admission::Now && self.starved.is_empty();
        let grant = if now && self.has_memory(all - first) { try_take(all) } else { None };
        let grant = match grant {
            None if first > 0 => try_take(first),
            grant => Some(grant.unwrap_or_default()),
        };
        if grant.is_none() {
            task.incoming.fault = Some(DataFault::NoMemory);
        }
        task.incoming.taken = grant.unwrap_or_default();
        let room = task.incoming.taken.bytes();
        task.incoming.wanted = wanted;
        task.incoming.data = DataOut::new(room, phase);
        task.incoming.granted = room.saturating_sub(first);
        self.granted_bytes += task.incoming.granted;
    }

    /// Returns whether this many more bytes may be granted. One task always gets them, so that some
    /// progress is guaranteed.
    fn has_memory(&self, bytes: usize) -> bool {
        let most = self.target.config().limits.data_out_bytes_per_connection;
        self.granted_bytes == 0 || self.granted_bytes + bytes <= most
    }

    pub(super) fn finish_command(
        &mut self,
        bhs: &Bhs,
        mut task: Task,
        admission: Admission,
        sink: Sink,
        bytes: usize,
        right: bool,
    ) {
        let (tag, serial) = (bhs.task_tag(), task.serial);
        let incoming = &mut task.incoming;
        if let Sink::Data(data, _) = sink {
            incoming.data = data;
        }
        incoming.received = bytes as u32;
        incoming.unsolicited_end = incoming.received;
        if !right {
            self.reject(bhs, RejectReason::DataDigest);
            incoming.fault = incoming.fault.or(Some(DataFault::Crc));
        }
        if incoming.received >= incoming.wanted && incoming.fault.is_none() {
            incoming.unsolicited = false;
        }
        self.tasks.insert(tag, task);
        match admission {
            Admission::Held => self.held.push((bhs.cmd_sn(), Held::Command(tag, serial))),
            _ => self.activate(tag, serial),
        }
    }

    /// Handles a command whose turn has come.
    pub(super) fn activate(&mut self, tag: u32, serial: u32) {
        let Some(task) = self.tasks.get_mut(&tag).filter(|task| task.serial == serial) else {
            return;
        };
        if task.aborted {
            self.forget(self.handle(tag, serial));
            return;
        }
        task.state = TaskState::Collecting;
        self.proceed(tag);
    }

    /// Delivers a command that has all its data, or solicits more data.
    pub(super) fn proceed(&mut self, tag: u32) {
        let Some(task) = self.tasks.get(&tag) else { return };
        if task.state != TaskState::Collecting {
            return;
        }
        if task.incoming.is_done() {
            let fault = task.incoming.fault;
            match fault {
                None if self.may_deliver(tag) => self.deliver(tag),
                None => {}
                Some(fault) => self.fail_task(tag, fault),
            }
        } else if !task.incoming.unsolicited && task.incoming.fault.is_none() {
            self.solicit(tag);
        }
    }

    fn deliver(&mut self, tag: u32) {
        let connection = self.id;
        let Some(session) = self.session.as_ref().map(|session| session.nexus.session) else {
            return;
        };
        let Some(task) = self.tasks.get_mut(&tag) else { return };
        task.state = TaskState::Delivered;
        let empty = Cdb { fixed: task.cdb.fixed, extended: None };
        let command = Command {
            task: crate::event::TaskHandle { connection, tag, serial: task.serial },
            session,
            lun: task.lun,
            cdb: std::mem::replace(&mut task.cdb, empty),
            attribute: task.attribute,
            immediate: task.immediate,
            data_out: std::mem::take(&mut task.incoming.data),
            expected_out_bytes: task.expected_out,
            expected_in_bytes: task.expected_in,
        };
        self.events.push_back(Event::Command(command));
    }

    /// Allocates space for all data of a task, if there is memory.
    pub(super) fn grow(&mut self, tag: u32) -> bool {
        let Some(task) = self.tasks.get(&tag) else { return false };
        let (all, have) = (task.incoming.wanted as usize, task.incoming.data.len());
        if all == have {
            return true;
        }
        if !self.has_memory(all - have) {
            return false;
        }
        let Some(grant) = self.share().and_then(|share| share.take(all - have, self.id)) else {
            return false;
        };
        let Some(task) = self.tasks.get_mut(&tag) else { return false };
        let incoming = &mut task.incoming;
        let mut data = DataOut::new(all, incoming.data.phase());
        let mut at = 0;
        while at < incoming.received as usize {
            let piece = incoming.data.slice_from(at);
            let n = piece.len().min(incoming.received as usize - at);
            data.write_at(at, &piece[..n]);
            at += n;
        }
        incoming.granted += all - have;
        incoming.taken.merge(grant);
        incoming.data = data;
        self.granted_bytes += all - have;
        true
    }
}

fn attribute(flags: u8) -> TaskAttribute {
    match flags & 7 {
        1 => TaskAttribute::Simple,
        2 => TaskAttribute::Ordered,
        3 => TaskAttribute::HeadOfQueue,
        4 => TaskAttribute::Aca,
        _ => TaskAttribute::Untagged,
    }
}

/// Returns the CDB beyond the header, if it has more than 16 bytes (RFC 7143, 11.2.2): segments of
/// 0..2 AHSLength, 2 AHSType, 3.. content, padded to 4 bytes. Type 1: one reserved byte, then the
/// rest of the CDB.
fn extended_cdb(bhs: &Bhs, ahs: Option<&[u8]>) -> Result<Option<Box<[u8]>>, RejectReason> {
    let Some(mut rest) = ahs else { return Ok(None) };
    while let [high, low, kind, content @ ..] = rest {
        let bytes = usize::from(u16::from_be_bytes([*high, *low]));
        let segment = content.get(..bytes).ok_or(RejectReason::InvalidField)?;
        if kind & 0x3f == 1 {
            let [_, more @ ..] = segment else { return Err(RejectReason::InvalidField) };
            let mut cdb = bhs.array::<16>(32).to_vec();
            cdb.extend_from_slice(more);
            return Ok(Some(cdb.into_boxed_slice()));
        }
        let padded = (3 + bytes).next_multiple_of(4);
        rest = rest.get(padded..).unwrap_or(&[]);
    }
    Ok(None)
}
