//! The recommended action for each kind of alert.

use super::code::AlertCode;

/// What to do if ESXi does not use an offload.
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

impl AlertCode {
    /// Returns the advice for alerts about a part of the array.
    fn advice_for_part(self) -> &'static str {
        match self {
            Self::DeviceSlow => {
                "Check for other load, its temperature and its remaining endurance \
                 (`smartctl`, `nvme smart-log`): hosts wait for each transfer. `holdfast device \
                 list` shows its activity."
            }
            Self::DeviceRetries => {
                "Check for a full filesystem beneath the pool, and read the kernel's log."
            }
            Self::DeviceMoved | Self::DeviceFlushes => {
                "Read the log of the kernel, and replace the device soon. No acknowledged write \
                 is lost."
            }
            Self::DeviceOut => {
                "`holdfast device list` shows why. If it is healthy, bring it back: `holdfast \
                 device return NUMBER`; otherwise replace it: `holdfast device replace NUMBER \
                 PLACE`."
            }
            Self::DeviceCatchingUp => {
                "Nothing: `holdfast device list` shows the progress. Until it is complete, do not \
                 take out another device."
            }
            Self::ControllerMissing => {
                "Look at its log and start it: until then, hosts have the paths of one \
                 controller, and none can take over from that one."
            }
            Self::DeviceHealth => {
                "`holdfast device list --health` shows its report, `smartctl --all` more. Replace \
                 it soon: `holdfast device fail NUMBER`, then `holdfast device replace NUMBER \
                 PLACE`. If the pool is on one device, back up its data."
            }
            Self::StoreFailed => {
                "Read the log: the device has failed a write or a flush. Repair or replace the \
                 device, then restart the array. Acknowledged writes are on it; with \
                 `durability = \"flush\"`, flushed ones."
            }
            _ => "Read the log of the kernel, and replace the device.",
        }
    }

    /// Returns the advice for alerts about offloads that ESXi does not use.
    fn advice_for_option(self) -> &'static str {
        match self {
            Self::CopiesByHost => esxi_option!("full copy", "/DataMover/HardwareAcceleratedMove"),
            Self::NoAts => {
                esxi_option!("hardware-assisted locking", "/VMFS3/HardwareAcceleratedLocking")
            }
            _ => esxi_option!("block zero", "/DataMover/HardwareAcceleratedInit"),
        }
    }

    /// Returns the recommended action.
    pub fn advice(self) -> &'static str {
        match self {
            Self::PoolSpace | Self::PoolFullSoon => {
                "Grow the pool (`holdfast pool grow`), eradicate destroyed objects, or have hosts \
                 unmap unused space."
            }
            Self::PoolFull => {
                "Grow the pool (`holdfast pool grow`) or eradicate something: hosts that have \
                 paused continue by themselves."
            }
            Self::Damage => {
                "`holdfast pool damage` lists the blocks of volumes: restore them from a snapshot \
                 or a backup, and replace the device."
            }
            Self::DeviceErrors
            | Self::DeviceSlow
            | Self::DeviceRetries
            | Self::DeviceMoved
            | Self::DeviceFlushes
            | Self::DeviceOut
            | Self::DeviceCatchingUp
            | Self::DeviceHealth
            | Self::ControllerMissing
            | Self::StoreFailed => self.advice_for_part(),
            Self::BackgroundFailed => {
                "Read the log. Checkpoints or reclaim make no progress: the pool may fill up."
            }
            Self::SnapshotsMissed => {
                "The actual value shows why. They are retried at the next time of the schedule; \
                 `holdfast snapshot create --group` takes them now."
            }
            Self::ClockJumped | Self::ClockOff | Self::TimeServersSilent => self.advice_for_clock(),
            Self::HostOnePath => {
                "Log the host in at a second portal, over another network: `holdfast host check` \
                 says how. Until then, one broken cable stops it."
            }
            Self::HostGone => {
                "Check that the host runs and reaches the portals. If it is gone for good, \
                 disconnect its volumes and delete it."
            }
            Self::LoginRefused => {
                "If it is a host of yours: `holdfast host create` with its name, or give it the \
                 CHAP user and secret that the array has. If not, find out who it is."
            }
            Self::OffloadRefused => {
                "Find out which command is refused and why: volumes in other arrays, an offload \
                 that is off, or a host that exceeds the reported limits."
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
                "Replace it and restart: remove both files, and the array creates a new one, or \
                 name yours in the configuration."
            }
            Self::NotificationFailed => {
                "The actual value shows why. Try again with `holdfast alert test`."
            }
            Self::DirectoryUnreachable => {
                "The actual value shows why, and `holdfast directory test` the current state. \
                 Users of the array log in as before."
            }
        }
    }

    /// Returns the advice for alerts about the clock.
    fn advice_for_clock(self) -> &'static str {
        match self {
            Self::ClockJumped => {
                "Set the clock by NTP. Delays of eradication count the time that has passed, not \
                 the clock; retention destroys nothing for an hour after a jump ahead."
            }
            Self::ClockOff => {
                "Have the operating system keep the time by NTP (chrony, systemd-timesyncd): the \
                 array shows the offset, and does not set the clock."
            }
            _ => {
                "`holdfast array ntp-test` says why each does not answer. Correct them by \
                 `holdfast array set --ntp-servers`, or have UDP let through to them."
            }
        }
    }
}
