//! Asymmetric access states of a volume through the ports of a group, as set by hosts (ALUA: SPC-4,
//! 5.15).

/// The state of a target port group for a volume, by its code (SPC-4, 5.15.2.4).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum AccessState {
    /// Commands are served with the best performance.
    #[default]
    ActiveOptimized = 0,
    /// Commands are served.
    ActiveNonOptimized = 1,
    /// Only commands about the unit are served.
    Standby = 2,
    /// Hardly any command is served.
    Unavailable = 3,
}

impl AccessState {
    /// Returns the state with this code.
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
