//! The model of a device: what it keeps of what it was given, and when.
//!
//! Each sector of 512 bytes is *durable*, or additionally *cached*: the device has acknowledged a
//! write of it, and holds it where a power loss may reach it. These are all operations, and their
//! effect:
//!
//! | operation | effect on sectors |
//! |---|---|
//! | plain write | cached; the durable content stays until it is replaced |
//! | FUA write | durable, only itself: what other writes have left cached stays cached |
//! | flush | everything acknowledged before it began is durable |
//! | writeback | some that are cached become durable, at the device's discretion |
//! | a write that fails | any of its sectors may be cached, unseen; a flush shows which |
//! | a flush that fails | some of the cached writes may be gone, for readers too |
//! | kill | none: the process dies, the cache stays, and the next process reads it |
//! | power loss | each cached sector is there or not, whatever the order of the writes |
//!
//! [`crate::disk::SimDisk`] is one of these with additional faults, counters, seeds and hooks.

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
    /// Each write completely, or not at all.
    Writes,
    /// Each sector randomly.
    Sectors,
    /// Of each write all sectors but a few, or only a few sectors.
    Torn,
}

/// The state of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// A power loss changes nothing.
    Durable,
    /// A power loss may bring back the previous content.
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

/// Returns `above` where `keep` says so, otherwise what is below it.
pub fn overlay(below: Option<&Frame>, above: &Frame, keep: impl Fn(usize) -> bool) -> Frame {
    let mut frame = below.cloned().unwrap_or_else(Frame::zeros).into_mut();
    for sector in (0..SECTORS).filter(|sector| keep(*sector)) {
        let range = sector * SECTOR_BYTES as usize..(sector + 1) * SECTOR_BYTES as usize;
        frame[range.clone()].copy_from_slice(&above[range]);
    }
    frame.freeze()
}

impl Device {
    /// Returns what a read of a block sees; `None` if nothing was ever written.
    pub fn read(&self, number: u64) -> Option<&Frame> {
        self.seen.get(&number)
    }

    /// Returns the blocks from `first` on that were ever written.
    pub fn written_from(&self, first: u64) -> Vec<u64> {
        self.seen.range(first..).map(|(number, _)| *number).collect()
    }

    /// Returns the state of a block.
    pub fn state(&self, number: u64) -> State {
        let is_cached = self.cached.iter().flatten().any(|(cached, _)| *cached == number);
        if is_cached { State::Cached } else { State::Durable }
    }

    /// Does a write that is acknowledged.
    pub fn write(&mut self, blocks: Blocks) {
        self.seen.extend(blocks.iter().cloned());
        self.write_failed(blocks);
    }

    /// Does an acknowledged write with its own durability (FUA).
    pub fn write_fua(&mut self, blocks: Blocks) {
        for (number, frame) in blocks {
            // It has replaced what the cache had of this block.
            for write in &mut self.cached {
                write.retain(|(cached, _)| *cached != number);
            }
            self.seen.insert(number, frame.clone());
            self.durable.insert(number, frame);
        }
        self.cached.retain(|write| !write.is_empty());
    }

    /// Does a write that fails: readers see the old content, until a power loss shows what it has
    /// done.
    pub fn write_failed(&mut self, blocks: Blocks) {
        if !blocks.is_empty() {
            self.cached.push(blocks);
        }
    }

    /// Does a flush that is acknowledged.
    pub fn flush(&mut self) {
        self.make_durable(self.cached.len());
    }

    /// Makes the oldest writes durable. Durable content is visible, unless a younger write is: so a
    /// flush decides permanently what a failed write has done.
    fn make_durable(&mut self, count: usize) {
        for (number, frame) in self.cached.drain(..count).flatten().collect::<Blocks>() {
            if !self.cached.iter().flatten().any(|(cached, _)| *cached == number) {
                self.seen.insert(number, frame.clone());
            }
            self.durable.insert(number, frame);
        }
    }

    /// Does a flush that fails. The device may have lost what it should have kept: each of the
    /// writes in its cache is still there, or not, and the next flush does not report it.
    pub fn flush_failed(&mut self, rng: &mut Rng) {
        // What readers find if something is lost: that may be a whole segment.
        let mut left: BTreeMap<u64, Option<Frame>> = BTreeMap::new();
        self.cached.retain(|write| {
            let stays = rng.chance(50);
            if !stays {
                let durable = |number: &u64| self.durable.get(number).cloned();
                left.extend(write.iter().map(|(number, _)| (*number, durable(number))));
            }
            stays
        });
        // The newest of what stays in the cache.
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

    /// Writes back a part of the cache: here the oldest writes, up to a random one.
    pub fn write_back(&mut self, rng: &mut Rng) {
        let count = rng.below(self.cached.len() as u64 + 1) as usize;
        self.make_durable(count);
    }

    /// Makes the power fail and return.
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

    /// Changes a block by itself, even if it was durable.
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
    fn older_cached_data_never_overwrites_an_fua_write() {
        let mut device = Device::default();
        device.write(block(0, 1));
        device.write_fua(block(0, 2));
        device.lose_power(Survival::All, &mut Rng::new(1));
        assert_eq!(device.read(0).map(|frame| frame[0]), Some(2));
    }

    #[test]
    fn a_flush_covers_earlier_acknowledged_writes_and_a_writeback_the_oldest() {
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
    fn a_failed_flush_may_lose_cached_data_and_the_next_one_succeeds() {
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
    fn a_failed_write_is_invisible_but_may_reach_the_medium() {
        let mut device = Device::default();
        device.write_failed(block(0, 1));
        assert!(device.read(0).is_none());
        device.lose_power(Survival::All, &mut Rng::new(1));
        assert_eq!(device.read(0).map(|frame| frame[0]), Some(1));
    }

    #[test]
    fn a_flush_reveals_the_effect_of_a_failed_write() {
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
