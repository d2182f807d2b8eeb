//! The Identity service.

use std::collections::HashMap;
use std::sync::Arc;

use tonic::{Request, Response, Status};

use crate::array::Array;
use crate::proto::identity_server::Identity;
use crate::proto::plugin_capability::service::Type as ServiceType;
use crate::proto::plugin_capability::volume_expansion::Type as ExpansionType;
use crate::proto::plugin_capability::{Service, Type, VolumeExpansion};
use crate::proto::{
    GetPluginCapabilitiesRequest, GetPluginCapabilitiesResponse, GetPluginInfoRequest,
    GetPluginInfoResponse, PluginCapability, ProbeRequest, ProbeResponse,
};
use crate::topology::Segment;

/// The driver's name, which StorageClasses use as their provisioner.
pub const DRIVER: &str = "csi.holdfast";

/// The implementation of the service.
pub struct Driver {
    /// The array, if this is the controller.
    pub array: Option<Arc<Array>>,
    /// The topology segment in which volumes can be reached.
    pub segment: Segment,
}

#[tonic::async_trait]
impl Identity for Driver {
    async fn get_plugin_info(
        &self,
        _: Request<GetPluginInfoRequest>,
    ) -> Result<Response<GetPluginInfoResponse>, Status> {
        Ok(Response::new(GetPluginInfoResponse {
            name: DRIVER.into(),
            vendor_version: env!("CARGO_PKG_VERSION").into(),
            manifest: HashMap::new(),
        }))
    }

    async fn get_plugin_capabilities(
        &self,
        _: Request<GetPluginCapabilitiesRequest>,
    ) -> Result<Response<GetPluginCapabilitiesResponse>, Status> {
        let service = |kind: ServiceType| Type::Service(Service { r#type: kind.into() });
        let expansion =
            |kind: ExpansionType| Type::VolumeExpansion(VolumeExpansion { r#type: kind.into() });
        let mut kinds = vec![expansion(ExpansionType::Online)];
        if self.array.is_some() {
            kinds.push(service(ServiceType::ControllerService));
        }
        if self.segment.0.is_some() {
            kinds.push(service(ServiceType::VolumeAccessibilityConstraints));
        }
        let capabilities =
            kinds.into_iter().map(|kind| PluginCapability { r#type: Some(kind) }).collect();
        Ok(Response::new(GetPluginCapabilitiesResponse { capabilities }))
    }

    async fn probe(&self, _: Request<ProbeRequest>) -> Result<Response<ProbeResponse>, Status> {
        if let Some(array) = &self.array {
            array.probe().await?;
        }
        Ok(Response::new(ProbeResponse { ready: Some(true) }))
    }
}
