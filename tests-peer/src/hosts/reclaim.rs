//! Unmaps by guests and hosts: the array stores less, guests read zeros, and no other data is lost.

use anyhow::{Context, Result, ensure};
use lab::datastore::{BLOCK_BYTES, NoAutoReclaim};
use lab::disk::{Place, Provisioning, VirtualDisk};
use lab::engine::Engine;
use lab::guest::{GuestDisk, datastore_block};
use lab::host::{EsxVersion, Host};
use lab::vm::{ReclaimPlan, reclaim};

use super::places::{fresh, leave, mapped, must_hold};
use super::{KIB, LOOK, LOOKS, MIB, THREE, connect, wait};
use crate::array::Array;
use crate::target::Target;

const SEED: u64 = 3;
/// The blocks of each disk.
const BLOCKS: u64 = 24;

/// Creates a disk that is written from beginning to end. Returns it and its content.
async fn full(place: &Place, name: &str, kind: Provisioning) -> Result<(GuestDisk, Vec<u8>)> {
    let disk = VirtualDisk::create(place, name, BLOCKS * BLOCK_BYTES, kind).await?;
    disk.fill(0..BLOCKS, 4, |block| datastore_block(SEED, block)).await?;
    let held = (0..BLOCKS).flat_map(|block| datastore_block(SEED, block)).collect();
    Ok((GuestDisk::new(disk), held))
}

/// A host with a datastore on volume `three`.
struct World<'a> {
    array: &'a Array,
    engine: Engine,
    host: Host,
    place: Place,
}

impl<'a> World<'a> {
    fn new(array: &'a Array, target: &Target) -> Result<Self> {
        let mut engine = Engine::new();
        let host = connect(&engine, array, target)?;
        let own = host.clone();
        let place = wait(&mut engine, async move { fresh(&own, THREE).await })?;
        Ok(Self { array, engine, host, place })
    }

    fn full(&mut self, name: &'static str, kind: Provisioning) -> Result<(GuestDisk, Vec<u8>)> {
        let place = self.place.clone();
        wait(&mut self.engine, async move { full(&place, name, kind).await })
    }

    /// Unmaps in a guest, and checks its content. Returns what the disk and the array have freed.
    fn unmap(&mut self, disk: &GuestDisk, held: &[u8], range: (u64, u64)) -> Result<(u64, u64)> {
        let before = mapped(self.array, "three")?;
        let (own, held) = (disk.clone(), held.to_vec());
        let released = wait(&mut self.engine, async move {
            let had = own.base().file().allocated_blocks().await?;
            let released = own.unmap(range.0, range.1).await?;
            let has = own.base().file().allocated_blocks().await?;
            ensure!((had - has) * BLOCK_BYTES == released, "{had} blocks, then {has}");
            must_hold(&own.base(), &held).await?;
            Ok(released)
        })?;
        Ok((released, before - mapped(self.array, "three")?))
    }

    fn leave(mut self) -> Result<()> {
        wait(&mut self.engine, async move { leave(&[self.place]).await })
    }
}

/// In-guest unmap, with `EnableBlockDelete` and without.
pub fn in_guest(array: &Array, target: &Target) -> Result<String> {
    let mut world = World::new(array, target)?;
    let (thin, mut held) = world.full("thin", Provisioning::Thin)?;
    // Blocks 3 to 7: parts of 2 and 8 are in the range, and stay.
    let range = (2 * MIB + 4 * KIB, 6 * MIB);
    held[3 << 20..8 << 20].fill(0);
    let lost = world.unmap(&thin, &held, range)?;
    ensure!(lost == (5 * MIB, 5 * MIB), "disk and array freed {lost:?}");
    let again = world.unmap(&thin, &held, range)?;
    ensure!(again == (0, 0), "disk and array freed {again:?} although nothing was mapped");
    ensure!(world.unmap(&thin, &held, (9 * MIB, MIB - 512))?.0 == 0, "a partial block was freed");

    let (thick, thick_held) = world.full("thick", Provisioning::ZeroedThick)?;
    let lost = world.unmap(&thick, &thick_held, (0, 8 * MIB))?;
    ensure!(lost == (0, 0), "a thick disk and the array freed {lost:?}");
    world.host.set(|settings| settings.version = EsxVersion::V5);
    let lost = world.unmap(&thin, &held, (9 * MIB, MIB))?;
    ensure!(lost == (0, 0), "in 5.x, disk and array freed {lost:?}");
    world.host.set(|settings| settings.version = EsxVersion::V6);

    world.host.set(|settings| settings.block_delete = false);
    held[9 << 20..14 << 20].fill(0);
    let lost = world.unmap(&thin, &held, (9 * MIB, 5 * MIB))?;
    ensure!(lost == (5 * MIB, 0), "without EnableBlockDelete, disk and array freed {lost:?}");
    let before = mapped(array, "three")?;
    let place = world.place.clone();
    let plan = ReclaimPlan::BlocksUnchecked(16);
    wait(&mut world.engine, async move { Ok(reclaim(&place, plan).await?) })?;
    let lost = before - mapped(array, "three")?;
    // The file used for reclaim has a new pointer block.
    ensure!((5 * MIB - 64 * KIB..=5 * MIB).contains(&lost), "a manual reclaim freed {lost} bytes");

    by_percent(&mut world)?;
    let snapped = thin.clone();
    wait(&mut world.engine, async move { Ok(snapped.take_snapshot().await?) })?;
    let lost = world.unmap(&thin, &held, (16 * MIB, 4 * MIB))?;
    ensure!(lost == (0, 0), "below a snapshot, disk and array freed {lost:?}");
    let snapped = thin.clone();
    wait(&mut world.engine, async move { Ok(snapped.remove_snapshot().await?) })?;
    held[16 << 20..20 << 20].fill(0);
    world.host.set(|settings| settings.block_delete = true);
    let lost = world.unmap(&thin, &held, (16 * MIB, 4 * MIB))?;
    ensure!(lost == (4 * MIB, 4 * MIB), "disk and array freed {lost:?}");
    world.leave()?;
    Ok(String::new())
}

/// 5.0 reclaims a percentage in one balloon, which is then removed; it knows no blocks, and other
/// versions no percentage.
fn by_percent(world: &mut World<'_>) -> Result<()> {
    for (version, plan, is_known) in [
        (EsxVersion::V5_0, ReclaimPlan::Percent(50), true),
        (EsxVersion::V5_0, ReclaimPlan::DEFAULT, false),
        (EsxVersion::V5, ReclaimPlan::Percent(50), false),
        (EsxVersion::V5, ReclaimPlan::DEFAULT, true),
    ] {
        world.host.set(|settings| settings.version = version);
        let place = world.place.clone();
        wait(&mut world.engine, async move {
            let free = place.datastore.free_blocks().await?;
            let done = reclaim(&place, plan).await;
            ensure!(done.is_ok() == is_known, "{version:?}, {plan:?}: {done:?}");
            if let (Ok(done), ReclaimPlan::Percent(_)) = (done, plan) {
                ensure!(done.iterations == 1, "{done:?}");
                ensure!(done.bytes == free / 2 * BLOCK_BYTES, "{done:?} of {free} blocks");
            }
            let left = place.datastore.free_blocks().await?;
            ensure!(left == free, "{left} blocks are free, not {free}");
            Ok(())
        })?;
    }
    world.host.set(|settings| settings.version = EsxVersion::V6);
    Ok(())
}

/// The array refuses UNMAP: a guest's disk shrinks nevertheless.
pub fn refused(array: &Array, target: &Target) -> Result<String> {
    let mut world = World::new(array, target)?;
    let (thin, mut held) = world.full("thin", Provisioning::Thin)?;
    let switch = |to: &str| array.verb(&["volume", "set", "three", "--offload", to]).map(drop);
    switch("reclaim=off")?;
    held[..4 << 20].fill(0);
    let lost = world.unmap(&thin, &held, (0, 4 * MIB));
    switch("reclaim=on")?;
    let lost = lost?;
    ensure!(lost == (4 * MIB, 0), "disk and array freed {lost:?}");
    world.leave()?;
    Ok(String::new())
}

/// Automatic reclaim of what a guest unmaps, and of a deleted disk.
pub fn automatic(array: &Array, target: &Target) -> Result<String> {
    let mut world = World::new(array, target)?;
    let datastore = world.place.datastore.clone();
    let why = datastore.auto_reclaim();
    ensure!(why == Err(NoAutoReclaim::Version), "6.0 reclaims by itself: {why:?}");
    world.host.set(|settings| {
        settings.version = EsxVersion::V6_5;
        settings.reclaim_blocks_per_s = 0;
    });
    let why = datastore.auto_reclaim();
    ensure!(why == Err(NoAutoReclaim::Priority), "it is off: {why:?}");
    let (kept, mut held) = world.full("kept", Provisioning::Thin)?;
    let (gone, _) = world.full("gone", Provisioning::EagerZeroedThick)?;
    let before = mapped(array, "three")?;
    world.host.set(|settings| settings.reclaim_blocks_per_s = 64);
    ensure!(datastore.auto_reclaim().is_ok(), "{:?}", datastore.auto_reclaim());
    held[4 << 20..12 << 20].fill(0);
    let (released, _) = world.unmap(&kept, &held, (4 * MIB, 8 * MIB))?;
    ensure!(released == 8 * MIB, "the disk freed {released} bytes");
    let (place, reactor) = (world.place.clone(), world.engine.reactor());
    wait(&mut world.engine, async move {
        gone.base().close().await?;
        place.datastore.delete("gone").await?;
        ensure!(
            place.datastore.auto_reclaimed().pending_blocks > 0,
            "nothing is pending in the background"
        );
        for _ in 0..LOOKS {
            let done = place.datastore.auto_reclaimed();
            ensure!(done.skipped_blocks + done.leaked_blocks == 0, "{done:?}");
            if done.unmapped_blocks == 8 + BLOCKS {
                // All were kept until they were unmapped.
                let has = kept.base().file().allocated_blocks().await?;
                let free = place.datastore.free_blocks().await?;
                ensure!(free + has == place.datastore.capacity_blocks(), "{free} are free");
                must_hold(&kept.base(), &held).await?;
                return Ok(kept.base().close().await?);
            }
            reactor.sleep(LOOK).await;
        }
        anyhow::bail!("automatic reclaim does not end: {:?}", place.datastore.auto_reclaimed())
    })
    .context("in the background")?;
    let lost = before - mapped(array, "three")?;
    ensure!(lost == (8 + BLOCKS) * MIB, "the array freed {lost} bytes");
    world.leave()?;
    Ok(format!("{} MiB", lost / MIB))
}
