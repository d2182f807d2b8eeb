//! The verbs of users and tokens.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::interval;
use crate::cli::listing::Listing;

/// `user …`.
#[derive(Debug, Subcommand)]
pub enum UserVerb {
    /// Make a user, who can do nothing before it has a token or a password.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// array_admin: everything; storage_admin: volumes, snapshots, hosts, connections;
        /// readonly: to look.
        #[arg(long)]
        role: String,
    },
    /// List all users.
    List(Listing),
    /// Give a user another role.
    Set {
        /// The user's name.
        name: String,
        /// As in `create`.
        #[arg(long)]
        role: String,
    },
    /// Give a user a password for the web page, or take it away. It is asked for on a terminal, and
    /// otherwise read from the standard input: 8 to 128 characters. The user's sessions end.
    Password {
        /// The user's name.
        name: String,
        /// Take it away.
        #[arg(long)]
        remove: bool,
    },
    /// Remove a user with its tokens.
    Delete {
        /// The user's name.
        name: String,
    },
}

/// `token …`.
#[derive(Debug, Subcommand)]
pub enum TokenVerb {
    /// Make an API token, and print it this once.
    Create {
        /// What it is for: 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// The user that it is for.
        #[arg(long, default_value = array::users::BUILT_IN_USER)]
        user: String,
        /// For how long it is good, such as 90d. Default: until it is withdrawn.
        #[arg(long, value_name = "TIME", value_parser = parse_lifetime)]
        expires: Option<Duration>,
    },
    /// List API tokens, without the tokens themselves.
    List {
        /// Only those of this user.
        #[arg(long)]
        user: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Withdraw an API token.
    Delete {
        /// The token's name.
        name: String,
        /// The user that it belongs to.
        #[arg(long, default_value = array::users::BUILT_IN_USER)]
        user: String,
    },
}

fn parse_lifetime(text: &str) -> Result<Duration, String> {
    interval::parse(text)?.ok_or_else(|| "a lifetime looks like 90d or 12h".to_owned())
}

/// `audit`.
#[derive(Debug, Args)]
pub struct AuditArgs {
    /// How many entries.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: u64,
    /// Only those of this user.
    #[arg(long)]
    pub user: Option<String>,
    /// Only those that did this: POST, PATCH, PUT or DELETE.
    #[arg(long, value_parser = ["POST", "PATCH", "PUT", "DELETE"], ignore_case = true)]
    pub action: Option<String>,
    /// Only those with this text in what was asked.
    #[arg(long)]
    pub text: Option<String>,
}
