//! The rules: which of two machines has an address, by what each knows and by its own clock.
//!
//! Nobody can take an address away from a machine that does not answer. So each has its addresses
//! for a while only, and the other one waits until that is over:
//!
//! * The kernel takes an address away that was not renewed for [`VALID_S`].
//! * A controller that forwards renews its own for [`HOLD_MS`] after it has *sent* a beat that the
//!   owner has answered with a grant. The owner takes them [`TAKEN_AFTER_MS`] after it has *heard*
//!   a beat last, so whatever it has answered is over, and what the kernel has kept since, too.
//! * The owner renews what it has for as long as it may answer hosts (its lease), which is over
//!   when the pool can be taken; who takes the pool waits for the kernel: [`OWNED_AFTER_MS`].
//!
//! All of that holds if the clocks of both run alike to one part in twenty.

/// How long the kernel keeps an address that is not renewed, in seconds.
pub(super) const VALID_S: u32 = 3;
/// The same as the kernel does it: it looks at whole seconds.
pub(super) const KERNEL_MS: u64 = VALID_S as u64 * 1000 + 1000;
/// How long after a beat that was granted a controller that forwards keeps its addresses. Longer
/// than a takeover takes, so that it still has them if it is the next owner.
pub(super) const HOLD_MS: u64 = 4000;
/// How long after the last beat the owner takes the addresses of the other controller.
pub(super) const TAKEN_AFTER_MS: u64 = HOLD_MS + KERNEL_MS + 1000;
/// How long whoever has taken the pool leaves addresses to the owner before.
pub(super) const OWNED_AFTER_MS: u64 = KERNEL_MS;

/// Whose address it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// This controller's.
    Own,
    /// The other one's.
    Others,
}

/// What a controller knows. All times are in milliseconds of its own clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// Until when the owner leaves this one its addresses.
    granted_until_ms: u64,
    /// Since when it is the owner.
    owner_since_ms: Option<u64>,
    /// When the owner has heard of the other one last.
    heard_ms: Option<u64>,
    /// Whether there was an owner that it has followed.
    has_followed: bool,
}

impl Plan {
    /// The owner has answered what was sent then, and leaves this controller its addresses.
    pub(super) fn grant(&mut self, sent_ms: u64) {
        self.granted_until_ms = self.granted_until_ms.max(sent_ms + HOLD_MS);
    }

    /// There is an owner.
    pub(super) fn follow(&mut self) {
        self.has_followed = true;
    }

    /// This controller has the pool.
    pub(super) fn own(&mut self, now_ms: u64) {
        self.owner_since_ms = Some(now_ms);
        // What an owner of before has granted is not known, if that was not followed.
        self.heard_ms = (!self.has_followed).then_some(now_ms);
    }

    /// The other controller is there.
    pub(super) fn hear(&mut self, now_ms: u64) {
        self.heard_ms = Some(now_ms);
    }

    /// Whether this controller is to have such an address. `has`: whether it has it now;
    /// `may_serve`: whether it may answer hosts, if it is the owner; `is_there`: whether the other
    /// one is.
    pub(super) fn wants(
        &self,
        whose: Whose,
        now_ms: u64,
        has: bool,
        may_serve: bool,
        is_there: bool,
    ) -> bool {
        let Some(since_ms) = self.owner_since_ms else {
            return whose == Whose::Own && now_ms < self.granted_until_ms;
        };
        let is_left = now_ms >= since_ms + OWNED_AFTER_MS;
        let is_silent = self.heard_ms.is_none_or(|heard| now_ms >= heard + TAKEN_AFTER_MS);
        may_serve
            && match whose {
                Whose::Own => has || is_left,
                Whose::Others => !is_there && (has || is_left && is_silent),
            }
    }
}
