//! The oracle: what the volumes must contain, and what they may contain after a crash.

use block::VolumeId;

use crate::content::Tag;

mod racing;
#[cfg(test)]
mod tests;

pub use racing::Racing;

/// A volume in the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelVolume {
    /// Its id.
    pub id: VolumeId,
    /// The content of each sector.
    pub tags: Vec<Tag>,
}

/// The content of a pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct State {
    /// The volumes in the order of their slots, then a snapshot of each, in generations.
    pub volumes: Vec<ModelVolume>,
    /// How many of them are volumes, which requests change.
    pub live: usize,
    /// A number in the configuration that increases with each administrative change.
    pub config: u64,
}

/// What a request changes, completely or not at all.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Sectors of a volume.
    Sectors {
        /// The slot of the volume.
        slot: usize,
        /// The first sector.
        start: u64,
        /// Their new content.
        tags: Vec<Tag>,
    },
    /// An administrative change: a new volume or snapshot replaces another one, or a volume gets
    /// another content or size.
    Replace {
        /// The slot.
        slot: usize,
        /// The id of the volume that exists after it.
        id: VolumeId,
        /// Its content, except for what races with the change.
        tags: Vec<Tag>,
        /// The slot whose content it copies: what races with the change there may be in it.
        source: Option<usize>,
    },
    /// An administrative change: the number in the configuration.
    Config(u64),
}

/// A request that changes something. Its effects are on different sectors.
#[derive(Clone, Debug)]
pub struct Changing {
    /// What it changes.
    pub effects: Vec<Effect>,
    /// When it was started.
    pub started: u64,
    /// Whether only each 4 KiB block of it is all or nothing (a write), not all of it.
    pub by_block: bool,
    /// The requests in flight while it took volumes as they were.
    pub racing: Vec<Racing>,
}

/// An acknowledged change that may be lost.
#[derive(Clone, Debug)]
struct Answered {
    /// When it was acknowledged.
    time: u64,
    change: Changing,
    /// It may have taken several commits, and was acknowledged when the last was durable: then it
    /// may be there although others were lost that were acknowledged before it.
    in_pieces: bool,
}

/// The oracle. Requests that are in flight together must be on different sectors.
#[derive(Clone, Debug)]
pub struct Model {
    /// What must be there in any case.
    pub durable: State,
    /// What reads must return.
    pub now: State,
    /// What was acknowledged, but may be lost, from its end on.
    answered: Vec<Answered>,
    /// What was not acknowledged (or with an error of the device): it may be there or not.
    unknown: Vec<Changing>,
    /// What was acknowledged and must be there, but with one of several contents.
    owed: Vec<Changing>,
}

impl State {
    fn apply(&mut self, effect: &Effect) {
        match effect {
            Effect::Sectors { slot, start, tags } => {
                let at = *start as usize;
                self.volumes[*slot].tags[at..at + tags.len()].copy_from_slice(tags);
            }
            Effect::Replace { slot, id, tags, .. } => {
                self.volumes[*slot] = ModelVolume { id: *id, tags: tags.clone() };
            }
            Effect::Config(number) => self.config = *number,
        }
    }

    fn difference(&self, found: &State) -> Option<String> {
        if self.config != found.config {
            return Some(format!("configuration {} became {}", self.config, found.config));
        }
        for (slot, (want, have)) in self.volumes.iter().zip(&found.volumes).enumerate() {
            if want.id != have.id {
                return Some(format!("slot {slot}: volume {} became {}", want.id, have.id));
            }
            if want.tags.len() != have.tags.len() {
                let (want, have) = (want.tags.len(), have.tags.len());
                return Some(format!("slot {slot}: {have} sectors instead of {want}"));
            }
            let mut pairs = want.tags.iter().zip(&have.tags);
            if let Some(at) = pairs.position(|(want, have)| want != have) {
                let (want, have) = (want.tags[at], have.tags[at]);
                return Some(format!(
                    "slot {slot} sector {at}: {have:#x} instead of {want:#x} (the first to differ)"
                ));
            }
        }
        None
    }
}

impl Model {
    /// Creates a model with this content.
    pub fn new(state: State) -> Self {
        let (answered, unknown, owed) = (Vec::new(), Vec::new(), Vec::new());
        Self { durable: state.clone(), now: state, answered, unknown, owed }
    }

    /// Records an acknowledged change. `durable`: it is also promised to be on the medium.
    pub fn answered(&mut self, time: u64, change: Changing, durable: bool) {
        change.effects.iter().for_each(|effect| self.now.apply(effect));
        if durable {
            // It was never in flight together with requests for the same sectors; so it may be
            // ordered before everything acknowledged since it started.
            self.flushed(change.started);
            change.effects.iter().for_each(|effect| self.durable.apply(effect));
        } else {
            self.answered.push(Answered { time, change, in_pieces: false });
        }
    }

    /// Does the same as [`Model::answered`] for a change that may have taken several commits, and
    /// may be lost.
    pub fn answered_in_pieces(&mut self, time: u64, change: Changing) {
        change.effects.iter().for_each(|effect| self.now.apply(effect));
        self.answered.push(Answered { time, change, in_pieces: true });
    }

    /// Records that everything acknowledged before `time` is durable: a flush that was started then
    /// has ended.
    pub fn flushed(&mut self, time: u64) {
        let count = self.answered.iter().take_while(|answered| answered.time < time).count();
        for Answered { change, .. } in self.answered.drain(..count) {
            change.effects.iter().for_each(|effect| self.durable.apply(effect));
        }
    }

    /// Returns the volumes that may be in a slot now: the one that was, and those of unknown
    /// changes.
    pub fn candidates(&self, slot: usize) -> Vec<(VolumeId, u64)> {
        let sizes = |state: &State| {
            let volume = &state.volumes[slot];
            (volume.id, volume.tags.len() as u64)
        };
        let mut found = vec![sizes(&self.now), sizes(&self.durable)];
        let answered = self.answered.iter().map(|answered| &answered.change);
        for change in self.unknown.iter().chain(&self.owed).chain(answered) {
            for effect in &change.effects {
                if let Effect::Replace { slot: there, id, tags, .. } = effect
                    && *there == slot
                {
                    found.push((*id, tags.len() as u64));
                }
            }
        }
        found
    }

    /// Records an acknowledged durable change whose actual content could not be read.
    pub fn owed(&mut self, change: Changing) {
        self.owed.push(change);
    }

    /// Records a change whose fate is unknown: the power failed before it was acknowledged.
    pub fn unknown(&mut self, change: Changing) {
        self.unknown.push(change);
    }

    /// Checks after a crash whether `found` is allowed; it is the content from here on.
    pub fn resolve(&mut self, found: State) -> Result<(), String> {
        let mut first = None;
        for kept in (0..=self.answered.len()).rev() {
            match self.explain(kept, &found) {
                Ok(()) => {
                    *self = Self::new(found);
                    return Ok(());
                }
                Err(reason) => first = first.or(Some(reason)),
            }
        }
        Err(first.unwrap_or_default())
    }

    /// Checks whether `found` is the result of the first `kept` acknowledged changes, with each
    /// unknown one there or not.
    fn explain(&self, kept: usize, found: &State) -> Result<(), String> {
        let mut state = self.durable.clone();
        for Answered { change, .. } in &self.answered[..kept] {
            change.effects.iter().for_each(|effect| state.apply(effect));
        }
        for change in &self.owed {
            change.seen(found)?.iter().for_each(|effect| state.apply(effect));
        }
        let lost = self.answered[kept..].iter();
        let in_pieces = lost.filter(|answered| answered.in_pieces).map(|answered| &answered.change);
        for change in in_pieces.chain(&self.unknown) {
            let before = self.answered.iter().filter(|one| one.time < change.started).count();
            let possible = kept >= before;
            settle(&mut state, change, found, possible);
        }
        match state.difference(found) {
            None => Ok(()),
            Some(difference) => Err(format!(
                "{difference}; {kept} of {} acknowledged changes kept, {} unknown",
                self.answered.len(),
                self.unknown.len()
            )),
        }
    }
}

/// Decides an unknown change by what was found; what is neither completely there nor completely
/// absent stays as it was, and so differs from what was found.
fn settle(state: &mut State, change: &Changing, found: &State, possible: bool) {
    if !possible {
        return;
    }
    if !change.by_block {
        if let Ok(effects) = change.seen(found) {
            effects.iter().for_each(|effect| state.apply(effect));
        }
        return;
    }
    for part in change.effects.iter().flat_map(blocks_of) {
        if part.is_in(found) {
            state.apply(&part);
        }
    }
}

impl Effect {
    /// Returns whether `found` contains it.
    fn is_in(&self, found: &State) -> bool {
        match self {
            Self::Sectors { slot, start, tags } => {
                let range = *start as usize..*start as usize + tags.len();
                found.volumes[*slot].tags.get(range) == Some(&tags[..])
            }
            Self::Replace { slot, id, tags, .. } => {
                let volume = &found.volumes[*slot];
                volume.id == *id && volume.tags == *tags
            }
            Self::Config(number) => found.config == *number,
        }
    }
}

/// Splits an effect on sectors at the boundaries of 4 KiB blocks.
pub(crate) fn blocks_of(effect: &Effect) -> Vec<Effect> {
    let Effect::Sectors { slot, start, tags } = effect else { return vec![effect.clone()] };
    let mut parts = Vec::new();
    let mut at = 0;
    while at < tags.len() {
        let sector = start + at as u64;
        let rest = block::SECTORS_PER_BLOCK - sector % block::SECTORS_PER_BLOCK;
        let count = (rest as usize).min(tags.len() - at);
        let tags = tags[at..at + count].to_vec();
        parts.push(Effect::Sectors { slot: *slot, start: sector, tags });
        at += count;
    }
    parts
}
