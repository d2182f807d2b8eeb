//! Creates, grows and deletes volumes.

use tonic::Status;

use super::{ArrayController, required, signed};
use crate::array::{Part, SnapshotQuery, Volume};
use crate::capability::{self, Sizes};
use crate::names;
use crate::proto::validate_volume_capabilities_response::Confirmed;
use crate::proto::volume_content_source::Type as SourceType;
use crate::proto::{
    self, ControllerExpandVolumeRequest, ControllerExpandVolumeResponse, CreateVolumeRequest,
    CreateVolumeResponse, ValidateVolumeCapabilitiesRequest, ValidateVolumeCapabilitiesResponse,
    VolumeContentSource,
};

/// The prefix of parameters added by external-provisioner: the claim, its namespace and its volume.
const METADATA: &str = "csi.storage.k8s.io/";

/// The source of a new volume's data.
struct Origin<'a> {
    id: &'a str,
    size_bytes: u64,
}

impl ArrayController {
    /// Creates a volume, or finds the one that an earlier attempt has created.
    pub(super) async fn create(
        &self,
        request: &CreateVolumeRequest,
    ) -> Result<CreateVolumeResponse, Status> {
        let name = required("name", &request.name)?;
        capability::check(&request.volume_capabilities)?;
        let mut parameters = request.parameters.keys().chain(request.mutable_parameters.keys());
        if let Some(other) = parameters.find(|key| !key.starts_with(METADATA)) {
            let text = format!("the parameter {other:?} is not supported");
            return Err(Status::invalid_argument(text));
        }
        let sizes = Sizes::new(request.capacity_range.as_ref())?;
        self.segment.check(request.accessibility_requirements.as_ref())?;
        let origin = self.origin(request.volume_content_source.as_ref()).await?;
        let names = names::candidates(self.array.prefix(), name);
        let taken = self.array.volumes_named(&names).await?;
        let volume = match taken.iter().find(|volume| !volume.destroyed) {
            Some(there) => self.finish(there, origin.as_ref(), &sizes).await?,
            None => {
                let is_taken = |name: &String| taken.iter().any(|v| v.name == *name);
                let name = names.iter().find(|name| !is_taken(name)).ok_or_else(|| {
                    let text = "too many destroyed volumes have had this name: eradicate them";
                    Status::resource_exhausted(text)
                })?;
                self.make(name, origin.as_ref(), &sizes).await?
            }
        };
        let mut volume = self.shown(volume);
        volume.content_source = request.volume_content_source.clone();
        Ok(CreateVolumeResponse { volume: Some(volume) })
    }

    async fn origin<'a>(
        &self,
        source: Option<&'a VolumeContentSource>,
    ) -> Result<Option<Origin<'a>>, Status> {
        let Some(source) = source else { return Ok(None) };
        let missing = |id: &str| Status::not_found(format!("no source has the id {id}"));
        let (id, size_bytes) = match &source.r#type {
            Some(SourceType::Snapshot(source)) => {
                let id = required("snapshot_id", &source.snapshot_id)?;
                let snapshot = self.array.snapshot(id).await?;
                (id, snapshot.filter(|found| !found.destroyed).map(|found| found.size_bytes))
            }
            Some(SourceType::Volume(source)) => {
                let id = required("volume_id", &source.volume_id)?;
                let volume = self.array.volume(id).await?;
                (id, volume.filter(|found| !found.destroyed).map(|found| found.size_bytes))
            }
            None => return Err(Status::invalid_argument("the source of a volume has no type")),
        };
        Ok(Some(Origin { id, size_bytes: size_bytes.ok_or_else(|| missing(id))? }))
    }

    async fn make(
        &self,
        name: &str,
        origin: Option<&Origin<'_>>,
        sizes: &Sizes,
    ) -> Result<Volume, Status> {
        let Some(origin) = origin else {
            return Ok(self.array.create_volume(name, sizes.new_bytes()).await?);
        };
        if !sizes.fit(origin.size_bytes.max(sizes.least_bytes())) {
            let text = format!("the source has {} bytes, more than the limit", origin.size_bytes);
            return Err(Status::out_of_range(text));
        }
        let copy = self.array.copy_volume(name, origin.id).await?;
        self.grow(copy, sizes).await
    }

    /// Checks that a volume matches the request. A copy whose creator ended before growing it is
    /// grown now.
    async fn finish(
        &self,
        there: &Volume,
        origin: Option<&Origin<'_>>,
        sizes: &Sizes,
    ) -> Result<Volume, Status> {
        let refuse =
            |why: &str| Err(Status::already_exists(format!("the volume {} {why}", there.name)));
        if there.source.id.as_deref() != origin.map(|origin| origin.id) {
            return refuse("exists with another source");
        }
        if sizes.fit(there.size_bytes) {
            return Ok(there.clone());
        }
        match origin {
            Some(origin) if there.size_bytes == origin.size_bytes => {
                let grown = self.grow(there.clone(), sizes).await?;
                if sizes.fit(grown.size_bytes) { Ok(grown) } else { refuse("is too large") }
            }
            _ => refuse("exists with another size"),
        }
    }

    async fn grow(&self, volume: Volume, sizes: &Sizes) -> Result<Volume, Status> {
        match volume.size_bytes < sizes.least_bytes() {
            true => Ok(self.array.grow_volume(&volume.id, sizes.least_bytes()).await?),
            false => Ok(volume),
        }
    }

    /// Destroys a volume, unless something still needs it; its snapshots would be destroyed with
    /// it.
    pub(super) async fn delete(&self, id: &str) -> Result<(), Status> {
        let Some(volume) = self.array.volume(required("volume_id", id)?).await? else {
            return Ok(());
        };
        if volume.destroyed {
            return Ok(());
        }
        let refuse = |why: &str| {
            Err(Status::failed_precondition(format!("the volume {} {why}", volume.name)))
        };
        if !self.array.connections(&[id]).await?.is_empty() {
            return refuse("is published to a node");
        }
        let part = Part { limit: 1, token: String::new() };
        let kept = self.array.snapshots(&SnapshotQuery::OfVolume(id), &part).await?;
        if !kept.items.is_empty() {
            return refuse("has snapshots, which would be destroyed with it: delete them first");
        }
        Ok(self.array.destroy_volume(id).await?)
    }

    /// Grows a volume, connected or not.
    pub(super) async fn expand(
        &self,
        request: &ControllerExpandVolumeRequest,
    ) -> Result<ControllerExpandVolumeResponse, Status> {
        required("volume_id", &request.volume_id)?;
        let missing = || Status::invalid_argument("capacity_range is required");
        let sizes = Sizes::new(Some(request.capacity_range.as_ref().ok_or_else(missing)?))?;
        let volume = self.volume(&request.volume_id).await?;
        let volume = self.grow(volume, &sizes).await?;
        if !sizes.fit(volume.size_bytes) {
            let text = format!("it has {} bytes, more than the limit", volume.size_bytes);
            return Err(Status::out_of_range(text));
        }
        Ok(ControllerExpandVolumeResponse {
            capacity_bytes: signed(volume.size_bytes),
            node_expansion_required: true,
        })
    }

    /// Checks whether a volume supports this use.
    pub(super) async fn validate(
        &self,
        request: ValidateVolumeCapabilitiesRequest,
    ) -> Result<ValidateVolumeCapabilitiesResponse, Status> {
        required("volume_id", &request.volume_id)?;
        if request.volume_capabilities.is_empty() {
            return Err(Status::invalid_argument("volume_capabilities are required"));
        }
        self.volume(&request.volume_id).await?;
        if let Err(refusal) = capability::check(&request.volume_capabilities) {
            let message = refusal.message().to_owned();
            return Ok(ValidateVolumeCapabilitiesResponse { confirmed: None, message });
        }
        let confirmed = Some(Confirmed {
            volume_context: request.volume_context,
            volume_capabilities: request.volume_capabilities,
            parameters: request.parameters,
            mutable_parameters: request.mutable_parameters,
        });
        Ok(ValidateVolumeCapabilitiesResponse { confirmed, message: String::new() })
    }

    /// Converts a volume to the interface's form.
    pub(super) fn shown(&self, volume: Volume) -> proto::Volume {
        proto::Volume {
            capacity_bytes: signed(volume.size_bytes),
            volume_id: volume.id,
            volume_context: Default::default(),
            content_source: None,
            accessible_topology: Vec::from_iter(self.segment.topology()),
        }
    }
}
