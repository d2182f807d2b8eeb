//! The settings that the pool stores, as they are sent and returned.

use array::{
    Banner, CompanyId, DnsChange, HostName, InitiatorName, NameServer, SettingsChange,
    SpaceThresholds, TimeServers,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::{OffloadChange, OffloadSettings};

/// The settings of the array that are kept in its pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ArraySettings {
    /// The name of the array.
    pub name: String,
    /// The iSCSI name of its target. A change takes effect at the next start.
    pub target_name: String,
    /// The company identifier in the NAA designators of new volumes.
    #[schema(example = "02-48-46")]
    pub company_id: String,
    /// The offloads that volumes may use.
    pub offloads: OffloadSettings,
    /// The percentages of pool usage at which hosts get a unit attention: up to 4.
    #[schema(example = json!([80]))]
    pub space_thresholds: Vec<u8>,
    /// For how many seconds destroyed objects can be recovered.
    #[schema(example = 86400)]
    pub eradication_delay_s: u64,
    /// Whether hosts without CHAP are refused at login.
    #[serde(default)]
    #[schema(required = true)]
    pub chap_required: bool,
    /// The name servers that the array queries for names of other servers, each `ADDRESS` or
    /// `ADDRESS:PORT`, in this order; without one, the system resolves names.
    #[serde(default)]
    #[schema(example = json!(["192.0.2.53"]), required = true)]
    pub name_servers: Vec<String>,
    /// The domain in which names without a dot are looked up; empty for none.
    #[serde(default)]
    #[schema(required = true)]
    pub domain: String,
    /// The time servers that are queried for the clock offset, each `HOST` or `HOST:PORT`.
    #[serde(default)]
    #[schema(example = json!(["ntp.example.com"]), required = true)]
    pub ntp_servers: Vec<String>,
    /// The text that is shown before a login; empty for none.
    #[serde(default)]
    #[schema(required = true)]
    pub banner: String,
}

impl From<array::Settings> for ArraySettings {
    fn from(settings: array::Settings) -> Self {
        Self {
            name: settings.name.to_string(),
            target_name: settings.target_name.to_string(),
            company_id: settings.company_id.to_string(),
            offloads: settings.offloads.into(),
            space_thresholds: settings.space_thresholds.percents().to_vec(),
            eradication_delay_s: settings.eradication_delay_s,
            chap_required: settings.chap_required,
            name_servers: settings.dns.servers().iter().map(ToString::to_string).collect(),
            domain: settings.dns.domain().to_owned(),
            ntp_servers: settings.time_servers.names().to_vec(),
            banner: settings.banner.as_str().to_owned(),
        }
    }
}

/// The changes of settings.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ArraySettingsChange {
    /// See [`ArraySettings::name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// See [`ArraySettings::target_name`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target_name: Option<String>,
    /// See [`ArraySettings::company_id`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub company_id: Option<String>,
    /// Offloads to switch on or off, for all volumes.
    #[serde(default)]
    pub offloads: OffloadChange,
    /// The new thresholds: up to 4 of 1 to 99 percent; an empty list means no unit attentions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub space_thresholds: Option<Vec<u8>>,
    /// From 1 second to 30 days. Objects that are already destroyed keep their time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eradication_delay_s: Option<u64>,
    /// See [`ArraySettings::chap_required`]. Existing sessions continue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub chap_required: Option<bool>,
    /// The new name servers: up to 3. They take effect at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name_servers: Option<Vec<String>>,
    /// See [`ArraySettings::domain`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub domain: Option<String>,
    /// The new time servers: up to 4. They are queried at once, and do not set the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ntp_servers: Option<Vec<String>>,
    /// The new text: up to 2,000 characters, in one line or several. Anybody may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub banner: Option<String>,
}

impl ArraySettingsChange {
    /// Returns the change of settings.
    pub(crate) fn change(self) -> Result<SettingsChange, array::Error> {
        Ok(SettingsChange {
            name: self.name.map(|name| HostName::of_array(&name)).transpose()?,
            target_name: self.target_name.map(|name| InitiatorName::new(&name)).transpose()?,
            company_id: self.company_id.map(|id| CompanyId::parse(&id)).transpose()?,
            offloads: self.offloads.switches(),
            space_thresholds: self.space_thresholds.map(SpaceThresholds::new).transpose()?,
            eradication_delay_s: self.eradication_delay_s,
            chap_required: self.chap_required,
            dns: DnsChange {
                servers: self.name_servers.as_deref().map(name_servers).transpose()?,
                domain: self.domain,
            },
            time_servers: self.ntp_servers.map(TimeServers::new).transpose()?,
            banner: self.banner.map(Banner::new).transpose()?,
        })
    }
}

/// Parses name servers.
pub(crate) fn name_servers(texts: &[String]) -> Result<Vec<NameServer>, array::Error> {
    texts.iter().map(|text| NameServer::new(text)).collect()
}
