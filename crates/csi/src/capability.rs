//! The use and the size of volumes.

use tonic::Status;

use crate::proto::volume_capability::access_mode::Mode;
use crate::proto::volume_capability::{AccessType, MountVolume};
use crate::proto::{CapacityRange, VolumeCapability};

/// Sizes are multiples of this.
const SIZE_STEP_BYTES: u64 = 4096;
/// The smallest volume. A raw one may be this small; the smallest for both kinds of filesystems is
/// larger (XFS: 300 MB).
pub const SIZE_BYTES_MIN: u64 = 1 << 20;
/// The largest volume.
pub const SIZE_BYTES_MAX: u64 = 64 << 40;
/// The size of a volume if none is requested.
const SIZE_BYTES_DEFAULT: u64 = 1 << 30;

/// The requested use of a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Use {
    /// Its filesystem, with options; `None` for a raw block device.
    pub mount: Option<Mount>,
    /// Its access mode.
    pub mode: Mode,
}

/// A filesystem on a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mount {
    /// Its type.
    pub filesystem: Filesystem,
    /// Mount options.
    pub options: Vec<String>,
}

/// A type of filesystem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filesystem {
    /// ext4, also the default.
    Ext4,
    /// XFS.
    Xfs,
}

impl Filesystem {
    /// Returns its name for the kernel and `blkid`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
        }
    }
}

impl Use {
    /// Checks a capability.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if something is missing or not supported.
    pub fn new(capability: &VolumeCapability) -> Result<Self, Status> {
        let refuse = |text: String| Err(Status::invalid_argument(text));
        let mode = capability.access_mode.as_ref().map_or(Mode::Unknown, |mode| mode.mode());
        let Some(access) = &capability.access_type else {
            return refuse("a capability needs an access type: block or mount".into());
        };
        if mode == Mode::Unknown {
            return refuse("a capability needs an access mode".into());
        }
        let mount = match access {
            AccessType::Block(_) => None,
            AccessType::Mount(mount) => Some(Mount::new(mount)?),
        };
        if mount.is_some() && !is_single_node(mode) {
            let text = format!(
                "{}: neither ext4 nor XFS may be mounted on several nodes; use block",
                mode.as_str_name()
            );
            return refuse(text);
        }
        let wanted = Self { mount, mode };
        if wanted.mount.is_none() && wanted.is_read_only() {
            // Neither the array nor a mount of its device can prevent a node from writing it.
            return refuse("a raw block device can't be published read-only".into());
        }
        Ok(wanted)
    }

    /// Checks the capability of a request.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`, also if there is none.
    pub fn required(capability: Option<&VolumeCapability>) -> Result<Self, Status> {
        let missing = || Status::invalid_argument("volume_capability is required");
        Self::new(capability.ok_or_else(missing)?)
    }

    /// Returns whether the volume is used by one node at a time.
    pub fn is_single_node(&self) -> bool {
        is_single_node(self.mode)
    }

    /// Returns whether it is never written.
    pub fn is_read_only(&self) -> bool {
        matches!(self.mode, Mode::SingleNodeReaderOnly | Mode::MultiNodeReaderOnly)
    }
}

impl Mount {
    fn new(asked: &MountVolume) -> Result<Self, Status> {
        let filesystem = match asked.fs_type.as_str() {
            "" | "ext4" => Filesystem::Ext4,
            "xfs" => Filesystem::Xfs,
            other => {
                let text = format!("fs_type {other:?} is not supported: use ext4 or xfs");
                return Err(Status::invalid_argument(text));
            }
        };
        if !asked.volume_mount_group.is_empty() {
            return Err(Status::invalid_argument("volume_mount_group is not supported"));
        }
        Ok(Self { filesystem, options: asked.mount_flags.clone() })
    }
}

/// Checks capabilities, of which there is at least one.
///
/// # Errors
/// `INVALID_ARGUMENT`.
pub fn check(capabilities: &[VolumeCapability]) -> Result<(), Status> {
    if capabilities.is_empty() {
        return Err(Status::invalid_argument("volume_capabilities are required"));
    }
    capabilities.iter().try_for_each(|capability| Use::new(capability).map(drop))
}

fn is_single_node(mode: Mode) -> bool {
    use Mode::{
        SingleNodeMultiWriter, SingleNodeReaderOnly, SingleNodeSingleWriter, SingleNodeWriter,
    };
    matches!(
        mode,
        SingleNodeWriter | SingleNodeReaderOnly | SingleNodeSingleWriter | SingleNodeMultiWriter
    )
}

/// The requested range of sizes, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// The minimum; `None` if any size is accepted.
    least_bytes: Option<u64>,
    most_bytes: u64,
}

impl Sizes {
    /// Checks a range.
    ///
    /// # Errors
    /// `OUT_OF_RANGE` if no volume can have such a size.
    pub fn new(range: Option<&CapacityRange>) -> Result<Self, Status> {
        let range = range.copied().unwrap_or_default();
        let bytes = |bytes: i64| {
            u64::try_from(bytes).map_err(|_| Status::out_of_range("a size is negative"))
        };
        let (required, limit) = (bytes(range.required_bytes)?, bytes(range.limit_bytes)?);
        let most_bytes = if limit == 0 { SIZE_BYTES_MAX } else { limit.min(SIZE_BYTES_MAX) };
        let rounded = required.max(SIZE_BYTES_MIN).checked_next_multiple_of(SIZE_STEP_BYTES);
        let least_bytes = rounded.filter(|bytes| *bytes <= most_bytes).ok_or_else(|| {
            Status::out_of_range(format!(
                "no volume has {required} to {limit} bytes: a size is a multiple of \
                 {SIZE_STEP_BYTES}, from {SIZE_BYTES_MIN} to {SIZE_BYTES_MAX}"
            ))
        })?;
        Ok(Self { least_bytes: (required > 0).then_some(least_bytes), most_bytes })
    }

    /// Returns the size of a new volume.
    pub fn new_bytes(&self) -> u64 {
        self.least_bytes.unwrap_or(SIZE_BYTES_DEFAULT.min(self.most_bytes / 4096 * 4096))
    }

    /// Returns the minimum size; 0 if any size is accepted.
    pub fn least_bytes(&self) -> u64 {
        self.least_bytes.unwrap_or(0)
    }

    /// Returns whether a volume of this size fits.
    pub fn fit(&self, bytes: u64) -> bool {
        (self.least_bytes()..=self.most_bytes).contains(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(required_bytes: i64, limit_bytes: i64) -> Result<Sizes, tonic::Code> {
        let range = CapacityRange { required_bytes, limit_bytes };
        Sizes::new(Some(&range)).map_err(|status| status.code())
    }

    #[test]
    fn sizes_are_rounded_up_within_the_limit() {
        assert_eq!(Sizes::new(None).unwrap().new_bytes(), 1 << 30);
        assert_eq!(sizes(5_000_000, 0).unwrap().new_bytes(), 5_001_216);
        assert_eq!(sizes(0, 8 << 20).unwrap().new_bytes(), 8 << 20);
        assert!(sizes(0, 8 << 20).unwrap().fit(1));
        let exact = sizes(1 << 30, 1 << 30).unwrap();
        assert!(exact.fit(1 << 30) && !exact.fit((1 << 30) + 4096));
        for (required, limit) in [(5_000_000, 5_000_001), (-1, 0), (2, 1), (i64::MAX, 0)] {
            assert_eq!(sizes(required, limit), Err(tonic::Code::OutOfRange), "{required} {limit}");
        }
    }

    #[test]
    fn a_filesystem_is_never_offered_to_several_nodes() {
        use crate::proto::volume_capability::{AccessMode, BlockVolume};
        let of = |access_type, mode: Mode| {
            let access_mode = Some(AccessMode { mode: mode.into() });
            Use::new(&VolumeCapability { access_type: Some(access_type), access_mode }).is_ok()
        };
        let mount = || AccessType::Mount(MountVolume::default());
        assert!(of(mount(), Mode::SingleNodeWriter));
        assert!(!of(mount(), Mode::MultiNodeMultiWriter));
        assert!(!of(mount(), Mode::MultiNodeReaderOnly));
        assert!(of(AccessType::Block(BlockVolume {}), Mode::MultiNodeMultiWriter));
        assert!(!of(AccessType::Block(BlockVolume {}), Mode::Unknown));
        assert!(!of(AccessType::Block(BlockVolume {}), Mode::MultiNodeReaderOnly));
        let ntfs = MountVolume { fs_type: "ntfs".into(), ..MountVolume::default() };
        assert!(!of(AccessType::Mount(ntfs), Mode::SingleNodeWriter));
    }
}
