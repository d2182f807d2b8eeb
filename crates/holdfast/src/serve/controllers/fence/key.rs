//! The key that a controller registers with a device: 16 bits `HF`, one bit whether it has left the
//! pool cleanly, 7 bits its number, 24 random bits of the process, 16 bits that increase with each
//! sign of life.
//!
//! The epoch of the pool is not part of it: it is stored on the devices, and nothing is read from
//! these before they are fenced.

use super::super::Controller;

const MARK: u64 = 0x4846 << 48;
const MARK_BITS: u64 = 0xffff << 48;
const LEFT: u64 = 0x80 << 40;
const CONTROLLER_BITS: u64 = 0x7f << 40;
const COUNT_BITS: u64 = 0xffff;

/// The key of a process of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Key(u64);

impl Key {
    /// Creates the first key of a process, with a random number of which 24 bits are used.
    pub(super) fn new(controller: Controller, number: u32) -> Self {
        let controller = match controller {
            Controller::Ct0 => 0,
            Controller::Ct1 => 1,
        };
        Self(MARK | controller << 40 | u64::from(number & 0xff_ffff) << 16)
    }

    /// Parses a registered key; `None` if no controller has registered it.
    pub(super) fn of(raw: u64) -> Option<Self> {
        (raw & MARK_BITS == MARK).then_some(Self(raw))
    }

    /// Returns the registered value.
    pub(super) fn raw(self) -> u64 {
        self.0
    }

    /// Returns the key of the next sign of life.
    pub(super) fn next(self) -> Self {
        Self(self.0 & !COUNT_BITS | self.0.wrapping_add(1) & COUNT_BITS)
    }

    /// Returns the key that remains after the process has left the pool cleanly.
    pub(super) fn left(self) -> Self {
        Self(self.0 | LEFT)
    }

    /// Returns whether the process that registered it has left cleanly.
    pub(super) fn has_left(raw: u64) -> bool {
        raw & (MARK_BITS | LEFT) == MARK | LEFT
    }

    /// Returns whether any process of the same controller has registered it.
    pub(super) fn is_same_controller(self, raw: u64) -> bool {
        let bits = MARK_BITS | CONTROLLER_BITS;
        self.0 & bits == raw & bits
    }

    /// Returns whether the same process has registered it, possibly at another time.
    pub(super) fn is_same_process(self, raw: u64) -> bool {
        self.0 & !COUNT_BITS == raw & !COUNT_BITS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_identifies_its_process_and_changes_with_each_sign_of_life() {
        let key = Key::new(Controller::Ct1, 0xff12_3456);
        assert_eq!(key.raw(), 0x4846_0112_3456_0000);
        let mut later = key;
        for _ in 0..0xffff {
            let next = later.next();
            assert!(next != later && key.is_same_process(next.raw()));
            later = next;
        }
        assert_eq!(later.next(), key);
        assert!(Key::of(later.raw()) == Some(later) && Key::of(0x4847_0112_3456_0000).is_none());
        assert!(!key.is_same_process(Key::new(Controller::Ct0, 0xff12_3456).raw()));
        let again = Key::new(Controller::Ct1, 0xff12_3457);
        assert!(!key.is_same_process(again.raw()) && key.is_same_controller(again.left().raw()));
        assert!(!key.is_same_controller(Key::new(Controller::Ct0, 1).raw()));
        assert!(Key::has_left(later.left().raw()) && !Key::has_left(later.raw()));
        assert!(!Key::has_left(0x80 << 40));
    }
}
