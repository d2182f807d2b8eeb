//! A host's counters equal the array's.

use anyhow::{Context, Result, bail, ensure};
use lab::engine::Engine;
use lab::host::{Class, Device, Extent, Host, Swap, Totals};
use serde_json::Value;

use super::{GIB, KIB, LOOK, LOOKS, MIB, claim, connect, good_ones, wait};
use crate::array::Array;
use crate::target::Target;

/// The classes that both the host and the array count, by the array's names.
const CLASSES: [(Class, &str); 6] = [
    (Class::Read, "read"),
    (Class::Write, "write"),
    (Class::Clone, "copy"),
    (Class::Ats, "compare_and_write"),
    (Class::Zero, "zero"),
    (Class::Delete, "delete"),
];

/// The counters of both sides, of one class and one device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    good: u64,
    good_bytes: u64,
    failed: u64,
}

impl Count {
    fn since(self, before: Self) -> Self {
        Self {
            good: self.good - before.good,
            good_bytes: self.good_bytes - before.good_bytes,
            failed: self.failed - before.failed,
        }
    }
}

/// Returns the host's counters.
fn of_host(totals: &Totals) -> Vec<Count> {
    let count = |class: Class| {
        let ended = totals.of(class);
        Count { good: ended.good.count, good_bytes: ended.good.bytes, failed: ended.failed.count }
    };
    CLASSES.iter().map(|(class, _)| count(*class)).collect()
}

/// Returns the array's counters of an initiator and a volume.
fn of_array(counters: &Value, initiator: &str, volume: &str) -> Result<Vec<Count>> {
    let paths = counters["paths"].as_array().context("no path counters")?;
    let path = paths
        .iter()
        .find(|path| path["initiator"] == initiator && path["volume"] == volume)
        .with_context(|| format!("the array has no counters for {initiator} and {volume}"))?;
    let count = |name: &str| {
        let commands = &path["commands"][name];
        let number = |field: &str| commands[field].as_u64().unwrap_or_default();
        Count { good: number("ok"), good_bytes: number("bytes"), failed: number("failed") }
    };
    Ok(CLASSES.iter().map(|(_, name)| count(name)).collect())
}

/// Both sides at one moment without commands in progress.
struct Moment {
    host: [Vec<Count>; 2],
    array: [Vec<Count>; 2],
    retries: u64,
}

fn moment(array: &Array, target: &Target, devices: &[Device; 2]) -> Result<Moment> {
    let counters = array.counters()?;
    let totals = devices.each_ref().map(Device::totals);
    Ok(Moment {
        host: totals.each_ref().map(of_host),
        array: [
            of_array(&counters, &target.initiator, "one")?,
            of_array(&counters, &target.initiator, "two")?,
        ],
        retries: totals.iter().map(|totals| totals.retries).sum(),
    })
}

/// Returns the bytes that the array has received and sent. It counts bytes after the socket has
/// accepted them, slightly after an initiator may have received them; it counts commands before it
/// sends their response.
fn wire(array: &Array) -> Result<[u64; 2]> {
    let counters = array.counters()?;
    let wire = |field: &str| counters["wire"][field].as_u64().context("no wire counters");
    Ok([wire("received_bytes")?, wire("sent_bytes")?])
}

/// Returns the same while no initiator is connected, when everything is counted.
fn wire_at_rest(array: &Array) -> Result<[u64; 2]> {
    for _ in 0..LOOKS {
        if array.open_connections()? == 0 {
            return wire(array);
        }
        std::thread::sleep(LOOK);
    }
    bail!("an initiator stays connected")
}

/// Returns the bytes on the wire that a host has counted, once the array has counted as many.
fn agreed_wire_bytes(array: &Array, before: [u64; 2], host: &Host) -> Result<u64> {
    let mut seen = None;
    for _ in 0..LOOKS {
        let now = wire(array)?;
        let of_array = [now[0] - before[0], now[1] - before[1]];
        let own = host.wire_bytes();
        if of_array == [own.sent, own.received] {
            return Ok(own.sent + own.received);
        }
        seen = Some((own, of_array));
        std::thread::sleep(LOOK);
    }
    bail!("bytes on the wire, by the host and by the array: {seen:?}")
}

/// Sends a known number of commands of every class, successful and failing.
pub fn agreement(array: &Array, target: &Target) -> Result<String> {
    let wire_before = wire_at_rest(array)?;
    let mut engine = Engine::new();
    let host = connect(&engine, array, target)?;
    let devices = claim(&mut engine, &host)?;
    let before = moment(array, target, &devices)?;
    let [one, two] = devices.clone();
    wait(&mut engine, async move {
        good_ones(&one, &two).await?;
        bad_ones(&one, &two).await
    })?;
    let after = moment(array, target, &devices)?;
    ensure!(
        after.retries == before.retries,
        "commands were repeated, and count twice in the array"
    );
    let good = |good: u64, good_bytes: u64| Count { good, good_bytes, failed: 1 };
    let expected = [
        [
            good(7, 7 * 64 * KIB),
            good(5, 5 * 12 * KIB),
            Count::default(),
            good(3, 3 * 512),
            good(2, 2 * 3 * MIB),
            good(2, 5 * MIB),
        ],
        // Copies count as commands to their destination.
        {
            let mut of_two = [Count::default(); CLASSES.len()];
            of_two[2] = good(4, 4 * (2 * MIB + 512 * KIB));
            of_two
        },
    ];
    for (index, volume) in ["one", "two"].into_iter().enumerate() {
        for (class, (_, name)) in CLASSES.iter().enumerate() {
            let host = after.host[index][class].since(before.host[index][class]);
            let array = after.array[index][class].since(before.array[index][class]);
            ensure!(
                host == array && host == expected[index][class],
                "{name} of {volume}: the host counts {host:?}, the array {array:?}, expected {:?}",
                expected[index][class]
            );
        }
    }
    let copied = devices[0].totals().clone_read;
    ensure!(
        copied == devices[1].totals().clone_written,
        "bytes read differ from bytes written: {copied:?}"
    );
    let bytes = agreed_wire_bytes(array, wire_before, &host)?;
    Ok(format!("and {} KiB on the wire", bytes / KIB))
}

/// Sends one failing command of each class: all but the miscompare exceed the volume.
async fn bad_ones(one: &Device, two: &Device) -> Result<()> {
    ensure!(one.bytes() == GIB, "the volume has another size");
    let miscompare = one.compare_and_write(0, &[7; 512], &[9; 512]).await?;
    ensure!(miscompare == Swap::Miscompare, "it compares");
    ensure!(one.read(GIB, 4 * KIB).await.is_err(), "a READ beyond the volume");
    ensure!(one.write(GIB, &[0; 4096]).await.is_err(), "a WRITE beyond the volume");
    ensure!(one.write_same_zeros(GIB, MIB).await.is_err(), "a WRITE SAME beyond the volume");
    ensure!(one.unmap(&[(GIB, MIB)]).await.is_err(), "an UNMAP beyond the volume");
    let inside = Extent { source: 0, destination: 512 * MIB, bytes: MIB };
    let outside = Extent { source: GIB, destination: 0, bytes: MIB };
    let copied = two.copy_from(one, &[inside, outside]).await;
    ensure!(copied.is_err(), "an EXTENDED COPY from beyond the volume");
    Ok(())
}
