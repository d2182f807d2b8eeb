//! A node of a cluster: the calls of kubelet to a driver on the simulated machine.

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};

use tonic::{Request, Status};

use super::process::{Kill, Process};
use super::world::{Content, PORTALS, TARGET, Volume, World};
use crate::context::PublishContext;
use crate::machine::linux::Linux;
use crate::node::{MachineNode, Records};
use crate::proto::node_server::Node;
use crate::proto::volume_capability::access_mode::Mode;
use crate::proto::volume_capability::{AccessMode, AccessType, BlockVolume, MountVolume};
use crate::proto::*;
use crate::topology::Segment;

/// The volume that is in use all the time, and the one of the test; with their LUNs.
pub const KEEPER: (u16, &str) = (1, "0123456789ABCDEF00000001");
pub const TESTED: (u16, &str) = (300, "0123456789ABCDEF0000002A");
/// The size of a new volume, and that after its expansion.
pub const SIZE_BYTES: u64 = 1 << 30;
pub const GROWN_BYTES: u64 = 2 << 30;

/// A call of kubelet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    Stage,
    Publish,
    Expand,
    Unpublish,
    Unstage,
}

/// All calls, in the order in which they are made.
pub const CALLS: [Call; 5] =
    [Call::Stage, Call::Publish, Call::Expand, Call::Unpublish, Call::Unstage];

/// How the volume is used.
#[derive(Clone, Debug, Default)]
pub struct Usage {
    /// Its filesystem; `None` for a raw device.
    pub filesystem: Option<&'static str>,
    /// Whether the pod may only read.
    pub is_read_only: bool,
    /// The secrets of calls.
    pub secrets: HashMap<String, String>,
}

/// The machine between two processes of the driver: the world, and the driver's records.
#[derive(Clone, Debug)]
pub struct Machine {
    pub world: World,
    pub records: Vec<(String, Vec<u8>)>,
}

/// The outcome of a call.
pub struct Done {
    pub result: Result<(), Status>,
    pub machine: Machine,
    /// How many steps it took.
    pub steps: usize,
}

impl Machine {
    /// Returns a machine that has no session yet.
    pub fn fresh(usage: &Usage, content: Content) -> Self {
        let mut world = World::default();
        let kept = Volume { size_bytes: SIZE_BYTES, content: Content::Blank };
        world.volumes.insert(KEEPER.1.into(), kept);
        world.volumes.insert(TESTED.1.into(), Volume { size_bytes: SIZE_BYTES, content });
        world.luns = [KEEPER, TESTED].map(|(lun, serial)| (lun, serial.to_owned())).into();
        let secrets = usage.secrets.iter();
        world.credentials = secrets.map(|(name, text)| format!("{name} = {text}")).collect();
        Self { world, records: Vec::new() }
    }

    /// Returns a machine on which the other volume is in use.
    pub fn new(usage: &Usage, content: Content) -> Self {
        let mut machine = Self::fresh(usage, content);
        let of_keeper = Usage { filesystem: Some("ext4"), ..usage.clone() };
        for call in [Call::Stage, Call::Publish] {
            let done = machine.make(call, KEEPER, &of_keeper, None);
            done.result.unwrap();
            machine = done.machine;
        }
        machine
    }

    /// Makes a call of kubelet to a new process of the driver.
    pub fn make(&self, call: Call, of: (u16, &str), usage: &Usage, kill: Option<Kill>) -> Done {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in &self.records {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let world = Arc::new(Mutex::new(self.world.clone()));
        let process = Process::new(&world, kill);
        let machine = Box::new(Linux::new(Box::new(process.clone())));
        let records = Records::new(directory.path()).unwrap();
        let node = MachineNode::new(machine, records, Segment::default());
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let result = runtime.block_on(send(&node, call, of, usage));
        let mut records = Vec::new();
        for entry in fs::read_dir(directory.path()).unwrap() {
            let entry = entry.unwrap();
            let name = entry.file_name().into_string().unwrap();
            records.push((name, fs::read(entry.path()).unwrap()));
        }
        records.sort();
        let world = world.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clone();
        Done { result, machine: Self { world, records }, steps: process.steps() }
    }

    /// Returns the state, in a form that is the same whatever happened on the way.
    pub fn summary(&self) -> Vec<String> {
        let mut lines = self.world.summary();
        for (name, text) in &self.records {
            lines.push(format!("record {name}: {}", String::from_utf8_lossy(text)));
        }
        lines
    }
}

async fn send(
    node: &MachineNode,
    call: Call,
    (lun, serial): (u16, &str),
    usage: &Usage,
) -> Result<(), Status> {
    let volume_id = format!("01020304-0506-0701-0000-{}", &serial[12..]);
    let staging_target_path = format!("/mnt/staging/{serial}");
    let target_path = format!("/mnt/pods/{serial}");
    let access_type = match usage.filesystem {
        Some(fs_type) => {
            let mount = MountVolume { fs_type: fs_type.into(), ..MountVolume::default() };
            AccessType::Mount(mount)
        }
        None => AccessType::Block(BlockVolume {}),
    };
    let access_mode = Some(AccessMode { mode: Mode::SingleNodeSingleWriter.into() });
    let volume_capability = Some(VolumeCapability { access_mode, access_type: Some(access_type) });
    let portals = PORTALS.map(str::to_owned).into();
    let context = PublishContext { target: TARGET.into(), portals, lun, serial: serial.into() };
    let publish_context = context.into_map();
    match call {
        Call::Stage => {
            let request = NodeStageVolumeRequest {
                volume_id,
                publish_context,
                staging_target_path,
                volume_capability,
                secrets: usage.secrets.clone(),
                ..Default::default()
            };
            node.node_stage_volume(Request::new(request)).await.map(drop)
        }
        Call::Publish => {
            let request = NodePublishVolumeRequest {
                volume_id,
                publish_context,
                staging_target_path,
                target_path,
                volume_capability,
                readonly: usage.is_read_only,
                ..Default::default()
            };
            node.node_publish_volume(Request::new(request)).await.map(drop)
        }
        Call::Expand => {
            let required_bytes = GROWN_BYTES as i64;
            let request = NodeExpandVolumeRequest {
                volume_id,
                volume_path: target_path,
                capacity_range: Some(CapacityRange { required_bytes, limit_bytes: 0 }),
                staging_target_path,
                volume_capability,
            };
            node.node_expand_volume(Request::new(request)).await.map(drop)
        }
        Call::Unpublish => {
            let request = NodeUnpublishVolumeRequest { volume_id, target_path };
            node.node_unpublish_volume(Request::new(request)).await.map(drop)
        }
        Call::Unstage => {
            let request = NodeUnstageVolumeRequest { volume_id, staging_target_path };
            node.node_unstage_volume(Request::new(request)).await.map(drop)
        }
    }
}
