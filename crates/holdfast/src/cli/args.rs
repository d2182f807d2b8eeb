//! The verbs and their arguments. They do not change: scripts depend on them.

mod access;
mod alert;
mod array;
mod common;
mod directory;
mod group;
mod notify;
mod pod;
mod pool;
mod reach;
mod said;
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
pub use notify::{MailArgs, NotifyVerb, SnmpManagerArgs, SnmpVerb, SyslogVerb, WatcherVerb};
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
    /// Make pools, and make them bigger.
    #[command(subcommand, after_help = EXIT_CODES)]
    Pool(PoolVerb),
    /// Run the array until SIGTERM or SIGINT.
    #[command(after_help = EXIT_CODES)]
    Serve(ServeArgs),
    /// Make, show, change and destroy volumes.
    #[command(subcommand, after_help = EXIT_CODES)]
    Volume(VolumeVerb),
    /// Make snapshots of volumes and groups, show, change and destroy them.
    #[command(subcommand, after_help = EXIT_CODES)]
    Snapshot(SnapshotVerb),
    /// Name what is snapshotted together, when asked or by a schedule.
    #[command(subcommand, after_help = EXIT_CODES)]
    Group(GroupVerb),
    /// Show and change the settings of the array.
    #[command(subcommand, after_help = EXIT_CODES)]
    Array(ArrayVerb),
    /// Keep words with volumes and snapshots.
    #[command(subcommand, after_help = EXIT_CODES)]
    Tag(TagVerb),
    /// Make a volume, and let a host reach it, in one go.
    #[command(after_help = EXIT_CODES)]
    Provision(ProvisionArgs),
    /// Make, show, change and delete hosts.
    #[command(subcommand, after_help = EXIT_CODES)]
    Host(HostVerb),
    /// Show who came to log in, and has no host or was refused.
    #[command(subcommand, after_help = EXIT_CODES)]
    Initiator(InitiatorVerb),
    /// Name hosts that see the same volumes.
    #[command(subcommand, after_help = EXIT_CODES)]
    HostGroup(HostGroupVerb),
    /// Name volumes that are renamed and end together.
    #[command(subcommand, after_help = EXIT_CODES)]
    VolumeGroup(VolumeGroupVerb),
    /// Keep volumes in name spaces of their own.
    #[command(subcommand, after_help = EXIT_CODES)]
    Pod(PodVerb),
    /// Let a host, or a host group, reach a volume.
    #[command(after_help = EXIT_CODES)]
    Connect(ConnectArgs),
    /// Take a volume away from a host, or from a host group.
    #[command(after_help = EXIT_CODES)]
    Disconnect(DisconnectArgs),
    /// Show what is wrong, and what to do about it.
    #[command(subcommand, after_help = EXIT_CODES)]
    Alert(AlertVerb),
    /// Configure the recipients of alerts by mail, syslog and SNMP.
    #[command(subcommand, after_help = EXIT_CODES)]
    Notify(NotifyVerb),
    /// Show who may reach what.
    #[command(subcommand, after_help = EXIT_CODES)]
    Connection(ConnectionVerb),
    /// Show to which ports hosts log in.
    #[command(subcommand, after_help = EXIT_CODES)]
    Port(PortVerb),
    /// Show the devices of the pool, and how long they take; change which ones it has.
    #[command(subcommand, after_help = EXIT_CODES)]
    Device(DeviceVerb),
    /// Show what serves the pool.
    #[command(subcommand, after_help = EXIT_CODES)]
    Controller(ControllerVerb),
    /// Say who may manage the array, and what.
    #[command(subcommand, after_help = EXIT_CODES)]
    User(UserVerb),
    /// Make and withdraw API tokens, by which users are known.
    #[command(subcommand, after_help = EXIT_CODES)]
    Token(TokenVerb),
    /// Have the users of a directory service log in (LDAP).
    #[command(subcommand, after_help = EXIT_CODES)]
    Directory(DirectoryVerb),
    /// Show who changed what, the newest first.
    #[command(after_help = EXIT_CODES)]
    Audit(AuditArgs),
    /// Show how the array stands.
    #[command(after_help = EXIT_CODES)]
    Status,
    /// Show what hosts do to volumes now: live, or as CSV.
    #[command(after_help = EXIT_CODES)]
    Top(TopArgs),
    /// Send any request of the interface, and print the answer.
    #[command(after_help = EXIT_CODES)]
    Api(ApiArgs),
    /// Print what makes a shell complete verbs, options and names.
    #[command(after_help = COMPLETION)]
    Completion {
        /// Which shell.
        shell: Shell,
    },
    /// Print the version of this program.
    #[command(after_help = EXIT_CODES)]
    Version,
    /// Write the manual pages of all verbs.
    #[command(after_help = EXIT_CODES)]
    Man {
        /// Where to: a directory, which is made if it does not exist. `man -l` shows a page.
        directory: PathBuf,
    },
    /// Read a pool that is not being served, and check all of its invariants.
    #[command(after_help = EXIT_CODES)]
    Inspect(InspectArgs),
    /// Get all volumes and snapshots out of a pool that is not being served, as far as they can be
    /// read: also of one that does not open.
    #[command(after_help = SALVAGE)]
    Salvage(SalvageArgs),
}

/// `host …`.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Make a host.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 -.
        name: String,
        /// Its iSCSI names. `initiator list` shows those that were refused as no host has them.
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
    /// Compare how hosts use the array with how they should, and say how to set it.
    Check {
        /// The host's name. Default: all hosts.
        name: Option<String>,
    },
    /// Show which hosts are logged in, where, and on what terms.
    Sessions {
        /// The host's name. Default: all hosts.
        name: Option<String>,
    },
    /// Give a host another name.
    Rename {
        /// The host's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// Change a host's iSCSI names or CHAP. Its connections stay.
    #[command(group = ArgGroup::new("what").required(true).multiple(true)
        .args(["iqn", "add_iqn", "remove_iqn", "chap_user", "no_chap"]))]
    Set {
        /// The host's name.
        name: String,
        /// All of its iSCSI names from now on.
        #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        iqn: Vec<String>,
        /// iSCSI names that it gets besides.
        #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        #[arg(conflicts_with_all = ["iqn", "chap_user", "no_chap"])]
        add_iqn: Vec<String>,
        /// iSCSI names that it loses.
        #[arg(long, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        #[arg(conflicts_with_all = ["iqn", "chap_user", "no_chap"])]
        remove_iqn: Vec<String>,
        #[command(flatten)]
        chap: ChapArgs,
        /// Let it log in without CHAP from now on.
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
    /// The CHAP user that it must log in with.
    #[arg(long, value_name = "USER", requires = "chap_secret_file")]
    pub chap_user: Option<String>,
    /// The file with its secret, 12 to 255 characters; `-` reads the standard input.
    #[arg(long, value_name = "FILE", requires = "chap_user")]
    pub chap_secret_file: Option<PathBuf>,
    /// The user by which the target proves itself (mutual CHAP).
    #[arg(long, value_name = "USER", requires_all = ["chap_user", "chap_target_secret_file"])]
    pub chap_target_user: Option<String>,
    /// The file with the target's secret.
    #[arg(long, value_name = "FILE", requires = "chap_target_user")]
    pub chap_target_secret_file: Option<PathBuf>,
}

/// `top`, with the options of esxtop.
#[derive(Debug, Args)]
pub struct TopArgs {
    /// Batch mode: CSV on the standard output, a header and a line each interval.
    #[arg(short)]
    pub batch: bool,
    /// An interval, in seconds.
    #[arg(short = 'd', value_name = "SECONDS", default_value_t = 5)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub delay: u64,
    /// End after so many intervals.
    #[arg(short = 'n', value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
    /// In batch mode: a line for each volume, host and port instead, those that come later too.
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
    /// The body, as JSON; `-` reads the standard input.
    #[arg(long, value_name = "JSON|-")]
    pub data: Option<String>,
}

/// A shell that completions are made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Shell {
    Bash,
    Zsh,
    Fish,
}

/// What `completion --help` ends with.
const COMPLETION: &str = "\
For this user, in each new shell:
  bash  echo 'source <(holdfast completion bash)' >> ~/.bashrc
  zsh   echo 'source <(holdfast completion zsh)' >> ~/.zshrc
  fish  echo 'holdfast completion fish | source' >> ~/.config/fish/config.fish
Names are those of the array that a verb without --pool and --api would mean.";

/// `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The pool: its directory or device; of a pool on several, those that there are.
    #[arg(value_name = "DIR-OR-DEVICE")]
    pub places: Vec<PathBuf>,
    /// Show the map of this volume, by its name or id.
    #[arg(long, value_name = "NAME-OR-ID")]
    pub volume: Option<String>,
    /// Also read all data, and compare it with its fingerprints.
    #[arg(long)]
    pub data: bool,
}

/// `salvage`.
#[derive(Debug, Args)]
pub struct SalvageArgs {
    /// The pool: its directory or device. Nothing is written to it. Of two or three devices the one
    /// is read that was in the pool to the end; pools in stripes are not read yet.
    #[arg(value_name = "DIR-OR-DEVICE")]
    pub places: Vec<PathBuf>,
    /// Where to: a directory that is empty, or does not exist yet, and not in the pool's.
    #[arg(long, value_name = "DIR")]
    pub to: PathBuf,
    /// Begin with this copy of the superblock. Default: the newest that is right.
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..2))]
    pub superblock: Option<u8>,
    /// Where a record in the middle of the log can't be read: take the state before it. All that
    /// was answered from there on is lost.
    #[arg(long)]
    pub cut_log: bool,
}

/// What `salvage --help` ends with.
const SALVAGE: &str = "\
In DIR are then, for each volume and snapshot:
  NAME.raw      what it holds, byte by byte; what is lost or was never written is a hole
  NAME.lost     what is lost of it: first byte, bytes, and why; only if something is
and salvage.json, a report of all of it.

Exit codes:
  0  all was whole
  1  something is lost, and was told; or the pool says no: the reason is on the standard error
  2  the command line or the configuration makes no sense
  4  this machine failed: a file, a device or an address can't be had";

#[cfg(test)]
mod tests;
