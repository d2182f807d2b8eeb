//! `holdfast-csi`: the driver for Kubernetes and other orchestrators with the Container Storage
//! Interface. One program is the controller, which talks to the array, and the node, which works on
//! the machine that it runs on: docs/kubernetes.md.

mod array;
mod capability;
mod context;
mod controller;
mod identity;
mod machine;
mod names;
mod node;
mod proto;
mod secret;
#[cfg(test)]
mod tests;
mod topology;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use clap::Parser;
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use array::Array;
use controller::ArrayController;
use machine::directory::Directory;
use machine::linux::Linux;
use machine::{Fault, Machine};
use node::{MachineNode, Records};
use proto::controller_server::ControllerServer;
use proto::identity_server::IdentityServer;
use proto::node_server::NodeServer;
use topology::Segment;

/// The CSI driver of Holdfast: the controller (--api), the node (--node), or both
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The socket on which the driver serves the orchestrator
    #[arg(long, env = "CSI_ENDPOINT", value_name = "unix://PATH")]
    endpoint: String,

    /// The array's management interface; enables the controller
    #[arg(long, env = "HOLDFAST_API", value_name = "URL", requires = "token_file")]
    api: Option<String>,

    /// A file with the API token of a storage admin
    #[arg(long, env = "HOLDFAST_TOKEN_FILE", value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Certificates (PEM) of the array or of its authorities; default: the authorities that the
    /// machine trusts
    #[arg(long, env = "HOLDFAST_CA", value_name = "FILE")]
    ca: Option<PathBuf>,

    /// The prefix of the names of this cluster's volumes and hosts on the array
    #[arg(long, default_value = "k8s-", value_parser = prefix)]
    prefix: String,

    /// The topology segment from which the array can be reached; the same for the controller and
    /// its nodes. Default: the array can be reached from everywhere
    #[arg(long, value_name = "NAME")]
    segment: Option<String>,

    /// Serve this machine as a node
    #[arg(long)]
    node: bool,

    /// The directory of the node's records of its attached volumes
    #[arg(long, default_value = "/var/lib/kubelet/plugins/csi.holdfast/volumes")]
    state: PathBuf,

    /// The machine of the node: `linux`, or, for tests only, `directory-for-tests-only:PATH`,
    /// which mounts nothing
    #[arg(long, default_value = "linux", hide = true)]
    machine: String,
}

/// Checks a prefix: short, so that names fit, and valid in names of hosts.
fn prefix(text: &str) -> Result<String, String> {
    let is_allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_fine = text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.len() <= 16
        && text.chars().all(is_allowed)
        && !text.contains("--");
    match is_fine {
        true => Ok(text.to_owned()),
        false => Err("1 to 16 of a-z 0-9 and -, a letter first".into()),
    }
}

fn main() -> ExitCode {
    tracing_subscriber::fmt().with_writer(io::stderr).init();
    match run(Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Arguments) -> Result<(), String> {
    let segment = Segment(arguments.segment.clone());
    let array = match (&arguments.api, &arguments.token_file) {
        (Some(url), Some(token)) => {
            let array = Array::new(url, token, arguments.ca.as_deref(), &arguments.prefix)?;
            Some(Arc::new(array))
        }
        _ => None,
    };
    let controller = array
        .clone()
        .map(|array| ControllerServer::new(ArrayController { array, segment: segment.clone() }));
    let node = match arguments.node {
        true => Some(node(&arguments, &segment).map_err(|fault| fault.to_string())?),
        false => None,
    };
    if controller.is_none() && node.is_none() {
        return Err("nothing to do: give --api, --node or both".into());
    }
    let identity = IdentityServer::new(identity::Driver { array, segment });
    let path = arguments
        .endpoint
        .strip_prefix("unix://")
        .or_else(|| arguments.endpoint.strip_prefix("unix:"));
    let path = Path::new(path.ok_or("--endpoint must be unix:// and a path")?);
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("can't serve: {error}"))?;
    let failed = |error: &dyn std::fmt::Display| format!("can't serve {}: {error}", path.display());
    runtime.block_on(async {
        let listener = listen(path).map_err(|error| failed(&error))?;
        let mut ended = signal(SignalKind::terminate()).map_err(|error| failed(&error))?;
        tracing::info!("serving {}", path.display());
        Server::builder()
            .add_service(identity)
            .add_optional_service(controller)
            .add_optional_service(node)
            .serve_with_incoming_shutdown(UnixListenerStream::new(listener), async {
                ended.recv().await;
            })
            .await
            .map_err(|error| failed(&error))
    })
}

fn node(arguments: &Arguments, segment: &Segment) -> Result<NodeServer<MachineNode>, Fault> {
    let machine: Box<dyn Machine> = match arguments.machine.split_once(':') {
        None if arguments.machine == "linux" => Box::new(Linux::default()),
        Some(("directory-for-tests-only", path)) => {
            tracing::warn!("a machine for tests only: nothing is mounted, and no data is stored");
            Box::new(Directory::new(Path::new(path))?)
        }
        _ => return Err(Fault::Wrong(format!("unknown machine {}", arguments.machine))),
    };
    let records = Records::new(&arguments.state)?;
    Ok(NodeServer::new(MachineNode::new(machine, records, segment.clone())))
}

/// Listens at a path, replacing the socket of an earlier driver.
fn listen(path: &Path) -> io::Result<UnixListener> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    UnixListener::bind(path)
}
