//! ROD tokens: the volume that they need.

use std::io;

use block::{SectorRange, VolumeRequest};
use scsi::{RodVolume, TokenKey};

use super::ServeOptions;

/// The volume for tokens, with a new key. What an earlier run has left in it goes: nobody has a
/// token of that run that is still good. After a takeover they are good, and the key that is kept
/// takes the place of this one.
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
