//! `host check`.

use api::{HostCheck, HostCheckRow, Verdict};

use super::client::{Client, part};
use super::failure::Failure;
use super::host;
use super::output::{Align, Form, show, table};

/// Checks one host, or all.
pub fn run(client: &Client, form: Form, name: Option<&str>) -> Result<(), Failure> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => host::all(client)?.into_iter().map(|host| host.name).collect(),
    };
    let checks: Result<Vec<HostCheck>, Failure> =
        names.iter().map(|name| client.get(&format!("/v1/hosts/{}/check", part(name)))).collect();
    let checks = checks?;
    show(form, &checks, || {
        let all: Vec<String> = checks.iter().map(text).collect();
        match all.is_empty() {
            true => "No hosts.\n".into(),
            false => all.join("\n"),
        }
    })
}

fn text(check: &HostCheck) -> String {
    let columns = [("CHECK", Align::Left), ("VERDICT", Align::Left), ("SEEN", Align::Left)];
    let rows: Vec<_> = check.rows.iter().map(row).collect();
    let mut text = format!(
        "Host {}: {} good, {} to improve, {} not seen yet\n{}",
        check.host,
        check.good,
        check.improve,
        check.unseen,
        table(&columns, &rows, "Nothing is checked.")
    );
    let is_told = |row: &&HostCheckRow| row.verdict == Verdict::Improve || row.unreported;
    for row in check.rows.iter().filter(is_told) {
        let HostCheckRow { check, best, esxi, linux, windows, .. } = row;
        text.push_str(&format!("\n{check}: {best}\n  ESXi:  {esxi}\n  Linux: {linux}\n"));
        if !windows.is_empty() {
            text.push_str(&format!("  Windows: {windows}\n"));
        }
    }
    text
}

fn row(row: &HostCheckRow) -> Vec<String> {
    let verdict = match row.verdict {
        Verdict::Good => "good",
        Verdict::Improve => "IMPROVE",
        Verdict::Unseen if row.unreported => "check the host",
        Verdict::Unseen => "not seen yet",
    };
    vec![row.check.clone(), verdict.into(), row.seen.clone()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_covers_improvements_and_things_hosts_do_not_report() {
        let row = |check: &str, verdict, windows: &str, unreported| HostCheckRow {
            check: check.into(),
            verdict,
            seen: "seen".into(),
            best: "best".into(),
            esxi: format!("{check} on esxi"),
            linux: "linux".into(),
            windows: windows.into(),
            unreported,
        };
        let rows = vec![
            row("one", Verdict::Improve, "", false),
            row("two", Verdict::Unseen, "registry", true),
            row("three", Verdict::Unseen, "", false),
            row("four", Verdict::Good, "", false),
        ];
        let text = text(&HostCheck { host: "h".into(), good: 1, improve: 1, unseen: 2, rows });
        assert!(text.contains("\none: best\n  ESXi:  one on esxi\n  Linux: linux\n\ntwo: best"));
        assert!(text.ends_with("  ESXi:  two on esxi\n  Linux: linux\n  Windows: registry\n"));
        let lines: Vec<&str> = text.lines().filter(|line| line.contains("seen")).collect();
        assert!(
            lines.iter().any(|line| line.starts_with("two ") && line.contains("check the host"))
        );
    }
}
