//! Limits of volumes and commands: commands enforce them, and INQUIRY, READ CAPACITY and RECEIVE
//! COPY OPERATING PARAMETERS report them.

use block::request::limits::{
    COMPARE_AND_WRITE_SECTORS_MAX, COPY_SEGMENTS_MAX, TRANSFER_BYTES_MAX,
};
use block::{LogicalBlockSize, Offload, VolumeAttributes};

/// Returns the number of logical blocks of a volume.
pub(crate) fn blocks(volume: &VolumeAttributes) -> u64 {
    volume.size.0 / volume.logical_block.sectors()
}

/// Returns the number of logical blocks in a physical block of 4 KiB, as an exponent of 2.
pub(crate) fn physical_exponent(volume: &VolumeAttributes) -> u8 {
    match volume.logical_block {
        LogicalBlockSize::B512 => 3,
        LogicalBlockSize::B4096 => 0,
    }
}

/// Returns the most logical blocks of a COMPARE AND WRITE.
pub(crate) fn compared_blocks_max(volume: &VolumeAttributes) -> u64 {
    (COMPARE_AND_WRITE_SECTORS_MAX / volume.logical_block.sectors()).min(255)
}

/// Returns the most logical blocks of a WRITE ATOMIC.
pub(crate) fn atomic_blocks_max(volume: &VolumeAttributes) -> u64 {
    TRANSFER_BYTES_MAX / volume.logical_block.bytes()
}

/// Returns whether a host can deallocate blocks, by UNMAP or by WRITE SAME with its UNMAP bit. A
/// unit with neither has no logical block provisioning management (SBC-3, 4.7.1), and reports so in
/// LBPME.
pub(crate) fn can_deallocate(volume: &VolumeAttributes) -> bool {
    volume.offloads.has(Offload::Unmap) || volume.offloads.has(Offload::WriteSame)
}

/// The most CSCD descriptors in a list.
pub(crate) const CSCDS_MAX: usize = 64;
/// The most segment descriptors in a list.
pub(crate) const SEGMENTS_MAX: usize = COPY_SEGMENTS_MAX;
/// The length of a CSCD descriptor, in bytes.
pub(crate) const CSCD_BYTES: usize = 32;
/// The length of a block-to-block segment descriptor, in bytes.
pub(crate) const SEGMENT_BYTES: usize = 28;
/// The length of a segment descriptor with offsets, in bytes.
pub(crate) const OFFSET_SEGMENT_BYTES: usize = 32;
/// The most bytes of all descriptors.
pub(crate) const DESCRIPTOR_BYTES_MAX: usize =
    CSCDS_MAX * CSCD_BYTES + SEGMENTS_MAX * OFFSET_SEGMENT_BYTES;
/// The longest parameter list that is examined, in bytes. Longer lists are refused before they are
/// copied; the longest valid list is the longer header and all descriptors.
pub(crate) const PARAMETER_BYTES_MAX: usize = 128 << 10;
/// Identification CSCD descriptor.
pub(crate) const CSCD_TYPE: u8 = 0xe4;
/// Block device to block device.
pub(crate) const SEGMENT_TYPE: u8 = 0x02;
/// Block device with offset to block device with offset.
pub(crate) const OFFSET_SEGMENT_TYPE: u8 = 0x0a;
/// The most copies of a nexus in progress that have list identifiers.
pub(crate) const IDENTIFIED_MAX: usize = 255;
/// The CSCD id of the logical unit that received the command (SPC-4, table 146).
pub(crate) const OWN_UNIT: u16 = 0xffff;

/// Point in time copy, default.
pub(crate) const POINT_IN_TIME: u32 = 0x0080_0000;
/// Point in time copy, any: a type that hosts may request.
pub(crate) const POINT_IN_TIME_ANY: u32 = 0x0080_ffff;
/// The block device zero ROD token, which is well known (SBC-4, 4.28.4).
pub(crate) const BLOCK_ZERO: u32 = 0xffff_0001;
