//! One host drops a volume that was sparsely written all over, in a pool that it has filled, while
//! another one writes: each block had its own map nodes, so there is much to free for little data.
//!
//! Pauses are printed, but not judged: a command without a response for 20 s fails.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail, ensure};
use libiscsi::{Session, Status};

use crate::Arguments;
use crate::array::{Array, Shape};
use crate::durability::fill;
use crate::good::{Good, past_attentions};
use crate::random::Random;
use crate::report::Report;
use crate::target::Target;

const SECTOR: u32 = 512;
const BLOCK: usize = 4096;
/// The sessions that write all over the volume.
const WRITERS: u64 = 8;
/// The distance of blocks that share no leaf and no inner node above it: 600 MiB.
const STEP_SECTORS: u64 = 600 * 2048;
/// How long freeing may take.
const FREED: Duration = Duration::from_secs(120);

/// How the volume is dropped.
#[derive(Clone, Copy, Debug)]
enum Way {
    Unmapped,
    Eradicated,
}

/// The volume takes a quarter of the pool, or nearly all if a time is given.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let (filler_mib, blocks) = match arguments.seconds {
        None => (680, 12_000),
        Some(_) => (0, 100_000),
    };
    let shape = Shape { capacity: "1G", ..Shape::default() };
    let mut array = crate::array(arguments, shape)?;
    let other = array.volume("other", "1G", "peer", 1)?;
    fill(&array.volume("filler", "1G", "peer", 4)?, filler_mib)?;
    let without_mib = used_mib(&array)?;
    let good = Good::resending();
    thread::scope(|scope| {
        let worker = scope.spawn(|| good.work(&other));
        for (lun, way) in [(2, Way::Unmapped), (3, Way::Eradicated)] {
            let wide = array.volume(&format!("wide-{lun}"), "64T", "peer", lun)?;
            report.check(&format!("{way:?}: sparsely written, beside another host"), || {
                scatter(&wide, blocks, arguments.seed + u64::from(lun))?;
                Ok(format!("{} MiB in use, {}", used_mib(&array)?, slowest(&good)))
            });
            report.check(&format!("{way:?}: freed, beside another host"), || {
                let freed = let_go(&array, &wide, without_mib, lun, way)?;
                Ok(format!("{freed}, {}", slowest(&good)))
            });
        }
        report.check("the other host's commands have all ended, with the right data", || {
            good.stop.store(true, Ordering::Relaxed);
            worker.join().map_err(|_| anyhow!("the other host panicked"))?
        });
        anyhow::Ok(())
    })?;
    report.check("after a kill and restart, all data is present, and the pool is sound", || {
        array.kill()?;
        array.start()?;
        good.verify(&mut Session::connect(&other.config())?)?;
        array.stop()?;
        array.inspect().map(|_| String::new())
    });
    Ok(())
}

fn slowest(good: &Good) -> String {
    format!("the other's slowest command took {} ms", good.take_slowest().as_millis())
}

fn scatter(wide: &Target, blocks: u64, seed: u64) -> Result<()> {
    let each = blocks / WRITERS;
    let one = |n: u64| -> Result<()> {
        let mut session = Session::connect(&wide.config())?;
        let mut random = Random::new(seed << 8 | n);
        for at in n * each..(n + 1) * each {
            let bytes = random.bytes(BLOCK);
            past_attentions(|| session.write(at * STEP_SECTORS, bytes.clone(), SECTOR))?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let writers: Vec<_> = (0..WRITERS).map(|n| scope.spawn(move || one(n))).collect();
        writers
            .into_iter()
            .try_for_each(|writer| writer.join().map_err(|_| anyhow!("a writer panicked"))?)
    })
}

/// Drops it, and waits until half of its space is free, in addition to what others used before.
fn let_go(array: &Array, wide: &Target, without_mib: u64, lun: u16, way: Way) -> Result<String> {
    let (name, before_mib, began) = (format!("wide-{lun}"), used_mib(array)?, Instant::now());
    match way {
        Way::Unmapped => {
            let mut session = Session::connect(&wide.config())?;
            let status = session.write_same(0, 0, vec![0; SECTOR as usize], true)?;
            ensure!(status == Status::Good, "WRITE SAME ended in {status:?}");
        }
        Way::Eradicated => {
            array.verb(&["disconnect", &name, "peer"])?;
            array.verb(&["volume", "destroy", &name])?;
            array.verb(&["volume", "eradicate", &name])?;
        }
    }
    while used_mib(array)? > without_mib + (before_mib - without_mib) / 2 {
        if began.elapsed() > FREED {
            bail!("{} of {before_mib} MiB are still in use", used_mib(array)?);
        }
        thread::sleep(Duration::from_millis(50));
    }
    let took = began.elapsed().as_secs_f64();
    Ok(format!("half of its space (of {before_mib} MiB) was free after {took:.1} s"))
}

fn used_mib(array: &Array) -> Result<u64> {
    Ok(array.pool_number("used_bytes")? >> 20)
}
