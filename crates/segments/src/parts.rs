//! The free parts of a pool's devices, and their allocation to new segments.
//!
//! Devices may differ in size. A segment takes a part of each of the devices with the most free
//! parts, so that all devices fill up at the same time as far as possible. No other choice can open
//! more segments ([`segments_left`]).

use std::collections::BTreeMap;

pub use format::Part;
use format::parts_map::COLUMNS_MIN;

/// Why a part could not be taken or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The device is not in the pool, or has no such part.
    #[error("device {} has no part {}, or is not in", .0.device, .0.number)]
    None(Part),
    /// Another segment has it.
    #[error("part {} of device {} is in two segments", .0.number, .0.device)]
    Taken(Part),
    /// It is already free.
    #[error("part {} of device {} is free already", .0.number, .0.device)]
    Free(Part),
}

/// The free parts of one device.
#[derive(Clone, Debug, Default)]
struct Device {
    /// A bit for each part, from part 1 on; set if the part is free.
    free: Vec<u64>,
    count: u32,
    free_count: u32,
}

impl Device {
    fn grow(&mut self, count: u32) {
        for number in self.count + 1..=count {
            if (number - 1) % 64 == 0 {
                self.free.push(0);
            }
            let (word, bit) = Self::bit(number);
            self.free[word] |= bit;
        }
        self.free_count += count.saturating_sub(self.count);
        self.count = self.count.max(count);
    }

    const fn bit(number: u32) -> (usize, u64) {
        ((number - 1) as usize / 64, 1 << ((number - 1) % 64))
    }

    /// Returns whether a part is free; `None` if there is no such part.
    fn is_free(&self, number: u32) -> Option<bool> {
        (1..=self.count).contains(&number).then(|| {
            let (word, bit) = Self::bit(number);
            self.free[word] & bit != 0
        })
    }

    fn set(&mut self, number: u32, is_free: bool) {
        debug_assert_eq!(self.is_free(number), Some(!is_free));
        let (word, bit) = Self::bit(number);
        self.free[word] ^= bit;
        self.free_count = if is_free { self.free_count + 1 } else { self.free_count - 1 };
    }

    /// Returns the free part with the lowest number.
    fn first_free(&self) -> Option<u32> {
        let word = self.free.iter().position(|word| *word != 0)?;
        Some(word as u32 * 64 + self.free[word].trailing_zeros() + 1)
    }
}

/// The free parts of all devices that are in.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    devices: BTreeMap<u8, Device>,
}

impl Parts {
    /// Adds a device with `count` parts. Its new parts are free; a device that was added before
    /// keeps its allocations, and never shrinks.
    pub fn add(&mut self, device: u8, count: u32) {
        self.devices.entry(device).or_default().grow(count);
    }

    /// Removes a device that is out, or is to be emptied: no segment takes another part of it.
    pub fn remove(&mut self, device: u8) {
        self.devices.remove(&device);
    }

    /// Marks a part as taken by a segment, as its row says.
    ///
    /// # Errors
    /// If it is not free, or does not exist.
    pub fn take(&mut self, part: Part) -> Result<(), PartError> {
        self.mark(part, false)
    }

    /// Frees the part of a segment that was freed.
    ///
    /// # Errors
    /// If it is already free, or does not exist: for example on a device that is out, which a
    /// caller that gives back all parts of a segment ignores.
    pub fn give_back(&mut self, part: Part) -> Result<(), PartError> {
        self.mark(part, true)
    }

    fn mark(&mut self, part: Part, is_free: bool) -> Result<(), PartError> {
        let device = self.devices.get_mut(&part.device).ok_or(PartError::None(part))?;
        match device.is_free(part.number) {
            None => return Err(PartError::None(part)),
            Some(true) if is_free => return Err(PartError::Free(part)),
            Some(false) if !is_free => return Err(PartError::Taken(part)),
            Some(_) => device.set(part.number, is_free),
        }
        Ok(())
    }

    /// Returns the number of free parts of each device, by its number.
    pub fn free(&self) -> impl Iterator<Item = (u8, u32)> {
        self.devices.iter().map(|(number, device)| (*number, device.free_count))
    }

    /// Takes the parts of a new segment, one for each column, from the devices with the most free
    /// parts; among equals, from those with the lowest numbers. Returns `None`, and takes nothing,
    /// if there is no room.
    ///
    /// The order of the devices rotates with the number of the segment. Otherwise parity, which is
    /// not read in normal operation, would always be on the same devices.
    pub fn allot(&mut self, segment: u32, columns: usize) -> Option<Vec<Part>> {
        let mut devices: Vec<(u8, u32)> = self.free().filter(|(_, free)| *free > 0).collect();
        if columns == 0 || devices.len() < columns {
            return None;
        }
        // A stable sort, so that equals stay in the order of their numbers.
        devices.sort_by_key(|(_, free)| std::cmp::Reverse(*free));
        devices.truncate(columns);
        devices.sort_by_key(|(number, _)| *number);
        devices.rotate_left(segment as usize % columns);
        let parts: Vec<Part> =
            devices.into_iter().filter_map(|(number, _)| self.take_on(number)).collect();
        assert_eq!(parts.len(), columns, "all of these devices have free parts");
        Some(parts)
    }

    /// The same as [`Parts::allot`], with as many columns as there are devices with free parts: at
    /// most `columns_max`, and at least [`COLUMNS_MIN`].
    pub fn allot_widest(&mut self, segment: u32, columns_max: usize) -> Option<Vec<Part>> {
        let with_free = self.devices.values().filter(|device| device.free_count > 0).count();
        let columns = with_free.min(columns_max);
        if columns < COLUMNS_MIN.into() { None } else { self.allot(segment, columns) }
    }

    /// Takes a part for one more column of a segment that is on these devices: from the other
    /// device with the most free parts. `None` if there is none.
    pub fn allot_beside(&mut self, devices: &[u8]) -> Option<Part> {
        let others = self.free().filter(|(number, free)| *free > 0 && !devices.contains(number));
        let (number, _) =
            others.max_by_key(|(number, free)| (*free, std::cmp::Reverse(*number)))?;
        self.take_on(number)
    }

    /// Takes the free part with the lowest number on a device; `None` if there is none.
    pub fn take_on(&mut self, number: u8) -> Option<Part> {
        let device = self.devices.get_mut(&number)?;
        let part = Part { device: number, number: device.first_free()? };
        device.set(part.number, false);
        Some(part)
    }

    /// Returns how many segments of `columns` columns can still be opened.
    pub fn room(&self, columns: usize) -> u32 {
        let free: Vec<u32> = self.free().map(|(_, free)| free).collect();
        segments_left(&free, columns)
    }
}

/// Returns how many segments can be opened on devices with `free` free parts each, if each takes a
/// part of `shards` different ones: the largest s with sum(min(free, s)) >= s x shards. No segment
/// takes two parts of a device, so no device can contribute more than s; and always taking those
/// with the most free parts finds room for all s. At most `u32::MAX`: no pool has more segments.
///
/// # Panics
/// If `shards` is 0.
pub fn segments_left(free: &[u32], shards: usize) -> u32 {
    let fit = |segments: u64| {
        let parts: u64 = free.iter().map(|free| u64::from(*free).min(segments)).sum();
        parts >= segments * shards as u64
    };
    let all: u64 = free.iter().copied().map(u64::from).sum();
    // If a number fits, all lower ones do, so a binary search finds the limit.
    let (mut fits, mut too_many) = (0, all / shards as u64 + 1);
    while fits + 1 < too_many {
        let middle = fits.midpoint(too_many);
        if fit(middle) { fits = middle } else { too_many = middle }
    }
    u32::try_from(fits).unwrap_or(u32::MAX)
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
