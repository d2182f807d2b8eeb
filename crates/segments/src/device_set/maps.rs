//! Maps of parts on their devices.

use std::io;

use block::{Frame, FrameMut};
use format::parts_map::PARTS_MAP_OFFSETS_BYTES;
use format::{PartsMap, PartsMapRef};
use sys::Disk;

/// A map as devices store it.
#[derive(Clone, Debug, Default)]
pub(super) struct Stored {
    pub(super) named: PartsMapRef,
    frames: Vec<Frame>,
}

impl Stored {
    pub(super) fn of(map: &PartsMap) -> Self {
        let (bytes, named) = map.encode();
        let frames = bytes.chunks(block::FRAME_BYTES).map(|bytes| {
            let frame = FrameMut::from_bytes(bytes);
            frame.freeze()
        });
        Self { named, frames: frames.collect() }
    }

    /// Writes the map, durably, where the previous map is not.
    pub(super) fn write(&self, disk: &dyn Disk) -> io::Result<()> {
        match self.named.sequence {
            0 => Ok(()),
            sequence => disk.write_durable(offset_bytes(sequence), &self.frames),
        }
    }
}

/// Reads the map that labels refer to, if this device has it.
pub(super) fn read(disk: &dyn Disk, named: PartsMapRef) -> Option<PartsMap> {
    let offset_bytes = offset_bytes(named.sequence);
    let bytes_of = |count: usize| -> Option<Vec<u8>> {
        let mut frames: Vec<FrameMut> = (0..count).map(|_| FrameMut::stale()).collect();
        disk.read_patiently(offset_bytes, &mut frames).ok()?;
        Some(frames.iter().flat_map(|frame| frame.iter().copied()).collect())
    };
    let length = PartsMap::stored_bytes(&bytes_of(1)?).ok()?;
    let (map, found) = PartsMap::decode(&bytes_of(length / block::FRAME_BYTES)?).ok()?;
    (found == named).then_some(map)
}

fn offset_bytes(sequence: u64) -> u64 {
    PARTS_MAP_OFFSETS_BYTES[(sequence % 2) as usize]
}
