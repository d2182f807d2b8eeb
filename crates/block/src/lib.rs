//! The vocabulary of block storage, shared by the protocols above and the store below.
//!
//! Protocol crates and the store never depend on each other; both use the types of this crate. It
//! depends on nothing, does no I/O, and has these parts:
//!
//! * [`units`]: one newtype per quantity (sectors, blocks, ids),
//! * [`frame`]: 4 KiB of aligned memory, the unit in which data moves without being copied,
//! * [`data`]: what a host sends and receives, as runs of frames,
//! * [`request`]: requests to volumes, and their replies,
//! * [`offload`]: the offloads, each of which can be switched off,
//! * [`lun`]: what an initiator sees,
//! * [`task`]: hosts' commands in progress: their handles, responses, and task management.

pub mod data;
pub mod frame;
pub mod lun;
pub mod offload;
pub mod request;
pub mod task;
pub mod units;

pub use data::{DataIn, DataOut};
pub use frame::{FRAME_BYTES, Frame, FrameMut};
pub use lun::{
    ArrayIdentity, LimitedGroup, LogicalBlockSize, LunMap, VolumeAttributes, VolumeLimits,
};
pub use offload::{Offload, Offloads};
pub use request::{
    CopySegment, LbaExtent, LbaState, Sender, SpaceUse, VolumeError, VolumeReply, VolumeRequest,
};
pub use units::{
    BLOCK_BYTES, BlockCount, BlockNumber, BlockRange, SECTOR_BYTES, SECTORS_PER_BLOCK, Sector,
    SectorCount, SectorRange, VolumeId,
};
