//! Configuring the SNMP managers that receive alerts.

use std::sync::Arc;

use super::notifications::{keys, missing};
use crate::array::Array;
use crate::error::Error;
use crate::objects::notifications::Notifications;
use crate::objects::snmp::{SNMP_MANAGERS_MAX, SnmpManager, SnmpManagerChange};
use crate::values::name::SnmpManagerName;

/// The name of an SNMP manager in errors.
const MANAGER: &str = "SNMP manager";
/// The beginning of the engine id: the enterprise number of Net-SNMP, as Holdfast has none, with
/// the bit that RFC 3411 requires (5, `SnmpEngineID`), and the format of locally administered
/// octets.
const ENGINE_PREFIX: [u8; 5] = [0x80, 0x00, 0x1f, 0x88, 0x05];

impl Array {
    /// Adds SNMP managers, each with these settings: all of them or none.
    ///
    /// # Errors
    /// `invalid_name`, `invalid_snmp_manager`, `receiver_exists`, `limit_reached`, and those of the
    /// store.
    pub fn create_snmp_managers(
        &self,
        names: &[String],
        set: &SnmpManagerChange,
    ) -> Result<(), Error> {
        self.change_notifications(|all| {
            for name in names {
                let manager = SnmpManager::new(SnmpManagerName::new(name)?, set.clone())?;
                if all.managers.insert(manager.name.key(), manager).is_some() {
                    return Err(Error::ReceiverExists { what: MANAGER, name: name.clone() });
                }
            }
            match all.managers.len() > SNMP_MANAGERS_MAX {
                true => Err(Error::Limit { what: "SNMP managers", limit: SNMP_MANAGERS_MAX }),
                false => Ok(()),
            }
        })
        .map(drop)
    }

    /// Changes SNMP managers.
    ///
    /// # Errors
    /// `no_such_receiver`, `invalid_snmp_manager`, and those of the store.
    pub fn change_snmp_managers(
        &self,
        names: &[String],
        change: &SnmpManagerChange,
    ) -> Result<(), Error> {
        self.change_notifications(|all| {
            for name in names {
                let manager = all.managers.get_mut(&name.to_ascii_lowercase());
                let manager = manager.ok_or_else(|| missing(MANAGER, name))?;
                *manager = manager.changed(change.clone())?;
            }
            Ok(())
        })
        .map(drop)
    }

    /// Removes SNMP managers.
    ///
    /// # Errors
    /// `no_such_receiver`, and those of the store.
    pub fn delete_snmp_managers(&self, names: &[String]) -> Result<(), Error> {
        self.change_notifications(|all| {
            for key in keys(names) {
                all.managers.remove(&key).ok_or_else(|| missing(MANAGER, &key))?;
            }
            Ok(())
        })
        .map(drop)
    }

    /// Returns the SNMP engine id of the array, by which version 3 distinguishes senders.
    pub fn snmp_engine_id(&self) -> Vec<u8> {
        [&ENGINE_PREFIX[..], self.read().pool_id()].concat()
    }

    /// Counts a start of the SNMP engine, durably, and returns the count: receivers reject messages
    /// with a lower count than they have seen (RFC 3414, 2.2).
    ///
    /// # Errors
    /// Those of the store.
    pub fn next_snmp_boots(&self) -> Result<u32, Error> {
        let count = |all: &mut Notifications| {
            all.snmp_boots = all.snmp_boots.saturating_add(1).min(i32::MAX as u32);
            Ok(())
        };
        let changed: Arc<Notifications> = self.change_notifications(count)?;
        Ok(changed.snmp_boots)
    }
}
