//! The objects that an administrator manages: volumes, hosts, connections and the settings of the
//! array.
//!
//! An [`Array`] keeps them in memory, indexed for the look-ups of protocols and management, and
//! durably in the key-value space of the store. Every change is checked first, then committed in
//! *one* [`store::Change`], together with its effect on volumes, and only then applied in memory:
//! after a crash, all of it remains or none.
//!
//! Each module may use only those in the lines below it:
//!
//! * `protection`: groups of volumes, their snapshots, schedules and retention, and eradication
//!   when it is due,
//! * `volumes`: volumes, volume groups, pods, clones and snapshots, from creation to eradication,
//! * `access`: hosts, host groups and connections; `management`: users, alerts and their receivers,
//!   settings, tags; `kept`: what is stored for the target; `pool`: space, integrity and reduction,
//! * `array`: [`Array`], the only way to change anything, the audit log, and the time,
//! * `state`: all objects in memory, consistent with each other, with their indexes,
//! * `tables`: the objects of one kind in memory,
//! * `salvaged`: volumes and snapshots in the readable records of a damaged pool,
//! * `record`: the encoding of the objects,
//! * `objects`: the objects as they are stored,
//! * `values`: their fields: names, identifiers, credentials, limits, schedules,
//! * [`backing`]: the interface of the store,
//! * [`error`]: the reasons why a change is refused,
//! * `container_kind`: the kinds of containers of volumes.

mod access;
mod array;
pub mod backing;
mod container_kind;
pub mod error;
mod kept;
mod management;
mod objects;
mod pool;
pub mod protection;
mod record;
mod salvaged;
mod state;
mod tables;
mod values;
mod volumes;

#[cfg(test)]
mod tests;

pub use access::{
    ConnectTo, ConnectionInfo, HostChange, HostGroupInfo, HostInfo, Initiator, NewHost,
    SharedConnectionInfo,
};
pub use array::distinct::CHANGES_MAX;
pub use array::{Array, Counts};
pub use backing::{Accounted, Backing, Optimized, Scrubbed};
pub use container_kind::ContainerKind;
pub use error::{Error, Kind};
pub use objects::alerts::{Alert, AlertCode, AlertState, Condition, Seen, Severity, Told};
pub use objects::audit::{AuditEntry, Deed};
pub use objects::certificates::{
    CERTIFICATE_PEM_BYTES_MAX, CERTIFICATES_MAX, MANAGEMENT_CERTIFICATE, StoredCertificate,
};
pub use objects::connections::{CONNECTIONS_SHOWN_MAX, LUN_MAX, LUN_MIN};
pub use objects::containers::{CONTAINER_VOLUMES_MAX, CONTAINERS_MAX};
pub use objects::directory::{
    DIRECTORY_URIS_MAX, Directory, DirectoryChange, DirectoryGroup, DirectoryUri,
};
pub use objects::groups::{GROUP_MEMBERS_MAX, GROUPS_MAX};
pub use objects::host_groups::HOST_GROUPS_MAX;
pub use objects::hosts::{HOSTS_MAX, INITIATORS_PER_HOST_MAX};
pub use objects::notifications::{
    Encryption, Notifications, Relay, RelayChange, RelayPassword, SyslogServer, Watcher,
};
pub use objects::ports::PORTS_MAX;
pub use objects::releases::{LUN_REST_MS, RELEASES_MAX};
pub use objects::settings::{ERADICATION_DELAY_S, Settings, SettingsChange};
pub use objects::snapshots::SNAPSHOTS_MAX;
pub use objects::snmp::{
    SNMP_MANAGERS_MAX, SnmpAuth, SnmpManager, SnmpManagerChange, SnmpSecurity,
};
pub use objects::tags::{TAGS_MAX, Tag, TagFilter, Tagged};
pub use objects::users::{
    NewToken, PasswordHash, Role, TokenHash, TokenInfo, UserInfo, UserUpdate,
};
pub use objects::volumes::VOLUMES_MAX;
pub use objects::{alerts, audit, settings, tags, users};
pub use pool::{
    AccountedSpace, AccountedVolume, AccountingPass, Damage, DamageReport, DamagedBlocks,
    ObjectSpace, PoolFigures, PoolSpace, SpaceSums, VolumesOf, VolumesSpace,
};
pub use protection::{GroupChange, GroupInfo, GroupSnapshotInfo, Ran};
pub use salvaged::{SalvagedObject, SalvagedObjects, salvaged_objects};
pub use store::{OptimizeStatus, PoolStatus, Repair, ScrubStatus, VolumeSpace, WrittenBytes};
pub use tables::host_states::REGISTRATIONS_MAX;
pub use values::banner::{BANNER_CHARS_MAX, Banner};
pub use values::chap::{Chap, ChapChange, ChapUser, Secret};
pub use values::container::ContainerName;
pub use values::dns::{Dns, DnsChange, NAME_SERVERS_MAX, NameServer};
pub use values::identity::CompanyId;
pub use values::limits::LimitsChange;
pub use values::name::{
    CertificateName, GroupName, HostGroupName, HostName, InitiatorName, SnmpManagerName, Suffix,
    SyslogServerName, TokenName, UserName, VolumeName,
};
pub use values::ntp::{TIME_SERVERS_MAX, TimeServers};
pub use values::password::KeptPassword;
pub use values::personality::Personality;
pub use values::receivers::{MailAddress, SyslogProtocol, SyslogUri};
pub use values::reduction::{Reduction, ReductionChange};
pub use values::retention::Retention;
pub use values::schedule::SnapshotSchedule;
pub use values::space::SpaceThresholds;
pub use values::text::shown;
pub use values::{chap, identity, limits, name, personality, retention, schedule, space};
pub use volumes::{
    ContainerInfo, Looked, NewCopy, NewSnapshots, NewVolume, Placed, SnapshotFilter,
    SnapshotGlance, SnapshotInfo, SnapshotSource, SourceInfo, VolumeInfo, VolumeUpdate,
};
