//! What holds volumes by their names: a volume group (`GROUP/VOLUME`) or a pod (`POD::VOLUME`).

use std::fmt;

/// What holds volumes by their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContainerKind {
    /// A volume group: volumes of one purpose.
    VolumeGroup,
    /// A pod: a name space of volumes.
    Pod,
}

impl ContainerKind {
    /// Both.
    pub const ALL: [Self; 2] = [Self::VolumeGroup, Self::Pod];

    /// Returns what stands between its name and that of a volume.
    pub fn separator(self) -> &'static str {
        match self {
            Self::VolumeGroup => "/",
            Self::Pod => "::",
        }
    }

    /// Returns several of them, within a sentence.
    pub fn plural(self) -> &'static str {
        match self {
            Self::VolumeGroup => "volume groups",
            Self::Pod => "pods",
        }
    }

    /// Returns one of them, within a sentence.
    pub fn one(self) -> &'static str {
        match self {
            Self::VolumeGroup => "volume group",
            Self::Pod => "pod",
        }
    }

    /// Returns the container and the volume's own name in a name of a volume; whichever separator
    /// is first counts.
    pub fn split(name: &str) -> Option<(Self, &str, &str)> {
        let parts = Self::ALL.into_iter().filter_map(|kind| {
            let (container, own) = name.split_once(kind.separator())?;
            Some((kind, container, own))
        });
        parts.min_by_key(|(_, container, _)| container.len())
    }
}

impl fmt::Display for ContainerKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::VolumeGroup => "Volume group",
            Self::Pod => "Pod",
        })
    }
}
