//! Responses and messages of a target, except data (RFC 7143, 11.4, 11.6, 11.9, 11.11, 11.15, 11.17
//! and 11.19).

use crate::event::{Answer, Event, Itt, Nop, Residual};
use crate::initiator::{Initiator, Phase, check_shape};
use crate::pdu::{BHS_BYTES, Bhs, FINAL, IMMEDIATE, NO_TAG, opcode};
use crate::task::{Ends, Function, Pending};
use crate::text;
use crate::violation::Violation;

const CONTINUE: u8 = 0x40;
const CHECK_CONDITION: u8 = 0x02;
/// Reason of a reject (11.17.1): wrong data digest. The command gets a response nevertheless.
const REJECTED_DATA_DIGEST: u8 = 0x02;

impl Initiator {
    /// SCSI Response: flags o 10h, u 08h, O 04h, U 02h; 2 response, 3 status, 36 ExpDataSN, 44
    /// Residual Count. Data: 0..2 SenseLength, sense.
    pub(crate) fn response(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        check_shape(bhs, true)?;
        let (opcode, itt) = (bhs.opcode(), bhs.itt());
        let task = self.command_asked(bhs)?;
        let sent = task.data_pdus + task.r2ts;
        let completed = bhs.0[2] == 0;
        let got = bhs.u32(36);
        if completed && got != sent {
            return Err(Violation::ExpDataSn { itt, got, sent });
        }
        let sense = sense(data)?;
        if completed && bhs.0[3] == CHECK_CONDITION && sense.is_empty() {
            return Err(Violation::field(opcode, "CHECK CONDITION without sense", "11.4.7"));
        }
        self.finish(bhs, sense)
    }

    /// Handles the last PDU of a command: a response, or Data-In with status.
    pub(crate) fn finish(&mut self, bhs: &Bhs, sense: Vec<u8>) -> Result<(), Violation> {
        let (opcode, itt) = (bhs.opcode(), bhs.itt());
        let residual = residual(bhs)?;
        let Pending::Command(task) = self.take_asked(bhs)? else {
            return Err(Violation::NeverAsked { opcode, itt });
        };
        let response = if opcode == opcode::RESPONSE { bhs.0[2] } else { 0 };
        let status = bhs.0[3];
        if response == 0 {
            task.check_residual(itt, status, residual)?;
        }
        let data_in = task.data_in;
        let answer = Answer { itt: Itt(itt), response, status, sense, data_in, residual };
        self.events.push_back(Event::Answered(answer));
        Ok(())
    }

    /// Task Management Function Response: 2 response.
    pub(crate) fn management_response(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        check_shape(bhs, false)?;
        let (opcode, itt, response) = (bhs.opcode(), bhs.itt(), bhs.0[2]);
        let Pending::Management(ends, lun) = self.take_asked(bhs)? else {
            return Err(Violation::NeverAsked { opcode, itt });
        };
        if !matches!(response, 0..=6 | 255) {
            return Err(Violation::field(opcode, "an unknown response code", "11.6.1"));
        }
        let ended = self.ended_by(itt, ends, lun, response);
        self.conclude(&ended);
        self.events.push_back(Event::TaskManagementAnswered { itt: Itt(itt), response, ended });
        Ok(())
    }

    /// Notes that no more PDUs may arrive for these commands.
    pub(crate) fn conclude(&mut self, ended: &[Itt]) {
        for task in ended {
            self.pending.remove(&task.0);
            self.ended.insert(task.0);
        }
    }

    /// Returns the commands that the request with this tag has aborted. A task that "does not
    /// exist" (1) was aborted by another request, possibly on another connection.
    pub(crate) fn ended_by(
        &self,
        request: u32,
        ends: Ends,
        lun: [u8; 8],
        response: u8,
    ) -> Vec<Itt> {
        let is_ended = |tag: u32, of: [u8; 8]| match ends {
            Ends::Task(task) => tag == task && response <= 1,
            Ends::Set(Function::ClearAca) => false,
            Ends::Set(Function::TargetWarmReset | Function::TargetColdReset) => response == 0,
            Ends::Set(_) => response == 0 && of == lun,
        };
        let before = self.pending.range(..request);
        before
            .filter(|(tag, pending)| match pending {
                Pending::Command(task) => is_ended(**tag, task.lun),
                _ => false,
            })
            .map(|(tag, _)| Itt(*tag))
            .collect()
    }

    /// NOP-In: 8 LUN, 20 TTT.
    pub(crate) fn nop_in(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let is_answer = bhs.itt() != NO_TAG;
        check_shape(bhs, is_answer)?;
        let (opcode, itt) = (bhs.opcode(), bhs.itt());
        if is_answer {
            let Pending::Nop(sent) = self.take_asked(bhs)? else {
                return Err(Violation::NeverAsked { opcode, itt });
            };
            if bhs.ttt() != NO_TAG {
                return Err(Violation::field(
                    opcode,
                    "a response that requests a response",
                    "11.19.1",
                ));
            }
            if sent != data {
                return Err(Violation::Echo);
            }
            self.events.push_back(Event::Nop(Nop::Answered { itt: Itt(itt) }));
        } else if bhs.ttt() == NO_TAG {
            self.events.push_back(Event::Nop(Nop::Told));
        } else {
            if self.options.answers_pings && self.is_logged_in() {
                let mut answer = Bhs::new(opcode::NOP_OUT | IMMEDIATE, FINAL);
                answer.put(8, &bhs.array::<8>(8));
                answer.put_u32(16, NO_TAG);
                answer.put_u32(20, bhs.ttt());
                self.number(&mut answer);
                self.outgoing.push(&self.terms, answer, &[], &[]);
            }
            self.events.push_back(Event::Nop(Nop::Asked));
        }
        Ok(())
    }

    /// Text Response: flags F, C 40h; 8 LUN, 20 TTT.
    pub(crate) fn text_response(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        let (opcode, itt) = (bhs.opcode(), bhs.itt());
        let Pending::Text(mut whole) = self.take_asked(bhs)? else {
            return Err(Violation::NeverAsked { opcode, itt });
        };
        whole.extend_from_slice(data);
        let wrong = |what| Err(Violation::field(opcode, what, "11.11"));
        if bhs.is_final() && bhs.flags() & CONTINUE != 0 {
            return wrong("F and C");
        }
        if bhs.is_final() != (bhs.ttt() == NO_TAG) {
            return wrong("the Target Transfer Tag does not match F");
        }
        if bhs.is_final() {
            let pairs = text::parse(&whole)?;
            self.events.push_back(Event::Text { itt: Itt(itt), pairs });
            return Ok(());
        }
        let mut more = Bhs::new(opcode::TEXT | IMMEDIATE, FINAL);
        more.put(8, &bhs.array::<8>(8));
        more.put_u32(16, itt);
        more.put_u32(20, bhs.ttt());
        self.number(&mut more);
        self.outgoing.push(&self.terms, more, &[], &[]);
        self.pending.insert(itt, Pending::Text(whole));
        Ok(())
    }

    /// Logout Response: 2 response.
    pub(crate) fn logout_response(&mut self, bhs: &Bhs) -> Result<(), Violation> {
        check_shape(bhs, false)?;
        let (opcode, itt, response) = (bhs.opcode(), bhs.itt(), bhs.0[2]);
        let Pending::Logout(reason) = self.take_asked(bhs)? else {
            return Err(Violation::NeverAsked { opcode, itt });
        };
        if response > 3 {
            return Err(Violation::field(opcode, "an unknown response code", "11.15.1"));
        }
        if response == 0 && self.is_of_this(reason) {
            self.phase = Phase::Over;
        }
        self.events.push_back(Event::LoggedOut { response });
        Ok(())
    }

    /// Reject: 2 reason, 16 FFFFFFFFh. Data: the header of the rejected PDU.
    pub(crate) fn reject(&mut self, bhs: &Bhs, data: &[u8]) -> Result<(), Violation> {
        check_shape(bhs, true)?;
        let wrong = |what| Err(Violation::field(opcode::REJECT, what, "11.17"));
        let Some(header) = data.first_chunk::<BHS_BYTES>() else {
            return wrong("it does not contain the header");
        };
        if bhs.itt() != NO_TAG {
            return wrong("it has a tag");
        }
        let (reason, rejected) = (bhs.0[2], Bhs(*header));
        if reason != REJECTED_DATA_DIGEST && rejected.opcode() != opcode::DATA_OUT {
            // It never became a task (11.17.1).
            if self.pending.remove(&rejected.itt()).is_some() {
                self.ended.insert(rejected.itt());
            }
        }
        self.events.push_back(Event::Rejected { reason, header: *header });
        Ok(())
    }

    /// Asynchronous Message: 36 AsyncEvent, 38 Parameter1 to Parameter3.
    pub(crate) fn async_message(&mut self, bhs: &Bhs, data: Vec<u8>) -> Result<(), Violation> {
        check_shape(bhs, true)?;
        if bhs.itt() != NO_TAG {
            return Err(Violation::field(bhs.opcode(), "it has a tag", "11.9"));
        }
        let parameters = [bhs.u16(38), bhs.u16(40), bhs.u16(42)];
        self.events.push_back(Event::AsyncMessage { event: bhs.0[36], parameters, data });
        Ok(())
    }
}

fn sense(data: &[u8]) -> Result<Vec<u8>, Violation> {
    let Some((length, rest)) = data.split_first_chunk::<2>() else {
        return match data.is_empty() {
            true => Ok(Vec::new()),
            false => Err(Violation::field(opcode::RESPONSE, "half a SenseLength", "11.4.7.1")),
        };
    };
    let sense = rest.get(..usize::from(u16::from_be_bytes(*length)));
    let sense = sense.map(<[u8]>::to_vec);
    sense.ok_or(Violation::field(opcode::RESPONSE, "SenseLength beyond the data", "11.4.7.1"))
}

fn residual(bhs: &Bhs) -> Result<Residual, Violation> {
    let (flags, count) = (bhs.flags(), bhs.u32(44));
    let wrong = |what| Err(Violation::field(bhs.opcode(), what, "11.4.5"));
    if flags & 0x18 != 0 && bhs.opcode() == opcode::RESPONSE {
        return wrong("a residual of a bidirectional command");
    }
    match (flags & 0x06, count) {
        (0x06, _) => wrong("underflow and overflow"),
        (0x02 | 0x04, 0) => wrong("a residual of 0"),
        (0x02, count) => Ok(Residual::Underflow(count)),
        (0x04, count) => Ok(Residual::Overflow(count)),
        (_, 0) => Ok(Residual::None),
        _ => wrong("a residual count without its flag"),
    }
}
