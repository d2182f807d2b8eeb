//! Requests other than commands: ping, logout, and other ordered requests.

use super::{Connection, StatSn};
use crate::event::ManagementFunction;
use crate::pdu::{Bhs, NO_TAG, build, opcode};
use crate::receive::Body;
use crate::session::Place;
use crate::transmit::OutData;

/// Logout reasons (RFC 7143, 11.14.1) and responses (11.15.1).
const CLOSE_SESSION: u8 = 0;
const CLOSE_CONNECTION: u8 = 1;
const LOGOUT_DONE: u8 = 0;
const LOGOUT_NO_CID: u8 = 1;
const LOGOUT_NO_RECOVERY: u8 = 2;

impl Connection {
    /// Executes a request whose turn has come.
    pub(super) fn execute(&mut self, bhs: &Bhs, body: Body, place: Place) {
        let is_management = bhs.opcode() == opcode::MANAGEMENT;
        if is_management && self.nexus().is_some_and(|nexus| nexus.discovery) {
            return self.protocol_error(bhs);
        }
        if is_management {
            return self.manage(bhs, place);
        }
        if bhs.opcode() == opcode::LOGOUT {
            return self.logout(bhs, place);
        }
        drop(place); // these are answered at once
        match bhs.opcode() {
            opcode::NOP_OUT if bhs.task_tag() == NO_TAG => self.note_sign(bhs.u32(20)),
            opcode::NOP_OUT => self.ping(bhs, body),
            opcode::TEXT => self.text_request(bhs, body),
            _ => {}
        }
    }

    /// NOP-Out (RFC 7143, 11.18): returns its data, as much as the initiator accepts.
    fn ping(&mut self, bhs: &Bhs, body: Body) {
        let mut data = body.bytes;
        data.truncate(self.params.send_segment_bytes as usize);
        let answer = build::nop_in(bhs.lun(), bhs.task_tag(), NO_TAG);
        let data = if data.is_empty() { OutData::None } else { OutData::Bytes(data) };
        self.send(answer, data, StatSn::Advance);
    }

    /// Logout (RFC 7143, 11.14): 1 reason, 20 CID. It ends tasks (7.5), so its response is sent
    /// when these have ended: it is passed to the layer above, and no more input is processed
    /// meanwhile.
    fn logout(&mut self, bhs: &Bhs, place: Place) {
        let Some(session) = self.session.clone() else { return };
        let cid = bhs.u16(20);
        let (reason, tag) = (bhs.flags() & 0x7f, bhs.task_tag());
        let function = match (reason, session.member(cid)) {
            (CLOSE_SESSION, _) => Ok(ManagementFunction::LogoutSession),
            (CLOSE_CONNECTION, Some(connection)) => {
                Ok(ManagementFunction::LogoutConnection { connection })
            }
            (CLOSE_CONNECTION, None) => Err(LOGOUT_NO_CID),
            _ => Err(LOGOUT_NO_RECOVERY),
        };
        match function {
            Ok(function) if !session.nexus.discovery => {
                let handle = self.pass_on(bhs, session.nexus.session, place, function);
                self.leaving = Some((handle, function));
            }
            // The place is freed before the response is sent (MaxCmdSN).
            Ok(function) => {
                drop(place);
                self.log_out(tag, function);
            }
            Err(response) => {
                drop(place);
                self.answer_logout(tag, response);
            }
        }
    }

    fn answer_logout(&mut self, tag: u32, response: u8) {
        self.send(build::logout(tag, response), OutData::None, StatSn::Advance);
    }

    /// Completes a logout whose tasks have ended: closes connections, and responds.
    pub(super) fn log_out(&mut self, tag: u32, function: ManagementFunction) {
        let Some(session) = self.session.clone() else { return };
        self.leaving = None;
        let closes = match function {
            ManagementFunction::LogoutConnection { connection } if connection != self.id => {
                session.close_member(connection, &mut self.wake);
                false
            }
            ManagementFunction::LogoutConnection { .. } => true,
            _ => {
                self.target.kill(&session, &mut self.wake);
                true
            }
        };
        self.tell_wakes();
        self.answer_logout(tag, LOGOUT_DONE);
        self.logged_out = closes;
        self.closed |= closes;
        // Process the input that followed it.
        self.input_left |= !closes;
    }

    /// Requests the initiator to log out within `seconds` (asynchronous message 1; RFC 7143,
    /// 11.9.1).
    pub fn request_logout(&mut self, seconds: u16) {
        if self.session.is_some() && !self.closed {
            self.send(build::logout_wanted(seconds), OutData::None, StatSn::Advance);
        }
    }
}
