//! `holdfast-lab run` as users run it.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use lab::outcome::{Report, Status};

use crate::array::{Array, Programs};
use crate::command;
use crate::target::{INITIATOR, Target};

/// Two scenarios, and what their rows must contain.
const SCENARIOS: [&str; 2] = ["P-9", "I-lock"];

/// Two scenarios of minimum size; then again, when nothing is left to do; then one of them when the
/// array does not copy.
pub fn run(array: &Array, target: &Target, programs: &Programs) -> Result<String> {
    // The lab's hosts use the initiator's name with their number appended.
    let initiators = [1, 2].map(|number| format!("{INITIATOR}-{number}"));
    array.host("lab", &initiators.each_ref().map(String::as_str))?;
    for (index, volume) in ["scene-1", "scene-2"].into_iter().enumerate() {
        array.verb(&["volume", "create", volume, "--size", "4G"])?;
        array.verb(&["connect", volume, "lab", "--lun", &(index + 1).to_string()])?;
    }
    let first = run_once(array, target, programs)?;
    let found: Vec<&str> = first.scenarios.iter().map(|scenario| scenario.id.as_str()).collect();
    ensure!(found == SCENARIOS, "the report has {found:?}");
    for scenario in &first.scenarios {
        let id = &scenario.id;
        ensure!(scenario.status == Status::Done, "{id}: {:?}", scenario.status);
        ensure!(scenario.verified_bytes > 0, "{id} has verified nothing");
        ensure!(scenario.datastores_checked >= 2, "{id}: {} checks", scenario.datastores_checked);
        ensure!(scenario.in_software.is_empty(), "{id}: {:?}", scenario.in_software);
        let row = scenario.rows.first().with_context(|| format!("{id} has no row"))?;
        let sides = [row.off.as_ref(), row.on.as_ref()];
        for measure in sides.map(|side| side.context("a side is missing")) {
            let measure = measure.with_context(|| format!("{id}, {}", row.case))?;
            ensure!(measure.commands > 0 && measure.wire_bytes > 0, "{id}: {measure:?}");
        }
    }
    let again = run_once(array, target, programs)?;
    ensure!(again.scenarios == first.scenarios, "the second run did not resume the first");
    let switch = |to: &str| array.verb(&["volume", "set", "scene-2", "--offload", to]).map(drop);
    switch("full-copy=off")?;
    let refused = refused(array, target, programs);
    switch("full-copy=on")?;
    refused?;
    Ok(format!("{} portals", first.about.portals.len()))
}

/// A copy that the array should have done but refused is reported.
fn refused(array: &Array, target: &Target, programs: &Programs) -> Result<()> {
    let results = array.scratch().join("refused");
    let report = run_in(&results, &SCENARIOS[..1], 0, array, target, programs)?;
    let on = report.scenarios.first().and_then(|scenario| scenario.rows.first()?.on.clone());
    let on = on.context("the refused run has no row")?;
    let [copies] = &on.in_software[..] else { anyhow::bail!("in software: {:?}", on.in_software) };
    ensure!(copies.offload == "EXTENDED COPY" && copies.refused > 0, "{copies:?}");
    ensure!(copies.by_array == 0 && copies.by_host_bytes > 0, "{copies:?}");
    let text = lab::sheet::markdown(&report);
    ensure!(text.contains("(on in software: EXTENDED COPY)"), "the report does not mention it");
    Ok(())
}

fn run_once(array: &Array, target: &Target, programs: &Programs) -> Result<Report> {
    let results = array.scratch().join("results");
    let known = if results.exists() { SCENARIOS.len() } else { 0 };
    run_in(&results, &SCENARIOS, known, array, target, programs)
}

/// Runs scenarios, of which this many are already in the results.
fn run_in(
    results: &Path,
    scenarios: &[&str],
    known: usize,
    array: &Array,
    target: &Target,
    programs: &Programs,
) -> Result<Report> {
    let json = results.join("report.json");
    let urls = [1, 2].map(|lun| target.with_lun(lun).url());
    let (results, json_name) = (results.display().to_string(), json.display().to_string());
    let counters = array.scratch().join("run-counters.json").display().to_string();
    let mut arguments = vec!["run"];
    arguments.extend(scenarios);
    arguments.extend(["--url", &urls[0], "--url", &urls[1], "--initiator", INITIATOR]);
    arguments.extend(["--hosts", "2", "--scale", "4096", "--seconds", "0.3"]);
    arguments.extend(["--results", &results, "--json", &json_name, "--counters", &counters]);
    let said = command::run(120, &programs.lab.display().to_string(), &arguments)?.good()?;
    let resumed = said.matches("(from an earlier run)").count();
    ensure!(resumed == known, "the output is: {said}");
    let text = std::fs::read_to_string(&json)?;
    serde_json::from_str(&text).context("the lab can't parse the report")
}
