//! The requests that are not commands: ping, logout, and what else has its place in the order.

use super::{Connection, StatSn};
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
    /// Carries out a request whose turn has come.
    pub(super) fn execute(&mut self, bhs: &Bhs, body: Body, place: Place) {
        let is_management = bhs.opcode() == opcode::MANAGEMENT;
        if is_management && self.nexus().is_some_and(|nexus| nexus.discovery) {
            return self.protocol_error(bhs);
        }
        if is_management {
            return self.manage(bhs, place);
        }
        drop(place); // these are answered at once
        match bhs.opcode() {
            opcode::NOP_OUT if bhs.task_tag() == NO_TAG => {}
            opcode::NOP_OUT => self.ping(bhs, body),
            opcode::TEXT => self.text_request(bhs, body),
            opcode::LOGOUT => self.logout(bhs),
            _ => {}
        }
    }

    /// NOP-Out (RFC 7143, 11.18): its data comes back, as much as the initiator takes.
    fn ping(&mut self, bhs: &Bhs, body: Body) {
        let mut data = body.bytes;
        data.truncate(self.params.send_segment_bytes as usize);
        let answer = build::nop_in(bhs.lun(), bhs.task_tag(), NO_TAG);
        let data = if data.is_empty() { OutData::None } else { OutData::Bytes(data) };
        self.send(answer, data, StatSn::Advance);
    }

    /// Logout (RFC 7143, 11.14): 1 reason, 20 CID.
    fn logout(&mut self, bhs: &Bhs) {
        let Some(session) = self.session.clone() else { return };
        let cid = bhs.u16(20);
        let mut close = false;
        let response = match bhs.flags() & 0x7f {
            CLOSE_SESSION => {
                self.target.kill(&session, &mut self.wake);
                close = true;
                LOGOUT_DONE
            }
            CLOSE_CONNECTION if session.cid_of(self.id) == Some(cid) => {
                close = true;
                LOGOUT_DONE
            }
            CLOSE_CONNECTION if session.close_member(cid, &mut self.wake) => LOGOUT_DONE,
            CLOSE_CONNECTION => LOGOUT_NO_CID,
            _ => LOGOUT_NO_RECOVERY,
        };
        self.tell_wakes();
        self.send(build::logout(bhs.task_tag(), response), OutData::None, StatSn::Advance);
        if close {
            self.logged_out = true;
            self.closed = true;
        }
    }

    /// Asks the initiator to log out within `seconds` (asynchronous message 1; RFC 7143, 11.9.1).
    pub fn request_logout(&mut self, seconds: u16) {
        if self.session.is_some() && !self.closed {
            self.send(build::logout_wanted(seconds), OutData::None, StatSn::Advance);
        }
    }
}
