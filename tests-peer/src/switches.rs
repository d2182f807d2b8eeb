//! Offloads that are switched off and on while a host uses them: every response is GOOD or that the
//! command is not supported, which makes ESXi do the work itself, and retry later.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use libiscsi::{Cdb, CopySegment, Data, Direction, Naa, Session, Status};

use crate::array::Array;
use crate::report::Report;
use crate::target::Target;

const BLOCK: u32 = 512;
/// The offloads under load: their names on the command line, and an operation code.
const LOADS: [(&str, u8); 4] =
    [("ats", 0x89), ("full-copy", 0x83), ("block-zero", 0x93), ("reclaim", 0x42)];
/// The rounds of the load that are checked after a switch.
const ROUNDS: u64 = 20;
/// How long those may take.
const PATIENCE: Duration = Duration::from_secs(20);

/// The responses to the load.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    good: [u64; LOADS.len()],
    /// 05h/20h/00h.
    refused: [u64; LOADS.len()],
    /// 06h/3Fh/03h.
    told: u64,
}

/// A loop of all four offloads, and the responses.
#[derive(Default)]
struct Load {
    seen: Mutex<Seen>,
    rounds: AtomicU64,
    stop: AtomicBool,
}

/// Switches offloads of `target`, the volume `name`, under load.
pub fn switches(report: &mut Report, array: &Array, target: &Target, name: &str) {
    report.check("a disabled offload is unsupported at once, and works again when enabled", || {
        under_load(target, |load| {
            for (index, (offload, _)) in LOADS.iter().enumerate() {
                one_by_one(array, load, name, index, offload)?;
            }
            Ok(())
        })
    });
    report.check("the array's switch applies to all volumes", || {
        under_load(target, |load| {
            array.verb(&["array", "set", "--offload", "all=off"])?;
            let (before, after) = load.look()?;
            ensure!(before.good == after.good, "some offloads still work: {after:?}");
            must_be_listed(target, [false; LOADS.len()])?;
            array.verb(&["array", "set", "--offload", "all=on"])?;
            let (before, after) = load.look()?;
            ensure!(before.refused == after.refused, "some offloads are still refused: {after:?}");
            ensure!(
                after.told == 2,
                "{} unit attentions instead of one for each of 2 changes",
                after.told
            );
            must_be_listed(target, [true; LOADS.len()])
        })
    });
}

/// Switches one off and on, and checks the others meanwhile.
fn one_by_one(array: &Array, load: &Load, name: &str, index: usize, offload: &str) -> Result<()> {
    let told = load.seen()?.told;
    array.verb(&["volume", "set", name, "--offload", &format!("{offload}=off")])?;
    let (before, after) = load.look()?;
    ensure!(after.good[index] == before.good[index], "{offload} still works: {after:?}");
    ensure!(after.refused[index] > before.refused[index], "{offload} is not tried: {after:?}");
    for other in (0..LOADS.len()).filter(|other| *other != index) {
        let (offload, _) = LOADS[other];
        ensure!(after.good[other] > before.good[other], "{offload} stopped, too: {after:?}");
        ensure!(after.refused[other] == before.refused[other], "{offload} is refused as well");
    }
    array.verb(&["volume", "set", name, "--offload", &format!("{offload}=on")])?;
    let (before, after) = load.look()?;
    ensure!(after.refused[index] == before.refused[index], "{offload} is still refused");
    ensure!(after.good[index] > before.good[index], "{offload} does not work again: {after:?}");
    ensure!(after.told == told + 2, "{} unit attentions for 2 changes", after.told - told);
    Ok(())
}

impl Load {
    fn seen(&self) -> Result<Seen> {
        self.seen.lock().map(|seen| *seen).map_err(|_| anyhow::anyhow!("the load panicked"))
    }

    /// Returns the responses before and after some rounds, beginning with the next whole one: a
    /// command in progress counts for neither.
    fn look(&self) -> Result<(Seen, Seen)> {
        self.wait(2)?;
        let before = self.seen()?;
        self.wait(ROUNDS)?;
        Ok((before, self.seen()?))
    }

    fn wait(&self, rounds: u64) -> Result<()> {
        let (goal, begin) = (self.rounds.load(Ordering::Acquire) + rounds, Instant::now());
        while self.rounds.load(Ordering::Acquire) < goal {
            ensure!(begin.elapsed() < PATIENCE, "the load does not continue");
            ensure!(!self.stop.load(Ordering::Acquire), "the load ended");
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    fn run(&self, target: &Target) -> Result<()> {
        let mut session = Session::connect(&target.config())?;
        let own = session.naa()?.context("the volume has no NAA name")?;
        while !self.stop.load(Ordering::Acquire) {
            for (index, (name, _)) in LOADS.iter().enumerate() {
                let status = offload(&mut session, own, index)?;
                let mut seen = self.seen.lock().map_err(|_| anyhow::anyhow!("poisoned"))?;
                match status {
                    Status::Good => seen.good[index] += 1,
                    Status::CheckCondition(s) if (s.key, s.asc_ascq) == (5, 0x2000) => {
                        seen.refused[index] += 1;
                    }
                    Status::CheckCondition(s) if (s.key, s.asc_ascq) == (6, 0x3F03) => {
                        seen.told += 1;
                    }
                    status => bail!("{name} ended with {status}"),
                }
            }
            self.rounds.fetch_add(1, Ordering::AcqRel);
        }
        Ok(())
    }
}

/// Sends one command of an offload.
fn offload(session: &mut Session, own: Naa, index: usize) -> Result<Status> {
    let zeros = vec![0; BLOCK as usize];
    Ok(match index {
        0 => session.compare_and_write(0, 1, &zeros, &zeros)?,
        1 => {
            let segment = CopySegment {
                source: 0,
                destination: 0,
                blocks: 64,
                source_lba: 1024,
                destination_lba: 2048,
            };
            session.extended_copy(&[own], &[segment], BLOCK)?
        }
        2 => session.write_same(4096, 128, zeros, false)?,
        _ => session.unmap(&[(8192, 128)])?,
    })
}

/// Runs `act` while a separate session loops through all offloads.
fn under_load(target: &Target, act: impl FnOnce(&Load) -> Result<()>) -> Result<String> {
    let load = Load::default();
    let (acted, ran) = std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let ran = load.run(target);
            load.stop.store(true, Ordering::Release);
            ran
        });
        let acted = load.wait(2).and_then(|()| act(&load));
        load.stop.store(true, Ordering::Release);
        (acted, running.join())
    });
    // An error of the load is more informative than its end.
    ran.map_err(|_| anyhow::anyhow!("the load panicked"))??;
    acted?;
    let seen = load.seen()?;
    let (good, refused) = (seen.good.iter().sum::<u64>(), seen.refused.iter().sum::<u64>());
    Ok(format!("{good} done, {refused} refused"))
}

/// Checks the commands in REPORT SUPPORTED OPERATION CODES.
fn must_be_listed(target: &Target, wanted: [bool; LOADS.len()]) -> Result<()> {
    let mut session = Session::connect(&target.config())?;
    for ((offload, code), wanted) in LOADS.iter().zip(wanted) {
        // REPORTING OPTIONS 011b: the command, or its service action 0.
        let bytes = [0xA3, 0x0C, 3, *code, 0, 0, 0, 0, 0, 64, 0, 0];
        let answer = session.execute(Cdb::raw(&bytes, Direction::In), Data::In(vec![0; 64]))?;
        ensure!(answer.status == Status::Good, "it ended with {}", answer.status);
        let support = answer.buffer.get(1).context("no data was returned")? & 7;
        ensure!((support == 3) == wanted, "{offload}: SUPPORT is {support}");
    }
    Ok(())
}
