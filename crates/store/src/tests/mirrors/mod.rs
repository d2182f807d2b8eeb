//! Pools in which each device holds everything.

pub(super) mod catch_up;
mod chunks;
mod garbage;
mod metadata;
pub(super) mod records;

use format::{ChunkId, ChunkRow, Codec, Place};
use segments::{Device, DeviceSet, Segments};
use sys::Disk;

use super::integrity::COLD;
use super::reduction::prose;
use super::*;

/// Several disks, and the pool on them.
pub(super) struct Pool {
    pub(super) disks: Vec<Arc<MemoryDisk>>,
    pub(super) mirrors: Arc<DeviceSet>,
    pub(super) store: Store,
}

pub(super) fn devices(disks: &[Arc<MemoryDisk>]) -> Vec<Device> {
    let name = |at| format!("disk {at}");
    disks.iter().enumerate().map(|(at, disk)| Device::over(disk.clone(), name(at))).collect()
}

fn device_set(disks: &[Arc<MemoryDisk>]) -> Arc<DeviceSet> {
    Arc::new(DeviceSet::open(devices(disks), true).unwrap())
}

pub(super) fn make(count: usize) -> Pool {
    let disks: Vec<_> = (0..count).map(|_| MemoryDisk::new(1 << 30)).collect();
    Store::create_on(&devices(&disks), &[7; 64]).unwrap();
    open(disks)
}

/// Opens a pool on the devices that are present.
pub(super) fn open(disks: Vec<Arc<MemoryDisk>>) -> Pool {
    open_as(disks, COLD)
}

pub(super) fn open_as(disks: Vec<Arc<MemoryDisk>>, options: OpenOptions) -> Pool {
    let mirrors = device_set(&disks);
    let store = Store::open(mirrors.clone(), options).unwrap();
    Pool { disks, mirrors, store }
}

impl Pool {
    /// Returns the disks as a crash would leave them now.
    pub(super) fn crashed(&self) -> Vec<Arc<MemoryDisk>> {
        self.disks.iter().map(|disk| disk.copy()).collect()
    }

    /// Opens the pool again, so that nothing is in memory.
    pub(super) fn reopened(self) -> Pool {
        let disks = self.disks.clone();
        drop(self);
        open(disks)
    }

    /// Returns the chunks that have a location, in the order of their ids.
    pub(super) fn chunks(&self) -> Vec<(ChunkId, ChunkRow)> {
        let ids = (0..self.store.writer.lock().state.next_chunk).map(ChunkId);
        let rows = ids.filter_map(|id| Some((id, self.store.world.chunk(id).ok()?)));
        rows.filter(|(_, row)| !row.place.is_none()).collect()
    }

    /// Returns the byte offset of a location on each disk.
    pub(super) fn at(&self, place: Place) -> u64 {
        self.mirrors.locate(place)
    }

    /// Returns the disk that is read first for a location: they take turns.
    fn first(&self, place: Place) -> usize {
        (self.at(place) / (256 << 10)) as usize % self.disks.len()
    }

    /// Replaces a disk that is out by a blank one of the same size; returns the number of the new
    /// device. `random` gives it its id.
    pub(super) fn replace(&mut self, disk: usize, random: u8) -> u16 {
        let blank = MemoryDisk::new(self.disks[disk].len_bytes());
        let device = Device::over(blank.clone(), "blank".into());
        let number = self.mirrors.replace(disk as u16, device, [random; 16]).unwrap();
        self.disks[disk] = blank;
        number
    }

    /// Returns how many locations of a disk were repaired.
    fn mended(&self, disk: usize) -> u64 {
        self.mirrors.devices()[disk].mended
    }

    /// Flips a bit of one disk's copy, in a byte counted from a location.
    fn spoil(&self, disk: usize, place: Place, byte: u64) {
        self.disks[disk].flip_one(self.at(place) + byte, 3);
    }

    /// Returns whether a block of a location is the same on all disks.
    fn is_alike(&self, place: Place) -> bool {
        let block = self.at(place) / 4096;
        self.disks.iter().all(|disk| disk.block(block)[..] == self.disks[0].block(block)[..])
    }

    pub(super) fn scrub(&self) -> Vec<crate::Finding> {
        assert!(self.store.scrub_start(5));
        while self.store.scrub_step(64, 6).unwrap() != crate::ScrubStep::Complete {}
        let is_label = |finding: &crate::Finding| matches!(finding.what, crate::What::Label(_));
        let findings = self.store.damage().findings.into_iter();
        findings.filter(|finding| !is_label(finding)).collect()
    }
}

/// Returns what a host gets, or the error.
fn try_read(
    store: &Store,
    volume: VolumeId,
    start: u64,
    count: u64,
) -> Result<Vec<u8>, VolumeError> {
    let range = SectorRange::new(start, count);
    match store.execute(VolumeRequest::Read { volume, range })? {
        VolumeReply::Data(data) => Ok(data.to_vec()),
        other => panic!("{other:?}"),
    }
}
