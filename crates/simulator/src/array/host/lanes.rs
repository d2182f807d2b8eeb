//! The connections of a session (RFC 7143, 4.2.1): opened one after the other, lost, replaced by
//! others with the same CID, and logged out.
//!
//! # A connection that fails while its session continues
//! At error recovery level 0 the target ends the session as soon as it notices. A host that is
//! quicker replaces the connection by another one (connection reinstatement, RFC 7143, 6.3.4), or
//! logs it out over another one. Either ends its commands without a response: they may have taken
//! effect until a response over the connection that replaced it, or until the response to the
//! logout. What the target has not received leaves holes in the order of commands, which are
//! plugged: by the same command once more, or by an abort that names it.

use std::collections::BTreeMap;
use std::time::Duration;

use initiator::{Initiator, Itt, LogoutReason, Options};

use super::monitors::{Claim, Monitors, Watch};
use super::path::{Asked, Flight, Path, Request};
use crate::array::network::{Link, Network, Side};
use crate::rng::Rng;

/// A connection of a session.
pub(super) struct Lane {
    pub(super) link: Link,
    pub(super) initiator: Initiator,
    /// Whether it was opened after the session's first one.
    pub(super) is_joined: bool,
}

impl Lane {
    pub(super) fn cid(&self) -> u16 {
        self.initiator.options().cid
    }
}

/// What a connection has left that failed while its session continues.
pub(super) struct Orphan {
    cid: u16,
    failed: Initiator,
    /// Commands that the target may not have received.
    flights: BTreeMap<Itt, Flight>,
    /// Commands that never get a response.
    lost: Vec<Watch>,
    lost_claims: Vec<Claim>,
    /// The units of all of its commands.
    units: Vec<usize>,
    /// Whether it was logged out, explicitly or by one that took its place.
    is_logged_out: bool,
    /// Whether nothing that the target had received can still take effect.
    is_over: bool,
}

/// What a path did about holes in the order of commands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plugged {
    pub(super) retried: u64,
    pub(super) aborted: u64,
}

impl Path {
    /// Returns whether there is a session, or one may continue.
    pub(super) fn has_session(&self) -> bool {
        !self.lanes.is_empty() || !self.orphans.is_empty()
    }

    pub(super) fn lane(&mut self, cid: u16) -> Option<&mut Lane> {
        self.lanes.iter_mut().find(|lane| lane.cid() == cid)
    }

    /// Returns a random connection.
    pub(super) fn any_lane(&mut self, rng: &mut Rng) -> Option<&mut Lane> {
        match self.lanes.len() as u64 {
            0 | 1 => self.lanes.first_mut(),
            count => self.lanes.get_mut(rng.below(count) as usize),
        }
    }

    /// Returns a random connection over which requests can be sent.
    pub(super) fn any_ready(&mut self, rng: &mut Rng) -> Option<&mut Lane> {
        let ready = self.lanes.iter_mut().filter(|lane| lane.initiator.is_logged_in());
        let mut ready: Vec<&mut Lane> = ready.collect();
        match ready.len() as u64 {
            0 => None,
            1 => ready.pop(),
            count => Some(ready.swap_remove(rng.below(count) as usize)),
        }
    }

    /// Returns the CID of another connection that may be opened.
    pub(super) fn free_cid(&self) -> Option<u16> {
        let leader = &self.lanes.first()?.initiator;
        let is_settled = self.orphans.is_empty() && self.is_logged_in();
        let all_in = self.lanes.iter().all(|lane| lane.initiator.is_logged_in());
        let most = usize::from(leader.terms().connections);
        if !is_settled || !all_in || self.lanes.len() >= most {
            return None;
        }
        (0..=most as u16).find(|cid| self.lanes.iter().all(|lane| lane.cid() != *cid))
    }

    /// Opens another connection of the session, which may replace one with this CID.
    pub(super) fn join(&mut self, cid: u16, network: &mut Network, now: Duration) -> Option<Link> {
        let orphan = self.orphans.last().map(|orphan| &orphan.failed);
        let leader = self.lanes.first().map(|lane| &lane.initiator).or(orphan)?;
        let options = Options { cid, ..leader.options().clone() };
        let mut initiator = Initiator::joining(options, leader);
        initiator.login();
        let link = network.open(now);
        self.lanes.push(Lane { link, initiator, is_joined: true });
        Some(link)
    }

    /// Handles a joining connection that was not accepted, or has ended before.
    pub(super) fn drop_joining(&mut self, cid: u16, network: &mut Network, now: Duration) {
        if let Some(lane) = self.take_lane(cid) {
            network.close(lane.link, Side::Host, now);
        }
        // The target may count it nevertheless.
        self.may_be_counted = true;
    }

    fn take_lane(&mut self, cid: u16) -> Option<Lane> {
        let at = self.lanes.iter().position(|lane| lane.cid() == cid)?;
        Some(self.lanes.remove(at))
    }

    /// Gives up a connection whose session continues. It is closed, or left for later.
    pub(super) fn lose_lane(
        &mut self,
        cid: u16,
        monitors: &mut Monitors,
        network: &mut Network,
        now: Duration,
        closes: bool,
    ) {
        let Some(lane) = self.take_lane(cid) else { return };
        match closes {
            true => network.close(lane.link, Side::Host, now),
            false => self.old.push(lane.link),
        }
        let flights = self.take_flights(cid);
        let units: Vec<usize> = flights.values().map(|flight| flight.command.unit()).collect();
        monitors.attentions.connection_lost(self.nexus, &units);
        let lost_claims = self.take_claims(cid);
        lost_claims.iter().for_each(|claim| monitors.lost_claim(*claim));
        self.orphans.push(Orphan {
            cid,
            failed: lane.initiator,
            flights,
            lost: Vec::new(),
            lost_claims,
            units,
            is_logged_out: false,
            is_over: false,
        });
    }

    fn take_flights(&mut self, cid: u16) -> BTreeMap<Itt, Flight> {
        take_where(&mut self.flights, |flight| flight.cid == cid)
    }

    /// Returns the claims of resets that were requested over a connection.
    fn take_claims(&mut self, cid: u16) -> Vec<Claim> {
        let requests = take_where(&mut self.requests, |request| request.cid == cid);
        let resets = requests.into_values().filter_map(|request| match request.asked {
            Asked::Reset { claims, .. } => Some(claims),
            _ => None,
        });
        resets.flatten().map(|(_, claim, _)| claim).collect()
    }

    /// Handles the logout of a connection over itself: its commands have ended, and those of one
    /// that it had replaced.
    pub(super) fn lane_logged_out(
        &mut self,
        cid: u16,
        monitors: &mut Monitors,
        network: &mut Network,
        now: Duration,
    ) -> Result<(), String> {
        self.lose_lane(cid, monitors, network, now, true);
        let Some(mut orphan) = self.orphans.pop() else { return Ok(()) };
        self.answered_over(cid);
        orphan.lose_flights(monitors);
        orphan.end(self, monitors)
    }

    /// Handles a failed connection that was replaced, or logged out over another one. Returns
    /// whether there was one.
    pub(super) fn is_replaced(&mut self, cid: u16, is_over: bool) -> bool {
        let orphans = self.orphans.iter_mut().filter(|orphan| orphan.cid == cid);
        let mut found = false;
        for orphan in orphans {
            found |= !orphan.is_logged_out;
            orphan.is_logged_out = true;
            orphan.is_over |= is_over;
        }
        found
    }

    /// Records a response over a connection: everything that one with the same CID did before is
    /// over.
    pub(super) fn answered_over(&mut self, cid: u16) {
        let replaced = self.orphans.iter_mut().filter(|orphan| orphan.cid == cid);
        replaced.filter(|orphan| orphan.is_logged_out).for_each(|orphan| orphan.is_over = true);
    }

    /// Returns a failed connection of which the target was not notified.
    pub(super) fn failed_cid(&self) -> Option<u16> {
        let orphan = self.orphans.iter().find(|orphan| !orphan.is_logged_out)?;
        let is_joining = self.lanes.iter().any(|lane| lane.cid() == orphan.cid);
        let leaves = LogoutReason::CloseConnection(orphan.cid);
        let is_leaving =
            |request: &Request| matches!(request.asked, Asked::Logout(reason) if reason == leaves);
        let is_asked = is_joining || self.requests.values().any(is_leaving);
        (!is_asked).then_some(orphan.cid)
    }

    /// Plugs the holes that failed connections have left, if these were logged out.
    pub(super) fn plug(
        &mut self,
        monitors: &mut Monitors,
        now: Duration,
        rng: &mut Rng,
    ) -> Result<Plugged, String> {
        let mut plugged = Plugged::default();
        for _ in 0..self.orphans.len() {
            let mut orphan = self.orphans.remove(0);
            if orphan.is_logged_out && !self.plug_for(&mut orphan, &mut plugged, monitors, now, rng)
            {
                self.orphans.push(orphan);
                continue;
            }
            match orphan.is_over && orphan.flights.is_empty() {
                true => orphan.end(self, monitors)?,
                false => self.orphans.push(orphan),
            }
        }
        Ok(plugged)
    }

    /// Returns whether that was possible.
    fn plug_for(
        &mut self,
        orphan: &mut Orphan,
        plugged: &mut Plugged,
        monitors: &mut Monitors,
        now: Duration,
        rng: &mut Rng,
    ) -> bool {
        while let Some((itt, _)) = orphan.flights.first_key_value() {
            let itt = *itt;
            let Some(lane) = self.any_ready(rng) else { return false };
            let cid = lane.cid();
            let is_received = lane.initiator.is_received(&orphan.failed, itt);
            let is_retried =
                !is_received && rng.chance(50) && lane.initiator.retry(&orphan.failed, itt).is_ok();
            let aborted = match is_received || is_retried {
                true => None,
                false => lane.initiator.abort_lost(&orphan.failed, itt).ok(),
            };
            let Some((_, flight)) = orphan.flights.pop_first() else { return true };
            if is_retried {
                plugged.retried += 1;
                let deadline = Self::deadline(now);
                self.flights.insert(itt, Flight { cid, deadline, is_promised: false, ..flight });
                continue;
            }
            monitors.lost(&flight.watch);
            orphan.lost.push(flight.watch);
            if let Some(request) = aborted {
                plugged.aborted += 1;
                let (asked, deadline) = (Asked::Plug, Self::deadline(now));
                self.requests.insert(request, Request { asked, cid, deadline });
            }
        }
        true
    }

    /// Gives up what the session's failed connections have left, because it is lost.
    pub(super) fn give_orphans_up(&mut self, monitors: &mut Monitors) {
        for mut orphan in std::mem::take(&mut self.orphans) {
            orphan.lose_flights(monitors);
            self.lost.append(&mut orphan.lost);
            self.lost_claims.append(&mut orphan.lost_claims);
        }
    }
}

impl Orphan {
    fn lose_flights(&mut self, monitors: &mut Monitors) {
        for flight in std::mem::take(&mut self.flights).into_values() {
            monitors.lost(&flight.watch);
            self.lost.push(flight.watch);
        }
    }

    /// Records that nothing of it can still take effect.
    fn end(self, path: &Path, monitors: &mut Monitors) -> Result<(), String> {
        monitors.attentions.connection_is_over(path.nexus, &self.units);
        self.lost.into_iter().try_for_each(|watch| monitors.over(watch))?;
        self.lost_claims.into_iter().try_for_each(|claim| monitors.claim_is_over(claim))
    }
}

/// Takes matching entries out of a map.
fn take_where<K: Ord, V>(
    all: &mut BTreeMap<K, V>,
    is_meant: impl Fn(&V) -> bool,
) -> BTreeMap<K, V> {
    let (taken, left) = std::mem::take(all).into_iter().partition(|(_, one)| is_meant(one));
    *all = left;
    taken
}
