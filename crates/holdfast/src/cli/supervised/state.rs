//! The state of the array in its supervisor, and the effect of its messages.

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;
use std::time::Duration;

use rustix::process::{Signal, pidfd_send_signal};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::holds::Holds;
use crate::serve::controllers::Controller;
use crate::serve::tell_ready;

/// How long the array may not report that it is alive: an overloaded machine may run no process for
/// a while.
pub(super) const SILENCE_MAX: Duration = Duration::from_secs(5);
/// The interval of checks for silence.
pub(super) const LOOK_INTERVAL: Duration = Duration::from_millis(100);

/// The state of the array.
#[derive(Default)]
pub(super) struct State {
    /// The process that serves.
    pub(super) process: Option<OwnedFd>,
    /// Whether a process was ever ready.
    pub(super) was_ready: bool,
    /// How long the array has not reported that it is alive; `None` while it need not: before it is
    /// ready, and during an orderly end.
    pub(super) silence: Option<Duration>,
    /// Whether it was asked to end.
    pub(super) is_stopping: bool,
    /// The sockets that are kept, by their names.
    pub(super) kept: BTreeMap<String, OwnedFd>,
    /// Which of two controllers it is, and which one is kept stopped.
    pub(super) own: Option<Controller>,
    pub(super) holds: Holds,
    /// Whether it was asked to end because it is kept stopped.
    pub(super) is_told: bool,
}

impl State {
    /// Returns whether the array is not restarted after it has ended with this status. An array
    /// that was never ready has printed why, and would fail again.
    pub(super) fn is_over(&self, status: ExitStatus) -> bool {
        status.success() || was_asked(status) || self.is_stopping || !self.was_ready
    }

    /// Handles a message of the array, with its descriptors.
    pub(super) fn hear(&mut self, message: &str, descriptors: Vec<OwnedFd>) {
        let value = |key: &str| {
            let mut lines = message.lines();
            lines.find_map(|line| line.strip_prefix(key)?.strip_prefix('=').map(str::to_owned))
        };
        if value("READY").is_some_and(|ready| ready == "1") {
            self.was_ready = true;
            self.silence = Some(Duration::ZERO);
            if let Err(error) = tell_ready() {
                tracing::warn!("{error}");
            }
        }
        if value("STOPPING").is_some_and(|stopping| stopping == "1") {
            self.silence = None;
        }
        if value("WATCHDOG").is_some_and(|alive| alive == "1") {
            self.silence = self.silence.map(|_| Duration::ZERO);
        }
        for (key, down) in [("HOLD", true), ("RELEASE", false)] {
            value(key).iter().for_each(|name| self.holds.ask(self.own, name, down));
        }
        let Some(name) = value("FDNAME").filter(|name| !name.contains(':')) else { return };
        if value("FDSTOREREMOVE").is_some() {
            self.kept.remove(&name);
        } else if value("FDSTORE").is_some()
            && let Some(descriptor) = descriptors.into_iter().next()
        {
            self.kept.insert(name, descriptor);
        }
    }

    pub(super) fn is_held(&self) -> bool {
        self.holds.is_held(self.own)
    }

    /// Ends the controller, once, if it is to be kept stopped. Its sockets are closed then: hosts
    /// are refused, and use their other paths.
    pub(super) fn obey(&mut self) {
        if self.is_held() && !self.is_told && self.process.is_some() {
            self.is_told = true;
            self.kept.clear();
            self.signal(Signal::TERM);
        }
    }

    pub(super) fn stop(&mut self) {
        self.is_stopping = true;
        self.signal(Signal::TERM);
    }

    pub(super) fn signal(&self, signal: Signal) {
        if let Some(process) = &self.process {
            // It may have ended already.
            let _ = pidfd_send_signal(process, signal);
        }
    }

    /// Adds time without a message of the array. Kills the array when that is too long.
    pub(super) fn pass_time(&mut self, time: Duration) {
        // Time in which this process did not run does not count: the machine may have run no
        // process.
        let counted = time.min(2 * LOOK_INTERVAL);
        self.silence = self.silence.map(|silence| silence + counted);
        if self.silence.is_some_and(|silence| silence > SILENCE_MAX) {
            let seconds = SILENCE_MAX.as_secs();
            tracing::error!("the array has not been alive for {seconds} s: it is ended");
            self.silence = None;
            self.signal(Signal::KILL);
        }
    }
}

/// Returns whether a request to end killed a process before it handled the signal, right after its
/// start.
pub(super) fn was_asked(status: ExitStatus) -> bool {
    matches!(status.signal(), Some(SIGTERM | SIGINT))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn sockets_are_kept_by_name_until_they_are_released() {
        let mut state = State::default();
        let socket = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        state.hear("FDSTORE=1\nFDNAME=iscsi-a", vec![socket()]);
        state.hear("FDSTORE=1\nFDNAME=iscsi-b", vec![socket()]);
        state.hear("FDSTORE=1\nFDNAME=with:colon", vec![socket()]);
        state.hear("FDSTORE=1\nFDNAME=nothing", Vec::new());
        state.hear("FDSTORE=1", vec![socket()]);
        assert_eq!(state.kept.keys().collect::<Vec<_>>(), ["iscsi-a", "iscsi-b"]);
        state.hear("FDSTOREREMOVE=1\nFDNAME=iscsi-a", Vec::new());
        assert_eq!(state.kept.keys().collect::<Vec<_>>(), ["iscsi-b"]);
    }

    #[test]
    fn an_array_that_is_ended_right_after_its_start_is_not_restarted() {
        let state = State { was_ready: true, ..State::default() };
        let killed = |signal| ExitStatus::from_raw(signal);
        assert!(state.is_over(killed(SIGTERM)) && state.is_over(killed(SIGINT)));
        assert!(!state.is_over(killed(9)) && !state.is_over(killed(6)));
    }

    #[test]
    fn silence_counts_once_ready_and_only_while_this_process_runs() {
        let mut state = State::default();
        state.pass_time(SILENCE_MAX);
        state.hear("WATCHDOG=1", Vec::new());
        assert_eq!(state.silence, None);
        state.hear("READY=1", Vec::new());
        let looks = (SILENCE_MAX.as_millis() / LOOK_INTERVAL.as_millis()) as u32;
        for _ in 0..looks {
            state.pass_time(LOOK_INTERVAL);
        }
        assert_eq!(state.silence, Some(SILENCE_MAX));
        state.hear("WATCHDOG=1", Vec::new());
        // The machine slept for an hour.
        state.pass_time(Duration::from_secs(3600));
        assert_eq!(state.silence, Some(2 * LOOK_INTERVAL));
        for _ in 0..looks {
            state.pass_time(LOOK_INTERVAL);
        }
        assert_eq!(state.silence, None, "it has been ended, once");
        state.hear("READY=1", Vec::new());
        state.hear("STOPPING=1", Vec::new());
        state.pass_time(SILENCE_MAX);
        assert_eq!(state.silence, None);
    }

    #[test]
    fn a_held_controller_releases_its_sockets_once() {
        let holds = Holds::default();
        let state = |own| State { own: Some(own), holds: holds.clone(), ..State::default() };
        let (mut first, mut second) = (state(Controller::Ct0), state(Controller::Ct1));
        let socket = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
        second.hear("FDSTORE=1\nFDNAME=iscsi-b", vec![socket()]);
        first.hear("HOLD=ct0", Vec::new());
        // Not a process, so no signal reaches it.
        (first.process, second.process) = (Some(socket()), Some(socket()));
        second.obey();
        assert!(!second.is_told && !second.is_held() && second.kept.len() == 1);
        first.hear("HOLD=ct1", Vec::new());
        first.obey();
        second.obey();
        assert!(second.is_told && second.is_held() && second.kept.is_empty());
        assert!(!first.is_told && !first.is_held());
        first.hear("RELEASE=ct1", Vec::new());
        assert!(!second.is_held());
    }
}
