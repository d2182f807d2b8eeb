//! A host of the lab with paths to two controllers: it uses those of the owner, and continues over
//! the others, without an error, when the owner is killed.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use lab::engine::{Engine, Reactor};
use lab::host::{Access, Device, Host};

use super::{KIB, LOOK, LOOKS, MIB, connect, wait};
use crate::Arguments;
use crate::array::{Array, Controllers, Shape};
use crate::controllers::{at_each, signal};
use crate::pair::{both, owner};
use crate::report::Report;

const WRITERS: u64 = 16;
/// The most commands that ask a returning path for its group, and possibly for all states.
const QUESTIONS: u64 = 3;
const USED: Access = Access::Optimized;
const SPARE: Access = Access::NonOptimized;

/// Runs it on a separate array.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let shape = Shape { controllers: Controllers::Two, ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    let target = at_each(&array)?.swap_remove(0);
    report.check("a host uses the owner's paths, and continues on others", || {
        both(&array)?;
        let mut engine = Engine::new();
        let host = connect(&engine, &array, &target)?;
        let (reactor, own) = (engine.reactor(), host.clone());
        let device = wait(&mut engine, async move { Ok(own.claim(target.lun).await?) })?;
        ensure!(device.access() == [USED, SPARE], "{:?} at the start", device.access());
        over(&mut engine, &host, &device, 0)?;
        let stop = Rc::new(Cell::new(false));
        let writers: Vec<_> = (0..WRITERS)
            .map(|writer| reactor.spawn(keep_writing(device.clone(), writer, stop.clone())))
            .collect();
        for (which, is_owner, then) in
            [("owner", true, 1), ("owner", true, 0), ("other one", false, 0)]
        {
            let found = both(&array)?;
            let one = found
                .iter()
                .find(|it| it.is_owner == is_owner)
                .context("the controller is not ready")?;
            signal(one.pid, "KILL")?;
            settle(&mut engine, &array, &device, &reactor, then)
                .with_context(|| format!("after a kill of the {which}"))?;
            over(&mut engine, &host, &device, then)?;
        }
        array.verb(&["controller", "switch"])?;
        settle(&mut engine, &array, &device, &reactor, 1).context("after a switch")?;
        stop.set(true);
        let written = wait(&mut engine, async move {
            let mut written = 0;
            for writer in writers {
                written += writer.await?;
            }
            Ok(written)
        })?;
        told(&host, &device, written)
    });
    array.stop()
}

/// Waits until the host again uses path `best`, and the other one is available.
fn settle(
    engine: &mut Engine,
    array: &Array,
    device: &Device,
    reactor: &Reactor,
    best: usize,
) -> Result<()> {
    let mut expected = [SPARE; 2];
    expected[best] = USED;
    let (device, reactor) = (device.clone(), reactor.clone());
    wait(engine, async move {
        for _ in 0..LOOKS {
            let are_up = device.host().paths().iter().all(|path| path.is_up());
            if are_up && device.access() == expected {
                return Ok(());
            }
            reactor.sleep(LOOK).await;
        }
        bail!("{:?}, not {expected:?}", device.access())
    })?;
    let name = owner(array)?.name;
    ensure!(name == format!("CT{best}"), "{name} has the pool, but path {best} is the one to use");
    Ok(())
}

/// Reads over one path only.
fn over(engine: &mut Engine, host: &Host, device: &Device, path: usize) -> Result<()> {
    let before: Vec<u64> = host.paths().iter().map(|path| path.commands()).collect();
    let (device, reactor) = (device.clone(), engine.reactor());
    wait(engine, async move {
        for _ in 0..16 {
            device.read(0, 4 * KIB).await?;
            reactor.sleep(Duration::from_millis(1)).await;
        }
        Ok(())
    })?;
    let after: Vec<u64> = host.paths().iter().map(|path| path.commands()).collect();
    let elsewhere = after[1 - path] - before[1 - path];
    ensure!(elsewhere <= QUESTIONS, "{elsewhere} commands went over the other path, not {path}");
    ensure!(after[path] >= before[path] + 16, "path {path} was not used");
    Ok(())
}

/// Writes and reads until it must stop. Returns how often.
async fn keep_writing(device: Device, writer: u64, stop: Rc<Cell<bool>>) -> Result<u64> {
    let (offset, bytes) = (MIB + writer * MIB, 16 * KIB);
    let mut round = 0;
    while !stop.get() {
        let data = vec![(writer * 7 + round) as u8; bytes as usize];
        device.write(offset, &data).await?;
        ensure!(device.read(offset, bytes).await? == data, "writer {writer}, round {round}");
        device.write_same_zeros(offset, bytes / 2).await?;
        let found = device.read(offset, bytes).await?;
        let half = bytes as usize / 2;
        ensure!(found[..half].iter().all(|byte| *byte == 0), "writer {writer}: not zeroed");
        ensure!(found[half..] == data[half..], "writer {writer}: too much was zeroed");
        round += 1;
        device.host().reactor().sleep(Duration::from_millis(2)).await;
    }
    Ok(round)
}

fn told(host: &Host, device: &Device, written: u64) -> Result<String> {
    let totals = device.totals();
    let failed: u64 = totals.classes.values().map(|ended| ended.failed.count).sum();
    ensure!(failed == 0, "{failed} commands ended with an error");
    ensure!(totals.retries > 0, "no command was in flight when a path was lost");
    let losses: Vec<u64> = host.paths().iter().map(|path| path.losses()).collect();
    // Twice with the owner, and one once more when only it was killed; the switch keeps all.
    ensure!(losses == [2, 3], "paths were lost {losses:?} times");
    Ok(format!("{written} rounds, {} commands were repeated", totals.retries))
}
