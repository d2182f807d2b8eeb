//! Round-robin over paths, and lost paths.

use anyhow::{Context, Result, bail, ensure};
use lab::engine::Engine;
use lab::host::{Device, Host};

use super::{KIB, LOOK, LOOKS, MIB, claim, connect, wait};
use crate::array::Array;
use crate::target::Target;

/// The number of tasks that write and read while paths are cut, and of rounds of each.
const WRITERS: u64 = 64;
const ROUNDS: u64 = 12;

/// Counts the commands over each path while they were sent sequentially.
pub fn turns(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    let [one, _] = claim(&mut engine, &host)?;
    let mut told = Vec::new();
    for limit in [1, 3] {
        host.set(|settings| settings.io_limit = limit);
        let (device, own) = (one.clone(), host.clone());
        let order = wait(&mut engine, async move {
            let mut order = Vec::new();
            for _ in 0..24 {
                let before: Vec<u64> = own.paths().iter().map(|path| path.commands()).collect();
                device.read(0, 4 * KIB).await?;
                let after = own.paths().iter().map(|path| path.commands());
                let took = after.zip(before).position(|(after, before)| after > before);
                order.push(took.context("no path has carried the command")?);
            }
            Ok(order)
        })?;
        // The run in progress when the limit changed does not count.
        let runs = runs(&order);
        let whole = runs.get(1..runs.len() - 1).unwrap_or_default();
        ensure!(whole.len() > 4, "the path does not change: {order:?}");
        ensure!(whole.iter().all(|run| *run == limit as usize), "limit {limit}: {order:?}");
        told.push(format!("{} turns of {limit}", whole.len()));
    }
    Ok(told.join(", "))
}

/// Returns the lengths of runs of equal numbers.
fn runs(order: &[usize]) -> Vec<usize> {
    order.chunk_by(|a, b| a == b).map(<[usize]>::len).collect()
}

/// Cuts each path in turn while many tasks write and read.
pub fn cuts(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    let [one, _] = claim(&mut engine, &host)?;
    let (device, own) = (one.clone(), host.clone());
    wait(&mut engine, async move {
        let reactor = own.reactor().clone();
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| reactor.spawn(write_and_read(device.clone(), writer)))
            .collect();
        for path in own.paths() {
            // All writers have a command in progress when the first path is cut.
            reactor.step_back().await;
            path.cut();
            ensure!(!path.is_up(), "a path is up although it was cut");
            back(&own).await?;
        }
        for writer in writers {
            writer.await?;
        }
        Ok(())
    })?;
    let retries = one.totals().retries;
    ensure!(retries > 0, "no command was in flight on a path that was cut");
    for path in host.paths() {
        ensure!(path.losses() == 1, "{} was lost {} times", path.portal(), path.losses());
    }
    let before: Vec<u64> = host.paths().iter().map(|path| path.commands()).collect();
    wait(&mut engine, async move {
        for _ in 0..8 {
            one.read(0, 4 * KIB).await?;
        }
        Ok(())
    })?;
    let are_used = host.paths().iter().zip(before).all(|(path, before)| path.commands() > before);
    ensure!(are_used, "a path that came back is not used");
    Ok(format!("{retries} commands were repeated"))
}

/// Waits until all paths are up.
async fn back(host: &Host) -> Result<()> {
    for _ in 0..LOOKS {
        if host.paths().iter().all(|path| path.is_up()) {
            return Ok(());
        }
        host.reactor().sleep(LOOK).await;
    }
    bail!("a path that was cut does not come back");
}

async fn write_and_read(device: Device, writer: u64) -> Result<()> {
    let offset = 300 * MIB + writer * MIB;
    for round in 0..ROUNDS {
        let bytes = vec![(writer * ROUNDS + round) as u8; (32 * KIB) as usize];
        device.write(offset, &bytes).await?;
        ensure!(device.read(offset, 32 * KIB).await? == bytes, "writer {writer}, round {round}");
    }
    Ok(())
}
