//! The lab's hosts on a real array: their counters equal the array's, paths and refusals behave as
//! for real hosts, and their datastores, disks and copies contain what was written.

mod counters;
mod datastores;
mod disks;
pub mod failover;
mod moving;
mod paths;
mod places;
mod reclaim;
mod scenarios;
mod top;
mod unmap_race;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use lab::engine::Engine;
use lab::host::{Device, Extent, Host, HostError, HostPlan, Primitive, Settings, Swap};

use crate::Arguments;
use crate::array::{Array, Shape};
use crate::report::Report;
use crate::target::Target;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
/// The size of each volume.
const GIB: u64 = 1 << 30;
/// The size of volumes with datastores, and their numbers.
const SMALL: u64 = 128 * MIB;
const THREE: u16 = 3;
const FOUR: u16 = 4;
/// How often the test checks for what must happen, and the pause in between.
const LOOKS: usize = 3000;
const LOOK: Duration = Duration::from_millis(10);

/// Runs all of it, on a separate array.
pub fn run(report: &mut Report, arguments: &Arguments) -> Result<()> {
    let array = crate::array(arguments, Shape::default())?;
    let programs = crate::programs(arguments)?;
    let target = array.volume("one", "1G", "peer", 1)?;
    array.volume("two", "1G", "peer", 2)?;
    report.check("a host's counters equal the array's in each class", || {
        counters::agreement(&array, &target)
    });
    report.check("round robin changes paths at the I/O limit", || paths::turns(&array, &target));
    report.check("a cut path loses no command, and recovers", || paths::cuts(&array, &target));
    report.check("a disabled offload is refused, and is used again when enabled", || {
        refusals(&array, &target)
    });
    report.check("top shows the hosts' counters, and the end of the lab", || {
        top::top(&array, &target, &programs)
    });
    for (volume, lun) in [("three", THREE), ("four", FOUR)] {
        array.volume(volume, "128M", "peer", lun)?;
    }
    stored(report, &array, &target);
    report.check("two scenarios run, and are not repeated", || {
        scenarios::run(&array, &target, &programs)
    });
    Ok(())
}

/// Tests what hosts store on the array's volumes.
fn stored(report: &mut Report, array: &Array, target: &Target) {
    report
        .check("two hosts share a datastore, with ATS", || datastores::shared(array, target, true));
    report.check("two hosts share a datastore, with reservations", || {
        datastores::shared(array, target, false)
    });
    report.check("new disks over old data read zeros, then the new data", || {
        disks::kinds(array, target)
    });
    report.check("copies by the array equal their source", || moving::copies(array, target));
    report.check(
        "a copy continues by reads and writes if the array refuses, and later by offload",
        || moving::switched(array, target),
    );
    report.check("the array frees blocks that a guest unmaps", || reclaim::in_guest(array, target));
    report.check("a guest unmaps while UNMAP is switched off", || reclaim::refused(array, target));
    report.check("deleted space is reclaimed in the background", || {
        reclaim::automatic(array, target)
    });
    report.check("an unmap waits for overlapping writes", || unmap_race::in_order(array, target));
    report.check("space that a guest unmaps is reused, and its old data never read", || {
        unmap_race::beside_another(array, target)
    });
    report.check("a guest unmaps while its disk moves", || unmap_race::while_moving(array, target));
}

/// Connects a host with a path through every portal.
fn connect(engine: &Engine, array: &Array, target: &Target) -> Result<Host> {
    connect_as(engine, array, target, "esx-1")
}

fn connect_as(engine: &Engine, array: &Array, target: &Target, name: &str) -> Result<Host> {
    let plan = HostPlan {
        name: name.into(),
        config: target.config(),
        portals: array.portals.clone(),
        settings: Settings::default(),
    };
    Ok(Host::connect(&engine.reactor(), &plan)?)
}

/// Returns the host's two devices, after every path has reported its initial unit attentions.
fn claim(engine: &mut Engine, host: &Host) -> Result<[Device; 2]> {
    let host = host.clone();
    let claimed = engine.run(async move {
        let devices = [host.claim(1).await?, host.claim(2).await?];
        for device in &devices {
            for _ in 0..2 * host.paths().len() {
                device.read(0, 4 * KIB).await?;
            }
        }
        Ok::<_, HostError>(devices)
    });
    Ok(claimed.map_err(anyhow::Error::msg)??)
}

/// Runs a future to completion.
fn wait<T: 'static>(
    engine: &mut Engine,
    future: impl Future<Output = Result<T>> + 'static,
) -> Result<T> {
    engine.run(future).map_err(anyhow::Error::msg)?
}

/// Sends a known number of commands of every class.
async fn good_ones(one: &Device, two: &Device) -> Result<()> {
    for index in 0..7 {
        one.read(index * MIB, 64 * KIB).await?;
    }
    for index in 0..5 {
        one.write(index * MIB, &vec![7; (12 * KIB) as usize]).await?;
    }
    let (seven, eight) = ([7; 512], [8; 512]);
    for (expected, new) in [(seven, eight), (eight, seven), (seven, eight)] {
        ensure!(one.compare_and_write(0, &expected, &new).await? == Swap::Done, "it miscompares");
    }
    for index in 0..2 {
        one.write_same_zeros(64 * MIB + index * 4 * MIB, 3 * MIB).await?;
    }
    one.unmap(&[(128 * MIB, MIB), (130 * MIB, MIB)]).await?;
    one.unmap(&[(140 * MIB, 3 * MIB)]).await?;
    for index in 0..4 {
        let at = index * 4 * MIB;
        let extents = [
            Extent { source: at, destination: at, bytes: 2 * MIB },
            Extent { source: at, destination: 256 * MIB + at, bytes: 512 * KIB },
        ];
        two.copy_from(one, &extents).await?;
    }
    Ok(())
}

/// The offloads of volume `one`: their names on the command line, and the host's.
const OFFLOADS: [(&str, Primitive); 4] = [
    ("ats", Primitive::Locking),
    ("full-copy", Primitive::Move),
    ("block-zero", Primitive::Init),
    ("reclaim", Primitive::Delete),
];

fn refusals(array: &Array, target: &Target) -> Result<String> {
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    let [one, _] = claim(&mut engine, &host)?;
    for (name, primitive) in OFFLOADS {
        let switch = |to: &str| {
            array.verb(&["volume", "set", "one", "--offload", &format!("{name}={to}")]).map(drop)
        };
        ensure!(
            one.supports(primitive).is_none(),
            "support of {name} is known before its first use"
        );
        switch("off")?;
        // As in ESXi: once refused, it is not retried for a while.
        host.set(|settings| settings.retry_offload = Duration::from_secs(3600));
        refused(&mut engine, &one, name, primitive)?;
        ensure!(!one.may_offload(primitive), "{name} would be retried at once");
        // And retried after that time, with the same result as long as it is off.
        host.set(|settings| settings.retry_offload = Duration::ZERO);
        refused(&mut engine, &one, name, primitive)?;
        ensure!(one.may_offload(primitive), "{name} is never retried");
        switch("on")?;
        let device = one.clone();
        wait(&mut engine, async move { Ok(offload(&device, primitive).await?) })
            .with_context(|| format!("{name} is on again"))?;
        ensure!(one.supports(primitive) == Some(true), "{name} works, but counts as unsupported");
    }
    Ok(String::new())
}

fn refused(engine: &mut Engine, device: &Device, name: &str, primitive: Primitive) -> Result<()> {
    let own = device.clone();
    let ended = wait(engine, async move { Ok(offload(&own, primitive).await) })?;
    let is_refused = matches!(ended, Err(HostError::Unsupported { .. }));
    ensure!(is_refused, "{name} is off, but ended with {ended:?}");
    ensure!(
        device.supports(primitive) == Some(false),
        "{name} was refused, but counts as supported"
    );
    Ok(())
}

async fn offload(device: &Device, primitive: Primitive) -> Result<(), HostError> {
    match primitive {
        Primitive::Move => {
            let extent = Extent { source: 0, destination: 400 * MIB, bytes: MIB };
            device.copy_from(device, &[extent]).await
        }
        Primitive::Init => device.write_same_zeros(410 * MIB, MIB).await,
        Primitive::Locking => {
            let zeros = [0; 512];
            device.compare_and_write(420 * MIB, &zeros, &zeros).await.map(drop)
        }
        Primitive::Delete => device.unmap(&[(430 * MIB, MIB)]).await,
    }
}
