//! How much of what was to be offloaded the array did, and how much the host had to do itself.

use super::acceleration::Primitive;

/// The results of one primitive while it was switched on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloaded {
    /// Commands that the array has executed, including a COMPARE AND WRITE that miscompared.
    pub done: u64,
    /// The bytes that those covered.
    pub done_bytes: u64,
    /// Commands that it refused, or that failed so that the host did the work.
    pub refused: u64,
    /// How often the host did the work itself, or skipped it if there is no other way (UNMAP).
    pub by_hand: u64,
    /// The bytes that those covered.
    pub by_hand_bytes: u64,
}

impl Offloaded {
    fn plus(self, other: Self) -> Self {
        Self {
            done: self.done + other.done,
            done_bytes: self.done_bytes + other.done_bytes,
            refused: self.refused + other.refused,
            by_hand: self.by_hand + other.by_hand,
            by_hand_bytes: self.by_hand_bytes + other.by_hand_bytes,
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            done: self.done - before.done,
            done_bytes: self.done_bytes - before.done_bytes,
            refused: self.refused - before.refused,
            by_hand: self.by_hand - before.by_hand,
            by_hand_bytes: self.by_hand_bytes - before.by_hand_bytes,
        }
    }
}

/// The same for all primitives, of one host or of several.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offloads([Offloaded; Primitive::ALL.len()]);

impl Offloads {
    /// Returns those of one primitive.
    pub fn of(&self, primitive: Primitive) -> Offloaded {
        self.0[primitive as usize]
    }

    /// Adds those of another host.
    pub fn plus(self, other: &Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index].plus(other.0[index])))
    }

    /// Returns what was added since.
    pub fn since(self, before: &Self) -> Self {
        Self(std::array::from_fn(|index| self.0[index].since(before.0[index])))
    }

    pub(super) fn note_done(&mut self, primitive: Primitive, bytes: u64) {
        let of = &mut self.0[primitive as usize];
        of.done += 1;
        of.done_bytes += bytes;
    }

    pub(super) fn note_refused(&mut self, primitive: Primitive) {
        self.0[primitive as usize].refused += 1;
    }

    pub(super) fn note_by_hand(&mut self, primitive: Primitive, bytes: u64) {
        let of = &mut self.0[primitive as usize];
        of.by_hand += 1;
        of.by_hand_bytes += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_are_reported_by_primitive() {
        let mut before = Offloads::default();
        before.note_done(Primitive::Move, 100);
        let mut after = before;
        after.note_done(Primitive::Move, 40);
        after.note_refused(Primitive::Move);
        after.note_by_hand(Primitive::Move, 7);
        after.note_by_hand(Primitive::Init, 3);
        let more = after.since(&before);
        let moved = Offloaded { done: 1, done_bytes: 40, refused: 1, by_hand: 1, by_hand_bytes: 7 };
        assert_eq!(more.of(Primitive::Move), moved);
        assert_eq!(more.of(Primitive::Init).by_hand_bytes, 3);
        assert_eq!(more.of(Primitive::Delete), Offloaded::default());
        assert_eq!(more.plus(&more).of(Primitive::Move).done_bytes, 80);
    }
}
