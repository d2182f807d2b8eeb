//! The representation and the switches of offloads.

use block::{Offload, Offloads};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Which offloads are on. If one is off, it is reported to hosts as unsupported, and they do the
/// work themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct OffloadSettings {
    /// COMPARE AND WRITE (VMware: ATS).
    pub compare_and_write: bool,
    /// EXTENDED COPY (VMware: Full Copy).
    pub extended_copy: bool,
    /// WRITE SAME (VMware: Block Zero).
    pub write_same: bool,
    /// UNMAP (VMware: Reclaim).
    pub unmap: bool,
    /// POPULATE TOKEN and WRITE USING TOKEN (Windows: ODX).
    pub token_copy: bool,
}

impl From<Offloads> for OffloadSettings {
    fn from(offloads: Offloads) -> Self {
        Self {
            compare_and_write: offloads.has(Offload::CompareAndWrite),
            extended_copy: offloads.has(Offload::ExtendedCopy),
            write_same: offloads.has(Offload::WriteSame),
            unmap: offloads.has(Offload::Unmap),
            token_copy: offloads.has(Offload::TokenCopy),
        }
    }
}

impl OffloadSettings {
    /// Returns each offload, and whether it is on.
    pub fn each(&self) -> [(Offload, bool); Offload::ALL.len()] {
        [
            (Offload::CompareAndWrite, self.compare_and_write),
            (Offload::ExtendedCopy, self.extended_copy),
            (Offload::WriteSame, self.write_same),
            (Offload::Unmap, self.unmap),
            (Offload::TokenCopy, self.token_copy),
        ]
    }
}

/// Which offloads to switch on or off; those left out stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct OffloadChange {
    /// See [`OffloadSettings::compare_and_write`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub compare_and_write: Option<bool>,
    /// See [`OffloadSettings::extended_copy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extended_copy: Option<bool>,
    /// See [`OffloadSettings::write_same`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_same: Option<bool>,
    /// See [`OffloadSettings::unmap`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unmap: Option<bool>,
    /// See [`OffloadSettings::token_copy`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_copy: Option<bool>,
}

impl OffloadChange {
    /// Returns the field of an offload.
    pub fn of(&mut self, offload: Offload) -> &mut Option<bool> {
        match offload {
            Offload::CompareAndWrite => &mut self.compare_and_write,
            Offload::ExtendedCopy => &mut self.extended_copy,
            Offload::WriteSame => &mut self.write_same,
            Offload::Unmap => &mut self.unmap,
            Offload::TokenCopy => &mut self.token_copy,
        }
    }

    /// Returns the switches in the form that the array accepts.
    pub(crate) fn switches(mut self) -> Vec<(Offload, bool)> {
        let asked = |offload| self.of(offload).map(|on| (offload, on));
        Offload::ALL.into_iter().filter_map(asked).collect()
    }
}
