//! The Controller service, which works on the array. Each call may be repeated, even while an
//! earlier attempt is in progress, and then finds what is already done.

mod lists;
mod publish;
mod snapshots;
mod volumes;

use std::sync::Arc;

use tonic::{Request, Response, Status};

use crate::array::{Array, Volume};
use crate::proto::controller_server::Controller;
use crate::proto::controller_service_capability::rpc::Type as Capability;
use crate::proto::controller_service_capability::{Rpc, Type};
use crate::proto::*;
use crate::topology::Segment;

/// The supported capabilities of the controller.
const CAPABILITIES: [Capability; 12] = [
    Capability::CreateDeleteVolume,
    Capability::PublishUnpublishVolume,
    Capability::ListVolumes,
    Capability::ListVolumesPublishedNodes,
    Capability::GetCapacity,
    Capability::CreateDeleteSnapshot,
    Capability::ListSnapshots,
    Capability::CloneVolume,
    Capability::ExpandVolume,
    Capability::GetVolume,
    Capability::VolumeCondition,
    Capability::SingleNodeMultiWriter,
];

/// The controller of one array.
pub struct ArrayController {
    /// The array.
    pub array: Arc<Array>,
    /// The topology segment in which its volumes can be reached.
    pub segment: Segment,
}

impl ArrayController {
    /// Returns an existing volume.
    async fn volume(&self, id: &str) -> Result<Volume, Status> {
        let found = self.array.volume(required("volume_id", id)?).await?;
        let found = found.filter(|volume| !volume.destroyed);
        found.ok_or_else(|| Status::not_found(format!("no volume has the id {id}")))
    }
}

/// Returns a required field.
///
/// # Errors
/// `INVALID_ARGUMENT` if it is empty.
pub fn required<'a>(field: &str, text: &'a str) -> Result<&'a str, Status> {
    match text.is_empty() {
        true => Err(Status::invalid_argument(format!("{field} is required"))),
        false => Ok(text),
    }
}

/// Converts bytes to the interface's type. No volume is near its limit.
fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// The response to a call.
type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Controller for ArrayController {
    async fn create_volume(
        &self,
        request: Request<CreateVolumeRequest>,
    ) -> Answer<CreateVolumeResponse> {
        self.create(&request.into_inner()).await.map(Response::new)
    }

    async fn delete_volume(
        &self,
        request: Request<DeleteVolumeRequest>,
    ) -> Answer<DeleteVolumeResponse> {
        self.delete(&request.into_inner().volume_id).await?;
        Ok(Response::new(DeleteVolumeResponse {}))
    }

    async fn controller_publish_volume(
        &self,
        request: Request<ControllerPublishVolumeRequest>,
    ) -> Answer<ControllerPublishVolumeResponse> {
        self.publish(&request.into_inner()).await.map(Response::new)
    }

    async fn controller_unpublish_volume(
        &self,
        request: Request<ControllerUnpublishVolumeRequest>,
    ) -> Answer<ControllerUnpublishVolumeResponse> {
        self.unpublish(&request.into_inner()).await?;
        Ok(Response::new(ControllerUnpublishVolumeResponse {}))
    }

    async fn validate_volume_capabilities(
        &self,
        request: Request<ValidateVolumeCapabilitiesRequest>,
    ) -> Answer<ValidateVolumeCapabilitiesResponse> {
        self.validate(request.into_inner()).await.map(Response::new)
    }

    async fn list_volumes(
        &self,
        request: Request<ListVolumesRequest>,
    ) -> Answer<ListVolumesResponse> {
        self.list(&request.into_inner()).await.map(Response::new)
    }

    async fn get_capacity(
        &self,
        request: Request<GetCapacityRequest>,
    ) -> Answer<GetCapacityResponse> {
        self.capacity(&request.into_inner()).await.map(Response::new)
    }

    async fn controller_get_capabilities(
        &self,
        _: Request<ControllerGetCapabilitiesRequest>,
    ) -> Answer<ControllerGetCapabilitiesResponse> {
        let capability = |kind: Capability| ControllerServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: kind.into() })),
        };
        let capabilities = CAPABILITIES.into_iter().map(capability).collect();
        Ok(Response::new(ControllerGetCapabilitiesResponse { capabilities }))
    }

    async fn create_snapshot(
        &self,
        request: Request<CreateSnapshotRequest>,
    ) -> Answer<CreateSnapshotResponse> {
        let snapshot = self.snapshot(&request.into_inner()).await?;
        Ok(Response::new(CreateSnapshotResponse { snapshot: Some(snapshot) }))
    }

    async fn delete_snapshot(
        &self,
        request: Request<DeleteSnapshotRequest>,
    ) -> Answer<DeleteSnapshotResponse> {
        self.delete_snapshot_by(&request.into_inner().snapshot_id).await?;
        Ok(Response::new(DeleteSnapshotResponse {}))
    }

    async fn list_snapshots(
        &self,
        request: Request<ListSnapshotsRequest>,
    ) -> Answer<ListSnapshotsResponse> {
        self.snapshots(&request.into_inner()).await.map(Response::new)
    }

    async fn controller_expand_volume(
        &self,
        request: Request<ControllerExpandVolumeRequest>,
    ) -> Answer<ControllerExpandVolumeResponse> {
        self.expand(&request.into_inner()).await.map(Response::new)
    }

    async fn controller_get_volume(
        &self,
        request: Request<ControllerGetVolumeRequest>,
    ) -> Answer<ControllerGetVolumeResponse> {
        self.one(&request.into_inner().volume_id).await.map(Response::new)
    }
}
