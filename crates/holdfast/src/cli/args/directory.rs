//! The verbs of the directory service.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand};

use super::array::{Listed, parse_listed};
use super::volume::parse_on_off;

/// `directory …`.
#[derive(Debug, Subcommand)]
pub enum DirectoryVerb {
    /// Show the directory service, without the password of the array there.
    Show,
    /// Change it. It is in force at once, and the sessions of its users end.
    Set(DirectoryArgs),
    /// Say whose members have a role.
    #[command(group = ArgGroup::new("who").required(true).args(["group", "none"]))]
    Role {
        /// array_admin, storage_admin or readonly.
        role: String,
        /// The name of the group (cn), or its DN.
        #[arg(long, value_name = "NAME|DN")]
        group: Option<String>,
        /// Below what the group is; the base DN need not be repeated.
        #[arg(long, value_name = "DN", requires = "group")]
        base: Option<String>,
        /// Nobody has the role by a group.
        #[arg(long)]
        none: bool,
    },
    /// Ask all servers now: whether the array may bind and search there, and has the groups.
    Test,
}

/// `directory set`: what is changed.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("what").required(true).multiple(true))]
pub struct DirectoryArgs {
    /// Let its users log in, or not.
    #[arg(long, group = "what", value_name = "on|off", value_parser = parse_on_off)]
    pub enabled: Option<bool>,
    /// Ask these servers, in this order: up to three, `ldaps://HOST[:PORT]`, or
    /// `ldap://HOST[:PORT]`, where TLS is begun by StartTLS; or none.
    #[arg(long, group = "what", value_name = "URI[,…]|none", value_parser = parse_listed)]
    pub uri: Option<Listed>,
    /// Look for users and groups below this; or none.
    #[arg(long, group = "what", value_name = "DN|none")]
    pub base_dn: Option<String>,
    /// Bind as this user to look for others; or none.
    #[arg(long, group = "what", value_name = "DN|none")]
    pub bind_user: Option<String>,
    /// The file with its password; `-` reads the standard input. It has to be given again with
    /// another server or user.
    #[arg(long, group = "what", value_name = "FILE")]
    pub bind_password_file: Option<PathBuf>,
    /// The file with certificates (PEM) of the servers, or of the authorities that vouch for
    /// them; or none, and the authorities of this machine do.
    #[arg(long, group = "what", value_name = "FILE|none")]
    pub ca_certificate: Option<PathBuf>,
    /// The attribute that has the name of a user; or none: uid or sAMAccountName.
    #[arg(long, group = "what", value_name = "ATTRIBUTE|none")]
    pub user_login: Option<String>,
    /// The object class of users; or none: any.
    #[arg(long, group = "what", value_name = "CLASS|none")]
    pub user_class: Option<String>,
}
