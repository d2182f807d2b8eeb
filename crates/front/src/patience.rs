//! How long a thread looks around for work before it sleeps.
//!
//! Being woken costs tens of microseconds, on a virtual machine more, and everything that waits for
//! the thread waits for that. Looking around costs processor time that others may need. So each
//! command that waits for a read earns the thread a little time for it, if several do: under load
//! it hardly ever sleeps, and no load pays more than that little a command. One that waits alone,
//! and one that is answered at once, is served best by a thread that sleeps: a host on the same
//! machine runs meanwhile. So is one that waits for a commit: that ends the requests of many, on
//! whichever thread, and while several threads looked around for it, each held up the others.

use std::time::Duration;

/// What a command earns: less than a read from the device costs by itself.
const A_COMMAND: Duration = Duration::from_micros(16);
/// Fewer under way than this earn nothing.
const SEVERAL: usize = 4;
/// The most that is kept: longer than a device takes for a read.
const MOST: Duration = Duration::from_micros(400);

/// The time for looking around that is left.
#[derive(Debug, Default)]
pub(super) struct Patience {
    left: Duration,
    looked_at: Duration,
}

impl Patience {
    /// A command waits for reads, one of so many that are under way.
    pub(super) fn earn(&mut self, under_way: usize) {
        if under_way >= SEVERAL {
            self.left = (self.left + A_COMMAND).min(MOST);
        }
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
        let mut now = Duration::from_secs(1);
        let mut patience = Patience::default();
        assert!(!patience.is_left());
        patience.looked(now, true);
        patience.earn(SEVERAL - 1);
        assert!(!patience.is_left());
        patience.earn(SEVERAL);
        now += A_COMMAND / 2;
        patience.looked(now, false);
        assert!(patience.is_left());
        now += A_COMMAND;
        patience.looked(now, true);
        assert!(patience.is_left());
        now += A_COMMAND / 2;
        patience.looked(now, false);
        assert!(!patience.is_left());
        (0..1000).for_each(|_| patience.earn(SEVERAL));
        patience.looked(now + MOST, false);
        assert!(!patience.is_left());
    }
}
