//! Checks that `docs/conformance.md` names exactly the commands that are dispatched.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use regex::Regex;

use super::{Finding, Tree};

/// The file that dispatches the commands.
const TABLE: &str = "crates/scsi/src/table.rs";
/// The file that documents them.
const DOCUMENT: &str = "docs/conformance.md";

/// An entry of the table: kind, name, operation code, and byte 1 of the usage map.
static ENTRY: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"(plain|action|anywhere)\(\s*"([^"]+)",(?:\s*\w+,)?\s*&\[0x([0-9a-f]+),\s*(?:0x)?(\w+)"#,
    )
    .expect("the pattern is constant")
});

/// Checks that every command in the table has a row in the document, and every row a command.
pub fn check_commands(tree: &Tree) -> Vec<Finding> {
    let (Some(table), Some(document)) = (tree.get(TABLE), tree.get(DOCUMENT)) else {
        return vec![Finding::new(DOCUMENT, 0, format!("this file or {TABLE} does not exist"))];
    };
    let dispatched = dispatched(table);
    if dispatched.is_empty() {
        return vec![Finding::new(TABLE, 0, "no command found")];
    }
    let told: BTreeSet<String> = document.lines().filter_map(told).collect();
    let missing = dispatched
        .difference(&told)
        .map(|row| Finding::new(DOCUMENT, 0, format!("no row starts with `{row}`")));
    let stale = told
        .difference(&dispatched)
        .map(|row| Finding::new(DOCUMENT, 0, format!("no command implements `{row}`")));
    missing.chain(stale).collect()
}

/// Returns the commands of the table, as the document's rows begin.
fn dispatched(table: &str) -> BTreeSet<String> {
    let Some(start) = table.find("COMMANDS: &[Entry]") else { return BTreeSet::new() };
    ENTRY
        .captures_iter(&table[start..])
        .map(|capture| {
            let action = match &capture[1] {
                "action" => u8::from_str_radix(&capture[4], 16)
                    .map(|byte| format!("{:02X}h", byte & 0x1f))
                    .unwrap_or_default(),
                _ => String::new(),
            };
            format!("{}h | {action} | {}", capture[3].to_uppercase(), &capture[2])
        })
        .collect()
}

/// Returns the beginning of a row that documents a command: code, action, name.
fn told(line: &str) -> Option<String> {
    let cells: Vec<&str> = line.strip_prefix('|')?.split('|').map(str::trim).collect();
    let [code, action, name, ..] = cells[..] else { return None };
    let digits = code.strip_suffix('h')?;
    let is_code = digits.len() == 2 && cells.len() > 6 && u8::from_str_radix(digits, 16).is_ok();
    is_code.then(|| format!("{code} | {action} | {name}"))
}
