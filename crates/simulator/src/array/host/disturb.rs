//! What hosts do apart from commands: aborts, resets, pings, logouts, cutting connections, and
//! taking over sessions and connections.

use std::ops::Range;
use std::time::Duration;

use initiator::{Function, Initiator, Itt, LogoutReason};

use super::path::{Asked, Path, Request};
use super::plan::Mix;
use super::{SimHosts, lun};
use crate::array::network::{Cut, Link, Network};
use crate::array::reservations::Op;

impl SimHosts {
    /// Sometimes does something other than a command. Returns a connection that was opened.
    pub(super) fn disturb(
        &mut self,
        at: usize,
        network: &mut Network,
        now: Duration,
    ) -> Result<Option<Link>, String> {
        let Mix { aborts, resets, pings, logouts, cuts, takeovers, .. } = self.plan.mix;
        let Mix { joins, partings, replacements, .. } = self.plan.mix;
        let all = [aborts, resets, pings, logouts, cuts, takeovers, joins, partings, replacements];
        let usual = 10_000_u64.saturating_sub(all.iter().sum());
        let weights: Vec<u64> = [usual].into_iter().chain(all).collect();
        let path = &mut self.paths[at];
        match self.rng.weighted(&weights) {
            1 => {
                let all: Vec<Itt> = path.flights.keys().copied().collect();
                if !all.is_empty() {
                    path.abort(all[self.rng.below(all.len() as u64) as usize], now);
                }
            }
            2 => self.reset(at, now),
            3 => {
                let data = vec![7; self.rng.below(600) as usize];
                self.ask(at, now, Asked::Ping, |initiator| initiator.nop_out(&data));
            }
            4 => {
                let reason = LogoutReason::CloseSession;
                self.ask(at, now, Asked::Logout(reason), |initiator| initiator.logout(reason));
            }
            5 => {
                let lane = path.any_lane(&mut self.rng).map(|lane| lane.link);
                if let Some(link) = lane.filter(|_| self.rng.chance(50)) {
                    network.cut(link, Cut::AfterSome, now);
                } else {
                    self.give_up(at, network, now, true)?;
                }
            }
            6 => {
                path.give_up(&mut self.monitors, network, now, false)?;
                return Ok(Some(path.connect(network, now, &mut self.rng)));
            }
            7 => {
                let cid = path.free_cid();
                return Ok(cid.and_then(|cid| path.join(cid, network, now)));
            }
            8 if path.lanes.len() > 1 => self.part(at, now),
            9 => {
                let ready = path.any_ready(&mut self.rng).map(|lane| lane.cid());
                // A session with one connection has it replaced less often.
                if let Some(cid) = ready.filter(|_| path.lanes.len() > 1 || self.rng.chance(20)) {
                    let closes = self.rng.chance(50);
                    path.lose_lane(cid, &mut self.monitors, network, now, closes);
                    return self.tend_failed(at, network, now);
                }
            }
            _ => {}
        }
        Ok(None)
    }

    /// Logs one of several connections out.
    fn part(&mut self, at: usize, now: Duration) {
        let path = &mut self.paths[at];
        let ready = path.lanes.iter().filter(|lane| lane.initiator.is_logged_in()).count();
        let Some(lane) = path.any_ready(&mut self.rng).filter(|_| ready > 1) else { return };
        let cid = lane.cid();
        let reason = LogoutReason::CloseConnection(cid);
        if let Ok(itt) = lane.initiator.logout(reason) {
            let (asked, deadline) = (Asked::Logout(reason), Path::deadline(now));
            path.requests.insert(itt, Request { asked, cid, deadline });
        }
    }

    /// Handles a connection that has failed at the target: another one replaces it, or it is logged
    /// out over another one, or the session is given up. Returns a connection that was opened.
    pub(super) fn tend_failed(
        &mut self,
        at: usize,
        network: &mut Network,
        now: Duration,
    ) -> Result<Option<Link>, String> {
        let path = &mut self.paths[at];
        let Some(cid) = path.failed_cid() else { return Ok(None) };
        let has_other = path.is_logged_in();
        match self.rng.weighted(&[60, if has_other { 30 } else { 0 }, 10]) {
            0 => Ok(path.join(cid, network, now)),
            1 => {
                let reason = LogoutReason::CloseConnection(cid);
                self.ask(at, now, Asked::Logout(reason), |initiator| initiator.logout(reason));
                Ok(None)
            }
            _ => self.give_up(at, network, now, true).map(|()| None),
        }
    }

    /// Handles a connection that has ended, or can no longer be used.
    pub(super) fn connection_failed(
        &mut self,
        at: usize,
        cid: u16,
        network: &mut Network,
        now: Duration,
    ) -> Result<(), String> {
        let path = &mut self.paths[at];
        let Some(lane) = path.lane(cid) else { return Ok(()) };
        let (is_ready, is_joined) = (lane.initiator.is_logged_in(), lane.is_joined);
        let is_login = !is_ready && !lane.initiator.is_leaving();
        let is_last = path.lanes.len() == 1 && path.orphans.is_empty();
        let ends_session =
            |request: &Request| matches!(request.asked, Asked::Logout(LogoutReason::CloseSession));
        let ends_all = path.is_doomed || path.requests.values().any(ends_session);
        if ends_all || is_login && (!is_joined || is_last) {
            return self.give_up(at, network, now, true);
        }
        if is_login {
            path.drop_joining(cid, network, now);
            return Ok(());
        }
        // Most hosts end a session that lost its only connection.
        let percent = if path.lanes.len() > 1 { 30 } else { 90 };
        if self.rng.chance(percent) {
            return self.give_up(at, network, now, true);
        }
        path.lose_lane(cid, &mut self.monitors, network, now, true);
        Ok(())
    }

    fn ask<E>(
        &mut self,
        at: usize,
        now: Duration,
        asked: Asked,
        ask: impl FnOnce(&mut Initiator) -> Result<Itt, E>,
    ) {
        let path = &mut self.paths[at];
        let Some(lane) = path.any_ready(&mut self.rng) else { return };
        let cid = lane.cid();
        if let Ok(itt) = ask(&mut lane.initiator) {
            path.requests.insert(itt, Request { asked, cid, deadline: Path::deadline(now) });
        }
    }

    fn reset(&mut self, at: usize, now: Duration) {
        let units = self.plan.units.len();
        let unit = self.rng.below(units as u64) as usize;
        let function = match self.rng.weighted(&[40, 10, 2, 24, 24]) {
            0 => Function::LogicalUnitReset,
            1 => Function::TargetWarmReset,
            2 => Function::TargetColdReset,
            3 => Function::AbortTaskSet,
            _ => Function::ClearTaskSet,
        };
        let lun = lun(unit);
        let asked = match function {
            Function::LogicalUnitReset => self.asked_reset(function, lun, unit..unit + 1),
            Function::TargetWarmReset => self.asked_reset(function, lun, 0..units),
            Function::TargetColdReset => Asked::ColdReset,
            _ => Asked::Set { function, lun },
        };
        self.ask(at, now, asked, |path| path.task_management(function, lun));
    }

    fn asked_reset(&mut self, function: Function, lun: [u8; 8], units: Range<usize>) -> Asked {
        let claims = units.map(|unit| {
            let claim = self.monitors.claim(unit, Op::Reset);
            (unit, claim, self.monitors.attentions.resets(unit))
        });
        Asked::Reset { function, lun, claims: claims.collect() }
    }
}
