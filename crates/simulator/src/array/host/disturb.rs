//! What hosts do beside commands: aborts, resets, pings, logouts, connections that are cut, and
//! sessions that are taken over.

use std::ops::Range;
use std::time::Duration;

use initiator::{Function, Itt, LogoutReason};

use super::path::{Asked, Path, Request};
use super::plan::Mix;
use super::{SimHosts, lun};
use crate::array::network::{Cut, Link, Network};
use crate::array::reservations::Op;

impl SimHosts {
    /// Something other than a command, now and then. Returns a connection that was opened.
    pub(super) fn disturb(
        &mut self,
        at: usize,
        network: &mut Network,
        now: Duration,
    ) -> Result<Option<Link>, String> {
        let Mix { aborts, resets, pings, logouts, cuts, takeovers, .. } = self.plan.mix;
        let usual = 10_000_u64.saturating_sub(aborts + resets + pings + logouts + cuts + takeovers);
        let path = &mut self.paths[at];
        match self.rng.weighted(&[usual, aborts, resets, pings, logouts, cuts, takeovers]) {
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
                self.ask(at, now, Asked::Logout, |initiator| initiator.logout(reason));
            }
            5 => {
                if let Some(link) = path.link.filter(|_| self.rng.chance(50)) {
                    network.cut(link, Cut::AfterSome, now);
                } else {
                    self.give_up(at, network, now, true)?;
                }
            }
            6 => {
                path.give_up(&mut self.monitors, network, now, false)?;
                return Ok(Some(path.connect(network, now, &mut self.rng)));
            }
            _ => {}
        }
        Ok(None)
    }

    fn ask<E>(
        &mut self,
        at: usize,
        now: Duration,
        asked: Asked,
        ask: impl FnOnce(&mut initiator::Initiator) -> Result<Itt, E>,
    ) {
        let path = &mut self.paths[at];
        if let Ok(itt) = ask(&mut path.initiator) {
            path.requests.insert(itt, Request { asked, deadline: Path::deadline(now) });
        }
    }

    fn reset(&mut self, at: usize, now: Duration) {
        let units = self.plan.units.len();
        let unit = self.rng.below(units as u64) as usize;
        let (function, asked) = match self.rng.weighted(&[40, 10, 2, 24, 24]) {
            0 => (Function::LogicalUnitReset, self.asked_reset(unit..unit + 1)),
            1 => (Function::TargetWarmReset, self.asked_reset(0..units)),
            2 => (Function::TargetColdReset, Asked::ColdReset),
            3 => (Function::AbortTaskSet, Asked::Set),
            _ => (Function::ClearTaskSet, Asked::Set),
        };
        self.ask(at, now, asked, |path| path.task_management(function, lun(unit)));
    }

    fn asked_reset(&mut self, units: Range<usize>) -> Asked {
        let claims = units.map(|unit| {
            let claim = self.monitors.claim(unit, Op::Reset);
            (unit, claim, self.monitors.attentions.resets(unit))
        });
        Asked::Reset(claims.collect())
    }
}
