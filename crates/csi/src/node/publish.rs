//! Publishes staged volumes to pods.

use std::path::Path;

use tonic::Status;

use super::{Parts, path, staged_device};
use crate::capability::Use;
use crate::machine::{MountPoint, identity};
use crate::proto::volume_capability::access_mode::Mode;
use crate::proto::{
    NodePublishVolumeRequest, NodePublishVolumeResponse, NodeUnpublishVolumeRequest,
    NodeUnpublishVolumeResponse,
};

impl Parts {
    /// Mounts a staged volume at a path of a pod.
    pub(super) fn publish(
        &self,
        request: &NodePublishVolumeRequest,
    ) -> Result<NodePublishVolumeResponse, Status> {
        let target = path("target_path", &request.target_path)?;
        let wanted = Use::required(request.volume_capability.as_ref())?;
        if request.readonly && wanted.mount.is_none() {
            let text = "a raw block device can't be published read-only";
            return Err(Status::invalid_argument(text));
        }
        if request.staging_target_path.is_empty() {
            return Err(Status::failed_precondition("staging_target_path is required"));
        }
        let staging = path("staging_target_path", &request.staging_target_path)?;
        let source = match wanted.mount {
            Some(_) => staging.to_owned(),
            None => staged_device(staging),
        };
        let read_only = request.readonly || wanted.is_read_only();
        let mut mounts = self.machine.mounts()?;
        if self.is_unfinished(&request.volume_id, target, &mounts)? {
            self.unmount_all(target)?;
            mounts = self.machine.mounts()?;
        }
        let staged = identity(&mounts, &source);
        let staged = staged.ok_or_else(|| {
            Status::failed_precondition(format!("nothing is staged at {}", staging.display()))
        })?;
        let is_same =
            |other: &MountPoint| (&other.device, &other.root) == (&staged.device, &staged.root);
        if let Some(there) = identity(&mounts, target) {
            if !is_same(there) || there.read_only != read_only {
                return Err(Status::already_exists("something else is mounted there"));
            }
            self.records.mark(&request.volume_id, target, false)?;
            return Ok(NodePublishVolumeResponse {});
        }
        let is_other = |mount: &MountPoint| is_same(mount) && mount.path != source;
        if wanted.mode == Mode::SingleNodeSingleWriter && mounts.iter().any(is_other) {
            let text = "the volume is for one pod, and another has it";
            return Err(Status::failed_precondition(text));
        }
        match wanted.mount {
            Some(_) => self.machine.make_directory(target)?,
            None => self.machine.make_file(target)?,
        }
        if read_only {
            // Until then it is writable, as if it were another mount than the one to make.
            self.records.mark(&request.volume_id, target, true)?;
        }
        self.machine.bind(&source, target, read_only)?;
        self.records.mark(&request.volume_id, target, false)?;
        Ok(NodePublishVolumeResponse {})
    }

    /// Returns whether an interrupted attempt has mounted a volume at a path of a pod, and not yet
    /// made it read-only.
    fn is_unfinished(
        &self,
        volume: &str,
        target: &Path,
        mounts: &[MountPoint],
    ) -> Result<bool, Status> {
        let record = self.records.get(volume)?;
        let is_marked = record.is_some_and(|record| record.unfinished.contains(target));
        Ok(is_marked && identity(mounts, target).is_some_and(|there| !there.read_only))
    }

    /// Unmounts a path of a pod, and removes it.
    pub(super) fn unpublish(
        &self,
        request: &NodeUnpublishVolumeRequest,
    ) -> Result<NodeUnpublishVolumeResponse, Status> {
        let target = path("target_path", &request.target_path)?;
        self.unmount_all(target)?;
        self.records.mark(&request.volume_id, target, false)?;
        self.machine.remove(target)?;
        Ok(NodeUnpublishVolumeResponse {})
    }
}
