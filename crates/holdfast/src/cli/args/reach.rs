//! The verbs of who may reach what.

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
    /// The host group, instead: all of its hosts.
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
    /// 1 to 16383. Default: the lowest that is free.
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
    /// List initiators that have no host, and those whose login was refused: where from, and why.
    List(Listing),
}

/// `connection …`.
#[derive(Debug, Subcommand)]
pub enum ConnectionVerb {
    /// List connections, by the names of hosts and the LUNs.
    List {
        /// Those of this volume.
        #[arg(long)]
        volume: Option<String>,
        /// Those of this host.
        #[arg(long)]
        host: Option<String>,
        /// Those of this host group.
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
        /// What each device was asked since the start, and how long that took.
        #[arg(long)]
        counters: bool,
        /// What block devices say of their own health (SMART).
        #[arg(long, conflicts_with = "counters")]
        health: bool,
    },
    /// Give the pool another device, which catches up; only one that was made on two or three. Or
    /// give a pool back one of its devices that was missing.
    Add {
        /// A directory, in which a file is made, or a block device, on the machine of the array.
        #[arg(value_name = "DIR-OR-DEVICE")]
        place: PathBuf,
        /// Overwrite a device that is not blank.
        #[arg(long)]
        force: bool,
    },
    /// Put another device in the place of one, which is out from then on.
    Replace {
        /// The number of the old one.
        number: u16,
        /// The new one, as in `add`.
        #[arg(value_name = "DIR-OR-DEVICE")]
        place: PathBuf,
        /// Overwrite a device that is not blank.
        #[arg(long)]
        force: bool,
    },
    /// Take a device out of the pool for good; a pool in stripes keeps as many as it was made on.
    Remove {
        /// Its number.
        number: u16,
    },
    /// Take a device out of use, as if it had failed. It stays one of the pool's.
    Fail {
        /// Its number.
        number: u16,
    },
    /// Have a device catch up that is out.
    Return {
        /// Its number.
        number: u16,
    },
    /// Read from a device for some seconds, so that its activity shows which one it is.
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
    /// Leave the pool to the other controller, and follow it. Hosts log in again; with them nothing
    /// else happens.
    Switch,
    /// Stop a controller, and keep it down until it is started: for maintenance. If it has the
    /// pool, they are switched first.
    Stop(ControllerName),
    /// Start a controller that was stopped.
    Start(ControllerName),
    /// Make the secret that two controllers on two machines know, in a new file that only its owner
    /// may read (--link-secret).
    Secret {
        /// The file, which must not be there.
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
    /// The new volume: 1 to 63 of A-Z a-z 0-9 - _; behind the name of a volume group and a `/`, if
    /// it is to be in one.
    pub volume: String,
    /// Its size: a multiple of 4096 bytes, up to 64T.
    #[arg(long, value_parser = size::parse)]
    pub size: u64,
    /// The host; it is made if there is none, then --iqn is needed. Default: this machine.
    #[arg(long)]
    pub host: Option<String>,
    /// The host's iSCSI names. Default, for this machine: what open-iscsi is set up with.
    #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
    pub iqn: Vec<String>,
    /// 1 to 16383. Default: the lowest that is free.
    #[arg(long)]
    pub lun: Option<u16>,
}

/// `host-group …`.
#[derive(Debug, Subcommand)]
pub enum HostGroupVerb {
    /// Make a host group without hosts.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 -.
        name: String,
    },
    /// Put hosts into a host group: they see what is connected to it.
    Add {
        /// The host group's name.
        name: String,
        /// The hosts.
        #[arg(required = true, value_name = "HOST")]
        hosts: Vec<String>,
    },
    /// Take hosts out of a host group.
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
    /// Give a host group another name.
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
