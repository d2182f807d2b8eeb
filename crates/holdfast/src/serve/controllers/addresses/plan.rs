//! The rules that decide which of two machines has an address, by what each knows and by its own
//! clock.
//!
//! Nobody can take an address away from a machine that does not respond. Therefore each machine has
//! its addresses only for a limited time, and the other one waits until it has passed:
//!
//! * The kernel removes an address that was not renewed for [`VALID_S`].
//! * A controller that forwards renews its own addresses for [`HOLD_MS`] after it has *sent* a beat
//!   that the owner has answered with a grant. The owner takes them [`TAKEN_AFTER_MS`] after it has
//!   *heard* the last beat, so every grant has expired by then, and so has the kernel's lifetime
//!   after it.
//! * The owner renews its addresses as long as it may answer hosts (its lease), which ends before
//!   the pool can be taken; the new owner then waits for the kernel: [`OWNED_AFTER_MS`].
//!
//! All of this holds if the rates of both clocks differ by at most one part in twenty.

/// How long the kernel keeps an address that is not renewed, in seconds.
pub(super) const VALID_S: u32 = 3;
/// The same including the kernel's rounding to whole seconds.
pub(super) const KERNEL_MS: u64 = VALID_S as u64 * 1000 + 1000;
/// How long a controller that forwards keeps its addresses after a granted beat. Longer than a
/// takeover, so that it still has them if it is the next owner.
pub(super) const HOLD_MS: u64 = 4000;
/// The time after the last beat at which the owner takes the other controller's addresses.
pub(super) const TAKEN_AFTER_MS: u64 = HOLD_MS + KERNEL_MS + 1000;
/// How long a new owner leaves addresses to the previous one.
pub(super) const OWNED_AFTER_MS: u64 = KERNEL_MS;

/// The controller to which an address belongs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// This controller.
    Own,
    /// The other one.
    Others,
}

/// The knowledge of a controller. All times are in milliseconds of its own clock.
#[derive(Clone, Debug, Default)]
pub(super) struct Plan {
    /// The time until which the owner grants this controller its addresses.
    granted_until_ms: u64,
    /// Since when it is the owner.
    owner_since_ms: Option<u64>,
    /// When the owner last heard from the other controller.
    heard_ms: Option<u64>,
    /// Whether it has followed an owner.
    has_followed: bool,
}

impl Plan {
    /// Notes that the owner has answered a beat sent at this time, and grants this controller its
    /// addresses.
    pub(super) fn grant(&mut self, sent_ms: u64) {
        self.granted_until_ms = self.granted_until_ms.max(sent_ms + HOLD_MS);
    }

    /// Notes that there is an owner.
    pub(super) fn follow(&mut self) {
        self.has_followed = true;
    }

    /// Notes that this controller has the pool.
    pub(super) fn own(&mut self, now_ms: u64) {
        self.owner_since_ms = Some(now_ms);
        // If it has not followed the previous owner, it does not know what that one has granted.
        self.heard_ms = (!self.has_followed).then_some(now_ms);
    }

    /// Notes a beat of the other controller.
    pub(super) fn hear(&mut self, now_ms: u64) {
        self.heard_ms = Some(now_ms);
    }

    /// Returns whether this controller should have such an address. `has`: whether it has it now;
    /// `may_serve`: whether it may answer hosts, if it is the owner; `is_there`: whether the other
    /// controller is present.
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
