//! Connects volumes to nodes: a node is the array's host with the node's initiator name.

use std::collections::HashMap;

use tonic::Status;

use super::{ArrayController, required};
use crate::capability::Use;
use crate::context::{Chap, PublishContext};
use crate::names;
use crate::proto::{
    ControllerPublishVolumeRequest, ControllerPublishVolumeResponse,
    ControllerUnpublishVolumeRequest,
};

impl ArrayController {
    /// Connects a volume to a node, and returns where the node finds it.
    pub(super) async fn publish(
        &self,
        request: &ControllerPublishVolumeRequest,
    ) -> Result<ControllerPublishVolumeResponse, Status> {
        required("volume_id", &request.volume_id)?;
        let node = required("node_id", &request.node_id)?;
        let wanted = Use::required(request.volume_capability.as_ref())?;
        let chap = Chap::from_secrets(&request.secrets)?;
        if request.readonly {
            let text = "readonly is not supported here: the node mounts it read-only";
            return Err(Status::invalid_argument(text));
        }
        let volume = self.volume(&request.volume_id).await?;
        if !is_initiator(node) {
            return Err(Status::not_found(format!("{node} is not an iSCSI initiator name")));
        }
        let host = self.host(node).await?;
        if let Some(chap) = chap {
            // Each time, so that a changed secret reaches the array.
            self.array.set_chap(&host, &chap).await?;
        }
        let others = |name: &Option<String>| name.as_deref() != Some(host.as_str());
        let there = self.array.connections(&[&volume.id]).await?;
        if wanted.is_single_node() {
            // All hosts of a group see what is connected to the group, which an administrator has
            // set up.
            let other = there.iter().find(|one| !one.is_shared && others(&one.host));
            if let Some(other) = other {
                let name = other.host.as_deref().unwrap_or_default();
                let text = format!("{} is published to the node of host {name}", volume.name);
                return Err(Status::failed_precondition(text));
            }
        }
        let mut mine = there.into_iter().find(|one| !others(&one.host));
        if mine.is_none() {
            self.array.connect(&volume.id, &host).await?;
            let there = self.array.connections(&[&volume.id]).await?;
            mine = there.into_iter().find(|one| !others(&one.host));
        }
        // It was disconnected meanwhile.
        let mine = mine.ok_or_else(|| Status::aborted("the connection is gone: try again"))?;
        let target = self.array.target().await?;
        let context = PublishContext {
            target: target.iqn,
            portals: target.portals,
            lun: mine.lun,
            serial: volume.serial,
        };
        Ok(ControllerPublishVolumeResponse { publish_context: context.into_map() })
    }

    /// Returns the name of a node's host, which is created if there is none.
    async fn host(&self, node: &str) -> Result<String, Status> {
        if let Some(host) = self.array.host_of(node).await? {
            return Ok(host.name);
        }
        self.array.create_host(&names::host(self.array.prefix(), node), node).await?;
        let made = self.array.host_of(node).await?;
        let other = || Status::aborted("the host of this node is gone: try again");
        Ok(made.ok_or_else(other)?.name)
    }

    /// Disconnects a volume from a node, or from all.
    pub(super) async fn unpublish(
        &self,
        request: &ControllerUnpublishVolumeRequest,
    ) -> Result<(), Status> {
        let id = required("volume_id", &request.volume_id)?;
        let Some(volume) = self.array.volume(id).await? else { return Ok(()) };
        if volume.destroyed {
            return Ok(());
        }
        let host = match request.node_id.as_str() {
            "" => None,
            node if !is_initiator(node) => return Ok(()),
            node => match self.array.host_of(node).await? {
                Some(host) => Some(host.name),
                None => return Ok(()),
            },
        };
        for connection in self.array.connections(&[id]).await? {
            let Some(name) = connection.host.filter(|_| !connection.is_shared) else { continue };
            if host.as_ref().is_none_or(|host| *host == name) {
                self.array.disconnect(id, &name).await?;
            }
        }
        Ok(())
    }

    /// Returns the nodes to which each of these volumes is published, by volume id.
    pub(super) async fn nodes(
        &self,
        volumes: &[&str],
    ) -> Result<HashMap<String, Vec<String>>, Status> {
        if volumes.is_empty() {
            return Ok(HashMap::new());
        }
        let connections = self.array.connections(volumes).await?;
        let mut hosts: Vec<&str> =
            connections.iter().filter_map(|one| one.host.as_deref()).collect();
        hosts.sort_unstable();
        hosts.dedup();
        let initiators = self.array.initiators(&hosts).await?;
        let mut nodes: HashMap<String, Vec<String>> = HashMap::new();
        for connection in &connections {
            let found = connection.host.as_ref().and_then(|host| initiators.get(host));
            let node = nodes.entry(connection.volume_id.clone()).or_default();
            node.extend(found.into_iter().flatten().cloned());
        }
        Ok(nodes)
    }
}

/// Returns whether this can be an iSCSI name (RFC 7143, 4.2.7), and needs no escape in a filter.
fn is_initiator(name: &str) -> bool {
    let is_typed = ["iqn.", "eui.", "naa."].iter().any(|kind| name.starts_with(kind));
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | ':');
    is_typed && name.len() <= 223 && name.chars().all(is_allowed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_iscsi_names_are_nodes() {
        assert!(is_initiator("iqn.1993-08.org.debian:01:ab-c"));
        for bad in ["", "some-fake-node-id", "iqn.x' or iqns='iqn.y", "iqn.*", "iqn.a,iqn.b"] {
            assert!(!is_initiator(bad), "{bad}");
        }
    }
}
