//! `initiator list`.

use api::{Initiator, Initiators};

use super::args::{Common, InitiatorVerb};
use super::client::Client;
use super::failure::Failure;
use super::output::{Align, show, table, time};

/// Runs a verb.
pub fn run(common: &Common, verb: &InitiatorVerb) -> Result<(), Failure> {
    let InitiatorVerb::List(listing) = verb;
    let all: Initiators = Client::find(common)?.get("/v1/initiators")?;
    let initiators = listing.of(all.initiators)?;
    show(common.form, &initiators, || {
        let columns = [
            ("INITIATOR", Align::Left),
            ("HOST", Align::Left),
            ("SESSIONS", Align::Right),
            ("REFUSED", Align::Right),
            ("LAST", Align::Left),
            ("FROM", Align::Left),
            ("WHY", Align::Left),
        ];
        let rows: Vec<_> = initiators.iter().map(row).collect();
        table(
            &columns,
            &rows,
            "No login was refused, and all initiators that are logged in belong to hosts.",
        )
    })
}

fn row(initiator: &Initiator) -> Vec<String> {
    let refused = initiator.refused.as_ref();
    let none = || "-".to_owned();
    vec![
        initiator.name.clone(),
        initiator.host.clone().unwrap_or_else(none),
        initiator.sessions.to_string(),
        refused.map_or_else(none, |refused| refused.count.to_string()),
        refused.map_or_else(none, |refused| time(refused.time_ms)),
        refused.map_or_else(none, |refused| refused.address.clone()),
        refused.map_or_else(none, |refused| refused.why.clone()),
    ]
}
