//! The verbs and their arguments. They do not change: scripts depend on them.

mod access;
mod alert;
mod array;
mod common;
mod directory;
mod environment;
mod group;
mod notify;
mod pod;
mod pool;
mod reach;
mod serve;
mod volume;
mod volume_group;

use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};

use super::failure::EXIT_CODES;
use super::listing::Listing;

pub use access::{AuditArgs, TokenVerb, UserVerb};
pub use alert::AlertVerb;
pub use array::{ArrayVerb, Listed, Thresholds};
pub use common::Common;
pub use directory::{DirectoryArgs, DirectoryVerb};
pub use group::{GroupVerb, Members, ScheduleArgs, TagVerb};
pub use notify::{
    MailArgs, NotifyVerb, SnmpChangeArgs, SnmpManagerArgs, SnmpVerb, SyslogVerb, WatcherVerb,
};
pub use pod::PodVerb;
pub use pool::{PassVerb, PoolVerb};
pub use reach::{
    ConnectArgs, ConnectionVerb, ControllerVerb, DeviceVerb, DisconnectArgs, HostGroupVerb,
    InitiatorVerb, PortVerb, ProvisionArgs, WithHost,
};
pub use serve::{FenceKind, ServeArgs};
pub use volume::{SnapshotVerb, VolumeVerb};
pub use volume_group::VolumeGroupVerb;

/// An all-flash storage array in software.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, about, after_help = EXIT_CODES)]
#[command(propagate_version = true)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Create pools, and enlarge them.
    #[command(subcommand, after_help = EXIT_CODES)]
    Pool(PoolVerb),
    /// Run the array until SIGTERM or SIGINT.
    #[command(after_help = EXIT_CODES)]
    Serve(ServeArgs),
    /// Create, show, change and destroy volumes.
    #[command(subcommand, after_help = EXIT_CODES)]
    Volume(VolumeVerb),
    /// Create, show, change and destroy snapshots of volumes and groups.
    #[command(subcommand, after_help = EXIT_CODES)]
    Snapshot(SnapshotVerb),
    /// Manage protection groups: volumes that are snapshotted together, on demand or by a schedule.
    #[command(subcommand, after_help = EXIT_CODES)]
    Group(GroupVerb),
    /// Show and change the settings of the array.
    #[command(subcommand, after_help = EXIT_CODES)]
    Array(ArrayVerb),
    /// Label volumes and snapshots with tags.
    #[command(subcommand, after_help = EXIT_CODES)]
    Tag(TagVerb),
    /// Create a volume and give a host access to it, in one step.
    #[command(after_help = EXIT_CODES)]
    Provision(ProvisionArgs),
    /// Create, show, change and delete hosts.
    #[command(subcommand, after_help = EXIT_CODES)]
    Host(HostVerb),
    /// Show initiators that tried to log in but belong to no host, and refused logins.
    #[command(subcommand, after_help = EXIT_CODES)]
    Initiator(InitiatorVerb),
    /// Manage groups of hosts that see the same volumes.
    #[command(subcommand, after_help = EXIT_CODES)]
    HostGroup(HostGroupVerb),
    /// Manage groups of volumes that are renamed and destroyed together.
    #[command(subcommand, after_help = EXIT_CODES)]
    VolumeGroup(VolumeGroupVerb),
    /// Manage pods: name spaces of volumes.
    #[command(subcommand, after_help = EXIT_CODES)]
    Pod(PodVerb),
    /// Give a host, or a host group, access to a volume.
    #[command(after_help = EXIT_CODES)]
    Connect(ConnectArgs),
    /// Remove access to a volume from a host, or from a host group.
    #[command(after_help = EXIT_CODES)]
    Disconnect(DisconnectArgs),
    /// Show problems, and what to do about them.
    #[command(subcommand, after_help = EXIT_CODES)]
    Alert(AlertVerb),
    /// Configure the recipients of alerts by mail, syslog and SNMP.
    #[command(subcommand, after_help = EXIT_CODES)]
    Notify(NotifyVerb),
    /// Show which hosts have access to which volumes.
    #[command(subcommand, after_help = EXIT_CODES)]
    Connection(ConnectionVerb),
    /// Show the target ports that hosts log in to.
    #[command(subcommand, after_help = EXIT_CODES)]
    Port(PortVerb),
    /// Show the devices of the pool and their latencies; add, replace and remove devices.
    #[command(subcommand, after_help = EXIT_CODES)]
    Device(DeviceVerb),
    /// Show and switch the controllers that serve the pool.
    #[command(subcommand, after_help = EXIT_CODES)]
    Controller(ControllerVerb),
    /// Manage the users of the array, and their roles.
    #[command(subcommand, after_help = EXIT_CODES)]
    User(UserVerb),
    /// Create and withdraw API tokens, which identify users.
    #[command(subcommand, after_help = EXIT_CODES)]
    Token(TokenVerb),
    /// Let the users of a directory service (LDAP) log in.
    #[command(subcommand, after_help = EXIT_CODES)]
    Directory(DirectoryVerb),
    /// Show who changed what, newest first.
    #[command(after_help = EXIT_CODES)]
    Audit(AuditArgs),
    /// Show the state of the array.
    #[command(after_help = EXIT_CODES)]
    Status,
    /// Show the current activity of hosts on volumes: live, or as CSV.
    #[command(after_help = EXIT_CODES)]
    Top(TopArgs),
    /// Send any request to the REST interface, and print the response.
    #[command(after_help = EXIT_CODES)]
    Api(ApiArgs),
    /// Print a shell completion script for verbs, options and names.
    #[command(after_help = COMPLETION)]
    Completion {
        /// The shell.
        shell: Shell,
    },
    /// Print the version of this program.
    #[command(after_help = EXIT_CODES)]
    Version,
    /// Write the manual pages of all verbs.
    #[command(after_help = EXIT_CODES)]
    Man {
        /// The directory to write to; it is created if it does not exist. `man -l` shows a page.
        directory: PathBuf,
    },
    /// Read a pool that is not being served, and check all its invariants.
    #[command(after_help = EXIT_CODES)]
    Inspect(InspectArgs),
    /// Save all volumes and snapshots of a pool that is not being served, as far as they can be
    /// read; even from a pool that does not open.
    #[command(after_help = SALVAGE)]
    Salvage(SalvageArgs),
}

/// `host …`.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Create a host.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 -.
        name: String,
        /// Its iSCSI names. `initiator list` shows those that were refused because no host has
        /// them.
        #[arg(long, required = true, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        iqn: Vec<String>,
        #[command(flatten)]
        chap: ChapArgs,
    },
    /// List all hosts.
    List(Listing),
    /// Show a host and its connections.
    Show {
        /// The host's name.
        name: String,
    },
    /// Compare how hosts use the array with best practice, and say how to correct it.
    Check {
        /// The host's name. Default: all hosts.
        name: Option<String>,
    },
    /// Show which hosts are logged in, at which portals, with which parameters.
    Sessions {
        /// The host's name. Default: all hosts.
        name: Option<String>,
    },
    /// Rename a host.
    Rename {
        /// The host's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// Change a host's iSCSI names or CHAP. Its connections do not change.
    #[command(group = ArgGroup::new("what").required(true).multiple(true)
        .args(["iqn", "add_iqn", "remove_iqn", "chap_user", "no_chap"]))]
    Set {
        /// The host's name.
        name: String,
        /// The complete list of its iSCSI names.
        #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        iqn: Vec<String>,
        /// iSCSI names to add.
        #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        #[arg(conflicts_with_all = ["iqn", "chap_user", "no_chap"])]
        add_iqn: Vec<String>,
        /// iSCSI names to remove.
        #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        #[arg(conflicts_with_all = ["iqn", "chap_user", "no_chap"])]
        remove_iqn: Vec<String>,
        #[command(flatten)]
        chap: ChapArgs,
        /// Allow it to log in without CHAP from now on.
        #[arg(long, conflicts_with = "chap_user")]
        no_chap: bool,
    },
    /// Delete a host.
    Delete {
        /// The host's name.
        name: String,
    },
}

/// CHAP of a host.
#[derive(Debug, Args)]
pub struct ChapArgs {
    /// The CHAP user with which the host must log in.
    #[arg(long, value_name = "USER", requires = "chap_secret_file")]
    pub chap_user: Option<String>,
    /// The file with its secret, 12 to 255 characters; `-` reads standard input.
    #[arg(long, value_name = "FILE", requires = "chap_user")]
    pub chap_secret_file: Option<PathBuf>,
    /// The user with which the target authenticates itself (mutual CHAP).
    #[arg(long, value_name = "USER", requires_all = ["chap_user", "chap_target_secret_file"])]
    pub chap_target_user: Option<String>,
    /// The file with the target's secret.
    #[arg(long, value_name = "FILE", requires = "chap_target_user")]
    pub chap_target_secret_file: Option<PathBuf>,
}

/// `top`, with the options of esxtop.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Batch mode: CSV to standard output, with a header and a line for each interval.
    #[arg(short)]
    pub batch: bool,
    /// The interval, in seconds.
    #[arg(short = 'd', value_name = "SECONDS", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub delay: u64,
    /// End after this number of intervals.
    #[arg(short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// In batch mode: a line for each volume, host and port instead, including later ones.
    #[arg(long, requires = "batch")]
    pub rows: bool,
}

/// `api`.
#[derive(Debug, Args)]
pub struct ApiArgs {
    /// GET, POST, PATCH, PUT or DELETE.
    #[arg(value_parser = ["GET", "POST", "PATCH", "PUT", "DELETE"], ignore_case = true)]
    pub method: String,
    /// The path with its query: `/v1/…` or `/api/2.N/…`.
    pub path: String,
    /// The body, as JSON; `-` reads standard input.
    #[arg(long, value_name = "JSON|-")]
    pub data: Option<String>,
}

/// A shell that completions are generated for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// The end of `completion --help`.
const COMPLETION: &str = "\
For this user, in each new shell:
  bash  echo 'source <(holdfast completion bash)' >> ~/.bashrc
  zsh   echo 'source <(holdfast completion zsh)' >> ~/.zshrc
  fish  echo 'holdfast completion fish | source' >> ~/.config/fish/config.fish
Names come from the array that a verb without --pool and --api would use.";

/// `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The pool: its directory or device; for a pool on several, all that are available.
    #[arg(value_name = "DIR-OR-DEVICE")]
    pub places: Vec<PathBuf>,
    /// Show the map of this volume, by its name or id.
    #[arg(long, value_name = "NAME-OR-ID")]
    pub volume: Option<String>,
    /// Also read all data, and verify it against its fingerprints.
    #[arg(long)]
    pub data: bool,
}

/// `salvage`.
#[derive(Debug, Args)]
pub struct SalvageArgs {
    /// The pool: its directory or device; for a pool on several, all that are available. Nothing is
    /// written to it.
    #[arg(value_name = "DIR-OR-DEVICE")]
    pub places: Vec<PathBuf>,
    /// The output directory: empty or new, and outside of the pool's directory.
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// Start from this copy of the superblock. Default: the newest valid one.
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..2))]
    pub superblock: Option<u8>,
    /// If a record in the middle of the log can't be read: use the state before it. Everything
    /// acknowledged from there on is lost.
    #[arg(long)]
    pub cut_log: bool,
}

/// The end of `salvage --help`.
const SALVAGE: &str = "\
DIR then contains, for each volume and snapshot:
  NAME.raw      its content, byte by byte; lost and unwritten ranges are holes
  NAME.lost     its lost ranges: first byte, bytes, and why; only if there are any
and salvage.json, a report of everything.

Exit codes:
  0  everything was intact
  1  data is lost, as reported; or the pool refused the request: standard error says why
  2  the command line or the configuration is invalid
  4  this machine failed: a file, a device or an address is not available";

#[cfg(test)]
mod tests;
