//! `alert …`.

use api::{Alert, Alerts, NotificationTest, NotificationTests};

use super::args::{AlertVerb, Common};
use super::client::Client;
use super::failure::Failure;
use super::listing::Listing;
use super::output::{Align, Form, facts, show, table, time};

/// Runs a verb.
pub fn run(common: &Common, verb: &AlertVerb) -> Result<(), Failure> {
    let (client, form) = (Client::find(common)?, common.form);
    match verb {
        AlertVerb::List { all, severity, listing } => {
            list(&client, form, *all, severity.as_deref(), listing)
        }
        AlertVerb::Show { number } => {
            let alert: Alert = client.get(&format!("/v1/alerts/{number}"))?;
            show(form, &alert, || text(&alert))
        }
        AlertVerb::Close { number } => {
            let alert: Alert = client.post(&format!("/v1/alerts/{number}/close"), &())?;
            show(form, &alert, || format!("Alert {number} is closed: {}\n", alert.summary))
        }
        AlertVerb::Test => test(&client, form),
    }
}

fn list(
    client: &Client,
    form: Form,
    all: bool,
    severity: Option<&str>,
    listing: &Listing,
) -> Result<(), Failure> {
    let severity = severity.map(|name| format!("&severity={}", super::client::part(name)));
    let path = format!("/v1/alerts?closed={all}{}", severity.unwrap_or_default());
    // They always fit one page.
    let Alerts { alerts, .. } = client.get(&path)?;
    let alerts = listing.of(alerts)?;
    let columns = [
        ("NUMBER", Align::Right),
        ("SEVERITY", Align::Left),
        ("STATE", Align::Left),
        ("SINCE", Align::Left),
        ("WHAT", Align::Left),
    ];
    let row = |alert: &Alert| {
        vec![
            alert.number.to_string(),
            alert.severity.clone(),
            alert.state.clone(),
            time(alert.created_ms),
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
        ("What to do", alert.advice.clone()),
        ("More", alert.document.clone()),
        ("Code", format!("{} ({})", alert.name, alert.code)),
        ("Opened", time(alert.created_ms)),
        ("Changed", time(alert.updated_ms)),
    ];
    rows.extend(alert.closed_ms.map(|ms| ("Closed", time(ms))));
    rows.extend(alert.told_ms.map(|ms| ("Told", time(ms))));
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
    let nothing = "Nobody is told of alerts: docs/alerts.md says how to name somebody.";
    show(form, &found, || table(&columns, &rows, nothing))?;
    match found.tests.iter().filter(|test| test.error.is_some()).count() {
        0 => Ok(()),
        failed => Err(Failure::Refused(format!("{failed} destinations can't be reached"))),
    }
}
