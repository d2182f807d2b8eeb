//! Command descriptor blocks and parameter lists, in the layouts of SBC-4 and SPC-4.

/// The direction of a command's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// No data.
    None,
    /// From the target: Data-In.
    In,
    /// To the target: Data-Out.
    Out,
}

/// A command descriptor block, and the direction of its data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cdb {
    bytes: [u8; 16],
    len: u8,
    direction: Direction,
}

/// An NAA designator of 16 bytes (SPC-4, 7.8.6.6.5: IEEE Registered Extended).
pub type Naa = [u8; 16];

/// One block-to-block segment of EXTENDED COPY (SPC-4, 6.4.6.4), in logical blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopySegment {
    /// Index of the source in the list of CSCD descriptors.
    pub source: u16,
    /// Index of the destination.
    pub destination: u16,
    /// The number of blocks.
    pub blocks: u16,
    /// Where reading starts.
    pub source_lba: u64,
    /// Where writing starts.
    pub destination_lba: u64,
}

impl Cdb {
    /// Creates a CDB of 6, 10, 12 or 16 bytes; longer ones are truncated to 16.
    pub fn raw(bytes: &[u8], direction: Direction) -> Self {
        let len = bytes.len().min(16);
        let mut cdb = [0; 16];
        cdb[..len].copy_from_slice(&bytes[..len]);
        Self { bytes: cdb, len: len as u8, direction }
    }

    /// Returns its bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the direction of its data.
    pub fn direction(&self) -> Direction {
        self.direction
    }

    /// Ten bytes: operation, 32-bit address, 16-bit length.
    fn ten(operation: u8, lba: u32, length: u16, direction: Direction) -> Self {
        let mut bytes = [0; 10];
        bytes[0] = operation;
        bytes[2..6].copy_from_slice(&lba.to_be_bytes());
        bytes[7..9].copy_from_slice(&length.to_be_bytes());
        Self::raw(&bytes, direction)
    }

    /// Sixteen bytes: operation, 64-bit address, 32-bit length.
    fn sixteen(operation: u8, lba: u64, length: u32, direction: Direction) -> Self {
        let mut bytes = [0; 16];
        bytes[0] = operation;
        bytes[2..10].copy_from_slice(&lba.to_be_bytes());
        bytes[10..14].copy_from_slice(&length.to_be_bytes());
        Self::raw(&bytes, direction)
    }

    fn with(mut self, at: usize, bits: u8) -> Self {
        self.bytes[at] |= bits;
        self
    }

    /// TEST UNIT READY (SPC-4, 6.47).
    pub fn test_unit_ready() -> Self {
        Self::raw(&[0; 6], Direction::None)
    }

    /// INQUIRY (SPC-4, 6.6); `page` selects a page of vital product data.
    pub fn inquiry(page: Option<u8>, length: u16) -> Self {
        let [high, low] = length.to_be_bytes();
        let evpd = u8::from(page.is_some());
        Self::raw(&[0x12, evpd, page.unwrap_or(0), high, low, 0], Direction::In)
    }

    /// REPORT LUNS (SPC-4, 6.33), with all LUNs of the simple addressing method.
    pub fn report_luns(length: u32) -> Self {
        let mut bytes = [0; 12];
        bytes[0] = 0xA0;
        bytes[6..10].copy_from_slice(&length.to_be_bytes());
        Self::raw(&bytes, Direction::In)
    }

    /// READ CAPACITY (16) (SBC-4, 5.21).
    pub fn read_capacity_16(length: u32) -> Self {
        Self::sixteen(0x9E, 0, length, Direction::In).with(1, 0x10)
    }

    /// GET LBA STATUS (SBC-4, 5.6).
    pub fn get_lba_status(lba: u64, length: u32) -> Self {
        Self::sixteen(0x9E, lba, length, Direction::In).with(1, 0x12)
    }

    /// READ (10) (SBC-4, 5.16).
    pub fn read_10(lba: u32, blocks: u16) -> Self {
        Self::ten(0x28, lba, blocks, Direction::In)
    }

    /// READ (16) (SBC-4, 5.18).
    pub fn read_16(lba: u64, blocks: u32) -> Self {
        Self::sixteen(0x88, lba, blocks, Direction::In)
    }

    /// WRITE (10) (SBC-4, 5.40).
    pub fn write_10(lba: u32, blocks: u16) -> Self {
        Self::ten(0x2A, lba, blocks, Direction::Out)
    }

    /// WRITE (16) (SBC-4, 5.42).
    pub fn write_16(lba: u64, blocks: u32) -> Self {
        Self::sixteen(0x8A, lba, blocks, Direction::Out)
    }

    /// COMPARE AND WRITE (SBC-4, 5.3). Its data is the expected data, then the data to write.
    pub fn compare_and_write(lba: u64, blocks: u8) -> Self {
        Self::sixteen(0x89, lba, 0, Direction::Out).with(13, blocks)
    }

    /// WRITE SAME (10) (SBC-4, 5.50). Its data is one logical block.
    pub fn write_same_10(lba: u32, blocks: u16, unmap: bool) -> Self {
        Self::ten(0x41, lba, blocks, Direction::Out).with(1, u8::from(unmap) << 3)
    }

    /// WRITE SAME (16) (SBC-4, 5.51). Its data is one logical block.
    pub fn write_same_16(lba: u64, blocks: u32, unmap: bool) -> Self {
        Self::sixteen(0x93, lba, blocks, Direction::Out).with(1, u8::from(unmap) << 3)
    }

    /// UNMAP (SBC-4, 5.35), with a parameter list of `length` bytes ([`unmap_parameters`]).
    pub fn unmap(length: u16) -> Self {
        Self::ten(0x42, 0, length, Direction::Out)
    }

    /// RESERVE (6) of the whole unit (SPC-2, 7.21).
    pub fn reserve_6() -> Self {
        Self::raw(&[0x16, 0, 0, 0, 0, 0], Direction::None)
    }

    /// RELEASE (6) of the whole unit (SPC-2, 7.17).
    pub fn release_6() -> Self {
        Self::raw(&[0x17, 0, 0, 0, 0, 0], Direction::None)
    }

    /// SYNCHRONIZE CACHE (16) (SBC-4, 5.34) of the whole unit.
    pub fn synchronize_cache_16() -> Self {
        Self::sixteen(0x91, 0, 0, Direction::None)
    }

    /// EXTENDED COPY (LID1) (SPC-4, 6.4), with a parameter list of `length` bytes
    /// ([`copy_parameters`]).
    pub fn extended_copy(length: u32) -> Self {
        Self::sixteen(0x83, 0, length, Direction::Out)
    }

    /// RECEIVE COPY RESULTS, service action OPERATING PARAMETERS (SPC-4, 6.24).
    pub fn copy_operating_parameters(length: u32) -> Self {
        Self::sixteen(0x84, 0, length, Direction::In).with(1, 0x03)
    }
}

/// Returns the parameter list of EXTENDED COPY (LID1), as ESXi sends it: CSCD descriptors of type
/// E4h with an NAA designator, segment descriptors of type 02h, no list identifier held (SPC-4,
/// 6.4.3; NRCR, so that nothing waits for RECEIVE COPY RESULTS).
///
/// The descriptors contain `block_bytes` as logical block length.
pub fn copy_parameters(devices: &[Naa], segments: &[CopySegment], block_bytes: u32) -> Vec<u8> {
    let mut list = vec![0; 16];
    // LIST ID USAGE 11b: no list identifier.
    list[1] = 0x18;
    list[2..4].copy_from_slice(&((devices.len() * 32) as u16).to_be_bytes());
    list[8..12].copy_from_slice(&((segments.len() * 28) as u32).to_be_bytes());
    for naa in devices {
        let mut cscd = [0; 32];
        cscd[0] = 0xE4;
        // The designator as in page 83h: binary, of the logical unit, NAA, 16 bytes.
        cscd[4..8].copy_from_slice(&[0x01, 0x03, 0x00, 16]);
        cscd[8..24].copy_from_slice(naa);
        cscd[29..32].copy_from_slice(&block_bytes.to_be_bytes()[1..]);
        list.extend_from_slice(&cscd);
    }
    for segment in segments {
        let mut descriptor = [0; 28];
        descriptor[0] = 0x02;
        descriptor[2..4].copy_from_slice(&0x18_u16.to_be_bytes());
        descriptor[4..6].copy_from_slice(&segment.source.to_be_bytes());
        descriptor[6..8].copy_from_slice(&segment.destination.to_be_bytes());
        descriptor[10..12].copy_from_slice(&segment.blocks.to_be_bytes());
        descriptor[12..20].copy_from_slice(&segment.source_lba.to_be_bytes());
        descriptor[20..28].copy_from_slice(&segment.destination_lba.to_be_bytes());
        list.extend_from_slice(&descriptor);
    }
    list
}

/// Returns the parameter list of UNMAP (SBC-4, 5.35.2): ranges as (first block, number of blocks).
pub fn unmap_parameters(ranges: &[(u64, u32)]) -> Vec<u8> {
    let descriptors = ranges.len() * 16;
    let mut list = vec![0; 8];
    list[0..2].copy_from_slice(&((descriptors + 6) as u16).to_be_bytes());
    list[2..4].copy_from_slice(&(descriptors as u16).to_be_bytes());
    for (lba, blocks) in ranges {
        list.extend_from_slice(&lba.to_be_bytes());
        list.extend_from_slice(&blocks.to_be_bytes());
        list.extend_from_slice(&[0; 4]);
    }
    list
}
