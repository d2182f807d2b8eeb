//! `audit`.

use api::{Audit, AuditEntry};

use super::args::{AuditArgs, Common};
use super::client::{Client, part};
use super::failure::Failure;
use super::output::{Align, show, table, time};

/// Shows the audit log.
pub fn run(common: &Common, options: &AuditArgs) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let Audit { entries, .. } = client.get(&path(options))?;
    let columns = [
        ("TIME", Align::Left),
        ("USER", Align::Left),
        ("ROLE", Align::Left),
        ("FROM", Align::Left),
        ("OUTCOME", Align::Left),
        ("REQUEST", Align::Left),
    ];
    let nothing = match (&options.user, &options.action, &options.text) {
        (None, None, None) => "No changes yet.",
        _ => "The log has no such changes.",
    };
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
        table(&columns, &rows, nothing)
    })
}

/// Returns the path of the request for the entries.
fn path(AuditArgs { limit, user, action, text }: &AuditArgs) -> String {
    let wanted = [("user", user), ("action", action), ("text", text)];
    let wanted = wanted.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
    wanted.fold(format!("/v1/audit?limit={limit}"), |path, (name, value)| {
        format!("{path}&{name}={}", part(value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_given_conditions_are_sent() {
        let all = AuditArgs { limit: 50, user: None, action: None, text: None };
        assert_eq!(path(&all), "/v1/audit?limit=50");
        let some = AuditArgs { user: Some("anna".into()), text: Some("a&b".into()), ..all };
        assert_eq!(path(&some), "/v1/audit?limit=50&user=anna&text=a%26b");
    }
}
