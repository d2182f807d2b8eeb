//! ROD tokens: the volume that they need, the time that they have, and the space that they leave.

use std::io;

use block::{SectorRange, VolumeRequest};
use scsi::RodVolume;

use super::ServeOptions;
use super::shared::Shared;

/// The volume for tokens, with a new key. What an earlier run has left in it goes: nobody has a
/// token of that run that is still good.
pub(super) fn volume(options: &ServeOptions) -> io::Result<RodVolume> {
    let (id, size) = options.token_volume;
    let ranges = vec![SectorRange::new(0, size.0)];
    let emptied = options.store.execute(VolumeRequest::Unmap { volume: id, ranges });
    emptied.map_err(io::Error::other)?;
    let mut key = [0; 32];
    sys::entropy(&mut key)?;
    Ok(RodVolume { id, size, key })
}

/// Tells what time it is, and frees what tokens stood for that have ended.
pub(super) fn sweep(shared: &Shared) {
    let now_ms = shared.clock.now().as_millis();
    shared.front.scsi.set_time(u64::try_from(now_ms).unwrap_or(u64::MAX));
    let run = |request| match shared.front.store.execute(request) {
        Ok(_) => true,
        Err(error) => {
            tracing::warn!("the space of tokens that have ended is freed later: {error}");
            false
        }
    };
    while shared.front.scsi.sweep_tokens(run) {}
}
