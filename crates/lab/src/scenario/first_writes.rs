//! Writes to blocks that were never written: what zeroing them first costs.

use std::rc::Rc;

use super::bench::{Bench, Side};
use super::{Found, ScenarioError, value};
use crate::disk::Provisioning;
use crate::guest::{Load, LoadPlan, Meter};
use crate::host::Settings;
use crate::outcome::{Chart, Measure, Series};
use crate::vm::{DiskPlan, Vm};

/// A disk that no load here gets through in that time.
const DISK_BYTES: u64 = 16 << 30;

/// Runs a load on a new disk, and reads back what it has written.
async fn load(
    found: &mut Found,
    bench: &Rc<Bench>,
    kind: Provisioning,
    disk_bytes: u64,
    settings: Settings,
    plan: LoadPlan,
) -> Result<(Measure, Meter), ScenarioError> {
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
    measure.values = vec![
        value("IOPS", "1/s", meter.per_second()),
        value("throughput", "MB/s", meter.mb_per_second()),
        value("mean latency", "ms", meter.mean_ms()),
        value("p99", "ms", meter.quantile_ms(0.99)),
    ];
    bench.progress().phase("verifying", meter.total().bytes);
    found.verified_bytes += load.verify().await?;
    vm.delete().await?;
    Ok((measure, meter))
}

/// P-18: 32 KB in order, to new blocks, on each kind of disk.
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
    let mut bars = [("IOPS", "1/s", Vec::new()), ("Mean latency", "ms", Vec::new())];
    let mut labels = Vec::new();
    for (name, kind, sides) in kinds {
        for side in sides {
            let settings = side.settings(Settings::default());
            let label = format!("{name}, {}", side.name());
            bench.progress().phase(&label, 0);
            let (measure, meter) =
                load(&mut found, &bench, kind, DISK_BYTES, settings, plan).await?;
            bars[0].2.push(Some(meter.per_second()));
            bars[1].2.push(Some(meter.mean_ms()));
            labels.push(label);
            found.put(name, *side, measure);
        }
    }
    for (title, unit, values) in bars {
        let series = vec![Series { name: String::from("on"), values }];
        let (title, unit, labels) = (title.to_owned(), unit.to_owned(), labels.clone());
        found.charts.push(Chart::Bars { title, unit, labels, series });
    }
    note_costs(&mut found);
    Ok(found)
}

/// What zeroing costs against a disk that was zeroed before, as the paper puts it.
fn note_costs(found: &mut Found) {
    let iops = |row: &str, side: Side| {
        let row = found.rows.iter().find(|found| found.case == row)?;
        let measure = if side == Side::Off { row.off.as_ref() } else { row.on.as_ref() };
        Some(measure?.values.first()?.value)
    };
    let Some(eager) = iops("eagerzeroedthick", Side::On) else { return };
    let mut notes = Vec::new();
    for side in Side::BOTH {
        if let (Some(thin), Some(thick)) = (iops("thin", side), iops("zeroedthick", side)) {
            let less = |rate: f64| (1.0 - rate / eager) * 100.0;
            notes.push(format!(
                "Zero on write, {}: thin takes {:.0}% of the IOPS of eagerzeroedthick, zeroedthick \
                 {:.0}%.",
                side.name(),
                less(thin),
                less(thick)
            ));
        }
    }
    found.notes.extend(notes);
}

/// V-38: 8 KB, 40% in order, 35% writes, on a new zeroedthick disk of 10 GB.
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
        let (measure, _) = load(&mut found, &bench, kind, 10 << 30, settings, plan).await?;
        found.put("8 KB, 35% writes", side, measure);
    }
    let part = |at: usize| {
        let row = &found.rows[0];
        let value = |measure: &Measure| measure.values.get(at).map(|value| value.value);
        row.off.as_ref().and_then(value).zip(row.on.as_ref().and_then(value))
    };
    if let (Some((iops_off, iops_on)), Some((ms_off, ms_on))) = (part(0), part(2)) {
        found.notes.push(format!(
            "On: {:.0}% more transactions, {:.0}% less response time.",
            (iops_on / iops_off - 1.0) * 100.0,
            (1.0 - ms_on / ms_off) * 100.0
        ));
    }
    Ok(found)
}
