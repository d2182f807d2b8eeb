//! The verbs for the recipients of alerts that the pool keeps.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::volume::parse_on_off;

/// `notify …`.
#[derive(Debug, Subcommand)]
pub enum NotifyVerb {
    /// Show the mail relay, the recipients of mail, the syslog servers and the SNMP managers.
    Show,
    /// Set the mail relay. This takes effect at once.
    Mail(MailArgs),
    /// Configure the recipients of mail about alerts.
    #[command(subcommand)]
    Watcher(WatcherVerb),
    /// Configure the syslog servers that receive alerts and changes.
    #[command(subcommand)]
    Syslog(SyslogVerb),
    /// Configure the SNMP managers that receive alerts.
    #[command(subcommand)]
    Snmp(SnmpVerb),
    /// Send a test to all recipients, or to those named, and report the results.
    Test {
        /// Addresses of watchers, and names of syslog servers and SNMP managers.
        name: Vec<String>,
    },
}

/// `notify watcher …`.
#[derive(Debug, Subcommand)]
pub enum WatcherVerb {
    /// Send mail to these addresses, for alerts from warning on.
    Add {
        /// NAME@DOMAIN.
        #[arg(required = true)]
        address: Vec<String>,
    },
    /// Resume mail to these addresses.
    Enable {
        /// As in `add`.
        #[arg(required = true)]
        address: Vec<String>,
    },
    /// Pause mail to these addresses.
    Disable {
        /// As in `add`.
        #[arg(required = true)]
        address: Vec<String>,
    },
    /// Remove these addresses.
    Remove {
        /// As in `add`.
        #[arg(required = true)]
        address: Vec<String>,
    },
}

/// `notify syslog …`.
#[derive(Debug, Subcommand)]
pub enum SyslogVerb {
    /// Add a syslog server.
    Add {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// udp://HOST[:PORT], tcp://HOST[:PORT] or tls://HOST[:PORT].
        uri: String,
    },
    /// Change the address of a syslog server.
    Set {
        /// The server's name.
        name: String,
        /// As in `add`.
        uri: String,
    },
    /// Remove syslog servers.
    Remove {
        /// The servers' names.
        #[arg(required = true)]
        name: Vec<String>,
    },
}

/// `notify snmp …`.
#[derive(Debug, Subcommand)]
pub enum SnmpVerb {
    /// Add an SNMP manager: of version 2c with a community, or of version 3 with a user.
    Add(SnmpManagerArgs),
    /// Change an SNMP manager, except its version.
    Set(SnmpChangeArgs),
    /// Remove SNMP managers.
    Remove {
        /// The managers' names.
        #[arg(required = true)]
        name: Vec<String>,
    },
}

/// `notify mail`: changes to the mail relay.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub struct MailArgs {
    /// The mail relay (port 25 by default); or none.
    #[arg(long, group = "what", value_name = "HOST[:PORT]|none")]
    pub relay: Option<String>,
    /// The domain of the sender's address, which mail needs; or none.
    #[arg(long, group = "what", value_name = "DOMAIN|none")]
    pub sender_domain: Option<String>,
    /// The part before the @ of the sender's address; or none: the name of the array.
    #[arg(long, group = "what", value_name = "NAME|none")]
    pub sender: Option<String>,
    /// How the connection is encrypted; with none, no password is sent.
    #[arg(long, group = "what", value_name = "starttls|tls|none")]
    #[arg(value_parser = ["starttls", "tls", "none"])]
    pub encryption: Option<String>,
    /// The user of the array at the relay; or none.
    #[arg(long, group = "what", value_name = "USER|none")]
    pub user: Option<String>,
    /// The file with its password; `-` reads standard input. Give it again with another relay or
    /// user.
    #[arg(long, group = "what", value_name = "FILE")]
    pub password_file: Option<PathBuf>,
    /// A prefix for each subject; or none.
    #[arg(long, group = "what", value_name = "TEXT|none")]
    pub subject_prefix: Option<String>,
    /// A prefix for each text; or none.
    #[arg(long, group = "what", value_name = "TEXT|none")]
    pub body_prefix: Option<String>,
}

/// `notify snmp add`: a new SNMP manager.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("who").required(true).args(["community_file", "user"]))]
pub struct SnmpManagerArgs {
    /// 1 to 63 of A-Z a-z 0-9 - _.
    pub name: String,
    /// HOST or HOST:PORT; the default port is 162.
    pub host: String,
    /// The file with the community; `-` reads standard input.
    #[arg(long, value_name = "FILE")]
    pub community_file: Option<PathBuf>,
    /// The user of version 3.
    #[arg(long, value_name = "USER")]
    pub user: Option<String>,
    /// How messages are authenticated.
    #[arg(long, value_name = "SHA|MD5", value_parser = ["SHA", "MD5"], default_value = "SHA")]
    pub auth: String,
    /// The file with the authentication passphrase, 8 to 63 characters; without one, messages are
    /// not authenticated.
    #[arg(long, value_name = "FILE", requires = "user")]
    pub auth_passphrase_file: Option<PathBuf>,
    /// The file with the encryption passphrase (AES); without one, messages are not encrypted.
    #[arg(long, value_name = "FILE", requires = "auth_passphrase_file")]
    pub privacy_passphrase_file: Option<PathBuf>,
    /// Request confirmations from the manager.
    #[arg(long)]
    pub inform: bool,
}

/// `notify snmp set`: changes to an SNMP manager.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub struct SnmpChangeArgs {
    /// The manager's name.
    pub name: String,
    /// Its new place; the default port is 162. A manager of version 2c needs the community again.
    #[arg(long, group = "what", value_name = "HOST[:PORT]")]
    pub host: Option<String>,
    /// Of version 2c: the file with the new community; `-` reads standard input.
    #[arg(long, group = "what", value_name = "FILE")]
    pub community_file: Option<PathBuf>,
    /// Of version 3: the new user.
    #[arg(long, group = "what", value_name = "USER", conflicts_with = "community_file")]
    pub user: Option<String>,
    /// Of version 3: how messages are authenticated; or none. A new protocol needs its passphrase
    /// if there is none yet.
    #[arg(long, group = "what", value_name = "SHA|MD5|none", value_parser = ["SHA", "MD5", "none"])]
    #[arg(conflicts_with = "community_file")]
    pub auth: Option<String>,
    /// Of version 3: the file with the new authentication passphrase.
    #[arg(long, group = "what", value_name = "FILE", conflicts_with = "community_file")]
    pub auth_passphrase_file: Option<PathBuf>,
    /// Of version 3: whether messages are encrypted (AES), or not: none.
    #[arg(long, group = "what", value_name = "AES|none", value_parser = ["AES", "none"])]
    #[arg(conflicts_with = "community_file")]
    pub privacy: Option<String>,
    /// Of version 3: the file with the new encryption passphrase.
    #[arg(long, group = "what", value_name = "FILE", conflicts_with = "community_file")]
    pub privacy_passphrase_file: Option<PathBuf>,
    /// Whether the manager confirms messages.
    #[arg(long, group = "what", value_name = "on|off", value_parser = parse_on_off)]
    pub inform: Option<bool>,
}
