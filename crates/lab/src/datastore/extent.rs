//! The blocks of a file, as its users see them.

use super::layout::BLOCK_BYTES;

/// The state of some blocks of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockState {
    /// Not allocated: it reads as zeros, and a write needs [`File::allocate`] first.
    Absent,
    /// Blocks from this offset of the device on, which read as zeros regardless of the device's
    /// content there: they must be zeroed, and then marked present, before a part of them is
    /// written.
    ToBeZeroed(u64),
    /// Blocks from this offset of the device on.
    Present(u64),
}

/// Adjacent blocks of a file in the same state, adjacent on the device too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileExtent {
    /// The first of them in the file.
    pub first_block: u64,
    /// The number of blocks.
    pub count: u64,
    /// Their state.
    pub state: BlockState,
}

/// The state of new blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AllocateAs {
    /// Valid on the device: the host that allocates them zeroes or writes them completely before
    /// others read them.
    Present,
    /// To be zeroed.
    ToBeZeroed,
}

/// The placement of new blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// In as few runs as possible: thick disks.
    Contiguous,
    /// The next free ones of this host's cluster, between the blocks of others: thin disks.
    AsItComes,
}

/// Returns whether two extents can be merged.
pub(super) fn follows(last: &FileExtent, next: &FileExtent) -> bool {
    let bytes = last.count * BLOCK_BYTES;
    last.first_block + last.count == next.first_block
        && match (last.state, next.state) {
            (BlockState::Absent, BlockState::Absent) => true,
            (BlockState::Present(at), BlockState::Present(here))
            | (BlockState::ToBeZeroed(at), BlockState::ToBeZeroed(here)) => at + bytes == here,
            _ => false,
        }
}
