//! The verbs of protection groups and tags.

use std::str::FromStr;
use std::time::Duration;

use clap::{Args, Subcommand};

use crate::cli::interval;
use crate::cli::listing::Listing;

/// `group …`.
#[derive(Debug, Subcommand)]
pub enum GroupVerb {
    /// Create a group.
    Create {
        /// 1 to 63 of A-Z a-z 0-9 -.
        name: String,
        /// Its volumes.
        volumes: Vec<String>,
    },
    /// Add volumes, or hosts or host groups with all volumes connected to them, to a group.
    Add {
        /// The group's name.
        name: String,
        #[command(flatten)]
        members: Members,
    },
    /// Remove volumes, hosts or host groups from a group.
    Remove {
        /// The group's name.
        name: String,
        #[command(flatten)]
        members: Members,
    },
    /// Set when snapshots of a group are taken automatically, and for how long they are kept.
    Set {
        /// The group's name.
        name: String,
        #[command(flatten)]
        schedule: ScheduleArgs,
    },
    /// Rename a group, together with its snapshots.
    Rename {
        /// The group's name.
        name: String,
        /// The new name.
        new_name: String,
    },
    /// List all groups.
    List {
        /// Destroyed groups, instead of the others.
        #[arg(long)]
        destroyed: bool,
        #[command(flatten)]
        listing: Listing,
    },
    /// Show a group.
    Show {
        /// The group's name.
        name: String,
    },
    /// Destroy a group and its snapshots; they can be recovered for a time. Its volumes remain.
    Destroy {
        /// The group's name.
        name: String,
        /// Also eradicate it: its snapshots are permanently gone, and their space is free.
        #[arg(long)]
        eradicate: bool,
    },
    /// Recover a destroyed group, with its snapshots.
    Recover {
        /// The group's name.
        name: String,
    },
    /// Eradicate a destroyed group: its snapshots are permanently gone, and their space is free.
    Eradicate {
        /// The group's name.
        name: String,
    },
}

/// What a group protects.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub struct Members {
    /// Volumes.
    #[arg(value_name = "VOLUME")]
    pub volumes: Vec<String>,
    /// Hosts, instead of volumes.
    #[arg(long = "host", num_args = 1.., value_delimiter = ',', value_name = "HOST")]
    pub hosts: Vec<String>,
    /// Host groups, instead.
    #[arg(long = "host-group", num_args = 1.., value_delimiter = ',', value_name = "HOST-GROUP")]
    pub host_groups: Vec<String>,
}

/// When snapshots are taken automatically, and how long they are kept. Omitted settings keep
/// their values.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub struct ScheduleArgs {
    /// Whether snapshots are taken automatically.
    #[arg(long, value_name = "on|off", value_parser = parse_on_off)]
    pub schedule: Option<bool>,
    /// The interval, from 5m to 400d: 1h, 1d.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub every: Option<Duration>,
    /// The time of day (UTC), if the interval is whole days; `none` clears it.
    #[arg(long, value_name = "HH:MM")]
    pub at: Option<TimeOfDay>,
    /// How long all snapshots are kept: 1d, up to 400d.
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    pub keep: Option<Duration>,
    /// How many snapshots of each day are kept after that.
    #[arg(long, value_name = "COUNT")]
    pub keep_per_day: Option<u32>,
    /// For how many days these are kept.
    #[arg(long, value_name = "DAYS")]
    pub keep_days: Option<u32>,
}

fn parse_on_off(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".into()),
    }
}

fn parse_time(text: &str) -> Result<Duration, String> {
    interval::parse(text)?.ok_or_else(|| "a time looks like 30m, 4h or 1d".to_owned())
}

/// A time of the day, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeOfDay {
    /// In milliseconds from midnight.
    pub ms: Option<u64>,
}

impl FromStr for TimeOfDay {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self { ms: None });
        }
        let number = |text: &str, end: u64| -> Option<u64> {
            let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|b| b.is_ascii_digit());
            text.parse().ok().filter(|number| is_number && *number < end)
        };
        let parts = text.split_once(':');
        let time = parts.and_then(|(hour, minute)| Some((number(hour, 24)?, number(minute, 60)?)));
        let (hour, minute) =
            time.ok_or_else(|| format!("{text:?} is not a time of day, such as 02:30"))?;
        Ok(Self { ms: Some((hour * 60 + minute) * 60_000) })
    }
}

/// `tag …`.
#[derive(Debug, Subcommand)]
pub enum TagVerb {
    /// Set tags of a volume or a snapshot, replacing those with the same keys.
    Set {
        /// The name of the volume or the snapshot.
        name: String,
        /// The tags.
        #[arg(required = true, value_name = "KEY=VALUE", value_parser = parse_tag)]
        tags: Vec<(String, String)>,
        /// The namespace in which the keys are unique. Default: `default`.
        #[arg(long)]
        namespace: Option<String>,
        /// Do not copy them to clones and snapshots.
        #[arg(long)]
        not_copied: bool,
    },
    /// List the tags of a volume or a snapshot, or of all.
    List {
        /// The name of the volume or the snapshot.
        name: Option<String>,
        /// Only tags in this namespace.
        #[arg(long)]
        namespace: Option<String>,
        #[command(flatten)]
        listing: Listing,
    },
    /// Remove tags.
    Delete {
        /// The name of the volume or the snapshot.
        name: String,
        /// Their keys.
        #[arg(required = true, value_name = "KEY")]
        keys: Vec<String>,
        /// The namespace. Default: `default`.
        #[arg(long)]
        namespace: Option<String>,
    },
}

fn parse_tag(text: &str) -> Result<(String, String), String> {
    let pair = text.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    pair.ok_or_else(|| format!("{text:?} is not KEY=VALUE"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_day_are_24_hours() {
        let ms = |text: &str| text.parse::<TimeOfDay>().map(|time| time.ms);
        assert_eq!((ms("0:00"), ms("02:30")), (Ok(Some(0)), Ok(Some(9_000_000))));
        assert_eq!(ms("none"), Ok(None));
        assert_eq!(ms("23:59"), Ok(Some(86_340_000)));
        for bad in ["", "2", "24:00", "1:60", "+1:00", "1:2:3", "001:00", "a:00"] {
            assert!(ms(bad).unwrap_err().contains("02:30"), "{bad}");
        }
    }
}
