//! The record of the settings.

use serde::{Deserialize, Serialize};

use super::row::{VERSION, encode};
use super::volumes::{decode_off, off};
use crate::error::Error;
use crate::objects::settings::{DELAY_DEFAULT_S, Settings};
use crate::values::banner::Banner;
use crate::values::dns::{Dns, NameServer};
use crate::values::identity::CompanyId;
use crate::values::name::{HostName, InitiatorName};
use crate::values::ntp::TimeServers;
use crate::values::space::SpaceThresholds;

#[derive(Serialize, Deserialize)]
pub(super) struct SettingsRow {
    v: u8,
    name: String,
    target_name: String,
    company_id: u32,
    /// The offloads that are off, by name. Absent in records of versions without switches.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    offloads_off: Vec<String>,
    /// In percent. Absent in records of versions without thresholds, which get the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    space_thresholds: Option<Vec<u8>>,
    /// Absent in records of versions without the delay, which get the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    eradication_delay_s: Option<u64>,
    /// Absent in records of versions without this setting: then it is off.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    chap_required: bool,
    /// Absent if none is set, and in records of versions without this setting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    name_servers: Vec<String>,
    /// Absent like the name servers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    domain: String,
    /// Absent like the name servers.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    time_servers: Vec<String>,
    /// Absent like the name servers.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    banner: String,
}

pub(crate) fn settings_key() -> Vec<u8> {
    b"s".to_vec()
}

pub(crate) fn settings(settings: &Settings) -> Result<Vec<u8>, Error> {
    encode(&SettingsRow {
        v: VERSION,
        name: settings.name.to_string(),
        target_name: settings.target_name.to_string(),
        company_id: settings.company_id.get(),
        offloads_off: off(settings.offloads),
        space_thresholds: Some(settings.space_thresholds.percents().to_vec()),
        eradication_delay_s: Some(settings.eradication_delay_s),
        chap_required: settings.chap_required,
        name_servers: settings.dns.servers().iter().map(ToString::to_string).collect(),
        domain: settings.dns.domain().to_owned(),
        time_servers: settings.time_servers.names().to_vec(),
        banner: settings.banner.as_str().to_owned(),
    })
}

pub(super) fn decode_settings(key: &[u8], row: &SettingsRow) -> Result<Settings, Error> {
    let servers = row.name_servers.iter().map(|server| NameServer::new(server));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    Ok(Settings {
        name: HostName::of_array(&row.name)?,
        target_name: InitiatorName::new(&row.target_name)?,
        company_id: CompanyId::new(row.company_id)?,
        offloads: decode_off(key, &row.offloads_off)?,
        space_thresholds: match &row.space_thresholds {
            Some(percents) => SpaceThresholds::new(percents.clone())?,
            None => SpaceThresholds::default(),
        },
        eradication_delay_s: row.eradication_delay_s.unwrap_or(DELAY_DEFAULT_S),
        chap_required: row.chap_required,
        dns: Dns::new(servers, row.domain.clone())?,
        time_servers: TimeServers::new(row.time_servers.clone())?,
        banner: Banner::new(row.banner.clone())?,
    })
}
