//! A report as a document.

use super::document::{Block, Cell, Column, Document, Section, Table, Tone, anchor};
use super::quantity::Shown;
use super::tables::{OFF_ON, ON_OFF, Pair};
use super::{in_software, summary, tables};
use crate::figures;
use crate::number;
use crate::outcome::{About, Chart, Report, Row, ScenarioOutcome, Status};

/// Returns the document of one report.
pub fn document(report: &Report) -> Document {
    let about = &report.about;
    let mut sections = vec![
        Section {
            anchor: String::from("about"),
            short: String::from("What was measured"),
            title: String::from("What was measured"),
            blocks: vec![Block::Table(about_table(&[("", about)]))],
        },
        Section {
            anchor: String::from("summary"),
            short: String::from("Summary"),
            title: String::from("Summary"),
            blocks: vec![
                Block::text(summary::sentence(report)),
                Block::Table(summary::table(report)),
            ],
        },
    ];
    sections.extend(report.scenarios.iter().enumerate().map(|(index, it)| scenario(index, it)));
    Document {
        title: format!("{}: offload on against off", about.name),
        intro: vec![Block::text(
            "What hosts gain if the array does their copying, zeroing, reclaiming and locking. \
             Off: the host does the work by READ and WRITE, and locks by reservations. On: the \
             array does. Same bytes, same hosts. The papers' published figures are in a column \
             of their own: they were measured on other arrays and hosts, at full size.",
        )],
        sections,
    }
}

/// Returns what was measured, and how: a column for each report.
pub fn about_table(reports: &[(&str, &About)]) -> Table {
    type Show = fn(&About) -> String;
    const LINES: [(&str, Show); 14] = [
        ("Name", |about| about.name.clone()),
        ("Array, by INQUIRY", |about| about.array.clone()),
        ("Durability", |about| about.durability.clone()),
        ("Scale", scale),
        ("Numbers of machines", counts),
        ("Time of a load", |about| match about.load_seconds {
            0.0 => number::NONE.to_owned(),
            seconds => number::seconds(seconds),
        }),
        ("Hosts", |about| number::count(about.hosts.into())),
        ("Portals", |about| about.portals.join(", ")),
        ("Processor", |about| about.machine.cpu.clone()),
        ("Processors", |about| number::count(about.machine.cores.into())),
        ("Memory", |about| number::bytes(about.machine.memory_bytes as f64)),
        ("System", |about| format!("{}, Linux {}", about.machine.os, about.machine.kernel)),
        ("Lab", |about| format!("holdfast-lab {}", about.lab_version)),
        ("Begun", |about| about.date.clone()),
    ];
    let mut columns = vec![Column::words("")];
    columns.extend(reports.iter().map(|(name, _)| Column::words(name)));
    let rows = LINES.iter().map(|(name, show)| {
        let mut row = vec![Cell::new(*name)];
        row.extend(reports.iter().map(|(_, about)| Cell::new(show(about))));
        row
    });
    Table { caption: String::from("Array, machine, settings"), columns, rows: rows.collect() }
}

fn scale(about: &About) -> String {
    match about.scale {
        1 => String::from("full sizes"),
        scale => format!("the papers' sizes divided by {}", number::count(scale)),
    }
}

fn counts(about: &About) -> String {
    match about.count_scale {
        1 => String::from("the papers'"),
        scale => format!("the papers' divided by {}: not comparable", number::count(scale)),
    }
}

/// Returns the title of a scenario: its id, and what is done.
pub fn title(id: &str) -> String {
    match figures::find(id) {
        Some(figure) => format!("{id}: {}", figure.title),
        None => id.to_owned(),
    }
}

fn scenario(index: usize, outcome: &ScenarioOutcome) -> Section {
    let mut blocks = vec![status(outcome)];
    if let Some(figure) = figures::find(&outcome.id) {
        blocks.push(Block::Table(tables::published(figure)));
    }
    let pairs: Vec<Pair<'_>> = outcome.rows.iter().map(pair).collect();
    if !pairs.is_empty() {
        let caption = "Measured here: off, on, and how many times on is off";
        blocks.push(Block::Table(tables::measures(caption, OFF_ON, &pairs)));
    }
    let caption = "Measured here, besides";
    blocks.extend(tables::values(caption, ON_OFF, &pairs).map(Block::Table));
    blocks.extend(tables::spreads(OFF_ON, &pairs).map(Block::Table));
    blocks.extend(in_software::table(OFF_ON, &pairs));
    blocks.extend(in_software::table_of_all(&outcome.in_software));
    if outcome.charts.is_empty() {
        blocks.extend(chart(&outcome.id, &outcome.rows).map(Block::Chart));
    }
    blocks.extend(outcome.charts.iter().cloned().map(Block::Chart));
    if !outcome.verdicts.is_empty() {
        blocks.push(Block::Table(tables::verdicts(&outcome.verdicts)));
    }
    if !outcome.notes.is_empty() {
        blocks.push(Block::List(String::from("Notes"), outcome.notes.clone()));
    }
    let short = outcome.id.clone();
    Section { anchor: anchor(index, &outcome.id), short, title: title(&outcome.id), blocks }
}

fn pair(row: &Row) -> Pair<'_> {
    Pair { case: row.case.clone(), left: row.off.as_ref(), right: row.on.as_ref() }
}

/// Returns a case, with a mark if its "on" was done in software.
pub fn case(row: &Row) -> String {
    match row.on.as_ref().and_then(|on| in_software::mark(OFF_ON.right, on)) {
        Some(mark) => format!("{} ({mark})", row.case),
        None => row.case.clone(),
    }
}

/// Returns how a scenario ended.
fn status(outcome: &ScenarioOutcome) -> Block {
    match &outcome.status {
        Status::Done => {
            let seconds = number::seconds(outcome.seconds);
            let verified = match outcome.verified_bytes {
                0 => String::from("there was nothing to read back"),
                bytes => format!("{} read back and compared", number::bytes(bytes as f64)),
            };
            let checked = checked(outcome.datastores_checked);
            Block::text(format!("Took {seconds} in total; {verified}; {checked}."))
        }
        Status::Failed { reason } => Block::Text(Tone::Bad, format!("Failed: {reason}")),
        Status::Skipped { reason } => Block::Text(Tone::Faint, format!("Skipped: {reason}")),
    }
}

/// Returns how many datastores were checked at the end of the scenario.
fn checked(datastores: u64) -> String {
    match datastores {
        0 => String::from("no datastore was checked"),
        1 => String::from("its datastore was checked, and is sound"),
        count => format!("{} datastores were checked, and are sound", number::count(count)),
    }
}

/// Returns bars of all rows; `None` if nothing was measured.
fn chart(id: &str, rows: &[Row]) -> Option<Chart> {
    let measures = || rows.iter().flat_map(|row| row.on.iter().chain(&row.off));
    measures().next()?;
    let labels = rows.iter().map(case).collect();
    let off = rows.iter().map(|row| row.off.as_ref()).collect();
    let on = rows.iter().map(|row| row.on.as_ref()).collect();
    Some(Shown::of(id, measures()).bars(labels, &[("off", off), ("on", on)]))
}
