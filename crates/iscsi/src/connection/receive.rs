//! Parses requests: which PDU it is, where its data goes, and what to do when the data is complete.

use super::{Connection, Held, Plan, StatSn};
use crate::event::Event;
use crate::login::{Login, Status};
use crate::pdu::{Bhs, NO_TAG, RejectReason, opcode};
use crate::receive::{Body, Header, Incoming, Sink};
use crate::session::{Admission, Member, Place};
use crate::target::Membership;
use crate::transmit::OutData;

/// Data of pings and texts that wait for earlier requests, in bytes.
const HELD_BYTES_MAX: usize = 65_536;
/// Up to this length the data of such a request is never refused for lack of memory.
const BODY_BYTES_FREE: usize = 4096;

impl Connection {
    /// Processes received PDUs, as far as there is space for responses, and not too many at once,
    /// because other connections wait.
    pub(super) fn process(&mut self) {
        self.take_pdus();
        let arrival = self.receive.arrival().filter(|_| !self.input_left);
        self.clock.awaits(arrival.map(|(number, _)| number));
    }

    fn take_pdus(&mut self) {
        let mut left = self.target.config().limits.pdus_per_call;
        self.input_left = false;
        while !self.closed && self.leaving.is_none() {
            if !self.takes_input() {
                return;
            }
            if left == 0 || self.is_output_full() {
                self.input_left = true;
                return;
            }
            if self.receive.in_data() {
                match self.receive.finish() {
                    Some((incoming, right)) => self.finish(incoming, right),
                    None => return,
                }
                left -= 1;
                continue;
            }
            match self.receive.header() {
                Header::Incomplete => return,
                // The following PDUs can no longer be found (RFC 7143, 7.7).
                Header::Corrupt => self.closed = true,
                Header::Complete(bhs, ahs) => self.begin(bhs, ahs.as_deref()),
            }
        }
    }

    fn begin(&mut self, bhs: Bhs, ahs: Option<&[u8]>) {
        let limits = &self.target.config().limits;
        let bytes_max = match self.login {
            Some(_) => limits.text_bytes,
            None => limits.receive_segment_bytes as usize,
        };
        if self.login.is_some() {
            if bhs.opcode() != opcode::LOGIN || bhs.data_bytes() > bytes_max {
                self.closed = true;
                return;
            }
            return self.take(bhs, Plan::Other, Sink::Bytes(Body::default()));
        }
        if bhs.data_bytes() > bytes_max {
            return self.protocol_error(&bhs);
        }
        self.note_exp_stat_sn(bhs.u32(28));
        self.receive.bulk = false;
        match bhs.opcode() {
            opcode::COMMAND => self.begin_command(bhs, ahs),
            opcode::DATA_OUT => self.begin_data_out(bhs),
            opcode::NOP_OUT | opcode::TEXT | opcode::LOGOUT | opcode::MANAGEMENT => {
                let sink = self.body_sink(bhs.data_bytes());
                self.take(bhs, Plan::Other, sink);
            }
            opcode::LOGIN => self.protocol_error(&bhs),
            // Error recovery level 0 has no SNACK (RFC 7143, 11.16).
            opcode::SNACK => self.refuse(bhs, RejectReason::Snack),
            _ => self.refuse(bhs, RejectReason::NotSupported),
        }
    }

    /// Returns where the data of a non-command request goes. Nowhere if there is no memory for it:
    /// then the request is rejected.
    fn body_sink(&self, bytes: usize) -> Sink {
        let Some(share) = self.share() else { return Sink::Bytes(Body::default()) };
        let grant = match bytes <= BODY_BYTES_FREE {
            true => Some(share.add(bytes)),
            false => share.try_take(bytes, self.id()),
        };
        grant.map_or(Sink::Discard, |grant| Sink::Bytes(Body { grant, ..Body::default() }))
    }

    /// Rejects a PDU, and discards its data.
    pub(super) fn refuse(&mut self, bhs: Bhs, reason: RejectReason) {
        self.reject(&bhs, reason);
        self.take(bhs, Plan::Ignore, Sink::Discard);
    }

    /// Receives the data of this PDU into `sink`; `plan` says what to do then.
    pub(super) fn take(&mut self, bhs: Bhs, plan: Plan, sink: Sink) {
        self.receive.begin(bhs, plan, sink);
    }

    fn finish(&mut self, incoming: Incoming<Plan>, right: bool) {
        let Incoming { bhs, plan, sink, bytes, .. } = incoming;
        match (plan, sink) {
            (Plan::Command(task, admission), sink) => {
                self.finish_command(&bhs, task, admission, sink, bytes, right);
            }
            (Plan::DataOut(serial), sink) => {
                self.finish_data_out(&bhs, serial, sink, bytes, right);
            }
            (Plan::Other, Sink::Bytes(body)) => self.finish_other(bhs, Some(body), right),
            (Plan::Other, _) => self.finish_other(bhs, None, right),
            (Plan::Ignore, _) => {}
        }
        self.release_held();
    }

    fn finish_other(&mut self, bhs: Bhs, body: Option<Body>, right: bool) {
        if self.login.is_some() {
            return self.login_request(&bhs, &body.unwrap_or_default().bytes);
        }
        // The response to the target's own ping has no tag and no place in the order.
        let answer = bhs.opcode() == opcode::NOP_OUT && bhs.task_tag() == NO_TAG;
        let (admission, place) = match answer {
            true => (Admission::Now, Place::default()),
            false => self.admit(&bhs, None),
        };
        if admission == Admission::Dropped {
            return;
        }
        if !right {
            // Its content is unknown; its number counts as received (RFC 7143, 7.8).
            return self.reject(&bhs, RejectReason::DataDigest);
        }
        // Rejected for lack of resources; it may be sent again (RFC 7143, 11.17.1).
        let Some(body) = body else { return self.reject(&bhs, RejectReason::LongOperation) };
        match admission {
            Admission::Held if self.held_bytes + body.bytes.len() > HELD_BYTES_MAX => {
                // No valid initiator sends so much out of order.
                self.protocol_error(&bhs);
            }
            Admission::Held => {
                self.held_bytes += body.bytes.len();
                self.held.push((bhs.cmd_sn(), Held::Other(bhs, body, place)));
            }
            _ => self.execute(&bhs, body, place),
        }
    }

    fn login_request(&mut self, bhs: &Bhs, data: &[u8]) {
        let Some(mut login) = self.login.take() else { return };
        let reply = login.request(bhs, data, self.clock.now());
        let reply = match reply {
            Ok(reply) if !reply.complete => {
                self.login = Some(login);
                self.send(reply.bhs, OutData::Bytes(reply.text), StatSn::Advance);
                return;
            }
            Ok(reply) => self.enter_full_feature(&login, reply.bhs).map(|bhs| (bhs, reply.text)),
            Err(status) => Err(status),
        };
        match reply {
            Ok((bhs, text)) => {
                self.send(bhs, OutData::Bytes(text), StatSn::Advance);
                self.set_digests();
            }
            Err(status) => {
                self.events.extend(login.refused(status));
                if login.is_spent() {
                    self.complain("too many failed authentications from its address");
                }
                self.login = Some(login);
                let refusal = Login::refusal(bhs, status);
                self.send(refusal, OutData::None, StatSn::Advance);
                self.closed = true;
            }
        }
    }

    fn enter_full_feature(&mut self, login: &Login, mut answer: Bhs) -> Result<Bhs, Status> {
        let (closing, progress) = (self.closing.clone(), self.progress.clone());
        let member = Member { cid: login.cid(), id: self.id, closing, progress };
        let established = self.target.establish(&login.claim(), member)?;
        let nexus = established.session.nexus.clone();
        answer.put(14, &nexus.tsih.to_be_bytes());
        self.params = login.params();
        self.session = Some(established.session);
        // First, because the layer above may have to wait for the connections that are woken.
        self.wake.extend(established.wake);
        self.tell_wakes();
        self.events.push_back(match established.membership {
            Membership::First { replaces } => Event::SessionStarted { nexus, replaces },
            Membership::Further { replaces } => Event::ConnectionAdded { nexus, replaces },
        });
        Ok(answer)
    }
}
