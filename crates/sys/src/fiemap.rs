//! Which parts of a file were ever written: the `FS_IOC_FIEMAP` call.
#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;

/// `_IOWR('f', 11, struct fiemap)` of the kernel's `linux/fiemap.h`.
const FS_IOC_FIEMAP: libc::Ioctl = 0xC020_660B_u32 as libc::Ioctl;
/// Writes delayed allocations out first, so that the result is right.
const FLAG_SYNC: u32 = 1;
/// This extent is the file's last.
const EXTENT_LAST: u32 = 1;
/// Space is reserved here, and reads as zeros because nothing was ever written.
const EXTENT_UNWRITTEN: u32 = 0x800;
/// How many extents one call returns.
const EXTENTS_PER_CALL: usize = 256;

/// `struct fiemap_extent`.
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Extent {
    logical: u64,
    physical: u64,
    length: u64,
    reserved64: [u64; 2],
    flags: u32,
    reserved: [u32; 3],
}

/// `struct fiemap` with its extents.
#[repr(C)]
struct Map {
    start: u64,
    length: u64,
    flags: u32,
    mapped_extents: u32,
    extent_count: u32,
    reserved: u32,
    extents: [Extent; EXTENTS_PER_CALL],
}

/// Returns the byte ranges of `file` that were ever written, in order. Holes and reserved space are
/// left out.
///
/// # Errors
/// If the filesystem does not report them (tmpfs): then anything may have been written.
pub(crate) fn written_ranges(file: &File, len_bytes: u64) -> io::Result<Vec<Range<u64>>> {
    let mut ranges: Vec<Range<u64>> = Vec::new();
    let mut start = 0;
    while start < len_bytes {
        let mut map = Map {
            start,
            length: len_bytes - start,
            flags: FLAG_SYNC,
            mapped_extents: 0,
            extent_count: EXTENTS_PER_CALL as u32,
            reserved: 0,
            extents: [Extent::default(); EXTENTS_PER_CALL],
        };
        // SAFETY: `map` has the layout of the kernel's struct fiemap with room for the given number
        // of extents, and outlives the call.
        let result = unsafe { libc::ioctl(file.as_raw_fd(), FS_IOC_FIEMAP, &raw mut map) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let count = (map.mapped_extents as usize).min(EXTENTS_PER_CALL);
        let Some(last) = map.extents[..count].last() else { break };
        for extent in &map.extents[..count] {
            if extent.flags & EXTENT_UNWRITTEN == 0 {
                add(&mut ranges, extent.logical..extent.logical.saturating_add(extent.length));
            }
        }
        let next = last.logical.saturating_add(last.length);
        if last.flags & EXTENT_LAST != 0 || next <= start {
            break;
        }
        start = next;
    }
    Ok(ranges)
}

/// Adds a range after the others, merged with the last if they touch.
fn add(ranges: &mut Vec<Range<u64>>, range: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
        _ => ranges.push(range),
    }
}
