//! Problems of the pool and of background work, judged by current and earlier observations.

use std::collections::{BTreeMap, VecDeque};

use array::{AlertCode, Condition, Seen, Severity};

use super::device::Device;
use super::health::Health;
use super::hosts::Hosts;
use super::look::Look;
use super::{directory, members, time};

pub(super) const MINUTE_MS: u64 = 60_000;
pub(super) const HOUR_MS: u64 = 60 * MINUTE_MS;
pub(super) const DAY_MS: u64 = 24 * HOUR_MS;

/// The subject of alerts of the pool.
const POOL: &str = "pool";
/// By how many percentage points usage must fall below a threshold to end the alert.
const SPACE_SLACK: u64 = 2;
/// The percentage from which usage is critical, whatever the thresholds.
const SPACE_CRITICAL: u64 = 95;
/// The percentage of usage below which the growth of a pool is not reported: new pools fill fast.
const TREND_USED_MIN: u64 = 50;
/// The interval at which usage is recorded, the most samples, and the fewest that are judged.
const TREND_STEP_MS: u64 = 10 * MINUTE_MS;
const TREND_SAMPLES_MAX: usize = 144;
const TREND_SAMPLES_MIN: usize = 36;
/// A pool that will be full within the first time is a warning, within the second it is critical.
const FULL_WARNING_MS: u64 = 7 * DAY_MS;
const FULL_CRITICAL_MS: u64 = DAY_MS;
/// The time before its end at which a certificate is a warning, and critical.
const CERTIFICATE_WARNING_MS: u64 = 30 * DAY_MS;
const CERTIFICATE_CRITICAL_MS: u64 = 7 * DAY_MS;
/// The number of refusals of an initiator within a time that is reported, and the most initiators
/// reported.
const REFUSALS_MIN: u64 = 5;
const REFUSALS_MS: u64 = 10 * MINUTE_MS;
const REFUSALS_TOLD_MAX: usize = 20;

/// The normal absence of a controller that is restarted, or that follows after a switch.
const CONTROLLER_AWAY_MS: u64 = 30_000;

/// The recorded observations.
#[derive(Default)]
pub(super) struct Judge {
    /// The reported severity of the pool's usage.
    space: Option<Severity>,
    full_soon: Option<Severity>,
    /// Times, and bytes in use.
    trend: VecDeque<(u64, u64)>,
    device: Device,
    health: Health,
    /// Times and counts of refusals, by initiator.
    refused: BTreeMap<String, VecDeque<(u64, u64)>>,
    hosts: Hosts,
    /// Since when the other controller has been absent.
    away_since_ms: Option<u64>,
}

/// Returns a condition that holds.
pub(super) fn holds(
    code: AlertCode,
    component: &str,
    severity: Severity,
    actual: impl Into<String>,
    expected: impl Into<String>,
) -> Seen {
    let (actual, expected) = (actual.into(), expected.into());
    Seen::Holds(Condition { code, component: component.to_owned(), severity, actual, expected })
}

impl Judge {
    /// Returns all conditions that hold, and all that are unknown.
    pub(super) fn judge(&mut self, look: &Look) -> Vec<Seen> {
        let mut seen = Vec::new();
        seen.extend(self.space(look));
        seen.extend(self.full_soon(look));
        seen.extend(damage(look));
        seen.extend(self.device.judge(look));
        seen.extend(members::judge(&look.members));
        seen.extend(self.health.judge(look.now_ms, &look.healths));
        seen.extend(self.controller(look));
        if look.has_failed {
            let (actual, expected) = ("writes are refused", "writes are accepted");
            seen.push(holds(AlertCode::StoreFailed, POOL, Severity::Critical, actual, expected));
        }
        for (what, why) in &look.troubles {
            let expected = "it makes progress";
            seen.push(holds(AlertCode::BackgroundFailed, what, Severity::Warning, why, expected));
        }
        for (group, outcome) in &look.snapshots {
            seen.extend(snapshots(group, outcome.as_ref()));
        }
        seen.extend(look.clock_jump_ms.map(clock));
        seen.extend(time::judge(&look.clock));
        seen.extend(directory::judge(look.directory.as_ref()));
        seen.extend(self.refused(look));
        seen.extend(certificate(look));
        for (name, trouble) in &look.notifications {
            let code = AlertCode::NotificationFailed;
            let trouble = trouble.as_ref();
            seen.extend(
                trouble.map(|why| holds(code, name, Severity::Warning, why, "it can be sent")),
            );
        }
        seen.extend(self.hosts.judge(look));
        seen
    }

    fn space(&mut self, look: &Look) -> Vec<Seen> {
        let percent = percent(look.used_bytes, look.capacity_bytes);
        let last = look.thresholds.last().copied().map_or(SPACE_CRITICAL, u64::from);
        let first = look.thresholds.first().copied().map_or(SPACE_CRITICAL, u64::from);
        let critical = if last > first { last } else { SPACE_CRITICAL.max(first) };
        let slack = |held: Option<Severity>, severity| match held {
            Some(held) if held >= severity => SPACE_SLACK,
            _ => 0,
        };
        let above =
            |severity, limit: u64| percent >= limit.saturating_sub(slack(self.space, severity));
        self.space = if above(Severity::Critical, critical) {
            Some(Severity::Critical)
        } else if above(Severity::Warning, first) {
            Some(Severity::Warning)
        } else {
            None
        };
        let mut seen = Vec::new();
        if let Some(severity) = self.space {
            let actual = format!("{percent}% in use");
            let expected = format!("less than {first}%");
            seen.push(holds(AlertCode::PoolSpace, POOL, severity, actual, expected));
        }
        if look.capacity_bytes > 0 && look.used_bytes >= look.capacity_bytes {
            let (actual, expected) = ("no space is left", "space for hosts");
            seen.push(holds(AlertCode::PoolFull, POOL, Severity::Critical, actual, expected));
        }
        seen
    }

    fn full_soon(&mut self, look: &Look) -> Option<Seen> {
        let last_ms = self.trend.back().map(|(at, _)| *at);
        // A clock that was set back invalidates the records.
        if last_ms.is_some_and(|last| look.now_ms < last) {
            self.trend.clear();
        }
        if last_ms.is_none_or(|last| look.now_ms.saturating_sub(last) >= TREND_STEP_MS) {
            self.trend.push_back((look.now_ms, look.used_bytes));
            if self.trend.len() > TREND_SAMPLES_MAX {
                self.trend.pop_front();
            }
        }
        let code = AlertCode::PoolFullSoon;
        if self.trend.len() < TREND_SAMPLES_MIN {
            return Some(Seen::Unsure(code, POOL.into()));
        }
        let left_bytes = look.capacity_bytes.saturating_sub(look.used_bytes);
        let is_used = percent(look.used_bytes, look.capacity_bytes) >= TREND_USED_MIN;
        let left_ms = bytes_per_ms(&self.trend)
            .filter(|rate| is_used && *rate > 0.0)
            .map(|rate| (left_bytes as f64 / rate) as u64);
        // A reported condition ends only with a margin of a third.
        let slack = |severity| if self.full_soon >= Some(severity) { 4 } else { 3 };
        let within = |severity, ms: u64| left_ms.is_some_and(|l| l < ms / 3 * slack(severity));
        self.full_soon = if within(Severity::Critical, FULL_CRITICAL_MS) {
            Some(Severity::Critical)
        } else if within(Severity::Warning, FULL_WARNING_MS) {
            Some(Severity::Warning)
        } else {
            None
        };
        let hours = left_ms? / HOUR_MS;
        let actual = format!("full in {hours} hours");
        self.full_soon.map(|severity| holds(code, POOL, severity, actual, "more than 7 days"))
    }

    fn controller(&mut self, look: &Look) -> Option<Seen> {
        let Some(name) = look.missing_controller else {
            self.away_since_ms = None;
            return None;
        };
        let since_ms = *self.away_since_ms.get_or_insert(look.uptime_ms);
        let is_long = look.uptime_ms.saturating_sub(since_ms) >= CONTROLLER_AWAY_MS;
        let (code, expected) = (AlertCode::ControllerMissing, "it forwards");
        if look.is_stopped {
            let actual = format!("it was stopped: holdfast controller start {name}");
            return Some(holds(code, name, Severity::Info, actual, expected));
        }
        let actual = "nothing is heard from it";
        is_long.then(|| holds(code, name, Severity::Warning, actual, expected))
    }

    /// Reports initiators that were refused often in the last minutes, the most frequent first.
    fn refused(&mut self, look: &Look) -> Vec<Seen> {
        let mut often = Vec::new();
        self.refused.retain(|name, _| look.refused.contains_key(name));
        for (name, refused) in &look.refused {
            let past = self.refused.entry(name.clone()).or_default();
            if past.back().is_none_or(|(_, count)| *count != refused.count) {
                past.push_back((look.now_ms, refused.count));
            }
            while past.len() > 2 && past[1].0 + REFUSALS_MS < look.now_ms {
                past.pop_front();
            }
            let is_recent = |(at, _): &&(u64, u64)| at + REFUSALS_MS >= look.now_ms;
            let before = past.iter().rev().find(|at| !is_recent(at)).map_or(0, |(_, count)| *count);
            let recent = refused.count.saturating_sub(before);
            if recent >= REFUSALS_MIN {
                often.push((recent, name, refused.why()));
            }
        }
        often.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        often.truncate(REFUSALS_TOLD_MAX);
        let reported = |(recent, name, why): (u64, &String, &str)| {
            let actual = format!("{why}: {recent} times in 10 minutes");
            holds(AlertCode::LoginRefused, name, Severity::Warning, actual, "it logs in")
        };
        often.into_iter().map(reported).collect()
    }
}

fn damage(look: &Look) -> Option<Seen> {
    let code = AlertCode::Damage;
    if look.damaged > 0 {
        let actual = format!("{} places are damaged", look.damaged);
        return Some(holds(code, POOL, Severity::Critical, actual, "none"));
    }
    (!look.is_scrubbed).then(|| Seen::Unsure(code, POOL.into()))
}

fn snapshots(group: &str, outcome: Option<&Result<(), String>>) -> Option<Seen> {
    let code = AlertCode::SnapshotsMissed;
    match outcome {
        None => Some(Seen::Unsure(code, group.into())),
        Some(Ok(())) => None,
        Some(Err(why)) => Some(holds(code, group, Severity::Warning, why, "they are taken")),
    }
}

fn clock(jump_ms: i64) -> Seen {
    let way = if jump_ms < 0 { "back" } else { "ahead" };
    let actual = format!("it jumped {way} by {} s", jump_ms.unsigned_abs() / 1000);
    holds(AlertCode::ClockJumped, "clock", Severity::Warning, actual, "it runs evenly")
}

fn certificate(look: &Look) -> Option<Seen> {
    let certificate = look.certificate.as_ref()?;
    let left_ms = certificate.ends_ms.saturating_sub(look.now_ms);
    let severity = match left_ms {
        left if left <= CERTIFICATE_CRITICAL_MS => Severity::Critical,
        left if left <= CERTIFICATE_WARNING_MS => Severity::Warning,
        _ => return None,
    };
    let actual = match left_ms {
        0 => "it has expired".to_owned(),
        left => format!("it expires in {} days", left / DAY_MS),
    };
    let expected = "more than 30 days";
    Some(holds(AlertCode::CertificateEnds, &certificate.path, severity, actual, expected))
}

fn percent(part: u64, whole: u64) -> u64 {
    let percent = u128::from(part) * 100 / u128::from(whole.max(1));
    u64::try_from(percent).unwrap_or(100)
}

/// Returns the growth of the pool's usage, by a least-squares fit.
fn bytes_per_ms(samples: &VecDeque<(u64, u64)>) -> Option<f64> {
    let (first_ms, first_bytes) = *samples.front()?;
    let points = samples
        .iter()
        .map(|(at, used)| ((at - first_ms) as f64, *used as f64 - first_bytes as f64));
    let count = samples.len() as f64;
    let (mut x, mut y, mut xx, mut xy) = (0.0, 0.0, 0.0, 0.0);
    for (at, used) in points {
        (x, y, xx, xy) = (x + at, y + used, xx + at * at, xy + at * used);
    }
    let spread = count * xx - x * x;
    (spread > 0.0).then(|| (count * xy - x * y) / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_jump_of_the_clock_is_reported() {
        let look = Look { clock_jump_ms: Some(-90_500), ..Look::default() };
        let of_clock = |seen: &Seen| match seen {
            Seen::Holds(held) if held.code == AlertCode::ClockJumped => Some(held.actual.clone()),
            _ => None,
        };
        let reported = |look| Judge::default().judge(look).iter().find_map(of_clock);
        assert_eq!(reported(&look).as_deref(), Some("it jumped back by 90 s"));
        assert_eq!(reported(&Look::default()), None);
    }

    #[test]
    fn a_restarting_controller_is_not_missing() {
        let mut judge = Judge::default();
        let mut is_told = |second: u64, missing_controller| {
            let uptime_ms = second * 1000;
            judge.controller(&Look { uptime_ms, missing_controller, ..Look::default() }).is_some()
        };
        let ct1 = Some("ct1");
        assert!(!is_told(5, ct1) && !is_told(30, ct1) && !is_told(33, None));
        assert!(!is_told(40, ct1) && !is_told(69, ct1));
        assert!(is_told(70, ct1) && is_told(80, ct1) && !is_told(85, None));
        let look = Look { missing_controller: ct1, is_stopped: true, ..Look::default() };
        let Some(Seen::Holds(reported)) = judge.controller(&look) else {
            panic!("it is not reported")
        };
        assert_eq!(reported.severity, Severity::Info);
        assert!(reported.actual.ends_with("holdfast controller start ct1"), "{}", reported.actual);
    }
}
