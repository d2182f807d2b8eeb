//! A path: one session at a time of a host's initiator port with a target port, over one connection
//! or several ([`super::lanes`]).
//!
//! # The loss of a session
//! A target may lose a session at any time, without notice: its host sees the end of the connection
//! later. Only a response shows that the session still existed when the command was sent. So a loss
//! is in flight from each command on, and did not happen if that gets a response.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::time::Duration;

use initiator::{Function, Initiator, Itt, LogoutReason, Options};

use super::attentions::Concerned;
use super::command::Command;
use super::lanes::{Lane, Orphan};
use super::monitors::{Claim, Monitors, Watch};
use crate::array::network::{Link, Network, Side};
use crate::array::reservations::{Nexus, Op};
use crate::rng::Rng;

/// How long a host waits for a response before it aborts, and for that before it gives up the
/// connection.
const PATIENCE: Duration = Duration::from_secs(8);

/// The time limit for each command if nothing stalls, and no host ends what others have requested:
/// with the lowest limits of volumes, and everything that hosts may have in flight.
const PROMISED: Duration = Duration::from_secs(600);

/// How many losses of one session are distinguished.
const LOSSES_MAX: u64 = 4;

/// A command in flight.
pub(super) struct Flight {
    pub(super) command: Command,
    pub(super) watch: Watch,
    /// The connection that it was sent over.
    pub(super) cid: u16,
    pub(super) deadline: Duration,
    /// How often it may be sent once more.
    pub(super) tries_left: u32,
    /// The number of the loss that may come from here on.
    pub(super) loss: u64,
    pub(super) began: Duration,
    /// Whether its response is due before its deadline.
    pub(super) is_promised: bool,
}

/// A request in flight that is no command.
pub(super) struct Request {
    pub(super) asked: Asked,
    /// The connection that it was sent over.
    pub(super) cid: u16,
    pub(super) deadline: Duration,
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) enum Asked {
    Abort,
    /// An abort of a command that a failed connection may have lost.
    Plug,
    /// A reset of units, which ends a RESERVE, and is reported to all nexuses.
    Reset {
        function: Function,
        lun: [u8; 8],
        claims: Vec<(usize, Claim, Concerned)>,
    },
    /// A reset that ends all sessions.
    ColdReset,
    Set {
        function: Function,
        lun: [u8; 8],
    },
    Ping,
    Logout(LogoutReason),
}

/// A path.
pub(super) struct Path {
    pub(super) host: usize,
    pub(super) nexus: Nexus,
    /// The target port, counted from 1.
    pub(super) port: u16,
    pub(super) options: Options,
    /// The connections of the session. Without one there is none.
    pub(super) lanes: Vec<Lane>,
    /// What connections have left that failed while the session continues.
    pub(super) orphans: Vec<Orphan>,
    /// Whether the target may count connections in this session that failed to log in.
    pub(super) may_be_counted: bool,
    /// When it connects again.
    pub(super) connect_at: Duration,
    /// The array has restarted since: the session is lost, although its last bytes may not be.
    pub(super) is_doomed: bool,
    pub(super) flights: BTreeMap<Itt, Flight>,
    pub(super) requests: BTreeMap<Itt, Request>,
    /// What was in flight in sessions that may not have ended.
    pub(super) lost: Vec<Watch>,
    pub(super) lost_claims: Vec<Claim>,
    /// The units that are reserved sometimes.
    reserved: Range<usize>,
    /// Possible losses, by number, with a claim for each unit that is reserved. One for each
    /// earlier session.
    losses: VecDeque<(u64, Vec<Claim>)>,
    next_loss: u64,
    /// The number of the first loss of this session.
    first_loss: u64,
    /// Connections that were given up and are not closed yet.
    pub(super) old: Vec<Link>,
    /// COMPARE AND WRITE commands whose responses were lost with their session.
    pub(super) unanswered: VecDeque<Command>,
}

impl Path {
    pub(super) fn new(
        host: usize,
        nexus: Nexus,
        port: u16,
        options: Options,
        reserved: Range<usize>,
    ) -> Self {
        Self {
            host,
            nexus,
            port,
            reserved,
            options,
            lanes: Vec::new(),
            orphans: Vec::new(),
            may_be_counted: false,
            connect_at: Duration::ZERO,
            is_doomed: false,
            flights: BTreeMap::new(),
            requests: BTreeMap::new(),
            lost: Vec::new(),
            lost_claims: Vec::new(),
            losses: VecDeque::new(),
            next_loss: 0,
            first_loss: 0,
            old: Vec::new(),
            unanswered: VecDeque::new(),
        }
    }

    pub(super) fn is_logged_in(&self) -> bool {
        !self.is_doomed && self.lanes.iter().any(|lane| lane.initiator.is_logged_in())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.flights.is_empty() && self.requests.is_empty() && self.orphans.is_empty()
    }

    /// Opens a connection and begins to log in.
    pub(super) fn connect(&mut self, network: &mut Network, now: Duration, rng: &mut Rng) -> Link {
        let link = network.open(now);
        self.first_loss = self.next_loss;
        let first_cmd_sn = if rng.chance(10) { u32::MAX - rng.below(50) as u32 } else { 1 };
        let mut initiator = Initiator::new(Options { first_cmd_sn, ..self.options.clone() });
        initiator.login();
        self.lanes = vec![Lane { link, initiator, is_joined: false }];
        self.may_be_counted = false;
        link
    }

    /// Transfers bytes of a connection in both directions. Returns whether it has ended.
    pub(super) fn carry(
        &mut self,
        cid: u16,
        network: &mut Network,
        now: Duration,
        rng: &mut Rng,
    ) -> Result<bool, String> {
        let Some(lane) = self.lane(cid) else { return Ok(false) };
        let most = rng.between(1, 100_000) as usize;
        let output = lane.initiator.output();
        let sent = network.send(lane.link, Side::Host, &output[..output.len().min(most)], now);
        lane.initiator.taken(sent);
        let mut bytes = vec![0; rng.between(1, 20_000) as usize];
        match network.receive(lane.link, Side::Host, &mut bytes, now) {
            None => Ok(false),
            Some(0) => Ok(true),
            Some(count) => {
                let result = lane.initiator.receive(&bytes[..count]);
                result.map(|()| false).map_err(|violation| violation.to_string())
            }
        }
    }

    /// Gives up the session. Its connections are closed, or left for later.
    pub(super) fn give_up(
        &mut self,
        monitors: &mut Monitors,
        network: &mut Network,
        now: Duration,
        closes: bool,
    ) -> Result<(), String> {
        for lane in std::mem::take(&mut self.lanes) {
            match closes {
                true => network.close(lane.link, Side::Host, now),
                false => self.old.push(lane.link),
            }
        }
        let flights = std::mem::take(&mut self.flights);
        let unheard = flights.values().map(|flight| flight.command.unit());
        monitors.attentions.session_lost(self.nexus, unheard);
        for flight in flights.into_values() {
            monitors.lost(&flight.watch);
            self.lost.push(flight.watch);
            self.unanswered.extend(flight.command.again(flight.began));
        }
        for request in std::mem::take(&mut self.requests).into_values() {
            if let Asked::Reset { claims, .. } = request.asked {
                for (_, claim, _) in claims {
                    monitors.lost_claim(claim);
                    self.lost_claims.push(claim);
                }
            }
        }
        self.give_orphans_up(monitors);
        self.keep_one_loss(monitors)?;
        if std::mem::take(&mut self.is_doomed) {
            self.session_is_over(u64::MAX, monitors)?;
        }
        Ok(())
    }

    /// Begins a possible loss of the session, because a command is about to be sent. Returns its
    /// number.
    pub(super) fn begin_loss(&mut self, monitors: &mut Monitors) -> u64 {
        // One that began before is as good, though less is known about it.
        if self.next_loss - self.first_loss_left() >= LOSSES_MAX {
            return self.next_loss - 1;
        }
        let number = self.next_loss;
        self.next_loss += 1;
        let loss = Op::Loss(self.nexus);
        let claims = self.reserved.clone().map(|unit| monitors.claim(unit, loss)).collect();
        self.losses.push_back((number, claims));
        number
    }

    /// Records that a command of this session was answered: when it was sent the session was not
    /// lost, and all earlier ones have ended.
    pub(super) fn was_there(&mut self, loss: u64, monitors: &mut Monitors) -> Result<(), String> {
        if self.is_doomed {
            return Ok(());
        }
        monitors.attentions.session_is_there(self.nexus);
        self.session_is_over(self.first_loss, monitors)?;
        while let Some((_, claims)) = self.pop_loss_before(loss) {
            claims.into_iter().try_for_each(|claim| monitors.claim_is_none(claim))?;
        }
        Ok(())
    }

    /// Returns the first possible loss of this session, or the next number.
    fn first_loss_left(&self) -> u64 {
        let mut numbers = self.losses.iter().map(|(number, _)| *number);
        numbers.find(|number| *number >= self.first_loss).unwrap_or(self.next_loss)
    }

    /// Keeps one loss of a session that is certainly lost: one is enough, whenever it came.
    fn keep_one_loss(&mut self, monitors: &mut Monitors) -> Result<(), String> {
        let first = self.first_loss_left();
        while self.losses.back().is_some_and(|(number, _)| *number > first) {
            let claims = self.losses.pop_back().map(|(_, claims)| claims).unwrap_or_default();
            claims.into_iter().try_for_each(|claim| monitors.claim_is_none(claim))?;
        }
        Ok(())
    }

    fn pop_loss_before(&mut self, end: u64) -> Option<(u64, Vec<Claim>)> {
        let is_before = self.losses.front().is_some_and(|(number, _)| *number < end);
        if is_before { self.losses.pop_front() } else { None }
    }

    /// Records that what was in flight in earlier sessions has had its effect, or never will.
    pub(super) fn lost_is_over(&mut self, monitors: &mut Monitors) -> Result<(), String> {
        for watch in std::mem::take(&mut self.lost) {
            monitors.over(watch)?;
        }
        for claim in std::mem::take(&mut self.lost_claims) {
            monitors.claim_is_over(claim)?;
        }
        Ok(())
    }

    /// Records that all sessions with losses before `first` have certainly ended.
    fn session_is_over(&mut self, first: u64, monitors: &mut Monitors) -> Result<(), String> {
        self.lost_is_over(monitors)?;
        while let Some((_, claims)) = self.pop_loss_before(first) {
            claims.into_iter().try_for_each(|claim| monitors.done(claim))?;
        }
        Ok(())
    }

    /// Records that the array has restarted. What is on the wire may still arrive.
    pub(super) fn array_started(&mut self, monitors: &mut Monitors) -> Result<(), String> {
        if monitors.linear.is_volatile() {
            self.forget_session();
        }
        self.give_orphans_up(monitors);
        self.is_doomed = !self.lanes.is_empty();
        self.session_is_over(u64::MAX, monitors)
    }

    /// Ends the session, of which no more responses come.
    fn forget_session(&mut self) {
        self.old.extend(std::mem::take(&mut self.lanes).iter().map(|lane| lane.link));
        self.requests.clear();
        self.orphans.clear();
        for flight in std::mem::take(&mut self.flights).into_values() {
            self.unanswered.extend(flight.command.again(flight.began));
        }
    }

    /// Closes a connection that was given up before.
    pub(super) fn close_an_old_one(&mut self, network: &mut Network, now: Duration) {
        if let Some(link) = self.old.pop() {
            network.close(link, Side::Host, now);
        }
    }

    /// Returns the deadline of a command.
    pub(super) fn deadline_of_command(now: Duration, is_promised: bool) -> Duration {
        now + if is_promised { PROMISED } else { PATIENCE }
    }

    /// Returns the deadline of another request.
    pub(super) fn deadline(now: Duration) -> Duration {
        now + PATIENCE
    }

    /// Returns the next deadline, while there is a connection.
    pub(super) fn due_at(&self) -> Option<Duration> {
        let flights = self.flights.values().map(|flight| flight.deadline);
        flights.chain(self.requests.values().map(|request| request.deadline)).min()
    }

    /// Aborts commands over their deadline. Returns the connection that is to be given up, if there
    /// is one.
    ///
    /// # Errors
    /// A command got no response in time.
    pub(super) fn expire(&mut self, now: Duration) -> Result<Option<u16>, String> {
        if let Some(late) = self.requests.values().find(|request| request.deadline <= now) {
            return Ok(Some(late.cid));
        }
        let late = self.flights.iter().find(|(_, flight)| flight.deadline <= now);
        let Some((itt, flight)) = late else { return Ok(None) };
        if flight.is_promised {
            return Err(format!("{:?} never gets a response", flight.command));
        }
        let (itt, cid) = (*itt, flight.cid);
        Ok((!self.abort(itt, now)).then_some(cid))
    }

    /// Requests the abort of a command. Returns whether that was possible.
    pub(super) fn abort(&mut self, itt: Itt, now: Duration) -> bool {
        let Some(cid) = self.flights.get(&itt).map(|flight| flight.cid) else { return false };
        let Some(lane) = self.lane(cid) else { return false };
        let Ok(request) = lane.initiator.abort(itt) else { return false };
        let deadline = Self::deadline(now);
        // Whichever response comes first.
        if let Some(flight) = self.flights.get_mut(&itt) {
            flight.deadline = deadline + PATIENCE;
            flight.is_promised = false;
        }
        self.requests.insert(request, Request { asked: Asked::Abort, cid, deadline });
        true
    }
}
