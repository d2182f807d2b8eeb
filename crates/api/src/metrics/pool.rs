//! Metrics of the array, its space, and its background work.

use super::Exposition;
use crate::{Interface, Optimize, Pool, Scrub, SpaceFigures};

/// Adds the array: its version, its start time, and the number of its objects.
pub(super) fn array(interface: &Interface, page: &mut Exposition) {
    let (facts, counts) = (&interface.facts, interface.array.counts());
    let name = interface.array.name();
    page.gauge("holdfast_info", "The array and the version of its program; always 1.")
        .count(&[("name", &name), ("version", &facts.version)], 1);
    page.gauge("holdfast_start_time_seconds", "The start time of the program, since 1970.")
        .add(&[], facts.started_ms as f64 / 1000.0);
    page.gauge("holdfast_volumes", "Volumes that are not destroyed.")
        .count(&[], counts.volumes as u64);
    page.gauge("holdfast_snapshots", "Snapshots that are not destroyed.")
        .count(&[], counts.snapshots as u64);
    page.gauge(
        "holdfast_destroyed_objects",
        "Destroyed volumes and snapshots that are not eradicated yet.",
    )
    .count(&[], counts.destroyed as u64);
    page.gauge("holdfast_hosts", "Hosts.").count(&[], counts.hosts as u64);
    page.gauge("holdfast_connections", "Volumes that are connected to hosts and host groups.")
        .count(&[], counts.connections as u64);
}

/// Adds the space of the pool.
pub(super) fn space(interface: &Interface, page: &mut Exposition) {
    let pool = Pool::from(interface.array.pool());
    for (name, help, bytes) in [
        ("capacity", "The capacity of the pool.", pool.capacity_bytes),
        ("used", "Bytes of the pool that are in use.", pool.used_bytes),
        ("allocated", "Bytes that can't be written before reclaim.", pool.allocated_bytes),
        ("data", "Bytes of volume data that are stored, after reduction.", pool.data_bytes),
        ("provisioned", "Bytes that volumes are provisioned for.", pool.provisioned_bytes),
        ("mapped", "Bytes that hosts have written and not unmapped.", pool.mapped_bytes),
        (
            "mapped_data",
            "Bytes that hosts have written and not unmapped, without zeros and patterns.",
            pool.mapped_data_bytes,
        ),
        ("log", "Bytes of log that a recovery would replay.", pool.log_bytes),
    ] {
        page.gauge(&format!("holdfast_pool_{name}_bytes"), help).count(&[], bytes);
    }
    for (name, help, value) in [
        (
            "data_reduction",
            "Mapped bytes, including zeros, for each stored byte; absent if nothing is stored.",
            pool.data_reduction,
        ),
        (
            "reduction_without_zeros",
            "Mapped bytes of data for each stored byte; absent if nothing is stored.",
            pool.reduction_without_zeros,
        ),
        (
            "reduction_to_allocated",
            "Mapped bytes of data for each allocated byte.",
            pool.reduction_to_allocated,
        ),
    ] {
        let mut ratio = page.gauge(&format!("holdfast_pool_{name}_ratio"), help);
        if let Some(value) = value {
            ratio.add(&[], value);
        }
    }
    let help = "Provisioned bytes for each stored byte; absent if nothing is stored.";
    let mut ratio = page.gauge("holdfast_pool_total_reduction_ratio", help);
    if let Some(value) = pool.total_reduction {
        ratio.add(&[], value);
    }
    let Some(figures) = interface.array.pool_space().figures.map(SpaceFigures::from) else {
        return;
    };
    let help = "Stored bytes by kind of object, as of the last pass of accounting.";
    page.gauge("holdfast_pool_space_bytes", help)
        .count(&[("kind", "unique")], figures.unique_bytes)
        .count(&[("kind", "shared")], figures.shared_bytes)
        .count(&[("kind", "snapshots")], figures.snapshots_bytes)
        .count(&[("kind", "system")], figures.system_bytes);
    page.gauge("holdfast_pool_space_time_seconds", "The time of that pass, since 1970.")
        .add(&[], figures.as_of_ms as f64 / 1000.0);
}

/// Adds background work, and its findings.
pub(super) fn work(interface: &Interface, page: &mut Exposition) {
    let pool = interface.array.pool();
    page.counter("holdfast_commits_total", "Commits since the start.")
        .count(&[], pool.commit_count);
    page.counter("holdfast_checkpoints_total", "Checkpoints since the start.")
        .count(&[], pool.checkpoint_count);
    page.counter("holdfast_written_bytes_total", "Bytes written since the start, by cause.")
        .count(&[("what", "hosts")], pool.written.hosts_bytes)
        .count(&[("what", "log")], pool.written.log_bytes)
        .count(&[("what", "moved")], pool.written.moved_bytes)
        .count(&[("what", "checkpoint")], pool.written.checkpoint_bytes);
    scrub(&interface.array.scrub().into(), page);
    optimize(&interface.array.optimize().into(), page);
}

fn scrub(scrub: &Scrub, page: &mut Exposition) {
    page.gauge("holdfast_damaged_objects", "Damaged items that could not be repaired.")
        .count(&[], scrub.damaged);
    page.counter("holdfast_damage_found_total", "Damage found since the start.")
        .count(&[], scrub.findings);
    page.counter("holdfast_damage_repaired_total", "Damage repaired since the start.")
        .count(&[], scrub.repairs);
    page.counter("holdfast_scrubbed_bytes_total", "Bytes that scrubbing read since the start.")
        .count(&[], scrub.scrubbed_bytes);
    page.gauge("holdfast_scrub_running", "Whether scrubbing is in progress.")
        .count(&[], scrub.running.into());
    page.gauge(
        "holdfast_scrub_completed_time_seconds",
        "The end of the last pass; 0 if there was none.",
    )
    .add(&[], scrub.completed_ms as f64 / 1000.0);
}

fn optimize(optimize: &Optimize, page: &mut Exposition) {
    page.gauge("holdfast_optimize_running", "Whether the background pass is in progress.")
        .count(&[], optimize.running.into());
    page.counter("holdfast_optimize_passes_total", "Background passes since the start, by end.")
        .count(&[("result", "complete")], optimize.passes)
        .count(&[("result", "failed")], optimize.failed_passes);
}
