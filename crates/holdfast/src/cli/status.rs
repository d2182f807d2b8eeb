//! `status`.

use api::Status;

use super::args::Common;
use super::client::Client;
use super::failure::Failure;
use super::optimize;
use super::output::{facts, show, time};
use super::size::human;
use super::space::reduction;

/// Shows the state of the array.
pub fn run(common: &Common) -> Result<(), Failure> {
    let status: Status = Client::find(common)?.get("/v1/status")?;
    show(common.form, &status, || text(&status))
}

fn text(status: &Status) -> String {
    let pool = &status.pool;
    let of_capacity = |bytes: u64| {
        let percent = bytes as f64 * 100.0 / pool.capacity_bytes.max(1) as f64;
        format!("{} ({percent:.1}%)", human(bytes))
    };
    facts(&[
        ("Array", format!("{} (Holdfast {})", status.name, status.version)),
        ("Target", status.target_name.clone()),
        ("Portals", status.portals.join(" ")),
        ("Running since", time(status.started_ms)),
        ("Durability", status.durability.clone()),
        ("Volumes", status.volumes.to_string()),
        ("Snapshots", status.snapshots.to_string()),
        ("Destroyed", status.destroyed.to_string()),
        ("Hosts", status.hosts.to_string()),
        ("Connections", status.connections.to_string()),
        ("Pool", format!("{} (opened {} times)", pool.id, pool.epoch)),
        ("Capacity", human(pool.capacity_bytes)),
        ("Allocated", of_capacity(pool.allocated_bytes)),
        ("In use", of_capacity(pool.used_bytes)),
        ("Free", of_capacity(pool.capacity_bytes.saturating_sub(pool.used_bytes))),
        ("Data", of_capacity(pool.data_bytes)),
        ("Provisioned", human(pool.provisioned_bytes)),
        ("Mapped", human(pool.mapped_bytes)),
        ("Mapped data", format!("{} (without zeros)", human(pool.mapped_data_bytes))),
        ("Data reduction", format!("{} (with zeros)", reduction(pool.data_reduction))),
        ("Without zeros", reduction(pool.reduction_without_zeros)),
        ("Of allocated", reduction(pool.reduction_to_allocated)),
        ("Total reduction", reduction(pool.total_reduction)),
        ("Log to replay", human(pool.log_bytes)),
        ("Commits", pool.commit_count.to_string()),
        ("Checkpoints", pool.checkpoint_count.to_string()),
        ("Write amplification", reduction(pool.written.amplification)),
        ("Background pass", optimize::brief(&status.optimize)),
    ])
}
