//! The data mover: copies by the array, by the host, and switching between both during a copy.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::datastore::BLOCK_BYTES;
use lab::disk::{Place, Provisioning, VirtualDisk};
use lab::engine::Engine;
use lab::guest::datastore_block;
use lab::host::{EsxVersion, Host, Offloaded, Primitive, Settings};
use lab::mover::{Moved, Mover};
use lab::scenario::verify_disk;

use super::places::{fresh, leave};
use super::{FOUR, MIB, THREE, connect, wait};
use crate::array::Array;
use crate::target::Target;

const SEED: u64 = 7;
/// The blocks of the source, and those of them that are written.
const BLOCKS: u64 = 48;
const WRITTEN: u64 = 40;
/// How much the array has copied when it stops.
const COPIED: u64 = 8 * MIB;
/// How long the host then copies by itself.
const PAUSE: Duration = Duration::from_millis(300);

/// Creates a source that another disk fragments, and a destination.
async fn places(host: &Host) -> Result<(VirtualDisk, Place)> {
    let from = fresh(host, THREE).await?;
    let make = |name| VirtualDisk::create(&from, name, BLOCKS * BLOCK_BYTES, Provisioning::Thin);
    let (source, beside) = (make("source").await?, make("beside").await?);
    let fill = |disk: &VirtualDisk, seed| {
        let disk = disk.clone();
        async move { disk.fill(0..WRITTEN, 4, |block| datastore_block(seed, block)).await }
    };
    futures::try_join!(fill(&source, SEED), fill(&beside, !SEED))?;
    let runs = source.present().await?.len();
    ensure!(runs > 4, "the source has {runs} extents: it is not fragmented");
    beside.close().await?;
    Ok((source, fresh(host, FOUR).await?))
}

async fn copy(mover: &Mover, source: &VirtualDisk, to: &Place) -> Result<()> {
    let made = VirtualDisk::create_unzeroed(to, "copy", source.bytes(), source.provisioning());
    let destination = made.await?;
    mover.copy(source, &destination).await?;
    let blocks: Vec<u64> = (0..WRITTEN).collect();
    verify_disk(&destination, SEED, &blocks).await?;
    destination.close().await?;
    to.datastore.delete("copy").await?;
    Ok(())
}

/// Copies of every transfer size equal their source, and the array does all the work.
pub fn copies(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    let own = host.clone();
    wait(&mut engine, async move {
        let (source, to) = places(&own).await?;
        let sizes = [(EsxVersion::V5, 16, 1), (EsxVersion::V6, 16, 1), (EsxVersion::V6, 240, 8)];
        for (version, mib, transfer_segments) in sizes {
            let transfer_bytes = mib * MIB;
            own.set(|now| {
                *now = Settings { version, transfer_bytes, transfer_segments, ..*now };
            });
            let mover = Mover::new(&own);
            copy(&mover, &source, &to).await.with_context(|| format!("{version:?}, {mib} MiB"))?;
            let all = Moved { offloaded_bytes: WRITTEN * MIB, ..Moved::default() };
            ensure!(mover.moved() == all, "{version:?}, {mib} MiB: {:?}", mover.moved());
        }
        leave(&[source.place().clone(), to]).await
    })?;
    Ok(String::new())
}

/// The array stops copying in the middle of a copy, and begins again.
pub fn switched(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    host.set(|settings| {
        (settings.copies_in_flight, settings.transfer_bytes) = (1, MIB);
        settings.retry_offload = PAUSE;
    });
    let own = host.clone();
    let (source, to) = wait(&mut engine, async move { places(&own).await })?;
    let mover = Mover::new(&host);
    let reactor = engine.reactor();
    let task = {
        let (mover, source, to) = (mover.clone(), source.clone(), to.clone());
        reactor.spawn(async move { copy(&mover, &source, &to).await })
    };
    let (seen, turns) = (mover.clone(), reactor.clone());
    wait(&mut engine, async move {
        while seen.moved().offloaded_bytes < COPIED {
            turns.step_back().await;
        }
        Ok(())
    })?;
    // Nothing else happens here meanwhile.
    let switch = |to: &str| array.verb(&["volume", "set", "four", "--offload", to]).map(drop);
    switch("full-copy=off")?;
    wait(&mut engine, task)?;
    let moved = mover.moved();
    let Moved { offloaded_bytes, by_hand_bytes, refusals } = moved;
    ensure!(offloaded_bytes >= COPIED && by_hand_bytes > 0 && refusals > 0, "{moved:?}");
    ensure!(offloaded_bytes + by_hand_bytes == WRITTEN * MIB, "{moved:?}");
    let noted = host.offloads().of(Primitive::Move);
    let Offloaded { done_bytes, refused, by_hand_bytes: noted_by_hand, .. } = noted;
    let is_noted =
        (done_bytes, refused, noted_by_hand) == (offloaded_bytes, refusals, by_hand_bytes);
    ensure!(is_noted, "the host counted {noted:?}, the mover {moved:?}");

    switch("full-copy=on")?;
    let later = Mover::new(&host);
    let own = later.clone();
    wait(&mut engine, async move {
        reactor.sleep(PAUSE).await;
        copy(&own, &source, &to).await?;
        leave(&[source.place().clone(), to]).await
    })?;
    let all = Moved { offloaded_bytes: WRITTEN * MIB, ..Moved::default() };
    ensure!(later.moved() == all, "after the pause: {:?}", later.moved());
    Ok(format!("{} MiB by the array, {} by the host", offloaded_bytes / MIB, by_hand_bytes / MIB))
}
