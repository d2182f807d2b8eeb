//! What a datastore's locks have cost a host.

/// Counted since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LockCounters {
    /// Locks that were taken.
    pub acquired: u64,
    /// Locks that were given back, or were to be and are not held any more.
    pub released: u64,
    /// Attempts at a lock that another host had, or was quicker at.
    pub retries: u64,
    /// COMPARE AND WRITE commands that found something else, those of heartbeats too.
    pub miscompares: u64,
    /// Of those: what was found had been written by this host itself.
    pub false_miscompares: u64,
    /// COMPARE AND WRITE commands that the device has refused.
    pub ats_refused: u64,
    /// Times that this host has reserved the device.
    pub reservations: u64,
    /// Commands that met the reservation of another host.
    pub conflicts: u64,
    /// Locks that were taken from dead hosts.
    pub broken: u64,
    /// Heartbeats of dead hosts that were ended.
    pub buried: u64,
    /// Heartbeats that got through.
    pub heartbeats: u64,
    /// Heartbeats that did not.
    pub heartbeats_failed: u64,
}
