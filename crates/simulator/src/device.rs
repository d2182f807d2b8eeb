//! The model of a device: what it keeps when, of what it was given.
//!
//! Each sector of 512 bytes is *durable*, or is *cached* as well: the device has answered a write
//! of it, and holds it where a power loss may reach it. These are all the operations that there
//! are, and what each does to that:
//!
//! | operation | what becomes of sectors |
//! |---|---|
//! | plain write | cached; what was durable there stays until it is overtaken |
//! | FUA write | durable, of itself alone: what other writes have left cached stays cached |
//! | flush | all that was answered before it began is durable |
//! | writeback | some that are cached become durable, because the device likes to |
//! | a write that fails | any of its sectors may be cached, unseen; a flush shows which |
//! | a flush that fails | some of the writes that were cached may be gone, for readers too |
//! | kill | nothing: the process dies, the cache stays, and whoever comes next reads it |
//! | power loss | of what is cached, each sector is there or not, whatever the order of the writes
//! |
//!
//! [`crate::disk::SimDisk`] is one of these with faults of its own, and counts, seeds and hooks.

use std::collections::BTreeMap;

use block::{Frame, SECTOR_BYTES};

use crate::rng::Rng;

/// Sectors in a block.
const SECTORS: usize = 8;

/// Blocks with their numbers.
pub type Blocks = Vec<(u64, Frame)>;

/// How much of what was not durable survives a power loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Survival {
    /// Nothing.
    Nothing,
    /// All.
    All,
    /// Whole writes, or not.
    Writes,
    /// Sectors: a coin for each.
    Sectors,
    /// Of each write all sectors but a few, or a few sectors only.
    Torn,
}

/// What is known of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A power loss changes nothing.
    Durable,
    /// A power loss may bring back what was there before.
    Cached,
}

/// A device with a cache that a power loss empties.
#[derive(Clone, Debug, Default)]
pub struct Device {
    durable: BTreeMap<u64, Frame>,
    /// What reads see.
    seen: BTreeMap<u64, Frame>,
    /// Writes that are not durable, oldest first.
    cached: Vec<Blocks>,
}

/// `above` where `keep` says so, else what is below it.
pub fn overlay(below: Option<&Frame>, above: &Frame, keep: impl Fn(usize) -> bool) -> Frame {
    let mut frame = below.cloned().unwrap_or_else(Frame::zeros).into_mut();
    for sector in (0..SECTORS).filter(|sector| keep(*sector)) {
        let range = sector * SECTOR_BYTES as usize..(sector + 1) * SECTOR_BYTES as usize;
        frame[range.clone()].copy_from_slice(&above[range]);
    }
    frame.freeze()
}

impl Device {
    /// What a read of a block sees; none where nothing was ever written.
    pub fn read(&self, number: u64) -> Option<&Frame> {
        self.seen.get(&number)
    }

    /// The blocks from `first` on that were ever written.
    pub fn written_from(&self, first: u64) -> Vec<u64> {
        self.seen.range(first..).map(|(number, _)| *number).collect()
    }

    /// What is known of a block.
    pub fn state(&self, number: u64) -> State {
        let is_cached = self.cached.iter().flatten().any(|(cached, _)| *cached == number);
        if is_cached { State::Cached } else { State::Durable }
    }

    /// A write that is answered.
    pub fn write(&mut self, blocks: Blocks) {
        self.seen.extend(blocks.iter().cloned());
        self.write_failed(blocks);
    }

    /// A write that carries its own durability (FUA), and is answered.
    pub fn write_fua(&mut self, blocks: Blocks) {
        for (number, frame) in blocks {
            // It has overtaken what the cache had of this block.
            for write in &mut self.cached {
                write.retain(|(cached, _)| *cached != number);
            }
            self.seen.insert(number, frame.clone());
            self.durable.insert(number, frame);
        }
        self.cached.retain(|write| !write.is_empty());
    }

    /// A write that fails: readers see what was there, until a power loss shows what it has done.
    pub fn write_failed(&mut self, blocks: Blocks) {
        if !blocks.is_empty() {
            self.cached.push(blocks);
        }
    }

    /// A flush that is answered.
    pub fn flush(&mut self) {
        self.make_durable(self.cached.len());
    }

    /// The oldest writes become durable. What is so is seen, unless a younger one is: so that of a
    /// write that has failed a flush decides for good what it has done.
    fn make_durable(&mut self, count: usize) {
        for (number, frame) in self.cached.drain(..count).flatten().collect::<Blocks>() {
            if !self.cached.iter().flatten().any(|(cached, _)| *cached == number) {
                self.seen.insert(number, frame.clone());
            }
            self.durable.insert(number, frame);
        }
    }

    /// A flush that fails. The device may have lost what it should have kept: of the writes in its
    /// cache, each is there still, or is not, and the next flush does not tell.
    pub fn flush_failed(&mut self, rng: &mut Rng) {
        // What readers find where something is lost: there may be a whole segment of it.
        let mut left: BTreeMap<u64, Option<Frame>> = BTreeMap::new();
        self.cached.retain(|write| {
            let stays = rng.chance(50);
            if !stays {
                let durable = |number: &u64| self.durable.get(number).cloned();
                left.extend(write.iter().map(|(number, _)| (*number, durable(number))));
            }
            stays
        });
        // Of what stays in the cache the newest.
        for (number, frame) in self.cached.iter().flatten() {
            if let Some(left) = left.get_mut(number) {
                *left = Some(frame.clone());
            }
        }
        for (number, frame) in left {
            match frame {
                Some(frame) => self.seen.insert(number, frame),
                None => self.seen.remove(&number),
            };
        }
    }

    /// The device writes back what it likes of its cache: here the oldest writes, up to a place
    /// that chance says.
    pub fn write_back(&mut self, rng: &mut Rng) {
        let count = rng.below(self.cached.len() as u64 + 1) as usize;
        self.make_durable(count);
    }

    /// The power fails, and comes back.
    pub fn lose_power(&mut self, survival: Survival, rng: &mut Rng) {
        for write in std::mem::take(&mut self.cached) {
            let sectors = (write.len() * SECTORS) as u64;
            let (whole, mostly) = (rng.chance(50), rng.chance(50));
            let odd = [rng.below(sectors), rng.below(sectors)];
            for (index, (number, above)) in write.into_iter().enumerate() {
                let coins = rng.draw();
                let keep = |sector: usize| match survival {
                    Survival::Nothing => false,
                    Survival::All => true,
                    Survival::Writes => whole,
                    Survival::Sectors => coins >> sector & 1 == 1,
                    Survival::Torn => odd.contains(&((index * SECTORS + sector) as u64)) != mostly,
                };
                let frame = overlay(self.durable.get(&number), &above, keep);
                self.durable.insert(number, frame);
            }
        }
        self.seen.clone_from(&self.durable);
    }

    /// A block changes by itself, also where it was durable.
    pub fn rot(&mut self, number: u64, frame: Frame) {
        self.durable.insert(number, frame.clone());
        self.seen.insert(number, frame);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use block::FrameMut;

    fn block(number: u64, byte: u8) -> Blocks {
        vec![(number, FrameMut::from_bytes(&[byte; 4096]).freeze())]
    }

    fn after_power_loss(mut device: Device) -> [u8; 2] {
        device.lose_power(Survival::Nothing, &mut Rng::new(1));
        [0, 1].map(|number| device.read(number).map_or(0, |frame| frame[0]))
    }

    #[test]
    fn an_fua_write_makes_itself_durable_and_nothing_before_it() {
        let mut device = Device::default();
        device.write(block(0, 1));
        device.write_fua(block(1, 2));
        assert_eq!((device.state(0), device.state(1)), (State::Cached, State::Durable));
        assert_eq!(after_power_loss(device), [0, 2]);
    }

    #[test]
    fn an_fua_write_is_not_overtaken_by_what_the_cache_had_there() {
        let mut device = Device::default();
        device.write(block(0, 1));
        device.write_fua(block(0, 2));
        device.lose_power(Survival::All, &mut Rng::new(1));
        assert_eq!(device.read(0).map(|frame| frame[0]), Some(2));
    }

    #[test]
    fn a_flush_covers_what_was_answered_before_it_and_a_writeback_the_oldest() {
        let mut device = Device::default();
        device.write(block(0, 1));
        device.flush();
        device.write(block(1, 2));
        assert_eq!(after_power_loss(device.clone()), [1, 0]);
        device.write(block(0, 3));
        let kept = |seed| {
            let mut device = device.clone();
            device.write_back(&mut Rng::new(seed));
            after_power_loss(device)
        };
        let seen: std::collections::BTreeSet<_> = (0..40).map(kept).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), [[1, 0], [1, 2], [3, 2]]);
    }

    #[test]
    fn a_failed_flush_may_lose_what_was_cached_and_the_next_one_does_not_tell() {
        let seen = |seed| {
            let mut device = Device::default();
            device.write(block(0, 1));
            device.flush();
            device.write(block(0, 2));
            device.write(block(1, 3));
            device.flush_failed(&mut Rng::new(seed));
            device.flush();
            let read = [0, 1].map(|number| device.read(number).map_or(0, |frame| frame[0]));
            assert_eq!(after_power_loss(device), read);
            read
        };
        let all: std::collections::BTreeSet<_> = (0..40).map(seen).collect();
        assert_eq!(all.into_iter().collect::<Vec<_>>(), [[1, 0], [1, 3], [2, 0], [2, 3]]);
    }

    #[test]
    fn a_write_that_fails_is_not_seen_and_may_be_there_all_the_same() {
        let mut device = Device::default();
        device.write_failed(block(0, 1));
        assert!(device.read(0).is_none());
        device.lose_power(Survival::All, &mut Rng::new(1));
        assert_eq!(device.read(0).map(|frame| frame[0]), Some(1));
    }

    #[test]
    fn a_flush_shows_what_a_failed_write_has_done() {
        let mut device = Device::default();
        device.write(block(0, 1));
        device.write_failed(block(0, 2));
        device.write_failed(block(1, 3));
        device.write(block(1, 4));
        device.flush();
        let seen = [0, 1].map(|number| device.read(number).map_or(0, |frame| frame[0]));
        assert_eq!((seen, after_power_loss(device)), ([2, 4], [2, 4]));
    }
}
