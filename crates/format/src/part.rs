//! Parts: what devices of a pool in stripes are divided into.

const NUMBER_BITS: u32 = 26;

/// The maximum number of devices in a map: their numbers are lower.
pub const MAPPED_DEVICES_MAX: u16 = 64;
/// The highest number of a part.
pub const PART_NUMBER_MAX: u32 = (1 << NUMBER_BITS) - 1;

/// A part of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Part {
    /// The number of the device.
    pub device: u8,
    /// The number of the part, from 1 on; roots and labels are before part 1.
    pub number: u32,
}

impl Part {
    /// Encodes it for a map.
    ///
    /// # Panics
    /// If it does not fit.
    pub(crate) fn pack(self) -> u32 {
        let fits = u16::from(self.device) < MAPPED_DEVICES_MAX
            && (1..=PART_NUMBER_MAX).contains(&self.number);
        assert!(fits, "{self:?} can't be in a map");
        u32::from(self.device) << NUMBER_BITS | self.number
    }

    pub(crate) fn unpack(packed: u32) -> Self {
        Self { device: (packed >> NUMBER_BITS) as u8, number: packed & PART_NUMBER_MAX }
    }
}
