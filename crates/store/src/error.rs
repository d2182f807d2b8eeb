//! The store's error type.

use std::io;

use block::VolumeError;
use segments::RootError;

/// Why a pool can't be created, opened or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The device failed.
    #[error("the device failed: {0}")]
    Io(#[from] io::Error),
    /// There is no pool here.
    #[error("this is not a Holdfast pool: {0}")]
    NotAPool(String),
    /// The pool uses something that this version does not know.
    #[error("this pool was used by a newer version of Holdfast, which is needed to use it: {0}")]
    Newer(String),
    /// Durable data is damaged.
    #[error("the pool is damaged: {0}")]
    Damaged(String),
    /// The device is too small or too large.
    #[error("{0}")]
    Size(String),
    /// The next checkpoint does not fit the free space. Nothing was changed; it is tried again when
    /// space was reclaimed, and always fits once the pool has grown.
    #[error(
        "the pool is full: its next checkpoint takes up to {needed_bytes} bytes, and it has \
         {free_bytes} for one; remove volumes or snapshots, or make it bigger (`pool grow`)"
    )]
    NoRoom {
        /// Bytes that the checkpoint needs at most.
        needed_bytes: u64,
        /// Bytes available for it.
        free_bytes: u64,
    },
    /// Metadata is not in memory, and the code that needs it does not wait for the device. Never
    /// returned to callers.
    #[error("metadata is not in memory")]
    Absent,
    /// The request is invalid.
    #[error("{0}")]
    Invalid(String),
    /// A request to a volume failed.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl From<RootError> for StoreError {
    fn from(error: RootError) -> Self {
        match error {
            RootError::None(why) => Self::NotAPool(why),
            RootError::Newer(why) => Self::Newer(why),
            RootError::Io(error) => Self::Io(error),
            RootError::Short { .. } | RootError::OtherDevice { .. } => {
                Self::Damaged(error.to_string())
            }
            // Whoever has replaced it is the writer now.
            RootError::Overtaken { .. } => Self::Io(io::Error::other(error)),
        }
    }
}
