//! Metrics of hosts' commands: in total, by volume and by host; also of sockets and memory.

use std::collections::BTreeMap;

use block::VolumeId;

use super::{Exposition, Family, add_latencies};
use crate::{CommandCounters, Counters, Interface, PathCounters};

/// How many volumes or hosts are read while a lock is held.
const PIECE: usize = 250;

/// Commands by class.
type Commands = BTreeMap<String, CommandCounters>;

/// Adds the commands of all hosts and their costs, and the same for a limited number of volumes and
/// hosts.
pub(super) fn add(interface: &Interface, page: &mut Exposition, volumes: usize, hosts: usize) {
    let counters = interface.telemetry.counters();
    command_families(page, "", "by class", &[("", "", &counters.totals)]);
    durations(&counters, page);
    page.counter("holdfast_received_bytes_total", "Bytes of TCP payload received.")
        .count(&[], counters.wire.received_bytes);
    page.counter("holdfast_sent_bytes_total", "Bytes of TCP payload sent.")
        .count(&[], counters.wire.sent_bytes);
    page.gauge("holdfast_tcp_connections", "iSCSI connections that are open.")
        .count(&[], counters.wire.connections);
    memory(&counters, page);
    let shown = of_volumes(interface, page, &counters.paths, volumes);
    let hosts_shown = of_hosts(interface, page, &counters.paths, hosts);
    let counts = interface.array.counts();
    page.gauge("holdfast_objects_without_metrics", "Objects beyond the bound on series.")
        .count(&[("kind", "volume")], counts.volumes.saturating_sub(shown) as u64)
        .count(&[("kind", "host")], counts.hosts.saturating_sub(hosts_shown) as u64);
}

/// Adds the latencies of commands.
fn durations(counters: &Counters, page: &mut Exposition) {
    let help = "Latency of successful commands, by class.";
    let mut family = page.histogram("holdfast_command_duration_seconds", help);
    for (class, counts) in &counters.totals {
        add_latencies(&mut family, &[("class", class)], &counts.latencies, counts.ok_latency_us);
    }
}

fn memory(counters: &Counters, page: &mut Exposition) {
    let memory = counters.memory;
    page.gauge("holdfast_memory_bytes", "Memory in use, by part.")
        .count(&[("part", "data_cache")], memory.data_cache_bytes)
        .count(&[("part", "metadata")], memory.metadata_bytes);
    page.gauge("holdfast_memory_limit_bytes", "The limit of memory, by part.")
        .count(&[("part", "data_cache")], memory.data_cache_limit_bytes)
        .count(&[("part", "metadata")], memory.metadata_limit_bytes)
        .count(&[("part", "index")], memory.index_limit_bytes);
    page.counter("holdfast_metadata_lookups_total", "Look-ups of metadata since the start.")
        .count(&[("result", "hit")], memory.hits)
        .count(&[("result", "miss")], memory.misses);
    page.counter("holdfast_metadata_evictions_total", "Metadata evicted from memory.")
        .count(&[], memory.evictions);
}

/// Adds the commands of volumes; returns how many volumes were added.
fn of_volumes(
    interface: &Interface,
    page: &mut Exposition,
    paths: &[PathCounters],
    most: usize,
) -> usize {
    let volumes = in_pieces(
        most,
        |after, limit| interface.array.volumes(after, false, limit),
        |volume| &volume.name,
    );
    let mut sizes = page.gauge("holdfast_volume_size_bytes", "The provisioned size of a volume.");
    for volume in &volumes {
        sizes.count(&[("volume", &volume.name)], volume.size_bytes);
    }
    let mut mapped =
        page.gauge("holdfast_volume_mapped_bytes", "Bytes that hosts have written to it.");
    for volume in &volumes {
        mapped.count(&[("volume", &volume.name)], volume.mapped_bytes);
    }
    let help = "Stored bytes that eradicating it would free, as of the last pass of accounting.";
    let mut unique = page.gauge("holdfast_volume_unique_bytes", help);
    for volume in &volumes {
        if let Some(object) = &volume.space {
            unique.count(&[("volume", &volume.name)], object.space.unique_bytes);
        }
    }
    limits(&volumes, page);
    group_limits(interface, page);
    let done = sums(paths, |path| path.volume_id.map(VolumeId));
    let rows = volumes.iter().filter_map(|volume| {
        let commands = done.get(&volume.id)?;
        Some(("volume", volume.name.as_str(), commands))
    });
    command_families(page, "volume_", "of a volume, by class", &rows.collect::<Vec<_>>());
    volumes.len()
}

/// Adds the limits of the volumes that have limits.
fn limits(volumes: &[array::VolumeInfo], page: &mut Exposition) {
    let help = "The limit of a volume, in reads, writes and offloads a second.";
    let mut iops = page.gauge("holdfast_volume_limit_commands_per_second", help);
    for volume in volumes {
        if let Some(limit) = volume.limits.iops {
            iops.count(&[("volume", &volume.name)], limit);
        }
    }
    let help = "The limit of a volume, in bytes a second.";
    let mut bandwidth = page.gauge("holdfast_volume_limit_bytes_per_second", help);
    for volume in volumes {
        if let Some(limit) = volume.limits.bandwidth_bytes_per_s {
            bandwidth.count(&[("volume", &volume.name)], limit);
        }
    }
}

/// Adds the limits of the volume groups that have limits. There are few groups.
fn group_limits(interface: &Interface, page: &mut Exposition) {
    let groups = interface.array.volume_group_limits_by_name();
    let help = "The limit of the volumes of a group, in reads, writes and offloads a second.";
    let mut iops = page.gauge("holdfast_volume_group_limit_commands_per_second", help);
    for (name, limits) in &groups {
        if let Some(limit) = limits.iops {
            iops.count(&[("volume_group", name)], limit);
        }
    }
    let help = "The limit of the volumes of a group, in bytes a second.";
    let mut bandwidth = page.gauge("holdfast_volume_group_limit_bytes_per_second", help);
    for (name, limits) in &groups {
        if let Some(limit) = limits.bandwidth_bytes_per_s {
            bandwidth.count(&[("volume_group", name)], limit);
        }
    }
}

/// Adds the commands of hosts; returns how many hosts were added.
fn of_hosts(
    interface: &Interface,
    page: &mut Exposition,
    paths: &[PathCounters],
    most: usize,
) -> usize {
    let hosts =
        in_pieces(most, |after, limit| interface.array.hosts(after, limit), |host| &host.name);
    let mut connections = page.gauge("holdfast_host_connections", "Volumes that a host sees.");
    for host in &hosts {
        connections.count(&[("host", &host.name)], host.connection_count as u64);
    }
    let named = hosts.iter().enumerate();
    let of: BTreeMap<&str, usize> = named
        .flat_map(|(at, host)| host.initiators.iter().map(move |name| (name.as_str(), at)))
        .collect();
    let done = sums(paths, |path| of.get(path.initiator.as_str()).copied());
    let rows = done.iter().map(|(at, commands)| ("host", hosts[*at].name.as_str(), commands));
    command_families(page, "host_", "of a host, by class", &rows.collect::<Vec<_>>());
    hosts.len()
}

/// Returns the sums over all paths with the same key.
fn sums<K: Ord>(
    paths: &[PathCounters],
    key: impl Fn(&PathCounters) -> Option<K>,
) -> BTreeMap<K, Commands> {
    let mut sums: BTreeMap<K, Commands> = BTreeMap::new();
    for path in paths {
        let Some(key) = key(path) else { continue };
        let sum = sums.entry(key).or_default();
        for (class, counts) in &path.commands {
            sum.entry(class.clone()).or_default().add(counts);
        }
    }
    sums
}

/// Adds the three families of commands: the count of the latencies is the number of commands.
fn command_families(page: &mut Exposition, of: &str, help: &str, rows: &[(&str, &str, &Commands)]) {
    let name = format!("holdfast_{of}commands_total");
    let mut total = page.counter(&name, &format!("Commands {help} and result."));
    each(&mut total, rows, |family, labels, result, counts| {
        let count = if result == "ok" { counts.ok } else { counts.failed };
        family.count(labels, count);
    });
    let name = format!("holdfast_{of}command_latency_seconds");
    let mut latency = page.summary(&name, &format!("Latency of commands {help} and result."));
    each(&mut latency, rows, |family, labels, result, counts| {
        let (count, sum_us) = match result {
            "ok" => (counts.ok, counts.ok_latency_us),
            _ => (counts.failed, counts.failed_latency_us),
        };
        family.sum(labels, count, sum_us as f64 / 1e6);
    });
    let name = format!("holdfast_{of}command_bytes_total");
    let help = format!("Bytes that commands read, wrote, copied, zeroed or unmapped, {help}.");
    let mut bytes = page.counter(&name, &help);
    for (label, object, commands) in rows {
        for (class, counts) in *commands {
            bytes.count(&labels(label, object, class), counts.bytes);
        }
    }
}

fn each(
    family: &mut Family<'_>,
    rows: &[(&str, &str, &Commands)],
    add: impl Fn(&mut Family<'_>, &[(&str, &str)], &str, &CommandCounters),
) {
    for (label, object, commands) in rows {
        for (class, counts) in *commands {
            for result in ["ok", "failed"] {
                let mut labels = labels(label, object, class);
                labels.push(("result", result));
                add(family, &labels, result, counts);
            }
        }
    }
}

/// Returns the labels. For the sum over all objects, the class is the only one.
fn labels<'a>(label: &'a str, object: &'a str, class: &'a str) -> Vec<(&'a str, &'a str)> {
    match label {
        "" => vec![("class", class)],
        _ => vec![(label, object), ("class", class)],
    }
}

/// Returns the first `limit` objects of a list, read in pieces so that no lock is held for long.
fn in_pieces<T>(
    most: usize,
    piece: impl Fn(Option<&str>, usize) -> Vec<T>,
    name: impl Fn(&T) -> &String,
) -> Vec<T> {
    let mut all: Vec<T> = Vec::new();
    while all.len() < most {
        let limit = PIECE.min(most - all.len());
        let found = piece(all.last().map(|last| name(last).as_str()), limit);
        let is_last = found.len() < limit;
        all.extend(found);
        if is_last {
            break;
        }
    }
    all
}
