//! `host check`.

use api::{Host, HostCheck, HostCheckRow, Hosts, Verdict};

use super::client::{Client, part};
use super::failure::Failure;
use super::output::{Align, Form, show, table};

/// Checks one host, or all.
pub fn run(client: &Client, form: Form, name: Option<&str>) -> Result<(), Failure> {
    let names = match name {
        Some(name) => vec![name.to_owned()],
        None => {
            let page = |page: Hosts| (page.hosts, page.more);
            let hosts: Vec<Host> = client.get_all("/v1/hosts", page, |last| &last.name)?;
            hosts.into_iter().map(|host| host.name).collect()
        }
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
    for row in check.rows.iter().filter(|row| row.verdict == Verdict::Improve) {
        text.push_str(&format!(
            "\n{}: {}\n  ESXi:  {}\n  Linux: {}\n",
            row.check, row.best, row.esxi, row.linux
        ));
    }
    text
}

fn row(row: &HostCheckRow) -> Vec<String> {
    let verdict = match row.verdict {
        Verdict::Good => "good",
        Verdict::Improve => "IMPROVE",
        Verdict::Unseen => "not seen yet",
    };
    vec![row.check.clone(), verdict.into(), row.seen.clone()]
}
