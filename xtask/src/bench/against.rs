//! Compares Holdfast with an earlier build: which rows have become slower. Or a pool on several
//! files with one on a single file: the cost of redundancy.
//!
//! Both serve their pools all the time, and are loaded in alternating turns of a few seconds. Other
//! activity of the machine changes from minute to minute by more than the difference to detect, so
//! each turn is compared only with its neighbour, and the median of these ratios counts.

use std::fmt::Write;

use anyhow::Result;
use serde::Serialize;

use super::options::Options;
use super::process::Programs;
use super::rows::Row;
use super::{Sample, median, middle_of, targets};

/// A row below this ratio of the earlier rate has become slower.
const GOAL: f64 = 0.97;
/// The same for several files against one.
const GOAL_OF_SEVERAL: f64 = 0.8;

/// A row measured on both.
#[derive(Debug, Serialize)]
pub struct Compared {
    /// The row.
    #[serde(flatten)]
    row: &'static Row,
    /// Medians of the earlier build, and of this one.
    before: Sample,
    now: Sample,
    /// The median of the ratios of neighbouring turns, this build to the earlier one.
    rate: f64,
    cpu: f64,
    p99: f64,
}

/// Measures the rows on both; this build's pool is on `devices` files.
pub fn run(
    options: &Options,
    programs: &Programs,
    before: &Programs,
    rows: &[&'static Row],
) -> Result<Vec<Compared>> {
    let devices = options.devices.unwrap_or(1);
    let pair = [
        targets::start_holdfast(options, before, (targets::BEFORE, 1))?,
        targets::start_holdfast(options, programs, (targets::NOW, devices))?,
    ];
    let samples = super::sample_in_rounds(options, &programs.lab, &pair, rows)?;
    drop(pair);
    targets::clear(&options.dir)?;
    Ok(rows.iter().zip(samples).filter_map(|(row, samples)| compared(row, samples)).collect())
}

/// Summarises the rounds of a row; `None` if there was none.
fn compared(row: &'static Row, samples: Vec<Vec<Sample>>) -> Option<Compared> {
    let [before, now]: [Vec<Sample>; 2] = samples.try_into().ok()?;
    let ratio = |of: fn(&Sample) -> f64| {
        let pairs = before.iter().zip(&now);
        middle_of(pairs.map(|(before, now)| of(now) / of(before).max(1e-9)).collect())
    };
    let (rate, cpu) = (ratio(|sample| sample.iops)?, ratio(|sample| sample.cpu_s_per_million)?);
    let p99 = ratio(|sample| sample.p99_us)?;
    Some(Compared { row, rate, cpu, p99, before: median(before)?, now: median(now)? })
}

/// Returns the report in Markdown; empty if nothing was compared.
pub fn render(rows: &[Compared], devices: Option<u16>) -> String {
    let mut text = String::new();
    if !rows.is_empty() {
        // Writing to a String does not fail.
        let _ = write_rows(&mut text, rows, devices);
    }
    text
}

fn write_rows(text: &mut String, rows: &[Compared], devices: Option<u16>) -> std::fmt::Result {
    let (title, [one, other], goal) = match devices {
        None => ("an earlier build".to_owned(), ["before", "now"], GOAL),
        Some(count) => (format!("one file, on {count}"), ["on one", "on several"], GOAL_OF_SEVERAL),
    };
    writeln!(
        text,
        "## Holdfast and {title}\n\nBoth are loaded alternately; ratios are medians of \
         those of adjacent measurements.\n"
    )?;
    writeln!(
        text,
        "| row | {one} /s | p99 us | CPU | {other} /s | p99 us | CPU | rate | p99 | CPU | goal |"
    )?;
    writeln!(text, "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")?;
    for Compared { row, before, now, rate, cpu, p99 } in rows {
        write!(text, "| {} |", row.title)?;
        for sample in [before, now] {
            let Sample { iops, p99_us, cpu_s_per_million, .. } = sample;
            write!(text, " {iops:.0} | {p99_us:.0} | {cpu_s_per_million:.1} |")?;
        }
        let verdict = if *rate >= goal { "met" } else { "MISSED" };
        writeln!(text, " {rate:.3} | {p99:.2} | {cpu:.2} | {goal}: {verdict} |")?;
    }
    writeln!(text)
}

#[cfg(test)]
mod tests {
    use super::super::rows::ROWS;
    use super::*;

    fn rated(rates: &[f64]) -> Vec<Sample> {
        let sample = |rate: &f64| Sample {
            iops: *rate,
            mb_per_s: 0.0,
            p99_us: 1e6 / rate,
            cpu_s_per_million: 10.0,
        };
        rates.iter().map(sample).collect()
    }

    #[test]
    fn the_ratio_is_the_median_of_adjacent_pairs() {
        // The machine gets slower and slower; the second is a tenth faster each time.
        let samples = vec![rated(&[100.0, 50.0, 10.0]), rated(&[110.0, 55.0, 11.0])];
        let found = compared(&ROWS[0], samples).unwrap();
        assert!((found.rate - 1.1).abs() < 1e-9 && (found.cpu - 1.0).abs() < 1e-9);
        assert!((found.p99 - 1.0 / 1.1).abs() < 1e-9);
        assert!(render(&[found], None).contains("| 1.100 | 0.91 | 1.00 | 0.97: met |"));
        let slower = compared(&ROWS[0], vec![rated(&[100.0]), rated(&[96.0])]).unwrap();
        assert!(render(std::slice::from_ref(&slower), None).contains("MISSED"));
        let several = render(&[slower], Some(6));
        assert!(several.contains("on 6") && several.contains("0.8: met"), "{several}");
        assert!(compared(&ROWS[0], vec![Vec::new(), Vec::new()]).is_none());
        assert_eq!(render(&[], None), "");
    }
}
