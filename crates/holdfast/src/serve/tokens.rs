//! The volume for ROD tokens.

use std::io;

use block::{SectorRange, VolumeError, VolumeRequest};
use scsi::{RodVolume, TokenKey};

use super::ServeOptions;

/// Returns the volume for tokens, with a new key. The content of an earlier run is discarded at a
/// power on, when no token of that run is valid any more; if the pool is too full even for that, it
/// only takes space. After a takeover they are valid, and the stored key replaces this one.
pub(super) fn volume(options: &ServeOptions) -> io::Result<RodVolume> {
    let (id, size) = options.token_volume;
    if !options.store.has_taken_over() {
        let ranges = vec![SectorRange::new(0, size.0)];
        let emptied = options.store.execute(VolumeRequest::Unmap { volume: id, ranges });
        match emptied {
            Err(VolumeError::NoSpace) => tracing::warn!(
                "the pool is full: the data of offloaded copies (ODX) of the previous run keeps \
                 its space until the next start"
            ),
            emptied => drop(emptied.map_err(io::Error::other)?),
        }
    }
    let mut key = [0; 32];
    sys::entropy(&mut key)?;
    Ok(RodVolume { id, size, key: TokenKey(key) })
}
