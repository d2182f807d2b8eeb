//! The verbs of connections, hosts, ports, devices and controllers.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use crate::cli::listing::Listing;
use crate::cli::size;

/// A host, or a host group.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct WithHost {
    /// The host.
    pub host: Option<String>,
    /// A host group instead: all of its hosts.
    #[arg(long)]
    pub host_group: Option<String>,
}

/// `connect`.
#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// The volume.
    pub volume: String,
    #[command(flatten)]
    pub with: WithHost,
    /// 1 to 16383. Default: a free LUN that was not released within the last four hours.
    #[arg(long)]
    pub lun: Option<u16>,
}

/// `disconnect`.
#[derive(Debug, Args)]
pub struct DisconnectArgs {
    /// The volume.
    pub volume: String,
    #[command(flatten)]
    pub with: WithHost,
}

/// `initiator …`.
#[derive(Debug, Subcommand)]
pub enum InitiatorVerb {
    /// List initiators that have no host, and those whose login was refused: from where, and why.
    List(Listing),
}

/// `connection …`.
#[derive(Debug, Subcommand)]
pub enum ConnectionVerb {
    /// List connections, by host names and LUNs.
    List {
        /// Connections of this volume.
        #[arg(long)]
        volume: Option<String>,
        /// Connections of this host.
        #[arg(long)]
        host: Option<String>,
        /// Connections of this host group.
        #[arg(long, conflicts_with = "host")]
        host_group: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
}

/// `port …`.
#[derive(Debug, Subcommand)]
pub enum PortVerb {
    /// List the ports.
    List(Listing),
}

/// `device …`.
#[derive(Debug, Subcommand)]
pub enum DeviceVerb {
    /// List the devices.
    List {
        /// The I/O counters of each device since the start, and their latencies.
        #[arg(long)]
        counters: bool,
        /// The health that block devices report (SMART).
        #[arg(long, conflicts_with = "counters")]
        health: bool,
    },
    /// Add a device: a third one to a pool on two devices, or one of any size to a striped pool.
    /// Or bring back a missing device of the pool.
    Add {
        /// A directory, in which a file is created, or a block device, on the array's machine.
        #[arg(value_name = "DIR-OR-DEVICE")]
        place: PathBuf,
        /// Overwrite a device that is not blank.
        #[arg(long)]
        force: bool,
    },
    /// Replace a device by a new one. The old device is then out.
    Replace {
        /// The number of the old device.
        number: u16,
        /// The new device, as in `add`.
        #[arg(value_name = "DIR-OR-DEVICE")]
        place: PathBuf,
        /// Overwrite a device that is not blank.
        #[arg(long)]
        force: bool,
    },
    /// Remove a device for good; in a striped pool its data is first rebuilt on the others.
    Remove {
        /// Its number.
        number: u16,
    },
    /// Take a device out of use, as if it had failed. It remains a member of the pool.
    Fail {
        /// Its number.
        number: u16,
    },
    /// Bring back a device that is out; it then catches up.
    Return {
        /// Its number.
        number: u16,
    },
    /// Read from a device for some seconds, so that its activity light identifies it.
    Identify {
        /// Its number.
        number: u16,
    },
}

/// `controller …`.
#[derive(Debug, Subcommand)]
pub enum ControllerVerb {
    /// List the controllers, and which of them has the pool.
    List,
    /// Make the other controller take over the pool. On one machine host sessions continue; between
    /// two machines hosts log in again.
    Switch,
    /// Stop a controller, and keep it down until it is started: for maintenance. If it has the
    /// pool, the other one takes over first.
    Stop(ControllerName),
    /// Start a stopped controller.
    Start(ControllerName),
    /// Create the shared secret of two controllers on two machines, in a new file that only its
    /// owner may read (--link-secret).
    Secret {
        /// The file, which must not exist.
        file: PathBuf,
    },
}

/// Which controller.
#[derive(Debug, Args)]
pub struct ControllerName {
    /// ct0 or ct1.
    #[arg(value_parser = ["ct0", "ct1"], ignore_case = true)]
    pub name: String,
}

/// `provision`.
#[derive(Debug, Args)]
pub struct ProvisionArgs {
    /// The new volume: 1 to 63 of A-Z a-z 0-9 - _; with the prefix GROUP/ for a volume in a volume
    /// group.
    pub volume: String,
    /// Its size: a multiple of 4096 bytes, up to 64T.
    #[arg(long, value_parser = size::parse)]
    pub size: u64,
    /// The host; if it does not exist it is created, which needs --iqn. Default: this machine.
    #[arg(long)]
    pub host: Option<String>,
    /// The host's iSCSI names. Default, for this machine: the name that open-iscsi uses.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
    pub iqn: Vec<String>,
    /// 1 to 16383. Default: a free LUN that was not released within the last four hours.
    #[arg(long)]
    pub lun: Option<u16>,
}

/// `host-group …`.
#[derive(Debug, Subcommand)]
pub enum HostGroupVerb {
    /// Create a host group without hosts.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 -.
        name: String,
    },
    /// Add hosts to a host group: they see the volumes connected to it.
    Add {
        /// The host group's name.
        name: String,
        /// The hosts.
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<String>,
    },
    /// Remove hosts from a host group.
    Remove {
        /// The host group's name.
        name: String,
        /// The hosts.
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<String>,
    },
    /// List all host groups.
    List(Listing),
    /// Show a host group, its hosts and its connections.
    Show {
        /// The host group's name.
        name: String,
    },
    /// Rename a host group.
    Rename {
        /// The host group's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// Delete a host group without hosts and connections.
    Delete {
        /// The host group's name.
        name: String,
    },
}
