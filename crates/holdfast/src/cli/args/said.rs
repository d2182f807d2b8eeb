//! What stands on the command line, and what the environment says besides.
//!
//! An exported variable stands in for an option that is not given: it never contradicts one that
//! is, or a shell in which one array was named could not start or ask another.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use super::{Cli, Verb};

impl Cli {
    /// Reads a command line, and of the environment what it leaves open.
    pub fn read<W: Into<OsString> + Clone>(
        words: impl IntoIterator<Item = W>,
    ) -> Result<Self, clap::Error> {
        let mut command = Self::command();
        let matches = command.try_get_matches_from_mut(words)?;
        let mut cli = Self::from_arg_matches(&matches).map_err(|e| e.format(&mut command))?;
        let conflict = |one: &str, other: &str| {
            let text = format!("{one} cannot be used with {other}: give one of them");
            Self::command().error(ErrorKind::ArgumentConflict, text)
        };
        let said = |option| is_said(&matches, option);
        let has_place = match &cli.verb {
            Verb::Serve(options) => !options.places.is_empty(),
            Verb::Inspect(options) => !options.places.is_empty(),
            _ => false,
        };
        if has_place {
            if said("pool") {
                return Err(conflict("'--pool <DIR-OR-DEVICE>'", "'[DIR-OR-DEVICE]'"));
            }
            cli.common.pool.clear();
        }
        match (said("ca"), said("fingerprint")) {
            (true, true) => return Err(conflict("'--ca <FILE>'", "'--fingerprint <HEX>'")),
            (true, false) => cli.common.fingerprint = None,
            (false, true) => cli.common.ca = None,
            (false, false) if cli.common.ca.is_some() && cli.common.fingerprint.is_some() => {
                return Err(conflict("HOLDFAST_CA", "HOLDFAST_FINGERPRINT"));
            }
            (false, false) => {}
        }
        // Both say which array is meant, but for `serve`, which needs both.
        if !matches!(cli.verb, Verb::Serve(_)) {
            match (said("pool"), said("api")) {
                (true, false) => cli.common.api = None,
                (false, true) => cli.common.pool.clear(),
                _ => {}
            }
        }
        Ok(cli)
    }
}

/// Whether an option of all verbs stands on the command line, wherever it stands there.
fn is_said(matches: &ArgMatches, option: &str) -> bool {
    matches.value_source(option) == Some(ValueSource::CommandLine)
        || matches.subcommand().is_some_and(|(_, inner)| is_said(inner, option))
}
