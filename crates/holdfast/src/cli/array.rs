//! `array …`: the settings that are kept in the pool.

use api::{ArraySettings, ArraySettingsChange};

use super::args::{ArrayVerb, Common, Listed, Thresholds};
use super::client::Client;
use super::failure::Failure;
use super::interval;
use super::offload;
use super::output::{facts, show};

const PATH: &str = "/v1/settings";

/// Runs a verb.
pub fn run(common: &Common, verb: &ArrayVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let settings: ArraySettings = match verb {
        ArrayVerb::Show => client.get(PATH)?,
        ArrayVerb::Set {
            offload,
            space_thresholds,
            name,
            eradication_delay,
            chap_required,
            name_servers,
            domain,
        } => {
            let change = ArraySettingsChange {
                name: name.clone(),
                offloads: offload::change(offload),
                space_thresholds: space_thresholds.clone().map(|Thresholds(percents)| percents),
                eradication_delay_s: eradication_delay.map(|delay| delay.as_secs()),
                chap_required: *chap_required,
                name_servers: name_servers.clone().map(|Listed(servers)| servers),
                domain: domain
                    .clone()
                    .map(|name| if name == "none" { String::new() } else { name }),
                ..ArraySettingsChange::default()
            };
            client.patch(PATH, &change)?
        }
    };
    show(common.form, &settings, || text(&settings))
}

fn text(settings: &ArraySettings) -> String {
    facts(&[
        ("Array", settings.name.clone()),
        ("Target", settings.target_name.clone()),
        ("Company identifier", settings.company_id.clone()),
        ("Offloads", offload::text(&settings.offloads)),
        ("Space thresholds", thresholds(&settings.space_thresholds)),
        ("Eradication delay", interval::text(settings.eradication_delay_s)),
        ("Name servers", named(&settings.name_servers)),
        (
            "Domain",
            if settings.domain.is_empty() { "none".into() } else { settings.domain.clone() },
        ),
        ("CHAP required", if settings.chap_required { "yes" } else { "no" }.to_owned()),
    ])
}

fn thresholds(percents: &[u8]) -> String {
    let each: Vec<String> = percents.iter().map(|percent| format!("{percent}%")).collect();
    if each.is_empty() { "none".into() } else { each.join(", ") }
}

fn named(servers: &[String]) -> String {
    if servers.is_empty() { "none: the system's".into() } else { servers.join(", ") }
}
