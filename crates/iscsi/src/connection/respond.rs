//! Responses to commands: Data-In, status, residuals (RFC 7143, 11.4 and 11.7).

use block::DataIn;

use super::{Connection, StatSn};
use crate::budget::Grant;
use crate::event::{TaskHandle, TaskResponse};
use crate::pdu::Bhs;
use crate::pdu::build::{self, Residual};
use crate::session::Place;
use crate::task::{DataFault, Task};
use crate::transmit::OutData;

const GOOD: u8 = 0x00;
/// The most sense data that is sent (SPC-4, 4.5.1).
const SENSE_BYTES_MAX: usize = 252;
/// The most data of one Data-In, however much the initiator accepts: other responses wait for it.
const SEGMENT_BYTES_MAX: u32 = 262_144;

impl Connection {
    /// Responds to a command. Nothing is sent for one that was aborted or no longer exists, so
    /// every [`crate::Event::Command`] may be completed, and must be, to free its place
    /// ([`Connection::forget`] does so too).
    pub fn respond(&mut self, task: TaskHandle, response: TaskResponse) {
        if let Some(done) = self.remove(task) {
            if !done.aborted && !self.closed {
                self.answer(task.tag, &done, response);
            }
            self.feed_starved();
            self.deliver_waiting();
        }
    }

    /// Frees an aborted command that has ended. Nothing is sent.
    pub fn forget(&mut self, task: TaskHandle) {
        if self.remove(task).is_some() {
            self.feed_starved();
            self.deliver_waiting();
        }
    }

    /// Responds to a command whose data was wrong.
    pub(super) fn fail_task(&mut self, tag: u32, fault: DataFault) {
        let Some(serial) = self.tasks.get(&tag).map(|task| task.serial) else { return };
        let handle = self.handle(tag, serial);
        let (status, sense) = fault.status();
        self.respond(handle, TaskResponse { status, sense, ..TaskResponse::default() });
    }

    /// Reserves memory for a command's data-in, until its response was sent. Returns false if there
    /// is none: retry when the connection is woken ([`crate::Event::Wake`]).
    pub fn reserve(&mut self, task: TaskHandle, bytes: usize) -> bool {
        let tag = task.tag;
        let Some(found) = self.tasks.get_mut(&tag).filter(|found| found.serial == task.serial)
        else {
            return true; // it is not wanted any more
        };
        // A task that holds memory must not wait for more, because similar tasks may hold the rest.
        // A read back is about as long as the data that it is for.
        let must = found.incoming.taken.bytes().saturating_mul(8) >= bytes;
        let Some(share) = self.session.as_ref().map(|session| &session.share) else { return true };
        let granted = if must { Some(share.add(bytes)) } else { share.take(bytes, self.id) };
        found.incoming.waits = granted.is_none();
        granted.map(|grant| found.incoming.taken.merge(grant)).is_some()
    }

    fn remove(&mut self, handle: TaskHandle) -> Option<Task> {
        let tag = handle.tag;
        let there = self.tasks.get(&tag).is_some_and(|task| task.serial == handle.serial);
        if !there || handle.connection != self.id {
            return None;
        }
        let mut task = self.tasks.remove(&tag)?;
        self.release(&mut task);
        Some(task)
    }

    /// Returns the memory of a task.
    pub(super) fn release(&mut self, task: &mut Task) {
        self.granted_bytes -= task.incoming.granted;
        if let Some(share) = self.share().filter(|_| task.incoming.waits) {
            share.forget(self.id);
        }
        self.drop_data(task.serial);
        task.incoming.taken = Grant::default();
        task.place = Place::default();
        self.tell_wakes();
    }

    fn answer(&mut self, tag: u32, task: &Task, response: TaskResponse) {
        let TaskResponse { status, sense, mut data, transfer_bytes_wanted, acknowledge } = response;
        let expected = task.expected_out.max(task.expected_in);
        let unsaid = match task.expected_out {
            0 => data.len() as u64,
            _ => task.transfer_out.unwrap_or(u64::from(expected)),
        };
        let residual = Residual::of(expected, transfer_bytes_wanted.unwrap_or(unsaid));
        data.truncate(task.expected_in as usize);
        let collapse = status == GOOD && sense.is_empty() && !data.is_empty();
        let data_in = self.send_data(tag, data, collapse.then_some((status, residual)));
        if collapse {
            return self.await_acknowledgement(acknowledge);
        }
        let bhs = build::response(tag, status, residual, data_in + task.incoming.asked);
        let data = if sense.is_empty() {
            OutData::None
        } else {
            let sense = &sense[..sense.len().min(SENSE_BYTES_MAX)];
            let mut bytes = (sense.len() as u16).to_be_bytes().to_vec();
            bytes.extend_from_slice(sense);
            OutData::Bytes(bytes)
        };
        self.send(bhs, data, StatSn::Advance);
        self.await_acknowledgement(acknowledge);
    }

    /// Sends data in segments, the last one with the status if it can carry one.
    fn send_data(&mut self, tag: u32, mut data: DataIn, last: Option<(u8, Residual)>) -> u32 {
        let segment = self.params.send_segment_bytes.min(SEGMENT_BYTES_MAX) & !3;
        let burst = self.params.burst_bytes;
        let (mut sn, mut offset) = (0, 0u32);
        while !data.is_empty() {
            let in_burst = burst - offset % burst;
            let bytes = (data.len() as u32).min(segment).min(in_burst);
            let piece = if bytes as usize == data.len() {
                std::mem::take(&mut data)
            } else {
                data.split_front(bytes as usize)
            };
            let is_last = data.is_empty();
            let mut bhs = build::data_in(tag, sn, offset, is_last || bytes == in_burst);
            let mut stat_sn = StatSn::Absent;
            if let (true, Some((status, residual))) = (is_last, last) {
                build::collapse(&mut bhs, status, residual);
                stat_sn = StatSn::Advance;
            }
            self.send(bhs, OutData::Data(piece), stat_sn);
            sn += 1;
            offset += bytes;
        }
        sn
    }

    /// Sends a response. The one to a logout is the last on its connection (RFC 7143, 11.15).
    pub(super) fn send(&mut self, mut bhs: Bhs, data: OutData, stat_sn: StatSn) {
        if self.logged_out {
            return;
        }
        if stat_sn != StatSn::Absent {
            bhs.put_u32(24, self.stat_sn);
        }
        let sent = self.progress.send();
        if stat_sn == StatSn::Advance {
            self.stat_sn = self.stat_sn.wrapping_add(1);
            self.sent_with_status = sent;
        }
        let (expected, max) = match (&self.session, &self.login) {
            (Some(session), _) => (session.expected(), session.max()),
            (None, Some(login)) => login.window(),
            (None, None) => (0, 0),
        };
        bhs.put_u32(28, expected);
        bhs.put_u32(32, max);
        self.transmit.push(bhs, data);
        self.clock.has_output();
        self.share_output();
    }
}
