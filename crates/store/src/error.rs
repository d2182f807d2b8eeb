//! Why something can't be done.

use std::io;

use block::VolumeError;
use segments::RootError;

/// Why a pool can't be made, opened or changed.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The device failed.
    #[error("the device failed: {0}")]
    Io(#[from] io::Error),
    /// There is no pool here.
    #[error("this is not a Holdfast pool: {0}")]
    NotAPool(String),
    /// The pool has what this version does not know.
    #[error("this pool was used by a newer version of Holdfast, which is needed to use it: {0}")]
    Newer(String),
    /// The bytes are damaged.
    #[error("the pool is damaged: {0}")]
    Damaged(String),
    /// The device is too small, or too big.
    #[error("{0}")]
    Size(String),
    /// The next checkpoint does not fit what is free. Nothing was changed; it is tried again when
    /// space was won, and fits for certain once the pool has grown.
    #[error(
        "the pool is full: its next checkpoint takes up to {needed_bytes} bytes, and it has \
         {free_bytes} for one; remove volumes or snapshots, or make it bigger (`pool grow`)"
    )]
    NoRoom {
        /// Bytes that the checkpoint takes, at most.
        needed_bytes: u64,
        /// Bytes that it could be given.
        free_bytes: u64,
    },
    /// Metadata is not in memory, and whoever needs it does not wait for the device. No caller gets
    /// this.
    #[error("it is not in memory")]
    Absent,
    /// The request does not make sense.
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
            // Whoever has replaced it writes now.
            RootError::Overtaken { .. } => Self::Io(io::Error::other(error)),
        }
    }
}
