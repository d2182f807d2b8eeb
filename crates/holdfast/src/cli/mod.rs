//! The command line.
//!
//! * [`args`]: the verbs and their arguments,
//! * [`failure`]: exit codes,
//! * [`client`]: how a verb talks to the running array, [`discover`]: how it finds it, [`trust`]:
//!   how it knows it,
//! * [`pool`], [`optimize`], [`array`], [`volume`], [`snapshot`], [`group`], [`host`],
//!   [`host_check`], [`connection`], [`alert`], [`user`], [`token`], [`audit`], [`status`],
//!   [`inspect`]: the verbs,
//! * [`serve`]: the array itself, with its [`config`], its [`http`] server, the [`certificate`] of
//!   that, the [`web`] page and the small parts ([`access`], [`telemetry`], [`notify`]) that join
//!   crates which don't know each other,
//! * [`size`], [`offload`], [`output`]: what people type and read, [`private`]: files that only
//!   their owner may read.

mod access;
mod alert;
mod args;
mod array;
mod audit;
mod certificate;
mod client;
mod config;
mod connection;
mod discover;
mod failure;
mod group;
mod host;
mod host_check;
mod http;
mod inspect;
mod integrity;
mod interval;
mod notify;
mod offload;
mod optimize;
mod output;
mod pool;
mod private;
mod serve;
mod size;
mod snapshot;
mod space;
mod status;
mod telemetry;
mod token;
mod trust;
mod user;
mod volume;
mod web;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Verb};
use failure::Failure;

/// Does what the command line asks for. A failure is one line on the standard error.
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    match perform(&cli) {
        Ok(code) => code,
        Err(failure) => {
            eprintln!("holdfast: {failure}");
            failure.exit_code()
        }
    }
}

fn perform(cli: &Cli) -> Result<ExitCode, Failure> {
    let common = &cli.common;
    match &cli.verb {
        Verb::Pool(verb) => pool::run(common, verb)?,
        Verb::Serve(options) => serve::run(common, options)?,
        Verb::Volume(verb) => volume::run(common, verb)?,
        Verb::Snapshot(verb) => snapshot::run(common, verb)?,
        Verb::Group(verb) => group::run(common, verb)?,
        Verb::Array(verb) => array::run(common, verb)?,
        Verb::Host(verb) => host::run(common, verb)?,
        Verb::Connect(options) => connection::connect(common, options)?,
        Verb::Disconnect(options) => connection::disconnect(common, options)?,
        Verb::Alert(verb) => alert::run(common, verb)?,
        Verb::User(verb) => user::run(common, verb)?,
        Verb::Token(verb) => token::run(common, verb)?,
        Verb::Audit(options) => audit::run(common, options)?,
        Verb::Status => status::run(common)?,
        Verb::Inspect(options) => return inspect::run(common, options),
    }
    Ok(ExitCode::SUCCESS)
}
