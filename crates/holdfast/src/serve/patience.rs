//! How long a thread looks around for work before it sleeps.
//!
//! Being woken costs tens of microseconds, on a virtual machine more, and everything that waits for
//! the thread waits for that. Looking around costs processor time that others may need. So each
//! command earns the thread a little time for it: under load it hardly ever sleeps, and no load
//! pays more than that little a command.

use std::time::Duration;

/// What a command earns. Less than the command costs by itself.
const A_COMMAND: Duration = Duration::from_micros(8);
/// The most that is kept: about as long as a device takes for a durable write.
const MOST: Duration = Duration::from_micros(300);

/// The time for looking around that is left.
#[derive(Debug, Default)]
pub(super) struct Patience {
    left: Duration,
    looked_at: Duration,
}

impl Patience {
    /// A command came.
    pub(super) fn earn(&mut self) {
        self.left = (self.left + A_COMMAND).min(MOST);
    }

    /// Whether to look around again instead of sleeping.
    pub(super) fn is_left(&self) -> bool {
        !self.left.is_zero()
    }

    /// The thread has looked around at `now`. Where it found nothing, the time since the last look
    /// is spent.
    pub(super) fn looked(&mut self, now: Duration, found: bool) {
        if !found {
            self.left = self.left.saturating_sub(now.saturating_sub(self.looked_at));
        }
        self.looked_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_earned_by_commands_and_spent_by_looking_in_vain() {
        let us = Duration::from_micros;
        let mut patience = Patience::default();
        assert!(!patience.is_left());
        patience.looked(us(1000), true);
        patience.earn();
        patience.looked(us(1005), false);
        assert!(patience.is_left());
        patience.looked(us(1006), true);
        patience.looked(us(1009), false);
        assert!(!patience.is_left());
        (0..1000).for_each(|_| patience.earn());
        patience.looked(us(1009) + MOST, false);
        assert!(!patience.is_left());
    }
}
