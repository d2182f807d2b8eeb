//! The settings of an array that are kept in its pool.

use block::{Offload, Offloads};
use store::Change;

use crate::name::{HostName, InitiatorName};
use crate::{Array, CompanyId, Error, SpaceThresholds, eradication, record};

/// What an administrator may set of the array itself.
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
    /// When hosts get a unit attention because the pool fills up.
    pub space_thresholds: SpaceThresholds,
    /// For how many seconds a destroyed volume or snapshot can be recovered. Objects destroyed
    /// before a change keep the time that they were given.
    pub eradication_delay_s: u64,
    /// Whether hosts without CHAP are refused, from their next login on.
    pub chap_required: bool,
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
}

impl Settings {
    /// The settings of a new pool. The target's name is under `internal`, the domain reserved for
    /// private use, and contains 48 bits of the pool's id.
    pub(crate) fn defaults(pool_id: &[u8; 16]) -> Result<Self, Error> {
        let tail: String = pool_id.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
        Ok(Self {
            name: HostName::of_array(&format!("holdfast-{tail}"))?,
            target_name: InitiatorName::new(&format!("iqn.2026-11.internal.holdfast:{tail}"))?,
            company_id: CompanyId::default(),
            offloads: Offloads::ALL,
            space_thresholds: SpaceThresholds::default(),
            eradication_delay_s: eradication::DELAY_DEFAULT_S,
            chap_required: false,
        })
    }

    fn with(mut self, change: SettingsChange) -> Self {
        self.name = change.name.unwrap_or(self.name);
        self.target_name = change.target_name.unwrap_or(self.target_name);
        self.company_id = change.company_id.unwrap_or(self.company_id);
        self.offloads = switched(self.offloads, &change.offloads);
        self.space_thresholds = change.space_thresholds.unwrap_or(self.space_thresholds);
        self.eradication_delay_s = change.eradication_delay_s.unwrap_or(self.eradication_delay_s);
        self.chap_required = change.chap_required.unwrap_or(self.chap_required);
        self
    }
}

/// Offloads after these switches, in order.
pub(crate) fn switched(offloads: Offloads, switches: &[(Offload, bool)]) -> Offloads {
    switches.iter().fold(offloads, |all, (offload, on)| all.with(*offload, *on))
}

impl Array {
    /// The settings.
    pub fn settings(&self) -> Settings {
        self.state.read().settings.clone()
    }

    /// Whether hosts without CHAP are refused: [`Settings::chap_required`].
    pub fn is_chap_required(&self) -> bool {
        self.state.read().settings.chap_required
    }

    /// The name of the array: [`Settings::name`].
    pub fn name(&self) -> String {
        self.state.read().settings.name.to_string()
    }

    /// Changes settings; durable when it returns. If nothing changes, nothing is written.
    ///
    /// # Errors
    /// `invalid_delay`, and those of the store.
    pub fn change_settings(&self, change: SettingsChange) -> Result<Settings, Error> {
        change.eradication_delay_s.map_or(Ok(()), eradication::check_delay)?;
        self.change(
            |state| {
                let settings = state.settings.clone().with(change);
                let mut change = Change::default();
                if settings != state.settings {
                    change
                        .config
                        .push((record::settings_key(), Some(record::settings(&settings)?)));
                }
                Ok((change, settings))
            },
            |state, settings| {
                state.replace_settings(settings.clone());
                settings
            },
        )
    }
}
