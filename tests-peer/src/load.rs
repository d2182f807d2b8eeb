//! A load of a volume that knows what every block must contain: `holdfast-lab verify-load`.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::array::{Array, Programs};
use crate::command;
use crate::target::Target;

/// A load with its journal of the expected content.
pub struct Load {
    lab: PathBuf,
    url: String,
    initiator: String,
    journal: PathBuf,
    log: PathBuf,
    /// How long it runs each time, in seconds.
    pub seconds: f64,
    /// How much of the volume it uses, in the format of the command line.
    pub span: &'static str,
    seed: u64,
}

impl Load {
    /// Creates a load of this volume; a seed reproduces its operations.
    pub fn of(array: &Array, programs: &Programs, target: &Target, seed: u64) -> Self {
        Self {
            lab: programs.lab.clone(),
            url: target.url(),
            initiator: target.initiator.clone(),
            journal: array.scratch().join("verify.journal"),
            log: array.scratch().join("verify.log"),
            seconds: 4.0,
            span: "256M",
            seed,
        }
    }

    /// Starts a load, which continues the journal if there is one.
    pub fn start(&self) -> Result<Child> {
        let log = File::create(&self.log)?;
        Command::new(&self.lab)
            .args(["verify-load", "--url", &self.url, "--initiator", &self.initiator])
            .arg("--journal")
            .arg(&self.journal)
            .args(["--seconds", &self.seconds.to_string(), "--seed", &self.seed.to_string()])
            .args(["--span", self.span])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .with_context(|| format!("could not start {}", self.lab.display()))
    }

    /// Returns an error if a load has ended prematurely.
    pub fn must_run(&self, process: &mut Child) -> Result<()> {
        match process.try_wait()? {
            Some(status) => bail!("the load ended early ({status}):\n{}", self.said()),
            None => Ok(()),
        }
    }

    /// Returns whether a load is running, has ended successfully, or has ended because a command
    /// was refused, and not because anything was wrong. The next load determines the result of its
    /// open commands.
    ///
    /// # Errors
    /// If the system does not report how it ended.
    pub fn has_found_no_fault(&self, process: &mut Child) -> Result<bool> {
        let has_failed = process.try_wait()?.is_some_and(|status| !status.success());
        Ok(!has_failed || was_refused(&self.said()))
    }

    /// Waits until a load has ended; it must have found nothing wrong. Returns its report.
    pub fn wait(&self, process: &mut Child, patience: Duration) -> Result<Value> {
        let begin = Instant::now();
        loop {
            if let Some(status) = process.try_wait()? {
                ensure!(status.success(), "the load failed ({status}):\n{}", self.said());
                let text = std::fs::read_to_string(&self.log)?;
                return serde_json::from_str(&text)
                    .with_context(|| format!("the load printed: {text}"));
            }
            if begin.elapsed() > patience {
                bail!("the load does not end:\n{}", self.said());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Compares everything in the journal. Returns the number of 4 KiB blocks.
    pub fn verify(&self) -> Result<u64> {
        let lab = self.lab.display().to_string();
        let journal = self.journal.display().to_string();
        let arguments = [
            "verify-load",
            "--verify",
            "--url",
            &self.url,
            "--initiator",
            &self.initiator,
            "--journal",
            &journal,
            "--span",
            self.span,
        ];
        let text = command::run(180, &lab, &arguments)?.good()?;
        let summary: Value =
            serde_json::from_str(&text).with_context(|| format!("it printed: {text}"))?;
        let blocks = summary["verified_blocks"].as_u64().unwrap_or(0);
        ensure!(blocks > 0, "nothing was compared: {summary}");
        Ok(blocks)
    }

    /// Returns the end of a load's output.
    pub fn said(&self) -> String {
        command::tail(&std::fs::read_to_string(&self.log).unwrap_or_default(), 10)
    }
}

/// Returns whether a load reports that one of its commands ended with an error, or did not end. A
/// COMPARE AND WRITE that finds unexpected content does not count (MISCOMPARE).
fn was_refused(said: &str) -> bool {
    let command = said.lines().last().and_then(|line| line.strip_prefix("holdfast-lab: "));
    command.is_some_and(|line| {
        let is_command = line.starts_with("operation ") || line.starts_with("a read of block ");
        let has_error = line.contains(" ended with ") && !line.contains("sense 0Eh");
        is_command && (has_error || line.ends_with(" timed out"))
    })
}

#[cfg(test)]
mod tests {
    use super::was_refused;

    #[test]
    fn errors_count_as_refused_but_wrong_data_does_not() {
        let sense = "x\nholdfast-lab: operation 7 ended with CHECK CONDITION, sense";
        assert!(was_refused(&format!("{sense} 03h/11h/00h")));
        assert!(!was_refused(&format!("{sense} 0Eh/1Dh/00h")));
        assert!(was_refused("holdfast-lab: a read of block 7 ended with status 28h"));
        assert!(was_refused("holdfast-lab: operation 7 timed out"));
        assert!(!was_refused("holdfast-lab: block 7 holds the head of what operation 6 wrote"));
        assert!(!was_refused(""));
    }
}
