//! Asymmetric access states: how well a volume can be reached over the ports of a group, as hosts
//! have set it (ALUA: SPC-4, 5.15).

/// The state of a target port group for a volume, by its code (SPC-4, 5.15.2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessState {
    /// Commands are served, as fast as anywhere.
    #[default]
    ActiveOptimized = 0,
    /// Commands are served.
    ActiveNonOptimized = 1,
    /// Only commands about the unit are served.
    Standby = 2,
    /// Hardly any is.
    Unavailable = 3,
}

impl AccessState {
    /// The state of a code.
    pub fn from_code(code: u8) -> Option<Self> {
        Some(match code {
            0 => Self::ActiveOptimized,
            1 => Self::ActiveNonOptimized,
            2 => Self::Standby,
            3 => Self::Unavailable,
            _ => return None,
        })
    }
}
