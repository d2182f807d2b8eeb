//! How hosts process responses.

use std::time::Duration;

use initiator::{Answer, Event, Itt, LogoutReason, Nop};

use super::attentions::Code;
use super::command::Command;
use super::path::{Asked, Flight};
use super::{SimHosts, cdb};
use crate::array::network::Network;
use crate::rng::mix;

/// Sense keys (SPC-4, 4.5.6).
const NOT_READY: u8 = 0x2;
const MEDIUM_ERROR: u8 = 0x3;
const ILLEGAL_REQUEST: u8 = 0x5;
const UNIT_ATTENTION: u8 = 0x6;
const MISCOMPARE: u8 = 0xe;

/// Reason of a reject (RFC 7143, 11.17.1).
const TOO_MANY_IMMEDIATE: u8 = 6;

/// The response to a task management function that is not supported (RFC 7143, 11.6.1).
const NOT_SUPPORTED: u8 = 5;

/// Logins that are refused (RFC 7143, 11.13.5).
const NO_SUCH_SESSION: (u8, u8) = (2, 10);
const TOO_MANY_CONNECTIONS: (u8, u8) = (2, 6);

/// The response to a logout of a connection that the session does not have (RFC 7143, 11.15.1).
const NO_SUCH_CID: u8 = 1;

/// How long after the first one a COMPARE AND WRITE is recognized, less the time that messages may
/// take.
const KNOWN_FOR: Duration = Duration::from_secs(50);

/// Status codes (SAM-5, 5.3.1).
const GOOD: u8 = 0x00;
const CHECK_CONDITION: u8 = 0x02;
const BUSY: u8 = 0x08;
const RESERVATION_CONFLICT: u8 = 0x18;
const TASK_SET_FULL: u8 = 0x28;
const TASK_ABORTED: u8 = 0x40;

impl SimHosts {
    /// Processes everything that a path received over a connection.
    pub(super) fn events(
        &mut self,
        at: usize,
        cid: u16,
        network: &mut Network,
        now: Duration,
    ) -> Result<(), String> {
        while let Some(lane) = self.paths[at].lane(cid) {
            let is_joined = lane.is_joined;
            let Some(event) = lane.initiator.next_event() else { break };
            self.answers += 1;
            self.note(at as u64 | u64::from(cid) << 32);
            match event {
                Event::LoggedIn { .. } if is_joined => self.joined(at, cid),
                Event::LoggedIn { .. } => self.count(|counts| counts.logins += 1),
                Event::LoginFailed { class, detail } if is_joined => {
                    self.not_joined(at, cid, (class, detail), network, now)?;
                }
                // The array has no room for a session, or is about to shut down.
                Event::LoginFailed { class: 3, .. } => self.give_up(at, network, now, true)?,
                Event::Answered(answer) => {
                    self.count(|counts| counts.further += u64::from(is_joined));
                    self.paths[at].answered_over(cid);
                    self.answered(at, answer, now)?;
                }
                Event::TaskManagementAnswered { itt, response, ended } => {
                    self.management_answered(at, itt, response, ended)?;
                }
                Event::LoggedOut { response } => {
                    self.logged_out(at, cid, response, network, now)?;
                }
                Event::Rejected { reason: TOO_MANY_IMMEDIATE, header } => {
                    let itt =
                        header[16..20].iter().fold(0, |tag, byte| tag << 8 | u32::from(*byte));
                    let request = self.paths[at].requests.remove(&Itt(itt));
                    let asked = request.ok_or("a Reject PDU that matches no request")?.asked;
                    if let Asked::Reset { claims, .. } = asked {
                        for (_, claim, _) in claims {
                            self.monitors.claim_is_none(claim)?;
                        }
                    }
                }
                Event::Nop(Nop::Answered { itt }) => drop(self.paths[at].requests.remove(&itt)),
                Event::Nop(_) => {}
                // Requests logout (RFC 7143, 11.9): the array shuts down, and the connection ends.
                Event::AsyncMessage { event: 1, .. } => {}
                other => return Err(format!("{other:?}")),
            }
        }
        Ok(())
    }

    fn note(&mut self, what: u64) {
        self.trace = mix(self.trace ^ what);
    }

    /// Handles an additional connection of a session that was accepted.
    fn joined(&mut self, at: usize, cid: u16) {
        let replaces = self.paths[at].is_replaced(cid, false);
        self.count(|counts| counts.joins += 1);
        self.count(|counts| counts.replaced += u64::from(replaces));
    }

    /// Handles one that was not: the session has ended, or the target still counts connections that
    /// failed to log in.
    fn not_joined(
        &mut self,
        at: usize,
        cid: u16,
        status: (u8, u8),
        network: &mut Network,
        now: Duration,
    ) -> Result<(), String> {
        self.count(|counts| counts.not_joined += 1);
        let path = &mut self.paths[at];
        match status {
            NO_SUCH_SESSION => self.give_up(at, network, now, true),
            TOO_MANY_CONNECTIONS if path.may_be_counted => {
                path.drop_joining(cid, network, now);
                Ok(())
            }
            (3, _) => self.give_up(at, network, now, true),
            (class, detail) => Err(format!("a login was refused: {class:02x}{detail:02x}")),
        }
    }

    fn logged_out(
        &mut self,
        at: usize,
        cid: u16,
        response: u8,
        network: &mut Network,
        now: Duration,
    ) -> Result<(), String> {
        let path = &mut self.paths[at];
        let found = path.requests.iter().find_map(|(itt, request)| match request.asked {
            Asked::Logout(reason) if request.cid == cid => Some((*itt, reason)),
            _ => None,
        });
        let (itt, reason) = found.ok_or("a response that matches no logout")?;
        path.requests.remove(&itt);
        match (reason, response) {
            (LogoutReason::CloseSession, 0) => {
                self.count(|counts| counts.logouts += 1);
                self.give_up(at, network, now, true)?;
                self.paths[at].lost_is_over(&mut self.monitors)
            }
            (LogoutReason::CloseConnection(own), 0) if own == cid => {
                self.count(|counts| counts.partings += 1);
                let path = &mut self.paths[at];
                path.lane_logged_out(cid, &mut self.monitors, network, now)?;
                // It may have become the last one.
                match path.lanes.is_empty() {
                    true => self.give_up(at, network, now, true),
                    false => Ok(()),
                }
            }
            (LogoutReason::CloseConnection(other), 0 | NO_SUCH_CID) => {
                self.count(|counts| counts.partings_of_others += 1);
                self.paths[at].is_replaced(other, true);
                Ok(())
            }
            (reason, response) => Err(format!("response {response} to {reason:?}")),
        }
    }

    fn management_answered(
        &mut self,
        at: usize,
        itt: Itt,
        response: u8,
        mut ended: Vec<Itt>,
    ) -> Result<(), String> {
        self.note(u64::from(response) << 32 | ended.len() as u64);
        let request = self.paths[at].requests.remove(&itt);
        let request = request.ok_or("a response that matches no request")?;
        let function = match request.asked {
            Asked::Set { function, lun } | Asked::Reset { function, lun, .. } => {
                Some((function, lun))
            }
            _ => None,
        };
        if let Some((function, lun)) = function.filter(|_| response == 0) {
            // Over a connection that is being logged out responses may come until that is answered:
            // its end may have come before, and nothing can be acknowledged over it any longer.
            let is_other = |lane: &&mut super::lanes::Lane| {
                lane.cid() != request.cid && !lane.initiator.is_leaving()
            };
            let others = self.paths[at].lanes.iter_mut().filter(is_other);
            for lane in others {
                ended.extend(lane.initiator.ended_elsewhere(itt, function, lun));
            }
        }
        match (request.asked, response) {
            (Asked::Abort | Asked::Plug, 0 | 1) | (Asked::Set { .. }, 0) => {}
            (Asked::Reset { claims, .. }, 0) => {
                for (unit, claim, concerned) in claims {
                    self.monitors.done(claim)?;
                    self.monitors.attentions.happened(unit, concerned);
                }
            }
            (Asked::ColdReset, NOT_SUPPORTED) => self.count(|counts| counts.unsupported += 1),
            (asked, _) => return Err(format!("response {response} to {asked:?}")),
        }
        for itt in ended {
            self.count(|counts| counts.aborted += 1);
            if let Some(flight) = self.paths[at].flights.remove(&itt) {
                let (nexus, unit) = (self.paths[at].nexus, flight.command.unit());
                self.monitors.attentions.unheard(nexus, unit);
                self.monitors.over(flight.watch)?;
            }
        }
        Ok(())
    }

    fn answered(&mut self, at: usize, answer: Answer, now: Duration) -> Result<(), String> {
        let flight = self.paths[at].flights.remove(&answer.itt);
        let flight = flight.ok_or("a response that matches no command")?;
        self.paths[at].was_there(flight.loss, &mut self.monitors)?;
        self.note(u64::from(answer.status) << 32 | answer.data_in.len() as u64);
        for word in answer.data_in.chunks(4096).filter_map(<[u8]>::first_chunk) {
            self.note(u64::from_le_bytes(*word));
        }
        let told = format!("{:?} got {}", flight.command, summary(&answer));
        self.attend(at, &flight, &answer)
            .and_then(|()| self.take(at, flight, &answer, now))
            .map_err(|why| format!("{told}: {why}"))
    }

    /// Checks a response with regard to unit attentions.
    fn attend(&mut self, at: usize, flight: &Flight, answer: &Answer) -> Result<(), String> {
        let (nexus, unit) = (self.paths[at].nexus, flight.command.unit());
        // What one of them was told may come later over its connection.
        let is_beside = |other: &Flight| other.cid != flight.cid && other.command.unit() == unit;
        let may_be_told = self.paths[at].flights.values().any(is_beside);
        let attentions = &mut self.monitors.attentions;
        if self.paths[at].is_doomed || flight.command.is_quiet() {
            return Ok(());
        }
        match (answer.status, sense_key(&answer.sense)) {
            (CHECK_CONDITION, Some(UNIT_ATTENTION)) => {
                let code = Code::of(&answer.sense).ok_or("unknown sense data")?;
                attentions.told(nexus, unit, code);
                Ok(())
            }
            // It was not executed, or it is unknown whether it was.
            (BUSY | TASK_SET_FULL, _) => Ok(()),
            (TASK_ABORTED, _) => {
                attentions.unheard(nexus, unit);
                Ok(())
            }
            _ if may_be_told => Ok(()),
            _ => attentions.done(nexus, unit, flight.watch.sent()),
        }
    }

    fn take(
        &mut self,
        at: usize,
        flight: Flight,
        answer: &Answer,
        now: Duration,
    ) -> Result<(), String> {
        let Flight { command, watch, tries_left, .. } = flight;
        match (answer.response, answer.status) {
            (0, GOOD) => {
                let repeats = matches!(command, Command::Swap { repeats: Some(_), .. });
                self.count(|counts| counts.good += 1);
                self.count(|counts| counts.repeated += u64::from(repeats));
                if let Command::Identify { unit } = command {
                    self.naas[unit] = cdb::naa_of(&answer.data_in);
                }
                self.monitors.good(watch, &command, &answer.data_in)
            }
            (0, RESERVATION_CONFLICT) => {
                self.count(|counts| counts.conflicts += 1);
                self.monitors.conflict(watch)
            }
            (0, BUSY | TASK_SET_FULL) => {
                self.monitors.refused(watch)?;
                self.once_more(at, command, tries_left)
            }
            (0, TASK_ABORTED) => self.monitors.over(watch),
            (0, CHECK_CONDITION) => match sense_key(&answer.sense) {
                Some(UNIT_ATTENTION | NOT_READY) => {
                    self.monitors.refused(watch)?;
                    self.once_more(at, command, tries_left)
                }
                Some(MISCOMPARE) if let Command::Swap { repeats, .. } = command => {
                    self.count(|counts| counts.miscompares += 1);
                    let is_late = repeats.is_some_and(|first| now > first + KNOWN_FOR);
                    self.monitors.miscompare(watch, is_late)
                }
                // What could not be written may be found after the next start.
                Some(MEDIUM_ERROR) if self.monitors.may_be_broken(self.paths[at].is_doomed) => {
                    self.count(|counts| counts.broken += 1);
                    self.monitors.over(watch)
                }
                Some(ILLEGAL_REQUEST) if matches!(command, Command::Out { .. }) => {
                    self.count(|counts| counts.failed += 1);
                    self.monitors.failed(watch)
                }
                None | Some(ILLEGAL_REQUEST | MEDIUM_ERROR | MISCOMPARE) => {
                    Err("nothing explains this response".to_owned())
                }
                Some(_) => {
                    self.count(|counts| counts.failed += 1);
                    self.monitors.over(watch)
                }
            },
            _ => Err("unknown status".to_owned()),
        }
    }

    fn once_more(&mut self, at: usize, command: Command, tries_left: u32) -> Result<(), String> {
        self.count(|counts| counts.refused += 1);
        if matches!(command, Command::Swap { repeats: Some(_), .. }) {
            // The nexus is part of its identity.
            self.paths[at].unanswered.push_front(command);
        } else if tries_left > 0 {
            self.again.push_back((self.paths[at].host, command, tries_left - 1));
        }
        Ok(())
    }
}

/// Returns what is worth reporting about a response.
fn summary(answer: &Answer) -> String {
    let Answer { response, status, sense, data_in, residual, .. } = answer;
    let bytes = data_in.len();
    format!(
        "response {response}, status {status:#04x}, sense {sense:02x?}, {bytes} bytes, {residual:?}"
    )
}

/// Returns the sense key in either format (SPC-4, 4.5).
fn sense_key(sense: &[u8]) -> Option<u8> {
    let at = match sense.first()? & 0x7f {
        0x70 | 0x71 => 2,
        0x72 | 0x73 => 1,
        _ => return None,
    };
    sense.get(at).map(|byte| byte & 0x0f)
}
