//! Disks of every kind on a volume with other data: what a guest has not written reads as zeros,
//! and what it has written is present.

use anyhow::{Context, Result, ensure};
use lab::datastore::{BLOCK_BYTES, BlockState, Mode};
use lab::disk::{Place, Provisioning, VirtualDisk};
use lab::engine::Engine;
use lab::host::{Device, Host};
use lab::random::Random;

use super::places::{format, leave, must_hold};
use super::{KIB, SMALL, THREE, connect, wait};
use crate::array::Array;
use crate::target::Target;

/// The byte that fills the volume.
const OTHER: u8 = 0xA5;
/// The blocks of each disk.
const BLOCKS: u64 = 6;
/// The guest's requests, of up to [`LENGTH_MAX`] pieces of 4 KiB.
const WRITES: usize = 12;
const LENGTH_MAX: u64 = 80;

/// Tests all kinds, zeroed by the array and by the host.
pub fn kinds(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    for is_offloaded in [true, false] {
        host.set(|settings| settings.accelerated_init = is_offloaded);
        let own = host.clone();
        wait(&mut engine, async move { all(&own).await })
            .with_context(|| format!("with WRITE SAME: {is_offloaded}"))?;
    }
    Ok(String::new())
}

async fn all(host: &Host) -> Result<()> {
    let device = host.claim(THREE).await?;
    let other = vec![OTHER; BLOCK_BYTES as usize];
    for offset in (0..SMALL).step_by(BLOCK_BYTES as usize) {
        device.write(offset, &other).await?;
    }
    let place = format(device).await?;
    for kind in [Provisioning::Thin, Provisioning::ZeroedThick, Provisioning::EagerZeroedThick] {
        one(&place, kind).await.with_context(|| format!("{kind:?}"))?;
    }
    leave(&[place]).await
}

async fn one(place: &Place, kind: Provisioning) -> Result<()> {
    let name = format!("{kind:?}");
    // Its last block is short.
    let bytes = BLOCKS * BLOCK_BYTES - 64 * KIB;
    let disk = VirtualDisk::create(place, &name, bytes, kind).await?;
    let mut expected = vec![0; bytes as usize];
    must_hold(&disk, &expected).await.context("before it is written")?;
    for extent in disk.file().extents(0, BLOCKS).await? {
        let is_zero = |device: Device, at| async move {
            let held = device.read(at, 4 * KIB).await?;
            anyhow::Ok(held.iter().all(|byte| *byte == 0))
        };
        let is_right = match (kind, extent.state) {
            (Provisioning::Thin, state) => state == BlockState::Absent,
            (Provisioning::ZeroedThick, BlockState::ToBeZeroed(at)) => {
                !is_zero(place.device.clone(), at).await?
            }
            (Provisioning::EagerZeroedThick, BlockState::Present(at)) => {
                is_zero(place.device.clone(), at).await?
            }
            _ => false,
        };
        ensure!(is_right, "the volume's content does not match this kind: {extent:?}");
    }
    let mut random = Random::new(kind as u64 + 1);
    for _ in 0..WRITES {
        let pieces = 1 + random.below(LENGTH_MAX);
        let offset = random.below(bytes / (4 * KIB) - pieces) * 4 * KIB;
        let mut data = vec![0; (pieces * 4 * KIB) as usize];
        random.fill(&mut data);
        disk.write(offset, &data).await?;
        expected[offset as usize..offset as usize + data.len()].copy_from_slice(&data);
    }
    must_hold(&disk, &expected).await.context("after it was written")?;
    disk.close().await?;
    let again = VirtualDisk::open(place, &name, Mode::Exclusive, kind).await?;
    must_hold(&again, &expected).await.context("after it was reopened")?;
    Ok(again.close().await?)
}
