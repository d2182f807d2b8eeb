//! The error type of datastores.

use super::lock_record::HostId;
use crate::host::HostError;

/// What went wrong in a datastore.
#[derive(Debug, thiserror::Error)]
pub enum DatastoreError {
    /// An error of the host or the device.
    #[error(transparent)]
    Host(#[from] HostError),
    /// What was read is not valid there.
    #[error("the sector at byte {offset_bytes} is damaged: {what}")]
    Damaged {
        /// Its offset on the device.
        offset_bytes: u64,
        /// What is wrong with it.
        what: String,
    },
    /// The device can't hold a datastore, or an option is invalid.
    #[error("{0}")]
    Argument(String),
    /// All 64 heartbeat slots are taken by hosts that are alive.
    #[error("the datastore is mounted by the maximum number of hosts")]
    NoSlot,
    /// A host with this id has it mounted, and is alive.
    #[error("host {0} has already mounted the datastore")]
    MountedAlready(HostId),
    /// Another host has found this one dead, or has taken its heartbeat slot.
    #[error("access to the datastore is lost: another host has ended the heartbeat")]
    Lost,
    /// The heartbeat is late, so that another host may consider this one dead: nothing is written.
    #[error("the heartbeat is late: nothing is written until it succeeds")]
    HeartbeatLate,
    /// It was unmounted.
    #[error("the datastore is no longer mounted")]
    Unmounted,
    /// Another host holds the file's lock, and is alive.
    #[error("{name} is locked by host {host}")]
    Locked {
        /// The name of the file.
        name: String,
        /// The host.
        host: HostId,
    },
    /// This host has it open in a way that conflicts with the request.
    #[error("{0} is in use on this host")]
    InUse(String),
    /// Hosts that are alive did not release a lock for many times the liveness time.
    #[error("the lock at byte {offset_bytes} could not be taken in time")]
    LockTimeout {
        /// Its offset on the device.
        offset_bytes: u64,
    },
    /// The device stays reserved by others.
    #[error("the device stays reserved by another host")]
    StaysReserved,
    /// There is no such file.
    #[error("file {0} does not exist")]
    NotFound(String),
    /// A file with this name exists.
    #[error("file {0} already exists")]
    Exists(String),
    /// No descriptor is free.
    #[error("the datastore has no room for another file")]
    TooManyFiles,
    /// No block, or no pointer block, is free.
    #[error("the datastore is full")]
    Full,
    /// The file was closed, or is open for reading only.
    #[error("{0} is not open for changing its blocks")]
    NotOpen(String),
}
