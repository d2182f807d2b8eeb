//! What a snapshot, a clone or an overwritten volume contains of the requests that were in flight.
//!
//! It may contain each of them or not. But it contains a request completely (a write by blocks), in
//! all volumes that were taken together; and if it contains one, then also each that was
//! acknowledged before that one started.

use super::{Changing, Effect, State, blocks_of};
use crate::content::Tag;

/// A request that was in flight while a change took volumes as they were. No two of them touch the
/// same sectors.
#[derive(Clone, Debug)]
pub struct Racing {
    /// What it changes.
    pub change: Changing,
    /// When it was acknowledged; the maximum if it was not.
    pub answered: u64,
}

/// What was found of a racing request.
#[derive(Clone, Copy, Default)]
struct Seen {
    /// A part of it is present.
    there: bool,
    /// A part of it is not.
    missing: bool,
}

/// The content of a volume that was taken.
struct Taken<'a> {
    source: usize,
    /// What it must contain, as far as known.
    want: Vec<Tag>,
    have: &'a [Tag],
}

impl Taken<'_> {
    /// Looks for a part of a racing request, and adds it to what must be there if it is.
    fn look(&mut self, part: &Effect, seen: &mut Seen) {
        let Effect::Sectors { slot, start, tags } = part else { return };
        let range = *start as usize..*start as usize + tags.len();
        if *slot != self.source || range.end > self.have.len() {
            return;
        }
        let have = &self.have[range.clone()];
        if have == &self.want[range.clone()] {
            seen.missing |= have != tags;
        } else if have == tags {
            seen.there = true;
            self.want[range].copy_from_slice(tags);
        }
    }
}

impl Changing {
    /// Returns its effects that `found` shows.
    ///
    /// # Errors
    /// Why `found` is not a possible result.
    pub fn seen(&self, found: &State) -> Result<Vec<Effect>, String> {
        let mut effects = self.effects.clone();
        let mut taken = Vec::new();
        for effect in &mut effects {
            if let Effect::Replace { slot, tags, source: Some(source), .. } = effect {
                let have = &found.volumes[*slot].tags;
                if have.len() == tags.len() {
                    taken.push(Taken { source: *source, want: std::mem::take(tags), have });
                    tags.clone_from(have);
                }
            }
        }
        if !effects.iter().all(|effect| effect.is_in(found)) {
            return Err(String::from("an administrator's change is missing or incomplete"));
        }
        self.judge(&mut taken)?;
        Ok(effects)
    }

    fn judge(&self, taken: &mut [Taken<'_>]) -> Result<(), String> {
        let seen: Vec<Seen> =
            self.racing.iter().map(|racing| racing.change.look(taken)).collect::<Result<_, _>>()?;
        for Taken { source, want, have } in taken {
            if let Some(at) = want.iter().zip(*have).position(|(want, have)| want != have) {
                let (want, have) = (want[at], have[at]);
                return Err(format!(
                    "taken from slot {source}: sector {at} is {have:#x} instead of {want:#x}"
                ));
            }
        }
        for (late, of_late) in self.racing.iter().zip(&seen) {
            for (early, of_early) in self.racing.iter().zip(&seen) {
                let in_order = early.answered < late.change.started;
                if in_order && of_late.there && of_early.missing {
                    return Err(format!(
                        "it holds a request that started at {} but not one acknowledged at {}",
                        late.change.started, early.answered
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns which part of this racing request is present.
    fn look(&self, taken: &mut [Taken<'_>]) -> Result<Seen, String> {
        let mut seen = Seen::default();
        for effect in &self.effects {
            let parts = if self.by_block { blocks_of(effect) } else { vec![effect.clone()] };
            for part in parts {
                taken.iter_mut().for_each(|taken| taken.look(&part, &mut seen));
            }
        }
        if seen.there && seen.missing && !self.by_block {
            return Err(String::from("it holds part of a request"));
        }
        Ok(seen)
    }
}
