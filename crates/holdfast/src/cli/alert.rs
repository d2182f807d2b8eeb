//! `alert …`.

use api::{NotificationTest, NotificationTests};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::args::{AlertVerb, Common};
use super::client::{Client, part};
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table, time};

/// The resource of REST 2.x.
const RESOURCE: &str = "alerts";

/// An alert in the form of REST 2.x.
#[derive(Serialize, Deserialize)]
struct Alert {
    id: String,
    /// Its number.
    name: String,
    code: u32,
    issue: String,
    category: String,
    severity: String,
    state: String,
    component_type: String,
    component_name: String,
    summary: String,
    actual: String,
    expected: String,
    /// The recommended action.
    description: String,
    knowledge_base_url: String,
    created: u64,
    updated: u64,
    closed: Option<u64>,
    notified: Option<u64>,
    flagged: bool,
}

/// Runs a verb.
pub fn run(common: &Common, verb: &AlertVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        AlertVerb::List { all, severity, listing } => {
            list(&client, form, *all, severity.as_deref(), listing)
        }
        AlertVerb::Show { number } => {
            let alert = find(&client, *number)?;
            show(form, &alert, || text(&alert))
        }
        AlertVerb::Close { number } => {
            client.post::<IgnoredAny>(&format!("/v1/alerts/{number}/close"), &())?;
            let alert = find(&client, *number)?;
            show(form, &alert, || format!("Alert {number} is closed: {}\n", alert.summary))
        }
        AlertVerb::Test => test(&client, form),
    }
}

fn find(client: &Client, number: u64) -> Result<Alert, Failure> {
    client.item(RESOURCE, &format!("names={number}"))
}

/// Returns a filter for alerts that are not closed (unless `all`), and that have at least this
/// severity.
fn filter(all: bool, severity: Option<&str>) -> String {
    let open = (!all).then_some("state!='closed'");
    let grave = match severity {
        Some("critical") => Some("severity='critical'"),
        Some("warning") => Some("severity=('warning','critical')"),
        _ => None,
    };
    let conditions: Vec<&str> = open.into_iter().chain(grave).collect();
    match conditions.is_empty() {
        true => String::new(),
        false => format!("filter={}", part(&conditions.join(" and "))),
    }
}

fn list(
    client: &Client,
    form: Form,
    all: bool,
    severity: Option<&str>,
    listing: &Listing,
) -> Result<(), Failure> {
    let alerts: Vec<Alert> = listing.of(client.items(RESOURCE, &filter(all, severity))?)?;
    let columns = [
        ("NUMBER", Align::Right),
        ("SEVERITY", Align::Left),
        ("STATE", Align::Left),
        ("SINCE", Align::Left),
        ("WHAT", Align::Left),
    ];
    let row = |alert: &Alert| {
        vec![
            alert.name.clone(),
            alert.severity.clone(),
            alert.state.clone(),
            time(alert.created),
            alert.summary.clone(),
        ]
    };
    show(form, &alerts, || {
        let rows: Vec<_> = alerts.iter().map(row).collect();
        table(&columns, &rows, "No alert is open.")
    })
}

fn text(alert: &Alert) -> String {
    let mut rows = vec![
        ("What", alert.summary.clone()),
        ("Severity", alert.severity.clone()),
        ("State", alert.state.clone()),
        ("Seen", alert.actual.clone()),
        ("Expected", alert.expected.clone()),
        ("What to do", alert.description.clone()),
        ("More", alert.knowledge_base_url.clone()),
        ("Code", format!("{} ({})", alert.issue.replace(' ', "-"), alert.code)),
        ("Opened", time(alert.created)),
        ("Changed", time(alert.updated)),
    ];
    rows.extend(alert.closed.map(|ms| ("Closed", time(ms))));
    rows.extend(alert.notified.map(|ms| ("Told", time(ms))));
    facts(&rows)
}

fn test(client: &Client, form: Form) -> Result<(), Failure> {
    let found: NotificationTests = client.post("/v1/notifications/test", &())?;
    let row = |test: &NotificationTest| {
        let outcome = test.error.clone().unwrap_or_else(|| "sent".into());
        vec![test.destination.clone(), outcome]
    };
    let columns = [("DESTINATION", Align::Left), ("OUTCOME", Align::Left)];
    let rows: Vec<_> = found.tests.iter().map(row).collect();
    let nothing = "No recipient of alerts is configured: see docs/alerts.md.";
    show(form, &found, || table(&columns, &rows, nothing))?;
    match found.tests.iter().filter(|test| test.error.is_some()).count() {
        0 => Ok(()),
        failed => Err(Failure::Refused(format!("{failed} destinations can't be reached"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alerts_are_filtered_by_state_and_severity() {
        assert_eq!(filter(true, None), "");
        assert_eq!(filter(true, Some("info")), "");
        let part = |text: &str| format!("filter={}", part(text));
        assert_eq!(filter(false, None), part("state!='closed'"));
        assert_eq!(filter(true, Some("critical")), part("severity='critical'"));
        let both = "state!='closed' and severity=('warning','critical')";
        assert_eq!(filter(false, Some("warning")), part(both));
    }
}
