//! The cost of a datastore's locks for a host.

/// Counted since the mount.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct LockCounters {
    /// Locks that were taken.
    pub acquired: u64,
    /// Locks that were given back, or turned out to be no longer held.
    pub released: u64,
    /// Attempts at a lock that another host had, or was quicker at.
    pub retries: u64,
    /// COMPARE AND WRITE commands that found something else, including those of heartbeats.
    pub miscompares: u64,
    /// Those of them for which this host itself had written what was found.
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
    /// Heartbeats that succeeded.
    pub heartbeats: u64,
    /// Heartbeats that failed.
    pub heartbeats_failed: u64,
}
