//! The report, in Markdown.

use std::fmt::Write;

use super::rows::{DURABLE_WRITE, Kind, NOTHING};
use super::{Measured, Results, Sample};

/// Returns the whole report.
pub fn render(results: &Results) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_report(&mut text, results);
    text
}

fn write_report(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(text, "# Measured\n\n{}; {}.\n", results.machine, results.options)?;
    if !results.rows.is_empty() {
        write_peers(text, results)?;
    }
    write_raw(text, results)?;
    text.write_str(&super::against::render(&results.against, results.devices))?;
    if let Some(reduction) = &results.reduction {
        text.write_str(&super::reduction::render(reduction))?;
    }
    for table in &results.served {
        text.write_str(&table.render())?;
    }
    if results.slow.is_empty() {
        return Ok(());
    }
    text.write_str(&super::slow::render(&results.slow))
}

fn write_peers(text: &mut String, results: &Results) -> std::fmt::Result {
    writeln!(text, "## Holdfast and tgt\n\n{}.\n", results.load)?;
    writeln!(text, "Durable when a write is acknowledged: {}.", promises(results))?;
    writeln!(
        text,
        "tgt reads from the kernel's page cache (aio direct: from the device), Holdfast from its \
         own cache of the size of the span.\n\
         CPU is the target's own, user and system, in seconds for a million commands.\n"
    )?;
    write_loads(text, results)?;
    write_offloads(text, results)
}

fn promises(results: &Results) -> String {
    let promise = |name: &String| match name.as_str() {
        "Holdfast" => "Holdfast yes (group commit, flushed)",
        "tgt durable" => "tgt durable yes (WCE 0: fdatasync each)",
        "tgt volatile" => "tgt volatile no (page cache)",
        _ => "tgt aio direct no (O_DIRECT, the device's cache never flushed)",
    };
    results.targets.iter().map(promise).collect::<Vec<_>>().join("; ")
}

fn write_loads(text: &mut String, results: &Results) -> std::fmt::Result {
    let peer = results.targets.iter().position(|name| name == "tgt durable");
    let own = results.targets.iter().position(|name| name == "Holdfast");
    let mut header = String::from("| row | durable |");
    let mut rule = String::from("|---|---|");
    for name in &results.targets {
        write!(header, " {name} /s | MB/s | p99 us | CPU |")?;
        rule.push_str("---:|---:|---:|---:|");
    }
    writeln!(text, "{header} rate to tgt durable | CPU to tgt durable | goal |")?;
    writeln!(text, "{rule}---:|---:|---|")?;
    for measured in results.rows.iter().filter(|measured| !measured.row.is_offload()) {
        let durable = match measured.row.kind {
            Kind::Write => "see above",
            _ => "-",
        };
        write!(text, "| {} | {durable} |", measured.row.title)?;
        for sample in &measured.targets {
            write_sample(text, sample.as_ref())?;
        }
        let pair = own.zip(peer).and_then(|(own, peer)| {
            Some((measured.targets.get(own)?.as_ref()?, measured.targets.get(peer)?.as_ref()?))
        });
        match pair {
            Some((own, peer)) => write_ratio(text, own, peer, measured.row.goal)?,
            None => writeln!(text, " - | - | - |")?,
        }
    }
    writeln!(text)
}

fn write_sample(text: &mut String, sample: Option<&Sample>) -> std::fmt::Result {
    match sample {
        Some(sample) => write!(
            text,
            " {:.0} | {:.0} | {:.0} | {:.1} |",
            sample.iops, sample.mb_per_s, sample.p99_us, sample.cpu_s_per_million
        ),
        None => write!(text, " - | - | - | - |"),
    }
}

fn write_ratio(text: &mut String, own: &Sample, peer: &Sample, goal: f64) -> std::fmt::Result {
    let rate = own.iops / peer.iops;
    let cpu = own.cpu_s_per_million / peer.cpu_s_per_million.max(1e-9);
    let verdict = match (rate >= goal, cpu <= 1.0) {
        (true, true) => "met",
        (false, true) => "MISSED: rate",
        (true, false) => "MISSED: CPU",
        (false, false) => "MISSED: rate and CPU",
    };
    writeln!(text, " {rate:.2} | {cpu:.2} | {goal:.1}, CPU 1.0: {verdict} |")
}

/// Returns the row with which offloads are compared, on the same target.
fn of_row<'a>(results: &'a Results, id: &str, target: usize) -> Option<&'a Sample> {
    let measured = results.rows.iter().find(|measured| measured.row.id == id)?;
    measured.targets.get(target)?.as_ref()
}

fn write_offloads(text: &mut String, results: &Results) -> std::fmt::Result {
    let offloads: Vec<&Measured> =
        results.rows.iter().filter(|measured| measured.row.is_offload()).collect();
    let Some(own) = results.targets.iter().position(|name| name == "Holdfast") else {
        return Ok(());
    };
    if offloads.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "Offloads of Holdfast (tgt has no EXTENDED COPY, and writes the zeros of a WRITE SAME), \
         durable when acknowledged:\n"
    )?;
    writeln!(text, "| row | /s | GB/s | p99 us | CPU | to TUR | to durable 4 KiB writes | goal |")?;
    writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---|")?;
    let nothing = of_row(results, NOTHING, own);
    let write = of_row(results, DURABLE_WRITE, own);
    for measured in offloads {
        let Some(sample) = measured.targets.get(own).and_then(Option::as_ref) else { continue };
        let to = |base: Option<&Sample>| base.map(|base| sample.iops / base.iops);
        let shown = |ratio: Option<f64>| ratio.map_or(String::from("-"), |r| format!("{r:.2}"));
        let verdict = match to(write) {
            Some(ratio) if ratio >= measured.row.goal => "met",
            Some(_) => "MISSED",
            None => "-",
        };
        writeln!(
            text,
            "| {} | {:.0} | {:.1} | {:.0} | {:.1} | {} | {} | {:.1}: {verdict} |",
            measured.row.title,
            sample.iops,
            sample.mb_per_s / 1e3,
            sample.p99_us,
            sample.cpu_s_per_million,
            shown(to(nothing)),
            shown(to(write)),
            measured.row.goal
        )?;
    }
    writeln!(text)
}

fn write_raw(text: &mut String, results: &Results) -> std::fmt::Result {
    if results.raw.is_empty() {
        return Ok(());
    }
    writeln!(text, "The raw directory (fio, O_DIRECT):\n")?;
    writeln!(text, "| operation | durable | /s | MB/s |\n|---|---|---:|---:|")?;
    for row in &results.raw {
        writeln!(
            text,
            "| {} | {} | {:.0} | {:.0} |",
            row.title, row.durable, row.iops, row.mb_per_s
        )?;
    }
    writeln!(text)
}
