//! The verbs of users and tokens.

use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::interval;
use crate::cli::listing::Listing;

/// `user …`.
#[derive(Debug, Subcommand)]
pub enum UserVerb {
    /// Create a user, who can do nothing before getting a token or a password.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// array_admin: everything; storage_admin: volumes, snapshots, hosts, connections;
        /// readonly: viewing.
        #[arg(long)]
        role: String,
    },
    /// List all users.
    List(Listing),
    /// Change the role of a user.
    Set {
        /// The user's name.
        name: String,
        /// As in `create`.
        #[arg(long)]
        role: String,
    },
    /// Set or remove a user's password for the web page. It is read from the terminal, or else
    /// from standard input: 8 to 128 characters. The user's sessions end.
    Password {
        /// The user's name.
        name: String,
        /// Remove the password.
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
    /// Create an API token, and print it. It is shown only once.
    Create {
        /// Its name: 1 to 63 of A-Z a-z 0-9 - _.
        name: String,
        /// The user that it identifies.
        #[arg(long, default_value = array::users::BUILT_IN_USER)]
        user: String,
        /// Its lifetime, such as 90d. Default: until it is withdrawn.
        #[arg(long, value_name = "TIME", value_parser = parse_lifetime)]
        expires: Option<Duration>,
    },
    /// List API tokens, without the tokens themselves.
    List {
        /// Only tokens of this user.
        #[arg(long)]
        user: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Withdraw an API token.
    Delete {
        /// The token's name.
        name: String,
        /// The user that the token identifies.
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
    /// The number of entries.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    pub limit: u64,
    /// Only entries of this user.
    #[arg(long)]
    pub user: Option<String>,
    /// Only entries with this method: POST, PATCH, PUT or DELETE.
    #[arg(long, value_parser = ["POST", "PATCH", "PUT", "DELETE"], ignore_case = true)]
    pub action: Option<String>,
    /// Only entries with this text in the request.
    #[arg(long)]
    pub text: Option<String>,
}
