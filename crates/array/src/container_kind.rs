//! The kinds of containers of volumes: a volume group (`GROUP/VOLUME`) or a pod (`POD::VOLUME`).

use std::fmt;

/// The kind of a container of volumes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ContainerKind {
    /// A volume group: volumes of one purpose.
    VolumeGroup,
    /// A pod: a name space of volumes.
    Pod,
}

impl ContainerKind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::VolumeGroup, Self::Pod];

    /// Returns the separator between the name of the container and that of a volume.
    pub fn separator(self) -> &'static str {
        match self {
            Self::VolumeGroup => "/",
            Self::Pod => "::",
        }
    }

    /// Returns the plural of the kind, for the middle of a sentence.
    pub fn plural(self) -> &'static str {
        match self {
            Self::VolumeGroup => "volume groups",
            Self::Pod => "pods",
        }
    }

    /// Returns the singular of the kind, for the middle of a sentence.
    pub fn one(self) -> &'static str {
        match self {
            Self::VolumeGroup => "volume group",
            Self::Pod => "pod",
        }
    }

    /// Splits the name of a volume into kind and name of its container, and the volume's own name,
    /// at the first separator.
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
