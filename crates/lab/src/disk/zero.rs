//! Zeroing a range of a device: by WRITE SAME, or by writing zeros.

use futures::StreamExt;
use futures::stream;

use crate::host::{Device, HostError, Primitive};

/// What ESXi zeroes with one command: a block of the datastore (002, "Block Zero").
pub const ZERO_BYTES: u64 = 1 << 20;
/// Commands of zeroing in flight for one disk that is made. ESXi does not tell its own number; the
/// papers' four disks at once in 1.6 times the time of one (000, fig. 17) ask for few.
const ZERO_IN_FLIGHT: usize = 2;

/// Zeroes up to [`ZERO_BYTES`].
///
/// # Errors
/// Those of the device. An array that refuses WRITE SAME is none: the host writes zeros then.
pub async fn zero(device: &Device, offset: u64, bytes: u64) -> Result<(), HostError> {
    if device.may_offload(Primitive::Init) {
        match device.write_same_zeros(offset, bytes).await {
            Err(HostError::Unsupported { .. }) => {}
            end => return end,
        }
    }
    device.write(offset, &vec![0; bytes as usize]).await
}

/// Zeroes ranges (first byte, bytes), some commands at a time.
///
/// # Errors
/// Those of the device; the first one ends it.
pub async fn zero_all(
    device: &Device,
    ranges: impl IntoIterator<Item = (u64, u64)>,
) -> Result<(), HostError> {
    let pieces = ranges.into_iter().flat_map(|(start, bytes)| {
        (0..bytes.div_ceil(ZERO_BYTES)).map(move |index| {
            let done = index * ZERO_BYTES;
            (start + done, ZERO_BYTES.min(bytes - done))
        })
    });
    let mut ends = stream::iter(pieces)
        .map(|(offset, bytes)| zero(device, offset, bytes))
        .buffer_unordered(ZERO_IN_FLIGHT);
    while let Some(end) = ends.next().await {
        end?;
    }
    Ok(())
}
