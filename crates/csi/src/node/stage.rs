//! Attaches volumes, and mounts them once per node.

use std::path::Path;

use tonic::Status;

use super::records::Record;
use super::{Parts, path, staged_device};
use crate::capability::{Mount, Use};
use crate::context::{Chap, PublishContext};
use crate::machine::{Fault, MountPoint, identity};
use crate::proto::{
    NodeStageVolumeRequest, NodeStageVolumeResponse, NodeUnstageVolumeRequest,
    NodeUnstageVolumeResponse,
};

impl Parts {
    /// Attaches a volume, and mounts its filesystem, which is created if the volume is blank; or
    /// its device.
    pub(super) fn stage(
        &self,
        request: &NodeStageVolumeRequest,
    ) -> Result<NodeStageVolumeResponse, Status> {
        let staging = path("staging_target_path", &request.staging_target_path)?;
        let wanted = Use::required(request.volume_capability.as_ref())?;
        let volume = PublishContext::from_map(&request.publish_context)?;
        let chap = Chap::from_secrets(&request.secrets)?;
        let is_staged = self.is_staged(staging, &wanted)?;
        let mut record = self.begin(&request.volume_id, &volume.serial, staging, is_staged)?;
        let device = match self.machine.attach(&volume, chap.as_ref()) {
            Ok(device) => device,
            // It is staged already, and stays so even if a path is missing now.
            Err(fault) if is_staged && !record.is_unfinished => {
                tracing::warn!("{}: {fault}", staging.display());
                return Ok(NodeStageVolumeResponse {});
            }
            Err(fault) => return Err(fault.into()),
        };
        match &wanted.mount {
            Some(mount) => self.stage_filesystem(&device, staging, mount, wanted.is_read_only())?,
            None => self.stage_device(&device, staging)?,
        }
        if record.is_unfinished {
            record.is_unfinished = false;
            self.records.set(&request.volume_id, &record)?;
        }
        Ok(NodeStageVolumeResponse {})
    }

    /// Makes sure that there is a record of a volume, so that `unstage` can undo whatever follows.
    ///
    /// # Errors
    /// `ALREADY_EXISTS` if it is staged elsewhere.
    fn begin(
        &self,
        volume: &str,
        serial: &str,
        staging: &Path,
        is_staged: bool,
    ) -> Result<Record, Status> {
        let mut record = match self.records.get(volume)? {
            Some(there) if there.serial != serial || there.staging != staging => {
                let text = format!("it is already staged at {}", there.staging.display());
                return Err(Status::already_exists(text));
            }
            Some(there) if is_staged || there.is_unfinished => return Ok(there),
            // The machine was restarted.
            Some(there) => there,
            None => Record::new(serial, staging),
        };
        record.is_unfinished = true;
        self.records.set(volume, &record)?;
        Ok(record)
    }

    /// Returns whether something is mounted at the staging path.
    fn is_staged(&self, staging: &Path, wanted: &Use) -> Result<bool, Fault> {
        let mounts = self.machine.mounts()?;
        let place = match wanted.mount {
            Some(_) => staging.to_owned(),
            None => staged_device(staging),
        };
        Ok(identity(&mounts, &place).is_some())
    }

    fn stage_filesystem(
        &self,
        device: &Path,
        staging: &Path,
        mount: &Mount,
        read_only: bool,
    ) -> Result<(), Status> {
        if identity(&self.machine.mounts()?, staging).is_none() {
            self.mount_filesystem(device, staging, mount, read_only)?;
        }
        // A clone may be larger than its source was, also one that an interrupted attempt mounted.
        if !read_only {
            self.machine.grow(device, staging)?;
        }
        Ok(())
    }

    fn mount_filesystem(
        &self,
        device: &Path,
        staging: &Path,
        mount: &Mount,
        read_only: bool,
    ) -> Result<(), Status> {
        let filesystem = mount.filesystem;
        match self.machine.content(device)? {
            None if read_only => {
                let text = "the volume is blank, and can't be formatted for reading only";
                return Err(Status::failed_precondition(text));
            }
            None => self.machine.format(device, filesystem)?,
            Some(found) if found == filesystem.name() => {}
            Some(found) => {
                let text = format!("the volume contains {found}, not {}", filesystem.name());
                return Err(Status::failed_precondition(text));
            }
        }
        self.machine.make_directory(staging)?;
        let mut options = mount.options.clone();
        if read_only {
            options.push("ro".into());
        }
        Ok(self.machine.mount(device, staging, filesystem, &options)?)
    }

    fn stage_device(&self, device: &Path, staging: &Path) -> Result<(), Status> {
        let place = staged_device(staging);
        if identity(&self.machine.mounts()?, &place).is_some() {
            return Ok(());
        }
        self.machine.make_file(&place)?;
        Ok(self.machine.bind(device, &place, false)?)
    }

    /// Unmounts a staged volume, and removes its devices.
    pub(super) fn unstage(
        &self,
        request: &NodeUnstageVolumeRequest,
    ) -> Result<NodeUnstageVolumeResponse, Status> {
        let staging = path("staging_target_path", &request.staging_target_path)?;
        let place = staged_device(staging);
        for path in [place.as_path(), staging] {
            self.check_unused(path)?;
            self.unmount_all(path)?;
        }
        self.machine.remove(&place)?;
        if let Some(record) = self.records.get(&request.volume_id)? {
            self.machine.detach(&record.serial)?;
            self.records.remove(&request.volume_id)?;
        }
        Ok(NodeUnstageVolumeResponse {})
    }

    /// Checks that the filesystem or device staged at a path is mounted nowhere else, because its
    /// disk is removed next.
    fn check_unused(&self, path: &Path) -> Result<(), Status> {
        let mounts = self.machine.mounts()?;
        let Some(staged) = identity(&mounts, path) else { return Ok(()) };
        // Of a filesystem any directory counts, of the device filesystem only this device.
        let is_same = |other: &&MountPoint| {
            other.device == staged.device
                && (staged.root == Path::new("/") || other.root == staged.root)
        };
        match mounts.iter().filter(is_same).find(|other| other.path != path) {
            Some(other) => Err(Status::failed_precondition(format!(
                "the volume is still mounted at {}",
                other.path.display()
            ))),
            None => Ok(()),
        }
    }

    /// Unmounts everything mounted at a path, one mount above the other.
    pub(super) fn unmount_all(&self, path: &Path) -> Result<(), Status> {
        let is_here = |mount: &&MountPoint| mount.path == path;
        let count = self.machine.mounts()?.iter().filter(is_here).count();
        for _ in 0..count {
            self.machine.unmount(path)?;
        }
        Ok(())
    }
}
