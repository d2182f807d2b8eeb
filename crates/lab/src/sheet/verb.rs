//! The verbs `report` and `compare`.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::outcome::{Report, Store};
use crate::report::write_json;

/// The arguments of `report`.
#[derive(Args, Clone, Debug)]
pub struct ReportArgs {
    /// The directory with the results of `run`.
    #[arg(long)]
    pub results: PathBuf,
    /// Write a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write Markdown tables.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Write JSON, which `compare` reads.
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
}

/// The arguments of `compare`.
#[derive(Args, Clone, Debug)]
pub struct CompareArgs {
    /// The report of array A, written by `report --json`.
    pub a: PathBuf,
    /// The report of array B.
    pub b: PathBuf,
    /// Write a self-contained HTML page.
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
    /// Write Markdown tables.
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
}

/// Makes a report of results. Prints it as Markdown if no file is given.
///
/// # Errors
/// If there are no results, or a file can't be written.
pub fn report(args: &ReportArgs) -> Result<(), String> {
    if !args.results.is_dir() {
        let path = args.results.display();
        return Err(format!("{path} is not a directory; give the directory with `run`'s results"));
    }
    let store = Store::open(&args.results).map_err(|error| error.to_string())?;
    let found = store.report().map_err(|error| error.to_string())?;
    for reason in &found.left_out {
        eprintln!("holdfast-lab: not in the report: {reason}");
    }
    if let Some(path) = &args.html {
        write(path, &super::html(&found.report))?;
    }
    if let Some(path) = &args.markdown {
        write(path, &super::markdown(&found.report))?;
    }
    if let Some(path) = &args.json {
        write_json(path, &super::json(&found.report))?;
    }
    if args.html.is_none() && args.markdown.is_none() && args.json.is_none() {
        print!("{}", super::markdown(&found.report));
    }
    Ok(())
}

/// Compares two reports. Prints the comparison as Markdown if no file is given.
///
/// # Errors
/// If one can't be read, or a file can't be written.
pub fn compare(args: &CompareArgs) -> Result<(), String> {
    let (a, b) = (read(&args.a)?, read(&args.b)?);
    if let Some(path) = &args.html {
        write(path, &super::compare_html(&a, &b))?;
    }
    if let Some(path) = &args.markdown {
        write(path, &super::compare_markdown(&a, &b))?;
    }
    if args.html.is_none() && args.markdown.is_none() {
        print!("{}", super::compare_markdown(&a, &b));
    }
    Ok(())
}

fn read(path: &Path) -> Result<Report, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("{shown}: {error}; give a file written by `report --json`"))?;
    serde_json::from_str(&text).map_err(|error| {
        format!("{shown} is not a report ({error}); use `report --results DIR --json FILE`")
    })
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::{CompareArgs, ReportArgs, compare, report};
    use crate::outcome::{Parameters, Report, Store};
    use crate::sheet::sample;

    fn results(directory: &std::path::Path) -> Store {
        let parameters = Parameters {
            target: String::from("iqn.2026-01.example:array"),
            portals: Vec::new(),
            hosts: 1,
            scale: 64,
            count_scale: 1,
            load_ms: 3000,
            seed: 1,
            lab_version: String::from("0.1.0"),
        };
        let store = Store::open(directory).unwrap();
        store.begin(&sample::about("Holdfast"), &parameters).unwrap();
        store.put(&sample::outcome("P-13", 1.0), &parameters).unwrap();
        store
    }

    #[test]
    fn results_become_a_report_and_reports_a_comparison() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str| Some(directory.path().join(name));
        let results_in = directory.path().join("results");
        let kept = results(&results_in).report().unwrap().report;
        let args = ReportArgs {
            results: results_in,
            html: file("a.html"),
            markdown: file("a.md"),
            json: file("a.json"),
        };
        report(&args).unwrap();
        let read = |name: &str| fs::read_to_string(directory.path().join(name)).unwrap();
        let back: Report = serde_json::from_str(&read("a.json")).unwrap();
        assert!(back == kept);
        assert_eq!(read("a.html"), crate::sheet::html(&kept));
        assert_eq!(read("a.md"), crate::sheet::markdown(&kept));
        let json = directory.path().join("a.json");
        let (html, markdown) = (file("c.html"), file("c.md"));
        compare(&CompareArgs { a: json.clone(), b: json, html, markdown }).unwrap();
        assert_eq!(read("c.html"), crate::sheet::compare_html(&kept, &kept));
        assert_eq!(read("c.md"), crate::sheet::compare_markdown(&kept, &kept));
    }

    #[test]
    fn errors_are_one_line_with_a_remedy() {
        let directory = tempfile::tempdir().unwrap();
        let path = |name: &str| directory.path().join(name);
        fs::write(path("no.json"), "{\"about\": 1}").unwrap();
        let from = |results: PathBuf| {
            report(&ReportArgs { results, html: None, markdown: None, json: None }).unwrap_err()
        };
        let of = |a: PathBuf| {
            compare(&CompareArgs { a: a.clone(), b: a, html: None, markdown: None }).unwrap_err()
        };
        for (error, advice) in [
            (from(path("nowhere")), "give the directory with `run`'s results"),
            (from(path("")), "make some with `holdfast-lab run`"),
            (of(path("nowhere.json")), "give a file written by `report --json`"),
            (of(path("no.json")), "use `report --results DIR --json FILE`"),
        ] {
            assert!(error.contains(advice) && !error.contains('\n'), "{error}");
        }
        assert!(!path("nowhere").exists(), "a report creates no directory");
    }
}
