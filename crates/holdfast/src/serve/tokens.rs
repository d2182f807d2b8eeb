//! The volume for ROD tokens.

use std::io;

use block::{SectorRange, VolumeRequest};
use scsi::{RodVolume, TokenKey};

use super::ServeOptions;

/// Returns the volume for tokens, with a new key. The content of an earlier run is discarded at a
/// power on, when no token of that run is valid any more. After a takeover they are valid, and the
/// stored key replaces this one.
pub(super) fn volume(options: &ServeOptions) -> io::Result<RodVolume> {
    let (id, size) = options.token_volume;
    if !options.store.has_taken_over() {
        let ranges = vec![SectorRange::new(0, size.0)];
        let emptied = options.store.execute(VolumeRequest::Unmap { volume: id, ranges });
        emptied.map_err(io::Error::other)?;
    }
    let mut key = [0; 32];
    sys::entropy(&mut key)?;
    Ok(RodVolume { id, size, key: TokenKey(key) })
}
