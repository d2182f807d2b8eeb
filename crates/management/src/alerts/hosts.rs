//! Problems of hosts: paths, sessions, and offloads that they could use.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use array::{AlertCode, Seen, Severity};

use super::judge::{DAY_MS, MINUTE_MS, holds};
use super::look::{Done, HostLook, Look};
use front::counters::{Class, ClassSnapshot};

/// How long a host may lack a path, or all paths, before that is reported: it may just reboot.
const PATH_MS: u64 = 2 * MINUTE_MS;
/// The window in which different kinds of commands are compared.
const WINDOW_MS: u64 = 10 * MINUTE_MS;
/// The interval at which counters are recorded within it.
const STEP_MS: u64 = MINUTE_MS;
/// The number of failures of an offload in the window, without any success, that is reported.
const FAILURES_MIN: u64 = 5;
/// The bytes that a host must both read and write in the window to be considered copying.
const COPIED_MIN_BYTES: u64 = 4 << 30;
/// The average length, in bytes, of reads and writes of a copy.
const COPY_PIECE_BYTES: u64 = 128 << 10;
/// The bytes of zeros that a host must send as data in the window.
const ZEROS_MIN_BYTES: u64 = 1 << 30;
/// How long a host's habit is reported after it was last seen.
const HABIT_MS: u64 = DAY_MS;
/// The bytes a host must have written before it is expected to unmap any.
const WRITTEN_MIN_BYTES: u64 = 16 << 30;
/// The number of reservations without a single ATS from which a host is reported.
const RESERVES_MIN: u64 = 10;

/// The offloads that hosts send as separate commands, with their names.
const OFFLOADS: [(Class, &str); 4] = [
    (Class::Copy, "EXTENDED COPY"),
    (Class::CompareAndWrite, "COMPARE AND WRITE"),
    (Class::Zero, "WRITE SAME"),
    (Class::Delete, "UNMAP"),
];

/// The recorded state of hosts.
#[derive(Default)]
pub(super) struct Hosts {
    /// The state of each host seen since the start.
    known: BTreeMap<String, Known>,
}

/// The recorded state of a host.
#[derive(Default)]
struct Known {
    /// Since when it has one path of several.
    one_path_ms: Option<u64>,
    /// Since when it has no session: since its logout, if that time is known.
    gone_ms: Option<u64>,
    /// Times and counters within the window, oldest first.
    past: VecDeque<(u64, Done)>,
    /// It copies by itself.
    copies: Habit,
    /// It sends zeros as data.
    zeroes: Habit,
    /// Offloads that were refused when they were last seen.
    refused: BTreeSet<usize>,
}

impl Hosts {
    pub(super) fn judge(&mut self, look: &Look) -> Vec<Seen> {
        let names: BTreeSet<&str> = look.hosts.iter().map(|host| host.name.as_str()).collect();
        self.known.retain(|name, _| names.contains(name.as_str()));
        let mut seen = Vec::new();
        for host in &look.hosts {
            let was_never_there = host.sessions == 0 && host.last_logout_ms.is_none();
            if was_never_there && !self.known.contains_key(&host.name) {
                // It may still log in: conditions from before the start persist.
                let codes = [
                    AlertCode::HostOnePath,
                    AlertCode::HostGone,
                    AlertCode::OffloadRefused,
                    AlertCode::OffloadOff,
                    AlertCode::NoReclaim,
                    AlertCode::CopiesByHost,
                    AlertCode::NoAts,
                    AlertCode::ZerosByHost,
                ];
                seen.extend(codes.map(|code| Seen::Unsure(code, host.name.clone())));
                continue;
            }
            let known = self.known.entry(host.name.clone()).or_default();
            seen.extend(known.paths(host, look));
            seen.extend(known.gone(host, look));
            known.remember(host, look.now_ms);
            seen.extend(known.refused(host));
            seen.extend(off(host));
            seen.extend(no_reclaim(host, look));
            seen.extend(known.copies(host, look.now_ms));
            seen.extend(known.zeroes(host, look.now_ms));
            seen.extend(no_ats(host));
        }
        seen
    }
}

/// Returns since when something is true, and whether that is long enough to report.
fn lasts(since_ms: &mut Option<u64>, is_so: bool, now_ms: u64) -> bool {
    if !is_so {
        *since_ms = None;
        return false;
    }
    now_ms.saturating_sub(*since_ms.get_or_insert(now_ms)) >= PATH_MS
}

/// A habit of a host: when it was last seen.
#[derive(Default)]
struct Habit(Option<u64>);

impl Habit {
    /// Notes whether a host uses an offload, does the work itself, or neither. Returns whether the
    /// second is seen now (`Some(true)`), or was seen within the last day.
    fn see(&mut self, offloads: bool, by_itself: bool, now_ms: u64) -> Option<bool> {
        if offloads {
            self.0 = None;
        } else if by_itself {
            self.0 = Some(now_ms);
        }
        self.0 = self.0.filter(|at| now_ms.saturating_sub(*at) < HABIT_MS);
        self.0.map(|at| at == now_ms)
    }
}

impl Known {
    fn paths(&mut self, host: &HostLook, look: &Look) -> Option<Seen> {
        let code = AlertCode::HostOnePath;
        let portals: BTreeSet<u16> = host.portals.union(&host.portals_left).copied().collect();
        let is_one = look.portals > 1 && portals.len() == 1;
        let is_told = lasts(&mut self.one_path_ms, is_one, look.now_ms);
        let portal = portals.first().copied().unwrap_or(0);
        let actual = format!("{} sessions, all on portal {portal}", host.sessions);
        let expected = format!("sessions on at least 2 of {} portals", look.portals);
        match (is_one, is_told) {
            (false, _) => None,
            (true, true) => Some(holds(code, &host.name, Severity::Warning, actual, expected)),
            (true, false) => Some(Seen::Unsure(code, host.name.clone())),
        }
    }

    fn gone(&mut self, host: &HostLook, look: &Look) -> Option<Seen> {
        let code = AlertCode::HostGone;
        let is_gone = host.sessions == 0 && host.connections > 0;
        // It is gone since its logout, not since that was noticed: it may have logged in again in
        // between.
        if let Some(left_ms) = host.last_logout_ms.filter(|_| is_gone) {
            self.gone_ms = self.gone_ms.max(Some(left_ms));
        }
        if lasts(&mut self.gone_ms, is_gone, look.now_ms) {
            let actual = format!("no session, and {} connected volumes", host.connections);
            return Some(holds(code, &host.name, Severity::Warning, actual, "a session"));
        }
        // A host that has just logged out was present: that ends an earlier condition.
        let is_unsure = is_gone && host.last_logout_ms.is_none();
        is_unsure.then(|| Seen::Unsure(code, host.name.clone()))
    }

    fn remember(&mut self, host: &HostLook, now_ms: u64) {
        if self.past.back().is_some_and(|(at, _)| now_ms < *at) {
            self.past.clear();
        }
        if self.past.back().is_none_or(|(at, _)| now_ms - at >= STEP_MS) {
            self.past.push_back((now_ms, host.done));
        }
        while self.past.get(1).is_some_and(|(at, _)| at + WINDOW_MS <= now_ms) {
            self.past.pop_front();
        }
    }

    /// Returns the counters of a class within the window.
    fn recent(&self, host: &HostLook, class: Class) -> ClassSnapshot {
        let now = host.class(class);
        let before = self.past.front().map_or(now, |(_, done)| done.classes[class as usize]);
        now.since(before)
    }

    /// Reports offloads that were sent in the window without success. An offload stays refused
    /// until one succeeds.
    fn refused(&mut self, host: &HostLook) -> Option<Seen> {
        let mut failures = Vec::new();
        for (index, (class, name)) in OFFLOADS.into_iter().enumerate() {
            let recent = self.recent(host, class);
            if recent.ok > 0 {
                self.refused.remove(&index);
            } else if recent.failed >= FAILURES_MIN {
                self.refused.insert(index);
            }
            if self.refused.contains(&index) {
                failures
                    .push(format!("{name} ({} failed since the start)", host.class(class).failed));
            }
        }
        let actual = failures.join(", ");
        let code = AlertCode::OffloadRefused;
        (!actual.is_empty())
            .then(|| holds(code, &host.name, Severity::Warning, actual, "they succeed"))
    }

    /// Reports a host that has read and written about the same amount, in long pieces, without any
    /// offloaded copy.
    fn copies(&mut self, host: &HostLook, now_ms: u64) -> Option<Seen> {
        let code = AlertCode::CopiesByHost;
        let of = |class| self.recent(host, class);
        let (read, write, copy) = (of(Class::Read), of(Class::Write), of(Class::Copy));
        let is_long =
            |part: ClassSnapshot| part.bytes >= part.ok.saturating_mul(COPY_PIECE_BYTES).max(1);
        let (less, more) = (read.bytes.min(write.bytes), read.bytes.max(write.bytes));
        let is_even = more - less <= more / 10;
        let by_itself = less >= COPIED_MIN_BYTES && is_even && is_long(read) && is_long(write);
        if !self.copies.see(copy.ok > 0, by_itself, now_ms)? {
            return Some(Seen::Unsure(code, host.name.clone()));
        }
        let reason = match host.off.contains(block::Offload::ExtendedCopy.name()) {
            true => "full copy is switched off on the array",
            false => "no EXTENDED COPY arrived",
        };
        let gib = less >> 30;
        let actual = format!("{gib} GiB were both read and written in 10 minutes; {reason}");
        Some(holds(code, &host.name, Severity::Info, actual, "copies by EXTENDED COPY"))
    }

    /// Reports a host that has sent many zeros as data, without any WRITE SAME.
    fn zeroes(&mut self, host: &HostLook, now_ms: u64) -> Option<Seen> {
        let code = AlertCode::ZerosByHost;
        let before = self.past.front().map_or(host.done, |(_, done)| *done);
        let sent = host.done.zeros_bytes.saturating_sub(before.zeros_bytes);
        let offloads = self.recent(host, Class::Zero).ok > 0;
        if !self.zeroes.see(offloads, sent >= ZEROS_MIN_BYTES, now_ms)? {
            return Some(Seen::Unsure(code, host.name.clone()));
        }
        let reason = match host.off.contains(block::Offload::WriteSame.name()) {
            true => "block zero is switched off on the array",
            false => "no WRITE SAME arrived",
        };
        let actual = format!("{} MiB of zeros were sent in 10 minutes; {reason}", sent >> 20);
        Some(holds(code, &host.name, Severity::Info, actual, "zeros by WRITE SAME"))
    }
}

fn off(host: &HostLook) -> Option<Seen> {
    let code = AlertCode::OffloadOff;
    if host.sessions == 0 {
        return Some(Seen::Unsure(code, host.name.clone()));
    }
    let list = host.off.iter().copied().collect::<Vec<_>>().join(", ");
    let is_off = !list.is_empty();
    is_off.then(|| holds(code, &host.name, Severity::Info, format!("off: {list}"), "all are on"))
}

fn no_reclaim(host: &HostLook, look: &Look) -> Option<Seen> {
    let code = AlertCode::NoReclaim;
    let (write, delete) = (host.class(Class::Write), host.class(Class::Delete));
    if delete.ok > 0 || host.off.contains(block::Offload::Unmap.name()) {
        return None;
    }
    if write.bytes < WRITTEN_MIN_BYTES || look.uptime_ms < DAY_MS {
        return Some(Seen::Unsure(code, host.name.clone()));
    }
    let actual =
        format!("{} GiB were written since the start, and none unmapped", write.bytes >> 30);
    Some(holds(code, &host.name, Severity::Info, actual, "UNMAP of unused space"))
}

fn no_ats(host: &HostLook) -> Option<Seen> {
    let code = AlertCode::NoAts;
    if host.class(Class::CompareAndWrite).ok > 0 {
        return None;
    }
    if host.done.reserves < RESERVES_MIN {
        return Some(Seen::Unsure(code, host.name.clone()));
    }
    let reason = match host.off.contains(block::Offload::CompareAndWrite.name()) {
        true => "ATS is switched off on the array",
        false => "no COMPARE AND WRITE arrived",
    };
    let actual = format!("{} reservations of whole volumes; {reason}", host.done.reserves);
    Some(holds(code, &host.name, Severity::Info, actual, "locks by COMPARE AND WRITE"))
}
