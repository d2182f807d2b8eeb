//! The verbs of the array's settings.

use std::time::Duration;

use clap::{ArgGroup, Subcommand};

use super::volume::parse_on_off;
use crate::cli::interval;
use crate::cli::offload::{self, Switch};

/// `array …`.
#[derive(Debug, Subcommand)]
pub enum ArrayVerb {
    /// Show the settings that are stored in the pool.
    Show,
    /// Show the last answers of the time servers about the clock.
    Ntp,
    /// Query the time servers now.
    NtpTest,
    /// Change the settings.
    #[command(group = ArgGroup::new("what").required(true).multiple(true))]
    Set {
        /// Switch offloads for all volumes: ats, full-copy, block-zero, reclaim, odx or all, `=on`
        /// or `=off`. A volume accepts an offload that is on here and in its own settings.
        #[arg(long, group = "what", value_delimiter = ',', value_name = "OFFLOAD=on|off[,…]")]
        #[arg(value_parser = offload::parse)]
        offload: Vec<Switch>,
        /// Notify hosts at these percentages of pool usage: up to four, 1 to 99; or none.
        #[arg(long, group = "what", value_name = "PERCENT[,…]|none")]
        #[arg(value_parser = parse_thresholds)]
        space_thresholds: Option<Thresholds>,
        /// The name of the array: 1 to 63 of A-Z a-z 0-9 -.
        #[arg(long, group = "what")]
        name: Option<String>,
        /// How long objects destroyed from now on can be recovered, up to 30d: 12h, 7d. A number
        /// alone is seconds.
        #[arg(long, group = "what", value_name = "TIME", value_parser = parse_delay)]
        eradication_delay: Option<Duration>,
        /// Refuse hosts without CHAP, from their next login on.
        #[arg(long, group = "what", value_name = "on|off", value_parser = parse_on_off)]
        chap_required: Option<bool>,
        /// Resolve names of other servers at these name servers, in this order: up to three, each
        /// with a port if it is not 53; or none, to use the system's resolver.
        #[arg(long, group = "what", value_name = "ADDRESS[:PORT][,…]|none")]
        #[arg(value_parser = parse_listed)]
        name_servers: Option<Listed>,
        /// Look up names without a dot in this domain; or none.
        #[arg(long, group = "what", value_name = "DOMAIN|none")]
        domain: Option<String>,
        /// Query these time servers for the clock offset: up to four; or none. The operating system
        /// sets the clock.
        #[arg(long, group = "what", value_name = "HOST[:PORT][,…]|none")]
        #[arg(value_parser = parse_listed)]
        ntp_servers: Option<Listed>,
        /// Show this text before a login on the page, to anybody: up to 2,000 characters, in one
        /// line or several; or none.
        #[arg(long, group = "what", value_name = "TEXT|none")]
        banner: Option<String>,
    },
}

fn parse_delay(text: &str) -> Result<Duration, String> {
    if let Ok(seconds) = text.parse() {
        return Ok(Duration::from_secs(seconds));
    }
    interval::parse(text)?.ok_or_else(|| "a delay looks like 12h or 7d".to_owned())
}

/// The value of an option that takes a list or `none`.
#[derive(Clone, Debug)]
pub struct Listed(pub Vec<String>);

pub(super) fn parse_listed(text: &str) -> Result<Listed, String> {
    Ok(Listed(match text {
        "none" => Vec::new(),
        listed => listed.split(',').map(|one| one.trim().to_owned()).collect(),
    }))
}

/// The value of `--space-thresholds`.
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
