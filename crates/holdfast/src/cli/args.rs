//! The verbs and their arguments. They do not change: scripts depend on them.

mod access;
mod alert;
mod volume;

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Parser, Subcommand};

use super::failure::EXIT_CODES;
use super::offload::{self, Switch};
use super::size;

pub use access::{ApiPlace, AuditArgs, Fingerprint, TokenVerb, UserVerb};
pub use alert::AlertVerb;
pub use volume::{GroupVerb, SnapshotVerb, VolumeVerb};

/// An all-flash storage array in software.
#[derive(Debug, Parser)]
#[command(name = "holdfast", version, about, after_help = EXIT_CODES)]
#[command(propagate_version = true, disable_help_subcommand = true)]
pub struct Cli {
    #[command(flatten)]
    pub common: Common,
    #[command(subcommand)]
    pub verb: Verb,
}

/// What every verb takes.
#[derive(Debug, Args)]
pub struct Common {
    /// Answer in JSON.
    #[arg(long, global = true)]
    pub json: bool,
    /// The pool: its directory or device. Names the running array, too.
    #[arg(long, global = true, value_name = "DIR-OR-DEVICE", env = "HOLDFAST_POOL")]
    pub pool: Option<PathBuf>,
    /// The management address: where `serve` listens, or where the array is. With `http://` in
    /// front, without encryption: on this machine only.
    #[arg(long, global = true, value_name = "HOST:PORT", env = "HOLDFAST_API")]
    pub api: Option<ApiPlace>,
    /// A file with the token for `--api`: the array's run file, or the token alone.
    #[arg(long, global = true, value_name = "FILE", env = "HOLDFAST_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Certificates (PEM) of authorities that the array at `--api` is trusted by.
    #[arg(long, global = true, value_name = "FILE", env = "HOLDFAST_CA")]
    #[arg(conflicts_with = "fingerprint")]
    pub ca: Option<PathBuf>,
    /// The SHA-256 of the certificate that the array at `--api` must have, as `serve` prints it.
    #[arg(long, global = true, value_name = "HEX", env = "HOLDFAST_FINGERPRINT")]
    pub fingerprint: Option<Fingerprint>,
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
    /// Name volumes that are snapshotted together.
    #[command(subcommand, after_help = EXIT_CODES)]
    Group(GroupVerb),
    /// Show and change the settings of the array.
    #[command(subcommand, after_help = EXIT_CODES)]
    Array(ArrayVerb),
    /// Make, show and delete hosts.
    #[command(subcommand, after_help = EXIT_CODES)]
    Host(HostVerb),
    /// Let a host reach a volume.
    #[command(after_help = EXIT_CODES)]
    Connect(ConnectArgs),
    /// Take a volume away from a host.
    #[command(after_help = EXIT_CODES)]
    Disconnect(DisconnectArgs),
    /// Show what is wrong, and what to do about it.
    #[command(subcommand, after_help = EXIT_CODES)]
    Alert(AlertVerb),
    /// Say who may manage the array, and what.
    #[command(subcommand, after_help = EXIT_CODES)]
    User(UserVerb),
    /// Make and withdraw API tokens, by which users are known.
    #[command(subcommand, after_help = EXIT_CODES)]
    Token(TokenVerb),
    /// Show who changed what, the newest first.
    #[command(after_help = EXIT_CODES)]
    Audit(AuditArgs),
    /// Show how the array stands.
    #[command(after_help = EXIT_CODES)]
    Status,
    /// Read a pool that is not being served, and check all of its invariants.
    #[command(after_help = EXIT_CODES)]
    Inspect(InspectArgs),
}

/// `pool …`.
#[derive(Debug, Subcommand)]
pub enum PoolVerb {
    /// Make a pool in a directory (a file `pool.data`), or on a block device.
    Create {
        /// Where.
        #[arg(value_name = "DIR-OR-DEVICE")]
        place: PathBuf,
        /// How much it holds, at least 1G; a file of this size is reserved. Default: a quarter of
        /// the free space, 64G at most; of a device all of it.
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        capacity: Option<u64>,
        /// Overwrite a device that is not blank.
        #[arg(long)]
        force: bool,
    },
    /// Make the pool of a running array bigger, while hosts use it.
    Grow {
        /// What it shall hold, as when it was made. A file is made longer, and its space reserved;
        /// a device must be that long.
        #[arg(long, value_name = "SIZE", value_parser = size::parse)]
        capacity: u64,
    },
    /// Read every durable byte in the background, and compare it with its checksum.
    Scrub {
        /// What to do.
        #[arg(value_enum)]
        verb: PassVerb,
    },
    /// Find what is stored twice, and pack better what was compressed quickly, in the background.
    Optimize {
        /// What to do.
        #[arg(value_enum, default_value_t = PassVerb::Start)]
        verb: PassVerb,
        /// Wait for the end of the pass that is started.
        #[arg(long)]
        wait: bool,
    },
    /// Show for whom the pool's bytes are stored: what is unique to volumes, shared, of snapshots.
    Space {
        /// Make new figures first.
        #[arg(long)]
        refresh: bool,
    },
    /// List what scrubbing has found damaged, and which blocks of which volumes that are.
    Damage,
}

/// `pool scrub …` and `pool optimize …`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum PassVerb {
    /// Begin a pass.
    Start,
    /// End the pass that is under way.
    Stop,
    /// Show how far it is.
    Status,
}

/// `serve`; the pool and the management address stand in [`Common`].
#[derive(Debug, Args)]
pub struct ServeArgs {
    /// Where to serve iSCSI. Each address is a port of the target, in the target port group (ALUA)
    /// with the number behind `@`: those of one controller, say. Default: group 1.
    #[arg(long, required = true, value_delimiter = ',', value_name = "ADDR:PORT[@GROUP][,…]")]
    #[arg(value_parser = parse_portal)]
    pub iscsi: Vec<PortalArg>,
    /// The configuration.
    #[arg(long, value_name = "FILE.toml")]
    pub config: Option<PathBuf>,
    /// Manage without encryption; on a loopback address only.
    #[arg(long)]
    pub api_http: bool,
}

/// A portal on the command line.
#[derive(Clone, Copy, Debug)]
pub struct PortalArg {
    /// Where.
    pub address: SocketAddr,
    /// Its target port group.
    pub group: u16,
}

fn parse_portal(text: &str) -> Result<PortalArg, String> {
    let (address, group) = text.rsplit_once('@').unwrap_or((text, "1"));
    match (address.parse(), group.parse()) {
        (Ok(address), Ok(group @ 1..)) => Ok(PortalArg { address, group }),
        (Ok(_), _) => Err(format!("{text:?}: a group is a number from 1 to 65535")),
        (Err(_), _) => Err(format!("{text:?} is not ADDR:PORT or ADDR:PORT@GROUP")),
    }
}

/// `array …`.
#[derive(Debug, Subcommand)]
pub enum ArrayVerb {
    /// Show the settings that are kept in the pool.
    Show,
    /// Change them.
    #[command(group = ArgGroup::new("what").required(true).multiple(true))]
    Set {
        /// Switch offloads for all volumes: ats, full-copy, block-zero, reclaim, odx or all, `=on`
        /// or `=off`. A volume takes those that are on in its own settings, too.
        #[arg(long, group = "what", value_delimiter = ',', value_name = "OFFLOAD=on|off[,…]")]
        #[arg(value_parser = offload::parse)]
        offload: Vec<Switch>,
        /// Tell hosts when so many percent of the pool are in use: up to four, 1 to 99; or none.
        #[arg(long, group = "what", value_name = "PERCENT[,…]|none")]
        #[arg(value_parser = parse_thresholds)]
        space_thresholds: Option<Thresholds>,
        /// For how many seconds what is destroyed from now on can be recovered: up to 30 days.
        #[arg(long, group = "what", value_name = "SECONDS")]
        eradication_delay: Option<u64>,
    },
}

/// What `--space-thresholds` says.
#[derive(Clone, Debug)]
pub struct Thresholds(pub Vec<u8>);

fn parse_thresholds(text: &str) -> Result<Thresholds, String> {
    if text == "none" {
        return Ok(Thresholds(Vec::new()));
    }
    let percents = text.split(',').map(|part| part.trim_end_matches('%').parse());
    percents
        .collect::<Result<_, _>>()
        .map(Thresholds)
        .map_err(|_| "thresholds look like 80 or 70,90, or none".to_owned())
}

/// `host …`.
#[derive(Debug, Subcommand)]
pub enum HostVerb {
    /// Make a host.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 -.
        name: String,
        /// Its iSCSI names.
        #[arg(long, required = true, num_args = 1.., value_delimiter = ',', value_name = "IQN")]
        iqn: Vec<String>,
        /// The CHAP user that it must log in with.
        #[arg(long, value_name = "USER", requires = "chap_secret_file")]
        chap_user: Option<String>,
        /// The file with its secret, 12 to 255 characters; `-` reads the standard input.
        #[arg(long, value_name = "FILE", requires = "chap_user")]
        chap_secret_file: Option<PathBuf>,
        /// The user by which the target proves itself (mutual CHAP).
        #[arg(long, value_name = "USER", requires_all = ["chap_user", "chap_target_secret_file"])]
        chap_target_user: Option<String>,
        /// The file with the target's secret.
        #[arg(long, value_name = "FILE", requires = "chap_target_user")]
        chap_target_secret_file: Option<PathBuf>,
    },
    /// List all hosts.
    List,
    /// Show a host and its connections.
    Show {
        /// Which.
        name: String,
    },
    /// Compare how hosts use the array with how they should, and say how to set it.
    Check {
        /// Which. Default: all of them.
        name: Option<String>,
    },
    /// Delete a host.
    Delete {
        /// Which.
        name: String,
    },
}

/// `connect`.
#[derive(Debug, Args)]
pub struct ConnectArgs {
    /// The volume.
    pub volume: String,
    /// The host.
    pub host: String,
    /// 1 to 16383. Default: the lowest that is free.
    #[arg(long)]
    pub lun: Option<u16>,
}

/// `disconnect`.
#[derive(Debug, Args)]
pub struct DisconnectArgs {
    /// The volume.
    pub volume: String,
    /// The host.
    pub host: String,
}

/// `inspect`.
#[derive(Debug, Args)]
pub struct InspectArgs {
    /// The pool: its directory or device.
    #[arg(value_name = "DIR-OR-DEVICE")]
    pub place: Option<PathBuf>,
    /// Show the map of this volume, by its name or id.
    #[arg(long, value_name = "NAME-OR-ID")]
    pub volume: Option<String>,
    /// Also read all data, and compare it with its fingerprints.
    #[arg(long)]
    pub data: bool,
}

#[cfg(test)]
mod tests;
