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
            Self::ControllerMissing => {
                "Look at its log and start it: until it is there, hosts have the paths of one \
                 controller, and nobody takes over from that."
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
            | Self::ControllerMissing
            | Self::StoreFailed => self.advice_for_part(),
            Self::BackgroundFailed => {
                "Read the log. Checkpoints or reclaim do not go on: the pool may fill up."
            }
            Self::SnapshotsMissed => {
                "The actual value says why. They are tried again at the next time of the schedule; \
                 `holdfast snapshot create --group` takes them now."
            }
            Self::ClockJumped | Self::ClockOff | Self::TimeServersSilent => self.advice_for_clock(),
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
            Self::DirectoryUnreachable => {
                "The actual value says why, and `holdfast directory test` what it is now. Users of \
                 the array log in as before."
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
