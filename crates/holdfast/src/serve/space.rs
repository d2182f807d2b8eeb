//! Background space accounting: when it runs, and how it gives way to hosts.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use store::{SpacePass, StoreError};
use sys::attendant::{Attendant, LOOK_INTERVAL};
use sys::wall::now_ms;

use super::passes::Traffic;
use super::shared::Shared;

/// The idle time after which changes are accounted for.
const QUIET: Duration = Duration::from_secs(5);
/// The age at which inexact figures are renewed even if hosts are busy.
const STALE: Duration = Duration::from_secs(600);
/// The time between two passes as a multiple of a pass, unless one is requested.
const REST: u32 = 9;
/// The pause after a pass that could not finish.
const RETRY: Duration = Duration::from_secs(60);
/// Map nodes between two checks of hosts' activity: a few milliseconds at most.
const NODES_PER_LOOK: u32 = 64;
/// The pause as a multiple of the working time while hosts are busy.
const BUSY_PAUSE: u32 = 3;

/// Starts the thread for space accounting.
pub(super) fn start(shared: &Arc<Shared>) -> io::Result<Attendant> {
    let mut schedule = Schedule::default();
    let mut traffic = Traffic::new(shared.front.counters.clone());
    let shared = shared.clone();
    Attendant::start("space", Arc::default(), move |bell| {
        let now = shared.clock.now();
        let status = shared.front.store.space_status();
        schedule.look(now, traffic.has_moved(), status.current);
        let asked = shared.front.store.are_space_figures_asked_for();
        if asked || schedule.is_due(now, status.current) {
            let ended = account(&shared, &mut traffic, &|| bell.stopped());
            schedule.ended(now, shared.clock.now(), tell(ended));
        }
        LOOK_INTERVAL
    })
}

/// Runs one pass, which gives way to hosts.
fn account(
    shared: &Shared,
    traffic: &mut Traffic,
    stopped: &dyn Fn() -> bool,
) -> Result<SpacePass, StoreError> {
    let mut nodes = 0;
    let mut begun = shared.clock.now();
    shared.front.store.account_space(now_ms() / 1000, &mut || {
        nodes += 1;
        if nodes % NODES_PER_LOOK > 0 {
            return true;
        }
        if traffic.has_moved() {
            std::thread::sleep((shared.clock.now() - begun) * BUSY_PAUSE);
        }
        begun = shared.clock.now();
        !stopped()
    })
}

/// Logs why there are no figures. Returns whether there are.
fn tell(ended: Result<SpacePass, StoreError>) -> bool {
    match ended {
        Ok(SpacePass::Complete) => return true,
        Ok(SpacePass::Stopped) => {}
        Ok(SpacePass::GaveWay) => {
            tracing::info!(
                "space is accounted for later: the pool is nearly full, and hosts write"
            );
        }
        Err(error) => tracing::warn!("space can't be accounted for: {error}"),
    }
    false
}

/// Determines when a pass is due by itself.
#[derive(Debug, Default)]
struct Schedule {
    /// Since when nothing was transferred.
    quiet_since: Duration,
    /// When the figures were last seen to be exact.
    exact_at: Duration,
    not_before: Duration,
}

impl Schedule {
    fn look(&mut self, now: Duration, moved: bool, current: bool) {
        if moved {
            self.quiet_since = now;
        }
        if current {
            self.exact_at = now;
        }
    }

    fn is_due(&self, now: Duration, current: bool) -> bool {
        let quiet = now.saturating_sub(self.quiet_since) >= QUIET;
        let stale = now.saturating_sub(self.exact_at) >= STALE;
        !current && now >= self.not_before && (quiet || stale)
    }

    fn ended(&mut self, begun: Duration, now: Duration, complete: bool) {
        self.exact_at = now;
        let rest = (now - begun) * REST;
        self.not_before = now + if complete { rest } else { rest.max(RETRY) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_computed_when_hosts_are_idle_or_have_been_busy_for_long() {
        let seconds = Duration::from_secs;
        let mut schedule = Schedule::default();
        schedule.look(seconds(1), true, false);
        assert!(!schedule.is_due(seconds(5), false));
        schedule.look(seconds(5), false, false);
        assert!(schedule.is_due(seconds(6), false));
        // A pass of two seconds, then one that fails.
        schedule.ended(seconds(6), seconds(8), true);
        assert!(!schedule.is_due(seconds(25), false) && schedule.is_due(seconds(26), false));
        assert!(!schedule.is_due(seconds(26), true));
        schedule.ended(seconds(26), seconds(27), false);
        assert!(!schedule.is_due(seconds(86), false) && schedule.is_due(seconds(87), false));
        // Hosts that are never idle.
        for at in 100..=700 {
            schedule.look(seconds(at), true, at <= 110);
            assert!(!schedule.is_due(seconds(at), false), "at {at}");
        }
        schedule.look(seconds(710), true, false);
        assert!(schedule.is_due(seconds(710), false));
    }
}
