//! A row for each test, and the counts at the end.

use std::time::Instant;

use anyhow::Result;

/// A passed test's description, shown after its name.
pub type Detail = String;

/// Collects and prints the rows.
#[derive(Default)]
pub struct Report {
    passed: usize,
    failed: Vec<String>,
    skipped: usize,
}

impl Report {
    /// Runs one test and prints its row.
    pub fn check(&mut self, name: &str, test: impl FnOnce() -> Result<Detail>) {
        let start = Instant::now();
        let result = test();
        let seconds = start.elapsed().as_secs_f64();
        match result {
            Ok(detail) => {
                self.passed += 1;
                println!("ok      {name:<66} {seconds:>6.1} s  {detail}");
            }
            Err(error) => {
                self.failed.push(name.to_owned());
                println!("FAILED  {name:<66} {seconds:>6.1} s");
                for line in format!("{error:#}").lines() {
                    println!("        {line}");
                }
            }
        }
    }

    /// Adds the counts of a program with its own rows.
    pub fn add(&mut self, name: &str, passed: usize, failed: &[String], skipped: usize) {
        let word = if failed.is_empty() { "ok    " } else { "FAILED" };
        println!("{word}  {name:<66} {passed} passed, {} failed, {skipped} skipped", failed.len());
        for line in failed {
            println!("        {line}");
        }
        self.passed += passed;
        self.skipped += skipped;
        self.failed.extend(failed.iter().map(|line| format!("{name}: {line}")));
    }

    /// Reports that a test can't be run here, and why.
    pub fn skip(&mut self, name: &str, why: &str) {
        self.skipped += 1;
        println!("skipped {name:<66} {why}");
    }

    /// Prints the counts. Returns true if nothing failed.
    pub fn finish(&self) -> bool {
        if !self.failed.is_empty() {
            println!("\nfailed:");
            for name in &self.failed {
                println!("  {name}");
            }
        }
        println!(
            "\n{} passed, {} failed, {} skipped",
            self.passed,
            self.failed.len(),
            self.skipped
        );
        self.failed.is_empty()
    }
}
