//! The superblocks on the medium: which of them are whole, and that one always is.
//!
//! There are two copies, written one after the other, and a *stand-in* for the time in which one of
//! them can't be written: nothing else would be whole while the other is written over.
//!
//! Invariant: a copy is written over only while another one, or the stand-in, is whole and says
//! what it says, or what it is to say. If the device refuses the stand-in as well, it refuses all
//! there is: the last copy is left as it is, and writing ends.

use block::{BLOCK_BYTES, Frame, FrameMut};
use format::superblock::{
    SUPERBLOCK_OFFSETS_BYTES, SUPERBLOCK_STAND_IN_OFFSET_BYTES, UNKNOWN_FEATURE, UNKNOWN_VERSION,
};
use format::{FormatError, Superblock};

use crate::StoreError;
use crate::medium::Medium;

/// What is known of the copies. [`Superblocks::default`]: both are whole.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Superblocks {
    /// Those that say what the newest says, or what the one before it does.
    whole: [bool; 2],
    /// Whether there is something where the stand-in has its place.
    stands_in: bool,
}

impl Default for Superblocks {
    fn default() -> Self {
        Self { whole: [true; 2], stands_in: false }
    }
}

impl Superblocks {
    /// Writes a superblock over the copy that its sequence number belongs to.
    pub(crate) fn write(
        &mut self,
        medium: &Medium,
        superblock: &Superblock,
    ) -> Result<(), StoreError> {
        let copy = (superblock.sequence % 2) as usize;
        let frames = [FrameMut::from_bytes(&superblock.encode()).freeze()];
        if self.whole[copy] && !self.whole[1 - copy] {
            self.stands_in = true;
            write_at(medium, SUPERBLOCK_STAND_IN_OFFSET_BYTES, &frames)?;
        }
        let written = write_at(medium, SUPERBLOCK_OFFSETS_BYTES[copy], &frames);
        self.whole[copy] = written.is_ok();
        written
    }

    /// Notes that a copy was found bad where it stands.
    pub(crate) fn lose(&mut self, copy: usize) {
        self.whole[copy] = false;
    }

    /// Both copies are to say the same: nothing stands in for one that is whole, so that what is
    /// old by then is never taken for the newest.
    pub(crate) fn settle(&mut self, medium: &Medium) {
        if self.stands_in && self.whole == [true; 2] {
            let zeros = [Frame::zeros()];
            let cleared = write_at(medium, SUPERBLOCK_STAND_IN_OFFSET_BYTES, &zeros);
            self.stands_in = cleared.is_err();
        }
    }
}

fn write_at(medium: &Medium, offset_bytes: u64, frames: &[Frame]) -> Result<(), StoreError> {
    Ok(medium.disk.write_and_flush(&mut || medium.disk.write(offset_bytes, frames))?)
}

/// What stands in the place of a superblock.
pub(crate) fn read_superblock(
    disk: &dyn sys::Disk,
    offset_bytes: u64,
) -> Result<Superblock, FormatError> {
    if offset_bytes + BLOCK_BYTES > disk.len_bytes() {
        return Err(FormatError { what: "the device ends before it", offset: 0 });
    }
    let mut frames = [FrameMut::zeroed()];
    // A copy that can't be read is a copy that is not there: the other may be.
    if disk.read_patiently(offset_bytes, &mut frames).is_err() {
        return Err(FormatError { what: "unreadable", offset: 0 });
    }
    Superblock::decode(&frames[0][..])
}

/// Both copies as they were read, in their order.
pub(crate) fn read_superblocks(disk: &dyn sys::Disk) -> [Result<Superblock, FormatError>; 2] {
    SUPERBLOCK_OFFSETS_BYTES.map(|offset_bytes| read_superblock(disk, offset_bytes))
}

/// What stands in for a copy, if something does. It is of the same pool: a device may have borne
/// another one before.
fn read_stand_in(
    disk: &dyn sys::Disk,
    copies: &[Result<Superblock, FormatError>; 2],
) -> Option<Superblock> {
    let found = read_superblock(disk, SUPERBLOCK_STAND_IN_OFFSET_BYTES).ok()?;
    copies.iter().flatten().all(|copy| copy.pool_id == found.pool_id).then_some(found)
}

/// Both copies as they were read, and what stands in for one of them, if something does.
pub(crate) fn read_all(disk: &dyn sys::Disk) -> Vec<Result<Superblock, FormatError>> {
    let copies = read_superblocks(disk);
    let stand_in = read_stand_in(disk, &copies).map(Ok);
    copies.into_iter().chain(stand_in).collect()
}

fn no_superblock(copies: &[Result<Superblock, FormatError>; 2]) -> StoreError {
    let reasons = || copies.iter().filter_map(|copy| copy.as_ref().err());
    let is_newer = |error: &&FormatError| [UNKNOWN_VERSION, UNKNOWN_FEATURE].contains(&error.what);
    match reasons().find(is_newer) {
        Some(error) => StoreError::Newer(error.what.to_string()),
        None => StoreError::NotAPool(reasons().next().map_or_else(String::new, |e| e.to_string())),
    }
}

/// The newest superblock that is whole, and what is known of all.
pub(crate) fn newest_superblock(
    disk: &dyn sys::Disk,
) -> Result<(Superblock, Superblocks), StoreError> {
    let mut copies = read_superblocks(disk);
    if copies.iter().any(Result::is_err) {
        // One torn copy is what a crash leaves, but a misread one must not lead to an old state.
        copies = read_superblocks(disk);
    }
    let stand_in = read_stand_in(disk, &copies);
    let all = copies.iter().flatten().chain(&stand_in);
    let Some(newest) = all.max_by_key(|superblock| superblock.sequence).cloned() else {
        return Err(no_superblock(&copies));
    };
    if newest.capacity_bytes > disk.len_bytes() {
        return Err(StoreError::Damaged(format!(
            "the pool has {} bytes, but its device only {}",
            newest.capacity_bytes,
            disk.len_bytes()
        )));
    }
    let is_whole = |copy: &Result<Superblock, FormatError>| {
        copy.as_ref().is_ok_and(|copy| newest.sequence - copy.sequence <= 1)
    };
    let superblocks =
        Superblocks { whole: copies.each_ref().map(is_whole), stands_in: stand_in.is_some() };
    Ok((newest, superblocks))
}
