//! Lists of volumes, and free capacity.

use tonic::Status;

use super::snapshots::page_refused;
use super::{ArrayController, signed};
use crate::array::Part;
use crate::capability::{self, SIZE_BYTES_MAX, SIZE_BYTES_MIN};
use crate::proto::list_volumes_response::{Entry, VolumeStatus};
use crate::proto::{
    ControllerGetVolumeResponse, GetCapacityRequest, GetCapacityResponse, ListVolumesRequest,
    ListVolumesResponse, VolumeCondition, controller_get_volume_response,
};

/// Returns the requested part of a list.
///
/// # Errors
/// `INVALID_ARGUMENT` for a negative number of entries.
pub(super) fn part(max_entries: i32, token: &str) -> Result<Part, Status> {
    let limit = u32::try_from(max_entries);
    let limit = limit.map_err(|_| Status::invalid_argument("max_entries is negative"))?;
    Ok(Part { limit, token: token.to_owned() })
}

impl ArrayController {
    /// Lists the volumes that the driver created, and the nodes to which they are published.
    pub(super) async fn list(
        &self,
        request: &ListVolumesRequest,
    ) -> Result<ListVolumesResponse, Status> {
        let part = part(request.max_entries, &request.starting_token)?;
        let page = self.array.volumes(&part).await.map_err(page_refused)?;
        let ids: Vec<&str> = page.items.iter().map(|volume| volume.id.as_str()).collect();
        let mut nodes = self.nodes(&ids).await?;
        let condition = self.condition().await?;
        let mut entries = Vec::with_capacity(page.items.len());
        for volume in page.items {
            let published_node_ids = nodes.remove(&volume.id).unwrap_or_default();
            let volume_condition = Some(condition.clone());
            let status = Some(VolumeStatus { published_node_ids, volume_condition });
            entries.push(Entry { volume: Some(self.shown(volume)), status });
        }
        Ok(ListVolumesResponse { entries, next_token: page.next.unwrap_or_default() })
    }

    /// Returns one volume.
    pub(super) async fn one(&self, id: &str) -> Result<ControllerGetVolumeResponse, Status> {
        let volume = self.volume(id).await?;
        let published_node_ids = self.nodes(&[id]).await?.remove(id).unwrap_or_default();
        Ok(ControllerGetVolumeResponse {
            volume: Some(self.shown(volume)),
            status: Some(controller_get_volume_response::VolumeStatus {
                published_node_ids,
                volume_condition: Some(self.condition().await?),
            }),
        })
    }

    /// Returns whether the array can serve its volumes without restriction.
    async fn condition(&self) -> Result<VolumeCondition, Status> {
        let trouble = self.array.trouble().await?;
        Ok(VolumeCondition {
            abnormal: trouble.is_some(),
            message: trouble.unwrap_or_else(|| "the array serves it".into()),
        })
    }

    /// Returns how many bytes can still be stored. More than that can be provisioned, because
    /// volumes are thin and their data is reduced.
    pub(super) async fn capacity(
        &self,
        request: &GetCapacityRequest,
    ) -> Result<GetCapacityResponse, Status> {
        let is_offered = request.volume_capabilities.is_empty()
            || capability::check(&request.volume_capabilities).is_ok();
        let topology = request.accessible_topology.as_ref();
        let is_here = topology.is_none_or(|place| self.segment.is_in(place));
        let available = match is_offered && is_here {
            true => self.array.free_bytes().await?,
            false => 0,
        };
        Ok(GetCapacityResponse {
            available_capacity: signed(available),
            maximum_volume_size: Some(signed(SIZE_BYTES_MAX)),
            minimum_volume_size: Some(signed(SIZE_BYTES_MIN)),
        })
    }
}
