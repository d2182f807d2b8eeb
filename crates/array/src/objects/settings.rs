//! The settings of an array that are kept in its pool.

use std::ops::RangeInclusive;

use block::{Offload, Offloads};

use crate::error::Error;
use crate::values::banner::Banner;
use crate::values::dns::{Dns, DnsChange};
use crate::values::identity::CompanyId;
use crate::values::name::{HostName, InitiatorName};
use crate::values::ntp::TimeServers;
use crate::values::space::SpaceThresholds;

/// The range of the eradication delay, in seconds: up to 30 days.
pub const ERADICATION_DELAY_S: RangeInclusive<u64> = 1..=30 * 86_400;
/// The default delay, in seconds: a day.
pub(crate) const DELAY_DEFAULT_S: u64 = 86_400;

/// The settings of the array itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The name of the array.
    pub name: HostName,
    /// The iSCSI name of its target. A change takes effect at the next start.
    pub target_name: InitiatorName,
    /// The company identifier in the NAA designators of new volumes.
    pub company_id: CompanyId,
    /// The offloads that volumes may use; each volume also has a setting of its own.
    pub offloads: Offloads,
    /// The use of the pool at which hosts get a unit attention.
    pub space_thresholds: SpaceThresholds,
    /// How long a destroyed volume or snapshot can be recovered, in seconds. Objects destroyed
    /// before a change keep their time.
    pub eradication_delay_s: u64,
    /// Whether hosts without CHAP are refused, from their next login on.
    pub chap_required: bool,
    /// How host names are looked up.
    pub dns: Dns,
    /// The time servers by which the clock is checked.
    pub time_servers: TimeServers,
    /// The text that is shown before a login. Anybody may read it.
    pub banner: Banner,
}

/// A change to the settings; `None` leaves a setting as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// See [`Settings::name`].
    pub name: Option<HostName>,
    /// See [`Settings::target_name`].
    pub target_name: Option<InitiatorName>,
    /// See [`Settings::company_id`].
    pub company_id: Option<CompanyId>,
    /// Offloads to switch on or off.
    pub offloads: Vec<(Offload, bool)>,
    /// See [`Settings::space_thresholds`].
    pub space_thresholds: Option<SpaceThresholds>,
    /// See [`Settings::eradication_delay_s`]: in [`crate::ERADICATION_DELAY_S`].
    pub eradication_delay_s: Option<u64>,
    /// See [`Settings::chap_required`].
    pub chap_required: Option<bool>,
    /// See [`Settings::dns`].
    pub dns: DnsChange,
    /// See [`Settings::time_servers`].
    pub time_servers: Option<TimeServers>,
    /// See [`Settings::banner`].
    pub banner: Option<Banner>,
}

impl Settings {
    /// Returns the settings of a new pool. The target's name is under `internal`, the domain
    /// reserved for private use, and contains 48 bits of the pool's id.
    pub(crate) fn defaults(pool_id: &[u8; 16]) -> Result<Self, Error> {
        let tail: String = pool_id.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            name: HostName::of_array(&format!("holdfast-{tail}"))?,
            target_name: InitiatorName::new(&format!("iqn.2026-11.internal.holdfast:{tail}"))?,
            company_id: CompanyId::default(),
            offloads: Offloads::ALL,
            space_thresholds: SpaceThresholds::default(),
            eradication_delay_s: DELAY_DEFAULT_S,
            chap_required: false,
            dns: Dns::default(),
            time_servers: TimeServers::default(),
            banner: Banner::default(),
        })
    }

    /// Returns the settings after a change.
    pub(crate) fn with(mut self, change: SettingsChange) -> Result<Self, Error> {
        self.name = change.name.unwrap_or(self.name);
        self.target_name = change.target_name.unwrap_or(self.target_name);
        self.company_id = change.company_id.unwrap_or(self.company_id);
        self.offloads = switched(self.offloads, &change.offloads);
        self.space_thresholds = change.space_thresholds.unwrap_or(self.space_thresholds);
        self.eradication_delay_s = change.eradication_delay_s.unwrap_or(self.eradication_delay_s);
        self.chap_required = change.chap_required.unwrap_or(self.chap_required);
        self.time_servers = change.time_servers.unwrap_or(self.time_servers);
        self.banner = change.banner.unwrap_or(self.banner);
        self.dns = self.dns.changed(change.dns)?;
        Ok(self)
    }
}

/// Returns offloads after these switches, in order.
pub(crate) fn switched(offloads: Offloads, switches: &[(Offload, bool)]) -> Offloads {
    switches.iter().fold(offloads, |all, (offload, on)| all.with(*offload, *on))
}

pub(crate) fn check_delay(seconds: u64) -> Result<(), Error> {
    if ERADICATION_DELAY_S.contains(&seconds) {
        return Ok(());
    }
    let text = format!(
        "Destroyed objects can be recoverable for 1 second to 30 days; not {seconds} seconds."
    );
    Err(Error::invalid("invalid_delay", text))
}
