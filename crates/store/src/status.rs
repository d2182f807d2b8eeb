//! The state of the pool and its volumes.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use block::{BLOCK_BYTES, SectorCount, VolumeId};
use format::{FormatVersion, PLACE_UNIT_BYTES};

use crate::engine::Engine;
use crate::world::Volume;
use crate::writer::Writer;
use crate::writer::starved::Room;
use crate::{PoolStatus, UpgradeStatus, VolumeStatus, WrittenBytes};

impl Engine {
    /// Returns how often something was written elsewhere because the device refused it.
    pub fn moved_writes(&self) -> u64 {
        self.writer.lock().log.moved_count()
    }

    /// Returns how often a flush of the device has failed, for any caller.
    pub fn failed_flushes(&self) -> u64 {
        self.world.medium.disk.flush_failures()
    }

    /// Returns the bytes of memory of records that no flush has covered yet
    /// (`durability = "flush"`).
    pub fn unflushed_bytes(&self) -> u64 {
        self.writer.lock().unflushed_bytes()
    }

    /// Returns the state of the pool.
    pub fn pool_status(&self) -> PoolStatus {
        let all: Vec<Arc<Volume>> = self.world.volumes.read().values().cloned().collect();
        let all_count = all.len() as u64;
        let volumes = all.into_iter().filter(|volume| !volume.is_snapshot());
        let mapped: Vec<(u64, u64)> = volumes
            .filter_map(|volume| self.volume_status(volume.id))
            .map(|status| (status.mapped_bytes, status.data_bytes))
            .collect();
        let (used_bytes, capacity_bytes) = self.space_use();
        let writer = self.writer.lock();
        let segment_bytes = self.world.medium.geometry().segment_bytes();
        let allocated_bytes = u64::from(writer.state.segments.used_count()) * segment_bytes;
        PoolStatus {
            pool_id: self.pool_id,
            epoch: writer.log.epoch(),
            capacity_bytes,
            data_bytes: writer.state.segments.live_log_bytes(),
            allocated_bytes: capacity_bytes.min(allocated_bytes),
            used_bytes,
            provisioned_bytes: writer.state.provisioned_blocks * BLOCK_BYTES,
            mapped_bytes: mapped.iter().map(|(bytes, _)| bytes).sum(),
            mapped_data_bytes: mapped.iter().map(|(_, data_bytes)| data_bytes).sum(),
            volume_count: mapped.len() as u64,
            snapshot_count: all_count - mapped.len() as u64,
            log_bytes: writer.log.bytes(),
            commit_count: writer.log.commit_count(),
            checkpoint_count: self.checkpoint_count.load(Ordering::Relaxed),
            memory: self.world.memory_status(),
            written: self.written_of(&writer),
            upgrade: self.upgrade_status_of(&writer),
        }
    }

    /// Returns the bytes of the pool that are in use, and its size. In use are live bytes, and the
    /// reserve for deallocation and reclaim in a full pool; not dead bytes that wait for reclaim,
    /// which hosts can use. While hosts are refused space, because reclaim finds nothing, all bytes
    /// are in use. Cheap enough for frequent calls.
    pub fn space_use(&self) -> (u64, u64) {
        let geometry = self.world.medium.geometry();
        let segment_bytes = geometry.segment_bytes();
        let reserve = self.world.medium.reserve_segments();
        let writer = &mut *self.writer.lock();
        let capacity = self.world.medium.usable_bytes();
        if writer.room_for_data(&self.world) == Room::None {
            return (capacity, capacity);
        }
        let kept_back = u64::from(reserve) * segment_bytes;
        (capacity.min(writer.state.segments.live_bytes() + kept_back), capacity)
    }

    /// Returns the progress of upgrading the pool.
    pub fn upgrade_status(&self) -> UpgradeStatus {
        self.upgrade_status_of(&self.writer.lock())
    }

    fn upgrade_status_of(&self, writer: &Writer) -> UpgradeStatus {
        let (version, features) =
            (self.world.medium.version().number(), self.world.medium.features());
        let units: u64 =
            writer.state.segments.of_one_copy().map(|(_, row)| u64::from(row.live_units)).sum();
        let latest_version = FormatVersion::default().number();
        let segments = &writer.state.segments;
        let has_features = features.with_known() == features && segments.pages.is_some();
        let is_latest = version == latest_version && has_features;
        let is_to_be_divided = writer.state.config.is_to_be_divided();
        let config_bytes = if is_to_be_divided { writer.next_checkpoint.config_bytes() } else { 0 };
        let table_bytes = segments.to_be_divided_bytes().unwrap_or(0) as u64;
        let left_bytes = units * PLACE_UNIT_BYTES + config_bytes + table_bytes;
        UpgradeStatus { version, latest_version, is_latest, left_bytes }
    }

    /// Returns what was written since the store was opened.
    pub fn written(&self) -> WrittenBytes {
        self.written_of(&self.writer.lock())
    }

    fn written_of(&self, writer: &Writer) -> WrittenBytes {
        let checkpoint_bytes = self.checkpoint_bytes.load(Ordering::Relaxed);
        WrittenBytes { checkpoint_bytes, ..writer.log.written() }
    }

    /// Returns the state of a volume.
    pub fn volume_status(&self, id: VolumeId) -> Option<VolumeStatus> {
        let volume = self.world.volume(id)?;
        let map = (*volume.map.read())?;
        // What is below an unreadable row can't be counted.
        let counts = self.world.counts(map.root, map.level).unwrap_or_default();
        Some(VolumeStatus {
            id,
            size: SectorCount(map.size_blocks * block::SECTORS_PER_BLOCK),
            mapped_bytes: counts.mapped * BLOCK_BYTES,
            data_bytes: counts.data * BLOCK_BYTES,
            snapshot: map.snapshot,
            handling: map.handling,
        })
    }
}
