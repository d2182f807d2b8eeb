//! Connections: a volume and a host or a host group, with the LUN under which hosts see it.

use crate::error::Error;

/// The lowest LUN of a volume. LUN 0 stays free, as hosts and clients expect.
pub const LUN_MIN: u16 = 1;
/// The highest LUN: the last of the flat space addressing method (SAM-5 4.7.7.4).
pub const LUN_MAX: u16 = 16_383;

/// The maximum number of connections in one list.
pub const CONNECTIONS_SHOWN_MAX: usize = 50_000;

/// Refuses LUNs outside the range for volumes.
pub(crate) fn check_lun_range(lun: u16) -> Result<(), Error> {
    if (LUN_MIN..=LUN_MAX).contains(&lun) {
        return Ok(());
    }
    let text = format!("A LUN is from {LUN_MIN} to {LUN_MAX}; {lun} was requested.");
    Err(Error::invalid("invalid_lun", text))
}
