//! Problems of the devices of a pool on several devices.

use std::collections::BTreeMap;

use array::{AlertCode, Seen, Severity};
use segments::{DeviceState, DeviceStatus};

use super::judge::holds;
use super::look::Member;

/// Reports devices that are out, or do not have all data yet.
pub(super) fn judge(members: &[Member]) -> Vec<Seen> {
    // Devices that hold part of the pool.
    let has_share = |device: &DeviceStatus| device.parts.is_none_or(|parts| parts.used > 0);
    let sharing = || members.iter().filter(|(device, _)| has_share(device));
    let are_in = sharing().filter(|(device, _)| device.state == DeviceState::In).count();
    let spare = are_in.saturating_sub(segments::least_in(sharing().count()));
    members.iter().filter_map(|member| one(member, (are_in, spare))).collect()
}

/// The state of each device at the last check, so that changes are logged.
#[derive(Default)]
pub(super) struct Known(BTreeMap<u16, DeviceState>);

impl Known {
    /// Logs what has changed.
    pub(super) fn log(&mut self, members: &[Member]) {
        let is_first = self.0.is_empty();
        for (device, _) in members {
            let before = self.0.get(&device.number);
            // At the start there is no need to log that all is well.
            if before == Some(&device.state) || (is_first && device.state == DeviceState::In) {
                continue;
            }
            match said(before.copied(), device) {
                Said::Well(text) => tracing::info!("{text}"),
                Said::Wrong(text) => tracing::error!("{text}"),
            }
        }
        for number in
            self.0.keys().filter(|number| !members.iter().any(|(d, _)| d.number == **number))
        {
            tracing::info!("device {number} was removed from the pool");
        }
        self.0 = members.iter().map(|(device, _)| (device.number, device.state)).collect();
    }
}

/// A log message.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Well(String),
    Wrong(String),
}

/// Returns the message if a device's state has changed. It may have gone out and come back in
/// between.
fn said(before: Option<DeviceState>, device: &DeviceStatus) -> Said {
    let (name, why) = (name(device), device.why_out.as_deref());
    match (device.state, why) {
        (DeviceState::In, _) => Said::Well(format!("device {name} has all its data")),
        (DeviceState::CatchingUp, Some(why)) if before == Some(DeviceState::In) => {
            Said::Wrong(format!("device {name} was out of the pool: {why}; it is catching up"))
        }
        (DeviceState::CatchingUp, _) => Said::Well(format!("device {name} is catching up")),
        (DeviceState::Out | DeviceState::Kept, why) => {
            let why = why.unwrap_or("no reason");
            Said::Wrong(format!("device {name} is out of the pool: {why}"))
        }
        (DeviceState::Missing, _) => Said::Wrong(format!("device {name} is missing")),
    }
}

/// Returns what to report of a device, given the number of devices that are in, and of those that
/// can be spared.
fn one((device, progress): &Member, (are_in, spare): (usize, usize)) -> Option<Seen> {
    let expected = "it has all its data";
    match device.state {
        DeviceState::In => None,
        DeviceState::CatchingUp => {
            let actual = match progress {
                Some(progress) if progress.all_bytes > 0 => {
                    format!("{}% complete", progress.percent())
                }
                _ => "it does not have all its data yet".to_owned(),
            };
            let code = AlertCode::DeviceCatchingUp;
            Some(holds(code, &name(device), Severity::Info, actual, expected))
        }
        DeviceState::Out | DeviceState::Kept | DeviceState::Missing => {
            // With one device less, hosts might lose everything.
            let severity = if spare > 0 { Severity::Warning } else { Severity::Critical };
            let why = match (&device.why_out, device.state) {
                (Some(why), _) => why.clone(),
                (None, DeviceState::Missing) => "it was missing at the start".to_owned(),
                (None, _) => "it is out".to_owned(),
            };
            let is_without = device.parts.is_some_and(|parts| parts.used == 0);
            let instead = if is_without { "; its data is on the others: remove it" } else { "" };
            let actual =
                format!("{why}{instead}; {are_in} devices are in, of which {spare} may fail");
            Some(holds(AlertCode::DeviceOut, &name(device), severity, actual, expected))
        }
    }
}

/// Returns its number, by which verbs refer to it, and its location, if known.
pub(super) fn name(device: &DeviceStatus) -> String {
    match device.name.is_empty() {
        true => format!("{}", device.number),
        false => format!("{} ({})", device.number, device.name),
    }
}

#[cfg(test)]
mod tests {
    use api::CatchingUp;

    use super::*;

    fn device(number: u16, state: DeviceState) -> Member {
        let status = DeviceStatus {
            number,
            id: Default::default(),
            name: format!("/srv/{number}/pool.data"),
            state,
            why_out: None,
            len_bytes: 0,
            read_errors: 0,
            write_errors: 0,
            mended: 0,
            retries: 0,
            parts: None,
            counts: Default::default(),
            reads_elsewhere: 0,
        };
        (status, None)
    }

    fn reported(members: &[Member]) -> Vec<(AlertCode, Severity, String, String)> {
        let reported = judge(members).into_iter().map(|seen| match seen {
            Seen::Holds(held) => (held.code, held.severity, held.component, held.actual),
            Seen::Unsure(..) => panic!("it is always known"),
        });
        reported.collect()
    }

    /// Devices are checked only now and then.
    #[test]
    fn the_log_reports_a_device_that_was_out_between_two_samples() {
        use DeviceState::{CatchingUp, In, Out};
        let (mut device, _) = device(0, CatchingUp);
        device.why_out = Some("it has not answered".into());
        let is = "device 0 (/srv/0/pool.data) is catching up";
        let was = "device 0 (/srv/0/pool.data) was out of the pool: it has not answered; \
                   it is catching up";
        assert_eq!(said(Some(In), &device), Said::Wrong(was.into()));
        assert_eq!(said(Some(Out), &device), Said::Well(is.into()));
        device.state = In;
        assert!(matches!(said(Some(CatchingUp), &device), Said::Well(_)));
    }

    #[test]
    fn a_device_that_is_out_is_critical_where_one_is_left() {
        use DeviceState::{In, Missing, Out};
        assert!(reported(&[device(0, In), device(1, In)]).is_empty());
        let mut out = device(2, Out);
        out.0.why_out = Some("a write failed".into());
        let seen = reported(&[device(0, In), device(1, In), out.clone()]);
        let actual = "a write failed; 2 devices are in, of which 1 may fail".to_owned();
        let name = "2 (/srv/2/pool.data)".to_owned();
        assert_eq!(seen, [(AlertCode::DeviceOut, Severity::Warning, name, actual)]);
        let mut missing = device(1, Missing);
        missing.0.name = String::new();
        let seen = reported(&[device(0, In), missing, out]);
        assert_eq!(seen.iter().map(|seen| seen.1).collect::<Vec<_>>(), [Severity::Critical; 2]);
        assert_eq!(seen[0].2, "1");
        // In stripes over five devices, three must be in.
        let of_five = |lost: usize| -> Vec<_> {
            (0..5).map(|at| device(at, if usize::from(at) < lost { Out } else { In })).collect()
        };
        assert_eq!(reported(&of_five(1))[0].1, Severity::Warning);
        assert_eq!(reported(&of_five(1))[0].3, "it is out; 4 devices are in, of which 1 may fail");
        assert_eq!(reported(&of_five(2))[0].1, Severity::Critical);
        let mut catching_up = device(1, DeviceState::CatchingUp);
        catching_up.1 = Some(CatchingUp { done_bytes: 1, all_bytes: 4, left_s: None });
        let seen = reported(&[device(0, In), catching_up]);
        assert_eq!((seen[0].0, seen[0].1), (AlertCode::DeviceCatchingUp, Severity::Info));
        assert_eq!(seen[0].3, "25% complete");
    }
}
