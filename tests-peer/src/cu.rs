//! Runs libiscsi's conformance tests (iscsi-test-cu), one suite at a time, and parses their output.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use libiscsi::{Session, Status};

use crate::command;
use crate::report::Report;
use crate::target::{self, Target};

/// The time limit of a suite, in seconds.
const SUITE_SECONDS: u32 = 120;

/// The result of a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// All of its assertions hold.
    Passed,
    /// An assertion failed: its first message.
    Failed(String),
    /// It printed that it skips something: what.
    Skipped(String),
}

/// The heading in the document of the skips.
const SKIPS: &str = "## Skips of iscsi-test-cu";
/// The heading of tests that require what the standard forbids.
const WRONG: &str = "## Tests of iscsi-test-cu that contradict the standard";

/// The results that `docs/conformance.md` accounts for, by `Suite.Test`.
pub struct Known {
    /// Tests that skip.
    skips: BTreeSet<String>,
    /// Tests that can't pass, because they require what the standard forbids.
    wrong: BTreeSet<String>,
}

impl Known {
    /// Parses the document's rows: the lines below the two headings that begin with a test's name
    /// in a table.
    pub fn read(document: &str) -> Self {
        let mut known = Self { skips: BTreeSet::new(), wrong: BTreeSet::new() };
        let mut heading = "";
        for line in document.lines() {
            if line.starts_with('#') {
                heading = line.trim_end();
            }
            let row = line.strip_prefix("| `").and_then(|rest| rest.split_once("` |"));
            let Some((name, _)) = row.filter(|(name, _)| name.contains('.')) else { continue };
            match heading {
                SKIPS => known.skips.insert(name.to_owned()),
                WRONG => known.wrong.insert(name.to_owned()),
                _ => false,
            };
        }
        known
    }

    /// Returns how a verdict counts; an error if it is not accounted for.
    fn judge(&self, test: &str, verdict: &Verdict) -> Result<Counts, String> {
        match verdict {
            Verdict::Passed if self.wrong.contains(test) => Err(format!(
                "{test} passes, but the document says that it requires what the standard forbids"
            )),
            Verdict::Passed => Ok(Counts::Passed),
            Verdict::Skipped(_) if self.skips.contains(test) => Ok(Counts::Skipped),
            Verdict::Skipped(why) => {
                Err(format!("{test} skips, but the document does not say why: {why}"))
            }
            Verdict::Failed(_) if self.wrong.contains(test) => Ok(Counts::Skipped),
            Verdict::Failed(why) => Err(format!("{test}: {why}")),
        }
    }
}

/// How an expected result counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counts {
    Passed,
    Skipped,
}

/// Runs every suite against a target, with a row for each. A skip that the document does not
/// account for counts as a failure; a test that the document shows to be wrong counts as skipped.
pub fn conformance(
    report: &mut Report,
    title: &str,
    target: &Target,
    second: Option<&Target>,
    known: &Known,
) -> Result<()> {
    for suite in suites()? {
        let name = format!("iscsi-test-cu {title} {suite}");
        // Some tests rely on blocks that they do not write: these must not contain another suite's
        // data.
        if let Err(error) = clear(target) {
            report.add(&name, 0, &[format!("could not be cleared before: {error:#}")], 0);
            continue;
        }
        let verdicts = match run_suite(&suite, target, second) {
            Ok(verdicts) => verdicts,
            Err(error) => {
                report.add(&name, 0, &[format!("{error:#}").replace('\n', " / ")], 0);
                continue;
            }
        };
        let mut passed = 0;
        let mut skipped = 0;
        let mut failed = Vec::new();
        for (test, verdict) in verdicts {
            match known.judge(&format!("{suite}.{test}"), &verdict) {
                Ok(Counts::Passed) => passed += 1,
                Ok(Counts::Skipped) => skipped += 1,
                Err(why) => failed.push(why),
            }
        }
        report.add(&name, passed, &failed, skipped);
    }
    Ok(())
}

/// Zeroes the logical unit's first GiB: more than any test reaches from the start.
fn clear(target: &Target) -> Result<()> {
    let mut session = Session::connect(&target.config())?;
    let capacity = session.capacity()?;
    let blocks = capacity.blocks.min((1 << 30) / u64::from(capacity.block_bytes.max(1)));
    let zeros = vec![0; capacity.block_bytes as usize];
    match session.write_same(0, u32::try_from(blocks)?, zeros, true)? {
        Status::Good => Ok(()),
        status => bail!("WRITE SAME with UNMAP: {status}"),
    }
}

/// Returns the suites of this iscsi-test-cu.
fn suites() -> Result<Vec<String>> {
    let text = command::run(10, "iscsi-test-cu", &["--list"])?.text;
    let mut suites = Vec::new();
    for line in text.lines() {
        if let Some(name) = line.trim().strip_prefix("ALL.")
            && !name.contains('.')
        {
            suites.push(name.to_owned());
        }
    }
    if suites.is_empty() {
        bail!("iscsi-test-cu --list names no suite:\n{}", command::tail(&text, 5));
    }
    Ok(suites)
}

/// Runs a suite. Returns its tests with their results.
fn run_suite(
    suite: &str,
    target: &Target,
    second: Option<&Target>,
) -> Result<BTreeMap<String, Verdict>> {
    let test = format!("ALL.{suite}");
    let url = target.url();
    let second = second.map(Target::url);
    let second_initiator = target::second(&target.initiator);
    let mut arguments = vec![
        "--dataloss",
        "--allow-sanitize",
        "--initiator-name",
        target.initiator.as_str(),
        "--initiator-name-2",
        second_initiator.as_str(),
        "--test",
        test.as_str(),
        url.as_str(),
    ];
    arguments.extend(second.as_deref());
    let finished = command::run(SUITE_SECONDS, "iscsi-test-cu", &arguments)?;
    let verdicts = read(&finished.text);
    if finished.code == 124 {
        bail!("no end within {SUITE_SECONDS} s:\n{}", command::tail(&finished.text, 5));
    }
    // The program's own count must equal the number of parsed tests.
    let count = counted(&finished.text).with_context(|| {
        format!("no summary (exit code {}):\n{}", finished.code, command::tail(&finished.text, 5))
    })?;
    if count != verdicts.len() || count == 0 {
        bail!("{count} tests ran, but {} were parsed", verdicts.len());
    }
    Ok(verdicts)
}

/// Parses the verdicts in the output of iscsi-test-cu.
///
/// A test starts with ` Test: NAME ...`; its messages follow, then `passed` or `FAILED` at the
/// start of a line or after the dots. For CUnit, a test that prints [SKIPPED] has passed.
pub fn read(text: &str) -> BTreeMap<String, Verdict> {
    let mut verdicts = BTreeMap::new();
    let mut open: Option<(String, Vec<String>)> = None;
    for line in text.lines() {
        let mut rest = line;
        if let Some((name, said)) = line.strip_prefix("  Test: ").and_then(|l| l.split_once(" ..."))
        {
            close(&mut verdicts, open.take(), None);
            open = Some((name.to_owned(), Vec::new()));
            rest = said;
        }
        // Messages of the cleanup follow the verdict.
        if rest.starts_with("passed") {
            close(&mut verdicts, open.take(), Some(true));
        } else if rest.starts_with("FAILED") {
            close(&mut verdicts, open.take(), Some(false));
        } else if let Some((_, said)) = &mut open
            && !rest.trim().is_empty()
        {
            said.push(rest.trim().to_owned());
        }
    }
    close(&mut verdicts, open, None);
    verdicts
}

/// Determines the result of a test: `passed` as CUnit says, none if it printed nothing.
fn close(
    verdicts: &mut BTreeMap<String, Verdict>,
    open: Option<(String, Vec<String>)>,
    passed: Option<bool>,
) {
    let Some((name, said)) = open else { return };
    let find = |mark: &str| said.iter().find(|line| line.starts_with(mark)).cloned();
    let verdict = match passed {
        None => Verdict::Failed("it did not end".to_owned()),
        Some(false) => Verdict::Failed(find("[FAILED]").unwrap_or_else(|| said.join(" / "))),
        Some(true) => match find("[SKIPPED]") {
            Some(why) => Verdict::Skipped(why),
            None => Verdict::Passed,
        },
    };
    verdicts.insert(name, verdict);
}

/// Returns how many tests ran, from the summary of CUnit.
fn counted(text: &str) -> Option<usize> {
    let line = text.lines().find(|line| line.trim_start().starts_with("tests "))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "\
Suite: OrWrite
  Test: Simple ...    [FAILED] ORWRITE failed with status 2
FAILED
    1. test_orwrite_simple.c:54  - CU_ASSERT_EQUAL(_r,0)
  Test: ZeroBlocks ...passed
  Test: Protect ...    [SKIPPED] No protection
    [SKIPPED] No protection
passed
  Test: Noisy ...passed    [FAILED] PRIN command failed while cleaning up
  Test: Hung ...
Run Summary:    Type  Total    Ran Passed Failed Inactive
              suites      1      1    n/a      0        0
               tests      5      5      4      1        0
";

    #[test]
    fn reads_passed_failed_skipped_and_unended_tests() {
        let verdicts = read(PRINTED);
        assert_eq!(verdicts.len(), 5);
        assert_eq!(verdicts["Noisy"], Verdict::Passed);
        assert_eq!(verdicts["ZeroBlocks"], Verdict::Passed);
        assert!(matches!(&verdicts["Simple"], Verdict::Failed(why) if why.contains("status 2")));
        assert!(matches!(&verdicts["Protect"], Verdict::Skipped(why) if why.contains("No prot")));
        assert!(matches!(&verdicts["Hung"], Verdict::Failed(_)));
        assert_eq!(counted(PRINTED), Some(5));
    }

    #[test]
    fn only_documented_skips_are_known() {
        let rows = "| `OrWrite.Protect` | why |\n| `READ (10)` | x |\ntext\n";
        let wrong = "| `GetLBAStatus.UnmapSingle` | why |\n";
        let known = Known::read(&format!("{rows}\n{SKIPS}\n\n{rows}\n{WRONG}\n\n{wrong}## x\n"));
        assert_eq!(known.skips.iter().collect::<Vec<_>>(), ["OrWrite.Protect"]);
        assert_eq!(known.wrong.iter().collect::<Vec<_>>(), ["GetLBAStatus.UnmapSingle"]);
    }

    #[test]
    fn only_a_test_known_to_be_wrong_may_fail() {
        let known = Known::read(&format!("{SKIPS}\n| `A.S` | x |\n{WRONG}\n| `A.W` | x |\n"));
        let (failed, skipped) = (Verdict::Failed("f".into()), Verdict::Skipped("s".into()));
        assert_eq!(known.judge("A.W", &failed), Ok(Counts::Skipped));
        assert!(known.judge("A.W", &Verdict::Passed).is_err());
        assert!(known.judge("A.W", &skipped).is_err());
        assert!(known.judge("A.S", &failed).is_err());
        assert_eq!(known.judge("A.S", &skipped), Ok(Counts::Skipped));
        assert!(known.judge("A.X", &skipped).is_err());
        assert_eq!(known.judge("A.X", &Verdict::Passed), Ok(Counts::Passed));
    }
}
