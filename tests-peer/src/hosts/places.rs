//! Hosts with datastores on the array's small volumes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::datastore::{Datastore, MountOptions, fsck};
use lab::disk::{Place, VirtualDisk};
use lab::engine::Engine;
use lab::host::{Device, Host};

use super::{SMALL, connect_as};
use crate::array::Array;
use crate::target::{Target, second};

/// Returns two hosts, each with its own name and paths through every portal.
pub fn two_hosts(engine: &Engine, array: &Array, target: &Target) -> Result<[Host; 2]> {
    let other = target.as_initiator(&second(&target.initiator));
    Ok([connect_as(engine, array, target, "esx-1")?, connect_as(engine, array, &other, "esx-2")?])
}

/// Creates a datastore on one of the small volumes, after unmapping it.
pub async fn fresh(host: &Host, lun: u16) -> Result<Place> {
    let device = host.claim(lun).await?;
    ensure!(device.bytes() == SMALL, "the volume has another size");
    device.unmap(&[(0, SMALL)]).await?;
    format(device).await
}

/// Creates a datastore over any content of a device.
pub async fn format(device: Device) -> Result<Place> {
    Datastore::format(&device, "small").await?;
    join(device).await
}

/// Mounts an existing datastore, with frequent heartbeats, so that others soon learn that it is
/// alive.
pub async fn join(device: Device) -> Result<Place> {
    let options = MountOptions::of_host(device.host().name());
    let options = MountOptions { heartbeat_interval: Duration::from_millis(200), ..options };
    let datastore = Datastore::mount(&device, options).await?;
    Ok(Place { device, datastore })
}

/// Unmounts all, and checks what remains.
pub async fn leave(places: &[Place]) -> Result<()> {
    for place in places {
        place.datastore.unmount().await?;
    }
    for place in places {
        let report = fsck(&place.device).await?;
        ensure!(report.is_clean() && report.hosts == 0, "fsck finds: {report}");
    }
    Ok(())
}

/// Returns how much of a volume is mapped, according to the array.
pub fn mapped(array: &Array, volume: &str) -> Result<u64> {
    let shown = array.verb(&["volume", "show", volume])?;
    shown["mapped_bytes"].as_u64().context("no mapped_bytes")
}

/// Returns an error unless a disk contains this.
pub async fn must_hold(disk: &VirtualDisk, expected: &[u8]) -> Result<()> {
    let held = disk.read(0, disk.bytes()).await?;
    let wrong = held.iter().zip(expected).position(|(held, expected)| held != expected);
    ensure!(held.len() == expected.len(), "{} has another size", disk.name());
    ensure!(wrong.is_none(), "{} differs at byte {wrong:?}", disk.name());
    Ok(())
}
