//! Devices that are out although nothing was done to them: on a busy machine a healthy device can
//! be late. That is a limit of the machine, and is reported separately from faults: together with
//! two hurt devices it is one more than the array tolerates.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use tests_peer::devices::Listed;

/// How many may be out at once.
pub const OUT_MAX: usize = 2;
/// The array's reasons for a device that was late. Any other reason is not the machine's fault.
const REASONS: [&str; 3] =
    ["longer than on other devices", "in a row were late", "has not responded for"];

/// A device to which something is done.
#[derive(Clone, Copy, Debug)]
pub struct Hurt {
    /// Its number.
    pub device: usize,
    /// Whether it misbehaves, also while it is in; otherwise it is only slow.
    pub fails: bool,
}

/// The devices seen out in a round although nothing was done to them, and why, as far as known.
#[derive(Debug, Default)]
pub struct Bystanders {
    seen: BTreeMap<usize, Option<String>>,
    has_other_reason: bool,
    are_too_many: bool,
    were_too_many: bool,
}

impl Bystanders {
    /// Notes devices that are not in, except those in `hurt`.
    ///
    /// # Errors
    /// If one is out for another reason than being late.
    pub fn note(&mut self, listed: &[Listed], hurt: &[Hurt]) -> Result<()> {
        let is_hurt = |number: usize| hurt.iter().any(|hurt| hurt.device == number);
        let fails = |number: usize| hurt.iter().any(|hurt| hurt.device == number && hurt.fails);
        let mut bad = 0;
        let mut has_away = false;
        for (number, device) in listed.iter().enumerate() {
            let is_in = device.state == "in";
            bad += usize::from(!is_in || fails(number));
            if is_in || is_hurt(number) {
                continue;
            }
            has_away = true;
            let why = self.seen.entry(number).or_default();
            if let Some(text) = &device.why_out {
                let was_late = REASONS.iter().any(|reason| text.contains(reason));
                self.has_other_reason |= !was_late;
                ensure!(was_late, "device {number} is out although nothing was done to it: {text}");
                *why = Some(text.clone());
            }
        }
        self.are_too_many = has_away && bad > OUT_MAX;
        self.were_too_many |= self.are_too_many;
        Ok(())
    }

    /// Returns whether more devices are out or fail than the array tolerates, because one is late.
    pub fn are_too_many(&self) -> bool {
        self.are_too_many
    }

    /// Returns whether that was the case at any time, and each of them is known only to have been
    /// late.
    pub fn were_too_many(&self) -> bool {
        self.were_too_many && !self.has_other_reason
    }

    /// Returns how many there were.
    pub fn count(&self) -> usize {
        self.seen.len()
    }

    /// Returns each with its reason.
    pub fn text(&self) -> String {
        let one = |(number, why): (&usize, &Option<String>)| {
            format!(
                "device {number} ({})",
                why.as_deref().unwrap_or("the reason is no longer known")
            )
        };
        self.seen.iter().map(one).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(states: [(&str, Option<&str>); 4]) -> Vec<Listed> {
        let one = |(state, why): (&str, Option<&str>)| Listed {
            state: state.to_owned(),
            why_out: why.map(str::to_owned),
        };
        states.into_iter().map(one).collect()
    }

    const LATE: Option<&str> = Some("a write took 50 ms longer than on other devices");
    const HURT: Hurt = Hurt { device: 1, fails: true };

    #[test]
    fn a_late_device_is_a_bystander_unless_it_was_hurt() {
        let mut bystanders = Bystanders::default();
        let first = [("in", None), ("out", Some("EIO")), ("out", LATE), ("in", None)];
        bystanders.note(&listed(first), &[HURT]).unwrap();
        assert_eq!(bystanders.count(), 1);
        // It no longer has a reason, and another one is out as well.
        let then = [("in", None), ("out", None), ("catching_up", None), ("out", LATE)];
        bystanders.note(&listed(then), &[HURT]).unwrap();
        assert_eq!(bystanders.count(), 2);
        assert!(bystanders.text().starts_with("device 2 (a write took"), "{}", bystanders.text());
    }

    #[test]
    fn one_late_device_besides_two_hurt_ones_is_too_many() {
        let late = listed([("in", None), ("out", None), ("out", LATE), ("in", None)]);
        let slow = Hurt { device: 0, fails: false };
        let mut bystanders = Bystanders::default();
        bystanders.note(&late, &[HURT, slow]).unwrap();
        assert!(!bystanders.were_too_many(), "two are out and one is slow");
        bystanders.note(&late, &[HURT, Hurt { fails: true, ..slow }]).unwrap();
        assert!(bystanders.are_too_many());
        let well = listed([("in", None); 4]);
        bystanders.note(&well, &[HURT, slow]).unwrap();
        assert!(!bystanders.are_too_many() && bystanders.were_too_many());
    }

    #[test]
    fn a_device_out_for_another_reason_is_an_error() {
        let slow = Hurt { device: 0, fails: true };
        let mut bystanders = Bystanders::default();
        let late = [("out", None), ("out", None), ("out", LATE), ("in", None)];
        bystanders.note(&listed(late), &[HURT, slow]).unwrap();
        assert!(bystanders.were_too_many());
        let failed = [("out", None), ("out", None), ("out", Some("EIO")), ("in", None)];
        assert!(bystanders.note(&listed(failed), &[HURT, slow]).is_err());
        assert!(!bystanders.were_too_many());
    }
}
