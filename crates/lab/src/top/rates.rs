//! The activity between two snapshots.

use super::snapshot::{DeviceSnapshot, HostSnapshot, Snapshot};
use crate::host::{Class, Ended, Tally, Totals};

/// Bytes in esxtop's MB.
const MB: f64 = 1_048_576.0;

/// What a host did to a device: in total, and in the last interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The host's name.
    pub host: String,
    /// The device's name.
    pub device: String,
    /// The device's LUN.
    pub lun: u16,
    /// The interval, in seconds.
    pub seconds: f64,
    /// The totals.
    pub all: Totals,
    /// The counts of the interval.
    pub recent: Totals,
}

/// What a host did on all its paths.
#[derive(Clone, Debug, PartialEq)]
pub struct HostLine {
    /// The host's name.
    pub host: String,
    /// The number of paths that can be used now.
    pub paths_up: usize,
    /// The number of its paths.
    pub paths: usize,
    /// Commands per second.
    pub commands: f64,
    /// MB per second that it sent.
    pub sent_mb: f64,
    /// MB per second that it received.
    pub received_mb: f64,
}

impl Line {
    /// Returns a count of the interval as a rate per second.
    pub fn per_second(&self, count: u64) -> f64 {
        rate(count, self.seconds)
    }

    /// Returns bytes of the interval in MB per second.
    pub fn mb_per_second(&self, bytes: u64) -> f64 {
        rate(bytes, self.seconds) / MB
    }
}

/// Returns what happened between two snapshots, a line for each host and device of the later one.
/// Counters that have decreased belong to a new host, or to another run: they began at zero.
pub fn rates(before: &Snapshot, after: &Snapshot) -> Vec<Line> {
    let seconds = after.time_since(before).as_secs_f64();
    let mut lines = Vec::new();
    for host in &after.hosts {
        let earlier = host_of(before, after, host);
        for device in &host.devices {
            let known = earlier.and_then(|host| device_of(host, device));
            lines.push(Line {
                host: host.name.clone(),
                device: device.name.clone(),
                lun: device.lun,
                seconds,
                all: device.totals.clone(),
                recent: between(known.map(|known| &known.totals), &device.totals),
            });
        }
    }
    lines
}

/// Returns the same for the paths of each host.
pub fn host_rates(before: &Snapshot, after: &Snapshot) -> Vec<HostLine> {
    let seconds = after.time_since(before).as_secs_f64();
    let line = |host: &HostSnapshot| {
        let earlier = host_of(before, after, host);
        let is_anew = earlier.is_some_and(|earlier| {
            earlier.commands > host.commands
                || earlier.sent_bytes > host.sent_bytes
                || earlier.received_bytes > host.received_bytes
        });
        let earlier = earlier.filter(|_| !is_anew);
        let since = |field: fn(&HostSnapshot) -> u64| {
            rate(field(host) - earlier.map(field).unwrap_or_default(), seconds)
        };
        HostLine {
            host: host.name.clone(),
            paths_up: host.paths_up,
            paths: host.paths,
            commands: since(|host| host.commands),
            sent_mb: since(|host| host.sent_bytes) / MB,
            received_mb: since(|host| host.received_bytes) / MB,
        }
    };
    after.hosts.iter().map(line).collect()
}

fn rate(count: u64, seconds: f64) -> f64 {
    if seconds > 0.0 { count as f64 / seconds } else { 0.0 }
}

fn host_of<'a>(
    before: &'a Snapshot,
    after: &Snapshot,
    host: &HostSnapshot,
) -> Option<&'a HostSnapshot> {
    let is_one_run = after.is_of_the_run_of(before);
    before.hosts.iter().find(|earlier| is_one_run && earlier.name == host.name)
}

fn device_of<'a>(host: &'a HostSnapshot, device: &DeviceSnapshot) -> Option<&'a DeviceSnapshot> {
    host.devices.iter().find(|known| (known.lun, &known.name) == (device.lun, &device.name))
}

/// Returns what was added to `before`; all of `after` if it has restarted meanwhile.
fn between(before: Option<&Totals>, after: &Totals) -> Totals {
    before.and_then(|before| added(before, after)).unwrap_or_else(|| after.clone())
}

/// Returns the increase; `None` if something has decreased.
fn added(before: &Totals, after: &Totals) -> Option<Totals> {
    let mut classes = after.classes.clone();
    for class in Class::ALL {
        let (earlier, later) = (before.of(class), after.of(class));
        let good = tally_added(&earlier.good, &later.good)?;
        let failed = tally_added(&earlier.failed, &later.failed)?;
        if classes.contains_key(&class) {
            classes.insert(class, Ended { good, failed });
        }
    }
    Some(Totals {
        classes,
        clone_read: tally_added(&before.clone_read, &after.clone_read)?,
        clone_written: tally_added(&before.clone_written, &after.clone_written)?,
        conflicts: after.conflicts.checked_sub(before.conflicts)?,
        miscompares: after.miscompares.checked_sub(before.miscompares)?,
        retries: after.retries.checked_sub(before.retries)?,
    })
}

fn tally_added(before: &Tally, after: &Tally) -> Option<Tally> {
    Some(Tally {
        count: after.count.checked_sub(before.count)?,
        bytes: after.bytes.checked_sub(before.bytes)?,
        latency_us: after.latency_us.checked_sub(before.latency_us)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a host with one device, after this many copies of 1 MiB, 2 ms each.
    fn snapshot(pid: u32, seconds: u64, copies: u64) -> Snapshot {
        let tally = Tally { count: copies, bytes: copies << 20, latency_us: copies * 2000 };
        let mut totals = Totals { clone_read: tally, conflicts: copies, ..Totals::default() };
        totals.classes.insert(Class::Clone, Ended { good: tally, failed: Tally::default() });
        let device = DeviceSnapshot { name: "naa.6".into(), lun: 1, totals };
        let host = HostSnapshot {
            name: "esx-1".into(),
            commands: copies,
            sent_bytes: copies << 20,
            devices: vec![device],
            ..HostSnapshot::default()
        };
        let monotonic_us = seconds * 1_000_000;
        Snapshot { pid, monotonic_us, hosts: vec![host], ..Snapshot::default() }
    }

    fn one(before: &Snapshot, after: &Snapshot) -> Line {
        let mut lines = rates(before, after);
        assert_eq!(lines.len(), 1);
        lines.remove(0)
    }

    #[test]
    fn counts_are_totals_and_rates_are_of_the_interval() {
        let (before, after) = (snapshot(1, 10, 100), snapshot(1, 15, 120));
        let line = one(&before, &after);
        assert_eq!(line.all.of(Class::Clone).good.count, 120);
        assert_eq!(line.recent.of(Class::Clone).good.count, 20);
        assert_eq!((line.recent.conflicts, line.recent.clone_read.bytes), (20, 20 << 20));
        assert_eq!(line.per_second(line.recent.conflicts), 4.0);
        assert_eq!(line.mb_per_second(line.recent.clone_read.bytes), 4.0);
        let host = host_rates(&before, &after).remove(0);
        assert_eq!((host.commands, host.sent_mb, host.received_mb), (4.0, 4.0, 0.0));
    }

    #[test]
    fn nothing_is_negative_after_a_restart_of_the_lab() {
        let (old, new) = (snapshot(1, 500, 100), snapshot(2, 2, 10));
        let line = one(&old, &new);
        assert_eq!((line.seconds, line.recent.conflicts), (2.0, 10));
        assert_eq!(host_rates(&old, &new)[0].commands, 5.0);
        // More than before, but of another run.
        assert_eq!(one(&old, &snapshot(2, 2, 300)).recent.conflicts, 300);
    }

    #[test]
    fn nothing_is_negative_after_a_host_was_replaced() {
        let (old, new) = (snapshot(1, 10, 100), snapshot(1, 12, 6));
        assert_eq!(one(&old, &new).recent.clone_read.count, 6);
        assert_eq!(host_rates(&old, &new)[0].commands, 3.0);
        let mut gone = old.clone();
        gone.hosts[0].devices.clear();
        assert_eq!(one(&gone, &new).recent.conflicts, 6);
        assert!(rates(&new, &gone).is_empty());
    }

    #[test]
    fn an_interval_of_zero_has_no_rate() {
        let (before, after) = (snapshot(1, 10, 100), snapshot(1, 10, 120));
        assert_eq!(one(&before, &after).per_second(20), 0.0);
    }
}
