//! The group's tables, in Markdown.

use std::fmt::Write;

use super::costs::Cost;
use super::{Report, content, reclaim};

/// The most by which the 99th percentile of latency may grow with reclaim.
const RECLAIM_P99_RATIO_MAX: f64 = 2.0;

/// Returns all tables.
pub fn render(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    let _ = write_report(&mut text, report);
    text
}

fn write_report(text: &mut String, report: &Report) -> std::fmt::Result {
    write_content(text, &report.content)?;
    write_costs(text, &report.costs)?;
    match &report.reclaim {
        Some(reclaim) => write_reclaim(text, reclaim),
        None => Ok(()),
    }
}

fn verdict(is_met: bool) -> &'static str {
    if is_met { "met" } else { "MISSED" }
}

fn write_content(text: &mut String, rows: &[content::Measured]) -> std::fmt::Result {
    if rows.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "## Writes with reduction on and off\n\n\
         Acknowledged writes are durable. Each measurement uses a new volume of the same array. \
         CPU is the array's, in seconds for a GB. Stored: bytes of data in the pool for each byte \
         written.\n"
    )?;
    writeln!(
        text,
        "| row | on, MB/s | p99 us | CPU | stored | off, MB/s | p99 us | CPU | stored | rate | \
         CPU | aim |\n|---|{}---|",
        "---:|".repeat(10)
    )?;
    for measured in rows {
        let (on, off) = (&measured.on, &measured.off);
        let (rate, goal) = (on.mb_per_s / off.mb_per_s, measured.row.goal);
        write!(text, "| {} |", measured.row.title())?;
        for side in [on, off] {
            write!(
                text,
                " {:.0} | {:.0} | {:.2} | {:.2} |",
                side.mb_per_s, side.p99_us, side.cpu_s_per_gb, side.stored
            )?;
        }
        let cpu = on.cpu_s_per_gb / off.cpu_s_per_gb.max(1e-9);
        writeln!(text, " {rate:.2} | {cpu:.2} | {goal:.1}, {} |", verdict(rate >= goal))?;
    }
    writeln!(text)
}

fn write_costs(text: &mut String, costs: &[Cost]) -> std::fmt::Result {
    if costs.is_empty() {
        return Ok(());
    }
    writeln!(
        text,
        "## Cost of operations by size\n\n\
         One at a time. The time of a snapshot, a clone or a destruction is that of the verb, \
         including the start of its program. Size is the volume's provisioned size, or the bytes \
         that the command covers. Bytes are those written to the device.\n"
    )?;
    writeln!(
        text,
        "| operation | size | answered, ms | to the smallest | commits | bytes | space free, s |\n\
         |---|---:|---:|---:|---:|---:|---:|"
    )?;
    for cost in costs {
        let smallest = costs.iter().find(|other| other.operation == cost.operation);
        let ratio = smallest.map_or(1.0, |smallest| cost.answer_ms / smallest.answer_ms);
        writeln!(
            text,
            "| {} | {} | {:.3} | {ratio:.2} | {:.1} | {:.0} | {} |",
            cost.operation,
            cost.bytes.map_or(String::from("-"), size),
            cost.answer_ms,
            cost.commits,
            cost.device_bytes,
            cost.freed_s.map_or(String::from("-"), |seconds| format!("{seconds:.2}"))
        )?;
    }
    writeln!(text)
}

fn size(bytes: u64) -> String {
    let units = [(40, "TiB"), (30, "GiB"), (20, "MiB"), (10, "KiB")];
    let unit = units.iter().find(|(shift, _)| bytes >> shift > 0);
    unit.map_or(format!("{bytes} B"), |(shift, name)| format!("{} {name}", bytes >> shift))
}

fn write_reclaim(text: &mut String, measured: &reclaim::Measured) -> std::fmt::Result {
    let reclaim::Measured { live_share, saturated, steady } = measured;
    writeln!(
        text,
        "## Cost of reclaim\n\n\
         4 KiB random writes over all live data, unique and incompressible, depth 32: as many \
         as each pool accepts, and a third of what the fuller one accepts. Written for one: bytes \
         written to the device for each byte that the host wrote. Refused: commands, for lack of \
         space.\n"
    )?;
    writeln!(
        text,
        "| pool | /s | refused | p50 us | p99 us | CPU | device bytes / host byte |\n|---|{}",
        "---:|".repeat(6)
    )?;
    let share = format!("{:.0}% live, reclaim runs", live_share * 100.0);
    for (pair, aim) in [(saturated, None), (steady, Some(RECLAIM_P99_RATIO_MAX))] {
        write_sample(text, &share, &pair.with)?;
        write_sample(text, "with free space, reclaim does not run", &pair.without)?;
        write_ratios(text, &pair.with, &pair.without, aim)?;
    }
    writeln!(text)
}

fn write_sample(text: &mut String, name: &str, sample: &reclaim::Sample) -> std::fmt::Result {
    let reclaim::Sample { iops, refused, p50_us, p99_us, .. } = sample;
    let (cpu, written) = (sample.cpu_s_per_million, sample.amplification);
    write!(text, "| {name} | {iops:.0} | {refused:.0} | {p50_us:.0} | {p99_us:.0} |")?;
    writeln!(text, " {cpu:.1} | {written:.2} |")
}

fn write_ratios(
    text: &mut String,
    with: &reclaim::Sample,
    without: &reclaim::Sample,
    p99_ratio_max: Option<f64>,
) -> std::fmt::Result {
    let p99 = with.p99_us / without.p99_us;
    let aim = p99_ratio_max.map_or(String::new(), |most| {
        let verdict = verdict(p99 <= most && with.refused == 0.0);
        format!(" (aim {most:.1}: {verdict})")
    });
    writeln!(
        text,
        "| ratio | {:.2} | - | {:.2} | {p99:.2}{aim} | {:.2} | {:.2} |",
        with.iops / without.iops,
        with.p50_us / without.p50_us,
        with.cpu_s_per_million / without.cpu_s_per_million.max(1e-9),
        with.amplification / without.amplification
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(mb_per_s: f64, stored: f64) -> content::Sample {
        content::Sample { mb_per_s, p99_us: 500.0, cpu_s_per_gb: 2.0, stored, device: 1.1 }
    }

    fn cost(bytes: u64, answer_ms: f64) -> Cost {
        let (commits, device_bytes) = (1.0, 8192.0);
        let freed_s = Some(0.25);
        Cost { operation: "UNMAP", bytes: Some(bytes), answer_ms, commits, device_bytes, freed_s }
    }

    fn overwritten(p99_us: f64) -> reclaim::Sample {
        let (iops, p50_us, cpu_s_per_million) = (50e3, 400.0, 20.0);
        let (refused, amplification) = (0.0, 2.5);
        reclaim::Sample { iops, p50_us, p99_us, refused, cpu_s_per_million, amplification }
    }

    /// Returns the cells of the row that begins with `start`.
    fn cells<'a>(text: &'a str, start: &str) -> Vec<&'a str> {
        let row = text.lines().find(|line| line.starts_with(start)).expect("no such row");
        row.trim_matches('|').split('|').map(str::trim).collect()
    }

    #[test]
    fn rates_are_compared_with_those_without_reduction() {
        let rows = [(0, 71.0), (0, 69.0), (1, 101.0), (1, 99.0)];
        let content: Vec<_> = rows
            .iter()
            .map(|(row, rate)| content::Measured {
                row: &content::ROWS[*row],
                on: written(*rate, 0.5),
                off: written(100.0, 1.0),
            })
            .collect();
        let text = render(&Report { content, ..Report::default() });
        let aims: Vec<_> = text.lines().filter_map(|line| line.split(" | ").nth(11)).collect();
        assert_eq!(aims, ["aim |", "0.7, met |", "0.7, MISSED |", "1.0, met |", "1.0, MISSED |"]);
        let first = cells(&text, "| 4 KiB random, depth 32: unique, incompressible");
        assert_eq!(first[1..5], ["71", "500", "2.00", "0.50"]);
        assert_eq!(first[5..9], ["100", "500", "2.00", "1.00"]);
        assert_eq!(first[9..11], ["0.71", "1.00"]);
    }

    #[test]
    fn costs_are_compared_with_the_smallest_size() {
        let costs = vec![cost(1 << 20, 0.5), cost(16 << 30, 0.6)];
        let text = render(&Report { costs, ..Report::default() });
        assert_eq!(cells(&text, "| UNMAP | 1 MiB")[2..4], ["0.500", "1.00"]);
        let large = cells(&text, "| UNMAP | 16 GiB");
        assert_eq!(large[2..], ["0.600", "1.20", "1.0", "8192", "0.25"]);
    }

    #[test]
    fn the_tail_with_reclaim_is_at_most_twice_that_without() {
        for (p99_us, shown) in [(1900.0, "1.90 (aim 2.0: met)"), (2100.0, "2.10 (aim 2.0: MISSED)")]
        {
            let (with, without) = (overwritten(p99_us), overwritten(1000.0));
            let saturated = reclaim::Pair { with: overwritten(9000.0), without: without.clone() };
            let steady = reclaim::Pair { with, without };
            let measured = reclaim::Measured { live_share: 0.8, saturated, steady };
            let text = render(&Report { reclaim: Some(measured), ..Report::default() });
            assert_eq!(cells(&text, "| ratio")[4], "9.00");
            let steady = &text[text.rfind("| 80% live").expect("no such row")..];
            assert_eq!(cells(steady, "| ratio")[4], shown);
            assert_eq!(cells(steady, "| 80% live")[4], format!("{p99_us:.0}"));
        }
    }
}
