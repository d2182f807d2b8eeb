//! `pool optimize`: the background pass of reduction.

use std::thread;
use std::time::Duration;

use api::Optimize;

use super::args::{Common, PassVerb};
use super::client::Client;
use super::failure::Failure;
use super::output::{facts, show};

const PATH: &str = "/v1/pool/optimize";
/// The interval of polling a pass.
const LOOK_INTERVAL: Duration = Duration::from_millis(200);

/// Starts a pass, stops it, or shows its state.
pub fn run(common: &Common, verb: PassVerb, wait: bool) -> Result<(), Failure> {
    if wait && verb != PassVerb::Start {
        return Err(Failure::Usage("--wait is for a pass that is started".into()));
    }
    let client = Client::find(common)?;
    let mut status: Optimize = client.pass(PATH, verb)?;
    if wait {
        status = wait_for_end(&client, status)?;
    }
    show(common.form, &status, || text(&status))
}

/// Waits for the end of a pass that was started, with the status of its start.
fn wait_for_end(client: &Client, started: Optimize) -> Result<Optimize, Failure> {
    let mut status = started.clone();
    while status.running && status.passes == started.passes {
        thread::sleep(LOOK_INTERVAL);
        status = client.get(PATH)?;
    }
    judged(&started, status)
}

/// Checks that a pass that has ended was complete.
fn judged(started: &Optimize, status: Optimize) -> Result<Optimize, Failure> {
    if let Some(why) = &status.failure {
        return Err(Failure::Refused(format!("the background pass has failed: {why}")));
    }
    // A short pass may have ended before the response to its start.
    if started.running && status.passes == started.passes {
        let text = "the background pass was stopped before its end; start it again";
        return Err(Failure::Refused(text.into()));
    }
    Ok(status)
}

/// Returns the progress in a few words; `idle`, or why the last pass failed.
pub fn brief(status: &Optimize) -> String {
    if !status.running {
        return match &status.failure {
            Some(why) => format!("failed: {why}"),
            None => format!("idle ({} complete since the start)", status.passes),
        };
    }
    let percent = |done: u64, total: u64| done as f64 * 100.0 / total.max(1) as f64;
    if status.segments_total == 0 {
        let percent = percent(status.rows_done, status.rows_total);
        return format!("looking for duplicates ({percent:.1}%)");
    }
    let percent = percent(status.segments_done, status.segments_total);
    format!("recompressing ({percent:.1}%)")
}

fn text(status: &Optimize) -> String {
    facts(&[
        ("Background pass", brief(status)),
        ("Complete since the start", status.passes.to_string()),
        ("Failed", status.failed_passes.to_string()),
        ("Duplicate chunks found", status.aliased_chunks.to_string()),
        ("Segments rewritten", status.rewritten_segments.to_string()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_complete_pass_succeeds() {
        let started = Optimize { running: true, passes: 2, ..Optimize::default() };
        let ended = |passes, failure: Option<&str>| {
            let failure = failure.map(str::to_owned);
            judged(&started, Optimize { passes, failure, ..Optimize::default() })
        };
        assert_eq!(ended(3, None).unwrap().passes, 3);
        for (failure, reported) in
            [(Some("the pool is full"), "the pool is full"), (None, "stopped")]
        {
            let refused = ended(2, failure).unwrap_err();
            assert!(refused.to_string().contains(reported), "{refused}");
        }
        let short = Optimize { running: false, ..started.clone() };
        assert!(judged(&short, short.clone()).is_ok());
    }

    #[test]
    fn a_pass_is_described_by_its_current_step() {
        let mut status = Optimize { passes: 2, ..Optimize::default() };
        assert_eq!(brief(&status), "idle (2 complete since the start)");
        status.failure = Some("the pool is full".into());
        assert_eq!(brief(&status), "failed: the pool is full");
        status = Optimize { running: true, rows_done: 1, rows_total: 8, ..Optimize::default() };
        assert_eq!(brief(&status), "looking for duplicates (12.5%)");
        (status.segments_done, status.segments_total) = (3, 4);
        assert_eq!(brief(&status), "recompressing (75.0%)");
        assert!(text(&status).contains("Failed:"));
    }
}
