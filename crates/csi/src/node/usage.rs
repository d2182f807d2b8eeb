//! Usage of volumes, and growing them.

use std::path::Path;

use tonic::Status;

use super::Parts;
use super::records::Record;
use crate::machine::{MountPoint, identity};
use crate::proto::volume_usage::Unit;
use crate::proto::{
    NodeExpandVolumeRequest, NodeExpandVolumeResponse, NodeGetVolumeStatsRequest,
    NodeGetVolumeStatsResponse, VolumeCondition, VolumeUsage,
};

impl Parts {
    /// Returns the usage of a volume's filesystem, or the size of its device.
    pub(super) fn usage(
        &self,
        request: &NodeGetVolumeStatsRequest,
    ) -> Result<NodeGetVolumeStatsResponse, Status> {
        let (record, mount) = self.find(&request.volume_id, &request.volume_path)?;
        let total = |unit: Unit, total: u64, used: u64, available: u64| VolumeUsage {
            total: total as i64,
            used: used as i64,
            available: available as i64,
            unit: unit.into(),
        };
        let condition = self.condition(&record, &mount)?;
        let usage = match is_filesystem(&mount) {
            true => {
                let found = match self.machine.usage(&mount.path) {
                    // The condition is the response.
                    Err(_) if condition.abnormal => {
                        let volume_condition = Some(condition);
                        return Ok(NodeGetVolumeStatsResponse { usage: vec![], volume_condition });
                    }
                    found => found?,
                };
                let used = found.total_inodes.saturating_sub(found.free_inodes);
                let (bytes, available) = (found.total_bytes, found.available_bytes);
                vec![
                    total(Unit::Bytes, bytes, found.used_bytes, available),
                    total(Unit::Inodes, found.total_inodes, used, found.free_inodes),
                ]
            }
            false => {
                let size_bytes = self.machine.size_bytes(&mount.path)?;
                vec![total(Unit::Bytes, size_bytes, 0, 0)]
            }
        };
        Ok(NodeGetVolumeStatsResponse { usage, volume_condition: Some(condition) })
    }

    /// Returns whether a volume can be used as it was staged.
    fn condition(&self, record: &Record, mount: &MountPoint) -> Result<VolumeCondition, Status> {
        let mounts = self.machine.mounts()?;
        let staged = identity(&mounts, &record.staging);
        let mut troubles = Vec::from_iter(self.machine.lost_paths(&record.serial)?);
        if is_filesystem(mount) && staged.is_some_and(is_read_only_by_errors) {
            troubles.push("the kernel has made the filesystem read-only, after errors".into());
        }
        let abnormal = !troubles.is_empty();
        let message =
            if abnormal { troubles.join("; ") } else { "all paths to the volume work".into() };
        Ok(VolumeCondition { abnormal, message })
    }

    /// Grows a volume's device, and its filesystem, to its size on the array.
    pub(super) fn expand(
        &self,
        request: &NodeExpandVolumeRequest,
    ) -> Result<NodeExpandVolumeResponse, Status> {
        let (record, mount) = self.find(&request.volume_id, &request.volume_path)?;
        let device = self.machine.refresh(&record.serial)?;
        let size_bytes = self.machine.size_bytes(&device)?;
        let least_bytes = request.capacity_range.map_or(0, |range| range.required_bytes);
        if (size_bytes as i64) < least_bytes {
            let text = format!("{} still has only {size_bytes} bytes", device.display());
            return Err(Status::unavailable(text));
        }
        if is_filesystem(&mount) {
            self.machine.grow(&device, &mount.path)?;
        }
        Ok(NodeExpandVolumeResponse { capacity_bytes: size_bytes as i64 })
    }

    /// Returns a volume of this node, and the mount at a path.
    fn find(&self, volume: &str, at: &str) -> Result<(Record, MountPoint), Status> {
        let missing = || Status::not_found(format!("the volume {volume} is not mounted at {at}"));
        let at = super::required("volume_path", at)?;
        let record = self.records.get(volume)?.ok_or_else(missing)?;
        // A relative path is not one of this driver, and so has no mount.
        let at = Path::new(at);
        let mounts = self.machine.mounts()?;
        let device = super::staged_device(&record.staging);
        let staged = identity(&mounts, &device).or_else(|| identity(&mounts, &record.staging));
        // kubelet passes the staging path, or the path in a pod; of a raw volume, the directory of
        // its device.
        let found = match at == record.staging {
            true => staged,
            false => identity(&mounts, at),
        };
        let is_same = |mount: &&MountPoint| {
            staged.is_some_and(|staged| {
                (&mount.device, &mount.root) == (&staged.device, &staged.root)
            })
        };
        Ok((record.clone(), found.filter(is_same).ok_or_else(missing)?.clone()))
    }
}

/// Returns whether a filesystem was mounted writable, and is read-only now.
fn is_read_only_by_errors(staged: &MountPoint) -> bool {
    staged.filesystem_read_only && !staged.read_only
}

/// Returns whether a mount is of a filesystem, not of one device.
fn is_filesystem(mount: &MountPoint) -> bool {
    mount.root.as_os_str() == "/"
}
