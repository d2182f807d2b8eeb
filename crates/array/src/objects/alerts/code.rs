//! The kinds of alerts, with numbers and names that do not change, and with texts for people.

/// What to do where ESXi does not use an offload.
macro_rules! esxi_option {
    ($what:literal, $option:literal) => {
        concat!(
            "Enable ",
            $what,
            " on the host: on ESXi `esxcli system settings advanced set -i 1 -o ",
            $option,
            "`."
        )
    };
}

/// What an alert is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AlertCode {
    /// The pool fills up.
    PoolSpace,
    /// Writes of hosts fail for lack of space.
    PoolFull,
    /// The pool will be full soon if it keeps filling up as fast as now.
    PoolFullSoon,
    /// Bytes that can't be read.
    Damage,
    /// Transfers that the device failed.
    DeviceErrors,
    /// The device takes long.
    DeviceSlow,
    /// The device refused writes, which were retried.
    DeviceRetries,
    /// Data that the device refused was written elsewhere.
    DeviceMoved,
    /// Flushes of the device failed, and the data concerned was written again.
    DeviceFlushes,
    /// One of several devices of the pool is out, or missing.
    DeviceOut,
    /// One of several devices of the pool does not have all of it yet.
    DeviceCatchingUp,
    /// A device says of itself that it fails, or wears out.
    DeviceHealth,
    /// The store takes no more writes.
    StoreFailed,
    /// Work in the background fails.
    BackgroundFailed,
    /// Snapshots that were due could not be taken.
    SnapshotsMissed,
    /// The clock of the machine was set, or stood still.
    ClockJumped,
    /// A host has sessions on one portal of several.
    HostOnePath,
    /// A host that had sessions has none.
    HostGone,
    /// An initiator is refused again and again.
    LoginRefused,
    /// An offload that a host asks for is refused.
    OffloadRefused,
    /// Offloads are switched off for volumes of a host.
    OffloadOff,
    /// A host writes much and never unmaps.
    NoReclaim,
    /// A host copies by reading and writing.
    CopiesByHost,
    /// A host locks with reservations.
    NoAts,
    /// A host zeroes by writing.
    ZerosByHost,
    /// The certificate ends.
    CertificateEnds,
    /// Notifications can't be sent.
    NotificationFailed,
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
    /// Its name in settings and interfaces.
    pub fn name(self) -> &'static str {
        match self {
            Self::Array => "array",
            Self::Hardware => "hardware",
            Self::Software => "software",
        }
    }
}

impl AlertCode {
    /// All, in the order of their numbers.
    pub const ALL: [Self; 27] = [
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
        Self::SnapshotsMissed,
        Self::ClockJumped,
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
    ];

    /// Its number, for programs.
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
            Self::SnapshotsMissed => 301,
            Self::ClockJumped => 302,
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
        }
    }

    /// The one with this number.
    pub fn of_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Its name, for programs; also where `docs/alerts.md` tells of it.
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
            Self::SnapshotsMissed => "snapshots-missed",
            Self::ClockJumped => "clock-jumped",
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
        }
    }

    /// What sort of thing it is about.
    pub fn category(self) -> Category {
        match self {
            Self::DeviceErrors
            | Self::DeviceSlow
            | Self::DeviceRetries
            | Self::DeviceMoved
            | Self::DeviceFlushes
            | Self::DeviceOut
            | Self::DeviceCatchingUp
            | Self::DeviceHealth => Category::Hardware,
            Self::StoreFailed
            | Self::BackgroundFailed
            | Self::CertificateEnds
            | Self::NotificationFailed => Category::Software,
            _ => Category::Array,
        }
    }

    /// What its component is.
    pub fn component_type(self) -> &'static str {
        match self {
            Self::PoolSpace | Self::PoolFull | Self::PoolFullSoon | Self::Damage => "pool",
            Self::StoreFailed | Self::BackgroundFailed => "pool",
            Self::ClockJumped => "clock",
            Self::DeviceErrors | Self::DeviceSlow | Self::DeviceRetries => "device",
            Self::DeviceMoved | Self::DeviceFlushes => "device",
            Self::DeviceOut | Self::DeviceCatchingUp | Self::DeviceHealth => "device",
            Self::SnapshotsMissed => "protection_group",
            Self::LoginRefused => "initiator",
            Self::CertificateEnds => "certificate",
            Self::NotificationFailed => "notification",
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

    /// What is wrong with a component, on one line.
    pub fn summary(self, component: &str) -> String {
        match self {
            Self::PoolSpace => "The pool fills up.".into(),
            Self::PoolFull => "The pool is full: hosts are refused space.".into(),
            Self::PoolFullSoon => "The pool is full soon, as fast as it fills now.".into(),
            Self::Damage => "Stored bytes can't be read.".into(),
            Self::DeviceErrors => format!("The device {component} fails transfers."),
            Self::DeviceSlow => format!("The device {component} is slow."),
            Self::DeviceRetries => format!("The device {component} refuses writes for a while."),
            Self::DeviceMoved => format!("Places of the device {component} can't be written."),
            Self::DeviceFlushes => format!("Flushes of the device {component} fail."),
            Self::DeviceOut => format!("The device {component} is out of the pool."),
            Self::DeviceCatchingUp => format!("The device {component} is catching up."),
            Self::DeviceHealth => format!("The device {component} says that it is not well."),
            Self::StoreFailed => "The pool takes no more writes.".into(),
            Self::BackgroundFailed => "Work in the background fails.".into(),
            Self::SnapshotsMissed => {
                format!("Snapshots of group {component} that were due could not be taken.")
            }
            Self::ClockJumped => "The clock of the machine has jumped.".into(),
            Self::HostOnePath => format!("Host {component} has one path only."),
            Self::HostGone => format!("Host {component} has no session any more."),
            Self::LoginRefused => format!("Initiator {component} is refused again and again."),
            Self::OffloadRefused => format!("Offloads of host {component} are refused."),
            Self::OffloadOff => {
                format!("Offloads are switched off for volumes of host {component}.")
            }
            Self::NoReclaim => format!("Host {component} never gives space back."),
            Self::CopiesByHost => format!("Host {component} copies by reading and writing."),
            Self::NoAts => format!("Host {component} locks whole volumes."),
            Self::ZerosByHost => format!("Host {component} sends zeros as data."),
            Self::CertificateEnds => "The certificate of management ends.".into(),
            Self::NotificationFailed => format!("Notifications to {component} can't be sent."),
        }
    }

    /// What to do about what the pool's device does wrong.
    fn advice_for_device(self) -> &'static str {
        match self {
            Self::DeviceSlow => {
                "Look what else uses it, how warm it is and how much it has left to live \
                 (`smartctl`, `nvme smart-log`): hosts wait for each transfer. `holdfast device \
                 list` shows what it does."
            }
            Self::DeviceRetries => "Look for a full filesystem below, and read the kernel's log.",
            Self::DeviceMoved | Self::DeviceFlushes => {
                "Read the log of the kernel, and replace the device soon. Nothing that was \
                 answered is lost."
            }
            Self::DeviceOut => {
                "`holdfast device list` says why. If it is sound, it catches up by `holdfast \
                 device return NUMBER`; if not, put another one in its place: `holdfast device \
                 replace NUMBER PLACE`."
            }
            Self::DeviceCatchingUp => {
                "Nothing: `holdfast device list` says how far it is. Until then, do not take out \
                 another one."
            }
            Self::DeviceHealth => {
                "`holdfast device list --health` shows what it says, `smartctl --all` more. Put \
                 another one in its place soon: `holdfast device fail NUMBER`, then `holdfast \
                 device replace NUMBER PLACE`. Of a pool on one device, back up what is on it."
            }
            Self::StoreFailed => {
                "Read the log: the device has failed a write or a flush. Repair or replace the \
                 device, then restart the array. What was answered is on it; with \
                 `durability = \"flush\"`, what was flushed."
            }
            _ => "Read the log of the kernel, and replace the device.",
        }
    }

    /// What to do where ESXi does not use an offload.
    fn advice_for_option(self) -> &'static str {
        match self {
            Self::CopiesByHost => esxi_option!("full copy", "/DataMover/HardwareAcceleratedMove"),
            Self::NoAts => {
                esxi_option!("hardware-assisted locking", "/VMFS3/HardwareAcceleratedLocking")
            }
            _ => esxi_option!("block zero", "/DataMover/HardwareAcceleratedInit"),
        }
    }

    /// What to do about it.
    pub fn advice(self) -> &'static str {
        match self {
            Self::PoolSpace | Self::PoolFullSoon => {
                "Make the pool bigger (`holdfast pool grow`), eradicate what is destroyed, or have \
                 hosts unmap what they do not use."
            }
            Self::PoolFull => {
                "Make the pool bigger (`holdfast pool grow`) or eradicate something: what hosts \
                 have paused goes on by itself."
            }
            Self::Damage => {
                "`holdfast pool damage` lists which blocks of which volumes: restore these from a \
                 snapshot or a backup, and replace the device."
            }
            Self::DeviceErrors
            | Self::DeviceSlow
            | Self::DeviceRetries
            | Self::DeviceMoved
            | Self::DeviceFlushes
            | Self::DeviceOut
            | Self::DeviceCatchingUp
            | Self::DeviceHealth
            | Self::StoreFailed => self.advice_for_device(),
            Self::BackgroundFailed => {
                "Read the log. Checkpoints or reclaim do not go on: the pool may fill up."
            }
            Self::SnapshotsMissed => {
                "The actual value says why. They are tried again at the next time of the schedule; \
                 `holdfast snapshot create --group` takes them now."
            }
            Self::ClockJumped => {
                "Set the clock by NTP. Delays of eradication count the time that has passed, not \
                 the clock; retention destroys nothing for an hour after a jump ahead."
            }
            Self::HostOnePath => {
                "Log the host in at a second portal, over another network: `holdfast host check` \
                 says how. Until then, one cable stops it."
            }
            Self::HostGone => {
                "Look whether the host runs, and reaches the portals. If it is gone for good, \
                 disconnect its volumes and delete it."
            }
            Self::LoginRefused => {
                "If it is a host of yours: `holdfast host create` with its name, or give it the \
                 CHAP user and secret that the array has. If not, find out who it is."
            }
            Self::OffloadRefused => {
                "Look which command is refused and why: volumes in other arrays, a switch that is \
                 off, or a host that asks for more than is offered."
            }
            Self::OffloadOff => {
                "Switch them on again, unless they are off on purpose: `holdfast volume set VOLUME \
                 --offload all=on`, `holdfast array set --offload all=on`."
            }
            Self::NoReclaim => {
                "Enable automatic reclaim: on ESXi `esxcli storage vmfs reclaim config set`, on \
                 Linux `systemctl enable --now fstrim.timer`."
            }
            Self::CopiesByHost | Self::NoAts | Self::ZerosByHost => self.advice_for_option(),
            Self::CertificateEnds => {
                "Put a new one in its place and restart: remove both files and the array makes \
                 one, or name yours in the configuration."
            }
            Self::NotificationFailed => {
                "The actual value says why. Try it again with `holdfast alert test`."
            }
        }
    }
}
