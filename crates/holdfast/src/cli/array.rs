//! `array …`: the settings that are kept in the pool.

use api::{ArraySettings, ArraySettingsChange, TimeServer, TimeServers};

use super::args::{ArrayVerb, Common, Listed, Thresholds};
use super::client::Client;
use super::failure::Failure;
use super::interval;
use super::offload;
use super::output::{Align, facts, show, table};

const PATH: &str = "/v1/settings";
/// The argument that clears a setting, and the text for one that is not set.
pub(super) const NONE: &str = "none";

/// Runs a verb.
pub fn run(common: &Common, verb: &ArrayVerb) -> Result<(), Failure> {
    let client = Client::find(common)?;
    let settings: ArraySettings = match verb {
        ArrayVerb::Show => client.get(PATH)?,
        ArrayVerb::Ntp => return ntp(common, client.get("/v1/time-servers")?),
        ArrayVerb::NtpTest => return ntp(common, client.post("/v1/time-servers/test", &())?),
        ArrayVerb::Set {
            offload,
            space_thresholds,
            name,
            eradication_delay,
            chap_required,
            name_servers,
            domain,
            ntp_servers,
            banner,
        } => {
            let change = ArraySettingsChange {
                name: name.clone(),
                offloads: offload::change(offload),
                space_thresholds: space_thresholds.clone().map(|Thresholds(percents)| percents),
                eradication_delay_s: eradication_delay.map(|delay| delay.as_secs()),
                chap_required: *chap_required,
                ntp_servers: ntp_servers.clone().map(|Listed(servers)| servers),
                name_servers: name_servers.clone().map(|Listed(servers)| servers),
                banner: banner.clone().map(|text| cleared(&text).to_owned()),
                domain: domain.clone().map(|name| cleared(&name).to_owned()),
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
        ("Name servers", or_else(settings.name_servers.join(", "), "none: the system's")),
        ("Domain", or_else(settings.domain.clone(), NONE)),
        ("Time servers", or_else(settings.ntp_servers.join(", "), NONE)),
        ("Banner", or_else(settings.banner.replace('\n', "\\n"), NONE)),
        ("CHAP required", if settings.chap_required { "yes" } else { "no" }.to_owned()),
    ])
}

fn thresholds(percents: &[u8]) -> String {
    let each: Vec<String> = percents.iter().map(|percent| format!("{percent}%")).collect();
    or_else(each.join(", "), NONE)
}

/// Returns the new value of a setting: empty for [`NONE`].
pub(super) fn cleared(text: &str) -> &str {
    if text == NONE { "" } else { text }
}

pub(super) fn or_else(text: String, if_empty: &str) -> String {
    if text.is_empty() { if_empty.to_owned() } else { text }
}

/// Shows time servers; fails if one does not answer.
fn ntp(common: &Common, found: TimeServers) -> Result<(), Failure> {
    let offset = |one: &TimeServer| one.offset_s.map(|offset_s| format!("{offset_s:+.3} s"));
    let row = |one: &TimeServer| {
        let error = one.error.clone().unwrap_or_else(|| "answers".into());
        vec![one.server.clone(), offset(one).unwrap_or_else(|| "-".into()), error]
    };
    let columns = [("SERVER", Align::Left), ("OFFSET", Align::Right), ("OUTCOME", Align::Left)];
    let rows: Vec<_> = found.time_servers.iter().map(row).collect();
    let nothing = "No time server is set. Set some: holdfast array set --ntp-servers HOST";
    show(common.form, &found, || table(&columns, &rows, nothing))?;
    match found.time_servers.iter().filter(|one| one.error.is_some()).count() {
        0 => Ok(()),
        failed => Err(Failure::Refused(format!("{failed} time servers do not answer"))),
    }
}
