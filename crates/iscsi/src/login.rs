//! The login phase (RFC 7143, 6.3 and 11.12-13): identification, authentication, and negotiation.
//!
//! Request: 1 T 80h, C 40h, CSG 0Ch, NSG 03h; 2 Version-max; 3 Version-min; 8..14 ISID; 14 TSIH; 20
//! CID; 24 CmdSN. Response: the same flags; 2 Version-max; 3 Version-active; 8..14 ISID; 14 TSIH;
//! 36 status class; 37 status detail.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use crate::chap::{Chap, ChapKeys};
use crate::event::Event;
use crate::guesses::neighbourhood;
use crate::negotiate::{Negotiator, Params};
use crate::pdu::{Bhs, opcode};
use crate::session::{Claim, Session};
use crate::target::{ClaimError, Target};
use crate::text;

const TRANSIT: u8 = 0x80;
const CONTINUE: u8 = 0x40;
/// The most data an initiator accepts at once during login (RFC 7143, 13.12: the default).
const REPLY_BYTES_MAX: usize = 8192;
/// The most requests of a login: CHAP needs three, text in pieces a few more.
const REQUESTS_MAX: u32 = 64;

/// The reason why a login fails: status class and detail (RFC 7143, 11.13.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Status(pub(crate) u8, pub(crate) u8);

impl Status {
    pub(crate) const INITIATOR_ERROR: Self = Self(2, 0);
    pub(crate) const AUTHENTICATION: Self = Self(2, 1);
    pub(crate) const AUTHORIZATION: Self = Self(2, 2);
    pub(crate) const NOT_FOUND: Self = Self(2, 3);
    pub(crate) const VERSION: Self = Self(2, 5);
    pub(crate) const TOO_MANY_CONNECTIONS: Self = Self(2, 6);
    pub(crate) const MISSING_PARAMETER: Self = Self(2, 7);
    pub(crate) const SESSION_TYPE: Self = Self(2, 9);
    pub(crate) const NO_SUCH_SESSION: Self = Self(2, 10);
    pub(crate) const INVALID_DURING_LOGIN: Self = Self(2, 11);
    pub(crate) const SERVICE_UNAVAILABLE: Self = Self(3, 1);
    pub(crate) const OUT_OF_RESOURCES: Self = Self(3, 2);
}

impl From<ClaimError> for Status {
    fn from(error: ClaimError) -> Self {
        match error {
            ClaimError::NoSuchSession => Self::NO_SUCH_SESSION,
            ClaimError::TooManyConnections => Self::TOO_MANY_CONNECTIONS,
            ClaimError::OutOfResources => Self::OUT_OF_RESOURCES,
        }
    }
}

/// The response to a login request. The caller sets StatSN, ExpCmdSN and MaxCmdSN.
pub(crate) struct Reply {
    pub(crate) bhs: Bhs,
    pub(crate) text: Vec<u8>,
    /// Whether full-feature phase begins after it.
    pub(crate) complete: bool,
}

/// The fields that the first request determines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leader {
    isid: [u8; 6],
    tsih: u16,
    cid: u16,
    cmd_sn: u32,
}

/// The login of one connection.
pub(crate) struct Login {
    target: Arc<Target>,
    portal_tag: u16,
    /// The address of the initiator.
    peer: IpAddr,
    entropy: [u8; 32],
    leader: Option<Leader>,
    stage: u8,
    requests: u32,
    /// Text of requests with C set, until one without.
    partial: Vec<u8>,
    /// The initiator's claimed name, set before it is known whether it may log in.
    claimed_name: Option<String>,
    initiator_name: Option<String>,
    chap: Option<Chap>,
    /// Whether an authentication method was agreed on, or none is needed.
    method: bool,
    /// The session that it joins, whose sequence numbers its responses carry.
    joins: Option<Arc<Session>>,
    /// Whether authentication failed as often as its address may; logged.
    spent: bool,
    /// The keys received in this stage, except those of identification.
    seen: BTreeSet<String>,
    negotiator: Negotiator,
}

impl Login {
    pub(crate) fn new(
        target: Arc<Target>,
        portal_tag: u16,
        peer: IpAddr,
        entropy: [u8; 32],
    ) -> Self {
        Self {
            target,
            portal_tag,
            peer,
            entropy,
            leader: None,
            stage: 0,
            requests: 0,
            partial: Vec::new(),
            claimed_name: None,
            initiator_name: None,
            chap: None,
            method: false,
            joins: None,
            spent: false,
            seen: BTreeSet::new(),
            negotiator: Negotiator::new(),
        }
    }

    /// Returns ExpCmdSN and MaxCmdSN of a response: for a new session its first number, otherwise
    /// those of the session (RFC 7143, 4.2.2.1: a login takes part in its counting).
    pub(crate) fn window(&self) -> (u32, u32) {
        let first = self.leader.map_or(0, |leader| leader.cmd_sn);
        self.joins.as_ref().map_or((first, first), |session| (session.expected(), session.max()))
    }

    /// Returns the connection id (CID).
    pub(crate) fn cid(&self) -> u16 {
        self.leader.map_or(0, |leader| leader.cid)
    }

    /// Returns the negotiated parameters.
    pub(crate) fn params(&self) -> Params {
        self.negotiator.params.settled()
    }

    /// Returns what it claims when it is complete.
    pub(crate) fn claim(&self) -> Claim<'_> {
        let leader = self.leader.unwrap_or(Leader { isid: [0; 6], tsih: 0, cid: 0, cmd_sn: 0 });
        Claim {
            initiator_name: self.initiator_name.as_deref().unwrap_or(""),
            address: neighbourhood(self.peer),
            isid: leader.isid,
            tsih: leader.tsih,
            portal_tag: self.portal_tag,
            discovery: self.negotiator.discovery,
            cmd_sn: leader.cmd_sn,
            params: self.params(),
        }
    }

    /// Returns the refusal as an event, if the reason was the initiator's identity or credentials,
    /// and not its software or a lack of resources.
    pub(crate) fn refused(&self, status: Status) -> Option<Event> {
        let is_of_it =
            [Status::AUTHENTICATION, Status::AUTHORIZATION, Status::NOT_FOUND].contains(&status);
        let initiator_name = self.claimed_name.clone().filter(|_| is_of_it)?;
        Some(Event::LoginRefused { initiator_name, status: (status.0, status.1) })
    }

    /// Returns the response that ends the login.
    pub(crate) fn refusal(bhs: &Bhs, status: Status) -> Bhs {
        let mut answer = Bhs::answer(opcode::LOGIN_RESPONSE, 0);
        answer.put(8, &bhs.array::<8>(8));
        answer.put_u32(16, bhs.task_tag());
        answer.put(36, &[status.0, status.1]);
        answer
    }

    /// Returns whether its address has no attempt left since this login failed.
    pub(crate) fn is_spent(&self) -> bool {
        self.spent
    }

    /// Processes a request.
    pub(crate) fn request(
        &mut self,
        bhs: &Bhs,
        data: &[u8],
        now: Duration,
    ) -> Result<Reply, Status> {
        self.requests += 1;
        self.check_header(bhs)?;
        if self.requests > REQUESTS_MAX
            || self.partial.len() + data.len() > self.target.config().limits.text_bytes
        {
            return Err(Status::INITIATOR_ERROR);
        }
        self.partial.extend_from_slice(data);
        let mut text = Vec::new();
        let mut transit = false;
        if bhs.flags() & CONTINUE == 0 {
            let pairs = text::parse(&std::mem::take(&mut self.partial));
            let pairs = pairs.ok_or(Status::INITIATOR_ERROR)?;
            transit = self.keys(&pairs, bhs.flags() & TRANSIT != 0, now, &mut text)?;
        }
        // Only for an initiator that sends hundreds of unknown keys is it so long.
        if text.len() > REPLY_BYTES_MAX {
            return Err(Status::INITIATOR_ERROR);
        }
        let next = bhs.flags() & 3;
        let mut answer = Bhs::answer(opcode::LOGIN_RESPONSE, self.stage << 2);
        if transit {
            answer.0[1] |= TRANSIT | next;
            self.stage = next;
            self.seen.clear();
        }
        answer.put(8, &bhs.array::<8>(8));
        answer.put_u32(16, bhs.task_tag());
        Ok(Reply { bhs: answer, text, complete: transit && next == 3 })
    }

    fn check_header(&mut self, bhs: &Bhs) -> Result<(), Status> {
        let flags = bhs.flags();
        let (current, next) = (flags >> 2 & 3, flags & 3);
        if bhs.0[3] > 0 {
            return Err(Status::VERSION);
        }
        if flags & (TRANSIT | CONTINUE) == TRANSIT | CONTINUE || current > 1 {
            return Err(Status::INITIATOR_ERROR);
        }
        if flags & TRANSIT != 0 && (next <= current || next == 2) {
            return Err(Status::INITIATOR_ERROR);
        }
        let leader = Leader {
            isid: bhs.array(8),
            tsih: bhs.u16(14),
            cid: bhs.u16(20),
            cmd_sn: bhs.cmd_sn(),
        };
        match self.leader {
            None => {
                self.leader = Some(leader);
                self.stage = current;
                Ok(())
            }
            Some(first) if Leader { cmd_sn: first.cmd_sn, ..leader } != first => {
                Err(Status::INVALID_DURING_LOGIN)
            }
            Some(_) if current != self.stage => Err(Status::INITIATOR_ERROR),
            Some(_) => Ok(()),
        }
    }

    /// Processes the keys of a complete text. Returns whether the stage ends.
    fn keys(
        &mut self,
        pairs: &[(String, String)],
        transit: bool,
        now: Duration,
        out: &mut Vec<u8>,
    ) -> Result<bool, Status> {
        self.check_repeated(pairs)?;
        if self.initiator_name.is_none() {
            self.identify(pairs)?;
            if !self.negotiator.discovery {
                text::push(out, "TargetPortalGroupTag", &self.portal_tag.to_string());
                let alias = &self.target.config().target_alias;
                if !alias.is_empty() {
                    text::push(out, "TargetAlias", alias);
                }
            }
        }
        let rest = pairs.iter().filter(|(key, _)| !is_identity(key));
        if self.stage == 0 {
            self.security(rest, now, out)?;
            let done = self.is_authenticated();
            // An initiator that wants to continue without having begun authentication never will.
            if transit && !done && !self.method {
                return Err(Status::AUTHENTICATION);
            }
            return Ok(transit && done);
        }
        if !self.is_authenticated() {
            return Err(Status::AUTHENTICATION);
        }
        let target = self.target.clone();
        let limits = &target.config().limits;
        for (key, value) in rest {
            if key == "AuthMethod" {
                return Err(Status::INITIATOR_ERROR);
            }
            let taken = self.negotiator.take(key, value, limits, out);
            taken.map_err(|_| Status::INITIATOR_ERROR)?;
        }
        self.negotiator.declare(limits, out);
        Ok(transit)
    }

    /// A repeated key ends the login (RFC 7143, 6.3), except those of identification, which
    /// some initiators send in each stage.
    fn check_repeated(&mut self, pairs: &[(String, String)]) -> Result<(), Status> {
        for (at, (key, value)) in pairs.iter().enumerate() {
            let is_new = match is_identity(key) {
                true => !pairs[..at].iter().any(|(other, _)| other == key),
                // A reply to the target's offer is not an offer.
                false if matches!(value.as_str(), "NotUnderstood" | "Irrelevant") => true,
                false => self.seen.insert(key.clone()),
            };
            if !is_new {
                return Err(Status::INITIATOR_ERROR);
            }
        }
        Ok(())
    }

    fn is_authenticated(&self) -> bool {
        self.chap.as_ref().is_none_or(Chap::is_done)
    }

    /// Determines who logs in, and to which target, from the first request (RFC 7143, 6.3.1).
    fn identify(&mut self, pairs: &[(String, String)]) -> Result<(), Status> {
        let find = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value);
        let name = find("InitiatorName").ok_or(Status::MISSING_PARAMETER)?.to_ascii_lowercase();
        if name.is_empty() || name.len() > 223 || name.chars().any(char::is_control) {
            return Err(Status::INITIATOR_ERROR);
        }
        self.claimed_name = Some(name.clone());
        self.negotiator.discovery = match find("SessionType").map(String::as_str) {
            None | Some("Normal") => false,
            Some("Discovery") => true,
            Some(_) => return Err(Status::SESSION_TYPE),
        };
        let ours = &self.target.config().target_name;
        match find("TargetName") {
            Some(theirs) if !theirs.eq_ignore_ascii_case(ours) => return Err(Status::NOT_FOUND),
            None if !self.negotiator.discovery => return Err(Status::MISSING_PARAMETER),
            _ => {}
        }
        let access = self.target.config().access.initiator(&name);
        let access = access.ok_or(Status::AUTHORIZATION)?;
        let entropy = self.entropy;
        self.chap = access.chap.map(|credentials| Chap::new(credentials, entropy));
        self.initiator_name = Some(name);
        let claim = self.claim();
        if claim.tsih != 0 {
            let session = self.target.find(&claim).ok_or(Status::NO_SUCH_SESSION)?;
            self.negotiator.leading = false;
            self.negotiator.params = Params::of_session(session.params);
            self.joins = Some(session);
        }
        Ok(())
    }

    fn security<'a>(
        &mut self,
        pairs: impl Iterator<Item = &'a (String, String)>,
        now: Duration,
        out: &mut Vec<u8>,
    ) -> Result<(), Status> {
        let mut keys = ChapKeys::default();
        for (key, value) in pairs {
            if key == "AuthMethod" {
                self.choose_method(value, out)?;
            } else if !keys.take(key, value) {
                // Operational keys are invalid here (RFC 7143, 13), others are unknown.
                text::push(out, key, "NotUnderstood");
            }
        }
        match &mut self.chap {
            Some(chap) if self.method => {
                // Before any check whose result could reveal something.
                if !self.target.may_guess(self.peer, now) {
                    return Err(Status::SERVICE_UNAVAILABLE);
                }
                chap.step(&keys, out).map_err(|_| {
                    self.spent = self.target.failed_guess(self.peer, now);
                    Status::AUTHENTICATION
                })
            }
            _ => Ok(()),
        }
    }

    fn choose_method(&mut self, offers: &str, out: &mut Vec<u8>) -> Result<(), Status> {
        let wanted = if self.chap.is_some() { "CHAP" } else { "None" };
        if self.method {
            return Err(Status::INITIATOR_ERROR);
        }
        if !offers.split(',').any(|offer| offer == wanted) {
            return Err(Status::AUTHENTICATION);
        }
        self.method = true;
        text::push(out, "AuthMethod", wanted);
        Ok(())
    }
}

/// Returns whether a key belongs to identification. It may be repeated; the first one counts.
fn is_identity(key: &str) -> bool {
    matches!(key, "InitiatorName" | "InitiatorAlias" | "TargetName" | "SessionType")
}
