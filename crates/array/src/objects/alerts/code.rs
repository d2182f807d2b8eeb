//! The kinds of alerts, with numbers and names that do not change, and with texts for people.

/// The kind of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertCode {
    /// The pool is filling up.
    PoolSpace,
    /// Writes of hosts fail for lack of space.
    PoolFull,
    /// The pool will be full soon if it keeps filling up as fast as now.
    PoolFullSoon,
    /// Bytes of the pool can't be read.
    Damage,
    /// The device failed transfers.
    DeviceErrors,
    /// The device is slow.
    DeviceSlow,
    /// The device refused writes, which were retried.
    DeviceRetries,
    /// Data that the device refused was written elsewhere.
    DeviceMoved,
    /// Flushes of the device failed, and the data concerned was written again.
    DeviceFlushes,
    /// One of several devices of the pool is out, or missing.
    DeviceOut,
    /// One of several devices of the pool is still catching up.
    DeviceCatchingUp,
    /// A device reports that it fails or wears out.
    DeviceHealth,
    /// One of two controllers does not run.
    ControllerMissing,
    /// The store accepts no more writes.
    StoreFailed,
    /// Background work fails.
    BackgroundFailed,
    /// Due snapshots could not be taken.
    SnapshotsMissed,
    /// The clock of the machine was set, or the machine was suspended.
    ClockJumped,
    /// The clock of the machine differs from the time servers.
    ClockOff,
    /// No time server responds.
    TimeServersSilent,
    /// A host has sessions on only one of several portals.
    HostOnePath,
    /// A host that had sessions has none.
    HostGone,
    /// An initiator is refused repeatedly.
    LoginRefused,
    /// An offload that a host requests is refused.
    OffloadRefused,
    /// Offloads are disabled for volumes of a host.
    OffloadOff,
    /// A host writes much and never unmaps.
    NoReclaim,
    /// A host copies by reading and writing.
    CopiesByHost,
    /// A host locks with reservations instead of ATS.
    NoAts,
    /// A host zeroes by writing zeros.
    ZerosByHost,
    /// The certificate expires.
    CertificateEnds,
    /// Notifications can't be sent.
    NotificationFailed,
    /// No server of the directory service can be reached.
    DirectoryUnreachable,
}

/// The category of an alert.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Category {
    /// The objects of the array, and the hosts that use them.
    Array,
    /// Devices.
    Hardware,
    /// The program and its settings.
    Software,
}

impl Category {
    /// Returns its name in settings and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Hardware => "hardware",
            Self::Software => "software",
        }
    }
}

impl AlertCode {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 31] = [
        Self::PoolSpace,
        Self::PoolFull,
        Self::PoolFullSoon,
        Self::Damage,
        Self::DeviceErrors,
        Self::StoreFailed,
        Self::BackgroundFailed,
        Self::DeviceSlow,
        Self::DeviceRetries,
        Self::DeviceMoved,
        Self::DeviceFlushes,
        Self::DeviceOut,
        Self::DeviceCatchingUp,
        Self::DeviceHealth,
        Self::ControllerMissing,
        Self::SnapshotsMissed,
        Self::ClockJumped,
        Self::ClockOff,
        Self::TimeServersSilent,
        Self::HostOnePath,
        Self::HostGone,
        Self::LoginRefused,
        Self::OffloadRefused,
        Self::OffloadOff,
        Self::NoReclaim,
        Self::CopiesByHost,
        Self::NoAts,
        Self::ZerosByHost,
        Self::CertificateEnds,
        Self::NotificationFailed,
        Self::DirectoryUnreachable,
    ];

    /// Returns its number, for programs.
    pub fn number(self) -> u32 {
        match self {
            Self::PoolSpace => 101,
            Self::PoolFull => 102,
            Self::PoolFullSoon => 103,
            Self::Damage => 201,
            Self::DeviceErrors => 202,
            Self::StoreFailed => 203,
            Self::BackgroundFailed => 204,
            Self::DeviceSlow => 205,
            Self::DeviceRetries => 206,
            Self::DeviceMoved => 207,
            Self::DeviceFlushes => 208,
            Self::DeviceOut => 209,
            Self::DeviceCatchingUp => 210,
            Self::DeviceHealth => 211,
            Self::ControllerMissing => 212,
            Self::SnapshotsMissed => 301,
            Self::ClockJumped => 302,
            Self::ClockOff => 303,
            Self::TimeServersSilent => 304,
            Self::HostOnePath => 401,
            Self::HostGone => 402,
            Self::LoginRefused => 403,
            Self::OffloadRefused => 411,
            Self::OffloadOff => 412,
            Self::NoReclaim => 413,
            Self::CopiesByHost => 414,
            Self::NoAts => 415,
            Self::ZerosByHost => 416,
            Self::CertificateEnds => 501,
            Self::NotificationFailed => 502,
            Self::DirectoryUnreachable => 503,
        }
    }

    /// Returns the code with this number.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Returns its name, for programs; also its anchor in `docs/alerts.md`.
    pub fn name(self) -> &'static str {
        match self {
            Self::PoolSpace => "pool-space",
            Self::PoolFull => "pool-full",
            Self::PoolFullSoon => "pool-full-soon",
            Self::Damage => "damage",
            Self::DeviceErrors => "device-errors",
            Self::StoreFailed => "store-failed",
            Self::BackgroundFailed => "background-failed",
            Self::DeviceSlow => "device-slow",
            Self::DeviceRetries => "device-retries",
            Self::DeviceMoved => "device-moved",
            Self::DeviceFlushes => "device-flushes",
            Self::DeviceOut => "device-out",
            Self::DeviceCatchingUp => "device-catching-up",
            Self::DeviceHealth => "device-health",
            Self::ControllerMissing => "controller-missing",
            Self::SnapshotsMissed => "snapshots-missed",
            Self::ClockJumped => "clock-jumped",
            Self::ClockOff => "clock-off",
            Self::TimeServersSilent => "time-servers-silent",
            Self::HostOnePath => "host-one-path",
            Self::HostGone => "host-gone",
            Self::LoginRefused => "login-refused",
            Self::OffloadRefused => "offload-refused",
            Self::OffloadOff => "offload-off",
            Self::NoReclaim => "no-reclaim",
            Self::CopiesByHost => "copies-by-host",
            Self::NoAts => "no-ats",
            Self::ZerosByHost => "zeros-by-host",
            Self::CertificateEnds => "certificate-ends",
            Self::NotificationFailed => "notification-failed",
            Self::DirectoryUnreachable => "directory-unreachable",
        }
    }

    /// Returns its category.
    pub fn category(self) -> Category {
        match self {
            Self::DeviceErrors
            | Self::DeviceSlow
            | Self::DeviceRetries
            | Self::DeviceMoved
            | Self::DeviceFlushes
            | Self::DeviceOut
            | Self::DeviceCatchingUp
            | Self::DeviceHealth
            | Self::ControllerMissing => Category::Hardware,
            Self::StoreFailed
            | Self::BackgroundFailed
            | Self::CertificateEnds
            | Self::NotificationFailed
            | Self::DirectoryUnreachable => Category::Software,
            _ => Category::Array,
        }
    }

    /// Returns the type of its component.
    pub fn component_type(self) -> &'static str {
        match self {
            Self::PoolSpace | Self::PoolFull | Self::PoolFullSoon | Self::Damage => "pool",
            Self::StoreFailed | Self::BackgroundFailed => "pool",
            Self::ClockJumped | Self::ClockOff | Self::TimeServersSilent => "clock",
            Self::DeviceErrors | Self::DeviceSlow | Self::DeviceRetries => "device",
            Self::DeviceMoved | Self::DeviceFlushes => "device",
            Self::DeviceOut | Self::DeviceCatchingUp | Self::DeviceHealth => "device",
            Self::ControllerMissing => "controller",
            Self::SnapshotsMissed => "protection_group",
            Self::LoginRefused => "initiator",
            Self::CertificateEnds => "certificate",
            Self::NotificationFailed => "notification",
            Self::DirectoryUnreachable => "directory",
            Self::HostOnePath
            | Self::HostGone
            | Self::OffloadRefused
            | Self::OffloadOff
            | Self::NoReclaim
            | Self::CopiesByHost
            | Self::NoAts
            | Self::ZerosByHost => "host",
        }
    }

    /// Returns the summary for a component, on one line.
    pub fn summary(self, component: &str) -> String {
        match self {
            Self::PoolSpace => "The pool is filling up.".into(),
            Self::PoolFull => "The pool is full: hosts get no more space.".into(),
            Self::PoolFullSoon => "The pool will soon be full at the current rate.".into(),
            Self::Damage => "Stored bytes can't be read.".into(),
            Self::DeviceErrors => format!("The device {component} fails transfers."),
            Self::DeviceSlow => format!("The device {component} is slow."),
            Self::DeviceRetries => format!("The device {component} refuses writes for a while."),
            Self::DeviceMoved => format!("Places of the device {component} can't be written."),
            Self::DeviceFlushes => format!("Flushes of the device {component} fail."),
            Self::DeviceOut => format!("The device {component} is out of the pool."),
            Self::DeviceCatchingUp => format!("The device {component} is catching up."),
            Self::DeviceHealth => format!("The device {component} reports a health problem."),
            Self::ControllerMissing => format!("Controller {component} does not run."),
            Self::StoreFailed => "The pool accepts no more writes.".into(),
            Self::BackgroundFailed => "Background work fails.".into(),
            Self::SnapshotsMissed => {
                format!("Due snapshots of group {component} could not be taken.")
            }
            Self::ClockJumped => "The clock of the machine has jumped.".into(),
            Self::ClockOff => "The clock of the machine is off.".into(),
            Self::TimeServersSilent => "No time server answers.".into(),
            Self::HostOnePath => format!("Host {component} has only one path."),
            Self::HostGone => format!("Host {component} no longer has a session."),
            Self::LoginRefused => format!("Initiator {component} is refused repeatedly."),
            Self::OffloadRefused => format!("Offloads of host {component} are refused."),
            Self::OffloadOff => {
                format!("Offloads are switched off for volumes of host {component}.")
            }
            Self::NoReclaim => format!("Host {component} never reclaims space."),
            Self::CopiesByHost => format!("Host {component} copies by reading and writing."),
            Self::NoAts => format!("Host {component} locks whole volumes."),
            Self::ZerosByHost => format!("Host {component} sends zeros as data."),
            Self::CertificateEnds => "The management certificate expires.".into(),
            Self::NotificationFailed => format!("Notifications to {component} can't be sent."),
            Self::DirectoryUnreachable => {
                "No server of the directory service can be reached.".into()
            }
        }
    }
}
