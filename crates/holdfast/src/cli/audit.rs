//! `audit`.

use api::{Audit, AuditEntry};

use super::args::{AuditArgs, Common};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, show, table, time};

/// Shows the audit log.
pub fn run(common: &Common, options: &AuditArgs) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let Audit { entries, .. } = client.get(&format!("/v1/audit?limit={}", options.limit))?;
    let columns = [
        ("TIME", Align::Left),
        ("USER", Align::Left),
        ("ROLE", Align::Left),
        ("FROM", Align::Left),
        ("OUTCOME", Align::Left),
        ("REQUEST", Align::Left),
    ];
    show(common.form, &entries, || {
        let row = |entry: &AuditEntry| {
            let request = format!("{} {} {}", entry.method, entry.path, entry.names);
            vec![
                time(entry.time_ms),
                entry.user.clone(),
                entry.role.clone(),
                entry.origin.clone(),
                entry.outcome.clone(),
                request.trim_end().to_owned(),
            ]
        };
        let rows: Vec<_> = entries.iter().map(row).collect();
        table(&columns, &rows, "Nothing was changed yet.")
    })
}
