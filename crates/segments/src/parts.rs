//! Which parts of the devices of a pool are free, and which of them a new segment takes.
//!
//! Devices may have different sizes. A segment takes a part of those that have the most free ones,
//! so that devices are full at the same time as far as that can be: no other choice can open more
//! segments of a width ([`segments_left`]). How much parity it has depends on how many devices
//! there are, and never on how many of them have room: a pool that is nearly full protects as much
//! as an empty one.

use std::collections::BTreeMap;

pub use format::Part;
use parity::{DATA_SHARDS_MAX, PARITY_SHARDS_MAX, Stripe};

/// On how many devices a segment is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Width {
    /// As many columns of data as there can be.
    Wide,
    /// One column of data.
    Narrow,
}

/// Why a part was not taken or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PartError {
    /// The device is not in the pool, or it has no such part.
    #[error("device {} has no part {}, or is not in", .0.device, .0.number)]
    None(Part),
    /// Another segment has it.
    #[error("part {} of device {} is in two segments", .0.number, .0.device)]
    Taken(Part),
    /// It is free already.
    #[error("part {} of device {} is free already", .0.number, .0.device)]
    Free(Part),
}

/// The free parts of one device.
#[derive(Clone, Debug, Default)]
struct Device {
    /// A bit for each part, from part 1 on; set if it is free.
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

    /// Whether it is free; `None` if there is no such part.
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

    /// The free part with the lowest number.
    fn first_free(&self) -> Option<u32> {
        let word = self.free.iter().position(|word| *word != 0)?;
        Some(word as u32 * 64 + self.free[word].trailing_zeros() + 1)
    }
}

/// Which parts are free on each of the devices that are in.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    devices: BTreeMap<u8, Device>,
}

impl Parts {
    /// A device is in that has so many parts. Those that are new are free; one that was in before
    /// keeps what it has, and never becomes smaller.
    pub fn add(&mut self, device: u8, count: u32) {
        self.devices.entry(device).or_default().grow(count);
    }

    /// A device is out, or is to be emptied: no segment takes a part of it any more.
    pub fn remove(&mut self, device: u8) {
        self.devices.remove(&device);
    }

    /// A segment has this part, as its row says.
    ///
    /// # Errors
    /// If it is not free, or there is none.
    pub fn take(&mut self, part: Part) -> Result<(), PartError> {
        self.mark(part, false)
    }

    /// The segment that had this part is free.
    ///
    /// # Errors
    /// If it is free, or there is none: as of a device that is out, which is no error for who gives
    /// back all parts of a segment.
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

    /// How many parts of each device are free, by its number.
    pub fn free(&self) -> impl Iterator<Item = (u8, u32)> {
        self.devices.iter().map(|(number, device)| (*number, device.free_count))
    }

    /// The stripe of a segment that is opened now; `None` if there is no room for one.
    pub fn stripe(&self, width: Width) -> Option<Stripe> {
        let with_room = self.free().filter(|(_, free)| *free > 0).count();
        stripe(self.devices.len(), with_room, width)
    }

    /// Takes the parts of a new segment, one for each column: of the devices with the most free
    /// parts, of equals of those with the lowest numbers. `None`, and nothing is taken, if there is
    /// no room.
    ///
    /// Which device has which column changes with the number of the segment, or parity, which is
    /// never read while all is well, would always be on the same ones.
    pub fn allot(&mut self, segment: u32, width: Width) -> Option<(Stripe, Vec<Part>)> {
        let stripe = self.stripe(width)?;
        let shards = stripe.shards();
        let mut devices: Vec<(u8, u32)> = self.free().collect();
        // Stable, so that equals stay in the order of their numbers.
        devices.sort_by_key(|(_, free)| std::cmp::Reverse(*free));
        devices.truncate(shards);
        devices.sort_by_key(|(number, _)| *number);
        devices.rotate_left(segment as usize % shards);
        let take = |(number, _): (u8, u32)| {
            let device = self.devices.get_mut(&number)?;
            let part = Part { device: number, number: device.first_free()? };
            device.set(part.number, false);
            Some(part)
        };
        let parts: Vec<Part> = devices.into_iter().filter_map(take).collect();
        assert_eq!(parts.len(), shards, "all of these have free parts");
        Some((stripe, parts))
    }

    /// How many segments of the width that a new one would have can still be opened.
    pub fn room(&self, width: Width) -> u32 {
        let free: Vec<u32> = self.free().map(|(_, free)| free).collect();
        self.stripe(width).map_or(0, |stripe| segments_left(&free, stripe.shards()))
    }

    /// How many parts of data can still be written if each segment is as wide as it can be then:
    /// the space that is free. Segments become narrower as small devices are full, so that this is
    /// more than [`Parts::room`] says if sizes differ.
    ///
    /// With more devices than a stripe has columns it may be too low, by less than a stripe.
    pub fn data_parts_left(&self) -> u64 {
        let mut free: Vec<u32> = self.free().map(|(_, free)| free).collect();
        let mut data_parts = 0;
        loop {
            free.retain(|free| *free > 0);
            let Some(stripe) = stripe(self.devices.len(), free.len(), Width::Wide) else {
                return data_parts;
            };
            // Until there are fewer devices with room than the stripe has columns: then those are
            // left that had more than one part for each segment.
            let segments = segments_left(&free, stripe.shards());
            data_parts += u64::from(segments) * stripe.data() as u64;
            free.iter_mut().for_each(|free| *free = free.saturating_sub(segments));
        }
    }
}

/// How much parity a segment has, of a pool with so many devices: two of them may be lost, or one
/// of two.
const fn parity_of(devices: usize) -> usize {
    match devices {
        0 => 0,
        _ if devices - 1 < PARITY_SHARDS_MAX => devices - 1,
        _ => PARITY_SHARDS_MAX,
    }
}

/// The stripe of a segment, of a pool with so many devices, of which so many have free parts.
/// `None` if these are too few for its parity. Where all have some:
///
/// | devices | wide | narrow |
/// |---|---|---|
/// | 1 | 1 + 0 | 1 + 0 |
/// | 2 | 1 + 1 | 1 + 1 |
/// | 3 | 1 + 2 | 1 + 2 |
/// | m from 4 on | min(16, m - 2) + 2 | 1 + 2 |
///
/// # Panics
/// If more have free parts than there are.
pub fn stripe(devices: usize, with_room: usize, width: Width) -> Option<Stripe> {
    assert!(with_room <= devices, "{with_room} of {devices} devices");
    let parity = parity_of(devices);
    let data_max = match width {
        Width::Wide => DATA_SHARDS_MAX,
        Width::Narrow => 1,
    };
    // It is refused if that leaves no data at all.
    Stripe::new(with_room.saturating_sub(parity).min(data_max), parity).ok()
}

/// How many segments can be opened on devices with so many `free` parts each, if each takes a part
/// of `shards` different ones: the largest s with sum(min(free, s)) >= s x shards. No segment takes
/// two parts of a device, so that it has no use for more than s; and taking those with the most
/// free parts, each time, finds room for all s. At most `u32::MAX`: no pool has more segments.
///
/// # Panics
/// If `shards` is 0.
pub fn segments_left(free: &[u32], shards: usize) -> u32 {
    let fit = |segments: u64| {
        let parts: u64 = free.iter().map(|free| u64::from(*free).min(segments)).sum();
        parts >= segments * shards as u64
    };
    let all: u64 = free.iter().copied().map(u64::from).sum();
    // If so many fit, fewer do. Sought between one number that fits and one that does not.
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
