//! The space of volumes over time.
//!
//! A sampler calls [`History::record_space`] with the figures of all volumes: those of the last
//! accounting pass, with the time as of which they are exact. The last sample of each step is kept,
//! in the [`SPACE_RINGS`]: of 5 minutes for a day, of an hour for 31 days, of a day for 366 days.
//! It is written when a step of 5 minutes ends, and at shutdown; until then it is in memory. So a
//! killed process loses 5 minutes at most.
//!
//! A volume takes about 30 bytes of a sample, so 10,000 take 300 KiB, and 400 MiB once all rings
//! are full; a cell has room for 1 MiB. In memory there is one sample, with 48 bytes for each
//! volume. What several volumes use is not kept: it is the sum of theirs.

mod cell;
#[cfg(test)]
mod tests;

use std::io;
use std::sync::Arc;

use crate::History;
use crate::layout::{Ring, SPACE_RINGS};
use crate::range::Range;

use cell::{Index, PAGE_BYTES};

/// The space of a volume at a point in time, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VolumeFigures {
    /// Its size.
    pub size_bytes: u64,
    /// What hosts had written and not unmapped.
    pub mapped_bytes: u64,
    /// Stored bytes that are unique to it.
    pub unique_bytes: u64,
    /// Its share of what is stored.
    pub share_bytes: u64,
    /// Stored bytes that only one of its snapshots refers to.
    pub snapshots_bytes: u64,
}

impl VolumeFigures {
    /// Returns all of them, in the order in which they are stored.
    fn all(&self) -> [u64; 5] {
        let Self { size_bytes, mapped_bytes, unique_bytes, share_bytes, snapshots_bytes } = *self;
        [size_bytes, mapped_bytes, unique_bytes, share_bytes, snapshots_bytes]
    }

    fn from_all(all: [u64; 5]) -> Self {
        let [size_bytes, mapped_bytes, unique_bytes, share_bytes, snapshots_bytes] = all;
        Self { size_bytes, mapped_bytes, unique_bytes, share_bytes, snapshots_bytes }
    }
}

/// Volumes by their ids, in ascending order.
pub type Volumes = Vec<(u64, VolumeFigures)>;

/// The space of all volumes at a point in time.
#[derive(Clone, Debug)]
pub struct SpaceSample {
    /// That point in time, in milliseconds since 1970.
    pub time_ms: u64,
    /// The volumes.
    pub volumes: Arc<Volumes>,
}

/// What is known of some volumes in a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpacePoint {
    /// When the step begins, in milliseconds since 1970.
    pub start_ms: u64,
    /// The time of the figures, within the step.
    pub time_ms: u64,
    /// Those of the volumes that existed then. A volume is missing if a part of the sample is
    /// damaged, too.
    pub volumes: Volumes,
}

impl History {
    /// Takes the newest sample, which replaces the one before in the same step. Writes the one
    /// before when its step is over.
    ///
    /// # Errors
    /// It could not be written, and is lost.
    pub fn record_space(&self, sample: SpaceSample) -> io::Result<()> {
        let mut newest = self.space.lock();
        let ended = newest.replace(sample.clone()).filter(|before| {
            SPACE_RINGS[0].start_of(before.time_ms) != SPACE_RINGS[0].start_of(sample.time_ms)
        });
        ended.map_or(Ok(()), |ended| self.write_space(&ended))
    }

    /// Writes the newest sample.
    pub(crate) fn save_space(&self) -> io::Result<()> {
        self.space.lock().as_ref().map_or(Ok(()), |newest| self.write_space(newest))
    }

    /// Writes a sample as the last one of its step of each ring.
    fn write_space(&self, sample: &SpaceSample) -> io::Result<()> {
        let SpaceSample { time_ms, volumes } = sample;
        let mut first_error = Ok(());
        for ring in &SPACE_RINGS {
            let start_ms = ring.start_of(*time_ms);
            let bytes = cell::encode(ring, start_ms, *time_ms, volumes);
            let written = self.medium.write().write(ring.offset_of(start_ms), &bytes);
            first_error = first_error.and(written);
        }
        first_error
    }

    /// Calls `each` with the last sample of each step of a range ([`Range::of_space`]), in
    /// chronological order. Steps without a sample are absent. Of the volumes it reads only those
    /// with these ids, which are sorted.
    ///
    /// # Errors
    /// The medium can't be read.
    pub fn space_of_volumes(
        &self,
        range: &Range,
        ids: &[u64],
        mut each: impl FnMut(SpacePoint),
    ) -> io::Result<()> {
        let newest = self.space.lock().clone();
        for start_ms in range.starts() {
            let parts = range.parts(start_ms).collect::<Vec<_>>();
            for part_ms in parts.into_iter().rev() {
                let point = match &newest {
                    Some(newest) if range.ring.start_of(newest.time_ms) == part_ms => {
                        Some(newest.point_of(ids))
                    }
                    _ => self.read_space(range.ring, part_ms, ids)?,
                };
                if let Some(point) = point {
                    each(SpacePoint { start_ms, ..point });
                    break;
                }
            }
        }
        Ok(())
    }

    /// Reads some volumes of a sample; `None` if it was not written, or is damaged.
    fn read_space(
        &self,
        ring: &Ring,
        start_ms: u64,
        ids: &[u64],
    ) -> io::Result<Option<SpacePoint>> {
        let medium = self.medium.read();
        let (offset, mut page) = (ring.offset_of(start_ms), vec![0; PAGE_BYTES]);
        medium.read(offset, &mut page)?;
        let Some(index) = Index::decode(ring, start_ms, &page) else { return Ok(None) };
        let mut volumes = Volumes::new();
        for number in index.pages_of(ids) {
            medium.read(offset + (number * PAGE_BYTES) as u64, &mut page)?;
            index.take(&page, ids, &mut volumes);
        }
        Ok(Some(SpacePoint { start_ms, time_ms: index.time_ms, volumes }))
    }
}

impl SpaceSample {
    fn point_of(&self, ids: &[u64]) -> SpacePoint {
        let found = ids.iter().filter_map(|id| {
            let at = self.volumes.binary_search_by_key(id, |(id, _)| *id).ok()?;
            Some(self.volumes[at])
        });
        SpacePoint { start_ms: 0, time_ms: self.time_ms, volumes: found.collect() }
    }
}
