//! Writes to blocks that were never written: the cost of zeroing them first.

use std::rc::Rc;

use super::bench::{Bench, Side};
use super::judge::ratio;
use super::{Found, ScenarioError, value};
use crate::disk::Provisioning;
use crate::guest::{Load, LoadPlan};
use crate::host::Settings;
use crate::outcome::{Chart, Measure, Series};
use crate::vm::{DiskPlan, Vm};

/// A disk too large for any load here to write completely in that time.
const DISK_BYTES: u64 = 16 << 30;

/// Runs a load on a new disk, and reads back what it has written.
async fn load(
    found: &mut Found,
    bench: &Rc<Bench>,
    kind: Provisioning,
    disk_bytes: u64,
    settings: Settings,
    plan: LoadPlan,
) -> Result<Measure, ScenarioError> {
    let place = bench.fresh(bench.host(), 0).await?;
    bench.set(Settings::default());
    let disk = DiskPlan { bytes: disk_bytes, provisioning: kind };
    let vm = Vm::create(&place, "vm", &[disk]).await?;
    bench.set(settings);
    let mut load = Load::start(bench.reactor(), vm.disks(), plan, None);
    let run = async {
        load.restart_meter();
        bench.reactor().sleep(bench.plan().load_time).await;
        Ok::<_, ScenarioError>(load.meter())
    };
    let (mut measure, meter) = bench.measure(run).await?;
    load.stop().await?;
    // A sequential load would wrap around, and overwrite; others hit written locations sometimes in
    // any case.
    if plan.sequential_percent == 100 && meter.total().bytes > disk_bytes {
        let note =
            "The load reached the end of its disk: some of its writes were not first writes.";
        found.notes.push(note.to_owned());
    }
    measure.values = vec![
        value("IOPS", "1/s", meter.per_second()),
        value("throughput", "MB/s", meter.mb_per_second()),
        value("mean latency", "ms", meter.mean_ms()),
        value("p99", "ms", meter.quantile_ms(0.99)),
    ];
    bench.progress().phase("verifying", meter.total().bytes);
    found.verified_bytes += load.verify().await?;
    vm.delete().await?;
    Ok(measure)
}

/// P-18: 32 KB sequential writes to new blocks, on each kind of disk.
pub(super) async fn kinds(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let plan = LoadPlan {
        depth: 4,
        read_percent: 0,
        sequential_percent: 100,
        seed: bench.plan().seed,
        ..LoadPlan::default()
    };
    let kinds = [
        ("thin", Provisioning::Thin, &Side::BOTH[..]),
        ("zeroedthick", Provisioning::ZeroedThick, &Side::BOTH[..]),
        ("eagerzeroedthick", Provisioning::EagerZeroedThick, &[Side::On][..]),
    ];
    for (name, kind, sides) in kinds {
        for side in sides {
            let settings = side.settings(Settings::default());
            let label = format!("{name}, {}", side.name());
            bench.progress().phase(&label, 0);
            let measure = load(&mut found, &bench, kind, DISK_BYTES, settings, plan).await?;
            found.put(name, *side, measure);
        }
    }
    let charts = ["IOPS", "throughput", "mean latency"].map(|name| bars(&found, name));
    found.charts.extend(charts.into_iter().flatten());
    note_costs(&mut found);
    Ok(found)
}

/// Returns bars of a value, for each kind of disk.
fn bars(found: &Found, name: &str) -> Option<Chart> {
    let of = |measure: Option<&Measure>| {
        measure?.values.iter().find(|value| value.name == name).cloned()
    };
    let unit = found.rows.iter().find_map(|row| of(row.on.as_ref()))?.unit;
    let series = [Side::Off, Side::On].map(|side| Series {
        name: side.name().to_owned(),
        values: found
            .rows
            .iter()
            .map(|row| Some(of(found.measured(&row.case, side))?.value))
            .collect(),
    });
    Some(Chart::Bars {
        title: name.to_owned(),
        unit,
        labels: found.rows.iter().map(|row| row.case.clone()).collect(),
        series: series.into(),
    })
}

/// Adds the cost of zeroing compared with a disk that was zeroed before, in the paper's form.
fn note_costs(found: &mut Found) {
    let of = |case: &str, side: Side, name: &str| {
        let values = &found.measured(case, side)?.values;
        values.iter().find(|value| value.name == name).map(|value| value.value)
    };
    let more = |case: &str, side: Side, name: &str| {
        let times = ratio(of(case, side, name)?, of("eagerzeroedthick", Side::On, name)?)?;
        Some((times - 1.0) * 100.0)
    };
    let mut notes = Vec::new();
    for side in Side::BOTH {
        for case in ["thin", "zeroedthick"] {
            let costs = more(case, side, "IOPS").zip(more(case, side, "mean latency"));
            notes.extend(costs.map(|(iops, latency)| {
                let side = side.name();
                format!(
                    "{case}, {side}, against eagerzeroedthick: {iops:+.0}% IOPS, {latency:+.0}% \
                     latency."
                )
            }));
        }
    }
    found.notes.extend(notes);
}

/// V-38: 8 KB, 40% sequential, 35% writes, on a new zeroedthick disk of 10 GB.
pub(super) async fn mixed(bench: Rc<Bench>) -> Result<Found, ScenarioError> {
    let mut found = Found::default();
    let plan = LoadPlan {
        bytes: 8 << 10,
        depth: 8,
        read_percent: 65,
        sequential_percent: 40,
        seed: bench.plan().seed,
        span_bytes: None,
    };
    for side in Side::BOTH {
        let settings = side.settings(Settings::default());
        bench.progress().phase(side.name(), 0);
        let kind = Provisioning::ZeroedThick;
        let measure = load(&mut found, &bench, kind, 10 << 30, settings, plan).await?;
        found.put("8 KB, 35% writes", side, measure);
    }
    let part = |at: usize| {
        let row = &found.rows[0];
        let value = |measure: &Measure| measure.values.get(at).map(|value| value.value);
        row.off.as_ref().and_then(value).zip(row.on.as_ref().and_then(value))
    };
    let iops = part(0).and_then(|(off, on)| ratio(on, off));
    let ms = part(2).and_then(|(off, on)| ratio(on, off));
    found.notes.extend(iops.zip(ms).map(|(iops, ms)| {
        let (more, less) = ((iops - 1.0) * 100.0, (1.0 - ms) * 100.0);
        format!("On: {more:.0}% more transactions, {less:.0}% less response time.")
    }));
    Ok(found)
}
