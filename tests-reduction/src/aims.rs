//! The aims, and their verdicts.

use crate::ceiling::CEILING;
use crate::corpus::IMAGES;
use crate::measure::Measured;
use crate::table::{Results, Scope};

/// The least reduction ratio of all images, inline.
const INLINE_RATIO: f64 = 5.0;
/// The most that may be stored after the background pass, in multiples of the ceiling.
const OVER_CEILING: f64 = 1.10;

/// Returns a line for each aim with the counts, and whether all aims were met. Without `aims`, only
/// judges the verification: ratios of a small corpus say nothing.
pub fn judge(results: &Results, aims: bool) -> (String, bool) {
    let mut lines = Vec::new();
    let mut failed = 0;
    for run in &results.measured {
        let mut judged = vec![read_back(run)];
        if aims {
            judged.push(inline(results, run));
            judged.extend(
                [Scope::Set(IMAGES.into()), Scope::All].map(|scope| behind(results, run, &scope)),
            );
        }
        for (good, what) in judged {
            failed += usize::from(!good);
            let word = if good { "ok    " } else { "FAILED" };
            lines.push(format!("{word}  {} KiB writes: {what}", run.write_bytes >> 10));
        }
    }
    // A run without measurements is a failure.
    let good = failed == 0 && !lines.is_empty();
    let passed = lines.len() - failed;
    lines.push(format!("\n{passed} passed, {failed} failed, 0 skipped"));
    (lines.join("\n"), good)
}

type Judged = (bool, String);

fn read_back(run: &Measured) -> Judged {
    match &run.read_back {
        Ok(()) => (true, String::from("all parts read back equal to their files")),
        Err(error) => (false, error.clone()),
    }
}

fn inline(results: &Results, run: &Measured) -> Judged {
    let images = Scope::Set(IMAGES.into());
    let stored = run.inline_bytes(&images).filter(|stored| *stored > 0);
    let Some(stored) = stored else { return (false, String::from("no images were stored")) };
    let ratio = results.data_bytes(&images) as f64 / stored as f64;
    (ratio >= INLINE_RATIO, format!("images: inline ratio {ratio:.2} (aim {INLINE_RATIO})"))
}

fn behind(results: &Results, run: &Measured, scope: &Scope) -> Judged {
    let what = if *scope == Scope::All { "all parts" } else { "images" };
    let Some(stored) = run.passed_bytes(scope) else {
        return (false, format!("{what}: no background pass was measured"));
    };
    let over = stored as f64 / results.ceiling_bytes(scope, CEILING) as f64;
    let text =
        format!("{what}: {over:.3} times the ceiling after the pass (aim {OVER_CEILING:.2})");
    (over <= OVER_CEILING, text)
}
