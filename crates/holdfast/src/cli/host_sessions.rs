//! `host sessions`.

use api::{HostSession, HostSessions};

use super::client::Client;
use super::failure::Failure;
use super::host;
use super::output::{Align, Form, show, table};

/// Shows the sessions of one host, or of all.
pub fn run(client: &Client, form: Form, name: Option<&str>) -> Result<(), Failure> {
    // A nonexistent host has no sessions, but an empty list would hide a typo.
    let host = name.map(|name| host::find(client, name)).transpose()?;
    let all: HostSessions = client.get("/v1/host-sessions")?;
    let is_meant = |session: &HostSession| {
        host.as_ref().is_none_or(|host| session.host.as_ref() == Some(&host.name))
    };
    let sessions: Vec<HostSession> = all.sessions.into_iter().filter(is_meant).collect();
    show(form, &sessions, || {
        let columns = [
            ("HOST", Align::Left),
            ("INITIATOR", Align::Left),
            ("PORTAL", Align::Left),
            ("FROM", Align::Left),
            ("DIGESTS", Align::Left),
            ("MAXBURST", Align::Right),
            ("COMMANDS", Align::Right),
            ("MAX IN FLIGHT", Align::Right),
        ];
        let rows: Vec<_> = sessions.iter().map(row).collect();
        table(&columns, &rows, "No host is logged in.")
    })
}

fn row(session: &HostSession) -> Vec<String> {
    let digests = match (session.terms.header_digest, session.terms.data_digest) {
        (false, false) => "none",
        (true, false) => "header",
        (false, true) => "data",
        (true, true) => "header, data",
    };
    vec![
        session.host.clone().unwrap_or_else(|| "-".into()),
        session.initiator.clone(),
        session.portal_address.clone(),
        session.peer.clone(),
        digests.into(),
        session.terms.burst_bytes.to_string(),
        session.commands.to_string(),
        session.queue_most.to_string(),
    ]
}
