//! Problems of the pool's device: transfers that fail, take long, or do not end.

use std::collections::VecDeque;

use array::{AlertCode, Seen, Severity};

use super::judge::{DAY_MS, MINUTE_MS, holds};
use super::look::Look;
use front::{DeviceSnapshot, TransferSnapshot};

/// How long a failure is reported.
const FAILURE_MEMORY_MS: u64 = DAY_MS;
/// How long retried writes are reported after the last one.
const RETRY_MEMORY_MS: u64 = 60 * MINUTE_MS;
/// The window for average latencies.
const WINDOW_MS: u64 = 5 * MINUTE_MS;
/// The interval at which counters are recorded within it.
const STEP_MS: u64 = MINUTE_MS;
/// The number of transfers of one direction in the window that make an average meaningful.
const TRANSFERS_MIN: u64 = 100;
/// The average latency from which a device is slow: flash takes a hundredth of it, a rotating disk
/// half.
const SLOW_US: u64 = 20_000;
/// The latency below which it is no longer slow, once it was.
const SLOW_OVER_US: u64 = 15_000;
/// The time without a completion after which transfers are stuck.
const STUCK_MS: u64 = MINUTE_MS / 2;

/// The recorded state of the device.
#[derive(Default)]
pub(super) struct Device {
    /// The number of failed reads and writes, and when the last one was seen.
    failures: (u64, u64),
    failed_ms: Option<u64>,
    /// Retried writes, data moved elsewhere, and failed flushes.
    retries: Recent,
    moved: Recent,
    flushes: Recent,
    /// Times and counters within the window, oldest first.
    past: VecDeque<(u64, DeviceSnapshot)>,
    is_slow: bool,
    reads: Progress,
    writes: Progress,
}

/// A counter, and when it was last seen to have increased.
#[derive(Default)]
struct Recent {
    count: u64,
    at_ms: Option<u64>,
}

impl Recent {
    /// Returns what to report of a counter that is now at `count`, for this long.
    fn judge(
        &mut self,
        look: &Look,
        (code, count): (AlertCode, u64),
        (what, memory_ms): (&str, u64),
    ) -> Option<Seen> {
        if count != self.count {
            *self = Self { count, at_ms: Some(look.now_ms) };
        }
        match self.at_ms {
            Some(at) if look.now_ms.saturating_sub(at) < memory_ms => {
                let actual = format!("{count} {what} since the start");
                Some(holds(code, &look.device, Severity::Warning, actual, "none"))
            }
            // What occurred before the start is no longer counted.
            None if look.uptime_ms < memory_ms => Some(Seen::Unsure(code, look.device.clone())),
            _ => None,
        }
    }
}

/// The progress of transfers of one direction.
#[derive(Default)]
struct Progress {
    ended: u64,
    /// When one had last ended, or none was in progress.
    at_ms: u64,
}

impl Progress {
    /// Returns for how long transfers have been in progress without any completion.
    fn stuck_ms(&mut self, transfers: TransferSnapshot, now_ms: u64) -> u64 {
        if transfers.under_way == 0 || transfers.ended() != self.ended || now_ms < self.at_ms {
            *self = Self { ended: transfers.ended(), at_ms: now_ms };
        }
        now_ms - self.at_ms
    }
}

impl Device {
    pub(super) fn judge(&mut self, look: &Look) -> Vec<Seen> {
        let refusing = self.refusing(look);
        let seen = [self.failing(look), self.slow(look)];
        seen.into_iter().chain(refusing).flatten().collect()
    }

    /// Reports requests that the device refused but that succeeded elsewhere or later.
    fn refusing(&mut self, look: &Look) -> [Option<Seen>; 3] {
        let retries = (AlertCode::DeviceRetries, look.retries);
        let moved = (AlertCode::DeviceMoved, look.moved_writes);
        let flushes = (AlertCode::DeviceFlushes, look.failed_flushes);
        [
            self.retries.judge(look, retries, ("retries of writes", RETRY_MEMORY_MS)),
            self.moved.judge(look, moved, ("writes were moved", FAILURE_MEMORY_MS)),
            self.flushes.judge(look, flushes, ("flushes failed", FAILURE_MEMORY_MS)),
        ]
    }

    fn failing(&mut self, look: &Look) -> Option<Seen> {
        let now = (look.transfers.reads.failed, look.transfers.writes.failed);
        if now != self.failures {
            self.failures = now;
            self.failed_ms = Some(look.now_ms);
        }
        let (reads, writes) = self.failures;
        let code = AlertCode::DeviceErrors;
        match self.failed_ms {
            Some(at) if look.now_ms.saturating_sub(at) < FAILURE_MEMORY_MS => {
                let severity = if writes > 0 { Severity::Critical } else { Severity::Warning };
                let actual = format!("{reads} reads and {writes} writes failed since the start");
                Some(holds(code, &look.device, severity, actual, "none"))
            }
            // What occurred before the start is no longer counted.
            None if look.uptime_ms < FAILURE_MEMORY_MS => {
                Some(Seen::Unsure(code, look.device.clone()))
            }
            _ => None,
        }
    }

    fn slow(&mut self, look: &Look) -> Option<Seen> {
        let code = AlertCode::DeviceSlow;
        let expected = format!("less than {} ms each", SLOW_US / 1000);
        self.remember(look);
        if let Some(actual) = self.stuck(look) {
            return Some(holds(code, &look.device, Severity::Critical, actual, expected));
        }
        let (since_ms, before) = *self.past.front()?;
        let means = [
            ("reads", mean_us(look.transfers.reads, before.reads)),
            ("commits", mean_us(look.transfers.writes, before.writes)),
        ];
        let known = means.into_iter().filter_map(|(what, mean)| Some((mean?, what)));
        let Some((mean_us, what)) = known.max().filter(|_| look.now_ms - since_ms >= WINDOW_MS)
        else {
            // Too few transfers to judge.
            return Some(Seen::Unsure(code, look.device.clone()));
        };
        self.is_slow = mean_us >= if self.is_slow { SLOW_OVER_US } else { SLOW_US };
        let actual = format!("{what} took {} ms each, for 5 minutes", mean_us / 1000);
        self.is_slow.then(|| holds(code, &look.device, Severity::Warning, actual, expected))
    }

    fn remember(&mut self, look: &Look) {
        let now_ms = look.now_ms;
        // A clock that was set back invalidates the records.
        if self.past.back().is_some_and(|(at, _)| now_ms < *at) {
            self.past.clear();
        }
        if self.past.back().is_none_or(|(at, _)| now_ms - at >= STEP_MS) {
            self.past.push_back((now_ms, look.transfers));
        }
        while self.past.get(1).is_some_and(|(at, _)| at + WINDOW_MS <= now_ms) {
            self.past.pop_front();
        }
    }

    fn stuck(&mut self, look: &Look) -> Option<String> {
        let DeviceSnapshot { reads, writes } = look.transfers;
        let all = [
            ("reads", reads, self.reads.stuck_ms(reads, look.now_ms)),
            ("commits", writes, self.writes.stuck_ms(writes, look.now_ms)),
        ];
        let (what, transfers, stuck_ms) = all.into_iter().max_by_key(|(.., ms)| *ms)?;
        let reported = format!("{} {what} in flight, none of which completes", transfers.under_way);
        (stuck_ms >= STUCK_MS).then_some(reported)
    }
}

/// Returns the average latency since `before`, in microseconds, if there were enough transfers.
fn mean_us(now: TransferSnapshot, before: TransferSnapshot) -> Option<u64> {
    let count = now.ok().saturating_sub(before.ok());
    let sum = now.ok_latency_us.saturating_sub(before.ok_latency_us);
    (count >= TRANSFERS_MIN).then(|| sum / count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use front::Latencies;

    /// Returns the device at a time: number and latency of reads since the start, and reads in
    /// progress.
    fn look(now_ms: u64, ok: u64, each_us: u64, under_way: u64) -> Look {
        let mut latencies = Latencies::default();
        latencies[0] = ok;
        let reads = TransferSnapshot {
            under_way,
            latencies,
            ok_latency_us: ok * each_us,
            ..TransferSnapshot::default()
        };
        let transfers = DeviceSnapshot { reads, writes: TransferSnapshot::default() };
        Look { now_ms, device: "pool.data".into(), transfers, ..Look::default() }
    }

    /// Returns what is reported of its speed: severity and actual value; `None` if nothing is
    /// known.
    fn reported(device: &mut Device, look: &Look) -> Option<(Severity, String)> {
        let seen = device.slow(look)?;
        let Seen::Holds(condition) = seen else { return None };
        assert_eq!((condition.code, &*condition.component), (AlertCode::DeviceSlow, "pool.data"));
        Some((condition.severity, condition.actual))
    }

    #[test]
    fn a_device_that_takes_long_for_five_minutes_is_slow() {
        let mut device = Device::default();
        let mut at = |second: u64, each_us| {
            // 10 per second: earlier latencies still count in the sum.
            reported(&mut device, &look(second * 1000, second * 10, each_us, 1))
        };
        for second in 0..300 {
            assert_eq!(at(second, 25_000), None, "{second} s are too short to judge");
        }
        let (severity, actual) = at(300, 25_000).unwrap();
        assert_eq!(
            (severity, &*actual),
            (Severity::Warning, "reads took 25 ms each, for 5 minutes")
        );
        let mut fast = Device::default();
        for second in 0..1000 {
            assert_eq!(reported(&mut fast, &look(second * 1000, second * 10, 19_999, 0)), None);
        }
        assert!(!fast.is_slow);
    }

    #[test]
    fn a_slow_device_recovers_with_a_margin_and_an_idle_one_is_not_judged() {
        let mut device = Device::default();
        let (mut ok, mut sum) = (0, 0);
        let mut minute = |device: &mut Device, now_ms: u64, count: u64, each_us: u64| {
            (ok, sum) = (ok + count, sum + count * each_us);
            let mut look = look(now_ms, ok, 0, 0);
            look.transfers.reads.ok_latency_us = sum;
            device.slow(&look)
        };
        let mut now_ms = 0;
        let mut minutes = |device: &mut Device, times: u64, count: u64, each_us: u64| {
            let mut last = None;
            for _ in 0..times {
                now_ms += MINUTE_MS;
                last = minute(device, now_ms, count, each_us);
            }
            last
        };
        let is_held = |seen: &Option<Seen>| matches!(seen, Some(Seen::Holds(_)));
        assert!(is_held(&minutes(&mut device, 6, 100, 30_000)));
        assert!(is_held(&minutes(&mut device, 6, 100, 16_000)), "not over yet");
        assert!(minutes(&mut device, 6, 100, 14_000).is_none(), "over");
        assert!(minutes(&mut device, 6, 100, 16_000).is_none(), "not slow again");
        assert!(matches!(minutes(&mut device, 6, 1, 90_000), Some(Seen::Unsure(..))), "too few");
    }

    #[test]
    fn retried_writes_are_reported_for_an_hour() {
        let mut device = Device::default();
        let mut at = |now_ms: u64, retries: u64| {
            let look = Look { retries, uptime_ms: now_ms, ..look(now_ms, 0, 0, 0) };
            let [retries, ..] = device.refusing(&look);
            retries
        };
        assert!(matches!(at(0, 0), Some(Seen::Unsure(AlertCode::DeviceRetries, _))));
        assert!(at(RETRY_MEMORY_MS, 0).is_none());
        for minute in [60, 61, 119] {
            let Some(Seen::Holds(condition)) = at(minute * MINUTE_MS, 3) else {
                panic!("minute {minute}")
            };
            assert_eq!(condition.severity, Severity::Warning);
            assert_eq!(condition.actual, "3 retries of writes since the start");
        }
        assert!(at(120 * MINUTE_MS, 3).is_none());
        assert!(matches!(at(121 * MINUTE_MS, 4), Some(Seen::Holds(_))));
    }

    /// Moved data and failed flushes have their own alerts, for a day.
    #[test]
    fn moved_writes_and_failed_flushes_are_reported_for_a_day() {
        let mut device = Device::default();
        let mut at = |now_ms: u64, moved_writes: u64, failed_flushes: u64| {
            let look = look(now_ms, 0, 0, 0);
            let look = Look { moved_writes, failed_flushes, uptime_ms: now_ms, ..look };
            let seen = device.judge(&look).into_iter();
            let reported = seen.filter_map(|seen| match seen {
                Seen::Holds(condition) => Some((condition.code.name(), condition.actual)),
                Seen::Unsure(..) => None,
            });
            reported.collect::<Vec<_>>()
        };
        assert_eq!(at(DAY_MS, 0, 0), []);
        let moved = ("device-moved", "1 writes were moved since the start".to_owned());
        let flushes = ("device-flushes", "2 flushes failed since the start".to_owned());
        assert_eq!(at(DAY_MS + MINUTE_MS, 1, 0), std::slice::from_ref(&moved));
        assert_eq!(at(2 * DAY_MS, 1, 2), [moved, flushes.clone()]);
        assert_eq!(at(2 * DAY_MS + MINUTE_MS, 1, 2), [flushes]);
        assert_eq!(at(3 * DAY_MS, 1, 2), []);
    }

    #[test]
    fn transfers_that_do_not_end_are_reported_soon() {
        let mut device = Device::default();
        assert_eq!(reported(&mut device, &look(5_000, 7, 80, 3)), None);
        assert_eq!(reported(&mut device, &look(34_000, 7, 80, 3)), None);
        let (severity, actual) = reported(&mut device, &look(35_000, 7, 80, 3)).unwrap();
        assert_eq!(severity, Severity::Critical);
        assert_eq!(actual, "3 reads in flight, none of which completes");
        assert_eq!(reported(&mut device, &look(40_000, 8, 80, 2)), None, "one has ended");
        // A long time with none in progress does not matter.
        assert_eq!(reported(&mut device, &look(45_000, 10, 80, 0)), None);
        assert_eq!(reported(&mut device, &look(140_000, 10, 80, 0)), None);
        assert_eq!(reported(&mut device, &look(145_000, 10, 80, 1)), None, "it has just begun");
        assert_eq!(
            reported(&mut device, &look(100_000, 10, 80, 1)),
            None,
            "the clock was set back"
        );
        assert!(reported(&mut device, &look(130_000, 10, 80, 1)).is_some());
    }
}
