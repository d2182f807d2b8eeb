//! Locks: the effect on a load on a datastore when other hosts change its files.

use std::rc::Rc;
use std::time::Duration;

use super::bench::{Bench, Side};
use super::judge::ratio;
use super::{Found, ScenarioError, lines, value};
use crate::disk::{DiskError, Place, Provisioning};
use crate::engine::all;
use crate::guest::{GuestDisk, Load, LoadPlan, Meter};
use crate::host::Settings;
use crate::outcome::{Line, Measure};
use crate::random::Random;
use crate::vm::{DiskPlan, Vm};

const MIB: u64 = 1 << 20;
/// The machines of a boot storm (000).
const MACHINES: usize = 150;
/// The number of disks of the working machine (000).
const DISKS: usize = 5;
/// The size of its disks: small, because what counts is the load.
const DISK_BYTES: u64 = 64 * MIB;
/// A machine's memory: its swap file.
const MEMORY_BYTES: u64 = 4 * MIB;
/// The fraction of its maximum rate at which the load runs. Hosts and array share the processors
/// here: a load that uses all of them loses what the others' commands use, with any kind of locks.
const LOAD_PART: f64 = 0.6;
/// Machines powered on at once begin within this many times the duration of a load, because an
/// administrator's client and the hosts' agents forward the requests.
const STORM_LOADS: f64 = 1.5;
/// The number of machines that are snapshotted: 004 has "a set".
const SNAPPED: usize = 4;
/// How long a snapshot exists.
const SNAPSHOT_TIME: Duration = Duration::from_millis(100);

/// Creates the working machine, on the first host; its load has run for a while at the maximum
/// rate, and is limited from there on. Also returns its requests per second before that.
async fn worker(bench: &Bench, place: &Place) -> Result<(Vm, Load, f64), ScenarioError> {
    let disk = DiskPlan { bytes: DISK_BYTES, provisioning: Provisioning::EagerZeroedThick };
    let vm = Vm::create(place, "worker", &[disk; DISKS]).await?;
    let plan = LoadPlan { depth: 1, seed: bench.plan().seed, ..LoadPlan::default() };
    let load = Load::start(bench.reactor(), vm.disks(), plan, None);
    bench.reactor().sleep(bench.plan().load_time).await;
    let most = undisturbed(bench, &load).await.per_second();
    load.pace(most * LOAD_PART);
    Ok((vm, load, most))
}

/// Measures the load without disturbance.
async fn undisturbed(bench: &Bench, load: &Load) -> Meter {
    load.restart_meter();
    bench.reactor().sleep(bench.plan().load_time).await;
    load.meter()
}

/// What a load did with and without disturbance.
struct Felt {
    /// Its maximum requests per second.
    most: f64,
    before: Meter,
    during: Meter,
    after: Meter,
    measure: Measure,
}

impl Felt {
    /// Returns the remaining fraction, compared with the better one of before and after: a load
    /// gets faster while it warms up.
    fn kept(&self) -> Option<f64> {
        let undisturbed = self.before.per_second().max(self.after.per_second());
        ratio(self.during.per_second(), undisturbed)
    }

    fn p99_ratio(&self) -> Option<f64> {
        let undisturbed = self.before.quantile_ms(0.99).min(self.after.quantile_ms(0.99));
        ratio(self.during.quantile_ms(0.99), undisturbed)
    }

    /// Returns why the load did less, if the hosts' commands together were as many as before: then
    /// it did not wait for locks.
    fn why_less(&self) -> Option<String> {
        let (alone, seconds) = (self.most, self.measure.seconds);
        let together = ratio(self.measure.commands as f64, seconds)?;
        (together >= 0.95 * alone).then(|| {
            format!(
                "all commands together were {together:.0} per s, those of the load alone before \
                 {alone:.0}: that is the maximum of hosts and array on these processors, and what \
                 the others did is missing from the load"
            )
        })
    }

    fn values(mut self) -> Measure {
        let kept = self.kept().map(|kept| value("IOPS kept", "%", kept * 100.0));
        self.measure.values = kept.into_iter().collect();
        let parts = [("before", self.before), ("during", self.during), ("after", self.after)];
        for (when, meter) in parts {
            let values = &mut self.measure.values;
            values.push(value(&format!("IOPS {when}"), "1/s", meter.per_second()));
            values.push(value(&format!("throughput {when}"), "MB/s", meter.mb_per_second()));
            values.push(value(&format!("p99 {when}"), "ms", meter.quantile_ms(0.99)));
        }
        self.measure
    }
}

fn judge(found: &mut Found, felt: &Felt) {
    match felt.kept().map(|kept| kept * 100.0) {
        Some(kept) => {
            let (what, goal) = ("IOPS of the load with ATS", "95% kept");
            found.judge(what, goal, format!("{kept:.1}%"), kept >= 95.0);
            if let Some(reason) = felt.why_less() {
                found.because(&reason);
            }
        }
        None => {
            found.notes.push(String::from("Not judged: the undisturbed load has done nothing."))
        }
    }
    if let Some(ratio) = felt.p99_ratio() {
        let (what, goal) = ("p99 of the load with ATS", "1.5x at most");
        found.judge(what, goal, format!("{ratio:.2}x"), ratio <= 1.5);
    }
}

/// P-6: 150 machines powered on at once, on the datastore of a working machine.
pub(super) async fn boot_storm(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    note_one_host(&mut found, &bench);
    let (mut drawn, mut drawn_mb) = (Vec::new(), Vec::new());
    let case = bench.cases(MACHINES, "VM");
    for side in Side::BOTH {
        bench.set(Settings::default());
        let place = bench.fresh(bench.host(), 0).await?;
        bench.progress().phase("making the machines", 0);
        let machines = machines(&bench, &place).await?;
        bench.set(side.settings(Settings::default()));
        let (vm, mut load, most) = worker(&bench, &place).await?;
        bench.progress().phase(&format!("boot storm, {}", side.name()), 0);
        let before = undisturbed(&bench, &load).await;
        load.restart_meter();
        let (measure, _) = bench.measure(power_on(&bench, &machines)).await?;
        let during = load.meter();
        let after = undisturbed(&bench, &load).await;
        load.stop().await?;
        drawn.push(Line { name: side.name().to_owned(), points: during.requests_series() });
        drawn_mb.push(Line { name: side.name().to_owned(), points: during.mb_series() });
        let felt = Felt { most, before, during, after, measure };
        if side == Side::On {
            judge(&mut found, &felt);
        }
        found.put(&case, side, felt.values());
        found.verified_bytes += load.verify().await?;
        for machine in &machines {
            machine.power_off().await?;
        }
        drop((vm, machines));
    }
    found.charts.push(lines("IOPS of the load during the storm", "1/s", drawn));
    found.charts.push(lines("MB/s of the load during the storm", "MB/s", drawn_mb));
    Ok(found)
}

/// Creates the machines, distributed over all hosts but the first, or all on it if it is the only
/// one.
async fn machines(bench: &Bench, place: &Place) -> Result<Vec<Vm>, ScenarioError> {
    let mut places = Vec::new();
    for host in bench.hosts().iter().skip(1) {
        places.push(bench.join(host, 0).await?);
    }
    if places.is_empty() {
        places.push(place.clone());
    }
    let mut made = Vec::new();
    for index in 0..bench.counted(MACHINES) {
        let place = &places[index % places.len()];
        let disk = DiskPlan { bytes: 4 * MIB, provisioning: Provisioning::Thin };
        made.push(Vm::create(place, &format!("boot{index}"), &[disk]).await?);
    }
    Ok(made)
}

/// Notes that a host is never disturbed by its own reservations.
fn note_one_host(found: &mut Found, bench: &Bench) {
    if bench.hosts().len() < 2 {
        let note = "There was only one host, which its own reservations do not disturb: this says \
                    nothing about locks.";
        found.notes.push(note.to_owned());
    }
}

async fn power_on(bench: &Bench, machines: &[Vm]) -> Result<(), DiskError> {
    let mut random = Random::new(bench.plan().seed);
    let (reactor, storm) = (bench.reactor(), bench.plan().load_time.mul_f64(STORM_LOADS));
    let starts = machines.iter().map(|machine| {
        let wait = storm.mul_f64(random.below(1000) as f64 / 1000.0);
        async move {
            reactor.sleep(wait).await;
            machine.power_on(MEMORY_BYTES).await
        }
    });
    all(starts).await.map(drop)
}

/// I-lock: snapshots of another host's machines, created and removed repeatedly.
pub(super) async fn snapshots(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    note_one_host(&mut found, &bench);
    for side in Side::BOTH {
        bench.set(Settings::default());
        let place = bench.fresh(bench.host(), 0).await?;
        let there = match bench.hosts() {
            [_, .., other] => bench.join(other, 0).await?,
            _ => place.clone(),
        };
        let disk = DiskPlan { bytes: DISK_BYTES, provisioning: Provisioning::Thin };
        let mut busy = Vec::new();
        for number in 1..=SNAPPED {
            busy.push(Vm::create(&there, &format!("snapped{number}"), &[disk]).await?);
        }
        bench.set(side.settings(Settings::default()));
        let (_vm, mut load, most) = worker(&bench, &place).await?;
        bench.progress().phase(&format!("snapshots, {}", side.name()), 0);
        let before = undisturbed(&bench, &load).await;
        load.restart_meter();
        let (measure, count) = bench.measure(snap(&bench, &busy)).await?;
        let during = load.meter();
        let after = undisturbed(&bench, &load).await;
        load.stop().await?;
        let felt = Felt { most, before, during, after, measure };
        if side == Side::On {
            judge(&mut found, &felt);
        }
        found.notes.push(format!("{count} snapshots were made and removed, {}.", side.name()));
        found.put("snapshots in a loop", side, felt.values());
        found.verified_bytes += load.verify().await?;
    }
    Ok(found)
}

/// One machine after the other, cyclically.
async fn snap(bench: &Bench, vms: &[Vm]) -> Result<u64, DiskError> {
    let end = std::time::Instant::now() + bench.plan().load_time;
    let mut count = 0;
    let data = vec![b'h'; 64 << 10];
    for vm in vms.iter().cycle() {
        if std::time::Instant::now() >= end {
            break;
        }
        vm.take_snapshot().await?;
        let disk: &GuestDisk = &vm.disks()[0];
        disk.write((count % 256) * data.len() as u64, &data).await?;
        bench.reactor().sleep(SNAPSHOT_TIME).await;
        vm.remove_snapshot().await?;
        count += 1;
    }
    Ok(count)
}
