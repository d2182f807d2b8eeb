//! The file: a header, followed by the cells of each ring. Numbers are little endian.
//!
//! | bytes | what |
//! |---|---|
//! | 0..16 | `HOLDFAST HISTORY` |
//! | 16..20 | version: 1 |
//! | 20..24 | bytes of a cell |
//! | 24..40 | the id of the pool |
//! | 40..64 | for each ring: milliseconds of a step, and how many steps, 4 bytes each |
//! | 64..68 | CRC32C of the bytes before |
//! | 4096.. | the cells of the first ring, then those of the others |
//! | behind | in the same way, the cells of the rings of space (see [`crate::space`]) |
//!
//! A step's cell is its number (its time divided by its length) modulo the number of steps, so the
//! newest step replaces the oldest, and no index is needed. The header does not describe the rings
//! of space: earlier versions, which have none, accept the file and leave them as they are.

/// The bytes of a cell: see [`crate::cell`].
pub const CELL_BYTES: usize = 16 << 10;
/// The bytes reserved for the header.
pub const HEADER_BYTES: usize = 4096;
/// Where the cells of the rings of performance end.
const PERFORMANCE_END: u64 = HEADER_BYTES as u64 + (2880 + 8928 + 8784) * CELL_BYTES as u64;
/// The bytes reserved for a cell of space.
pub const SPACE_CELL_BYTES: usize = 1 << 20;
/// The maximum size of the file. Parts that were never written take no space.
pub const FILE_BYTES: u64 = PERFORMANCE_END + (288 + 744 + 366) * SPACE_CELL_BYTES as u64;

const MAGIC: &[u8; 16] = b"HOLDFAST HISTORY";
const VERSION: u32 = 1;
const HEADER_USED: usize = 64;

/// Steps of one length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// The length of a step, in milliseconds.
    pub step_ms: u32,
    /// The number of steps.
    pub steps: u32,
    /// The offset of its cells in the file.
    first: u64,
    /// The bytes reserved for each.
    cell_bytes: u64,
}

/// The rings, the finest first: each length is a multiple of the previous one.
pub const RINGS: [Ring; 3] = {
    let header = HEADER_BYTES as u64;
    let cell = CELL_BYTES as u64;
    [
        Ring::new(30_000, 2880, header, cell),
        Ring::new(300_000, 8928, header + 2880 * cell, cell),
        Ring::new(3_600_000, 8784, header + (2880 + 8928) * cell, cell),
    ]
};

/// The rings of space, likewise.
pub const SPACE_RINGS: [Ring; 3] = {
    let cell = SPACE_CELL_BYTES as u64;
    [
        Ring::new(300_000, 288, PERFORMANCE_END, cell),
        Ring::new(3_600_000, 744, PERFORMANCE_END + 288 * cell, cell),
        Ring::new(86_400_000, 366, PERFORMANCE_END + (288 + 744) * cell, cell),
    ]
};

impl Ring {
    const fn new(step_ms: u32, steps: u32, first: u64, cell_bytes: u64) -> Self {
        Self { step_ms, steps, first, cell_bytes }
    }

    /// Returns the offset of the first byte after its cells.
    const fn end(&self) -> u64 {
        self.first + self.steps as u64 * self.cell_bytes
    }

    /// Returns the start of the step that contains a time.
    pub fn start_of(&self, time_ms: u64) -> u64 {
        time_ms - time_ms % u64::from(self.step_ms)
    }

    /// Returns the offset of the cell of a step.
    pub(crate) fn offset_of(&self, start_ms: u64) -> u64 {
        let number = start_ms / u64::from(self.step_ms) % u64::from(self.steps);
        self.first + number * self.cell_bytes
    }

    /// Returns for how long it keeps a step, in milliseconds.
    pub fn span_ms(&self) -> u64 {
        u64::from(self.step_ms) * u64::from(self.steps)
    }
}

/// Why a file is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOurs {
    /// Its header is damaged, or it is something else.
    #[error("it is damaged, or no history at all")]
    Damaged,
    /// It is of another version, or has other rings.
    #[error("it was written by another version")]
    Version,
    /// It is the history of another pool.
    #[error("it is of another pool")]
    Pool,
}

/// Returns the header of the history of a pool.
pub(crate) fn header(pool_id: [u8; 16]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES);
    bytes.extend(MAGIC);
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((CELL_BYTES as u32).to_le_bytes());
    bytes.extend(pool_id);
    for ring in RINGS {
        bytes.extend(ring.step_ms.to_le_bytes());
        bytes.extend(ring.steps.to_le_bytes());
    }
    bytes.extend(crc32c::crc32c(&bytes).to_le_bytes());
    bytes.resize(HEADER_BYTES, 0);
    bytes
}

/// Checks that this is the header of the history of a pool.
pub(crate) fn check(found: &[u8; HEADER_BYTES], pool_id: [u8; 16]) -> Result<(), NotOurs> {
    let checksum = crc32c::crc32c(&found[..HEADER_USED]).to_le_bytes();
    if found[..16] != *MAGIC || found[HEADER_USED..HEADER_USED + 4] != checksum {
        return Err(NotOurs::Damaged);
    }
    let expected = header(pool_id);
    if found[16..24] != expected[16..24] || found[40..HEADER_USED] != expected[40..HEADER_USED] {
        return Err(NotOurs::Version);
    }
    if found[24..40] != pool_id {
        return Err(NotOurs::Pool);
    }
    Ok(())
}

const _: () = {
    assert!(MAGIC.len() + 4 + 4 + 16 + RINGS.len() * 8 == HEADER_USED);
    assert!(RINGS[0].end() == RINGS[1].first && RINGS[1].end() == RINGS[2].first);
    assert!(RINGS[2].end() == SPACE_RINGS[0].first);
    assert!(SPACE_RINGS[0].end() == SPACE_RINGS[1].first);
    assert!(SPACE_RINGS[1].end() == SPACE_RINGS[2].first && SPACE_RINGS[2].end() == FILE_BYTES);
    let mut at = 1;
    while at < RINGS.len() {
        assert!(RINGS[at].step_ms.is_multiple_of(RINGS[at - 1].step_ms));
        assert!(SPACE_RINGS[at].step_ms.is_multiple_of(SPACE_RINGS[at - 1].step_ms));
        at += 1;
    }
};
