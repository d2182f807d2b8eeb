//! Showing and changing the settings of the array.

use store::Change;

use crate::array::Array;
use crate::error::Error;
use crate::objects::settings::{Settings, SettingsChange, check_delay};
use crate::record;
use crate::values::dns::Dns;

impl Array {
    /// Returns the settings.
    pub fn settings(&self) -> Settings {
        self.read().settings().clone()
    }

    /// Returns whether hosts without CHAP are refused: [`Settings::chap_required`].
    pub fn is_chap_required(&self) -> bool {
        self.read().settings().chap_required
    }

    /// Returns the name of the array: [`Settings::name`].
    pub fn name(&self) -> String {
        self.read().settings().name.to_string()
    }

    /// Returns the settings of DNS: [`Settings::dns`].
    pub fn dns(&self) -> Dns {
        self.read().settings().dns.clone()
    }

    /// Returns the text that is shown before a login: [`Settings::banner`].
    pub fn banner(&self) -> String {
        self.read().settings().banner.as_str().to_owned()
    }

    /// Changes settings; durable when it returns. If nothing changes, nothing is written.
    ///
    /// # Errors
    /// `invalid_delay`, `invalid_dns`, and those of the store.
    pub fn change_settings(&self, change: SettingsChange) -> Result<Settings, Error> {
        change.eradication_delay_s.map_or(Ok(()), check_delay)?;
        self.change(
            |state| {
                let settings = state.settings().clone().with(change)?;
                let mut change = Change::default();
                if settings != *state.settings() {
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
