//! The command line.
//!
//! * [`args`]: the verbs and their arguments,
//! * [`failure`]: exit codes, [`hint`]: suggestions for unknown verbs,
//! * [`client`]: the client of the running array, [`discover`]: finding it, [`trust`]: verifying
//!   it; [`rest`]: requests of REST 2.x,
//! * [`place`]: the location of a pool, [`medium`]: opening its devices, [`members`]: its devices
//!   while it is served,
//! * [`pool`] and its [`creation`], [`optimize`], [`array`], [`volume`], [`limits`], [`snapshot`],
//!   [`group`], [`protection`], [`tag`], [`host`], [`host_group`], [`volume_group`], [`pod`] and
//!   the common parts of the last two ([`container`]), [`connection`], [`device`], [`provision`],
//!   [`user`], [`token`], [`alert`], [`host_check`], [`audit`], [`status`], [`top`], [`raw`],
//!   [`completion`], [`manual`], [`inspect`], [`salvage`]: the verbs,
//! * [`serve`]: the array itself, with its [`config`], the [`first`] start, its [`identity`] and
//!   the address of management ([`door`]), the [`log`], the distribution of [`descriptors`] and the
//!   small parts ([`access`], [`telemetry`]) that connect crates which do not depend on each other;
//!   [`panics`]: a panic ends the process,
//! * [`supervised`]: the supervisor; for two controllers, the [`turn`] to have the pool, the
//!   [`fencing`] of the devices and the [`link`] between machines,
//! * [`size`], [`offload`], [`output`], [`mounting`]: input and output for people, [`flat`]: CSV,
//!   [`listing`]: filtering and sorting lists.

mod access;
mod alert;
mod args;
mod array;
mod audit;
mod client;
mod completion;
mod config;
mod connection;
mod container;
mod controller;
mod creation;
mod descriptors;
mod device;
mod directory;
mod discover;
mod door;
mod failure;
mod fencing;
mod first;
mod flat;
mod group;
mod hidden;
mod hint;
mod host;
mod host_check;
mod host_group;
mod host_sessions;
mod identity;
mod initiator;
mod inspect;
mod integrity;
mod interval;
mod limits;
mod link;
mod listing;
mod log;
mod manual;
mod medium;
mod members;
mod mounting;
mod notify;
mod offload;
mod opening;
mod optimize;
mod output;
mod panics;
mod place;
mod pod;
mod pool;
mod protection;
mod provision;
mod raw;
mod rest;
mod salvage;
mod serve;
mod size;
mod snapshot;
mod space;
mod stable_name;
mod status;
mod supervised;
mod tag;
mod telemetry;
mod token;
mod top;
mod trust;
mod turn;
mod user;
mod volume;
mod volume_group;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::error::ErrorKind;

use args::{Cli, Verb};
use failure::Failure;

/// Runs the command line. A failure is one line on the standard error.
pub fn run() -> ExitCode {
    if completion::answer() {
        return ExitCode::SUCCESS;
    }
    let words: Vec<OsString> = std::env::args_os().collect();
    let done = match Cli::read(&words) {
        Ok(cli) => perform(&cli),
        // clap reports help and versions as errors, but they are not failures.
        Err(error)
            if error.kind() != ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                && error.use_stderr() =>
        {
            Err(misspelt(&words, &error))
        }
        Err(error) => error.exit(),
    };
    match done {
        Ok(code) => code,
        Err(failure) => {
            output::complain(format_args!("holdfast: {failure}"));
            failure.exit_code()
        }
    }
}

/// Returns the error in a command line, without the usage, which `--help` shows in full.
fn misspelt(words: &[OsString], error: &clap::Error) -> Failure {
    if let Some(hint) = hint::of(words, error) {
        return Failure::Usage(hint);
    }
    let text = error.to_string();
    let reported = text.split("\nUsage:").next().unwrap_or_default();
    let reported = reported.split("\nFor more information").next().unwrap_or_default();
    let reported = reported.trim_start_matches("error: ").trim_end();
    Failure::Usage(format!("{reported}\n(see --help)"))
}

fn perform(cli: &Cli) -> Result<ExitCode, Failure> {
    let common = &cli.common;
    match &cli.verb {
        Verb::Pool(verb) => pool::run(common, verb)?,
        Verb::Serve(options) => {
            options.check_controllers().map_err(Failure::Usage)?;
            let runs_both = options.are_two() && options.controller.is_none();
            if options.supervised || runs_both {
                return supervised::run(options);
            }
            panics::end_the_process();
            return serve::run(common, options);
        }
        Verb::Volume(verb) => volume::run(common, verb)?,
        Verb::Snapshot(verb) => snapshot::run(common, verb)?,
        Verb::Group(verb) => group::run(common, verb)?,
        Verb::Array(verb) => array::run(common, verb)?,
        Verb::Tag(verb) => tag::run(common, verb)?,
        Verb::Provision(options) => provision::run(common, options)?,
        Verb::Host(verb) => host::run(common, verb)?,
        Verb::Initiator(verb) => initiator::run(common, verb)?,
        Verb::HostGroup(verb) => host_group::run(common, verb)?,
        Verb::VolumeGroup(verb) => volume_group::run(common, verb)?,
        Verb::Pod(verb) => pod::run(common, verb)?,
        Verb::Connect(options) => connection::connect(common, options)?,
        Verb::Disconnect(options) => connection::disconnect(common, options)?,
        Verb::Alert(verb) => alert::run(common, verb)?,
        Verb::Connection(verb) => connection::run(common, verb)?,
        Verb::Port(verb) => connection::ports(common, verb)?,
        Verb::Device(verb) => device::run(common, verb)?,
        Verb::Controller(verb) => controller::run(common, verb)?,
        Verb::User(verb) => user::run(common, verb)?,
        Verb::Token(verb) => token::run(common, verb)?,
        Verb::Notify(verb) => notify::run(common, verb)?,
        Verb::Directory(verb) => directory::run(common, verb)?,
        Verb::Audit(options) => audit::run(common, options)?,
        Verb::Status => status::run(common)?,
        Verb::Top(options) => top::run(common, options)?,
        Verb::Api(options) => raw::run(common, options)?,
        Verb::Completion { shell } => completion::run(*shell)?,
        Verb::Version => manual::version(common.form)?,
        Verb::Man { directory } => manual::write(directory)?,
        Verb::Inspect(options) => return inspect::run(common, options),
        Verb::Salvage(options) => return salvage::run(common, options),
    }
    Ok(ExitCode::SUCCESS)
}
