//! Two hosts that work on one datastore, and coordinate only through the array.

use anyhow::{Result, ensure};
use lab::datastore::{BLOCK_BYTES, DatastoreError, Mode};
use lab::disk::{DiskError, Place, Provisioning, VirtualDisk};
use lab::engine::Engine;
use lab::guest::datastore_block;
use lab::host::{Class, Host};
use lab::scenario::verify_disk;

use super::places::{fresh, join, leave, two_hosts};
use super::{THREE, wait};
use crate::array::Array;
use crate::target::Target;

/// The disks that each host creates, and keeps one of.
const DISKS: u64 = 6;
/// The blocks of each.
const BLOCKS: u64 = 3;

/// Creates, writes and deletes disks on both hosts at once; each host then wants the other's disk.
pub fn shared(array: &Array, target: &Target, by_ats: bool) -> Result<String> {
    let mut engine = Engine::new();
    let hosts = two_hosts(&engine, array, target)?;
    for host in &hosts {
        host.set(|settings| {
            (settings.accelerated_locking, settings.ats_heartbeat) = (by_ats, by_ats);
        });
    }
    let own = hosts.clone();
    let [one, two] = wait(&mut engine, async move { meet(&own).await })?;
    for host in &hosts {
        let unused = host.paths().iter().find(|path| path.commands() < DISKS);
        ensure!(unused.is_none(), "{} hardly uses a path: {unused:?}", host.name());
    }
    let counters = [one.datastore.counters(), two.datastore.counters()];
    for (place, counters) in [&one, &two].into_iter().zip(counters) {
        let ats = place.device.totals().of(Class::Ats);
        let commands = ats.good.count + ats.failed.count;
        let are_as_set = (counters.reservations == 0, commands > 0) == (by_ats, by_ats);
        ensure!(are_as_set, "{commands} COMPARE AND WRITE, and {counters:?}");
        ensure!(counters.broken == 0 && counters.acquired == counters.released, "{counters:?}");
    }
    let met: u64 = counters.iter().map(|counters| counters.miscompares + counters.conflicts).sum();
    Ok(format!("{met} conflicts"))
}

async fn meet(hosts: &[Host; 2]) -> Result<[Place; 2]> {
    let one = fresh(&hosts[0], THREE).await?;
    let two = join(hosts[1].claim(THREE).await?).await?;
    let (mine, theirs) = futures::try_join!(work(&one, "a", 1), work(&two, "b", 2))?;
    ensure!(one.datastore.list().await?.len() == 2, "two disks are left");
    for (place, wanted, holder) in [(&two, &mine, &one), (&one, &theirs, &two)] {
        let name = wanted.name();
        let end = VirtualDisk::open(place, &name, Mode::Exclusive, Provisioning::Thin).await;
        let holder = holder.datastore.host();
        let is_locked = matches!(
            &end,
            Err(DiskError::Datastore(DatastoreError::Locked { host, .. })) if *host == holder
        );
        ensure!(is_locked, "the other host has {name} open, but opening it ended with {end:?}");
        let end = place.datastore.delete(&name).await;
        ensure!(matches!(end, Err(DatastoreError::Locked { .. })), "{name}: {end:?}");
    }
    for (place, disk, seed) in [(&two, mine, 1), (&one, theirs, 2)] {
        disk.close().await?;
        let name = disk.name();
        let disk = VirtualDisk::open(place, &name, Mode::Exclusive, Provisioning::Thin).await?;
        verify_disk(&disk, seed, &blocks()).await?;
        disk.close().await?;
    }
    leave(&[one.clone(), two.clone()]).await?;
    Ok([one, two])
}

fn blocks() -> Vec<u64> {
    (0..BLOCKS).collect()
}

/// Creates disks and deletes them; the last one stays open.
async fn work(place: &Place, prefix: &str, seed: u64) -> Result<VirtualDisk> {
    for number in 1.. {
        let name = format!("{prefix}{number}");
        let bytes = 2 * BLOCKS * BLOCK_BYTES;
        let disk = VirtualDisk::create(place, &name, bytes, Provisioning::Thin).await?;
        disk.fill(blocks(), 2, |block| datastore_block(seed, block)).await?;
        verify_disk(&disk, seed, &blocks()).await?;
        if number == DISKS {
            return Ok(disk);
        }
        disk.close().await?;
        place.datastore.delete(&name).await?;
    }
    anyhow::bail!("no disk was created")
}
