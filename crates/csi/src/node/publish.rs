//! Publishes staged volumes to pods.

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
        let mounts = self.machine.mounts()?;
        let staged = identity(&mounts, &source);
        let staged = staged.ok_or_else(|| {
            Status::failed_precondition(format!("nothing is staged at {}", staging.display()))
        })?;
        let is_same =
            |other: &MountPoint| (&other.device, &other.root) == (&staged.device, &staged.root);
        let read_only = request.readonly || wanted.is_read_only();
        if let Some(there) = identity(&mounts, target) {
            return match is_same(there) && there.read_only == read_only {
                true => Ok(NodePublishVolumeResponse {}),
                false => Err(Status::already_exists("something else is mounted there")),
            };
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
        self.machine.bind(&source, target, read_only)?;
        Ok(NodePublishVolumeResponse {})
    }

    /// Unmounts a path of a pod, and removes it.
    pub(super) fn unpublish(
        &self,
        request: &NodeUnpublishVolumeRequest,
    ) -> Result<NodeUnpublishVolumeResponse, Status> {
        let target = path("target_path", &request.target_path)?;
        self.unmount_all(target)?;
        self.machine.remove(target)?;
        Ok(NodeUnpublishVolumeResponse {})
    }
}
