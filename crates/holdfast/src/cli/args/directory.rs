//! The verbs of the directory service.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::array::{Listed, parse_listed};
use super::volume::parse_on_off;

/// `directory …`.
#[derive(Debug, Subcommand)]
pub enum DirectoryVerb {
    /// Show the directory service, without the array's password there.
    Show,
    /// Change the directory service. This takes effect at once, and ends its users' sessions.
    Set(DirectoryArgs),
    /// Set the group whose members have a role.
    #[command(group = ArgGroup::new("who").required(true).args(["group", "none"]))]
    Role {
        /// array_admin, storage_admin or readonly.
        role: String,
        /// The name of the group (cn), or its DN.
        #[arg(long, value_name = "NAME|DN")]
        group: Option<String>,
        /// The DN below which the group is searched; the base DN need not be repeated.
        #[arg(long, value_name = "DN", requires = "group")]
        base: Option<String>,
        /// Remove the group: nobody gets the role through a group.
        #[arg(long)]
        none: bool,
    },
    /// Test all servers now: whether the array may bind and search, and whether the groups exist.
    Test,
}

/// `directory set`: the changes.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub struct DirectoryArgs {
    /// Whether directory users may log in.
    #[arg(long, group = "what", value_name = "on|off", value_parser = parse_on_off)]
    pub enabled: Option<bool>,
    /// Use these servers, in this order: up to three, `ldaps://HOST[:PORT]`, or
    /// `ldap://HOST[:PORT]` with StartTLS; or none.
    #[arg(long, group = "what", value_name = "URI[,…]|none", value_parser = parse_listed)]
    pub uri: Option<Listed>,
    /// Search for users and groups below this DN; or none.
    #[arg(long, group = "what", value_name = "DN|none")]
    pub base_dn: Option<String>,
    /// Bind as this user for searches; or none.
    #[arg(long, group = "what", value_name = "DN|none")]
    pub bind_user: Option<String>,
    /// The file with its password; `-` reads standard input. Give it again with another server or
    /// user.
    #[arg(long, group = "what", value_name = "FILE")]
    pub bind_password_file: Option<PathBuf>,
    /// The file with certificates (PEM) of the servers, or of the authorities that signed them; or
    /// none, to use the authorities of this machine.
    #[arg(long, group = "what", value_name = "FILE|none")]
    pub ca_certificate: Option<PathBuf>,
    /// The attribute with the user name; or none: uid or sAMAccountName.
    #[arg(long, group = "what", value_name = "ATTRIBUTE|none")]
    pub user_login: Option<String>,
    /// The object class of users; or none: any.
    #[arg(long, group = "what", value_name = "CLASS|none")]
    pub user_class: Option<String>,
}
