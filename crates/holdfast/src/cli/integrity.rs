//! `pool scrub` and `pool damage`.

use api::{DamageEntry, DamageList, Scrub};

use super::args::{Common, PassVerb};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, facts, show, table, time};
use super::size::human;

/// Starts, stops or shows a scrub.
pub fn scrub(common: &Common, verb: PassVerb) -> Result<(), Failure> {
    let scrub: Scrub = Client::find(common)?.pass("/v1/pool/scrub", verb)?;
    show(common.form, &scrub, || text(&scrub))
}

fn text(scrub: &Scrub) -> String {
    let when = |ms: u64| if ms == 0 { "not since the start".into() } else { time(ms) };
    let percent = scrub.done_bytes as f64 * 100.0 / scrub.total_bytes.max(1) as f64;
    let progress = format!(
        "{} of about {} ({percent:.1}%)",
        human(scrub.done_bytes),
        human(scrub.total_bytes)
    );
    facts(&[
        ("Scrub", if scrub.running { "running" } else { "idle" }.into()),
        ("Begun", when(scrub.started_ms)),
        ("Progress", if scrub.running { progress } else { "-".into() }),
        ("Last complete", when(scrub.completed_ms)),
        ("Read since the start", human(scrub.scrubbed_bytes)),
        ("Found", scrub.findings.to_string()),
        ("Repaired", scrub.repairs.to_string()),
        ("Damaged now", scrub.damaged.to_string()),
    ])
}

/// Lists what is damaged.
pub fn damage(common: &Common) -> Result<(), Failure> {
    let list: DamageList = Client::find(common)?.get("/v1/pool/damage")?;
    show(common.form, &list, || listed(&list))
}

fn listed(list: &DamageList) -> String {
    let columns = [
        ("KIND", Align::Left),
        ("WHAT", Align::Left),
        ("VOLUME", Align::Left),
        ("FIRST LBA", Align::Right),
        ("BLOCKS", Align::Right),
        ("FOUND", Align::Left),
        ("REPAIRED", Align::Left),
    ];
    let rows: Vec<Vec<String>> = list.damage.iter().map(row).collect();
    let nothing = "No known damage. Look for damage: holdfast pool scrub start";
    let mut text = table(&columns, &rows, nothing);
    let ranges: u64 = list.damage.iter().map(|entry| entry.ranges_more).sum();
    for (count, what) in [
        (list.more, "more findings"),
        (ranges, "more ranges of blocks"),
        (list.unfreeable, "parts of destroyed volumes that can't be freed"),
    ] {
        if count > 0 {
            text.push_str(&format!("And {count} {what}.\n"));
        }
    }
    text
}

fn row(entry: &DamageEntry) -> Vec<String> {
    let volume = match (&entry.volume, entry.volume_id) {
        (Some(name), _) => name.clone(),
        (None, Some(id)) => format!("(id {id})"),
        (None, None) => "-".into(),
    };
    let lba = entry.first_lba.map_or("-".into(), |lba| lba.to_string());
    let blocks = if entry.first_lba.is_some() { entry.blocks.to_string() } else { "-".into() };
    let repaired = if entry.repaired { "yes" } else { "no" };
    let found = time(entry.found_ms);
    vec![entry.kind.clone(), entry.what.clone(), volume, lba, blocks, found, repaired.into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_shown_by_volume_and_unlisted_ones_are_counted() {
        let entry = DamageEntry {
            kind: "data".into(),
            what: "chunk 7".into(),
            volume: Some("vol1".into()),
            volume_id: Some(3),
            first_lba: Some(80),
            blocks: 8,
            ranges_more: 5,
            offset_bytes: 4096,
            found_ms: 0,
            repaired: false,
        };
        let list = DamageList { damage: vec![entry], more: 2, unfreeable: 0 };
        let text = listed(&list);
        let line = text.lines().nth(1).unwrap();
        assert!(line.contains("vol1") && line.contains("80") && line.ends_with("no"), "{text}");
        assert!(text.contains("And 2 more findings.") && text.contains("And 5 more ranges"));
        assert!(!text.contains("can't be freed"));
    }
}
