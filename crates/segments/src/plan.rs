//! The layout of a new striped pool on its devices.

use format::geometry::{PARITY_COLUMNS, SEGMENT_BYTES_MAX, SEGMENT_BYTES_MIN};
use format::parts_map::{COLUMNS_IN_MAP_MAX, PART_NUMBER_MAX};
use format::{FormatError, Geometry, PartsMap};
use parity::SHARDS_MAX;

use crate::parts::{Parts, segments_left};

/// The maximum number of devices of a pool.
pub const DEVICES_MAX: usize = 48;

/// The layout of a new striped pool on devices of given sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StripePlan {
    /// The division of the pool, with the columns of its widest segments.
    pub geometry: Geometry,
    /// The number of spare devices.
    spares: u8,
    /// The number of parts of each device.
    parts: Vec<u32>,
    /// The number of segments that was requested.
    asked: u64,
}

impl StripePlan {
    /// Plans a pool on 4 to 48 devices with this many bytes each. Segments have as many columns as
    /// there are devices without the spares, 18 at most. When the smaller devices are full, later
    /// segments are on the others, as long as at least four have room. Enough space stays free to
    /// rebuild the columns of any `spares` lost devices on the others.
    ///
    /// `capacity_bytes` is the size that each device would have if there were as many as columns;
    /// `None` uses all space. Parts have `part_bytes`, or a size derived from the size of the
    /// devices.
    ///
    /// # Errors
    /// If there are too few or too many devices, or they are too small.
    pub fn new(
        device_bytes: &[u64],
        spares: usize,
        capacity_bytes: Option<u64>,
        part_bytes: Option<u64>,
    ) -> Result<Self, FormatError> {
        let count = device_bytes.len();
        let columns = stripe_columns(count, spares);
        if columns < 4 || count > DEVICES_MAX {
            let what = "a striped pool needs 4 to 48 devices besides spares";
            return Err(FormatError { what, offset: 0 });
        }
        let mut bytes = part_bytes.unwrap_or(SEGMENT_BYTES_MIN);
        loop {
            let plan = Self::with_parts_of(bytes, device_bytes, (columns, spares), capacity_bytes)?;
            // So that the pool can double in size.
            let is_small = plan.columns_in_all() <= COLUMNS_IN_MAP_MAX / 2;
            if is_small || part_bytes.is_some() || bytes >= SEGMENT_BYTES_MAX {
                return plan.with_narrow().check();
            }
            bytes *= 2;
        }
    }

    fn with_parts_of(
        part_bytes: u64,
        device_bytes: &[u64],
        (columns, spares): (usize, usize),
        capacity_bytes: Option<u64>,
    ) -> Result<Self, FormatError> {
        let data = columns as u32 - PARITY_COLUMNS;
        let one = Geometry { part_bytes, segment_count: 1, columns: 1 };
        let one = one.with_columns(data as u8)?;
        let behind_first = |bytes: u64| one.count_in(bytes).saturating_sub(1);
        let fit = |bytes: &u64| behind_first(*bytes).min(PART_NUMBER_MAX.into()) as u32;
        let parts: Vec<u32> = device_bytes.iter().map(fit).collect();
        let room = segments_in(&parts, columns, spares);
        let asked = capacity_bytes.map_or(u64::MAX, behind_first);
        let segments = u64::from(room).min(asked).min(u64::from(u32::MAX) - 1) as u32;
        let geometry = Geometry { segment_count: 1 + segments, ..one };
        Ok(Self { geometry, spares: spares as u8, parts, asked })
    }

    /// Adds narrower segments where smaller devices are full. The space that spares leave on the
    /// larger devices is for columns that are rebuilt there.
    fn with_narrow(mut self) -> Self {
        if self.spares == 0 {
            let (mut parts, columns) = (self.free(), self.columns().into());
            let is_asked = |segment: &u32| u64::from(*segment) <= self.asked;
            let mut segments = (1..u32::MAX).take_while(is_asked);
            let more = segments.find(|segment| parts.allot_widest(*segment, columns).is_none());
            let first_without = more.unwrap_or_else(|| self.asked.min(u32::MAX.into()) as u32 + 1);
            self.geometry.segment_count = self.geometry.segment_count.max(first_without);
        }
        self
    }

    /// Returns the parts of all devices, all free.
    fn free(&self) -> Parts {
        let mut parts = Parts::default();
        (0..).zip(&self.parts).for_each(|(device, count)| parts.add(device, *count));
        parts
    }

    fn columns_in_all(&self) -> u64 {
        u64::from(self.geometry.segment_count) * u64::from(self.columns())
    }

    fn check(self) -> Result<Self, FormatError> {
        let geometry = self.geometry;
        geometry.check(geometry.pool_bytes(), u64::MAX)?;
        match self.columns_in_all() <= COLUMNS_IN_MAP_MAX {
            true => Ok(self),
            false => Err(FormatError { what: "the devices are too large for a map", offset: 0 }),
        }
    }

    fn columns(&self) -> u8 {
        self.geometry.columns + PARITY_COLUMNS as u8
    }

    /// Returns how much of a device, given by its index, the pool uses, in bytes.
    pub fn bytes_of(&self, device: usize) -> u64 {
        self.geometry.part_offset_bytes(self.parts[device] + 1)
    }

    /// Returns the map of the columns of all segments.
    pub fn map(&self, pool_id: [u8; 16]) -> PartsMap {
        let mut parts = self.free();
        let mut map = PartsMap::new(pool_id, self.columns());
        map.spares = self.spares;
        for segment in 1..self.geometry.segment_count {
            let taken = parts.allot_widest(segment, self.columns().into());
            map.push(&taken.expect("the plan has room for it"));
        }
        map
    }
}

/// Returns the number of columns of stripes over `devices` devices, data and parity, of which
/// `spares` are spare.
pub fn stripe_columns(devices: usize, spares: usize) -> usize {
    devices.saturating_sub(spares).min(SHARDS_MAX)
}

/// Returns how many segments of `columns` columns a pool may have on devices with this many parts,
/// of which `spares` are spare: as many as fit the others if the largest are lost.
pub(crate) fn segments_in(parts: &[u32], columns: usize, spares: usize) -> u32 {
    let mut left = parts.to_vec();
    left.sort_unstable();
    left.truncate(parts.len().saturating_sub(spares));
    segments_left(&left, columns)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const PART: u64 = 64 << 10;

    fn device(parts: u64) -> u64 {
        (16 << 20) + parts * PART
    }

    fn segments(parts: &[u64], spares: usize) -> u32 {
        let devices: Vec<u64> = parts.iter().map(|parts| device(*parts)).collect();
        let plan = StripePlan::new(&devices, spares, None, Some(PART)).unwrap();
        plan.geometry.segment_count - 1
    }

    #[test]
    fn a_plan_has_as_many_segments_as_devices_hold() {
        assert_eq!(segments(&[40; 6], 0), 40);
        // One of seven is spare: 7 x 40 parts, of which 40 stay free.
        assert_eq!(segments(&[40; 7], 1), 40);
        assert_eq!(segments(&[40; 8], 2), 40);
        // Different sizes: five columns, and when the small one is full, 20 segments of four
        // columns.
        assert_eq!(segments(&[40, 40, 40, 40, 20], 0), 40);
        assert_eq!(segments(&[40, 40, 40, 20, 20], 0), 20);
        assert_eq!(segments(&[40, 40, 40, 40, 20, 20], 1), 20);
        assert_eq!(segments(&[40, 40, 40, 40, 30, 20, 20], 2), 20);
        assert_eq!(segments(&[60, 50, 40, 40, 40, 40], 1), 40);
        // 36 devices, 18 columns.
        assert_eq!(segments(&[40; 36], 0), 80);
        assert_eq!(segments(&[40; 48], 1), 40 * 47 / 18);
        for (devices, spares) in [(3, 0), (4, 1), (49, 0), (48, 45)] {
            assert!(StripePlan::new(&vec![device(99); devices], spares, None, Some(PART)).is_err());
        }
    }

    #[test]
    fn a_requested_capacity_leaves_the_rest_free() {
        let plan = |capacity| StripePlan::new(&[device(40); 6], 0, Some(capacity), Some(PART));
        let mixed = [device(40), device(40), device(40), device(40), device(20)];
        let of_mixed = |capacity| StripePlan::new(&mixed, 0, Some(capacity), Some(PART)).unwrap();
        assert_eq!(of_mixed(device(30)).geometry.segment_count, 31);
        assert_eq!(of_mixed(device(18)).geometry.segment_count, 19);
        assert_eq!(of_mixed(device(90)).geometry.segment_count, 41);
        assert_eq!(plan(device(20)).unwrap().geometry.segment_count, 21);
        assert_eq!(plan(device(90)).unwrap().geometry.segment_count, 41);
        assert!(plan(device(2)).is_err());
    }

    #[test]
    fn parts_grow_with_the_devices() {
        let of = |tib: u64, devices| {
            let plan = StripePlan::new(&vec![tib << 40; devices], 0, None, None).unwrap();
            assert!(plan.columns_in_all() <= COLUMNS_IN_MAP_MAX / 2);
            plan.geometry.part_bytes
        };
        assert_eq!((of(1, 6), of(8, 12), of(30, 48)), (16 << 20, 256 << 20, 4 << 30));
    }

    /// A pool on as many equal devices as columns is the same as one without a map.
    #[test]
    fn the_map_of_equal_devices_matches_the_layout_without_a_map() {
        let plan = StripePlan::new(&[device(40); 6], 0, None, Some(PART)).unwrap();
        let all = PartsMap::over_all([1; 16], 6, 41).successor();
        assert_eq!(plan.map([1; 16]), all);
        assert_eq!(plan.bytes_of(5), device(40));
    }

    proptest! {
        /// No part is in two columns, all parts are within their devices, and for any lost devices,
        /// the others have as many free parts as the lost ones had columns.
        #[test]
        fn a_map_keeps_its_rules(
            counts in prop::collection::vec(20..60u64, 4..=12),
            spares in 0..=2usize,
        ) {
            let devices: Vec<u64> = counts.iter().map(|parts| device(*parts)).collect();
            let Ok(plan) = StripePlan::new(&devices, spares, None, Some(PART)) else {
                return Ok(());
            };
            let map = plan.map([1; 16]);
            prop_assert!(PartsMap::decode(&map.encode().0).is_ok());
            let mut used = vec![0; counts.len()];
            for part in (1..map.segment_count()).flat_map(|segment| map.parts(segment)) {
                prop_assert!(u64::from(part.number) <= counts[usize::from(part.device)]);
                used[usize::from(part.device)] += 1;
            }
            for lost in 0..counts.len() {
                let others = (0..counts.len()).filter(|device| *device != lost);
                let free: u64 = others.map(|device| counts[device] - used[device]).sum();
                prop_assert!(spares == 0 || free >= used[lost]);
            }
        }
    }
}
