//! The Node service, which works on the machine that uses a volume.
//!
//! Before a volume is attached, a record of it is stored in a directory that outlives the driver,
//! by which the remains of an interrupted attempt are found and removed.

mod publish;
mod records;
mod stage;
mod usage;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use tonic::{Request, Response, Status};

use crate::controller::required;
use crate::machine::{Fault, Machine};
use crate::proto::node_server::Node;
use crate::proto::node_service_capability::rpc::Type as Capability;
use crate::proto::node_service_capability::{Rpc, Type};
use crate::proto::*;
use crate::topology::Segment;

pub use records::Records;

/// The supported capabilities of a node.
const CAPABILITIES: [Capability; 5] = [
    Capability::StageUnstageVolume,
    Capability::GetVolumeStats,
    Capability::ExpandVolume,
    Capability::VolumeCondition,
    Capability::SingleNodeMultiWriter,
];
/// The most volumes of a node, each of which is a LUN: Linux scans 512 by itself, and other volumes
/// may be connected too.
const VOLUMES_MAX: i64 = 250;

/// This machine as a node.
#[derive(Clone)]
pub struct MachineNode(Arc<Parts>);

struct Parts {
    machine: Box<dyn Machine>,
    records: Records,
    segment: Segment,
    /// The volumes with an operation in progress.
    busy: Mutex<HashSet<String>>,
}

/// Marks an operation on a volume as in progress, until it is dropped.
struct Busy<'a> {
    parts: &'a Parts,
    volume: String,
}

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        lock(&self.parts.busy).remove(&self.volume);
    }
}

/// A thread that panicked has left the set intact.
fn lock(set: &Mutex<HashSet<String>>) -> std::sync::MutexGuard<'_, HashSet<String>> {
    set.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

impl MachineNode {
    /// Creates a node that keeps its records in a directory.
    pub fn new(machine: Box<dyn Machine>, records: Records, segment: Segment) -> Self {
        Self(Arc::new(Parts { machine, records, segment, busy: Mutex::default() }))
    }

    /// Runs an operation on a volume, on a thread that may block, with no other operation on it in
    /// progress.
    async fn with<T: Send + 'static>(
        &self,
        volume: &str,
        work: impl FnOnce(&Parts) -> Result<T, Status> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let (node, volume) = (self.clone(), required("volume_id", volume)?.to_owned());
        let done = tokio::task::spawn_blocking(move || {
            let parts = &*node.0;
            if !lock(&parts.busy).insert(volume.clone()) {
                return Err(Status::aborted("an operation on this volume is in progress"));
            }
            let _busy = Busy { parts, volume };
            work(parts).map(Response::new)
        });
        done.await.map_err(|error| Status::internal(error.to_string()))?
    }
}

/// Returns a path of a request: absolute, and without `..`.
///
/// # Errors
/// `INVALID_ARGUMENT`.
fn path<'a>(field: &str, text: &'a str) -> Result<&'a Path, Status> {
    let path = Path::new(required(field, text)?);
    let is_plain = !path.components().any(|part| part == std::path::Component::ParentDir);
    match path.is_absolute() && is_plain {
        true => Ok(path),
        false => Err(Status::invalid_argument(format!("{field} must be an absolute path"))),
    }
}

/// Returns the path of a raw volume's device within its staging directory.
fn staged_device(staging: &Path) -> PathBuf {
    staging.join("device")
}

impl From<Fault> for Status {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Failed(text) => Self::internal(text),
            Fault::Wrong(text) => Self::failed_precondition(text),
        }
    }
}

/// The response to a call.
type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl Node for MachineNode {
    async fn node_stage_volume(
        &self,
        request: Request<NodeStageVolumeRequest>,
    ) -> Answer<NodeStageVolumeResponse> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        self.with(&volume, move |parts| parts.stage(&request)).await
    }

    async fn node_unstage_volume(
        &self,
        request: Request<NodeUnstageVolumeRequest>,
    ) -> Answer<NodeUnstageVolumeResponse> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        self.with(&volume, move |parts| parts.unstage(&request)).await
    }

    async fn node_publish_volume(
        &self,
        request: Request<NodePublishVolumeRequest>,
    ) -> Answer<NodePublishVolumeResponse> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        self.with(&volume, move |parts| parts.publish(&request)).await
    }

    async fn node_unpublish_volume(
        &self,
        request: Request<NodeUnpublishVolumeRequest>,
    ) -> Answer<NodeUnpublishVolumeResponse> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        self.with(&volume, move |parts| parts.unpublish(&request)).await
    }

    async fn node_get_volume_stats(
        &self,
        request: Request<NodeGetVolumeStatsRequest>,
    ) -> Answer<NodeGetVolumeStatsResponse> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        self.with(&volume, move |parts| parts.usage(&request)).await
    }

    async fn node_expand_volume(
        &self,
        request: Request<NodeExpandVolumeRequest>,
    ) -> Answer<NodeExpandVolumeResponse> {
        let request = request.into_inner();
        let volume = request.volume_id.clone();
        self.with(&volume, move |parts| parts.expand(&request)).await
    }

    async fn node_get_capabilities(
        &self,
        _: Request<NodeGetCapabilitiesRequest>,
    ) -> Answer<NodeGetCapabilitiesResponse> {
        let capability = |kind: Capability| NodeServiceCapability {
            r#type: Some(Type::Rpc(Rpc { r#type: kind.into() })),
        };
        let capabilities = CAPABILITIES.into_iter().map(capability).collect();
        Ok(Response::new(NodeGetCapabilitiesResponse { capabilities }))
    }

    async fn node_get_info(&self, _: Request<NodeGetInfoRequest>) -> Answer<NodeGetInfoResponse> {
        Ok(Response::new(NodeGetInfoResponse {
            node_id: self.0.machine.initiator()?,
            max_volumes_per_node: VOLUMES_MAX,
            accessible_topology: self.0.segment.topology(),
        }))
    }
}
