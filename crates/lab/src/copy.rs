//! EXTENDED COPY as ESXi's data mover sends it: a transfer in up to 8 segments of 30 MiB. Longer
//! ones have more segments.

use libiscsi::{Cdb, CopySegment, Data, Naa, copy_parameters};

/// The maximum length of a segment: 30 MiB, which fits 16 bits of 512-byte blocks.
pub const SEGMENT_BYTES: u64 = 30 << 20;
/// The maximum number of segments in one command.
pub const SEGMENT_COUNT: u64 = 8;
/// The maximum transfer of one of ESXi's commands.
pub const TRANSFER_BYTES: u64 = SEGMENT_BYTES * SEGMENT_COUNT;
/// The maximum transfer of one command: 64 segments, as many as Holdfast accepts.
pub const TRANSFER_BYTES_MAX: u64 = SEGMENT_BYTES * 64;

/// One command: source, destination, length. All in logical blocks.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    /// Where reading starts.
    pub source_lba: u64,
    /// Where writing starts.
    pub destination_lba: u64,
    /// The length; [`TRANSFER_BYTES_MAX`] at most.
    pub blocks: u64,
}

/// Returns the command that does `transfer` from the unit `devices[0]` to `devices[1]`.
pub fn command(devices: &[Naa; 2], transfer: Transfer, block_bytes: u32) -> (Cdb, Data) {
    let longest = (SEGMENT_BYTES / u64::from(block_bytes)).min(u64::from(u16::MAX));
    let mut segments = Vec::new();
    let mut done = 0;
    while done < transfer.blocks {
        let blocks = (transfer.blocks - done).min(longest);
        segments.push(CopySegment {
            source: 0,
            destination: 1,
            blocks: blocks as u16,
            source_lba: transfer.source_lba + done,
            destination_lba: transfer.destination_lba + done,
        });
        done += blocks;
    }
    let list = copy_parameters(devices, &segments, block_bytes);
    (Cdb::extended_copy(list.len() as u32), Data::Out(list))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_transfer_is_eight_segments() {
        let transfer =
            Transfer { source_lba: 0, destination_lba: 1 << 20, blocks: TRANSFER_BYTES / 512 };
        let (_, data) = command(&[[0x60; 16], [0x61; 16]], transfer, 512);
        let Data::Out(list) = data else { panic!("no list") };
        assert_eq!(list.len(), 16 + 64 + 8 * 28);
        assert_eq!(list[80 + 10..80 + 12], 61440_u16.to_be_bytes());
        let last = &list[80 + 7 * 28..];
        assert_eq!(last[12..20], (7 * 61440_u64).to_be_bytes());
    }
}
