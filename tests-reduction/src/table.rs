//! The table: the reduction ratios of each part and set.
//!
//! All ratios have the same numerator: the nonzero data, in blocks of 4 KiB. So free space of a
//! file system improves no ratio.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde::Serialize;

use crate::aims;
use crate::ceiling::{self, CEILING, Found};
use crate::measure::{self, Measured};

/// The arguments of `table`.
#[derive(Debug, clap::Args)]
pub struct Arguments {
    /// The results of `ceiling`.
    #[arg(long)]
    ceiling: PathBuf,
    /// The results of `measure`, a file for each size of writes.
    #[arg(long)]
    measured: Vec<PathBuf>,
    /// The results of other tools: lines `TOOL SET BYTES`, separated by tabs.
    #[arg(long)]
    references: Option<PathBuf>,
    /// Judge all aims; otherwise only whether all data was read back as written.
    #[arg(long)]
    aims: bool,
    /// Write all results to this file as JSON.
    #[arg(long)]
    json: Option<PathBuf>,
}

/// All results, for the table and the aims.
#[derive(Debug, Serialize)]
pub struct Results {
    /// The ceiling, by part.
    pub ceiling: Vec<Found>,
    /// What Holdfast stored, by the size of the writes.
    pub measured: Vec<Measured>,
    /// What other tools stored: by tool and set, in bytes.
    pub references: BTreeMap<String, BTreeMap<String, u64>>,
}

/// Prints the table and the aims. Returns whether all aims are met.
pub fn run(arguments: &Arguments) -> Result<bool> {
    let measured = arguments.measured.iter().map(|path| measure::read(path));
    let references = match &arguments.references {
        Some(path) => std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
        None => String::new(),
    };
    let results = Results {
        ceiling: ceiling::read(&arguments.ceiling)?,
        measured: measured.collect::<Result<_>>()?,
        references: parse_references(&references)?,
    };
    print!("{}", results.markdown());
    if let Some(path) = &arguments.json {
        lab::report::write_json(path, &results).map_err(anyhow::Error::msg)?;
    }
    println!("\n{}", results.metadata());
    let (text, good) = aims::judge(&results, arguments.aims);
    println!("{text}");
    Ok(good)
}

/// Parses lines `TOOL SET BYTES`, separated by tabs.
fn parse_references(text: &str) -> Result<BTreeMap<String, BTreeMap<String, u64>>> {
    let mut references: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for line in text.lines() {
        let mut fields = line.split('\t');
        let wrong = || format!("{line:?} is not TOOL SET BYTES");
        let tool = fields.next().with_context(wrong)?;
        let set = fields.next().with_context(wrong)?;
        let bytes = fields.next().and_then(|bytes| bytes.parse().ok()).with_context(wrong)?;
        references.entry(tool.to_owned()).or_default().insert(set.to_owned(), bytes);
    }
    Ok(references)
}

/// The parts of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One part, of a set of several.
    Part(String),
    /// All of a set.
    Set(String),
    /// The whole corpus.
    All,
}

impl Scope {
    /// Returns whether a part belongs to the row.
    fn holds(&self, set: &str, name: &str) -> bool {
        match self {
            Self::Part(part) => part == name,
            Self::Set(own) => own == set,
            Self::All => true,
        }
    }
}

impl Results {
    /// Returns the bytes of blocks that are not zeros.
    pub fn data_bytes(&self, scope: &Scope) -> u64 {
        self.found(scope).map(|found| found.data_bytes).sum()
    }

    /// Returns the compressed bytes by a scheme of the ceiling.
    pub fn ceiling_bytes(&self, scope: &Scope, scheme: &str) -> u64 {
        self.found(scope).filter_map(|found| found.stored_bytes.get(scheme)).sum()
    }

    fn found(&self, scope: &Scope) -> impl Iterator<Item = &Found> {
        self.ceiling.iter().filter(move |found| scope.holds(&found.set, &found.name))
    }

    /// Returns the rows: each part of a set of several, each set, and the whole corpus.
    fn scopes(&self) -> Vec<Scope> {
        let mut scopes = Vec::new();
        for set in self.ceiling.chunk_by(|one, next| one.set == next.set) {
            if set.len() > 1 {
                scopes.extend(set.iter().map(|found| Scope::Part(found.name.clone())));
            }
            scopes.push(Scope::Set(set[0].set.clone()));
        }
        scopes.push(Scope::All);
        scopes
    }

    fn markdown(&self) -> String {
        let tools = self.references.keys();
        let mut head = vec![String::from("part"), String::from("MiB"), String::from("data, MiB")];
        for run in &self.measured {
            head.push(format!("{} KiB", run.write_bytes >> 10));
        }
        for run in &self.measured {
            head.push(format!("{} KiB, pass", run.write_bytes >> 10));
        }
        head.extend(["distinct", "lz4 packed", CEILING].map(String::from));
        head.extend(tools.cloned());
        let mut text =
            format!("| {} |\n|---{}|\n", head.join(" | "), "|---:".repeat(head.len() - 1));
        for scope in self.scopes() {
            let _ = writeln!(text, "| {} |", self.row(&scope).join(" | "));
        }
        text
    }

    fn row(&self, scope: &Scope) -> Vec<String> {
        let data = self.data_bytes(scope);
        let bytes: u64 = self.found(scope).map(|found| found.bytes).sum();
        let new: u64 = self.found(scope).map(|found| found.new_bytes).sum();
        let name = match scope {
            Scope::Part(name) => name.clone(),
            Scope::Set(set) => format!("**{set}**"),
            Scope::All => String::from("**all**"),
        };
        let mut row = vec![name, (bytes >> 20).to_string(), (data >> 20).to_string()];
        let inline = self.measured.iter().map(|run| run.inline_bytes(scope));
        let passed = self.measured.iter().map(|run| run.passed_bytes(scope));
        let ceiling =
            [new, self.ceiling_bytes(scope, "lz4 packed"), self.ceiling_bytes(scope, CEILING)];
        let tools = self.references.values().map(|tool| reference(tool, scope));
        let columns = inline.chain(passed).chain(ceiling.into_iter().map(Some)).chain(tools);
        row.extend(columns.map(|stored| ratio(data, stored)));
        row
    }

    /// Returns lines with the pools' use besides data.
    fn metadata(&self) -> String {
        let line = |run: &Measured| {
            let number = |pool: &serde_json::Value, name: &str| pool[name].as_i64().unwrap_or(0);
            let growth = |name| number(&run.pool_after, name) - number(&run.pool_before, name);
            let (data, allocated) = (growth("data_bytes") >> 20, growth("allocated_bytes") >> 20);
            format!(
                "{} KiB writes: {data} MiB of data stored; the pool's segments grew by \
                 {allocated} MiB, including metadata, log and dead space.\n",
                run.write_bytes >> 10
            )
        };
        self.measured.iter().map(line).collect()
    }
}

impl Measured {
    /// Returns the growth by the parts when they were written, or `None` if one is missing.
    pub fn inline_bytes(&self, scope: &Scope) -> Option<u64> {
        let parts = self.parts.iter().filter(|part| scope.holds(&part.set, &part.name));
        parts.map(|part| u64::try_from(part.stored_bytes).ok()).sum()
    }

    /// Returns the growth by the sets after the background pass: `None` for a part, or if no pass
    /// was measured.
    pub fn passed_bytes(&self, scope: &Scope) -> Option<u64> {
        if self.passes.is_empty() || matches!(scope, Scope::Part(_)) {
            return None;
        }
        let sets = self.passes.iter().filter(|pass| scope.holds(&pass.set, ""));
        sets.map(|pass| u64::try_from(pass.stored_bytes).ok()).sum()
    }
}

/// Returns the bytes of a tool; for the whole corpus the sum, if it has every set.
fn reference(tool: &BTreeMap<String, u64>, scope: &Scope) -> Option<u64> {
    match scope {
        Scope::Part(_) => None,
        Scope::Set(set) => tool.get(set).copied(),
        Scope::All => tool.get("all").copied(),
    }
}

fn ratio(data: u64, stored: Option<u64>) -> String {
    match stored {
        None => String::from("–"),
        Some(0) => String::from("∞"),
        Some(stored) => format!("{:.2}", data as f64 / stored as f64),
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
