//! Which offloads a device supports: tried, trusted, or given up for a while.

use std::time::{Duration, Instant};

/// Work that a host offloads to an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Primitive {
    /// EXTENDED COPY: full copy.
    Move,
    /// WRITE SAME: block zero.
    Init,
    /// COMPARE AND WRITE: hardware-assisted locking.
    Locking,
    /// UNMAP: reclaim.
    Delete,
}

impl Primitive {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Move, Self::Init, Self::Locking, Self::Delete];

    /// Returns its command.
    pub fn command(self) -> &'static str {
        match self {
            Self::Move => "EXTENDED COPY",
            Self::Init => "WRITE SAME",
            Self::Locking => "COMPARE AND WRITE",
            Self::Delete => "UNMAP",
        }
    }
}

const COUNT: usize = Primitive::ALL.len();

/// What is known about a device's offloads. ESXi shows this as Unknown, Supported, Not supported.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Acceleration {
    supported: [bool; COUNT],
    /// Refused: not tried again before this.
    not_before: [Option<Instant>; COUNT],
}

impl Acceleration {
    /// Returns whether it is worth a try.
    pub(super) fn is_worth_trying(&self, primitive: Primitive, now: Instant) -> bool {
        self.not_before[primitive as usize].is_none_or(|when| when <= now)
    }

    /// Records that one has succeeded.
    pub(super) fn succeeded(&mut self, primitive: Primitive) {
        self.supported[primitive as usize] = true;
        self.not_before[primitive as usize] = None;
    }

    /// Records that the array has refused it as unsupported.
    pub(super) fn refused(&mut self, primitive: Primitive, now: Instant, pause: Duration) {
        self.supported[primitive as usize] = false;
        self.not_before[primitive as usize] = Some(now + pause);
    }

    /// Returns the status as ESXi shows it: none is unknown.
    pub(super) fn status(&self, primitive: Primitive) -> Option<bool> {
        let index = primitive as usize;
        match (self.supported[index], self.not_before[index]) {
            (true, _) => Some(true),
            (false, Some(_)) => Some(false),
            (false, None) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_offload_is_retried_later() {
        let (now, pause) = (Instant::now(), Duration::from_secs(5));
        let mut known = Acceleration::default();
        assert_eq!(known.status(Primitive::Move), None);
        assert!(known.is_worth_trying(Primitive::Move, now));
        known.refused(Primitive::Move, now, pause);
        assert_eq!(known.status(Primitive::Move), Some(false));
        assert!(!known.is_worth_trying(Primitive::Move, now));
        assert!(known.is_worth_trying(Primitive::Init, now));
        assert!(known.is_worth_trying(Primitive::Move, now + pause));
        known.succeeded(Primitive::Move);
        assert_eq!(known.status(Primitive::Move), Some(true));
    }
}
