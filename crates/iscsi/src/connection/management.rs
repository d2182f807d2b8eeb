//! Task management (RFC 7143, 11.5 and 11.6).
//!
//! A request that aborts several tasks waits for earlier requests that are in transit on other
//! connections of its session, and aborts none that comes after it. Its response is sent when the
//! initiator has received all responses that were sent before, on any connection (RFC 7143, 4.2.3.3
//! and 11.5.1).
//!
//! Request: 1 function 7Fh, 8..16 LUN, 20..24 Referenced Task Tag, 32..36 RefCmdSN.

use block::DataOut;

use super::{Connection, Held, Plan, StatSn};
use crate::budget::Grant;
use crate::event::{
    Event, ManagementFunction, ManagementHandle, ManagementOutcome, TaskHandle, TaskManagement,
};
use crate::pdu::{Bhs, RejectReason, build};
use crate::session::fence::Fence;
use crate::session::{Admission, Place, before};
use crate::task::{Task, TaskState};
use crate::transmit::OutData;

/// Responses (11.6.1).
const COMPLETE: u8 = 0;
const NO_SUCH_TASK: u8 = 1;
const NO_REASSIGNMENT: u8 = 4;
const NOT_SUPPORTED: u8 = 5;

/// The order of a request that aborts its tasks whenever they arrived.
const IN_NO_ORDER: u64 = u64::MAX;

/// A request that waits for requests of other connections: its header, the last task before it on
/// this connection, and its function.
pub(super) struct Behind(Bhs, u32, Place, ManagementFunction);

/// A delayed response: its tag and response code, and what it waits for.
pub(super) struct Fenced(u32, u8, Place, Fence);

impl Connection {
    /// Responds to a task management request; once.
    pub fn respond_management(&mut self, handle: ManagementHandle, outcome: ManagementOutcome) {
        let Some(at) = self.managements.iter().position(|(pending, _)| *pending == handle) else {
            return;
        };
        let (_, place) = self.managements.swap_remove(at);
        if let Some((_, function)) = self.leaving.filter(|(leaving, _)| *leaving == handle) {
            drop(place); // the response's MaxCmdSN includes it
            return self.log_out(handle.tag, function);
        }
        let response = match outcome {
            ManagementOutcome::Complete => COMPLETE,
            ManagementOutcome::TaskDoesNotExist => NO_SUCH_TASK,
            ManagementOutcome::LunDoesNotExist => 2,
            ManagementOutcome::NotSupported => NOT_SUPPORTED,
            ManagementOutcome::AuthorizationFailed => 6,
            ManagementOutcome::Rejected => 255,
        };
        // If the session has ended, responses on other connections will not be acknowledged.
        if self.is_closed() {
            return;
        }
        let session = self.session.as_ref().filter(|_| handle.order != IN_NO_ORDER);
        let fence = session.and_then(|session| session.fence(self.id, &mut self.wake));
        match fence {
            None => self.answer_management(handle.tag, response, place),
            Some(fence) => self.fenced.push(Fenced(handle.tag, response, place, fence)),
        }
        self.tell_wakes();
    }

    /// Sends the responses that have nothing left to wait for.
    pub(super) fn answer_fenced(&mut self) {
        if self.fenced.is_empty() {
            return;
        }
        for Fenced(tag, response, place, fence) in std::mem::take(&mut self.fenced) {
            match fence.is_open() {
                true => self.answer_management(tag, response, place),
                false => self.fenced.push(Fenced(tag, response, place, fence)),
            }
        }
        if let Some(session) = self.session.as_ref().filter(|_| self.fenced.is_empty()) {
            session.unfence(self.id);
        }
    }

    fn answer_management(&mut self, tag: u32, response: u8, place: Place) {
        drop(place); // the response's MaxCmdSN includes it
        self.send(build::management(tag, response), OutData::None, StatSn::Advance);
    }

    /// Aborts tasks because of a request on another connection: those that `ends` selects, by
    /// handle and by the logical unit as encoded in the PDU. Returns those in the layer above,
    /// including those that an earlier request aborted and that have not ended yet: nothing will be
    /// sent for them, and [`Connection::forget`] or [`Connection::respond`] frees them.
    pub fn abort(&mut self, mut ends: impl FnMut(TaskHandle, [u8; 8]) -> bool) -> Vec<TaskHandle> {
        let connection = self.id;
        self.abort_where(|tag, task| {
            let handle = TaskHandle { connection, tag, serial: task.serial };
            ends(handle, task.lun)
        })
    }

    /// Aborts tasks because of a request of the same session: only those that came before it.
    pub fn abort_before(
        &mut self,
        request: ManagementHandle,
        mut ends: impl FnMut(TaskHandle, [u8; 8]) -> bool,
    ) -> Vec<TaskHandle> {
        let connection = self.id;
        let is_own = request.connection == connection;
        let is_ordered = request.order != IN_NO_ORDER;
        self.abort_where(|tag, task| {
            let came = match (is_own, task.place.turn()) {
                (false, Some(turn)) => turn.is_before(request.order),
                (true, Some(turn)) if is_ordered && turn.is_numbered_before(request.order) => true,
                _ => !is_own || !before(request.after, task.serial),
            };
            came && ends(TaskHandle { connection, tag, serial: task.serial }, task.lun)
        })
    }

    fn abort_where(&mut self, mut ends: impl FnMut(u32, &Task) -> bool) -> Vec<TaskHandle> {
        let mut affected = Vec::new();
        let (mut gone, mut unwanted) = (Vec::new(), Vec::new());
        for (tag, task) in &mut self.tasks {
            if !ends(*tag, task) {
                continue;
            }
            if task.state == TaskState::Delivered {
                task.aborted = true;
                affected.push((*tag, task.serial));
            } else if task.state == TaskState::Held {
                // Its place is freed when its number's turn has come: if it were freed before, the
                // window would grow with each abort.
                task.aborted = true;
                unwanted.push(task.serial);
                task.incoming.data = DataOut::default();
                task.incoming.taken = Grant::default();
            } else {
                gone.push(*tag);
            }
        }
        // Its number counts as received, but its data is still arriving.
        if let Some((tag, Plan::Command(task, _))) = self.receive.arriving()
            && ends(tag, task)
        {
            task.aborted = true;
        }
        for serial in unwanted {
            self.drop_data(serial);
        }
        for tag in gone {
            if let Some(mut task) = self.tasks.remove(&tag) {
                self.release(&mut task);
            }
        }
        self.feed_starved();
        self.deliver_waiting();
        affected.into_iter().map(|(tag, serial)| self.handle(tag, serial)).collect()
    }

    /// Executes a task management request, or passes it to the layer above.
    pub(super) fn manage(&mut self, bhs: &Bhs, place: Place) {
        let Some(session) = self.session.as_ref().map(|session| session.nexus.session) else {
            return;
        };
        let Some(immediate) = self.immediate_place(bhs, None) else {
            return self.reject(bhs, RejectReason::TooManyImmediate);
        };
        let place = if bhs.immediate() { immediate } else { place };
        let function = match bhs.flags() & 0x7f {
            1 => return self.abort_task(bhs, session, place),
            2 => ManagementFunction::AbortTaskSet,
            4 => ManagementFunction::ClearTaskSet,
            5 => ManagementFunction::LogicalUnitReset,
            6 => ManagementFunction::TargetWarmReset,
            8 => return self.manage_at_once(bhs, place, NO_REASSIGNMENT),
            // This includes TARGET COLD RESET (7), which would end the sessions of all initiators.
            _ => return self.manage_at_once(bhs, place, NOT_SUPPORTED),
        };
        let behind = Behind(*bhs, self.next_serial, place, function);
        self.manage_in_order(behind);
    }

    /// Passes a request on if all earlier ones were received; otherwise it waits.
    fn manage_in_order(&mut self, Behind(bhs, after, place, function): Behind) {
        let Some(session) = &self.session else { return };
        let number = bhs.cmd_sn();
        if bhs.immediate() && !session.is_complete_before(number, self.id) {
            return self.behind.push(Behind(bhs, after, place, function));
        }
        let order = session.order_of(number);
        let session = session.nexus.session;
        let handle = ManagementHandle { connection: self.id, tag: bhs.task_tag(), after, order };
        self.pass_on_as(handle, bhs.lun(), session, place, function);
    }

    /// Continues requests that waited for earlier ones.
    pub(super) fn manage_waiting(&mut self) {
        if !self.closed && self.leaving.is_none() && !self.behind.is_empty() {
            for behind in std::mem::take(&mut self.behind) {
                self.manage_in_order(behind);
            }
        }
    }

    fn abort_task(&mut self, bhs: &Bhs, session: crate::event::SessionId, place: Place) {
        let (tag, ref_cmd_sn) = (bhs.u32(20), bhs.u32(32));
        if self.tasks.contains_key(&tag) {
            let affected = self.abort_where(|other, _| other == tag);
            return match affected.first().copied() {
                Some(task) => {
                    let function = ManagementFunction::AbortTask { task };
                    self.pass_on(bhs, session, place, function);
                }
                // It was still waiting for its data or its turn.
                None => self.manage_at_once(bhs, place, COMPLETE),
            };
        }
        let awaited = self.session.as_ref().is_some_and(|session| session.is_awaited(ref_cmd_sn));
        if !awaited {
            return self.manage_at_once(bhs, place, NO_SUCH_TASK);
        }
        // It has not arrived yet: its number counts as received, so that it never will (11.6.1).
        let mut ghost = Bhs::answer(0, 0);
        ghost.put_u32(24, ref_cmd_sn);
        if let (Admission::Held, its_place) = self.admit(&ghost, None) {
            self.held.push((ref_cmd_sn, Held::Nothing(its_place)));
        }
        self.manage_at_once(bhs, place, COMPLETE);
    }

    fn manage_at_once(&mut self, bhs: &Bhs, place: Place, response: u8) {
        drop(place);
        let bhs = build::management(bhs.task_tag(), response);
        self.send(bhs, OutData::None, StatSn::Advance);
    }

    pub(super) fn pass_on(
        &mut self,
        bhs: &Bhs,
        session: crate::event::SessionId,
        place: Place,
        function: ManagementFunction,
    ) -> ManagementHandle {
        // The tasks that a logout or an abort ends do not depend on its number.
        let (after, order) = (self.next_serial, IN_NO_ORDER);
        let handle = ManagementHandle { connection: self.id, tag: bhs.task_tag(), after, order };
        self.pass_on_as(handle, bhs.lun(), session, place, function);
        handle
    }

    fn pass_on_as(
        &mut self,
        handle: ManagementHandle,
        lun: [u8; 8],
        session: crate::event::SessionId,
        place: Place,
        function: ManagementFunction,
    ) {
        self.managements.push((handle, place));
        let request = TaskManagement { handle, session, function, lun };
        self.events.push_back(Event::TaskManagement(request));
    }
}
