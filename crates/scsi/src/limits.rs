//! What volumes and commands are limited to: the commands hold it, and INQUIRY, READ CAPACITY and
//! RECEIVE COPY OPERATING PARAMETERS report it.

use block::request::limits::{
    COMPARE_AND_WRITE_SECTORS_MAX, COPY_SEGMENTS_MAX, TRANSFER_BYTES_MAX,
};
use block::{LogicalBlockSize, Offload, VolumeAttributes};

/// Logical blocks in a volume.
pub(crate) fn blocks(volume: &VolumeAttributes) -> u64 {
    volume.size.0 / volume.logical_block.sectors()
}

/// Logical blocks in a physical block of 4 KiB, as an exponent of 2.
pub(crate) fn physical_exponent(volume: &VolumeAttributes) -> u8 {
    match volume.logical_block {
        LogicalBlockSize::B512 => 3,
        LogicalBlockSize::B4096 => 0,
    }
}

/// The most logical blocks of a COMPARE AND WRITE.
pub(crate) fn compared_blocks_max(volume: &VolumeAttributes) -> u64 {
    (COMPARE_AND_WRITE_SECTORS_MAX / volume.logical_block.sectors()).min(255)
}

/// The most logical blocks of a WRITE ATOMIC.
pub(crate) fn atomic_blocks_max(volume: &VolumeAttributes) -> u64 {
    TRANSFER_BYTES_MAX / volume.logical_block.bytes()
}

/// Whether a host can deallocate blocks, by UNMAP or by WRITE SAME with its UNMAP bit. A unit with
/// neither has no logical block provisioning management (SBC-3, 4.7.1), and says so in LBPME.
pub(crate) fn can_deallocate(volume: &VolumeAttributes) -> bool {
    volume.offloads.has(Offload::Unmap) || volume.offloads.has(Offload::WriteSame)
}

/// CSCD descriptors in a list.
pub(crate) const CSCDS_MAX: usize = 64;
/// Segment descriptors in a list.
pub(crate) const SEGMENTS_MAX: usize = COPY_SEGMENTS_MAX;
/// Bytes of a CSCD descriptor.
pub(crate) const CSCD_BYTES: usize = 32;
/// Bytes of a segment descriptor of blocks to blocks.
pub(crate) const SEGMENT_BYTES: usize = 28;
/// The same with offsets.
pub(crate) const OFFSET_SEGMENT_BYTES: usize = 32;
/// Bytes of all descriptors.
pub(crate) const DESCRIPTOR_BYTES_MAX: usize =
    CSCDS_MAX * CSCD_BYTES + SEGMENTS_MAX * OFFSET_SEGMENT_BYTES;
/// Bytes of a parameter list that are looked at. Longer lists are refused before their bytes are
/// copied; the largest that can be right is the longer header and all descriptors.
pub(crate) const PARAMETER_BYTES_MAX: usize = 128 << 10;
/// Identification.
pub(crate) const CSCD_TYPE: u8 = 0xe4;
/// Block device to block device.
pub(crate) const SEGMENT_TYPE: u8 = 0x02;
/// Block device with offset to block device with offset.
pub(crate) const OFFSET_SEGMENT_TYPE: u8 = 0x0a;
/// Copies that can be in progress and be asked for by their list identifier, for a nexus.
pub(crate) const IDENTIFIED_MAX: usize = 255;
/// The id that names the logical unit to which the command was sent (SPC-4, table 146).
pub(crate) const OWN_UNIT: u16 = 0xffff;

/// Point in time copy, default.
pub(crate) const POINT_IN_TIME: u32 = 0x0080_0000;
/// Any point in time copy: what a host may ask for.
pub(crate) const POINT_IN_TIME_ANY: u32 = 0x0080_ffff;
/// The block device zero ROD token, which everybody knows (SBC-4, 4.28.4).
pub(crate) const BLOCK_ZERO: u32 = 0xffff_0001;
