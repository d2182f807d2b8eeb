//! Zeroing a range of a device: by WRITE SAME, or by writing zeros.

use crate::datastore::BLOCK_BYTES;
use crate::engine::some_at_a_time;
use crate::host::{Device, HostError, Primitive};

/// What the host writes with one command if it zeroes by itself: a block of the datastore.
const BY_HAND_BYTES: u64 = 1 << 20;
/// The number of zeroing commands in flight for one new disk. ESXi's own is not published; the
/// papers' four disks at once in 1.6 times the time of one (000, fig. 17) suggest few.
const ZERO_IN_FLIGHT: usize = 2;

/// Zeroes a range: with one command, if the array supports it.
///
/// # Errors
/// Those of the device. An array that refuses WRITE SAME is not an error: the host writes zeros
/// then.
pub async fn zero(device: &Device, offset: u64, bytes: u64) -> Result<(), HostError> {
    if device.may_offload(Primitive::Init) {
        match device.write_same_zeros(offset, bytes).await {
            Err(HostError::Unsupported { .. }) => {}
            end => return end,
        }
    }
    let mut done = 0;
    while done < bytes {
        let part = BY_HAND_BYTES.min(bytes - done);
        device.write(offset + done, &vec![0; part as usize]).await?;
        done += part;
    }
    device.did_by_hand(Primitive::Init, bytes);
    Ok(())
}

/// Returns what one command zeroes: as configured, but no more than the array accepts, in whole
/// blocks.
fn piece_bytes(device: &Device) -> u64 {
    let wanted = match device.may_offload(Primitive::Init) {
        true => device.host().settings().zero_bytes.min(device.write_same_bytes_max()),
        false => BY_HAND_BYTES,
    };
    (wanted - wanted % BLOCK_BYTES).max(BLOCK_BYTES)
}

/// Zeroes ranges (first byte, bytes), several commands in parallel.
///
/// # Errors
/// Those of the device; the first one ends it.
pub async fn zero_all(
    device: &Device,
    ranges: impl IntoIterator<Item = (u64, u64)>,
) -> Result<(), HostError> {
    let piece = piece_bytes(device);
    let pieces = ranges.into_iter().flat_map(|(start, bytes)| {
        (0..bytes.div_ceil(piece)).map(move |index| {
            let done = index * piece;
            (start + done, piece.min(bytes - done))
        })
    });
    let zeroings = pieces.map(|(offset, bytes)| zero(device, offset, bytes));
    some_at_a_time(ZERO_IN_FLIGHT, zeroings).await
}
