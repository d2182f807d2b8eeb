//! Combines the command line with environment variables.
//!
//! An exported variable replaces an option that is not given, and never conflicts with one that
//! is. Otherwise, a shell that exports the name of one array could not start or query another.

use std::ffi::OsString;

use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, CommandFactory, FromArgMatches};

use super::{Cli, Verb};

impl Cli {
    /// Parses a command line; environment variables supply options that it does not contain.
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
        let given = |option| is_given(&matches, option);
        let has_place = match &cli.verb {
            Verb::Serve(options) => !options.places.is_empty(),
            Verb::Inspect(options) => !options.places.is_empty(),
            _ => false,
        };
        if has_place {
            if given("pool") {
                return Err(conflict("'--pool <DIR-OR-DEVICE>'", "'[DIR-OR-DEVICE]'"));
            }
            cli.common.pool.clear();
        }
        match (given("ca"), given("fingerprint")) {
            (true, true) => return Err(conflict("'--ca <FILE>'", "'--fingerprint <HEX>'")),
            (true, false) => cli.common.fingerprint = None,
            (false, true) => cli.common.ca = None,
            (false, false) if cli.common.ca.is_some() && cli.common.fingerprint.is_some() => {
                return Err(conflict("HOLDFAST_CA", "HOLDFAST_FINGERPRINT"));
            }
            (false, false) => {}
        }
        // Both select an array, except for `serve`, which needs both.
        if !matches!(cli.verb, Verb::Serve(_)) {
            match (given("pool"), given("api")) {
                (true, false) => cli.common.api = None,
                (false, true) => cli.common.pool.clear(),
                _ => {}
            }
        }
        Ok(cli)
    }
}

/// Returns whether a global option is on the command line, before or after the verb.
fn is_given(matches: &ArgMatches, option: &str) -> bool {
    matches.value_source(option) == Some(ValueSource::CommandLine)
        || matches.subcommand().is_some_and(|(_, inner)| is_given(inner, option))
}
