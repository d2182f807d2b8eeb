//! The reasons why a change is refused. Every message is one line, and says what to do.
//!
//! Clients match on words of these messages ("already exists", "does not exist", "existing
//! connections", "already in use", "limit reached"): they are part of the interface and do not
//! change.

mod codes;

use block::VolumeError;
use store::StoreError;

use crate::container_kind::ContainerKind;

/// The kind of a refusal, from which a management protocol derives its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The request is invalid regardless of the state of the array.
    Invalid,
    /// The request names something that does not exist.
    NotFound,
    /// The request conflicts with the current state.
    Conflict,
    /// There is not enough space.
    Full,
    /// Try again later: the device refuses writes for a while.
    Unavailable,
    /// The device or the pool is at fault.
    Fault,
}

/// The reason why a change is refused. A refused change has no effect.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A name, size, initiator or user that is not allowed; the text says what is allowed.
    #[error("{text}")]
    Invalid {
        /// The code, for programs: `invalid_name`, `invalid_size`, …
        code: &'static str,
        /// The message, for people.
        text: String,
    },
    /// A volume has this name, or one that differs in case only.
    #[error("Volume already exists: {0}. Choose another name.")]
    VolumeExists(String),
    /// No volume has this name.
    #[error("Volume does not exist: {0}. The list of volumes shows their names.")]
    NoSuchVolume(String),
    /// The volume is destroyed, and not eradicated yet.
    #[error(
        "Volume {0} has been destroyed. Recover it, or eradicate it to free its name and its space."
    )]
    VolumeDestroyed(String),
    /// A volume group or a pod has this name.
    #[error("{0} already exists: {1}. Choose another name.")]
    ContainerExists(ContainerKind, String),
    /// No volume group, or no pod, has this name.
    #[error("{0} does not exist: {1}. The list of {all} shows their names.", all = .0.plural())]
    NoSuchContainer(ContainerKind, String),
    /// The volume group or the pod is destroyed, and not eradicated yet.
    #[error(
        "{0} {1} has been destroyed. Recover it, or eradicate it to free its name and the space of \
         its volumes."
    )]
    ContainerDestroyed(ContainerKind, String),
    /// The volume group or the pod has volumes, and the request does not include them.
    #[error("{0} {1} has volumes. Destroy or move them first, or destroy them together.")]
    ContainerNotEmpty(ContainerKind, String),
    /// A snapshot of the volume has this name.
    #[error("Snapshot already exists: {0}. Choose another suffix.")]
    SnapshotExists(String),
    /// No snapshot has this name.
    #[error("No such volume or snapshot: {0}. The list of snapshots shows their names.")]
    NoSuchSnapshot(String),
    /// No snapshots of a group have this name.
    #[error("Group snapshot does not exist: {0}. It is named GROUP.SUFFIX.")]
    NoSuchGroupSnapshot(String),
    /// The snapshot is destroyed, and not eradicated yet.
    #[error(
        "Snapshot {0} has been destroyed. Recover it, or eradicate it to free its name and its \
         space."
    )]
    SnapshotDestroyed(String),
    /// Only destroyed objects can be recovered or eradicated.
    #[error("{0} is not destroyed. Destroy it first.")]
    NotDestroyed(String),
    /// Its eradication has begun: parts of it may be gone.
    #[error("{0} is being eradicated, and can't be recovered any more.")]
    Eradicated(String),
    /// A group has this name.
    #[error("Group already exists: {0}. Choose another name.")]
    GroupExists(String),
    /// The group is destroyed, and not eradicated yet.
    #[error(
        "Group {0} has been destroyed. Recover it, or eradicate it to free its name and the space \
         of its snapshots."
    )]
    GroupDestroyed(String),
    /// The object is a member of a group.
    #[error("{object} is in group {group}. Remove it there first.")]
    InGroup {
        /// The object: `Host x` or `Host group y`.
        object: String,
        /// The group.
        group: String,
    },
    /// No group has this name.
    #[error("Group does not exist: {0}. The list of groups shows their names.")]
    NoSuchGroup(String),
    /// The object has no tag with this key.
    #[error("Tag does not exist: {key} of {object}.")]
    NoSuchTag {
        /// The volume or snapshot.
        object: String,
        /// The key.
        key: String,
    },
    /// A host has this name, or one that differs in case only.
    #[error("Host already exists: {0}. Choose another name.")]
    HostExists(String),
    /// No host has this name.
    #[error("Host does not exist: {0}. The list of hosts shows their names.")]
    NoSuchHost(String),
    /// A host group has this name, or one that differs in case only.
    #[error("Host group already exists: {0}. Choose another name.")]
    HostGroupExists(String),
    /// No host group has this name.
    #[error("Host group does not exist: {0}. The list of host groups shows their names.")]
    NoSuchHostGroup(String),
    /// The host is in a host group, and can be in one only.
    #[error("Host {host} already exists in host group {group}. Remove it there first.")]
    InHostGroup {
        /// The host.
        host: String,
        /// The group that it is in.
        group: String,
    },
    /// The host is not in the host group.
    #[error("Host {host} does not exist in host group {group}.")]
    NotInHostGroup {
        /// The host.
        host: String,
        /// The group that it is not in.
        group: String,
    },
    /// A host group with hosts can't be deleted.
    #[error("Host group {0} has hosts. Remove them first.")]
    HostGroupNotEmpty(String),
    /// A user has this name, or one that differs in case only.
    #[error("User already exists: {0}. Choose another name.")]
    UserExists(String),
    /// No user has this name.
    #[error("User does not exist: {0}. The list of users shows their names.")]
    NoSuchUser(String),
    /// The built-in user can't be removed or changed.
    #[error("User {0} is built in: it can't be removed, and stays an array admin.")]
    BuiltInUser(String),
    /// A token of the user has this name.
    #[error("API token already exists: {token} of user {user}. Choose another name.")]
    TokenExists {
        /// The user.
        user: String,
        /// The token's name.
        token: String,
    },
    /// No token of the user has this name.
    #[error("API token does not exist: {token} of user {user}. The list of tokens shows them.")]
    NoSuchToken {
        /// The user.
        user: String,
        /// The token's name.
        token: String,
    },
    /// No alert has this number.
    #[error("Alert does not exist: {0}. The list of alerts shows their numbers.")]
    NoSuchAlert(String),
    /// An alert watcher or a syslog server has this name.
    #[error("{what} already exists: {name}.")]
    ReceiverExists {
        /// The kind of receiver.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// No alert watcher or syslog server has this name.
    #[error("{what} does not exist: {name}.")]
    NoSuchReceiver {
        /// The kind of receiver.
        what: &'static str,
        /// Its name.
        name: String,
    },
    /// The initiator name belongs to another host.
    #[error("The initiator {initiator} is already in use by host {host}. Remove it there first.")]
    InitiatorInUse {
        /// The initiator name.
        initiator: String,
        /// The host that has it.
        host: String,
    },
    /// The volume is connected to the host.
    #[error("Connection already exists. Volume {volume} is connected to {to} as LUN {lun}.")]
    ConnectionExists {
        /// The volume.
        volume: String,
        /// The host or group: `host x` or `host group y`.
        to: String,
        /// The LUN.
        lun: u16,
    },
    /// The volume is not connected to the host.
    #[error("Connection does not exist: volume {volume} is not connected to {to}.")]
    NoSuchConnection {
        /// The volume.
        volume: String,
        /// The host or group: `host x` or `host group y`.
        to: String,
    },
    /// The volume is connected to the group of the host, not to the host.
    #[error(
        "Volume {volume} is connected to host {host} by host group {group}. Disconnect the group."
    )]
    SharedConnection {
        /// The volume.
        volume: String,
        /// The host.
        host: String,
        /// Its group.
        group: String,
    },
    /// Another volume of the host has this LUN.
    #[error("LUN {lun} of {of} is already in use by volume {volume}. Choose another.")]
    LunInUse {
        /// The LUN.
        lun: u16,
        /// The owner: `host x` or `host group y`.
        of: String,
        /// The volume that has it.
        volume: String,
    },
    /// An object to be destroyed or deleted is connected.
    #[error("{object} cannot be deleted due to existing connections ({count}). Disconnect it.")]
    ExistingConnections {
        /// The object: `Volume x` or `Host y`.
        object: String,
        /// The number of connections.
        count: usize,
    },
    /// The new size is smaller, and truncation was not requested.
    #[error(
        "Volume {volume} has {size_bytes} bytes: a smaller size cuts data off permanently. \
         Request it explicitly (truncate)."
    )]
    WouldTruncate {
        /// The volume.
        volume: String,
        /// Its current size.
        size_bytes: u64,
    },
    /// A pass of scrubbing is running.
    #[error("A scrub is already running. Its status shows the progress.")]
    ScrubRunning,
    /// A background pass of reduction is running.
    #[error("A background pass of reduction is already running. Its status shows the progress.")]
    OptimizeRunning,
    /// The array has as many objects of a kind as it can have.
    #[error("Array limit reached: at most {limit} {what}. Remove some first.")]
    Limit {
        /// The objects whose limit is reached.
        what: &'static str,
        /// The maximum number.
        limit: usize,
    },
    /// A request concerns more objects than one commit of the store takes.
    #[error("Array limit reached: at most {limit} {what} at once. Send several requests.")]
    TooManyAtOnce {
        /// The objects, and what is done to them.
        what: &'static str,
        /// The maximum number in one request.
        limit: usize,
    },
    /// The stored configuration is inconsistent, or newer than this program.
    #[error("The stored configuration can't be used: {0}. `holdfast inspect` shows more.")]
    Damaged(String),
    /// The pool has no room for the change.
    #[error("The pool is full. Unmap or destroy something, or grow the pool.")]
    PoolFull,
    /// The filesystem or the device of the pool has no space for the change; the text says
    /// what it lacks.
    #[error("There is no space beneath the pool: {0}. Free some, or request less.")]
    DeviceFull(String),
    /// The device refuses all writes at the moment. They are retried, and hosts wait for that.
    #[error(
        "The device refuses writes at the moment, so nothing was changed. The alerts say more; try \
         again when they are closed."
    )]
    DeviceRefuses,
    /// The store did not make the change.
    #[error("The store refused the change: {0}.")]
    Store(StoreError),
}

impl Error {
    pub(crate) fn invalid(code: &'static str, text: impl Into<String>) -> Self {
        Self::Invalid { code, text: text.into() }
    }
}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Volume(VolumeError::NoSpace) | StoreError::NoRoom { .. } => Self::PoolFull,
            other => Self::Store(other),
        }
    }
}
