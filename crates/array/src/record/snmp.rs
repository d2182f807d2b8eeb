//! SNMP managers in the record of the recipients of alerts.

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::objects::snmp::{SnmpAuth, SnmpManager, SnmpSecurity};
use crate::values::name::SnmpManagerName;
use crate::values::password::KeptPassword;

#[derive(Serialize, Deserialize)]
pub(super) struct SnmpManagerRow {
    name: String,
    host: String,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    inform: bool,
    /// Only for version 2c.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    community: Option<String>,
    /// Only for version 3, like the following fields.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    user: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    auth: Option<(String, String)>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    privacy: Option<String>,
}

impl From<&SnmpManager> for SnmpManagerRow {
    fn from(manager: &SnmpManager) -> Self {
        let row = Self {
            name: manager.name.to_string(),
            host: manager.host.clone(),
            inform: manager.is_inform,
            community: None,
            user: None,
            auth: None,
            privacy: None,
        };
        let exposed = |secret: &KeptPassword| secret.expose().to_owned();
        match &manager.security {
            SnmpSecurity::V2c { community } => Self { community: Some(exposed(community)), ..row },
            SnmpSecurity::V3 { user, auth, privacy } => Self {
                user: Some(user.clone()),
                auth: auth.as_ref().map(|(how, secret)| (how.name().into(), exposed(secret))),
                privacy: privacy.as_ref().map(exposed),
                ..row
            },
        }
    }
}

impl SnmpManagerRow {
    pub(super) fn manager(self) -> Result<SnmpManager, Error> {
        let security = match self.user {
            Some(user) => SnmpSecurity::V3 {
                user,
                auth: match self.auth {
                    Some((how, secret)) => {
                        Some((SnmpAuth::parse(&how)?, KeptPassword::new(&secret)))
                    }
                    None => None,
                },
                privacy: self.privacy.as_deref().map(KeptPassword::new),
            },
            None => SnmpSecurity::V2c {
                community: KeptPassword::new(&self.community.unwrap_or_default()),
            },
        };
        let name = SnmpManagerName::new(&self.name)?;
        let manager = SnmpManager { name, host: self.host, is_inform: self.inform, security };
        manager.check()?;
        Ok(manager)
    }
}
