//! A sample of all counters of the array.

use std::collections::BTreeMap;
use std::time::Instant;

use api::{CommandCounters, Copied, Counters, PathCounters, Pool, Status};
use serde::Deserialize;
use sys::wall::now_ms;

use crate::cli::client::Client;
use crate::cli::failure::Failure;
use crate::cli::host::RESOURCE;

/// A host in the form of REST 2.x, with its initiators only.
#[derive(Debug, Deserialize)]
pub struct Host {
    name: String,
    iqns: Vec<String>,
}

/// The kind of object of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Volume,
    Host,
    Port,
}

impl Kind {
    /// All, in the order in which they are shown.
    pub const ALL: [Kind; 3] = [Kind::Volume, Kind::Host, Kind::Port];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Volume => "Volume",
            Self::Host => "Host",
            Self::Port => "Port",
        }
    }
}

/// The counters of one object.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// By class of command.
    pub commands: BTreeMap<String, CommandCounters>,
    /// Copies that read it.
    pub copied_from: Copied,
    /// Copies that wrote it.
    pub copied_to: Copied,
}

impl Totals {
    /// Returns the counters of a class.
    pub fn of(&self, class: &str) -> CommandCounters {
        self.commands.get(class).cloned().unwrap_or_default()
    }

    fn add(&mut self, path: &PathCounters) {
        for (class, more) in &path.commands {
            self.commands.entry(class.clone()).or_default().add(more);
        }
        for (sum, more) in
            [(&mut self.copied_from, path.copied_from), (&mut self.copied_to, path.copied_to)]
        {
            sum.commands += more.commands;
            sum.bytes += more.bytes;
        }
    }
}

/// A sample.
#[derive(Clone, Debug)]
pub struct Sample {
    /// The time of the sample, for intervals.
    pub at: Instant,
    /// The time of the sample, in milliseconds since 1970.
    pub wall_ms: u64,
    /// The start of the array, from which counters count.
    pub started_ms: u64,
    /// The name of the array.
    pub array: String,
    /// The state of the pool.
    pub pool: Pool,
    /// All counters, by object.
    pub totals: BTreeMap<(Kind, String), Totals>,
    /// The counters over all volumes.
    pub all: Totals,
}

impl Sample {
    /// Takes a sample.
    pub fn take(client: &Client) -> Result<Self, Failure> {
        let status: Status = client.get("/v1/status")?;
        let hosts: Vec<Host> = client.items(RESOURCE, "")?;
        let counters: Counters = client.get("/v1/counters")?;
        Ok(Self::of(Instant::now(), now_ms(), &status, &hosts, &counters))
    }

    /// Sums up counters by volumes, hosts and ports.
    pub fn of(
        at: Instant,
        wall_ms: u64,
        status: &Status,
        hosts: &[Host],
        counters: &Counters,
    ) -> Self {
        let names: BTreeMap<&str, &str> = hosts
            .iter()
            .flat_map(|host| host.iqns.iter().map(|iqn| (iqn.as_str(), host.name.as_str())))
            .collect();
        let mut totals: BTreeMap<(Kind, String), Totals> = BTreeMap::new();
        let mut all = Totals::default();
        for path in &counters.paths {
            let initiator = path.initiator.as_str();
            let host = names.get(initiator).copied().unwrap_or(initiator);
            let mut about = vec![(Kind::Host, host.to_owned())];
            about.extend(volume_name(path).map(|name| (Kind::Volume, name)));
            about.into_iter().for_each(|one| totals.entry(one).or_default().add(path));
            all.add(path);
        }
        for port in &counters.ports {
            let of_port = Totals { commands: port.commands.clone(), ..Totals::default() };
            totals.insert((Kind::Port, port.portal.clone()), of_port);
        }
        Self {
            at,
            wall_ms,
            started_ms: status.started_ms,
            array: status.name.clone(),
            pool: status.pool.clone(),
            totals,
            all,
        }
    }
}

/// Returns the name shown for a volume; `None` if a command went to a LUN without one.
fn volume_name(path: &PathCounters) -> Option<String> {
    let id = path.volume_id?;
    Some(path.volume.clone().unwrap_or_else(|| format!("(id {id})")))
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use api::{LatencyBucket, PortCounters, Written};

    use super::*;

    /// Returns the time origin of tests.
    fn epoch() -> Instant {
        static EPOCH: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        *EPOCH.get_or_init(Instant::now)
    }

    /// Returns an initiator's writes to a volume: this many MiB, each in 2 ms, all copied as well.
    pub(in crate::cli::top) fn path(initiator: &str, volume: &str, count: u64) -> PathCounters {
        let counters = CommandCounters {
            ok: count,
            bytes: count << 20,
            ok_latency_us: count * 2000,
            latencies: vec![LatencyBucket { up_to_us: Some(2000), count }],
            ..CommandCounters::default()
        };
        PathCounters {
            initiator: initiator.into(),
            volume_id: Some(1),
            volume: Some(volume.into()),
            commands: BTreeMap::from([("write".to_owned(), counters)]),
            copied_to: Copied { commands: count, bytes: count << 20 },
            ..PathCounters::default()
        }
    }

    /// Returns a sample this many seconds after the first; `run` identifies a start of the array.
    pub(in crate::cli::top) fn sample(run: u64, seconds: u64, paths: Vec<PathCounters>) -> Sample {
        let host = Host { name: "esx".into(), iqns: vec!["iqn.a".into()] };
        let commands = paths.first().map(|path| path.commands.clone()).unwrap_or_default();
        let port = PortCounters { id: 1, portal: "192.0.2.1:3260".into(), commands };
        let counters = Counters { paths, ports: vec![port], ..Counters::default() };
        let at = epoch() + Duration::from_secs(seconds);
        Sample::of(at, 1_767_225_600_000 + seconds * 1000, &status(run), &[host], &counters)
    }

    fn status(started_ms: u64) -> Status {
        let pool = Pool {
            id: String::new(),
            epoch: 1,
            capacity_bytes: 100 << 30,
            allocated_bytes: 0,
            used_bytes: 25 << 30,
            data_bytes: 0,
            provisioned_bytes: 0,
            mapped_bytes: 0,
            mapped_data_bytes: 0,
            data_reduction: Some(3.12),
            reduction_without_zeros: Some(2.5),
            reduction_to_allocated: None,
            total_reduction: Some(10.0),
            log_bytes: 0,
            commit_count: 0,
            checkpoint_count: 0,
            written: Written::default(),
            format_version: 3,
            latest_format_version: 3,
            format_is_latest: true,
            upgrade_left_bytes: 0,
        };
        Status {
            name: "attic".into(),
            version: String::new(),
            target_name: String::new(),
            portals: Vec::new(),
            durability: String::new(),
            started_ms,
            volumes: 1,
            snapshots: 0,
            destroyed: 0,
            hosts: 1,
            connections: 1,
            pool,
            optimize: api::Optimize::default(),
        }
    }

    #[test]
    fn objects_without_a_name_are_shown() {
        let unnamed = PathCounters { volume: None, ..path("iqn.a", "", 3) };
        let nowhere = PathCounters { volume_id: None, ..unnamed.clone() };
        let sample = sample(1, 0, vec![unnamed, nowhere]);
        let names: Vec<_> =
            sample.totals.keys().map(|(kind, name)| (*kind, name.as_str())).collect();
        let expected =
            [(Kind::Volume, "(id 1)"), (Kind::Host, "esx"), (Kind::Port, "192.0.2.1:3260")];
        assert_eq!(names, expected);
        assert_eq!(sample.totals[&(Kind::Host, "esx".to_owned())].of("write").ok, 6);
    }
}
